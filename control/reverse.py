"""Reverse-mode rules of scans: bodies that return residuals, and the bodies of backward scans.

The derivative of a body is traced in one graph together with the body; then that graph is cut in two. The values that
the second part needs of the first are the residuals: the forward loop returns them as further stacked results, and the
backward loop, which runs in the other direction, takes them as further items. Cheap values are recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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


def is_inexact(x: Any) -> bool:
    """Whether a tensor or a Value can have a gradient: its dtype is floating-point or complex."""
    if isinstance(x, Value):
        return x.weak is None and x.spec.dtype.is_inexact
    return isinstance(x, Tensor) and x.dtype.is_inexact


def filter_inexact(items: Sequence[Any]) -> list[Any]:
    """The items that can have gradients."""
    return [item for item in items if is_inexact(item)]


def pull_back(
    run: Callable[[list[Any]], list[Any]], primals: Sequence[Any], cotangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Run a function and its vector-Jacobian product; returns the results, and the gradients (None if independent).

    Args:
        run: from arguments to results.
        primals: the arguments.
        cotangents: for each result its cotangent, or None.
    """
    with open_level("the derivative of a loop's body", "") as level:
        given = [wrap_level(level, x, AutogradMeta()) if is_inexact(x) else x for x in primals]
        results = run(given)
    roots = []
    for out, cotangent in zip(results, cotangents, strict=True):
        if cotangent is not None and isinstance(out, LevelTensor) and out._level is level and out._meta:
            roots.append((out._meta.node or out._meta, out._meta.index, cotangent))
    result = Pass(keep=False).run(roots)
    gradients = [result.get(x._meta) if is_inexact(x) else None for x in given]  # type: ignore[arg-type]
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
        self._backward: dict[Any, Graph] = {}

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
        places = [first + i for i, there in enumerate(given) if not there]
        kept = [value for place, value in enumerate(whole.inputs) if place not in places]

        def with_zeros(*inputs: Any) -> list[Any]:
            rest = iter(inputs)
            return run_graph(
                whole,
                [
                    zeros_of(value.spec) if place in places else next(rest)
                    for place, value in enumerate(whole.inputs)
                ],
            )

        return retrace("a backward scan", kept, with_zeros).graph

    @property
    def again(self) -> ScanSplit:
        """The split of the forward body with its residuals, for gradients of gradients."""
        if self._again is None:
            self._again = ScanSplit(self.forward, self.carried, self.items)
        return self._again


def _trace_joint(body: Graph, carried: int, items: int) -> Graph:
    """A body together with its derivative.

    Inputs: the body's; cotangents of its differentiable results; sums of gradients of captured values.
    Outputs: the body's; cotangents of the carry; the sums; cotangents of the items.
    """
    own, results = len(body.inputs), filter_inexact(body.outputs)
    reached = filter_inexact(body.inputs[carried + items :])

    def run(*inputs: Any) -> list[Any]:
        primals, cotangents = inputs[:own], iter(inputs[own : own + len(results)])
        sums = inputs[own + len(results) :]
        given = [next(cotangents) if is_inexact(output) else None for output in body.outputs]
        value, gradients = pull_back(lambda values: run_graph(body, values), primals, given)
        by_carry = fill_gradients(primals[:carried], gradients[:carried])
        by_items = fill_gradients(primals[carried : carried + items], gradients[carried : carried + items])
        by_reached = [
            g for x, g in zip(primals[carried + items :], gradients[carried + items :]) if is_inexact(x)
        ]
        added = [s if g is None else s + g for s, g in zip(sums, by_reached, strict=True)]
        return [*value, *by_carry, *added, *by_items]

    return retrace("a scan and its derivative", [*body.inputs, *results, *reached], run).graph


def fill_gradients(primals: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
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
def _scan_setup(ctx: Any, inputs: Any, output: Any, keyword_only_inputs: Any) -> None:
    body, carry, xs, consts = inputs
    split = get_split(body, len(carry), len(xs))
    ctx.set_materialize_grads(False)
    ctx.split, ctx.options, ctx.counts = split, keyword_only_inputs, (len(carry), len(xs), len(consts))
    ctx.numbers = [None if isinstance(x, Tensor) else x for x in consts]
    ctx.specs = [out.spec for out in output[: len(carry)]]
    tensors = [x if isinstance(x, Tensor) else None for x in consts]
    ctx.save_for_backward(*xs, *tensors, *output[split.plain :])


def _scan_backward(ctx: Any, cotangents: Any) -> Any:
    split, (carried, items, reached) = ctx.split, ctx.counts
    kept = ctx.saved_tensors
    xs, tensors, extra = kept[:items], kept[items : items + reached], kept[items + reached :]
    consts = [x if x is not None else number for x, number in zip(tensors, ctx.numbers)]
    recomputes = any(g is not None for g in cotangents[split.plain :])
    saved = extra[split.saved :] if recomputes else extra[: split.saved]
    if recomputes:
        split = split.again
    results = split.joint.outputs[: split.plain]
    state = [
        zeros_of(spec) if g is None else g for spec, g in zip(ctx.specs, cotangents) if spec.dtype.is_inexact
    ]
    stacked = [g for g, out in zip(cotangents[carried:], results[carried:]) if is_inexact(out)]
    body = split.backward(tuple(g is not None for g in stacked), recomputes)
    sums = [zeros_of(x.spec) for x in filter_inexact(consts)]
    given = [g for g in stacked if g is not None]
    options = {**ctx.options, "reverse": not ctx.options["reverse"], "flush": True}
    result = iter(
        find_operator("control::scan")(body, [*state, *sums], [*given, *saved, *xs], consts, **options)
    )
    by_carry = [next(result) if spec.dtype.is_inexact else None for spec in ctx.specs]
    by_consts = [next(result) if is_inexact(x) else None for x in consts]
    by_xs = [next(result) if is_inexact(x) else None for x in xs]
    return None, by_carry, by_xs, by_consts


SCAN_DERIVATIVE = Custom(_scan_backward, _scan_setup)


# -- while -------------------------------------------------------------------------------------------------------------
def _while_backward(ctx: Any, cotangents: Any) -> Any:
    raise NotDifferentiableError(
        "while_loop has no derivative in reverse mode: its number of steps depends on data, so there is no bound on "
        "the memory for saved values; use td.scan or td.fori_loop with a fixed number of steps (with td.checkpoint "
        "around the body to save little), or forward mode"
    )


WHILE_DERIVATIVE = Custom(_while_backward, lambda ctx, inputs, output: None)
