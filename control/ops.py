"""The operators of control flow: their schemas, shape rules, and the kernels that interpret their bodies.

``scan`` runs its body once for each item of ``xs``; ``while_loop`` as long as its condition holds; ``switch`` runs one
of several branches. Bodies are graphs whose inputs are, in this order, the carry, one item of each of ``xs``, and the
captured values; their outputs are the next carry, then one item of each stacked result. ``flush`` allows denormal
numbers to be flushed to zero, as in gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from .. import lazy
from ..eager.tensor.tensor import Tensor, wrap
from ..lowering.interpreter import interpret
from ..lowering.passes.pipeline import optimize
from ..operators.declare.declaration import Declaration
from ..operators.declare.derivatives import Custom, NotDifferentiable
from ..registry.library import Library
from ..registry.operator import Operator, find_operator
from ..registry.values import TensorSpec
from ..tracer.graph import Graph
from .batching import BATCHING
from .reverse import SCAN_DERIVATIVE, WHILE_DERIVATIVE
from .reverse_branches import SWITCH_DERIVATIVE

if TYPE_CHECKING:
    from ..registry.dims import Dim
    from ..registry.types import Function, ShapeRule
    from .subgraph import BodyInput

LIBRARY = Library("control", "DEF")
ON_DEVICE = lazy.Functions(".control.on_device")


def scan_specs(
    body: Graph,
    carry: Sequence[object],
    xs: object,
    consts: object,
    *,
    length: Dim,
    reverse: bool,
    flush: bool = False,
) -> tuple[TensorSpec, ...]:
    """Shape rule of ``scan``: the carry's specs, then those of the stacked results."""
    count = len(carry)
    stacked = [TensorSpec((length, *o.shape), o.spec.dtype, o.spec.device) for o in body.outputs[count:]]
    return (*(o.spec for o in body.outputs[:count]), *stacked)


def while_specs(condition: Graph, body: Graph, carry: object, consts: object) -> tuple[TensorSpec, ...]:
    """Shape rule of ``while_loop``: the carry's specs."""
    return tuple(output.spec for output in body.outputs)


def switch_specs(branches: Sequence[Graph], index: object, operands: object) -> tuple[TensorSpec, ...]:
    """Shape rule of ``switch``: the specs of any branch's results; all are equal."""
    return tuple(output.spec for output in branches[0].outputs)


# -- kernels -----------------------------------------------------------------------------------------------------------
_optimized_bodies: WeakKeyDictionary[Graph, Graph] = WeakKeyDictionary()


def run_body(body: Graph, inputs: Sequence[object]) -> list[object]:
    """Interpret a body on arrays and numbers."""
    graph = _optimized_bodies.get(body)
    if graph is None:
        graph = _optimized_bodies[body] = optimize(body)
    return interpret(graph, [*inputs, *graph.constants])


def to_array(value: BodyInput) -> Any:
    """The array of a tensor; a number unchanged."""
    return value._array if isinstance(value, Tensor) else value


def wrap_arrays(arrays: Sequence[object]) -> tuple[Tensor, ...]:
    """Copy arrays to new tensors."""
    return tuple([wrap(np.array(array)) for array in arrays])


def _scan(
    body: Graph,
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    consts: Sequence[BodyInput],
    *,
    length: int,
    reverse: bool,
    flush: bool = False,
) -> tuple[Tensor, ...]:
    state, constants = [to_array(x) for x in carry], [to_array(x) for x in consts]
    items = [to_array(x) for x in xs]
    count = len(state)
    stacked = [np.empty((length, *o.shape), o.spec.dtype.np) for o in body.outputs[count:]]
    for index in reversed(range(length)) if reverse else range(length):
        results = run_body(body, [*state, *(x[index] for x in items), *constants])
        state = results[:count]
        for column, item in zip(stacked, results[count:]):
            column[index] = item
    return (*wrap_arrays(state), *map(wrap, stacked))


def _while(
    condition: Graph, body: Graph, carry: Sequence[Tensor], consts: Sequence[BodyInput]
) -> tuple[Tensor, ...]:
    state, constants = [to_array(x) for x in carry], [to_array(x) for x in consts]
    while bool(run_body(condition, [*state, *constants])[0]):
        state = run_body(body, [*state, *constants])
    return wrap_arrays(state)


def _switch(branches: Sequence[Graph], index: BodyInput, operands: Sequence[BodyInput]) -> tuple[Tensor, ...]:
    number = min(max(int(to_array(index)), 0), len(branches) - 1)
    return wrap_arrays(run_body(branches[number], [to_array(x) for x in operands]))


def _declare(schema: str, doc: str, shape_rule: ShapeRule, kernel: Function, derivative: Custom) -> Operator:
    name = schema.partition("(")[0]
    batching = BATCHING[name]
    LIBRARY.define(
        schema,
        Declaration(
            schema,
            "control",
            doc,
            shape_rule=shape_rule,
            derivative=derivative,
            method=False,
            batching=batching,
        ),
    )
    LIBRARY.impl(name, kernel, "CPU")
    LIBRARY.impl(name, getattr(ON_DEVICE, name), "CUDA")
    return find_operator(f"control::{name}")


SCAN = _declare(
    "scan(GraphModule body, Tensor[] carry, Tensor[] xs, Tensor[] consts, "
    "*, SymInt length, bool reverse, bool flush=False) -> Tensor[]",
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


# -- sums of products, which passes create ----------------------------------------------------------------------------
def _sum_specs(a: Tensor, b: Tensor) -> TensorSpec:
    return TensorSpec((a.shape[1], b.shape[2]), a.spec.dtype, a.spec.device)


def _sum_products(a: Tensor, b: Tensor) -> Tensor:
    return wrap(np.tensordot(to_array(a), to_array(b), axes=((0, 2), (0, 1))))


_SUM = "sum_products(Tensor a, Tensor b) -> Tensor"
LIBRARY.define(
    _SUM,
    Declaration(
        _SUM,
        "contraction",
        "The sum of the matrix products ``a[t] @ b[t]``, which a loop has accumulated.",
        shape_rule=_sum_specs,
        derivative=NotDifferentiable("passes create it after differentiation"),
        method=False,
    ),
)
LIBRARY.impl("sum_products", _sum_products, "CPU")
LIBRARY.impl("sum_products", ON_DEVICE.sum_products, "CUDA")
SUM_PRODUCTS = find_operator("control::sum_products")
