"""Reductions and scans on the device.

The reduced axes of an array become one, between those outside and those inside of it. Where the array lies so, its
memory is read as it is; else a copy in that order is.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

from ...operators.rules import normalize_axes, normalize_axis
from ...registry.dtypes import DType
from ...registry.operator import Operator
from . import toolkit as tools
from .arrays import DeviceArray, Layout, contiguous_layout, empty
from .casting import contiguous, copied
from .emit.eager_folds import PARTIALS, write_reduction, write_scan
from .emit.kernel import CudaKernel
from .emit.types import CTYPE
from .launching import Launch
from .library import library
from .memory import allocate
from .tensor import CudaTensor, cuda_tensor
from .views import permuted

SHORT_ROW = 256
LONG_ROW = 1 << 14
FEW_ROWS = 8
BLOCKS = 1 << 16
MOST_PLANS = 1 << 12
Ints = tuple[int, ...]
Sizes = tuple[int, int, int]


@functools.lru_cache(1 << 12)
def _reducers(fold: str, dtype: DType, out: DType, variant: str) -> list[CudaKernel]:
    return write_reduction(f"{fold}_{dtype.name}_{out.name}_{variant}", fold, dtype, out, variant)


@functools.lru_cache(1 << 12)
def _scanner(node: str, dtype: DType, out: DType, variant: str) -> CudaKernel:
    return write_scan(f"scan_{node}_{dtype.name}_{out.name}_{variant}", node, dtype, out, variant)


def arranged(layout: Layout, axes: Ints) -> tuple[Sizes, bool]:
    """(outer, reduced, inner) sizes of an array reduced over axes, and whether it lies in that order without gaps."""
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


class FoldPlan:
    """How a reduction of an array of one layout runs: its kernels with what stays of their parameters."""

    __slots__ = ("_launches", "order", "out", "temporaries")

    def __init__(self, fold: str, layout: Layout, axes: Ints, shape: Ints, dtype: DType):
        self.out = contiguous_layout(shape, dtype, layout.index)
        sizes, in_order = arranged(layout, axes)
        self.order = None if in_order else (*(a for a in range(len(layout.shape)) if a not in axes), *axes)
        self.temporaries = 0
        self._launches = self._planned(fold, layout, sizes) if self.out.size else []

    def _planned(self, fold: str, layout: Layout, sizes: Sizes) -> list[Launch]:
        outer, reduced, inner = sizes
        if inner > 1:
            variant = "columns"
        elif outer == 1 and reduced > LONG_ROW:
            variant = "split"
        else:
            variant = "short_rows" if reduced <= SHORT_ROW else "rows"
        kernels = _reducers(fold, layout.dtype, self.out.dtype, variant)
        if variant == "split":
            blocks = kernels[0].blocks(reduced, PARTIALS)
            self.temporaries = kernels[0].temporaries
            return [
                self._launch(kernels[0], (blocks, 1, 1), [reduced]),
                self._launch(kernels[1], (1, 1, 1), [blocks]),
            ]
        (kernel,) = kernels
        if variant == "columns":
            grid = (kernel.blocks(inner, BLOCKS), max(1, min(outer, 65535)), 1)
            return [self._launch(kernel, grid, [outer, reduced, inner])]
        return [self._launch(kernel, (kernel.blocks(outer, BLOCKS), 1, 1), [outer, reduced])]

    def _launch(self, kernel: CudaKernel, grid: tuple[int, int, int], counts: list[int]) -> Launch:
        return Launch(kernel, self.out.index, grid, 2, [ctypes.c_int64(n) for n in counts])

    def run(self, array: DeviceArray) -> DeviceArray:
        """The result, as a new array."""
        made = empty(self.out)
        if not self._launches:
            return made
        given = array if self.order is None else contiguous(permuted(array, self.order))
        places = [given, made]
        if len(self._launches) == 2:
            buffer = allocate(self.temporaries, self.out.index)
            scratch = DeviceArray(buffer.ptr, made.layout, buffer)
            places = [given, scratch, made]
        for launch, source, target in zip(self._launches, places, places[1:]):
            launch.go((source.ptr, target.ptr), (source, target))
        return made


def reduction_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of a reduction that is a fold."""
    decl, name = op.decl, op.schema.name
    plans: dict[tuple[Any, ...], FoldPlan] = {}
    tools.changed.append(plans.clear)

    def kernel(
        self: CudaTensor, axis: Any = None, *, keepdims: bool = False, dtype: DType | None = None
    ) -> Any:
        layout = self._data.layout
        key = layout, axis, keepdims, dtype
        plan = plans.get(key)
        if plan is None:
            options = {} if dtype is None else {"dtype": dtype}
            spec = decl.meta(self, axis, keepdims=keepdims, **options)
            if layout.dtype not in CTYPE or spec.dtype not in CTYPE:
                return _by_library(decl.reduce, self, spec, axis=axis, keepdims=keepdims)
            given = (axis,) if type(axis) is int else axis
            axes = normalize_axes(name, given, len(layout.shape))
            if len(plans) >= MOST_PLANS:
                plans.clear()
            plan = plans[key] = FoldPlan(decl.reduce, layout, axes, spec.shape, spec.dtype)
        return cuda_tensor(plan.run(self._data))

    return kernel


SCANS = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


def scan_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of a scan."""
    decl, name = op.decl, op.schema.name

    def kernel(self: CudaTensor, axis: int | None = None, *, dtype: DType | None = None) -> Any:
        spec = decl.meta(self, axis, dtype=dtype)
        data = self._data
        if data.dtype not in CTYPE or spec.dtype not in CTYPE:
            return _by_library(f"cum{decl.reduce}", self, spec, axis=axis if data.shape else None)
        shape = data.shape
        given = contiguous(data)
        made = empty(contiguous_layout(spec.shape, spec.dtype, data.layout.index))
        if made.layout.size:
            along = None if axis is None or not shape else normalize_axis(name, axis, len(shape))
            outer, length, inner = (
                (1, data.layout.size, 1)
                if along is None
                else (math.prod(shape[:along]), shape[along], math.prod(shape[along + 1 :]))
            )
            _scan(SCANS[decl.reduce], given, made, outer, length, inner)
        return cuda_tensor(made)

    return kernel


def _scan(node: str, given: DeviceArray, made: DeviceArray, outer: int, length: int, inner: int) -> None:
    variant = "columns" if inner > 1 else "rows"
    kernel = _scanner(node, given.dtype, made.dtype, variant)
    lines = outer * inner
    counts = [outer, length, inner] if inner > 1 else [outer, length]
    launch = Launch(
        kernel,
        made.layout.index,
        (kernel.blocks(lines, BLOCKS), 1, 1),
        2,
        [ctypes.c_int64(n) for n in counts],
    )
    launch.go((given.ptr, made.ptr), (given, made))


def _by_library(function: str, self: CudaTensor, spec: Any, **options: Any) -> CudaTensor:
    """A fold of complex numbers, or to some: of the array library."""
    found, data = library(), self._data
    if not function.endswith(("any", "all")):
        data = data if data.dtype is spec.dtype else copied(data, spec.dtype)
    with found.on(data.layout.index):
        result = getattr(found.xp, function)(found.view(data), **options)
        return cuda_tensor(found.adopt(found.xp.asarray(result).astype(spec.dtype.np), data.layout.index))
