"""Sums and products of complex numbers in compiled code: the loops of eager calls, for rows or columns of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..creation.creation import full
from ..declare.native_kernel import Decomposition, NativeKernel, NativeLoop
from ..declare.shape_rules import normalize_axes, spec_of
from ..elementwise.casting import cast
from ..shape.views import permute, reshape

if TYPE_CHECKING:
    from ...registry.dtypes import DType
    from ...registry.types import Tensor
    from ...registry.values import TensorSpec

    Axes = int | tuple[int, ...] | None


def _axes(name: str, axis: Axes, rank: int) -> tuple[int, ...]:
    return normalize_axes(name, axis if axis is None or isinstance(axis, tuple) else (axis,), rank)


def _is_matrix_fold(over: int) -> Callable[..., bool]:
    """Return a function: whether a call folds one axis of a matrix of complex numbers.

    One column is added in the order of a row, as in eager calls, which leave out axes of length 1.
    """

    def matches(
        self: TensorSpec, axis: Axes = None, *, keepdims: bool = False, dtype: DType | None = None
    ) -> bool:
        plain = self.dtype.kind == "c" and dtype in (None, self.dtype) and not keepdims
        if not plain or len(self.shape) != 2 or _axes("fold", axis, 2) != (over,):
            return False
        return self.size > 0 and (over == 1 or self.shape[1] > 1)

    return matches


def complex_fold_kernel(name: str) -> NativeKernel:
    """The loops of a fold of complex numbers: over the rows of a matrix, or over its columns.

    They differ in the order of additions, as those of eager calls do.
    """
    loops = (
        NativeLoop("folds", f"{name} rows", _is_matrix_fold(1)),
        NativeLoop("folds", f"{name} columns", _is_matrix_fold(0)),
    )

    def core_axis(self: TensorSpec, axis: Axes = None, **options: object) -> int:
        return 0 if axis in (0, (0,), -2, (-2,)) else -1

    return NativeKernel(loops, axis=core_axis)


def complex_fold_decomposition(
    name: str, find: Callable[[], Callable[..., Tensor]], identity: int
) -> Decomposition:
    """The fold of complex numbers as that of a matrix: kept axes and folded axes become one axis each."""

    def body(
        self: Tensor, axis: Axes = None, *, keepdims: bool = False, dtype: DType | None = None
    ) -> Tensor:
        values = self if dtype in (None, self.dtype) else cast(self, dtype)
        shape = values.shape
        folded = _axes(name, axis, len(shape))
        kept = tuple(at for at in range(len(shape)) if at not in folded)
        count, size = (math.prod(shape[at] for at in some) for some in (folded, kept))
        result_shape = [
            1 if at in folded else n for at, n in enumerate(shape) if keepdims or at not in folded
        ]
        if not self.size:
            return full(tuple(result_shape), identity, dtype=values.dtype, device=values.device)
        longest = [at for at, n in enumerate(shape) if n != 1]
        if longest and longest[-1] in kept:  # the order of additions of columns
            result = find()(reshape(permute(values, (*folded, *kept)), (count, size)), 0)
        else:
            result = find()(reshape(permute(values, (*kept, *folded)), (size, count)), 1)
        return reshape(result, tuple(result_shape))

    def when(
        self: TensorSpec, axis: Axes = None, *, keepdims: bool = False, dtype: DType | None = None
    ) -> bool:
        return (dtype or spec_of(self).dtype).kind == "c"

    return Decomposition(body, when)
