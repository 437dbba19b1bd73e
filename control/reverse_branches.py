"""Reverse mode through branches: the branch that is taken saves what its derivative needs.

All branches give the same results, so each has a place for what any of them saves; what has the same shape and dtype in
several branches shares its place. A branch gives zeros for what is not its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..eager.node import zeros_of
from ..eager.tensor import Tensor
from ..operators.derivatives import Custom
from ..registry.operator import find
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Value
from .reverse import filled, inexact, is_inexact, pulled_back
from .saving import saved_values
from .subgraph import extract, retraced, run_graph


class BranchSplit:
    """Branches, each cut in two.

    Attributes:
        plain: how many results a branch itself has.
        forward: the branches, with what is saved as further results.
    """

    def __init__(self, branches: Sequence[Graph]):
        self.plain, self.own = len(branches[0].outputs), len(branches[0].inputs)
        self.joints = [_joint(branch) for branch in branches]
        self.saved = [saved_values(joint, joint.inputs[: self.own], 0, self.plain) for joint in self.joints]
        self.slots: list[TensorSpec] = []
        self.places = [self._placed(saved) for saved in self.saved]
        self.forward = tuple([self._saving(number) for number in range(len(branches))])
        self._backward: dict[Any, tuple[Graph, ...]] = {}

    def _placed(self, saved: Sequence[Value]) -> list[int]:
        """A slot for each value, of its spec; new ones where there are too few."""
        found: list[int] = []
        for value in saved:
            free = [k for k, spec in enumerate(self.slots) if spec == value.spec and k not in found]
            if not free:
                free = [len(self.slots)]
                self.slots.append(value.spec)
            found.append(free[0])
        return found

    def _saving(self, number: int) -> Graph:
        joint, places = self.joints[number], self.places[number]
        wanted = [*joint.outputs[: self.plain], *self.saved[number]]
        kept = extract(joint, joint.inputs[: self.own], wanted, effects=True)

        def run(*inputs: Any) -> list[Any]:
            found = run_graph(kept, inputs)
            known = dict(zip(places, found[self.plain :]))
            rest = [known[k] if k in known else zeros_of(spec) for k, spec in enumerate(self.slots)]
            return [*found[: self.plain], *rest]

        return retraced("a branch", joint.inputs[: self.own], run).graph

    def backward(self, given: tuple[bool, ...]) -> tuple[Graph, ...]:
        """The branches of the backward switch.

        Their inputs: the operands, those cotangents of differentiable results that are given, what is saved.
        """
        if given not in self._backward:
            self._backward[given] = tuple([self._cut(number, given) for number in range(len(self.joints))])
        return self._backward[given]

    def _cut(self, number: int, given: tuple[bool, ...]) -> Graph:
        joint, places = self.joints[number], self.places[number]
        primals, cotangents = joint.inputs[: self.own], joint.inputs[self.own :]
        whole = extract(joint, [*primals, *cotangents, *self.saved[number]], joint.outputs[self.plain :])
        present = [value for value, there in zip(cotangents, given) if there]
        slots = [Value(spec) for spec in self.slots]

        def run(*inputs: Any) -> list[Any]:
            rest = iter(inputs[self.own : self.own + len(present)])
            passed = [next(rest) if there else zeros_of(v.spec) for v, there in zip(cotangents, given)]
            kept = inputs[self.own + len(present) :]
            return run_graph(whole, [*inputs[: self.own], *passed, *(kept[k] for k in places)])

        return retraced("the derivative of a branch", [*primals, *present, *slots], run).graph


def _joint(branch: Graph) -> Graph:
    """A branch together with its derivative: from operands and cotangents to results and gradients."""
    own = len(branch.inputs)

    def run(*inputs: Any) -> list[Any]:
        primals, rest = inputs[:own], iter(inputs[own:])
        cotangents = [next(rest) if is_inexact(output) else None for output in branch.outputs]
        found, gradients = pulled_back(lambda values: run_graph(branch, values), primals, cotangents)
        return [*found, *filled(primals, gradients)]

    return retraced("a branch and its derivative", [*branch.inputs, *inexact(branch.outputs)], run).graph


def branches_split(branches: Sequence[Graph]) -> BranchSplit:
    """How branches are cut; the same for those that save, which are one of the parts."""
    known, found = branches[0].memo.get("branches", ((), None))
    if found is None or known != tuple(branches):
        found = BranchSplit(branches)
        branches[0].memo["branches"] = tuple(branches), found
        found.forward[0].memo["branches"] = found.forward, found
    split: BranchSplit = found
    return split


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    branches, index, operands = inputs
    ctx.set_materialize_grads(False)
    ctx.split, ctx.branches = branches_split(branches), branches
    ctx.numbers = [None if isinstance(x, Tensor) else x for x in (index, *operands)]
    tensors = [x if isinstance(x, Tensor) else None for x in (index, *operands)]
    ctx.save_for_backward(*tensors, *output[ctx.split.plain :])


def _backward(ctx: Any, cotangents: Any) -> Any:
    kept, count = ctx.saved_tensors, len(ctx.numbers)
    index, *operands = (x if x is not None else number for x, number in zip(kept, ctx.numbers))
    split = ctx.split
    saved: list[Any] | None = list(kept[count:])
    if any(
        g is not None for g in cotangents[split.plain :]
    ):  # gradients of gradients: of what was saved as well
        split, saved = BranchSplit(ctx.branches), None
    results = split.joints[0].outputs[: split.plain]
    given = [g for g, out in zip(cotangents, results) if is_inexact(out)]
    present = [g for g in given if g is not None]
    if saved is None:
        saved = list(find("control::switch")(split.forward, index, operands))[split.plain :]
    branches = split.backward(tuple(g is not None for g in given))
    found = iter(find("control::switch")(branches, index, [*operands, *present, *saved]))
    return None, None, [next(found) if is_inexact(x) else None for x in operands]


SWITCH_DERIVATIVE = Custom(_backward, _setup)
