"""Copies and casts on the device, between any strides and dtypes."""

from __future__ import annotations

import ctypes
import functools
import math

from ....lowering.fusion.loop_ir import collapse
from ....operators.scalar_ir.expr import arg
from ....registry.dtypes import DType, complex64, complex128, float32, float64
from ..codegen.eager import write_elementwise
from ..codegen.kernel import MAX_RANK, CudaKernel, pack_layout
from ..fastpath.call_cache import report_launches
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray, Ints, Layout, contiguous_layout, empty, layout_of
from ..runtime.launching import Launch, fill_bytes
from .tensor import CudaTensor, cuda_tensor
from .views import broadcast

MAX_LAUNCHES = 1 << 12
PARTS = {complex64: float32, complex128: float64}
_launches: dict[tuple[Layout, Layout, bool], Launch | None] = {}
tools.change_listeners.append(_launches.clear)


def convert_into(target: DeviceArray, source: DeviceArray) -> None:
    """Copy an array, broadcast and cast, into another one that does not overlap it.

    Args:
        target: the array to write.
        source: an array on the same device whose shape broadcasts to the target's; not complex if the target is real,
            unless the target is bool.
    """
    if not target.layout.size:
        return
    source = broadcast(source, target.shape)
    aligned = not (target.ptr | source.ptr) & 15
    key = target.layout, source.layout, aligned
    try:
        launch = _launches[key]
    except KeyError:
        if len(_launches) >= MAX_LAUNCHES:
            _launches.clear()
        launch = _launches[key] = _make_launch(*key)
    if launch is None:
        for i in range(target.shape[0]):
            convert_into(_row(target, i), _row(source, i))
        return
    launch.run((source.ptr, target.ptr), (source, target))


@functools.lru_cache(1 << 10)
def _write_kernel(source: DType, target: DType, variant: str) -> CudaKernel:
    name = f"cast_{source.name}_{target.name}_{variant}"
    return write_elementwise(name, arg(0, source), (source,), target, variant)


def _row(array: DeviceArray, i: int) -> DeviceArray:
    return array.view(array.shape[1:], array.strides[1:], i * array.strides[0])


def _make_launch(target: Layout, source: Layout, aligned: bool) -> Launch | None:
    """The launch of a copy; None if there are too many axes for one kernel."""
    strategy = choose_copy_kernel(
        source.dtype, target.dtype, target.shape, source.strides, target.strides, aligned
    )
    if strategy is None:
        return None
    kernel, rest = strategy
    staying = ctypes.c_int64(rest) if isinstance(rest, int) else rest
    return Launch(kernel, target.index, kernel.grid, 2, [staying])


def choose_copy_kernel(
    source: DType, target: DType, shape: Ints, given: Ints, wanted: Ints, aligned: bool
) -> tuple[CudaKernel, int | bytes] | None:
    """The kernel, with its grid, and the last parameter of a copy between strides.

    Args:
        source, target: the dtypes.
        shape: of both arrays.
        given, wanted: their strides.
        aligned: whether both addresses are multiples of 16.

    Returns:
        None if there are too many axes for one kernel.
    """
    sizes, steps = collapse(shape, [given, wanted])
    if len(sizes) > MAX_RANK:
        return None
    dense = len(sizes) <= 1 and all(step == (1,) * len(sizes) for step in steps)
    variant = ("contiguous" if aligned else "unaligned") if dense else "strided"
    kernel, count = _write_kernel(source, target, variant), math.prod(shape)
    grid = (kernel.blocks(count, 1 << 16), 1, 1)
    return kernel._replace(grid=grid), count if dense else pack_layout(sizes, steps)


def _as_parts(array: DeviceArray) -> DeviceArray:
    """View a complex array as a real one with a last axis of real and imaginary part."""
    layout = array.layout
    strides = (*(2 * step for step in layout.strides), 1)
    return DeviceArray(
        array.ptr, layout_of((*layout.shape, 2), strides, PARTS[layout.dtype], layout.index), array.buffer
    )


def part(array: DeviceArray, which: int) -> DeviceArray:
    """The real (0) or imaginary (1) part of a complex array, as a view."""
    whole = _as_parts(array)
    return whole.view(array.shape, whole.strides[:-1], which)


def zeros(layout: Layout) -> DeviceArray:
    """A new array of zeros."""
    result = empty(layout)
    fill_bytes(result, 0)
    return result


def copy_array(array: DeviceArray, dtype: DType | None = None) -> DeviceArray:
    """A contiguous copy of an array, in another dtype if one is given."""
    result = empty(contiguous_layout(array.shape, dtype or array.dtype, array.layout.index))
    convert_into(result, array)
    return result


def copy_tensor(tensor: CudaTensor, dtype: DType | None = None) -> CudaTensor:
    """A contiguous copy of a tensor, in another dtype if one is given; the launch is reported to the call cache."""
    result = cuda_tensor(copy_array(tensor._data, dtype))
    launch = _launches.get((result._data.layout, tensor._data.layout, True))
    return result if launch is None else report_launches(result, [launch], any_address=False)


def contiguous(array: DeviceArray, dtype: DType | None = None) -> DeviceArray:
    """The array itself if it is contiguous and has the dtype, else a contiguous copy in the dtype."""
    fits = array.layout.contiguous and dtype in (None, array.dtype)
    return array if fits else copy_array(array, dtype)
