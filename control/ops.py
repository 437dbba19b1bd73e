"""The operators of control flow: their schemas, shape rules, and the kernels that interpret their bodies.

``scan`` runs its body once for each item of ``xs``; ``while_loop`` as long as its condition holds; ``switch`` runs one
of several branches. Bodies are graphs whose inputs are, in this order, the carry, one item of each of ``xs``, and what
the body reaches by itself; their outputs are the next carry, then one item of each stacked result. ``flush`` says that
numbers too small to be normal may count as zero, as they may in gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .. import lazy
from ..eager.tensor import Tensor, wrap
from ..lowering.evaluate import interpret
from ..lowering.passes import optimize
from ..operators.declare import Declaration
from ..operators.derivatives import Custom, NotDifferentiable
from ..registry.library import Library
from ..registry.operator import Operator, find
from ..registry.values import TensorSpec
from ..tracer.graph import Graph
from .batching import BATCHING
from .reverse import SCAN_DERIVATIVE, WHILE_DERIVATIVE
from .reverse_branches import SWITCH_DERIVATIVE

LIBRARY = Library("control", "DEF")
ON_DEVICE = lazy.Functions("control.on_device")


def _spec(value: Any, device: str = "cpu") -> TensorSpec:
    return TensorSpec(tuple(value.shape), value.spec.dtype, device)


def scan_specs(
    body: Graph,
    carry: Sequence[Any],
    xs: Any,
    consts: Any,
    *,
    length: int,
    reverse: bool,
    flush: bool = False,
) -> tuple[TensorSpec, ...]:
    """The carry's specs, then those of the stacked results."""
    count = len(carry)
    stacked = [TensorSpec((length, *o.shape), o.spec.dtype, o.spec.device) for o in body.outputs[count:]]
    return (*(o.spec for o in body.outputs[:count]), *stacked)


def while_specs(condition: Graph, body: Graph, carry: Any, consts: Any) -> tuple[TensorSpec, ...]:
    """The carry's specs."""
    return tuple(output.spec for output in body.outputs)


def switch_specs(branches: Sequence[Graph], index: Any, operands: Any) -> tuple[TensorSpec, ...]:
    """The results of any branch; all have the same."""
    return tuple(output.spec for output in branches[0].outputs)


# -- kernels -----------------------------------------------------------------------------------------------------------
_optimized: WeakKeyDictionary[Graph, Graph] = WeakKeyDictionary()


def run_body(body: Graph, given: Sequence[Any]) -> list[Any]:
    """The results of a body on arrays and numbers."""
    graph = _optimized.get(body)
    if graph is None:
        graph = _optimized[body] = optimize(body)
    return interpret(graph, [*given, *graph.constants])


def _payload(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


def wrapped(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Arrays as tensors with memory of their own."""
    return tuple([wrap(np.array(array)) for array in arrays])


def _scan(
    body: Graph, carry: Any, xs: Any, consts: Any, *, length: int, reverse: bool, flush: bool = False
) -> tuple[Any, ...]:
    state, fixed = [_payload(x) for x in carry], [_payload(x) for x in consts]
    items = [_payload(x) for x in xs]
    stacked = [np.empty((length, *o.shape), o.spec.dtype.np) for o in body.outputs[len(state) :]]
    for at in reversed(range(length)) if reverse else range(length):
        found = run_body(body, [*state, *(x[at] for x in items), *fixed])
        state = found[: len(state)]
        for target, item in zip(stacked, found[len(state) :]):
            target[at] = item
    return (*wrapped(state), *map(wrap, stacked))


def _while(condition: Graph, body: Graph, carry: Any, consts: Any) -> tuple[Any, ...]:
    state, fixed = [_payload(x) for x in carry], [_payload(x) for x in consts]
    while bool(run_body(condition, [*state, *fixed])[0]):
        state = run_body(body, [*state, *fixed])
    return wrapped(state)


def _switch(branches: Any, index: Any, operands: Any) -> tuple[Any, ...]:
    chosen = min(max(int(_payload(index)), 0), len(branches) - 1)
    return wrapped(run_body(branches[chosen], [_payload(x) for x in operands]))


def _declare(schema: str, doc: str, meta: Any, kernel: Any, derivative: Custom) -> Operator:
    name = schema.partition("(")[0]
    rule = BATCHING[name]
    LIBRARY.define(
        schema,
        Declaration(schema, "control", doc, meta=meta, derivative=derivative, method=False, batching=rule),
    )
    LIBRARY.impl(name, kernel, "CPU")
    LIBRARY.impl(name, getattr(ON_DEVICE, name), "CUDA")
    found: Operator = find(f"control::{name}")
    return found


SCAN = _declare(
    "scan(GraphModule body, Tensor[] carry, Tensor[] xs, Tensor[] consts, "
    "*, int length, bool reverse, bool flush=False) -> Tensor[]",
    "Run a body for each item of xs.",
    scan_specs,
    _scan,
    SCAN_DERIVATIVE,
)
WHILE = _declare(
    "while_loop(GraphModule condition, GraphModule body, Tensor[] carry, Tensor[] consts) -> Tensor[]",
    "Run a body as long as a condition holds.",
    while_specs,
    _while,
    WHILE_DERIVATIVE,
)
SWITCH = _declare(
    "switch(GraphModule[] branches, Tensor index, Tensor[] operands) -> Tensor[]",
    "Run one of several branches.",
    switch_specs,
    _switch,
    SWITCH_DERIVATIVE,
)


# -- what passes put in place of sums of products ----------------------------------------------------------------------
def _sum_specs(a: Any, b: Any) -> TensorSpec:
    return TensorSpec((a.shape[1], b.shape[2]), a.spec.dtype, a.spec.device)


def _sum_products(a: Any, b: Any) -> Tensor:
    return wrap(np.tensordot(_payload(a), _payload(b), axes=((0, 2), (0, 1))))


_SUM = "sum_products(Tensor a, Tensor b) -> Tensor"
LIBRARY.define(
    _SUM,
    Declaration(
        _SUM,
        "contraction",
        "The sum of the matrix products ``a[t] @ b[t]``, which a loop has added up.",
        meta=_sum_specs,
        derivative=NotDifferentiable("derivatives have been taken when it comes in"),
        method=False,
    ),
)
LIBRARY.impl("sum_products", _sum_products, "CPU")
LIBRARY.impl("sum_products", ON_DEVICE.sum_products, "CUDA")
SUM_PRODUCTS = find("control::sum_products")
