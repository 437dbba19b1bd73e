"""In-place operators, generated from functional ones: ``add_`` from ``add``.

The functional operator computes the result, which is written into the memory of the first argument.
:mod:`..autograd.ad_inplace_or_view` increments the version of that memory, and :mod:`..autograd.kernel` records it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy
from ...errors import DTypeError, ShapeError, TandemError, UnsupportedError
from ...operators.declare.declaration import LIBRARY, Declaration
from ...operators.indexing.gather import index_put, write_at_indices
from ...operators.indexing.slicing import basic_put, to_numpy_index
from ...operators.scalar_ir.numpy_evaluation import cast_array
from ...registry.dispatch.keys import CPU_KEYS, DispatchKey
from ...registry.dispatch.precedence import find_external_kernel
from ...registry.dispatch.state import state
from ...registry.dtypes import bool_
from ...registry.function import functions, make_function, signature
from ...registry.lazy_operators import find_lazy, register_lazy
from ...registry.native_type import accept_entry
from ...registry.operator import Operator, lock, operators
from ...registry.schemas.schema import Alias, Argument, Return, Schema
from ...registry.values import TensorSpec, describe
from .tensor import Tensor

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Args, Array, Function, Kwargs, Number

_compiled = lazy.Module(".eager.compiled")
_hot_calls = lazy.Module(".eager.hot_calls")
_dtypes = lazy.Module(".registry.dtype_functions")
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
    """Raise an error for a result of another shape than the target's, or of a dtype of a wider kind, as in NumPy."""
    if result.shape != target.shape:
        raise ShapeError(
            f"{name}: the result has shape {result.shape} and does not fit into {describe(target)}"
        )
    if result.dtype is not target.dtype and not _dtypes.can_cast(result.dtype, target.dtype, "same_kind"):
        raise DTypeError(
            f"{name}: the result is {result.dtype} and cannot be written into {describe(target)}; cast an argument "
            "with astype, or use the functional operator"
        )


def check_writable(name: str, target: Tensor) -> None:
    """Raise UnsupportedError for memory that is read-only or in which elements share an address."""
    if type(target) is Tensor:
        writable = target._array.flags.writeable
    else:
        writable = all(step or size < 2 for step, size in zip(target._strides, target.shape))
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
            computed = cast_array(computed, self.dtype)
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


def _make_composite(inner: Operator) -> Callable[..., Tensor]:
    """The body of an in-place operator that writes with ``copy_``, so that every layer runs it as these two calls.

    Bools are written into any dtype, as 0 and 1. Derivatives may need the elements before the write, so those of a
    tensor that may be recorded are copied first.
    """
    function, name = functions[inner.name], f"{inner.schema.name}_"
    is_constant = inner.decl.result == "bool"

    def body(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        source = self if is_constant or self._keys == CPU_KEYS else self.clone()
        result = function(source, *args, **kwargs)
        dtype = self.dtype if result.dtype is bool_ else result.dtype
        check_fits(name, self, TensorSpec(result.shape, dtype))
        self.copy_(result)
        return self

    return body


def writes_directly(target: object, result: object) -> bool:
    """Whether a result can be written into a tensor without a check of dtypes, shapes or recording."""
    if type(result) is not Tensor or type(target) is not Tensor:
        return False
    if target._keys is not CPU_KEYS or result._keys is not CPU_KEYS:
        return False
    into, array = target._array, result._array
    is_same = array.dtype is into.dtype or array.dtype == into.dtype
    return bool(is_same and array.shape == into.shape and into.flags.writeable)


_DIRECT = frozenset((int, float, bool, complex, str, type(None)))
_KERNEL_KEYS = (DispatchKey.CPU, DispatchKey.ADInplaceOrView, DispatchKey.WeakScalar, DispatchKey.AutogradCPU)


@accept_entry("write_rows")
def write_rows(x: Tensor, axis: int, index: Tensor, source: Tensor, adds: bool) -> Tensor | None:
    """Write slices or elements of a source at positions along an axis of a tensor, or add them, in place.

    Args:
        x: the tensor.
        axis: the axis.
        index: a vector of positions of slices; or the position of each element, with the shape of the source.
        source: a tensor of the dtype of ``x``, and of its shape but for the axis.
        adds: whether elements are added; otherwise the last one for a position is stored.

    Returns:
        The tensor; None if an operator must run the call, and nothing was written.

    Native twin: backends/cpu/fastpath/entries/rt_row_writes.py:write_rows
    """
    return None


class _DirectWrite:
    """Runs the calls of an in-place operator that nothing observes: the functional form's native entry, and a copy.

    Other calls, and those that raise, run the operator: on tensors of other kinds, and while other code has registered
    a kernel of the operator.

    Args:
        op: the operator.
        inner: its functional form.
    """

    def __init__(self, op: Operator, inner: Operator):
        self.op, self.function, self.version, self.limit = op, functions[inner.name], -1, 0
        self.writes = inner.decl.inplace if type(inner.decl.inplace) is str else ""
        self.is_cast = inner.decl.result == "bool"  # which is written as 0 or 1
        self.hot: Function | None = None  # runs the calls that are compiled when they are hot

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run a call."""
        if self.writes and self.op.version == self.version and self.limit and not self.op.extra_keys:
            written = self._write_rows(args, kwargs)
            if written is not None:
                return written
        if not self._takes(args, kwargs):
            return self.op(*args, **kwargs)
        hot = self.hot
        if hot is None:
            hot = self.hot = self._make_hot()
        return hot(*args, **kwargs)

    def _make_hot(self) -> Function:
        """Make the function that runs calls, whose parameters are those of the operator."""

        def run(*args: object, **kwargs: object) -> object:
            return self._run(*args, **kwargs)

        run.__name__ = run.__qualname__ = self.op.schema.name
        run.__signature__, run.binder = signature(self.op.schema), self.op.binder  # type: ignore[attr-defined]
        made: Function = _compiled.compile_writes_when_hot(run)
        return made

    def _run(self, *args: Any, **kwargs: Any) -> object:
        """Run a call of plain tensors, or of traced ones."""
        if type(args[0]) is not Tensor or self.is_cast:
            return self.op(*args, **kwargs)
        try:
            result = self.function(*args, **kwargs)
        except TandemError:
            return self.op(*args, **kwargs)  # which raises the error in its own name
        if not writes_directly(args[0], result):
            return self.op(*args, **kwargs)
        args[0][...] = result
        return args[0]

    @functools.cached_property
    def names(self) -> list[str]:
        """The names of the positional arguments."""
        return [argument.name for argument in self.op.schema.positional]

    def _write_rows(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
        """Run a call that writes at positions along an axis by native code; None if that does not take it."""
        factor: float = 1
        if kwargs:
            others = dict(kwargs)
            factor = others.pop("alpha", 1) if "alpha" in self.op.binder.names else 1
            if others.keys() != {*self.names[len(args) :]}:
                return None
            args = (*args, *[others[name] for name in self.names[len(args) :]])
        if len(args) != len(self.names) or type(factor) not in (int, float):
            return None
        x, axis, index, source = args
        if type(axis) is not int or not type(x) is type(index) is Tensor:
            return None
        takes_vector = self.op.schema.name.startswith("index_")
        if index._array.ndim != (1 if takes_vector else x._array.ndim):
            return None
        if type(source) in (int, float, bool):
            return self._fill_rows(x, axis, index, source) if self.writes == "set" else None
        if type(source) is not Tensor or self.names[-1] == "value":
            return None
        return write_rows(x, axis, index, source if factor == 1 else source * factor, self.writes == "add")

    def _fill_rows(self, x: Tensor, axis: int, index: Tensor, number: Number) -> Tensor | None:
        """Write a number at positions along the first axis; None if an operator must run the call."""
        is_plain = x._keys is CPU_KEYS and index._keys is CPU_KEYS and index.dtype.is_integer
        if axis != 0 or index._array.ndim != 1 or not is_plain or _hot_calls.is_watched():
            return None
        try:
            x[index] = number
        except TandemError:
            return None  # the operator raises it, with its name
        return x

    def _takes(self, args: Args, kwargs: Kwargs) -> bool:
        op = self.op
        if op.version != self.version:
            external = any(find_external_kernel(op, key) is not None for key in _KERNEL_KEYS)
            self.version, self.limit = op.version, 0 if external else op.binder.limit
        if not 0 < len(args) <= self.limit or type(args[0]) is not Tensor or op.extra_keys:
            return False
        if kwargs:
            if "out" in kwargs or not op.binder.names.issuperset(kwargs):
                return False
            args = (*args, *kwargs.values())
        for value in args:
            if type(value) is Tensor:
                if value._keys is not CPU_KEYS:
                    return False
            elif type(value) not in _DIRECT:
                return False
        return not _hot_calls.is_watched()


def is_composite(inner: Operator) -> bool:
    """Whether an in-place operator is the functional operator and ``copy_``, and has no registered kernels."""
    decl: Declaration = inner.decl
    return not decl.is_elementwise or decl.result == "bool"


def make_inplace(inner: Operator) -> OperatorFunction[Tensor]:
    """The in-place variant of an operator: its function object."""
    schema = inplace_schema(inner.schema)
    first_line = (inner.decl.doc or "").strip().partition("\n")[0]
    doc = f"{first_line}\n\nIn place: writes the result of `{inner.schema.name}` into the tensor and returns it."
    LIBRARY.define(schema)
    op = operators[f"td::{schema.full_name}"]
    if inner.decl.kind != "scatter" and is_composite(inner):
        LIBRARY.impl(op, _make_composite(inner), "CompositeImplicit")
    else:
        functional[op] = inner
        LIBRARY.impl(op, KERNELS.get(inner.schema.name) or _make_kernel(op, inner), DispatchKey.CPU)
    made = make_function(op, doc)
    if inner.schema.name not in KERNELS:
        made.use(_DirectWrite(op, inner))
    return made


def wants_inplace(op: Operator) -> bool:
    """Whether an operator has an in-place variant.

    Elementwise methods of a tensor have one; other operators whose result has the shape and the dtype of their first
    argument declare it. Scatters, which indexing uses, have theirs from the beginning.
    """
    decl: Declaration = op.decl
    if decl.inplace:
        return True
    first = op.schema.arguments[0]
    return decl.is_elementwise and decl.method and first.name not in decl.conditions


def name_of_variant(op: Operator) -> str:
    """The full name of the in-place variant: ``td::add_.Tensor`` of ``td::add.Tensor``."""
    stem, dot, overload = op.name.partition(".")
    return f"{stem}_{dot}{overload}"


def register_inplace_variant(op: Operator, listener: Callable[[Operator], object]) -> None:
    """Register the in-place variant of an operator, which is created at the first lookup.

    Args:
        op: the functional operator.
        listener: called with ``op`` when the variant has been created.
    """

    def declare() -> None:
        if former is not None:  # the method is that of the overload that was declared first
            former()
        with lock:
            if name_of_variant(op) not in operators:
                make_inplace(op)
        listener(op)

    name = f"{op.schema.name}_"
    former = find_lazy(f"td::{name}")
    register_lazy("td", (name,), declare)
