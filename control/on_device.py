"""Control flow on devices other than the CPU: bodies are compiled, and the host decides which runs next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor, wrap
from ..jit.graph_function import GraphFunction
from ..lowering.interpreter import to_payload
from ..tracer.graph import Graph

_compiled_bodies: WeakKeyDictionary[Graph, GraphFunction] = WeakKeyDictionary()


def _run(body: Graph, given: Sequence[Any]) -> tuple[Any, ...]:
    """Run a body on tensors and numbers."""
    cached = _compiled_bodies.get(body)
    if cached is None:
        cached = _compiled_bodies[body] = GraphFunction(body, "the body of a loop or a branch")
    return cached(*map(to_payload, given))


def _take_item(x: Any, at: int) -> Any:
    """One item of a tensor along its first axis."""
    return wrap(x._array[at]) if type(x) is Tensor else x[at]


def scan(
    body: Graph, carry: Any, xs: Any, consts: Any, *, length: int, reverse: bool, flush: bool = False
) -> tuple[Any, ...]:
    """Run a body for each item of ``xs`` without synchronizing with the device."""
    state: Sequence[Any] = carry
    stacked: list[list[Any]] = [[] for _ in body.outputs[len(carry) :]]
    for at in reversed(range(length)) if reverse else range(length):
        result = _run(body, [*state, *(_take_item(x, at) for x in xs), *consts])
        state = result[: len(carry)]
        for column, item in zip(stacked, result[len(carry) :], strict=True):
            column.append(item)
    columns = zip(stacked, body.outputs[len(carry) :], strict=True)
    return (
        *map(_copy, state),
        *(_stack(column[::-1] if reverse else column, o.spec) for column, o in columns),
    )


def _stack(items: list[Any], spec: Any) -> Any:
    if items:
        return by_name("concat")(tuple(item[None] for item in items), 0)
    return by_name("full")((0, *spec.shape), 0, dtype=spec.dtype, device=spec.device)


def _copy(x: Any) -> Any:
    """Copy a result: a loop without steps returns its inputs, which must not be aliased."""
    return x.clone()


def while_loop(condition: Graph, body: Graph, carry: Any, consts: Any) -> tuple[Any, ...]:
    """Run a body as long as a condition holds; each time the host waits for the condition."""
    state: Sequence[Any] = carry
    while bool(_run(condition, [*state, *consts])[0].item()):
        state = _run(body, [*state, *consts])
    return tuple(map(_copy, state))


def switch(branches: Sequence[Graph], index: Any, operands: Any) -> tuple[Any, ...]:
    """Run one of several branches; the host waits for the index."""
    chosen = int(index.item() if isinstance(index, Tensor) else index)
    return tuple(map(_copy, _run(branches[min(max(chosen, 0), len(branches) - 1)], operands)))


def call(body: Graph, rule: Any, operands: Any) -> tuple[Any, ...]:
    """Run a function that has a custom derivative."""
    return tuple(map(_copy, _run(body, operands)))


def sum_products(a: Any, b: Any) -> Any:
    """The sum of the matrix products ``a[t] @ b[t]``, as one product."""
    (steps, rows, depth), columns = a.shape, b.shape[2]
    wide = by_name("reshape")(by_name("permute")(a, (1, 0, 2)), (rows, steps * depth))
    return by_name("matmul")(wide, by_name("reshape")(b, (steps * depth, columns)))
