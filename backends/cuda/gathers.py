"""Indexing by tensors on the device: reading, writing, adding, and the positions of what is not zero.

An index out of bounds is met on the device, after the call has returned. Nothing is read or written there; the call's
number is noted in the device's memory, and whoever waits for the device next raises the error (:mod:`.faults`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from ...errors import UnsupportedError
from ...lowering.loops import collapse
from ...registry.dtypes import DType, float32, int32, int64, uint64
from . import faults
from .arrays import DeviceArray, contiguous_layout, empty
from .launching import fill_bytes, launch_text
from .views import broadcast

Ints = tuple[int, ...]
MOST = 8  # index tensors of a call, and dimensions of a segment


def segment(name: str, shape: Ints, strides: Ints) -> bytes:
    """A ``Segment`` of :mod:`.texts`: some dimensions of an array.

    Raises:
        UnsupportedError: they are more than 8 that do not merge.
    """
    sizes, (steps,) = collapse(shape, [strides])
    if len(sizes) > MOST:
        raise UnsupportedError(
            f"{name}: on CUDA at most {MOST} axes that do not lie in order, not {len(sizes)}"
        )
    pad = (0,) * (MOST - len(sizes))
    return struct.pack("<18q", len(sizes), math.prod(shape), *sizes, *pad, *steps, *pad)


class Picked:
    """Index tensors for consecutive axes of an array, as kernels take them.

    Args:
        name: of the operator, for messages.
        into: the array that is indexed.
        indices: arrays of int64 on its device.
        shape: their common shape.
        axis: the first of the indexed axes.
    """

    def __init__(self, name: str, into: DeviceArray, indices: Sequence[DeviceArray], shape: Ints, axis: int):
        if len(indices) > MOST:
            raise UnsupportedError(f"{name}: on CUDA at most {MOST} index tensors, not {len(indices)}")
        self.name, self.indices, self.shape = name, [broadcast(one, shape) for one in indices], shape
        stop = axis + len(indices)
        self.limits = into.shape[axis:stop]
        self.count = math.prod(shape)
        self.before = segment(name, into.shape[:axis], into.strides[:axis])
        self.after = segment(name, into.shape[stop:], into.strides[stop:])
        self.after_count = math.prod(into.shape[stop:])
        self.before_count = math.prod(into.shape[:axis])
        self._steps = into.strides[axis:stop]
        self._first = axis

    @property
    def size(self) -> int:
        """How many elements are selected."""
        return self.before_count * self.count * self.after_count

    def packed(self, steps: Ints | None = None) -> bytes:
        """The ``Indices`` of :mod:`.texts`; ``steps`` instead of the array's own strides."""
        index = self.indices[0].layout.index
        call = faults.number(index, self.name, self._first, self.limits)
        strides, places = [one.strides for one in self.indices], [one.ptr for one in self.indices]
        words = indices_words(self.name, self.shape, strides, self.limits, steps or self._steps, call, places)
        return struct.pack(f"<{len(words)}q", *words)


def indices_words(
    name: str,
    shape: Ints,
    strides: Sequence[Ints],
    limits: Ints,
    steps: Ints,
    call: Any,
    places: Sequence[Any],
) -> list[Any]:
    """The words of an ``Indices`` of :mod:`.texts`.

    Args:
        name: of the operator, for messages.
        shape: the common shape of the index tensors.
        strides: of each of them.
        limits: sizes of the indexed axes.
        steps: strides along these axes.
        call: the number of the call, or what stands for it.
        places: addresses of the index tensors, or what stands for them.
    """
    pad = [0] * (MOST - len(strides))
    layouts = [struct.unpack("<18q", segment(name, shape, own)) for own in strides]
    words = [len(strides), call, *(word for layout in layouts for word in layout), *(pad * 18)]
    return [*words, *limits, *pad, *steps, *pad, *places, *pad]


def gather(
    name: str, array: DeviceArray, indices: Sequence[DeviceArray], shape: Ints, axis: int
) -> DeviceArray:
    """The elements at integer positions, as a new array.

    Args:
        name: of the operator, for messages.
        array: what is read.
        indices: arrays of int64 for consecutive axes.
        shape: their common shape.
        axis: the first of the axes.
    """
    picked = Picked(name, array, indices, shape, axis)
    stop = axis + len(indices)
    whole = (*array.shape[:axis], *shape, *array.shape[stop:])
    out = empty(contiguous_layout(whole, array.dtype, array.layout.index))
    if out.layout.size:
        launch_text(
            f"gather_{array.dtype.itemsize}",
            out,
            out.layout.size,
            [out, array, faults.place(array.layout.index), out.layout.size, picked.before, picked.packed()]
            + [picked.after, picked.count],
            [array, *picked.indices],
        )
    return out


def scatter(
    name: str, out: DeviceArray, indices: Sequence[DeviceArray], value: DeviceArray, shape: Ints, axis: int
) -> None:
    """Write values to integer positions; of several for one place the last stays.

    Args:
        name: of the operator, for messages.
        out: what is written.
        indices: arrays of int64 for consecutive axes.
        value: the values, of the shape that the indices select, and of ``out``'s dtype.
        shape: the common shape of the indices.
        axis: the first of the axes.
    """
    picked = Picked(name, out, indices, shape, axis)
    if not picked.size:
        return
    at, fault = out.layout.index, faults.place(out.layout.index)
    steps = contiguous_layout(picked.limits, int64, at).strides
    places, last = picked.packed(steps), None
    if picked.count > 1:
        last = empty(contiguous_layout((math.prod(picked.limits),), uint64, at))
        fill_bytes(last, 0)
        launch_text(
            "winners", out, picked.count, [last, fault, places, picked.count], [last, *picked.indices]
        )
    launch_text(
        f"scatter_{out.dtype.itemsize}",
        out,
        picked.size,
        [out, value, last, fault, picked.size, picked.before, places, picked.packed(), picked.after]
        + [segment(name, value.shape, value.strides), picked.count],
        [out, value, *picked.indices] + ([last] if last else []),
    )


def accumulator(dtype: DType) -> DType:
    """The dtype that elements of ``dtype`` are added up in: one that the device adds to in one step."""
    if dtype.kind in "biu":
        return int32 if dtype.itemsize < 4 else dtype
    return dtype if dtype.itemsize > 2 else float32


def adding(dtype: DType) -> tuple[str, int]:
    """How elements of a dtype that is its own :func:`accumulator` are added: as which numbers, and how many of them."""
    parts = 2 if dtype.kind == "c" else 1
    bits = 8 * dtype.itemsize // parts
    return f"{'float' if dtype.is_inexact else 'uint'}{bits}", parts


def scatter_add(
    name: str, out: DeviceArray, indices: Sequence[DeviceArray], value: DeviceArray, shape: Ints, axis: int
) -> None:
    """Add values at integer positions, all of those for one place; the arguments are those of :func:`scatter`.

    Both arrays are of a dtype that is its own :func:`accumulator`.
    """
    picked = Picked(name, out, indices, shape, axis)
    if not picked.size:
        return
    number, parts = adding(out.dtype)
    launch_text(
        f"scatter_add_{number}",
        out,
        picked.size,
        [
            out,
            value,
            faults.place(out.layout.index),
            picked.size,
            picked.before,
            picked.packed(),
            picked.after,
        ]
        + [segment(name, value.shape, value.strides), picked.count, parts],
        [out, value, *picked.indices],
    )


def nonzero(order: DeviceArray, shape: Ints, size: int, fill_value: int) -> DeviceArray:
    """The positions of what is not zero.

    Args:
        order: for each element of an array of ``shape``, how many up to it are not zero; contiguous, int64.
        shape: of the array.
        size: how many positions are wanted.
        fill_value: the position where there are fewer.

    Returns:
        An int64 array of shape ``(len(shape), size)``.
    """
    at = order.layout.index
    out = empty(contiguous_layout((len(shape), size), int64, at))
    if out.layout.size:
        launch_text(
            "fill_8", out, out.layout.size, [out, out.layout.size, struct.pack("<q", fill_value)], [out]
        )
    if out.layout.size and order.layout.size:
        count = order.layout.size
        sizes = struct.pack("<18q", len(shape), count, *shape, *(0,) * (2 * MOST - len(shape)))
        launch_text("nonzero_places", out, count, [out, order, count, size, sizes], [out, order])
    return out
