"""How loops and branches run on batches: their bodies are traced again, on batches.

A carry is batched if it is so at first or becomes so in some step. Where the condition of a ``while_loop`` differs from
example to example, it goes on as long as any example does, and the others stand still; where the index of a ``switch``
does, all branches are computed, and each example chooses among the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..eager.batched.kernel import open_batch
from ..eager.batched.tensor import BatchedTensor, wrap_batched
from ..eager.dunders import by_name
from ..eager.levels import ALL_RUN, LevelTensor
from ..eager.tensor import Tensor
from ..errors import UnsupportedError
from ..operators.batching import Batched, BatchInfo, one_to_front
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Value, bodies_of
from .subgraph import retraced, run_graph

Flags = list[bool]


def _with_batch(value: Value, size: int, is_batched: bool) -> Value:
    """A Value with the spec of a whole batch."""
    if not is_batched:
        return value
    return Value(TensorSpec((size, *value.shape), value.spec.dtype, value.spec.device))


def on_batch(
    graph: Graph, info: BatchInfo, flags: Sequence[bool], given: Sequence[Any], forced: Sequence[bool]
) -> tuple[list[Any], Flags]:
    """The results of a graph on inputs some of which are batches, and which of the results are.

    Args:
        graph: the graph.
        info: the batch.
        flags: which inputs are batches.
        given: the inputs.
        forced: which results are to be batches, even if they are the same for all examples.
    """
    size = info.batch_size
    with open_batch("the body of a loop", size, {}, info.axis_name) as level:
        inputs = [wrap_batched(level, x) if flag else x for x, flag in zip(given, flags, strict=True)]
        found = run_graph(graph, inputs)
    results, batched = [], []
    for item, force in zip(found, forced, strict=True):
        own = isinstance(item, BatchedTensor) and item._level is level
        batched.append(own or force)
        results.append(item._payload if own else repeated(item, size) if force else item)
    return results, batched


def repeated(x: Any, size: int) -> Any:
    """What is the same for all examples, once for each."""
    return by_name("broadcast_to")(x, (size, *x.shape))


def batched_graph(
    graph: Graph, info: BatchInfo, flags: Sequence[bool], forced: Sequence[bool]
) -> tuple[Graph, Flags]:
    """A graph for batches, and which of its results are batches; see :func:`on_batch`."""
    batched: Flags = []

    def run(*inputs: Any) -> list[Any]:
        results, found = on_batch(graph, info, flags, inputs, forced)
        batched.extend(found)
        return results

    values = [
        _with_batch(value, info.batch_size, flag) for value, flag in zip(graph.inputs, flags, strict=True)
    ]
    return retraced("the body of a loop", values, run).graph, batched


def settled(count: int, flags: Flags, body: Callable[[Flags], Flags]) -> Flags:
    """Which carries are batches, once no step makes any other one so."""
    while True:
        found = body(flags)
        after = [old or new for old, new in zip(flags, found[:count])]
        if after == flags:
            return flags
        flags = after


def _flags(dims: Sequence[Any]) -> Flags:
    return [dim is not None for dim in dims]


def _spread(values: Sequence[Any], flags: Flags, dims: Sequence[Any], size: int) -> list[Any]:
    return [repeated(x, size) if flag and dim is None else x for x, flag, dim in zip(values, flags, dims)]


def scan_rule(
    info: BatchInfo, in_dims: Any, body: Graph, carry: Any, xs: Any, consts: Any, **options: Any
) -> Batched:
    """A scan of batches."""
    size, count = info.batch_size, len(carry)
    rest = [*_flags(in_dims[2]), *_flags(in_dims[3])]
    stacked = [False] * (len(body.outputs) - count)
    flags = settled(
        count,
        _flags(in_dims[1]),
        lambda now: batched_graph(body, info, [*now, *rest], [*now, *stacked])[1],
    )
    graph, found = batched_graph(body, info, [*flags, *rest], [*flags, *stacked])
    items = [_steps_first(x) if dim is not None else x for x, dim in zip(xs, in_dims[2])]
    out = info.call(graph, _spread(carry, flags, in_dims[1], size), items, consts, **options)
    dims = [(0 if place < count else 1) if flag else None for place, flag in enumerate(found)]
    return tuple(out), tuple(dims)


def _steps_first(x: Any) -> Any:
    """A batch of stacked items as stacked batches of items."""
    return one_to_front(x, 1)


def while_rule(
    info: BatchInfo, in_dims: Any, condition: Graph, body: Graph, carry: Any, consts: Any
) -> Batched:
    """A while_loop of batches."""
    size, count = info.batch_size, len(carry)
    rest = _flags(in_dims[3])
    flags = settled(count, _flags(in_dims[2]), lambda now: batched_graph(body, info, [*now, *rest], now)[1])
    holds, differs = batched_graph(condition, info, [*flags, *rest], [False])
    if differs[0]:
        _refuse_outside_effects(info, "a while_loop whose condition", (condition, body))
        flags = [flag or given is not out for flag, given, out in zip(flags, body.inputs, body.outputs)]
        condition, body = _until_all_are_done(condition, body, info, [*flags, *rest])
    else:
        condition, body = holds, batched_graph(body, info, [*flags, *rest], flags)[0]
    out = info.call(condition, body, _spread(carry, flags, in_dims[2], size), consts)
    return tuple(out), tuple(0 if flag else None for flag in flags)


def _until_all_are_done(condition: Graph, body: Graph, info: BatchInfo, flags: Flags) -> tuple[Graph, Graph]:
    forced = flags[: len(body.outputs)]
    values = [
        _with_batch(value, info.batch_size, flag) for value, flag in zip(body.inputs, flags, strict=True)
    ]

    def any_goes_on(*inputs: Any) -> list[Any]:
        return [by_name("any")(on_batch(condition, info, flags, inputs, [True])[0][0])]

    def step(*inputs: Any) -> list[Any]:
        goes_on = on_batch(condition, info, flags, inputs, [True])[0][0]
        found, _ = on_batch(body, info, flags, inputs, forced)
        return [chosen(goes_on, x, old) if flag else x for x, old, flag in zip(found, inputs, forced)]

    name = "while_loop"
    return retraced(name, values, any_goes_on).graph, retraced(name, values, step).graph


def chosen(condition: Any, one: Any, other: Any) -> Any:
    """For each example of a batch ``one`` or ``other``."""
    wide = by_name("reshape")(condition, (condition.shape[0],) + (1,) * (len(one.shape) - 1))
    return by_name("where")(wide, one, other)


def switch_rule(info: BatchInfo, in_dims: Any, branches: Any, index: Any, operands: Any) -> Batched:
    """A switch of batches."""
    flags, count = _flags(in_dims[2]), len(branches[0].outputs)
    if in_dims[1] is not None:
        _refuse_outside_effects(info, "a cond or switch whose index", branches)
        return _select(info, branches, index, operands, flags)
    each = [batched_graph(branch, info, flags, [False] * count)[1] for branch in branches]
    forced = [any(column) for column in zip(*each)]
    graphs = [batched_graph(branch, info, flags, forced)[0] for branch in branches]
    return tuple(info.call(graphs, index, operands)), tuple(0 if flag else None for flag in forced)


def _select(info: BatchInfo, branches: Any, index: Any, operands: Any, flags: Flags) -> Batched:
    """All branches, and for each example the results of the one that it has chosen."""
    forced = [True] * len(branches[0].outputs)
    passed = [_passed_on(column, branches, operands, flags) for column in zip(*(b.outputs for b in branches))]
    number = by_name("astype")(index, by_name("arange")(1).dtype, copy=False)
    number = by_name("clip")(number, 0, len(branches) - 1)
    results = []
    for place, branch in enumerate(branches):
        given, seen = _reached(number == place, operands, flags)
        results.append(on_batch(branch, info, seen, given, forced)[0])
    found = results[-1]
    for place in reversed(range(len(branches) - 1)):
        found = [chosen(number <= place, one, other) for one, other in zip(results[place], found)]
    same = [x is not None for x in passed]
    return tuple(x if s else y for s, x, y in zip(same, passed, found)), tuple(None if s else 0 for s in same)


def _passed_on(outputs: Sequence[Value], branches: Any, operands: Any, flags: Flags) -> Any:
    """What each branch gives as this result, if that is one operand, the same for all examples; else None."""
    first: Any = None
    for value, branch in zip(outputs, branches):
        place = branch.inputs.index(value) if value in branch.inputs else None
        if place is None or flags[place] or (first is not None and operands[place] is not first):
            return None
        first = operands[place]
    return first


def _reached(taken: Any, operands: Any, flags: Flags) -> tuple[list[Any], Flags]:
    """The operands of a branch, with gradients only for the examples that take it: those of the others would be NaN
    where the branch has an infinite slope for them, also times zero."""
    differ = [has_gradient(x) for x in operands]
    size = taken.shape[0]
    batches = [repeated(x, size) if d and not f else x for x, d, f in zip(operands, differ, flags)]
    stop = by_name("stop_gradient")
    given = [chosen(taken, x, stop(x)) if d else x for x, d in zip(batches, differ)]
    return given, [d or f for d, f in zip(differ, flags)]


def has_gradient(x: Any) -> bool:
    """Whether a derivative may be taken with respect to something."""
    return isinstance(x, Tensor) and x.dtype.is_inexact and (isinstance(x, LevelTensor) or x.requires_grad)


def _refuse_outside_effects(info: BatchInfo, what: str, graphs: Sequence[Graph]) -> None:
    """Refuse bodies that would run for examples that do not take them, and that the outside would see."""
    waiting = list(graphs)
    while waiting:
        for node in waiting.pop().nodes:
            waiting += bodies_of(node)
            if node.op.name == "debug::io_callback":
                raise UnsupportedError(f"{what} differs from example to example of {info.name} {ALL_RUN}")


BATCHING: dict[str, Callable[..., Batched]] = {
    "scan": scan_rule,
    "while_loop": while_rule,
    "switch": switch_rule,
}
