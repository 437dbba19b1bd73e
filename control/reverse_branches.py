"""Reverse-mode rule of ``switch`` (and ``cond``): each branch returns its residuals in slots that all branches share.

All branches must return the same specs, so residuals of equal shape and dtype in several branches share a slot, and a
branch returns zeros in the slots that it does not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..eager.autograd.node import zeros_of
from ..eager.tensor.tensor import Tensor
from ..operators.declare.derivatives import Custom
from ..registry.operator import find_operator
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Value
from .residuals import select_residuals
from .reverse import fill_gradients, filter_inexact, is_inexact, pull_back
from .subgraph import copy_subgraph, retrace, run_graph

if TYPE_CHECKING:
    from ..eager.autograd.context import Context
    from .subgraph import BodyInput

    class SwitchContext(Context):
        """The context of a switch's derivative, with the attributes that the rules below set."""

        split: BranchSplit
        branches: tuple[Graph, ...]
        numbers: list[BodyInput | None]


class BranchSplit:
    """The branches of a switch, each split for reverse mode.

    Attributes:
        plain: the number of results of an original branch.
        forward: the branches with residuals as further results.
    """

    def __init__(self, branches: Sequence[Graph]):
        self.plain, self.own = len(branches[0].outputs), len(branches[0].inputs)
        self.joints = [_trace_joint(branch) for branch in branches]
        self.saved = [
            select_residuals(joint, joint.inputs[: self.own], 0, self.plain) for joint in self.joints
        ]
        self.slots: list[TensorSpec] = []
        self.slot_indices = [self._assign_slots(saved) for saved in self.saved]
        self.forward = tuple([self._make_forward(number) for number in range(len(branches))])
        self._backward: dict[tuple[bool, ...], tuple[Graph, ...]] = {}

    def _assign_slots(self, saved: Sequence[Value]) -> list[int]:
        """Assign each residual a slot of its spec; append slots if there are too few."""
        result: list[int] = []
        for value in saved:
            free = [k for k, spec in enumerate(self.slots) if spec == value.spec and k not in result]
            if not free:
                free = [len(self.slots)]
                self.slots.append(value.spec)
            result.append(free[0])
        return result

    def _make_forward(self, number: int) -> Graph:
        """Trace a branch that also returns its residuals in their slots, and zeros in the others."""
        joint, indices = self.joints[number], self.slot_indices[number]
        wanted = [*joint.outputs[: self.plain], *self.saved[number]]
        kept = copy_subgraph(joint, joint.inputs[: self.own], wanted, effects=True)

        def run(*inputs: BodyInput) -> list[Tensor]:
            result = run_graph(kept, inputs)
            known = dict(zip(indices, result[self.plain :]))
            rest = [known[k] if k in known else zeros_of(spec) for k, spec in enumerate(self.slots)]
            return [*result[: self.plain], *rest]

        return retrace("a branch", joint.inputs[: self.own], run).graph

    def backward(self, given: tuple[bool, ...]) -> tuple[Graph, ...]:
        """The branches of the backward switch.

        Their inputs: the operands, the given cotangents of differentiable results, the residuals.
        """
        if given not in self._backward:
            self._backward[given] = tuple([self._cut(number, given) for number in range(len(self.joints))])
        return self._backward[given]

    def _cut(self, number: int, given: tuple[bool, ...]) -> Graph:
        joint, indices = self.joints[number], self.slot_indices[number]
        primals, cotangents = joint.inputs[: self.own], joint.inputs[self.own :]
        whole = copy_subgraph(
            joint, [*primals, *cotangents, *self.saved[number]], joint.outputs[self.plain :]
        )
        present = [value for value, there in zip(cotangents, given) if there]
        slots = [Value(spec) for spec in self.slots]

        def run(*inputs: BodyInput) -> list[Tensor]:
            rest = iter(inputs[self.own : self.own + len(present)])
            filled = [next(rest) if there else zeros_of(v.spec) for v, there in zip(cotangents, given)]
            kept = inputs[self.own + len(present) :]
            return run_graph(whole, [*inputs[: self.own], *filled, *(kept[k] for k in indices)])

        return retrace("the derivative of a branch", [*primals, *present, *slots], run).graph


def _trace_joint(branch: Graph) -> Graph:
    """Trace a branch together with its derivative: from operands and cotangents to results and gradients."""
    own = len(branch.inputs)

    def run(*inputs: Tensor) -> list[Tensor]:
        primals, rest = inputs[:own], iter(inputs[own:])
        cotangents = [next(rest) if is_inexact(output) else None for output in branch.outputs]
        outputs, gradients = pull_back(lambda values: run_graph(branch, values), primals, cotangents)
        return [*outputs, *fill_gradients(primals, gradients)]

    return retrace(
        "a branch and its derivative", [*branch.inputs, *filter_inexact(branch.outputs)], run
    ).graph


def get_branch_split(branches: Sequence[Graph]) -> BranchSplit:
    """The cached split of branches; forward branches have the same split."""
    known, result = branches[0].memo.get("branches", ((), None))
    if result is None or known != tuple(branches):
        result = BranchSplit(branches)
        branches[0].memo["branches"] = tuple(branches), result
        result.forward[0].memo["branches"] = result.forward, result
    split: BranchSplit = result
    return split


def _setup(
    ctx: SwitchContext,
    inputs: tuple[tuple[Graph, ...], BodyInput, tuple[BodyInput, ...]],
    output: Sequence[Tensor],
) -> None:
    branches, index, operands = inputs
    ctx.set_materialize_grads(False)
    ctx.split, ctx.branches = get_branch_split(branches), branches
    ctx.numbers = [None if isinstance(x, Tensor) else x for x in (index, *operands)]
    tensors = [x if isinstance(x, Tensor) else None for x in (index, *operands)]
    ctx.save_for_backward(*tensors, *output[ctx.split.plain :])


def _backward(
    ctx: SwitchContext, cotangents: Sequence[Tensor | None]
) -> tuple[None, None, list[Tensor | None]]:
    tensors, count = ctx.saved_tensors, len(ctx.numbers)
    index, *operands = (x if x is not None else number for x, number in zip(tensors, ctx.numbers))
    split = ctx.split
    residuals: list[Tensor] | None = list(tensors[count:])
    if any(g is not None for g in cotangents[split.plain :]):
        # For gradients of gradients, the residuals are differentiated too.
        split, residuals = BranchSplit(ctx.branches), None
    results = split.joints[0].outputs[: split.plain]
    given = [g for g, out in zip(cotangents, results) if is_inexact(out)]
    present = [g for g in given if g is not None]
    if residuals is None:
        residuals = list(find_operator("control::switch")(split.forward, index, operands))[split.plain :]
    branches = split.backward(tuple(g is not None for g in given))
    gradients = iter(find_operator("control::switch")(branches, index, [*operands, *present, *residuals]))
    return None, None, [next(gradients) if is_inexact(x) else None for x in operands]


SWITCH_DERIVATIVE = Custom(_backward, _setup)
