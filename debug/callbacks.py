"""The operators that call Python functions: ``callback``, ``pure_callback`` and ``io_callback``.

A trace records them as nodes, compiled code runs them as host callbacks, and ``vmap`` batches them. Operators with
effects are never merged, removed or reordered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.layers.levels import ALL_RUN, below_autograd, highest_level, stack
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import wrap
from ..errors import UnsupportedError, ValueArgumentError
from ..operators.declare.batching import Batched, BatchInfo, Dims
from ..operators.declare.declaration import Declaration
from ..operators.declare.derivatives import NotDifferentiable
from ..registry.function import make_function
from ..registry.library import Library
from ..registry.operator import Operator, fallthrough, operators
from ..registry.values import TensorSpec
from .host_calls import ResultSpecs, make_host_call

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import Args, Function, Kwargs, Pytree, Shape, Tensor
    from .host_calls import HostCall

LIBRARY = Library("debug", "FRAGMENT")
EFFECTS = frozenset({"callback"})
VMAP_METHODS = (None, "sequential", "expand_dims", "broadcast_all")
OPAQUE = NotDifferentiable(
    "it calls a Python function; keep gradients out with td.stop_gradient, or make an operator of the function with "
    "td.custom_op and register_autograd"
)


def define(schema: str, kernel: Function, **fields: Any) -> OperatorFunction[Any]:
    """Define an operator of this package for all backends.

    Returns:
        The function of the operator.
    """
    decl = Declaration(schema=schema, kind="custom", **fields)
    LIBRARY.define(schema, decl)
    name = schema.partition("(")[0]
    LIBRARY.impl(name, kernel, "CompositeExplicit")
    return make_function(operators[f"{LIBRARY.namespace}::{name}"], decl.doc)


# -- for an effect -----------------------------------------------------------------------------------------------------
def ignore_gradients(name: str) -> None:
    """Make an operator transparent to autograd: run it on the primal values, without recording."""
    LIBRARY.impl(name, fallthrough, "Autograd")
    LIBRARY.impl(name, _below_levels, "Level", boxed=True)


def _below_levels(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    level = highest_level(op, args, kwargs)
    return level.run(level, op, args, kwargs) if level.run is not None else below_autograd(op, args, kwargs)


def split_examples(dims: Dims, values: tuple[Any, ...], size: int) -> list[Args]:
    """Split a batch of values into examples."""
    return [
        tuple([value if dim is None else value[number] for value, dim in zip(values, dims)])
        for number in range(size)
    ]


def _batch_effect(info: BatchInfo, in_dims: Dims, call: HostCall, values: Args) -> Batched:
    for example in split_examples(in_dims[1], values, info.batch_size):
        info.call(call, example)
    return None, None


def _call_kernel(call: HostCall, values: Args) -> None:
    call(values)


run_callback = define(
    "callback(Any call, Tensor[] values) -> ()",
    _call_kernel,
    doc="Calls a Python function for its effect.",
    shape_rule=lambda call, values: None,
    derivative=OPAQUE,
    batching=_batch_effect,
    effects=EFFECTS,
)
ignore_gradients("callback")


def call_for_effect(fn: object, args: Args, kwargs: Kwargs) -> None:
    """Implementation of :func:`tandem.debug.callback`."""
    run_callback(*make_host_call(fn, args, kwargs, "debug.callback"))


# -- for a result ------------------------------------------------------------------------------------------------------
def _result_specs(
    call: HostCall, values: Args, *, result_specs: ResultSpecs, method: str | None, batch: Shape
) -> tuple[TensorSpec, ...]:
    """The shape rule of a callback: the specs that the caller declared, with the batch axes in front."""
    return tuple(TensorSpec((*batch, *spec.shape), spec.dtype) for spec in result_specs.specs)


def _result_kernel(
    call: HostCall, values: Args, *, result_specs: ResultSpecs, method: str | None, batch: Shape
) -> tuple[Tensor, ...]:
    return result_specs.checked(call.name, call(values), batch)


def _batch_result(
    info: BatchInfo,
    in_dims: Dims,
    call: HostCall,
    values: tuple[Any, ...],
    *,
    result_specs: ResultSpecs,
    method: str | None,
    batch: tuple[int, ...],
) -> Batched:
    value_dims, size = in_dims[1], info.batch_size
    options = {"result_specs": result_specs, "method": method}
    if method is None:
        raise UnsupportedError(
            f"{result_specs.what}: {call.name} is called with batched values of {info.name}; pass vmap_method, "
            f"which says how it is run for several examples: {', '.join(map(repr, VMAP_METHODS[1:]))}"
        )
    if method == "sequential":
        results = [
            info.call(call, example, batch=batch, **options)
            for example in split_examples(value_dims, values, size)
        ]
        if not results:
            return tuple([_empty(spec, (0, *batch)) for spec in result_specs.specs]), 0
        return tuple([by_name("stack")(list(column), 0) for column in zip(*results)]), 0
    batch_axis_size = size if method == "broadcast_all" else 1
    batched = tuple(
        [
            value if dim is not None or not hasattr(value, "shape") else _with_axis(value, batch_axis_size)
            for value, dim in zip(values, value_dims)
        ]
    )
    return info.call(call, batched, batch=(size, *batch), **options), 0


def _with_axis(value: Tensor, size: int) -> Tensor:
    return by_name("broadcast_to")(by_name("expand_dims")(value, 0), (size, *value.shape))


def _empty(spec: TensorSpec, batch: Shape) -> Tensor:
    return wrap(np.zeros((*batch, *spec.shape), spec.dtype.np))


_SIGNATURE = "(Any call, Tensor[] values, *, Any result_specs, Any method=None, int[] batch=[]) -> Tensor[]"
RESULT_CALLBACKS = {
    "pure_callback": define(
        f"pure_callback{_SIGNATURE}",
        _result_kernel,
        doc="The result of a Python function without effects.",
        shape_rule=_result_specs,
        derivative=OPAQUE,
        batching=_batch_result,
    ),
    "io_callback": define(
        f"io_callback{_SIGNATURE}",
        _result_kernel,
        doc="The result of a Python function with effects.",
        shape_rule=_result_specs,
        derivative=OPAQUE,
        batching=_batch_result,
        effects=EFFECTS,
    ),
}


def call_for_result(
    what: str, fn: Any, result_spec: Pytree, args: Args, kwargs: Kwargs, method: str | None
) -> Any:
    """Implementation of :func:`tandem.pure_callback` and :func:`tandem.io_callback`."""
    if method not in VMAP_METHODS:
        raise ValueArgumentError(
            f"{what}: vmap_method is one of {', '.join(map(repr, VMAP_METHODS))}, not {method!r}"
        )
    if what == "io_callback" and stack.masked:
        raise UnsupportedError(f"a {stack.masked} whose condition differs from example to example {ALL_RUN}")
    result_specs = ResultSpecs(what, result_spec)
    call, values = make_host_call(fn, args, kwargs, what)
    return result_specs.treedef.unflatten(
        RESULT_CALLBACKS[what](call, values, result_specs=result_specs, method=method)
    )
