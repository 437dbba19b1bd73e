"""NumPy kernels of reductions and scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import config, lazy
from ....eager.tensor.tensor import Tensor, wrap
from ....operators.declare.quiet import call_quietly
from ....operators.declare.shape_rules import normalize_axes
from ....operators.scalar_ir.expr import Expr, arg, order
from ....operators.scalar_ir.fold import Fold
from ....operators.scalar_ir.numpy_evaluation import numpy_kernel
from ....registry.dtypes import DType, as_dtype, bool_, default_stamp
from ....registry.operator import Operator
from .elementwise import find_function

if TYPE_CHECKING:
    from ....registry.types import Array, Axes

_fastpath = lazy.Module(".backends.cpu.fastpath")
_native = lazy.Module(".backends.cpu.fastpath.glue.folds")
_LOGICAL: dict[str, Any] = {"or": np.logical_or, "and": np.logical_and}
"""The ufuncs that test other dtypes for truth while they fold them."""
_INDEX_FUNCTIONS: dict[str, Any] = {"maximum": np.argmax, "minimum": np.argmin}


def _wrap_as(result: Array, dtype: DType) -> Tensor:
    return wrap(call_quietly(np.asarray, result, dtype.np))  # a float32 sum may overflow float16


def reduction_kernel(op: Operator) -> Callable[..., Tensor]:
    """Return the kernel of a reduction; the shape rule runs once for each dtype, rank and axis.

    Native twin: backends/cpu/fastpath/entries/rt_reduce.py:reduction
    """
    fold: Fold = op.decl.fold
    if fold.returns_index:
        return _index_kernel(op, fold)
    meta = op.decl.shape_rule
    known: dict[tuple[Any, ...], NumpyFold] = {}

    def kernel(
        self: Tensor, axis: Any = None, *, keepdims: bool = False, dtype: DType | None = None
    ) -> Tensor:
        array = self._array
        stamp = default_stamp()
        key = array.dtype, array.ndim, axis, dtype, stamp[1]
        run = known.get(key)
        if run is None or not array.size:
            options = {} if dtype is None else {"dtype": dtype}
            out = meta(self, axis, keepdims=keepdims, **options).dtype
            if run is None:
                run = NumpyFold(fold, as_dtype(array.dtype), out)
                if stamp == default_stamp():
                    known[key] = run
        if config.flags.native and run.has_own_order() and not _fastpath.why_off():
            result = run.fold_natively(array, axis, keepdims)
            if result is not None:
                return wrap(result)
        return _wrap_as(call_quietly(run.reduce, array, axis, keepdims), run.out)

    return kernel


class NumpyFold:
    """A fold of elements of one dtype, computed by NumPy.

    Args:
        fold: the fold.
        source: the dtype of the elements.
        out: the dtype of the result.
    """

    def __init__(self, fold: Fold, source: DType, out: DType):
        self.fold, self.out = fold, out
        self.source = out if out.kind == "c" else source
        operand = fold.operand(arg(0, self.source), out)
        self.accumulation = operand.dtype  # the dtype that elements are combined in, float32 for float16
        logical = (
            _LOGICAL.get(fold.node(self.accumulation))
            if self.accumulation is bool_ and fold.prepare is None
            else None
        )
        converts = fold.prepare is not None or (self.accumulation is bool_ and logical is None)
        converts = converts or [e.op for e in order(operand)].count("cast") > 1
        self._operand = _compile(operand) if converts else None  # otherwise the ufunc converts
        self._finish = None if fold.finish is None else _compile(fold.finished(arg(0, self.accumulation)))
        combined = fold.combined(self.accumulation)
        self._combine: Any = logical or (
            find_function(combined) if fold.node(self.accumulation) else _compile(combined, 2)
        )
        self._is_ufunc = isinstance(self._combine, np.ufunc)
        self._within = (
            None if self.accumulation is self.source or logical is not None else self.accumulation.np
        )
        self._has_own_order: bool | None = None

    def has_own_order(self) -> bool:
        """Return whether native code computes the fold, in an order that differs from NumPy's."""
        if self._has_own_order is None:
            self._has_own_order = _native.has_own_order(self.fold, self.source, self.out)
        return self._has_own_order

    def fold_natively(self, array: Array, axis: Axes, keepdims: bool) -> Array | None:
        """Reduce an array with the loop that hot and jitted calls run; None if the loop cannot be built."""
        array = array.astype(self.source.np, copy=False)
        axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        folded = {a % array.ndim for a in axes} if array.ndim else set()
        shape = tuple(1 if a in folded else n for a, n in enumerate(array.shape))
        result = np.empty(shape, self.out.np)
        if not _native.fold_array(self.fold, array, tuple(sorted(folded)), result):
            return None
        kept = tuple(n for a, n in enumerate(shape) if a not in folded)
        return result if keepdims else result.reshape(kept)

    def reduce(self, array: Array, axis: Axes, keepdims: bool) -> Array:
        """Reduce an array over some axes, or all."""
        if not self._is_ufunc or not array.size:
            return self._reduce_by_halves(array, axis, keepdims)
        values = array if self._operand is None else self._operand(array)
        if values.dtype.kind == "c":  # NumPy folds in memory order, hot calls in index order
            values = np.asarray(values, order="C")
        result: Array = self._combine.reduce(values, axis, self._within, None, keepdims)
        return result if self._finish is None else self._finish(result)

    def _reduce_by_halves(self, array: Array, axis: Axes, keepdims: bool) -> Array:
        """Combine the halves of all rows until one element is left of each."""
        axes = normalize_axes(self.fold.name, (axis,) if isinstance(axis, int) else axis, array.ndim)
        shape = tuple(1 if a in axes else n for a, n in enumerate(array.shape))
        kept = shape if keepdims else tuple(n for a, n in enumerate(array.shape) if a not in axes)
        if 0 in (array.shape[a] for a in axes):
            result = np.full(kept, self.fold.identity(self.accumulation), self.accumulation.np)
        else:
            values = array.astype(self.accumulation.np) if self._operand is None else self._operand(array)
            rest = [a for a in range(values.ndim) if a not in axes]
            rows = values.transpose(*axes, *rest)
            rows = rows.reshape(math.prod(values.shape[a] for a in axes), *rows.shape[len(axes) :])
            while len(rows) > 1:
                half = len(rows) // 2
                joined = self._combine(rows[:half], rows[half : 2 * half])
                rows = np.concatenate([joined, rows[2 * half :]])
            result = np.asarray(rows[0]).reshape(kept)
        return result if self._finish is None else self._finish(result)

    def accumulate(self, array: Array, axis: int) -> Array:
        """Return the partial results along an axis."""
        values = array if self._operand is None else self._operand(array)
        if self._is_ufunc:
            result = self._combine.accumulate(values, axis, self._within)
        else:
            lines = np.moveaxis(values, axis, 0)
            result = np.empty(lines.shape, self.accumulation.np)
            result[:1] = lines[:1]
            for at in range(1, len(lines)):
                result[at] = self._combine(result[at - 1], lines[at])
            result = np.moveaxis(result, 0, axis)
        return result if self._finish is None else self._finish(result)


def _compile(expr: Expr, arity: int = 1) -> Callable[..., Array]:
    """Return a scalar expression as a function of arrays."""
    return numpy_kernel(expr, arity, find_function)


def _index_kernel(op: Operator, fold: Fold) -> Callable[..., Tensor]:
    """Return the kernel of a reduction to the index of an element."""
    meta = op.decl.shape_rule
    known: dict[Any, tuple[Callable[..., Array] | None, Any]] = {}

    def prepare(dtype: DType, out: DType) -> tuple[Callable[..., Array] | None, Any]:
        operand = fold.operand(arg(0, dtype), out)
        return None if operand.op == "arg" else _compile(operand), _INDEX_FUNCTIONS[fold.node(operand.dtype)]

    def kernel(self: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        out = meta(self, axis, keepdims=keepdims).dtype
        array = self._array
        if array.dtype not in known:
            known[array.dtype] = prepare(as_dtype(array.dtype), out)
        operand, choose = known[array.dtype]
        return _wrap_as(choose(array if operand is None else operand(array), axis, keepdims=keepdims), out)

    return kernel


def scan_kernel(op: Operator) -> Callable[..., Tensor]:
    """Return the kernel of a scan.

    Native twin: backends/cpu/fastpath/entries/rt_scans.py:scan
    """
    fold: Fold = op.decl.fold
    meta = op.decl.shape_rule
    known: dict[tuple[Any, DType], NumpyFold] = {}

    def kernel(self: Tensor, axis: int | None = None, *, dtype: DType | None = None) -> Tensor:
        out = meta(self, axis, dtype=dtype).dtype
        flat = axis is None or not self._array.ndim
        array = self._array.reshape(-1) if flat else self._array
        run = known.get((array.dtype, out))
        if run is None:
            run = known[array.dtype, out] = NumpyFold(fold, as_dtype(array.dtype), out)
        return _wrap_as(call_quietly(run.accumulate, array, 0 if flat else axis), out)

    return kernel
