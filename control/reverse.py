"""Reverse mode through loops and branches: bodies that save what their derivatives need, and the derivatives.

The derivative of a body is traced as one graph together with the body; then that graph is cut in two. What the second
part needs of the first is *saved*: the loop gives it as further stacked results, and the backward loop, which runs the
other way, takes it as further items. Values that are cheap to compute from others are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..eager.engine import Pass
from ..eager.levels import LevelTensor, open_level, unwrap, wrap_level
from ..eager.meta import AutogradMeta
from ..eager.node import zeros_of
from ..eager.tensor import Tensor
from ..errors import NotDifferentiableError
from ..operators.derivatives import Custom
from ..registry.operator import find
from ..tracer.graph import Graph, Value
from .saving import saved_values
from .subgraph import extract, retraced, run_graph


def is_inexact(x: Any) -> bool:
    """Whether something has a gradient: a floating-point or complex tensor, or a Value that stands for one."""
    if isinstance(x, Value):
        return x.weak is None and x.spec.dtype.is_inexact
    return isinstance(x, Tensor) and x.dtype.is_inexact


def inexact(items: Sequence[Any]) -> list[Any]:
    """Those that have gradients."""
    return [item for item in items if is_inexact(item)]


def pulled_back(
    run: Callable[[list[Any]], list[Any]], primals: Sequence[Any], cotangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The results of a function, and the gradients of its arguments (None: it does not depend on one).

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
    found = Pass(keep=False).run(roots)
    gradients = [found.get(x._meta) if is_inexact(x) else None for x in given]
    return [unwrap(level, out) for out in results], gradients


class Split:
    """The body of a scan, cut for reverse mode.

    Attributes:
        plain: how many results the body itself has.
        forward: the body, with what is saved, and after that the carry that it was given, as further results.
        saved: how many values are saved.
    """

    def __init__(self, body: Graph, carried: int, items: int):
        self.carried, self.items, self.plain = carried, items, len(body.outputs)
        self.joint = _joint(body, carried, items)
        own = len(body.inputs)
        self._primals = self.joint.inputs[:own]
        self._saved = saved_values(self.joint, self._primals, carried, len(body.outputs))
        self.saved = len(self._saved)
        kept = [*self.joint.outputs[: self.plain], *self._saved, *self._primals[:carried]]
        self.forward = extract(self.joint, self._primals, kept, effects=True)
        self._again: Split | None = None
        self._backward: dict[Any, Graph] = {}

    def backward(self, given: tuple[bool, ...], recomputes: bool = False) -> Graph:
        """The body of the backward scan.

        Its carry: cotangents of the carry, sums of the gradients of what the body reaches by itself. Its items: those
        cotangents of stacked results that are given, what is saved (or with ``recomputes`` the carry), the items.

        Args:
            given: for each differentiable stacked result whether it has a cotangent.
            recomputes: whether the body is computed again from its carry.
        """
        key = (given, recomputes)
        if key not in self._backward:
            self._backward[key] = self._cut(given, recomputes)
        return self._backward[key]

    def _cut(self, given: tuple[bool, ...], recomputes: bool) -> Graph:
        own, joint = len(self._primals), self.joint
        results = joint.outputs[: self.plain]
        state, stacked = inexact(results[: self.carried]), inexact(results[self.carried :])
        rest = joint.inputs[own:]
        by_carry, by_stacked = rest[: len(state)], rest[len(state) : len(state) + len(stacked)]
        sums = rest[len(state) + len(stacked) :]
        saved = self._primals[: self.carried] if recomputes else self._saved
        fixed = self._primals[self.carried :]
        order = [*by_carry, *sums, *by_stacked, *saved, *fixed]
        whole = extract(joint, order, joint.outputs[self.plain :])
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

        return retraced("a backward scan", kept, with_zeros).graph

    @property
    def again(self) -> Split:
        """The same for the body with what it saves, whose cotangents come in gradients of gradients."""
        if self._again is None:
            self._again = Split(self.forward, self.carried, self.items)
        return self._again


def _joint(body: Graph, carried: int, items: int) -> Graph:
    """A body together with its derivative.

    Inputs: the body's; cotangents of its differentiable results; sums of gradients of what it reaches by itself.
    Outputs: the body's; cotangents of the carry; the sums; cotangents of the items.
    """
    own, results = len(body.inputs), inexact(body.outputs)
    reached = inexact(body.inputs[carried + items :])

    def run(*inputs: Any) -> list[Any]:
        primals, cotangents = inputs[:own], iter(inputs[own : own + len(results)])
        sums = inputs[own + len(results) :]
        given = [next(cotangents) if is_inexact(output) else None for output in body.outputs]
        found, gradients = pulled_back(lambda values: run_graph(body, values), primals, given)
        by_carry = filled(primals[:carried], gradients[:carried])
        by_items = filled(primals[carried : carried + items], gradients[carried : carried + items])
        by_reached = [
            g for x, g in zip(primals[carried + items :], gradients[carried + items :]) if is_inexact(x)
        ]
        added = [s if g is None else s + g for s, g in zip(sums, by_reached, strict=True)]
        return [*found, *by_carry, *added, *by_items]

    return retraced("a scan and its derivative", [*body.inputs, *results, *reached], run).graph


def filled(primals: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
    """The gradients of the differentiable arguments, zeros where there are none."""
    return [
        zeros_of(x.spec) if g is None else g for x, g in zip(primals, gradients, strict=True) if is_inexact(x)
    ]


def split_of(body: Graph, carried: int, items: int) -> Split:
    """How a body is cut; the same for the body that saves, which is one of the parts."""
    found: Split | None = body.memo.get("split")
    if found is None:
        found = body.memo["split"] = Split(body, carried, items)
        found.forward.memo["split"] = found
    return found


# -- scan --------------------------------------------------------------------------------------------------------------
def _scan_setup(ctx: Any, inputs: Any, output: Any, keyword_only_inputs: Any) -> None:
    body, carry, xs, consts = inputs
    split = split_of(body, len(carry), len(xs))
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
    sums = [zeros_of(x.spec) for x in inexact(consts)]
    given = [g for g in stacked if g is not None]
    options = {**ctx.options, "reverse": not ctx.options["reverse"], "flush": True}
    found = iter(find("control::scan")(body, [*state, *sums], [*given, *saved, *xs], consts, **options))
    by_carry = [next(found) if spec.dtype.is_inexact else None for spec in ctx.specs]
    by_consts = [next(found) if is_inexact(x) else None for x in consts]
    by_xs = [next(found) if is_inexact(x) else None for x in xs]
    return None, by_carry, by_xs, by_consts


SCAN_DERIVATIVE = Custom(_scan_backward, _scan_setup)


# -- while -------------------------------------------------------------------------------------------------------------
def _while_backward(ctx: Any, cotangents: Any) -> Any:
    raise NotDifferentiableError(
        "while_loop has no derivative in reverse mode: how often it runs follows from data, so there is no bound on "
        "what would have to be saved; use td.scan or td.fori_loop with a fixed number of steps (with td.checkpoint "
        "around the body to save little), or forward mode"
    )


WHILE_DERIVATIVE = Custom(_while_backward, lambda ctx, inputs, output: None)
