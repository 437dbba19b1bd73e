"""Scatter and scatter-add in compiled graphs: the launches of prewritten kernels."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from ....errors import UnsupportedError
from ....lowering.layout import Layout, contiguous
from ....lowering.thunks import NodeThunk
from ....operators.declare.shape_rules import normalize_axis
from ....operators.indexing.gather import index_shape
from ....registry.dtypes import DType, int64
from ....registry.values import TensorSpec
from ....tracer.graph import Node, Value
from ..kernels import positions
from ..kernels.casting import choose_copy_kernel
from ..kernels.positions import MOST, Selection, accumulator, broadcast
from .prewritten_text import FAULT, Address, Launch, Struct, fault_number, make_source_launch


def are_tensors(*values: Any) -> bool:
    """Whether all arguments are tensors, and not weak values (Python numbers of a call)."""
    return all(isinstance(value, Value) and value.weak is None for value in values)


# -- supported nodes ---------------------------------------------------------------------------------------------------
def can_add_rows(node: Node) -> bool:
    """Whether the kernels support a node of ``cuda::add_rows``."""
    indices, value = node.args[:2]
    return _fits_kernels(node, value, indices) and accumulator(value.spec.dtype) is value.spec.dtype


def can_put(node: Node) -> bool:
    """Whether the kernels support a node of ``index_put``."""
    array, indices, value = node.args[:3]
    if not (are_tensors(value) and _fits_kernels(node, array, indices)):
        return False
    dtype = array.spec.dtype
    fits = len(value.shape) <= MOST and value.spec.dtype is dtype
    return fits and (not node.kwargs["accumulate"] or accumulator(dtype) is dtype)


def can_check(node: Node) -> bool:
    """Whether the kernel supports a node of ``cuda::checked_index``."""
    return node.args[0].spec.dtype is int64


def _fits_kernels(node: Node, array: Any, indices: Sequence[Any]) -> bool:
    if not are_tensors(array, *indices) or any(one.spec.dtype is not int64 for one in indices):
        return False
    axes = MOST - int(array.spec.dtype.kind == "c")  # the parts of complex numbers are one more
    return bool(max(len(indices), *(len(value.shape) for value in (array, *indices, *node.outputs))) <= axes)


# -- the launches ------------------------------------------------------------------------------------------------------
def check_positions(step: NodeThunk) -> list[Launch]:
    """The launch that makes positions nonnegative and checks their bounds."""
    _, size, axis = step.node.args
    count = step.node.outputs[0].spec.size
    call = fault_number("index", axis, (size,))
    return [make_source_launch("checked_index", count, Address(1), Address(0), FAULT, count, size, call)]


def add_rows(step: NodeThunk) -> list[Launch]:
    """The launches that fill the result with zeros and add the rows."""
    (indices, _, shape, axis), out = step.node.args, step.node.outputs[0]
    *slots, given = [layout for _, layout in step.operands]
    width = out.spec.dtype.itemsize
    zero = Struct((0, 0)) if width == 16 else 0
    end = Address(len(step.operands))
    fill = make_source_launch(f"fill_{width}", out.spec.size, end, out.spec.size, zero)
    one = _selection("index_put", contiguous(shape), (indices, axis), slots, 0)
    value = broadcast(given, one.selected)
    return _share_scratch([fill, *positions.add(one, out.spec.dtype, value, Address(len(slots)), end)])


def put(step: NodeThunk) -> list[Launch]:
    """The launches that copy an array, and write or add values into the copy."""
    (_, indices, _, axis), out = step.node.args, step.node.outputs[0]
    base, *slots, given = [layout for _, layout in step.operands]
    end, source, dtype = Address(len(step.operands)), Address(len(step.operands) - 1), out.spec.dtype
    one = _selection("index_put", contiguous(out.shape), (indices, axis), slots, 1)
    value = broadcast(given, one.selected)
    if step.node.kwargs["accumulate"]:
        launches = positions.add(one, dtype, value, source, end)
    else:
        launches = positions.put(one, dtype.itemsize, _alignment(dtype.itemsize, given), value, source, end)
    return _share_scratch([_copy_base(base, dtype, end), *launches])


def _share_scratch(launches: list[Launch]) -> list[Launch]:
    """The launches of a node, each with the scratch memory of the whole node."""
    most = max(launch.kernel.temporaries for launch in launches)
    return [launch._replace(kernel=launch.kernel._replace(temporaries=most)) for launch in launches]


def _alignment(size: int, layout: Layout) -> int:
    """The alignment of an operand in bytes; buffers are aligned to 16 bytes."""
    return math.gcd(16, size * layout.offset)


def _copy_base(base: Layout, dtype: DType, to: Address) -> Launch:
    """The launch that copies the first operand."""
    strides = contiguous(base.shape).strides
    strategy = choose_copy_kernel(
        dtype, dtype, base.shape, base.strides, strides, base.offset * dtype.itemsize % 16 == 0
    )
    if strategy is None:
        raise UnsupportedError(
            f"an array of {len(base.shape)} axes that do not merge is not copied by a kernel"
        )
    kernel, rest = strategy
    last = rest if isinstance(rest, int) else Struct(struct.unpack(f"<{len(rest) // 8}q", rest))
    return Launch(kernel, (Address(0), to, last))


# -- positions ---------------------------------------------------------------------------------------------------------
def _selection(name: str, base: Layout, which: Any, indices: Sequence[Layout], first: int) -> Selection:
    """The elements of an array that index tensors select.

    Args:
        name: of the operator, for messages.
        base: the layout of the array.
        which: the index tensors, and the first of the axes that they index.
        indices: the layouts of the index tensors.
        first: the number of the first index tensor among the step's operands.
    """
    specs: list[TensorSpec] = [one.spec for one in which[0]]
    axis = normalize_axis(name, which[1], len(base.shape))
    selected = index_shape(name, base.shape, specs, axis)
    stop = axis + len(indices)
    shape = selected[axis : len(selected) - (len(base.shape) - stop)]
    call = fault_number(name, axis, base.shape[axis:stop])
    return Selection(name, base, axis, shape, indices, first, call)
