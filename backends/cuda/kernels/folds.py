"""Kernels of reductions.

An array is viewed as (outer, reduced, inner), with the reduced axes merged to one. If its strides do not allow that
view, a transposed copy is reduced.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

from ....operators.declare.shape_rules import normalize_axes
from ....operators.scalar_ir.fold import Fold
from ....registry.dtypes import DType, default_listeners
from ....registry.operator import Operator
from ..codegen.eager_folds import write_reduction
from ..codegen.kernel import CudaKernel
from ..codegen.schedule import COLUMNS, ENOUGH_BLOCKS, FULL_BLOCKS
from ..fastpath.call_cache import CallCache, report_launches
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray, Layout, contiguous_layout, empty
from ..runtime.launching import Launch
from ..runtime.memory import allocate
from .casting import contiguous
from .tensor import CudaTensor, cuda_tensor
from .views import permute

SHORT_ROW = 256
LONG_ROW = 1 << 14
LONG_COLUMN = 512
LEAST_PART = 64
LEAST_ROW = 1 << 12
BLOCKS = 1 << 16
MOST_PLANS = 1 << 12
Ints = tuple[int, ...]
Sizes = tuple[int, int, int]


@functools.lru_cache(1 << 12)
def _write_kernels(fold: Fold, dtype: DType, out: DType, variant: str) -> list[CudaKernel]:
    return write_reduction(f"{fold.name}_{dtype.name}_{out.name}_{variant}", fold, dtype, out, variant)


def fold_sizes(layout: Layout, axes: Ints) -> tuple[Sizes, bool]:
    """The (outer, reduced, inner) sizes of an array reduced over axes, and whether its memory has that order."""
    if layout.contiguous:
        kept = [axis for axis in range(len(layout.shape)) if layout.shape[axis] != 1]
        over = [axis for axis in kept if axis in axes]
        if not over or kept[kept.index(over[0]) : kept.index(over[-1]) + 1] == over:
            first = over[0] if over else len(layout.shape)
            last = over[-1] if over else first
            return (
                math.prod(layout.shape[:first]),
                math.prod(layout.shape[axis] for axis in axes),
                math.prod(layout.shape[last + 1 :]) if over else 1,
            ), True
    outside = [size for axis, size in enumerate(layout.shape) if axis not in axes]
    return (math.prod(outside), math.prod(layout.shape[axis] for axis in axes), 1), False


def choose_fold_variant(sizes: Sizes) -> tuple[str, int]:
    """Choose the kernel variant of a reduction of (outer, reduced, inner) elements.

    Returns:
        A variant of ``write_reduction``, and the number of blocks that share a row or a column.
    """
    outer, reduced, inner = sizes
    if inner > 1:
        blocks = -(-inner // COLUMNS) * outer
        if blocks < ENOUGH_BLOCKS and reduced >= LONG_COLUMN:
            return "split_columns", min(FULL_BLOCKS // blocks, -(-reduced // LEAST_PART))
        return "columns", 1
    if outer < ENOUGH_BLOCKS and reduced > LONG_ROW:
        return "split_rows", min(FULL_BLOCKS // max(outer, 1), -(-reduced // LEAST_ROW))
    return ("short_rows" if reduced <= SHORT_ROW else "rows"), 1


class FoldPlan:
    """The launches of a reduction of arrays of one layout."""

    __slots__ = ("launches", "order", "out", "temporaries")

    def __init__(self, fold: Fold, layout: Layout, axes: Ints, shape: Ints, dtype: DType):
        self.out = contiguous_layout(shape, dtype, layout.index)
        sizes, in_order = fold_sizes(layout, axes)
        self.order = None if in_order else (*(a for a in range(len(layout.shape)) if a not in axes), *axes)
        self.temporaries = 0
        self.launches = self._make_launches(fold, layout, sizes) if self.out.size else []

    def _make_launches(self, fold: Fold, layout: Layout, sizes: Sizes) -> list[Launch]:
        outer, reduced, inner = sizes
        variant, parts = choose_fold_variant(sizes)
        kernels = _write_kernels(fold, layout.dtype, self.out.dtype, variant)
        self.temporaries = outer * parts * inner * kernels[0].temporaries
        if variant == "split_rows":
            return [
                self._make_launch(kernels[0], (parts, outer, 1), [reduced]),
                self._make_launch(kernels[1], (outer, 1, 1), [parts]),
            ]
        if variant in ("rows", "short_rows"):
            return [self._make_launch(kernels[0], (kernels[0].blocks(outer, BLOCKS), 1, 1), [outer, reduced])]
        grid = kernels[0].blocks(inner, BLOCKS), max(1, min(outer, 65535))
        first = self._make_launch(kernels[0], (*grid, parts), [outer, reduced, inner])
        more = [self._make_launch(kernel, (*grid, 1), [outer, parts, inner]) for kernel in kernels[1:]]
        return [first, *more]

    def _make_launch(self, kernel: CudaKernel, grid: tuple[int, int, int], counts: list[int]) -> Launch:
        return Launch(kernel, self.out.index, grid, 2, [ctypes.c_int64(n) for n in counts])

    def run(self, array: DeviceArray) -> DeviceArray:
        """The result, as a new array."""
        result = empty(self.out)
        if not self.launches:
            return result
        given = array if self.order is None else contiguous(permute(array, self.order))
        buffers = [given, result]
        if len(self.launches) == 2:
            buffer = allocate(self.temporaries, self.out.index)
            scratch = DeviceArray(buffer.ptr, result.layout, buffer)
            buffers = [given, scratch, result]
        for launch, source, target in zip(self.launches, buffers, buffers[1:]):
            launch.run((source.ptr, target.ptr), (source, target))
        return result


def reduction_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of a reduction."""
    decl, name = op.decl, op.schema.name
    plans: dict[tuple[Any, ...], FoldPlan] = {}
    entries = CallCache(op)
    tools.change_listeners.append(plans.clear)
    default_listeners.append(plans.clear)

    def kernel(
        self: CudaTensor, axis: Any = None, *, keepdims: bool = False, dtype: DType | None = None
    ) -> Any:
        layout = self._data.layout
        key = layout, axis, keepdims, dtype
        plan = plans.get(key)
        if plan is None:
            options = {} if dtype is None else {"dtype": dtype}
            spec = decl.shape_rule(self, axis, keepdims=keepdims, **options)
            given = (axis,) if type(axis) is int else axis
            axes = normalize_axes(name, given, len(layout.shape))
            if len(plans) >= MOST_PLANS:
                plans.clear()
            plan = plans[key] = FoldPlan(decl.fold, layout, axes, spec.shape, spec.dtype)
            entries.install_if_free()
        result = cuda_tensor(plan.run(self._data))
        return result if plan.order else report_launches(result, plan.launches, plan.temporaries)

    entries.kernel = kernel
    return kernel
