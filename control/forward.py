"""Forward-mode rules of loops and branches: their bodies also carry the tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..eager.autograd.forward_mode import (
    ForwardMeta,
    Source,
    attach_tangents,
    forward,
    run_at_outer,
    tangent_at,
)
from ..eager.autograd.node import zeros_of
from ..eager.layers.levels import Level, open_level, run_below, unwrap, unwrap_deep, wrap_level
from ..eager.tensor.tensor import Tensor
from ..registry.operator import Operator
from ..tracer.graph import Graph, Value
from .reverse import is_inexact
from .subgraph import retrace, run_graph

if TYPE_CHECKING:
    from ..registry.types import Kwargs
    from .subgraph import BodyInput

    # For each value its tangent, None if it has none.
    Tangents = list[Tensor | None]
    Tensors = tuple[Tensor, ...]
    Inputs = tuple[BodyInput, ...]
    ScanArgs = tuple[Graph, Tensors, Tensors, Inputs]
    WhileArgs = tuple[Graph, Graph, Tensors, Inputs]
    SwitchArgs = tuple[tuple[Graph, ...], Tensor, Inputs]

T = TypeVar("T")


def push_forward(
    graph: Graph, primals: Sequence[BodyInput], tangents: Sequence[Tensor | None]
) -> tuple[list[Tensor], Tangents]:
    """Run a graph on dual values; returns the results and their tangents (None for non-differentiable results)."""
    with open_level("the tangent of a loop's body", "", forward) as level:
        inputs = [
            x if t is None else wrap_level(level, cast("Tensor", x), ForwardMeta(t))
            for x, t in zip(primals, tangents, strict=True)
        ]
        outputs = run_graph(graph, inputs)
    results: list[Tensor] = []
    result_tangents: Tangents = []
    for x in outputs:
        tangent = tangent_at(level, x)
        results.append(unwrap(level, x))
        result_tangents.append(_tangent_or_zeros(x, tangent) if is_inexact(x) else None)
    return results, result_tangents


class TangentBody:
    """A body that also computes tangents.

    Args:
        graph: the body.
        groups: the sizes of the groups of inputs; each group is followed by the tangents of its inputs.
        has_tangent: for each input, whether it has a tangent.
        results: the sizes of the groups of outputs, likewise.
    """

    def __init__(
        self, graph: Graph, groups: Sequence[int], has_tangent: Sequence[bool], results: Sequence[int]
    ):
        self.graph, self.groups, self.has_tangent, self.results = graph, groups, has_tangent, results

    def make(self) -> Graph:
        """Trace the graph of the body."""
        values = self.graph.inputs
        tangent_values = [value if has else None for value, has in zip(values, self.has_tangent)]

        def run(*inputs: Tensor) -> list[Tensor]:
            rest = iter(inputs)
            primals: list[Tensor] = []
            tangents: Tangents = []
            for size in self.groups:
                start = len(primals)
                primals += [next(rest) for _ in range(size)]
                tangents += [next(rest) if has else None for has in self.has_tangent[start : start + size]]
            results, result_tangents = push_forward(self.graph, primals, tangents)
            return _interleave(results, result_tangents, self.results)

        inputs = _interleave(values, tangent_values, self.groups)
        return retrace("the tangent of a loop", inputs, run).graph


def _interleave(values: Sequence[T], tangents: Sequence[T | None], sizes: Sequence[int]) -> list[T]:
    """Interleave groups of values with their tangents."""
    result: list[T] = []
    start = 0
    for size in sizes:
        result += values[start : start + size]
        result += [t for t in tangents[start : start + size] if t is not None]
        start += size
    return result


def _deinterleave(
    interleaved: Sequence[Tensor], outputs: Sequence[Value], sizes: Sequence[int]
) -> tuple[list[Tensor], Tangents]:
    """Separate results and tangents that are interleaved by groups."""
    rest = iter(interleaved)
    results: list[Tensor] = []
    tangents: Tangents = []
    start = 0
    for size in sizes:
        results += [next(rest) for _ in range(size)]
        tangents += [next(rest) if is_inexact(o) else None for o in outputs[start : start + size]]
        start += size
    return results, tangents


def _tangent_or_zeros(x: BodyInput, tangent: Tensor | None) -> Tensor | None:
    return zeros_of(x.spec) if tangent is None and is_inexact(x) else tangent


def run_forward(op: Operator, level: Level, args: tuple[Any, ...], kwargs: Kwargs) -> Any:
    """Run a loop or a branch with tangents, below a level of ``jvp``."""
    raw_args = tuple([unwrap_deep(level, arg) for arg in args])
    rule = _RULES[op.schema.name]
    results, tangents = run_at_outer(level, lambda: rule(op, level, args, raw_args, kwargs))
    return attach_tangents(level, Source(op), raw_args, tuple(results), tuple(tangents))


def _read_tangents(level: Level, values: Sequence[object]) -> Tangents:
    return [tangent_at(level, x) for x in values]


def _append_tangents(values: Inputs, tangents: Tangents) -> Inputs:
    """A group of operands followed by their tangents."""
    return (*values, *(t for t in tangents if t is not None))


def _scan(
    op: Operator, level: Level, args: ScanArgs, raw_args: ScanArgs, kwargs: Kwargs
) -> tuple[list[Tensor], Tangents]:
    body, carry, xs, consts = raw_args
    by_carry = [_tangent_or_zeros(x, t) for x, t in zip(carry, _read_tangents(level, args[1]))]
    by_xs, by_consts = _read_tangents(level, args[2]), _read_tangents(level, args[3])
    sizes = (len(carry), len(xs), len(consts))
    has_tangent = [t is not None for t in (*by_carry, *by_xs, *by_consts)]
    results = (len(carry), len(body.outputs) - len(carry))
    graph = TangentBody(body, sizes, has_tangent, results).make()
    groups = zip((carry, xs, consts), (by_carry, by_xs, by_consts))
    operands = [_append_tangents(group, tangents) for group, tangents in groups]
    out = run_below(op, level, (graph, *operands), kwargs)
    return _deinterleave(out, body.outputs, results)


def _while(
    op: Operator, level: Level, args: WhileArgs, raw_args: WhileArgs, kwargs: Kwargs
) -> tuple[list[Tensor], Tangents]:
    condition, body, carry, consts = raw_args
    by_carry = [_tangent_or_zeros(x, t) for x, t in zip(carry, _read_tangents(level, args[2]))]
    by_consts = _read_tangents(level, args[3])
    sizes = (len(carry), len(consts))
    has_tangent = [t is not None for t in (*by_carry, *by_consts)]
    graph = TangentBody(body, sizes, has_tangent, (len(carry),)).make()
    wide_condition = _add_unused_inputs(condition, graph, sizes, has_tangent)
    operands = [_append_tangents(carry, by_carry), _append_tangents(consts, by_consts)]
    out = run_below(op, level, (wide_condition, graph, *operands), kwargs)
    return _deinterleave(out, body.outputs, (len(carry),))


def _add_unused_inputs(
    condition: Graph, body: Graph, sizes: Sequence[int], has_tangent: Sequence[bool]
) -> Graph:
    """Copy the condition of a loop with the inputs of its tangent body; the tangents are unused."""
    result = Graph()
    result.nodes, result.outputs = condition.nodes, condition.outputs
    body_inputs, own_inputs = iter(body.inputs), iter(condition.inputs)
    start = 0
    for size in sizes:
        for _ in range(size):
            next(body_inputs)
            result.inputs.append(next(own_inputs))
        for has in has_tangent[start : start + size]:
            if has:
                value = next(body_inputs)
                result.add_input(value.spec, value.weak)
        start += size
    return result


def _switch(
    op: Operator, level: Level, args: SwitchArgs, raw_args: SwitchArgs, kwargs: Kwargs
) -> tuple[list[Tensor], Tangents]:
    branches, index, operands = raw_args
    tangents = _read_tangents(level, args[2])
    has_tangent = [t is not None for t in tangents]
    results = (len(branches[0].outputs),)
    graphs = tuple([TangentBody(b, (len(operands),), has_tangent, results).make() for b in branches])
    out = run_below(op, level, (graphs, index, _append_tangents(operands, tangents)), kwargs)
    return _deinterleave(out, branches[0].outputs, results)


_RULES: dict[str, Callable[..., tuple[list[Tensor], Tangents]]] = {
    "scan": _scan,
    "while_loop": _while,
    "switch": _switch,
}
