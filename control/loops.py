"""``scan``, ``fori_loop`` and ``while_loop``: as Python loops, or while tracing as operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..eager.batched.tensor import BatchedTensor
from ..eager.dunders import by_name
from ..eager.levels import LevelTensor, masked, stack
from ..errors import ArgumentError, DTypeError, ShapeError, ValueArgumentError
from ..registry.dtypes import bool_
from ..registry.values import describe, number_stand_ins
from ..tracer.trace import is_tracing
from . import recording as recording
from .batching import has_gradient
from .items import with_items
from .ops import SCAN, WHILE
from .structure import (
    Leaves,
    as_tensor,
    cast_numbers,
    check_structure,
    fitted,
    specs_of,
    take_apart,
    widened,
)
from .subgraph import Closed, trace_body

CARRIES = "the carry that the body is given and the one that it gives"


# -- scan --------------------------------------------------------------------------------------------------------------
def scan(
    name: str,
    f: Callable[..., Any],
    init: Any,
    xs: Any,
    length: int | None,
    reverse: bool,
    lower: int | None = None,
) -> tuple[Any, Any]:
    """See :func:`tandem.scan`.

    ``name`` is what the user has called; ``lower`` is where ``xs`` counts from, if that is all that it does.
    """
    carry, items = take_apart(name, "init", init), take_apart(name, "xs", xs)
    steps = steps_of(name, items, length)
    step = _Step(name, f, items.treedef)
    if not is_tracing() and steps:
        return _loop(step, carry, items, steps, reverse)
    closed, carry = _traced(step, carry, [_item_spec(x) for x in items.tensors])
    count, xs = len(carry.tensors), items.tensors
    if lower is not None:
        closed, more = with_items(closed, count, lower, steps)
        xs = [*xs, *more]
    found = SCAN(closed.graph, carry.tensors, xs, closed.reached, length=steps, reverse=bool(reverse))
    found = _as_given(closed, carry, found)
    return carry.treedef.unflatten(found[:count]), step.results.unflatten(found[count:])


class _Step:
    """One step of a scan on flat lists.

    Attributes:
        results: the containers of what a step gives beside the carry; known after the first.
    """

    results: Any

    def __init__(self, name: str, f: Callable[..., Any], items: Any):
        self.name, self.f, self.items, self.results = name, f, items, None

    def __call__(
        self, carry: Leaves, tensors: Sequence[Any], item: Sequence[Any]
    ) -> tuple[Leaves, list[Any]]:
        """The next carry and the results of this step, from the state and the item."""
        given = self.f(carry.treedef.unflatten(tensors), self.items.unflatten(item))
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise ArgumentError(
                f"{self.name}: the body gives a pair (carry, result), with None for what there is not; it gave "
                f"{describe(given)}"
            )
        found = take_apart(self.name, "the carry that the body gives", given[0])
        result = take_apart(self.name, "the result of the body", given[1])
        if self.results is not None:
            check_structure(self.name, "the results of two steps", self.results, result.treedef)
        self.results = result.treedef
        return found, result.tensors


def steps_of(name: str, items: Leaves, length: int | None) -> int:
    """The number of steps.

    Raises:
        ShapeError: the leaves of ``xs`` have different lengths, or none.
    """
    sizes: dict[int, str] = {} if length is None else {int(length): "length"}
    for place, x in enumerate(items.tensors):
        path = f"xs{items.treedef.paths()[place]}"
        if not x.shape:
            raise ShapeError(f"{name}: {path} is {describe(x)} and has no axis to run along")
        sizes.setdefault(x.shape[0], path)
    if not sizes:
        raise ValueArgumentError(f"{name}: xs has no leaves, so the number of steps must be said with length")
    if len(sizes) > 1 or min(sizes) < 0:
        parts = ", ".join(f"{size} of {where}" for size, where in sizes.items())
        raise ShapeError(
            f"{name}: the numbers of steps differ: {parts}" if len(sizes) > 1 else f"{name}: {parts}"
        )
    return next(iter(sizes))


def _item_spec(x: Any) -> Any:
    spec = x.spec
    return type(spec)(tuple(spec.shape[1:]), spec.dtype, spec.device)


def _loop(step: _Step, carry: Leaves, items: Leaves, steps: int, reverse: bool) -> tuple[Any, Any]:
    """A scan as a Python loop."""
    rows: list[list[Any]] = []
    state = carry.tensors
    for at in reversed(range(steps)) if reverse else range(steps):
        item = [x[at] for x in items.tensors]
        found, row = step(carry, state, item)
        other = widened(step.name, CARRIES, carry, found)
        while other is not None and not rows:
            carry = cast_numbers(carry, other)
            found, row = step(carry, carry.tensors, item)
            other = widened(step.name, CARRIES, carry, found)
        carry = carry._replace(weak=[False] * len(carry.weak)) if not rows else carry
        state = fitted(carry, found)
        rows.append(row)
    columns = zip(*(rows[::-1] if reverse else rows))
    stacked = [by_name("stack")(column) for column in columns]
    return carry.treedef.unflatten(state), step.results.unflatten(stacked)


def _as_given(closed: Closed, carry: Leaves, found: Sequence[Any]) -> list[Any]:
    """The results of a loop, where what no step changes is what was given."""
    kept = zip(closed.graph.inputs, closed.graph.outputs, carry.tensors, found)
    same = [given if value is out else result for value, out, given, result in kept]
    return [*same, *found[len(same) :]]


def _traced(step: _Step, carry: Leaves, item_specs: list[Any]) -> tuple[Closed, Leaves]:
    """The body as a graph, and the carry, whose Python numbers have the dtypes that the body gives them."""
    count = len(carry.tensors)
    other: Any = None

    def run(*tensors: Any) -> list[Any]:
        nonlocal other
        found, row = step(carry, tensors[:count], tensors[count:])
        other = widened(step.name, CARRIES, carry, found)
        return [*(found.tensors if other else fitted(carry, found)), *row]

    while True:
        closed = trace_body(step.name, run, [*specs_of(carry.tensors), *item_specs])
        if other is None:
            return closed, carry
        carry = cast_numbers(carry, other)


# -- fori_loop ---------------------------------------------------------------------------------------------------------
def fori_loop(lower: Any, upper: Any, body: Callable[..., Any], init: Any) -> Any:
    """See :func:`tandem.fori_loop`."""
    if type(lower) is int and type(upper) is int:
        steps = max(upper - lower, 0)
        counter = by_name("arange")(lower, lower + steps)
        return scan("fori_loop", lambda val, i: (body(i, val), None), init, counter, steps, False, lower)[0]
    low, high = _bound("lower", lower), _bound("upper", upper)
    dtype = high.dtype if lower.__class__ is int else low.dtype

    def step(state: Any) -> Any:
        i, stop, value = state
        return i + 1, stop, body(i, value)

    start = (by_name("astype")(low, dtype, copy=False), by_name("astype")(high, dtype, copy=False), init)
    return while_loop(lambda state: state[0] < state[1], step, start, "fori_loop")[2]


def _bound(what: str, value: Any) -> Any:
    tensor = as_tensor(value)
    if tensor.shape or not tensor.dtype.is_integer:
        raise DTypeError(
            f"fori_loop: {what} is an integer, or a 0-d tensor of integers, not {describe(value)}"
        )
    return tensor


# -- while_loop --------------------------------------------------------------------------------------------------------
def while_loop(
    condition: Callable[..., Any], body: Callable[..., Any], init: Any, name: str = "while_loop"
) -> Any:
    """See :func:`tandem.while_loop`."""
    carry = take_apart(name, "init", init)
    if not is_tracing():
        return _while(name, condition, body, carry)
    closed, carry = _traced_while(name, body, carry)
    holds = trace_body(
        name,
        lambda *tensors: [check_condition(name, condition(carry.treedef.unflatten(tensors)))],
        specs_of(carry.tensors),
    )
    graphs = with_common_inputs(len(carry.tensors), [holds, closed])
    found = WHILE(*graphs, carry.tensors, [*holds.reached, *closed.reached])
    return carry.treedef.unflatten(_as_given(closed, carry, found))


def check_condition(name: str, value: Any) -> Any:
    """A condition as a bool tensor of shape ``()``.

    Raises:
        ArgumentError: it is nothing of the kind.
    """
    if type(value) is bool:
        return as_tensor(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape == () and dtype is bool_:
        return value
    if type(value) in number_stand_ins and value.python_type is bool:
        return as_tensor(value)
    raise ArgumentError(
        f"{name}: the condition is a bool, or a bool tensor of shape (), not {describe(value)}; compare, as in x > 0, "
        "and reduce with .any() or .all()"
    )


def _while(name: str, condition: Any, body: Any, carry: Leaves) -> Any:
    """A while_loop as a Python loop; as long as any example of a batch goes on, the others stand still."""
    first, state = True, carry.tensors
    while True:
        holds = check_condition(name, condition(carry.treedef.unflatten(state)))
        if not _any(holds):
            return carry.treedef.unflatten(state)
        differs = is_batched(holds)
        with masked(name if differs else stack.masked):
            given = carry.treedef.unflatten(_only_where(holds, state) if differs else state)
            found = take_apart(name, "the value that the body gives", body(given))
        other = widened(name, CARRIES, carry, found)
        if other is not None and first:
            carry = cast_numbers(carry, other)
            state = carry.tensors
            continue
        first = False
        new = fitted(carry, found)
        carry = carry._replace(weak=[False] * len(carry.weak))
        if differs:
            new = [x if x is old else by_name("where")(holds, x, old) for x, old in zip(new, state)]
        state = new


def _only_where(holds: Any, state: list[Any]) -> list[Any]:
    """A state from which gradients come for the examples that go on alone: for the others the body may have an
    infinite slope, which is NaN also times zero."""
    stop = by_name("stop_gradient")
    return [by_name("where")(holds, x, stop(x)) if has_gradient(x) else x for x in state]


def is_batched(value: Any) -> bool:
    """Whether a value differs from example to example of some batch."""
    while isinstance(value, LevelTensor):
        if isinstance(value, BatchedTensor):
            return True
        value = value._payload
    return False


def _any(condition: Any) -> bool:
    """Whether a condition holds for any example."""
    while isinstance(condition, LevelTensor):
        condition = condition._payload
    return bool(condition.any()) if condition.shape else bool(condition)


def _traced_while(name: str, body: Any, carry: Leaves) -> tuple[Closed, Leaves]:
    other: Any = None

    def run(*tensors: Any) -> list[Any]:
        nonlocal other
        result = body(carry.treedef.unflatten(tensors))
        found = take_apart(name, "the value that the body gives", result)
        other = widened(name, CARRIES, carry, found)
        return found.tensors if other else fitted(carry, found)

    while True:
        closed = trace_body(name, run, specs_of(carry.tensors))
        if other is None:
            return closed, carry
        carry = cast_numbers(carry, other)


def with_common_inputs(own: int, parts: Sequence[Closed]) -> list[Any]:
    """Graphs that take the same inputs: ``own`` that they share, then what each of them has reached, in turn."""
    graphs = []
    for place, part in enumerate(parts):
        graph = type(part.graph)()
        graph.nodes, graph.outputs = part.graph.nodes, part.graph.outputs
        graph.inputs = list(part.graph.inputs[:own])
        for other, closed in enumerate(parts):
            values = closed.graph.inputs[own:]
            if other == place:
                graph.inputs += values
            else:
                for value in values:
                    graph.add_input(value.spec, value.weak)
        graphs.append(graph)
    return graphs
