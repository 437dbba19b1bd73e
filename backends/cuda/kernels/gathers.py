"""Gather, scatter, scatter-add and nonzero in eager calls.

A kernel may find an index out of bounds after the call has returned. It accesses no memory there and reports the call's
number; the host raises the error when it next waits for the device (:mod:`tandem.backends.cuda.runtime.faults`).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from ....lowering.layout import Layout
from ....registry.dtypes import int64, uint8
from ..launches.prewritten_text import Address, Launch, Scratch, Struct
from ..runtime import faults
from ..runtime.arrays import DeviceArray, contiguous_layout, empty
from ..runtime.launching import launch, launch_source
from . import positions
from .positions import MOST, Selection

Ints = tuple[int, ...]


def _layout(array: DeviceArray) -> Layout:
    return Layout(array.shape, array.strides)


def _selection(
    name: str, base: DeviceArray, indices: Sequence[DeviceArray], shape: Ints, axis: int
) -> Selection:
    limits = base.shape[axis : axis + len(indices)]
    call = faults.register_call(base.layout.index, name, axis, limits)
    return Selection(name, _layout(base), axis, shape, [_layout(one) for one in indices], 2, call)


def _alignment(*arrays: DeviceArray) -> int:
    """The largest power of two that divides the addresses of arrays, at most the size of the widest access."""
    bits = positions.WIDEST
    for array in arrays:
        bits |= array.ptr
    return bits & -bits


def _run(launches: Sequence[Launch], operands: Sequence[DeviceArray]) -> None:
    """Run launches in the current stream of the operands' device.

    Args:
        launches: in order.
        operands: the arrays of :class:`Address` numbers.
    """
    index = operands[0].layout.index
    nbytes = max((one.kernel.temporaries for one in launches), default=0)
    scratch = empty(contiguous_layout((nbytes,), uint8, index)) if nbytes else None

    def word(one: Any) -> int:
        if isinstance(one, Address):
            return operands[one.number].ptr
        if isinstance(one, Scratch) and scratch is not None:
            return scratch.ptr + one.offset
        return int(one.make(index))

    for one in launches:
        values = [
            positions.pack_struct(param, word)
            if isinstance(param, Struct)
            else ctypes.c_int64(param if isinstance(param, int) else word(param))
            for param in one.params
        ]
        launch(one.kernel, index, one.kernel.grid, values, operands)


def gather(
    name: str, array: DeviceArray, indices: Sequence[DeviceArray], shape: Ints, axis: int
) -> DeviceArray:
    """Gather the elements at integer positions into a new array.

    Args:
        name: of the operator, for messages.
        array: the array to read.
        indices: arrays of int64 for consecutive axes.
        shape: their common shape.
        axis: the first of the axes.
    """
    one = _selection(name, array, indices, shape, axis)
    out = empty(contiguous_layout(one.selected, array.dtype, array.layout.index))
    if out.layout.size:
        size = array.dtype.itemsize
        _run(
            positions.gather(one, size, _alignment(array, out), Address(0), Address(1)),
            [array, out, *indices],
        )
    return out


def scatter(
    name: str, out: DeviceArray, indices: Sequence[DeviceArray], value: DeviceArray, shape: Ints, axis: int
) -> None:
    """Write values to integer positions; of several values for one position the last one counts.

    Args:
        name: of the operator, for messages.
        out: the array to write.
        indices: arrays of int64 for consecutive axes.
        value: the values, of the shape that the indices select, and of ``out``'s dtype.
        shape: the common shape of the indices.
        axis: the first of the axes.
    """
    one, size = _selection(name, out, indices, shape, axis), out.dtype.itemsize
    launches = positions.put(one, size, _alignment(out, value), _layout(value), Address(1), Address(0))
    _run(launches, [out, value, *indices])


def scatter_combine(
    name: str,
    op: str,
    out: DeviceArray,
    indices: Sequence[DeviceArray],
    value: DeviceArray,
    shape: Ints,
    axis: int,
) -> None:
    """Add or multiply values at integer positions, which may repeat; the other arguments are those of :func:`scatter`.

    The dtype of both arrays has to be its own :func:`.positions.accumulator`; ``op`` is that of
    :func:`.positions.combine`.
    """
    one = _selection(name, out, indices, shape, axis)
    launches = positions.combine(one, op, out.dtype, _layout(value), Address(1), Address(0))
    _run(launches, [out, value, *indices])


def nonzero(order: DeviceArray, shape: Ints, size: int, fill_value: int) -> DeviceArray:
    """The positions of nonzero elements.

    Args:
        order: the cumulative sum of the nonzero mask of an array of ``shape``; contiguous, int64.
        shape: of the array.
        size: the number of positions to return.
        fill_value: fills the result if there are fewer.

    Returns:
        An int64 array of shape ``(len(shape), size)``.
    """
    at = order.layout.index
    out = empty(contiguous_layout((len(shape), size), int64, at))
    if out.layout.size:
        launch_source(
            "fill_8", out, out.layout.size, [out, out.layout.size, struct.pack("<q", fill_value)], [out]
        )
    if out.layout.size and order.layout.size:
        count = order.layout.size
        sizes = struct.pack("<18q", len(shape), count, *shape, *(0,) * (2 * MOST - len(shape)))
        launch_source("nonzero_places", out, count, [out, order, count, size, sizes], [out, order])
    return out
