"""NumPy kernels of the reductions and scans that are folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.tensor import Tensor, wrap
from ...operators.declare import Declaration
from ...operators.quiet import quietly
from ...registry.dtypes import HALVES, DType, is_half
from ...registry.operator import Operator

UFUNCS: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}
CHOICES: dict[str, Any] = {"argmax": np.argmax, "argmin": np.argmin}
_FLOAT32 = np.dtype(np.float32)


def _accumulator(out: DType) -> np.dtype[Any]:
    """The dtype that a sum or product with results of ``out`` is accumulated in."""
    return _FLOAT32 if out in HALVES else out.np


def _wrap_as(result: Any, dtype: DType) -> Tensor:
    return wrap(quietly(np.asarray, result, dtype.np))  # a float32 sum may overflow float16


def reduction_kernel(op: Operator) -> Callable[..., Tensor]:
    """The kernel of a reduction; the rule is asked once for each dtype, rank and axis."""
    name = op.decl.reduce
    if name in CHOICES:
        return _choice_kernel(op.decl, CHOICES[name])
    accumulates = name in ("sum", "prod")
    fold = UFUNCS[name].reduce
    meta = op.decl.meta
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
        within = _accumulator(out) if accumulates else None
        return _wrap_as(quietly(fold, array, axis, within, None, keepdims), out)

    return kernel


def _choice_kernel(decl: Declaration, choose: Callable[..., Any]) -> Callable[..., Tensor]:
    def kernel(self: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        out = decl.meta(self, axis, keepdims=keepdims).dtype  # type: ignore[misc]
        array = self._array
        wide = array.astype(np.float32) if is_half(array.dtype) else array
        return _wrap_as(choose(wide, axis, keepdims=keepdims), out)

    return kernel


def scan_kernel(op: Operator) -> Callable[..., Tensor]:
    """The kernel of a scan."""
    accumulate = UFUNCS[op.decl.reduce].accumulate
    meta = op.decl.meta

    def kernel(self: Tensor, axis: int | None = None, *, dtype: DType | None = None) -> Tensor:
        out = meta(self, axis, dtype=dtype).dtype
        flat = axis is None or not self._array.ndim
        array = self._array.reshape(-1) if flat else self._array
        result = quietly(accumulate, array, 0 if flat else axis, _accumulator(out))
        return _wrap_as(result, out)

    return kernel
