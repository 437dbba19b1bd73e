"""The operators that call Python: for an effect, for a result, for both.

They are operators like others: recorded by a trace, run by compiled code as host callbacks, mapped by ``vmap``. Those
with effects are never merged, dropped or moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..eager.dunders import by_name
from ..eager.levels import ALL_RUN, below_autograd, highest_level, stack
from ..eager.tensor import wrap
from ..errors import UnsupportedError, ValueArgumentError
from ..operators.batching import Batched, BatchInfo, Dims
from ..operators.declare import Declaration
from ..operators.derivatives import NotDifferentiable
from ..registry.function import make_function
from ..registry.library import Library
from ..registry.operator import Operator, fallthrough, operators
from ..registry.values import TensorSpec
from .host import Promise, host_call

LIBRARY = Library("debug", "FRAGMENT")
EFFECTS = frozenset({"callback"})
METHODS = (None, "sequential", "expand_dims", "broadcast_all")
OPAQUE = NotDifferentiable(
    "it calls a Python function; keep gradients out with td.stop_gradient, or make an operator of the function with "
    "td.custom_op and register_autograd"
)


def define(schema: str, kernel: Any, **fields: Any) -> Any:
    """Define an operator of this package, for every backend.

    Returns:
        Its function.
    """
    decl = Declaration(schema=schema, kind="custom", **fields)
    LIBRARY.define(schema, decl)
    name = schema.partition("(")[0]
    LIBRARY.impl(name, kernel, "CompositeExplicit")
    return make_function(operators[f"{LIBRARY.namespace}::{name}"], decl.doc)


# -- for an effect -----------------------------------------------------------------------------------------------------
def without_gradients(name: str) -> None:
    """Let gradients pass an operator by: it gets the values alone, and gives nothing."""
    LIBRARY.impl(name, fallthrough, "Autograd")
    LIBRARY.impl(name, _below_levels, "Level", boxed=True)


def _below_levels(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    level = highest_level(op, args, kwargs)
    return level.run(level, op, args, kwargs) if level.run is not None else below_autograd(op, args, kwargs)


def examples(dims: Any, values: tuple[Any, ...], size: int) -> list[tuple[Any, ...]]:
    """Values as each of the examples of a batch has them."""
    return [
        tuple([value if dim is None else value[number] for value, dim in zip(values, dims)])
        for number in range(size)
    ]


def _each(info: BatchInfo, in_dims: Dims, call: Any, values: tuple[Any, ...]) -> Batched:
    for example in examples(in_dims[1], values, info.batch_size):
        info.call(call, example)
    return None, None


def _call(call: Any, values: tuple[Any, ...]) -> None:
    call(values)


run = define(
    "callback(Any call, Tensor[] values) -> ()",
    _call,
    doc="Calls a Python function for its effect.",
    meta=lambda call, values: None,
    derivative=OPAQUE,
    batching=_each,
    effects=EFFECTS,
)
without_gradients("callback")


def call_later(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What :func:`tandem.debug.callback` does."""
    run(*host_call(fn, args, kwargs, "debug.callback"))


# -- for a result ------------------------------------------------------------------------------------------------------
def _promised(
    call: Any, values: Any, *, promise: Promise, method: str | None, batch: Any
) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec((*batch, *spec.shape), spec.dtype) for spec in promise.specs)


def _result(
    call: Any, values: tuple[Any, ...], *, promise: Promise, method: str | None, batch: tuple[int, ...]
) -> Any:
    return promise.checked(call.name, call(values), batch)


def _mapped(
    info: BatchInfo,
    in_dims: Dims,
    call: Any,
    values: tuple[Any, ...],
    *,
    promise: Promise,
    method: str | None,
    batch: tuple[int, ...],
) -> Batched:
    dims, size = in_dims[1], info.batch_size
    options = {"promise": promise, "method": method}
    if method is None:
        raise UnsupportedError(
            f"{promise.what}: {call.name} is met by values of {info.name}, and vmap_method does not say how it is run "
            f"for several examples: {', '.join(map(repr, METHODS[1:]))}"
        )
    if method == "sequential":
        rows = [info.call(call, one, batch=batch, **options) for one in examples(dims, values, size)]
        if not rows:
            return tuple([_empty(spec, (0, *batch)) for spec in promise.specs]), 0
        return tuple([by_name("stack")(list(column), 0) for column in zip(*rows)]), 0
    lead = size if method == "broadcast_all" else 1
    given = tuple(
        [
            value if dim is not None or not hasattr(value, "shape") else _with_axis(value, lead)
            for value, dim in zip(values, dims)
        ]
    )
    return info.call(call, given, batch=(size, *batch), **options), 0


def _with_axis(value: Any, size: int) -> Any:
    return by_name("broadcast_to")(by_name("expand_dims")(value, 0), (size, *value.shape))


def _empty(spec: TensorSpec, batch: tuple[int, ...]) -> Any:
    return wrap(np.zeros((*batch, *spec.shape), spec.dtype.np))


_REST = "(Any call, Tensor[] values, *, Any promise, Any method=None, int[] batch=[]) -> Tensor[]"
FOR_RESULT = {
    "pure_callback": define(
        f"pure_callback{_REST}",
        _result,
        doc="The result of a Python function without effects.",
        meta=_promised,
        derivative=OPAQUE,
        batching=_mapped,
    ),
    "io_callback": define(
        f"io_callback{_REST}",
        _result,
        doc="The result of a Python function with effects.",
        meta=_promised,
        derivative=OPAQUE,
        batching=_mapped,
        effects=EFFECTS,
    ),
}


def call_for_result(
    what: str, fn: Any, result_spec: Any, args: tuple[Any, ...], kwargs: dict[str, Any], method: Any
) -> Any:
    """What :func:`tandem.pure_callback` and :func:`tandem.io_callback` do."""
    if method not in METHODS:
        raise ValueArgumentError(
            f"{what}: vmap_method is one of {', '.join(map(repr, METHODS))}, not {method!r}"
        )
    if what == "io_callback" and stack.masked:
        raise UnsupportedError(f"a {stack.masked} whose condition differs from example to example {ALL_RUN}")
    promise = Promise(what, result_spec)
    call, values = host_call(fn, args, kwargs, what)
    return promise.treedef.unflatten(FOR_RESULT[what](call, values, promise=promise, method=method))
