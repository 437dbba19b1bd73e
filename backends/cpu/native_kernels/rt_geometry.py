"""Native runtime: the sizes of a convolution, and the strides of its operands."""

from __future__ import annotations

from ..fastpath.compiler.dsl import i64, load, native, ptr
from ..fastpath.compiler.structs import Struct, array


class Geometry(Struct):
    """The sizes of a convolution, and how it is computed."""

    rank: i64  # axes to convolve over
    block: i64  # items at a time, in the modes ROWS, SHIFTED and WINDOWS
    depth: i64  # taps at a time, in the mode SHIFTED
    dense: i64  # in the mode SHIFTED: whether each column of the kernel has planes of its own
    groups: i64
    within: i64  # channels of a group of the input
    of_group: i64  # channels of a group of the result
    taps: i64  # elements of a kernel, all channels included
    indices: i64  # elements of a channel of the result
    positions: i64  # in the mode SHIFTED: those of a channel of the result that are computed
    sizes: ptr = array(3)  # of the input
    kernel: ptr = array(3)
    out: ptr = array(3)
    stride: ptr = array(3)
    before: ptr = array(3)  # padding
    input_dilation: ptr = array(3)
    dilation: ptr = array(3)
    phases: ptr = array(3)  # in the mode SHIFTED: planes of a channel along each axis
    lengths: ptr = array(3)  # in the modes SHIFTED and WINDOWS: elements of a plane along each axis


@native
def at(table: ptr, axis: i64) -> i64:
    return load(i64, table, axis * 8)


@native
def plane_size(g: Geometry) -> i64:
    """Return the elements of a plane."""
    return at(g.lengths, 1) * at(g.lengths, 2)


@native
def stride_of(steps: ptr, rank: i64, axis: i64) -> i64:
    """Return the stride of the input along one of three axes; ``steps`` are those of its channels and axes."""
    own = axis - (3 - rank)
    return load(i64, steps, 8 + own * 8) if own >= 0 else 0
