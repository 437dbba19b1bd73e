"""NumPy kernels of reductions and scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import config, lazy
from ....eager.tensor.tensor import Tensor, wrap
from ....operators.declare.declaration import Declaration
from ....operators.declare.quiet import call_quietly
from ....operators.scalar_ir.expr import apply, arg
from ....registry.dtypes import COMPLEX, HALVES, DType, is_half
from ....registry.operator import Operator
from .elementwise import find_function

_native = lazy.Functions("backends.cpu.fastpath.glue.folds")
UFUNCS: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}
INDEX_FUNCTIONS: dict[str, Any] = {"argmax": np.argmax, "argmin": np.argmin}
_FLOAT32 = np.dtype(np.float32)


def _find_ufunc(name: str, dtype: DType) -> Any:
    """Return the ufunc of a reduction or scan that computes in a dtype."""
    if name == "prod" and dtype in COMPLEX:
        return find_function(apply("mul", arg(0, dtype), arg(1, dtype)))
    return UFUNCS[name]


def _accumulator(out: DType) -> np.dtype[Any]:
    """Return the dtype that a sum or product with results of ``out`` is accumulated in."""
    return _FLOAT32 if out in HALVES else out.np


def _wrap_as(result: Any, dtype: DType) -> Tensor:
    return wrap(call_quietly(np.asarray, result, dtype.np))  # a float32 sum may overflow float16


def reduction_kernel(op: Operator) -> Callable[..., Tensor]:
    """Return the kernel of a reduction; the shape rule runs once for each dtype, rank and axis.

    Native twin: backends/cpu/fastpath/entries/rt_reduce.py:reduction
    """
    name = op.decl.reduce
    if name in INDEX_FUNCTIONS:
        return _index_kernel(op.decl, INDEX_FUNCTIONS[name])
    accumulates = name in ("sum", "prod")
    meta = op.decl.shape_rule
    known: dict[tuple[Any, ...], DType] = {}

    def kernel(
        self: Tensor, axis: Any = None, *, keepdims: bool = False, dtype: DType | None = None
    ) -> Tensor:
        array = self._array
        key = array.dtype, array.ndim, axis, dtype
        out = known.get(key)
        if out is None or not array.size:
            options = {} if dtype is None else {"dtype": dtype}
            out = known[key] = meta(self, axis, keepdims=keepdims, **options).dtype
        if accumulates and config.flags.native and not lazy.native_layer().why_off():
            result = _fold_in_order(name, array, axis, keepdims, out)
            if result is not None:
                return wrap(result)
        if name == "prod" and out in COMPLEX:
            array = np.asarray(array, order="C")  # NumPy folds in memory order, hot calls in index order
        within = _accumulator(out) if accumulates else None
        return _wrap_as(call_quietly(_find_ufunc(name, out).reduce, array, axis, within, None, keepdims), out)

    return kernel


def _fold_in_order(fold: str, array: Any, axis: Any, keepdims: bool, out: DType) -> Any:
    """Return a sum or product in the order of hot and jitted calls; None for dtypes without emitted code."""
    if out.is_integer or (array.dtype.kind == "c" and out.kind != "c"):
        return None
    if array.dtype.kind in "biu" or (array.dtype != out.np and (is_half(out) or out.kind == "c")):
        array = call_quietly(array.astype, out.np)
    axes = tuple(range(array.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    folded = {a % array.ndim for a in axes} if array.ndim else set()
    shape = tuple(1 if a in folded else n for a, n in enumerate(array.shape))
    result = np.empty(shape, out.np)
    if not _native.fold_array(fold, array, tuple(sorted(folded)), result):
        return None
    kept = tuple(n for a, n in enumerate(shape) if a not in folded)
    return result if keepdims else result.reshape(kept)


def _index_kernel(decl: Declaration, choose: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return the kernel of argmax or argmin."""

    def kernel(self: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        out = decl.shape_rule(self, axis, keepdims=keepdims).dtype  # type: ignore[misc]
        array = self._array
        wide = array.astype(np.float32) if is_half(array.dtype) else array
        return _wrap_as(choose(wide, axis, keepdims=keepdims), out)

    return kernel


def scan_kernel(op: Operator) -> Callable[..., Tensor]:
    """Return the kernel of a scan.

    Native twin: backends/cpu/fastpath/entries/rt_scans.py:scan
    """
    name: str = op.decl.reduce
    meta = op.decl.shape_rule

    def kernel(self: Tensor, axis: int | None = None, *, dtype: DType | None = None) -> Tensor:
        out = meta(self, axis, dtype=dtype).dtype
        flat = axis is None or not self._array.ndim
        array = self._array.reshape(-1) if flat else self._array
        result = call_quietly(
            _find_ufunc(name, out).accumulate, array, 0 if flat else axis, _accumulator(out)
        )
        return _wrap_as(result, out)

    return kernel
