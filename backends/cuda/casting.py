"""Copies on the device: any strides, any dtype to any other."""

from __future__ import annotations

import ctypes
import functools
import math

from ...lowering.loops import collapse
from ...operators.expr import arg
from ...registry.dtypes import DType, complex64, complex128, float32, float64
from . import toolkit as tools
from .arrays import DeviceArray, Ints, Layout, contiguous_layout, empty, layout_of
from .emit.eager import write_elementwise
from .emit.kernel import MAX_RANK, CudaKernel, pack_layout
from .launching import Launch, fill_bytes
from .native_keyed import tell
from .rt_eager import ALIGNED
from .tensor import CudaTensor, cuda_tensor
from .views import broadcast

MOST = 1 << 12
PARTS = {complex64: float32, complex128: float64}
_launches: dict[tuple[Layout, Layout, bool], Launch | None] = {}
tools.changed.append(_launches.clear)


def convert_into(target: DeviceArray, source: DeviceArray) -> None:
    """Write the elements of an array, broadcast and cast, into another one that does not overlap it.

    Args:
        target: what is written.
        source: an array on the same device whose shape broadcasts to the target's; not complex where the target is
            real, unless that is bool.
    """
    if not target.layout.size:
        return
    source = broadcast(source, target.shape)
    aligned = not (target.ptr | source.ptr) & 15
    key = target.layout, source.layout, aligned
    try:
        launch = _launches[key]
    except KeyError:
        if len(_launches) >= MOST:
            _launches.clear()
        launch = _launches[key] = _copier(*key)
    if launch is None:
        for i in range(target.shape[0]):
            convert_into(_row(target, i), _row(source, i))
        return
    launch.go((source.ptr, target.ptr), (source, target))


@functools.lru_cache(1 << 10)
def _kernel(source: DType, target: DType, variant: str) -> CudaKernel:
    name = f"cast_{source.name}_{target.name}_{variant}"
    return write_elementwise(name, arg(0, source), (source,), target, variant)


def _row(array: DeviceArray, i: int) -> DeviceArray:
    return array.view(array.shape[1:], array.strides[1:], i * array.strides[0])


def _copier(target: Layout, source: Layout, aligned: bool) -> Launch | None:
    """The launch that copies; None where the axes are too many for one."""
    way = copy_way(source.dtype, target.dtype, target.shape, source.strides, target.strides, aligned)
    if way is None:
        return None
    kernel, rest = way
    staying = ctypes.c_int64(rest) if isinstance(rest, int) else rest
    return Launch(kernel, target.index, kernel.grid, 2, [staying])


def copy_way(
    source: DType, target: DType, shape: Ints, given: Ints, made: Ints, aligned: bool
) -> tuple[CudaKernel, int | bytes] | None:
    """The kernel that copies from some strides to others, with its grid, and its last parameter.

    Args:
        source, target: the dtypes.
        shape: of both arrays.
        given, made: their strides.
        aligned: whether both lie at multiples of 16 bytes.

    Returns:
        None where the axes are too many for one kernel.
    """
    sizes, steps = collapse(shape, [given, made])
    if len(sizes) > MAX_RANK:
        return None
    dense = len(sizes) <= 1 and all(step == (1,) * len(sizes) for step in steps)
    variant = ("contiguous" if aligned else "unaligned") if dense else "strided"
    kernel, count = _kernel(source, target, variant), math.prod(shape)
    grid = (kernel.blocks(count, 1 << 16), 1, 1)
    return kernel._replace(grid=grid), count if dense else pack_layout(sizes, steps)


def _parts(array: DeviceArray) -> DeviceArray:
    """A complex array as a real one with one axis more: real part and imaginary part."""
    layout = array.layout
    strides = (*(2 * step for step in layout.strides), 1)
    return DeviceArray(
        array.ptr, layout_of((*layout.shape, 2), strides, PARTS[layout.dtype], layout.index), array.buffer
    )


def part(array: DeviceArray, which: int) -> DeviceArray:
    """The real (0) or imaginary (1) part of a complex array, as a view."""
    whole = _parts(array)
    return whole.view(array.shape, whole.strides[:-1], which)


def zeros(layout: Layout) -> DeviceArray:
    """A new array of zeros."""
    made = empty(layout)
    fill_bytes(made, 0)
    return made


def copied(array: DeviceArray, dtype: DType | None = None) -> DeviceArray:
    """A contiguous copy of an array, in another dtype if one is given."""
    made = empty(contiguous_layout(array.shape, dtype or array.dtype, array.layout.index))
    convert_into(made, array)
    return made


def copied_tensor(tensor: CudaTensor, dtype: DType | None = None) -> CudaTensor:
    """A contiguous copy of a tensor, in another dtype if one is given; machine code may learn how it is made."""
    made = cuda_tensor(copied(tensor._data, dtype))
    launch = _launches.get((made._data.layout, tensor._data.layout, True))
    return made if launch is None else tell(made, [launch], mask=ALIGNED)


def contiguous(array: DeviceArray, dtype: DType | None = None) -> DeviceArray:
    """The array itself if it is contiguous and of the dtype, else a copy that is."""
    fits = array.layout.contiguous and dtype in (None, array.dtype)
    return array if fits else copied(array, dtype)
