"""Control flow on devices other than the CPU: bodies are compiled, and the host decides which runs next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..compiled.graph_function import GraphFunction
from ..eager.dunders import by_name
from ..eager.tensor import Tensor, wrap
from ..lowering.evaluate import payload
from ..tracer.graph import Graph

_functions: WeakKeyDictionary[Graph, GraphFunction] = WeakKeyDictionary()


def _run(body: Graph, given: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a body on tensors and numbers."""
    found = _functions.get(body)
    if found is None:
        found = _functions[body] = GraphFunction(body, "the body of a loop or a branch")
    return found(*map(payload, given))


def _item(x: Any, at: int) -> Any:
    """One item of a tensor along its first axis."""
    return wrap(x._array[at]) if type(x) is Tensor else x[at]


def scan(
    body: Graph, carry: Any, xs: Any, consts: Any, *, length: int, reverse: bool, flush: bool = False
) -> tuple[Any, ...]:
    """Run a body for each item of ``xs``; nothing waits for the device."""
    state: Sequence[Any] = carry
    stacked: list[list[Any]] = [[] for _ in body.outputs[len(carry) :]]
    for at in reversed(range(length)) if reverse else range(length):
        found = _run(body, [*state, *(_item(x, at) for x in xs), *consts])
        state = found[: len(carry)]
        for column, item in zip(stacked, found[len(carry) :], strict=True):
            column.append(item)
    columns = zip(stacked, body.outputs[len(carry) :], strict=True)
    return (
        *map(_own, state),
        *(_stack(column[::-1] if reverse else column, o.spec) for column, o in columns),
    )


def _stack(items: list[Any], spec: Any) -> Any:
    if items:
        return by_name("concat")(tuple(item[None] for item in items), 0)
    return by_name("full")((0, *spec.shape), 0, dtype=spec.dtype, device=spec.device)


def _own(x: Any) -> Any:
    """A tensor with memory of its own: a loop that has not run gives what it was given."""
    return x.clone()


def while_loop(condition: Graph, body: Graph, carry: Any, consts: Any) -> tuple[Any, ...]:
    """Run a body as long as a condition holds; each time the host waits for the condition."""
    state: Sequence[Any] = carry
    while bool(_run(condition, [*state, *consts])[0].item()):
        state = _run(body, [*state, *consts])
    return tuple(map(_own, state))


def switch(branches: Sequence[Graph], index: Any, operands: Any) -> tuple[Any, ...]:
    """Run one of several branches; the host waits for the index."""
    chosen = int(index.item() if isinstance(index, Tensor) else index)
    return tuple(map(_own, _run(branches[min(max(chosen, 0), len(branches) - 1)], operands)))


def call(body: Graph, rule: Any, operands: Any) -> tuple[Any, ...]:
    """Run a function that has a derivative of its own."""
    return tuple(map(_own, _run(body, operands)))


def sum_products(a: Any, b: Any) -> Any:
    """The sum of the matrix products ``a[t] @ b[t]``, as one product."""
    (steps, rows, depth), columns = a.shape, b.shape[2]
    wide = by_name("reshape")(by_name("permute")(a, (1, 0, 2)), (rows, steps * depth))
    return by_name("matmul")(wide, by_name("reshape")(b, (steps * depth, columns)))
