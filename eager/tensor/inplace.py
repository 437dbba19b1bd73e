"""In-place operators, generated from functional ones: ``add_`` from ``add``.

The functional operator computes the result, which is written into the memory of the first argument.
:mod:`..autograd.ad_inplace_or_view` increments the version of that memory, and :mod:`..autograd.kernel` records it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import DTypeError, ShapeError, UnsupportedError
from ...operators.declare.declaration import LIBRARY, Declaration
from ...operators.indexing.gather import index_put, write_at_indices
from ...operators.indexing.slicing import basic_put, to_numpy_index
from ...registry.dispatch.keys import CPU_KEYS, DispatchKey
from ...registry.dispatch.state import state
from ...registry.function import functions, make_function
from ...registry.operator import Operator, operators
from ...registry.schemas.schema import Alias, Argument, Return, Schema
from ...registry.values import TensorSpec, describe
from .tensor import Tensor

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, Number

# in-place operator -> the operator whose result it writes
functional: dict[Operator, Operator] = {}
WRITES = Alias(("a",), is_write=True)


def inplace_schema(schema: Schema) -> Schema:
    """``add(Tensor self, Tensor other) -> Tensor`` to ``add_(Tensor(a!) self, Tensor other) -> Tensor(a!)``."""
    first = schema.arguments[0]
    written = first.type._replace(alias=WRITES)
    target = Argument(first.name, written, first.default, first.default_text, first.kwarg_only)
    return schema._replace(
        namespace="",
        name=f"{schema.name}_",
        arguments=(target, *schema.arguments[1:]),
        returns=(Return(written),),
    )


def check_fits(name: str, target: Tensor | TensorSpec, result: TensorSpec) -> None:
    """Raise an error for a result whose shape or dtype differs from the target's."""
    if result.shape != target.shape:
        raise ShapeError(
            f"{name}: the result has shape {result.shape} and does not fit into {describe(target)}"
        )
    if result.dtype is not target.dtype:
        raise DTypeError(
            f"{name}: the result is {result.dtype} and cannot be written into {describe(target)}; cast an argument "
            "with astype, or use the functional operator"
        )


def check_writable(name: str, target: Tensor) -> None:
    """Raise UnsupportedError for memory that is read-only or in which elements share an address."""
    if type(target) is Tensor:
        writable = target._array.flags.writeable
    else:
        writable = all(step or size < 2 for step, size in zip(target.strides, target.shape))
    if not writable:
        raise UnsupportedError(
            f"{name}: the memory of {describe(target)} is read-only (a broadcast view, or a read-only NumPy array); "
            "write into a copy: x.clone()"
        )


def _make_kernel(op: Operator, inner: Operator) -> Callable[..., Tensor]:
    """The CPU kernel of an in-place operator.

    Native twin: backends/cpu/fastpath/entries/rt_inplace.py:inplace
    """
    function = functions[inner.name]

    def kernel(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        check_writable(op.schema.name, self)
        if not (state.include or inner.extra_keys) and self._keys is CPU_KEYS:  # the native entry, if any
            result = function(self, *args, **kwargs)
        else:
            result = inner.dispatch(CPU_KEYS, (self, *args), kwargs)
        computed, target = result._array, self._array
        if computed.dtype != target.dtype or computed.shape != target.shape:
            check_fits(op.schema.name, self, result.spec)
        np.copyto(target, computed)
        return self

    return kernel


def _write_slice(
    self: Tensor, value: Tensor | Number, plan: tuple[object, ...], *, accumulate: bool
) -> Tensor:
    """The CPU kernel of ``basic_put_``, which writes the selected elements only."""
    check_writable("setitem", self)
    basic_put.operator.decl.shape_rule(self, value, plan, accumulate=accumulate)
    target: Array = self._array[to_numpy_index(plan)]
    given = _data(value)
    target[...] = target + np.asarray(given).astype(target.dtype) if accumulate else given
    return self


def _write_index(
    self: Tensor, indices: Sequence[Tensor], value: Tensor | Number, axis: int, *, accumulate: bool
) -> Tensor:
    """The CPU kernel of ``index_put_``, which writes the selected elements only."""
    check_writable("setitem", self)
    index_put.operator.decl.shape_rule(self, indices, value, axis, accumulate=accumulate)
    positions = tuple(np.asarray(_data(one)) for one in indices)
    write_at_indices(np, self._array, positions, _data(value), axis, "add" if accumulate else "", "setitem")
    return self


def _data(value: Tensor | Number) -> Array | Number:
    return value._array if isinstance(value, Tensor) else value


# Kernels that write the selected elements only, instead of computing a whole new tensor first.
KERNELS: dict[str, Callable[..., Tensor]] = {"basic_put": _write_slice, "index_put": _write_index}


def _register(
    schema: Schema, inner: Operator, kernel: Callable[[Operator], Callable[..., Tensor]], doc: str
) -> OperatorFunction[Tensor]:
    LIBRARY.define(schema)
    op = operators[f"td::{schema.full_name}"]
    functional[op] = inner
    LIBRARY.impl(op, kernel(op), DispatchKey.CPU)
    return make_function(op, doc)


def make_inplace(inner: Operator) -> OperatorFunction[Tensor]:
    """The in-place variant of an operator: its function object."""
    schema = inplace_schema(inner.schema)
    first_line = (inner.decl.doc or "").strip().partition("\n")[0]
    doc = f"{first_line}\n\nIn place: writes the result of `{inner.schema.name}` into the tensor and returns it."
    special = KERNELS.get(inner.schema.name)
    return _register(schema, inner, lambda op: special or _make_kernel(op, inner), doc)


def wants_inplace(op: Operator) -> bool:
    """Whether an operator has an in-place variant."""
    decl: Declaration = op.decl
    return decl.inplace or decl.kind == "scatter"


def make_inplace_variant(op: Operator) -> None:
    """Create the in-place variant of an operator if it wants one and lacks it."""
    stem, dot, overload = op.name.partition(".")
    if wants_inplace(op) and f"{stem}_{dot}{overload}" not in operators:
        make_inplace(op)
