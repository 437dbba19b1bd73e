"""Arrays in device memory: an address, a layout, and the buffer that keeps the memory.

Layouts are cached and shared: two arrays of equal shape, strides, dtype and device normally have the same
:class:`Layout` object, so caches of calls compare layouts by identity.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from ....eager.meta.tensor import is_row_major
from ....errors import UnsupportedError
from ....operators.declare.view_spec import row_major_strides
from ....registry.dtypes import DType, bfloat16
from ....registry.values import TensorSpec
from .memory import Buffer, allocate
from .streams import default_stream, stream_at

Ints = tuple[int, ...]


class Layout:
    """Shape, strides, dtype and device of an array, without its address.

    Attributes:
        shape: sizes of the axes.
        strides: elements from one index to the next, per axis.
        dtype: data type of the elements.
        index: the number of the device.
        size: the number of elements.
        nbytes: ``size`` times the item size.
        contiguous: whether the elements are in row-major order without gaps.
        spec: shape, dtype and device.
        record: the native struct for allocating such a result (``fastpath/result.py``); None before its first use.
    """

    __slots__ = ("contiguous", "dtype", "index", "nbytes", "record", "shape", "size", "spec", "strides")

    def __init__(self, shape: Ints, strides: Ints, dtype: DType, index: int):
        self.shape, self.strides, self.dtype, self.index = shape, strides, dtype, index
        self.size = math.prod(shape)
        self.nbytes = self.size * dtype.itemsize
        self.contiguous = is_row_major(shape, strides)
        self.spec = TensorSpec(shape, dtype, f"cuda:{index}")
        self.record: Any = None

    def span(self) -> tuple[int, int]:
        """Bytes from the element of index 0 to the lowest byte, and to the byte after the highest; 0, 0 if empty."""
        if not self.size:
            return 0, 0
        steps = [step * (size - 1) for size, step in zip(self.shape, self.strides)]
        low, high = sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
        return low * self.dtype.itemsize, (high + 1) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<layout {self.spec} strides {self.strides} on {self.spec.device}>"


MAX_LAYOUTS = 1 << 14
_layouts: dict[tuple[Ints, Ints, DType, int], Layout] = {}
_limit = [MAX_LAYOUTS]


def layout_of(shape: Ints, strides: Ints, dtype: DType, index: int) -> Layout:
    """The layout of a shape and strides, from the cache if possible."""
    key = shape, strides, dtype, index
    result = _layouts.get(key)
    if result is None:
        if len(_layouts) >= _limit[0]:
            _forget_unused()
        result = _layouts[key] = Layout(shape, strides, dtype, index)
    return result


def _forget_unused() -> None:
    """Drop the layouts without other references; native code holds references to the layouts that it compares."""
    for key in list(_layouts):
        if sys.getrefcount(_layouts[key]) == 2:  # the table's, and the argument's
            _layouts.pop(key, None)
    _limit[0] = max(MAX_LAYOUTS, 2 * len(_layouts))


def contiguous_layout(shape: Ints, dtype: DType, index: int) -> Layout:
    """The layout of a new array."""
    return layout_of(shape, row_major_strides(shape), dtype, index)


class DeviceArray:
    """An array in device memory.

    Attributes:
        ptr: the address of the first element (of index 0 on every axis).
        layout: shape, strides, dtype and device.
        buffer: the owner of the memory.
    """

    __slots__ = ("buffer", "layout", "ptr")

    def __init__(self, ptr: int, layout: Layout, buffer: Buffer):
        self.ptr, self.layout, self.buffer = ptr, layout, buffer

    @property
    def shape(self) -> Ints:
        """Sizes of the axes."""
        return self.layout.shape

    @property
    def strides(self) -> Ints:
        """Elements from one index to the next, per axis."""
        return self.layout.strides

    @property
    def dtype(self) -> DType:
        """Data type of the elements."""
        return self.layout.dtype

    @property
    def device(self) -> str:
        """The device's name."""
        return self.layout.spec.device

    def view(self, shape: Ints, strides: Ints, first: int = 0) -> DeviceArray:
        """A view of this array that starts ``first`` elements after its first element."""
        layout = self.layout
        at = self.ptr + first * layout.dtype.itemsize
        return DeviceArray(at, layout_of(shape, strides, layout.dtype, layout.index), self.buffer)

    @property
    def offset(self) -> int:
        """Elements from the start of the buffer to the first element."""
        return (self.ptr - self.buffer.ptr) // self.layout.dtype.itemsize if self.layout.size else 0

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3.

        Raises:
            UnsupportedError: the protocol has no name for bfloat16.
        """
        layout = self.layout
        if layout.dtype is bfloat16:
            raise UnsupportedError(
                "__cuda_array_interface__ has no name for bfloat16; pass the tensor through DLPack: "
                "torch.from_dlpack(x), cupy.from_dlpack(x)"
            )
        step = layout.dtype.itemsize
        stream = stream_at(layout.index)
        self.buffer.used_by(stream)
        self.buffer.used_by(default_stream(self.device))  # other libraries' streams normally wait for it
        return {
            "shape": layout.shape,
            "typestr": layout.dtype.np.str,
            "data": (self.ptr if layout.size else 0, False),
            "version": 3,
            "strides": None if layout.contiguous else tuple(step * stride for stride in layout.strides),
            "stream": stream.handle or 1,  # 1 is the legacy default stream
        }

    def __repr__(self) -> str:
        return f"<array {self.layout.spec} at {self.ptr:#x} on {self.device}>"


def empty(layout: Layout) -> DeviceArray:
    """A new uninitialized array of a contiguous layout.

    Raises:
        OutOfMemoryError: the device has no memory for it.
    """
    buffer = allocate(layout.nbytes, layout.index)
    return DeviceArray(buffer.ptr, layout, buffer)


def overlap(one: DeviceArray, other: DeviceArray) -> bool:
    """Whether two arrays may have an element in common."""
    if one.layout.index != other.layout.index or not one.layout.size or not other.layout.size:
        return False
    (first, last), (start, stop) = span(one), span(other)
    return first < stop and start < last


def span(array: DeviceArray) -> tuple[int, int]:
    """The addresses of the first byte of an array and of the byte after its last."""
    start, stop = array.layout.span()
    return array.ptr + start, array.ptr + stop
