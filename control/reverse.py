"""Reverse-mode rules of scans: bodies that return residuals, and the bodies of backward scans.

The derivative of a body is traced in one graph together with the body; then that graph is cut in two. The values that
the second part needs of the first are the residuals: the forward loop returns them as further stacked results, and the
backward loop, which runs in the other direction, takes them as further items. Cheap values are recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeGuard, overload

from ..eager.autograd.autograd_meta import AutogradMeta
from ..eager.autograd.engine import Pass
from ..eager.autograd.node import zeros_of
from ..eager.layers.levels import LevelTensor, open_level, unwrap, wrap_level
from ..eager.tensor.tensor import Tensor
from ..errors import NotDifferentiableError
from ..operators.declare.derivatives import Custom
from ..registry.operator import find_operator
from ..tracer.graph import Graph, Value
from .residuals import select_residuals
from .subgraph import copy_subgraph, retrace, run_graph

if TYPE_CHECKING:
    from ..eager.autograd.context import Context
    from ..eager.autograd.engine import Root
    from ..registry.types import Kwargs
    from ..registry.values import TensorSpec
    from .subgraph import BodyInput

    class ScanContext(Context):
        """The context of a scan's derivative, with the attributes that the rules below set."""

        split: ScanSplit
        options: Kwargs
        counts: tuple[int, int, int]
        numbers: list[BodyInput | None]
        specs: list[TensorSpec]


@overload
def is_inexact(x: Value) -> bool: ...
@overload
def is_inexact(x: BodyInput | None) -> TypeGuard[Tensor]: ...
def is_inexact(x: object) -> bool:
    """Whether a tensor or a Value can have a gradient: its dtype is floating-point or complex."""
    if isinstance(x, Value):
        return x.weak is None and x.spec.dtype.is_inexact
    return isinstance(x, Tensor) and x.dtype.is_inexact


@overload
def filter_inexact(items: Sequence[Value]) -> list[Value]: ...
@overload
def filter_inexact(items: Sequence[BodyInput | None]) -> list[Tensor]: ...
def filter_inexact(items: Sequence[object]) -> Sequence[object]:
    """The items that can have gradients."""
    return [item for item in items if is_inexact(item)]  # type: ignore[call-overload]


def pull_back(
    run: Callable[[list[BodyInput]], list[Tensor]],
    primals: Sequence[BodyInput],
    cotangents: Sequence[Tensor | None],
) -> tuple[list[Tensor], list[Tensor | None]]:
    """Run a function and its vector-Jacobian product; returns the results, and the gradients (None if independent).

    Args:
        run: a function from arguments to results.
        primals: the arguments.
        cotangents: for each result its cotangent, or None.
    """
    with open_level("the derivative of a loop's body", "") as level:
        inputs = [wrap_level(level, x, AutogradMeta()) if is_inexact(x) else x for x in primals]
        results = run(inputs)
    roots: list[Root] = []
    for out, cotangent in zip(results, cotangents, strict=True):
        if cotangent is not None and isinstance(out, LevelTensor) and out._level is level and out._meta:
            roots.append((out._meta.node or out._meta, out._meta.index, cotangent))
    by_leaf = Pass(keep=False).run(roots)
    gradients = [by_leaf.get(x._meta) if is_inexact(x) else None for x in inputs]  # type: ignore[arg-type]
    return [unwrap(level, out) for out in results], gradients


class ScanSplit:
    """The body of a scan, split for reverse mode.

    Attributes:
        plain: the number of results of the original body.
        forward: the body with the residuals, then the input carry, as further results.
        saved: the number of residuals.
    """

    def __init__(self, body: Graph, carried: int, items: int):
        self.carried, self.items, self.plain = carried, items, len(body.outputs)
        self.joint = _trace_joint(body, carried, items)
        own = len(body.inputs)
        self._primals = self.joint.inputs[:own]
        self._saved = select_residuals(self.joint, self._primals, carried, len(body.outputs))
        self.saved = len(self._saved)
        kept = [*self.joint.outputs[: self.plain], *self._saved, *self._primals[:carried]]
        self.forward = copy_subgraph(self.joint, self._primals, kept, effects=True)
        self._again: ScanSplit | None = None
        self._backward: dict[tuple[tuple[bool, ...], bool], Graph] = {}

    def backward(self, given: tuple[bool, ...], recomputes: bool = False) -> Graph:
        """The body of the backward scan.

        Its carry: cotangents of the carry, sums of the gradients of captured values. Its items: the given cotangents of
        stacked results, the residuals (or with ``recomputes`` the carry), the items.

        Args:
            given: for each differentiable stacked result, whether it has a cotangent.
            recomputes: whether to recompute the body from its carry.
        """
        key = (given, recomputes)
        if key not in self._backward:
            self._backward[key] = self._cut(given, recomputes)
        return self._backward[key]

    def _cut(self, given: tuple[bool, ...], recomputes: bool) -> Graph:
        own, joint = len(self._primals), self.joint
        results = joint.outputs[: self.plain]
        state, stacked = filter_inexact(results[: self.carried]), filter_inexact(results[self.carried :])
        rest = joint.inputs[own:]
        by_carry, by_stacked = rest[: len(state)], rest[len(state) : len(state) + len(stacked)]
        sums = rest[len(state) + len(stacked) :]
        saved = self._primals[: self.carried] if recomputes else self._saved
        fixed = self._primals[self.carried :]
        order = [*by_carry, *sums, *by_stacked, *saved, *fixed]
        whole = copy_subgraph(joint, order, joint.outputs[self.plain :])
        if all(given):
            return whole
        first = len(by_carry) + len(sums)
        missing = [first + i for i, is_given in enumerate(given) if not is_given]
        kept = [value for index, value in enumerate(whole.inputs) if index not in missing]

        def run(*inputs: BodyInput) -> list[Tensor]:
            rest = iter(inputs)
            return run_graph(
                whole,
                [
                    zeros_of(value.spec) if index in missing else next(rest)
                    for index, value in enumerate(whole.inputs)
                ],
            )

        return retrace("a backward scan", kept, run).graph

    @property
    def again(self) -> ScanSplit:
        """The split of the forward body with its residuals, for gradients of gradients."""
        if self._again is None:
            self._again = ScanSplit(self.forward, self.carried, self.items)
        return self._again


def _trace_joint(body: Graph, carried: int, items: int) -> Graph:
    """Trace a body together with its derivative.

    Inputs: the body's; cotangents of its differentiable results; sums of gradients of captured values.
    Outputs: the body's; cotangents of the carry; the sums; cotangents of the items.
    """
    own, results = len(body.inputs), filter_inexact(body.outputs)
    captures = filter_inexact(body.inputs[carried + items :])

    def run(*inputs: Tensor) -> list[Tensor]:
        primals, rest = inputs[:own], iter(inputs[own : own + len(results)])
        sums = inputs[own + len(results) :]
        cotangents = [next(rest) if is_inexact(output) else None for output in body.outputs]
        outputs, gradients = pull_back(lambda values: run_graph(body, values), primals, cotangents)
        by_carry = fill_gradients(primals[:carried], gradients[:carried])
        by_items = fill_gradients(primals[carried : carried + items], gradients[carried : carried + items])
        by_captures = [
            g for x, g in zip(primals[carried + items :], gradients[carried + items :]) if is_inexact(x)
        ]
        totals = [s if g is None else s + g for s, g in zip(sums, by_captures, strict=True)]
        return [*outputs, *by_carry, *totals, *by_items]

    return retrace("a scan and its derivative", [*body.inputs, *results, *captures], run).graph


def fill_gradients(primals: Sequence[BodyInput], gradients: Sequence[Tensor | None]) -> list[Tensor]:
    """The gradients of the differentiable arguments, with zeros for missing ones."""
    return [
        zeros_of(x.spec) if g is None else g for x, g in zip(primals, gradients, strict=True) if is_inexact(x)
    ]


def get_split(body: Graph, carried: int, items: int) -> ScanSplit:
    """The cached split of a body; a forward body has the same split."""
    result: ScanSplit | None = body.memo.get("split")
    if result is None:
        result = body.memo["split"] = ScanSplit(body, carried, items)
        result.forward.memo["split"] = result
    return result


# -- scan --------------------------------------------------------------------------------------------------------------
def _scan_setup(
    ctx: ScanContext,
    inputs: tuple[Graph, tuple[Tensor, ...], tuple[Tensor, ...], tuple[BodyInput, ...]],
    output: Sequence[Tensor],
    keyword_only_inputs: Kwargs,
) -> None:
    body, carry, xs, consts = inputs
    split = get_split(body, len(carry), len(xs))
    ctx.set_materialize_grads(False)
    ctx.split, ctx.options, ctx.counts = split, keyword_only_inputs, (len(carry), len(xs), len(consts))
    ctx.numbers = [None if isinstance(x, Tensor) else x for x in consts]
    ctx.specs = [out.spec for out in output[: len(carry)]]
    tensors = [x if isinstance(x, Tensor) else None for x in consts]
    ctx.save_for_backward(*xs, *tensors, *output[split.plain :])


def _scan_backward(
    ctx: ScanContext, cotangents: Sequence[Tensor | None]
) -> tuple[None, list[Tensor | None], list[Tensor | None], list[Tensor | None]]:
    split, (carried, items, captured) = ctx.split, ctx.counts
    residuals = ctx.saved_tensors
    xs, extra = residuals[:items], residuals[items + captured :]
    tensors = residuals[items : items + captured]
    consts = [x if x is not None else number for x, number in zip(tensors, ctx.numbers)]
    recomputes = any(g is not None for g in cotangents[split.plain :])
    stored = extra[split.saved :] if recomputes else extra[: split.saved]
    if recomputes:
        split = split.again
    results = split.joint.outputs[: split.plain]
    carry = [
        zeros_of(spec) if g is None else g for spec, g in zip(ctx.specs, cotangents) if spec.dtype.is_inexact
    ]
    stacked = [g for g, out in zip(cotangents[carried:], results[carried:]) if is_inexact(out)]
    body = split.backward(tuple(g is not None for g in stacked), recomputes)
    sums = [zeros_of(x.spec) for x in filter_inexact(consts)]
    present = [g for g in stacked if g is not None]
    options = {**ctx.options, "reverse": not ctx.options["reverse"], "flush": True}
    gradients = iter(
        find_operator("control::scan")(body, [*carry, *sums], [*present, *stored, *xs], consts, **options)
    )
    by_carry = [next(gradients) if spec.dtype.is_inexact else None for spec in ctx.specs]
    by_consts = [next(gradients) if is_inexact(x) else None for x in consts]
    by_xs = [next(gradients) if is_inexact(x) else None for x in xs]
    return None, by_carry, by_xs, by_consts


SCAN_DERIVATIVE = Custom(_scan_backward, _scan_setup)


# -- while -------------------------------------------------------------------------------------------------------------
def _while_backward(ctx: Context, cotangents: Sequence[Tensor | None]) -> NoReturn:
    raise NotDifferentiableError(
        "while_loop has no derivative in reverse mode: its number of steps depends on data, so there is no bound on "
        "the memory for saved values; use td.scan or td.fori_loop with a fixed number of steps (with td.checkpoint "
        "around the body to save little), or forward mode"
    )


WHILE_DERIVATIVE = Custom(_while_backward, lambda ctx, inputs, output: None)
