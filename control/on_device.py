"""Control flow on devices other than the CPU: bodies are compiled, and the host decides which runs next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor, wrap
from ..jit.graph_function import GraphFunction
from ..lowering.interpreter import to_payload
from ..registry.values import TensorSpec
from ..tracer.graph import Graph

if TYPE_CHECKING:
    from .subgraph import BodyInput

_compiled_bodies: WeakKeyDictionary[Graph, GraphFunction] = WeakKeyDictionary()


def _run(body: Graph, inputs: Sequence[BodyInput]) -> tuple[Tensor, ...]:
    """Run a body on tensors and numbers."""
    compiled = _compiled_bodies.get(body)
    if compiled is None:
        compiled = _compiled_bodies[body] = GraphFunction(body, "the body of a loop or a branch")
    results: tuple[Tensor, ...] = compiled(*map(to_payload, inputs))
    return results


def _take_item(x: Tensor, index: int) -> Tensor:
    """One item of a tensor along its first axis."""
    return wrap(x._array[index]) if type(x) is Tensor else x[index]


def scan(
    body: Graph,
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    consts: Sequence[BodyInput],
    *,
    length: int,
    reverse: bool,
    flush: bool = False,
) -> tuple[Tensor, ...]:
    """Run a body for each item of ``xs`` without synchronizing with the device."""
    state, count = carry, len(carry)
    stacked: list[list[Tensor]] = [[] for _ in body.outputs[count:]]
    for index in reversed(range(length)) if reverse else range(length):
        results = _run(body, [*state, *(_take_item(x, index) for x in xs), *consts])
        state = results[:count]
        for column, item in zip(stacked, results[count:], strict=True):
            column.append(item)
    columns = zip(stacked, body.outputs[count:], strict=True)
    return (
        *map(_copy, state),
        *(_stack(column[::-1] if reverse else column, o.spec) for column, o in columns),
    )


def _stack(items: list[Tensor], spec: TensorSpec) -> Tensor:
    if items:
        return by_name("concat")(tuple(item[None] for item in items), 0)
    return by_name("full")((0, *spec.shape), 0, dtype=spec.dtype, device=spec.device)


def _copy(x: Tensor) -> Tensor:
    """Copy a result: a loop without steps returns its inputs, which must not be aliased."""
    return x.clone()


def while_loop(
    condition: Graph, body: Graph, carry: Sequence[Tensor], consts: Sequence[BodyInput]
) -> tuple[Tensor, ...]:
    """Run a body as long as a condition holds; in each step the host waits for the condition."""
    state = carry
    while bool(_run(condition, [*state, *consts])[0].item()):
        state = _run(body, [*state, *consts])
    return tuple(map(_copy, state))


def switch(
    branches: Sequence[Graph], index: Tensor | int, operands: Sequence[BodyInput]
) -> tuple[Tensor, ...]:
    """Run one of several branches; the host waits for the index."""
    number = int(index.item() if isinstance(index, Tensor) else index)
    return tuple(map(_copy, _run(branches[min(max(number, 0), len(branches) - 1)], operands)))


def call(body: Graph, rule: object, operands: Sequence[BodyInput]) -> tuple[Tensor, ...]:
    """Run a function that has a custom derivative."""
    return tuple(map(_copy, _run(body, operands)))


def sum_products(a: Tensor, b: Tensor) -> Tensor:
    """The sum of the matrix products ``a[t] @ b[t]``, as one product."""
    (steps, rows, depth), columns = a.shape, b.shape[2]
    wide = by_name("reshape")(by_name("permute")(a, (1, 0, 2)), (rows, steps * depth))
    return by_name("matmul")(wide, by_name("reshape")(b, (steps * depth, columns)))
