"""In-place operators, made from the declarations that ask for one: ``add_`` from ``add``.

The functional operator computes, and its result is written into the memory of the first argument. That the version of
that memory rises is the business of :mod:`.adinplace`, and what autograd does about it of :mod:`.record`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DTypeError, OutOfBoundsError, ShapeError, UnsupportedError
from ..operators.declare import LIBRARY, Declaration
from ..operators.gathering import index_put
from ..operators.slicing import basic_put, numpy_index
from ..registry.function import functions, make_function
from ..registry.keys import CPU_KEYS, DispatchKey
from ..registry.operator import Operator, operators
from ..registry.schema import Alias, Argument, Return, Schema
from ..registry.state import state
from ..registry.values import TensorSpec, describe
from .tensor import Tensor

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


def check_fits(name: str, target: Any, result: TensorSpec) -> None:
    """Refuse a result whose shape or dtype the target cannot take."""
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
    """Refuse memory that must not be written: read-only, or several elements in one place."""
    if type(target) is Tensor:
        writable = target._array.flags.writeable
    else:
        writable = all(step or size < 2 for step, size in zip(target.strides, target.shape))
    if not writable:
        raise UnsupportedError(
            f"{name}: the memory of {describe(target)} is read-only (a broadcast view, or a read-only NumPy array); "
            "write into a copy: x.clone()"
        )


def _writer(op: Operator, inner: Operator) -> Callable[..., Tensor]:
    """The CPU kernel of an in-place operator."""
    function = functions[inner.name]

    def kernel(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(op.schema.name, self)
        if not (state.include or inner.extra_keys) and self._keys is CPU_KEYS:  # the native entry, if any
            result = function(self, *args, **kwargs)
        else:
            result = inner.dispatch(CPU_KEYS, (self, *args), kwargs)
        made, place = result._array, self._array
        if made.dtype != place.dtype or made.shape != place.shape:
            check_fits(op.schema.name, self, result.spec)
        np.copyto(place, made)
        return self

    return kernel


def _put_writer(self: Tensor, value: Any, plan: Any, *, accumulate: bool) -> Tensor:
    """The CPU kernel of ``basic_put_``, which writes the selected elements only."""
    check_writable("setitem", self)
    basic_put.operator.decl.meta(self, value, plan, accumulate=accumulate)
    place = self._array[numpy_index(plan)]
    given = _data(value)
    place[...] = place + given if accumulate else given
    return self


def _index_writer(self: Tensor, indices: Any, value: Any, axis: int, *, accumulate: bool) -> Tensor:
    """The CPU kernel of ``index_put_``, which writes the selected elements only."""
    check_writable("setitem", self)
    index_put.operator.decl.meta(self, indices, value, axis, accumulate=accumulate)
    positions = tuple(np.asarray(_data(one)).astype(np.int64) for one in indices)
    place = (slice(None),) * (axis % max(self.ndim, 1)) + positions
    given = np.asarray(_data(value)).astype(self._array.dtype)
    try:
        if accumulate:
            np.add.at(self._array, place, given)  # type: ignore[arg-type]
        else:
            self._array[place] = given
    except IndexError as fault:
        raise OutOfBoundsError(f"setitem: {fault} (shape {self.shape})") from None
    return self


def _data(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


# Those that need not compute a whole new tensor first.
WRITERS: dict[str, Callable[..., Tensor]] = {"basic_put": _put_writer, "index_put": _index_writer}


def _register(
    schema: Schema, inner: Operator, kernel: Callable[[Operator], Callable[..., Tensor]], doc: str
) -> Any:
    LIBRARY.define(schema)
    op = operators[f"td::{schema.full_name}"]
    functional[op] = inner
    LIBRARY.impl(op, kernel(op), DispatchKey.CPU)
    return make_function(op, doc)


def make_inplace(inner: Operator) -> Any:
    """The in-place variant of an operator: its function object."""
    schema = inplace_schema(inner.schema)
    first_line = (inner.decl.doc or "").strip().partition("\n")[0]
    doc = f"{first_line}\n\nIn place: writes the result of `{inner.schema.name}` into the tensor and returns it."
    special = WRITERS.get(inner.schema.name)
    return _register(schema, inner, lambda op: special or _writer(op, inner), doc)


def wants_inplace(op: Operator) -> bool:
    """Whether an operator has an in-place variant."""
    decl: Declaration = op.decl
    return decl.inplace or decl.kind == "scatter"


def generate(op: Operator) -> None:
    """Make the in-place variant of an operator that lacks one."""
    stem, dot, overload = op.name.partition(".")
    if wants_inplace(op) and f"{stem}_{dot}{overload}" not in operators:
        make_inplace(op)
