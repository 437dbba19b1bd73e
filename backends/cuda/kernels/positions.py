"""Launches of gather, scatter and scatter-add in eager calls.

Addresses are symbolic (:class:`..launches.prewritten_text.Address`); everything else follows from layouts.
Sums and products of floats are deterministic: the values are sorted by their target positions first.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from ....errors import UnsupportedError
from ....lowering.fusion.loop_ir import collapse
from ....lowering.layout import Layout, contiguous
from ....named_tuple import NamedTuple
from ....registry.dtypes import DType, float32, int32
from ..codegen.helper_sort import SortPlan, plan_sort
from ..launches.prewritten_text import FAULT, Address, Launch, Scratch, Struct, make_source_launch
from . import sources

Ints = tuple[int, ...]
MOST = 8  # index tensors of a call, and dimensions of a segment
WIDEST = 16  # bytes of one access
LANES = 32  # of a warp
EACH = 16  # the maximum number of elements of a row for each lane; longer rows are split among warps


class Selection(NamedTuple):
    """The elements of an array that index tensors select.

    Attributes:
        name: of the operator, for messages.
        base: the layout of the array.
        axis: the first of the indexed axes.
        shape: the common shape of the index tensors.
        positions: the layouts of the index tensors.
        first: the number of the first index tensor among the operands.
        call: the number of the call that kernels report if an index is out of bounds, or a
            :class:`..launches.prewritten_text.DeviceNumber`.
    """

    name: str
    base: Layout
    axis: int
    shape: Ints
    positions: Sequence[Layout]
    first: int
    call: Any

    @property
    def stop(self) -> int:
        """The axis after the indexed ones."""
        return self.axis + len(self.positions)

    @property
    def limits(self) -> Ints:
        """The sizes of the indexed axes."""
        return self.base.shape[self.axis : self.stop]

    @property
    def picked(self) -> int:
        """The number of positions."""
        return math.prod(self.shape)

    @property
    def selected(self) -> Ints:
        """The shape of the selection."""
        return (*self.base.shape[: self.axis], *self.shape, *self.base.shape[self.stop :])

    @property
    def steps(self) -> Ints:
        """The array's strides along the indexed axes."""
        return self.base.strides[self.axis : self.stop]

    def indices(self, steps: Ints) -> Struct:
        """The ``Indices`` of the kernels, for an array with the given strides."""
        if len(self.positions) > MOST:
            raise UnsupportedError(
                f"{self.name}: on CUDA at most {MOST} index tensors, not {len(self.positions)}"
            )
        pad = [0] * (MOST - len(self.positions))
        layouts = [segment(self.name, broadcast(one, self.shape)) for one in self.positions]
        at = [Address(self.first + number) for number in range(len(self.positions))]
        words = [
            len(self.positions),
            self.call,
            *(word for one in layouts for word in one.words),
            *(pad * 18),
        ]
        return Struct((*words, *self.limits, *pad, *steps, *pad, *at, *pad))


def segment(name: str, layout: Layout) -> Struct:
    """The ``Segment`` of the kernels: some dimensions of an array.

    Raises:
        UnsupportedError: there are more than 8 dimensions after merging.
    """
    sizes, (steps,) = collapse(layout.shape, [layout.strides])
    if len(sizes) > MOST:
        raise UnsupportedError(f"{name}: on CUDA at most {MOST} axes that cannot be merged, not {len(sizes)}")
    pad = (0,) * (MOST - len(sizes))
    return Struct((len(sizes), layout.size, *sizes, *pad, *steps, *pad))


def broadcast(layout: Layout, shape: Ints) -> Layout:
    """The layout of an array that is broadcast to a shape."""
    lead = len(shape) - len(layout.shape)
    strides = (0 if old != new else s for old, new, s in zip(layout.shape, shape[lead:], layout.strides))
    return Layout(shape, ((0,) * lead + tuple(strides)), layout.offset)


class _Rows(NamedTuple):
    """Rows of elements.

    Attributes:
        words: the ``Rows`` of the kernels.
        threads: the number of threads for all rows.
    """

    words: Struct
    threads: int


def _make_rows(count: int, picked: int, width: int) -> _Rows:
    lanes = min(LANES, 1 << max(0, width - 1).bit_length())
    chunk = lanes * EACH
    pieces = max(1, -(-width // chunk))
    return _Rows(Struct((count, picked, width, lanes, chunk, pieces)), count * pieces * lanes)


def _launch(name: str, rows: _Rows, *params: Any, scratch: int = 0) -> Launch:
    return make_source_launch(name, rows.threads, *params, scratch=scratch)


def _split(layout: Layout, at: int) -> tuple[Layout, Layout]:
    """The layouts of the leading axes and of the others."""
    return Layout(layout.shape[:at], layout.strides[:at]), Layout(layout.shape[at:], layout.strides[at:])


def _is_dense(layout: Layout) -> bool:
    """Whether the elements are consecutive in memory."""
    sizes, (steps,) = collapse(layout.shape, [layout.strides])
    return not sizes or steps == (1,)


def _access_bytes(size: int, width: int, strides: Sequence[int], alignment: int) -> int:
    """The bytes of one access to dense rows.

    Args:
        size: of an element, in bytes.
        width: elements of a row.
        strides: between rows, in elements.
        alignment: in bytes, of all addresses.
    """
    result = size
    while result < WIDEST and not any(number % (2 * result) for number in (alignment, width * size)):
        if any(stride * size % (2 * result) for stride in strides):
            break
        result *= 2
    return result


def _in_units(layout: Layout, times: int) -> Layout:
    """The layout with strides in units of several elements."""
    return Layout(layout.shape, tuple(stride // times for stride in layout.strides))


def gather(one: Selection, size: int, alignment: int, source: Address, out: Address) -> list[Launch]:
    """The launch of a gather.

    Args:
        one: the selection.
        size: bytes of an element.
        alignment: of the array's address, in bytes.
        source: the array.
        out: the result, contiguous.
    """
    before, rest = _split(one.base, one.axis)
    _, after = _split(rest, len(one.positions))
    width, steps = after.size, one.steps
    if _is_dense(after):
        unit = _access_bytes(size, width, (*before.strides, *steps), alignment)
        times = unit // size
        before, steps, width = _in_units(before, times), tuple(s // times for s in steps), width // times
        after, size = Layout((width,), (1,)), unit
    rows = _make_rows(before.size * one.picked, one.picked, width)
    tail = segment(one.name, before), one.indices(steps), segment(one.name, after)
    return [_launch(f"gather_{size}", rows, out, source, FAULT, rows.words, *tail)]


def put(
    one: Selection, size: int, alignment: int, value: Layout, source: Address, out: Address
) -> list[Launch]:
    """The launches of a scatter; of several values for one position the last one counts.

    Args:
        one: the selection from ``out``.
        size: bytes of an element.
        alignment: of both arrays' addresses, in bytes.
        value: the layout of the values, of the selected shape.
        source: the values.
        out: the array.
    """
    if not value.size:
        return []
    before, rest = _split(one.base, one.axis)
    _, after = _split(rest, len(one.positions))
    value_rows, value_after = _split(value, one.axis + len(one.shape))
    width, steps = after.size, one.steps
    if _is_dense(after) and _is_dense(value_after):
        unit = _access_bytes(size, width, (*before.strides, *steps, *value_rows.strides), alignment)
        times = unit // size
        before, steps, width = _in_units(before, times), tuple(s // times for s in steps), width // times
        value_rows, size = _in_units(value_rows, times), unit
        after = value_after = Layout((width,), (1,))
    count, launches = math.prod(one.limits), []
    indices = one.indices(contiguous(one.limits).strides)
    nbytes, last = (8 * count, Scratch(0)) if one.picked > 1 else (0, 0)
    if nbytes:
        launches = [
            make_source_launch("fill_8", count, last, count, 0, scratch=nbytes),
            make_source_launch("winners", one.picked, last, FAULT, indices, one.picked, scratch=nbytes),
        ]
    rows = _make_rows(before.size * one.picked, one.picked, width)
    head = out, source, last, FAULT, rows.words, segment(one.name, before), indices, one.indices(steps)
    tail = segment(one.name, after), segment(one.name, value_rows), segment(one.name, value_after)
    return [*launches, _launch(f"scatter_{size}", rows, *head, *tail, scratch=nbytes)]


def accumulator(dtype: DType) -> DType:
    """The dtype in which elements of ``dtype`` are added."""
    if dtype.kind in "biu":
        return int32 if dtype.itemsize < 4 else dtype
    return dtype if dtype.itemsize > 2 else float32


def combine(
    one: Selection, op: str, dtype: DType, value: Layout, source: Address, out: Address
) -> list[Launch]:
    """The launches that add or multiply values into an array; the arguments are those of :func:`put`.

    Integers are added by atomic operations, since their sums do not depend on the order. Floats are combined in the
    order of the values, after sorting by position.

    Args:
        op: ``"add"`` or, for real floats, ``"mul"``.
    """
    if not value.size:
        return []
    base, bits = one.base, 8 * dtype.itemsize
    if dtype.kind == "c":  # two numbers, one after the other
        base, value, bits = _parts(base), _parts(value), bits // 2
        one = one._replace(base=base)
    before, rest = _split(base, one.axis)
    _, after = _split(rest, len(one.positions))
    value_rows, value_after = _split(value, one.axis + len(one.shape))
    tail = tuple(segment(one.name, part) for part in (after, value_rows, value_after))
    given = segment(one.name, before), one.indices(one.steps), *tail
    if op == "add" and (not dtype.is_inexact or one.picked == 1):
        rows = _make_rows(before.size * one.picked, one.picked, after.size)
        number = f"{'float' if dtype.is_inexact else 'uint'}{bits}"
        return [_launch(f"scatter_add_{number}", rows, out, source, FAULT, rows.words, *given)]
    return _combine_in_order(one, f"{op}_float{bits}", before.size, after.size, given, source, out)


def _parts(layout: Layout) -> Layout:
    return Layout((*layout.shape, 2), (*(2 * stride for stride in layout.strides), 1), 2 * layout.offset)


def _combine_in_order(
    one: Selection,
    kernel: str,
    outer: int,
    width: int,
    given: Sequence[Struct],
    source: Address,
    out: Address,
) -> list[Launch]:
    """Sort the positions, fold runs of equal positions, and combine the runs that several threads share."""
    plan = plan_sort(one.picked, math.prod(one.limits))
    if not plan.fits:
        raise UnsupportedError(
            f"{one.name}: on CUDA {plan.size} positions among {plan.limit} elements are too many to sort"
        )
    order, words, sort = _sort_positions(one, plan)
    rows = _make_rows(outer * plan.chunks, plan.chunks, width)
    itemsize = int(kernel.rpartition("float")[2]) // 8
    part = -(-outer * plan.chunks * width * itemsize // WIDEST) * WIDEST if plan.chunks > 1 else 0
    total = plan.nbytes + 2 * part
    heads, tails = (Scratch(plan.nbytes), Scratch(plan.nbytes + part)) if part else (0, 0)
    runs = Struct((plan.chunk, plan.chunks, outer * one.picked))
    head = heads, tails, FAULT, rows.words, order, runs
    launches = [*sort, _launch(f"runs_{kernel}", rows, out, source, words, *head, *given)]
    if plan.chunks > 1:
        launches.append(_launch(f"join_{kernel}", rows, out, words, *head, *given[:3]))
    return [launch._replace(kernel=launch.kernel._replace(temporaries=total)) for launch in launches]


def _sort_positions(one: Selection, plan: SortPlan) -> tuple[Struct, Scratch, list[Launch]]:
    """The launches that sort the indices by their target positions.

    Returns:
        The ``Order``, the sorted words (target position, then number of the index), and the launches.
    """
    order = Struct((plan.size, plan.bits, plan.limit, plan.tiles))
    indices = one.indices(contiguous(one.limits).strides)
    words, other, starts = (Scratch(number * plan.buffer_bytes) for number in range(3))
    if plan.tiles == 1:
        params = words, other, FAULT, order, indices, plan.passes
        return order, words, [_block_launch("order_tile", 1, plan.threads, *params)]
    if plan.passes % 2:  # so that the last pass writes to the first buffer
        words, other = other, words
    sort = [make_source_launch("order_words", plan.size, words, FAULT, order, indices)]
    for number in range(plan.passes):
        shift = plan.bits + 4 * number
        sort.append(_block_launch("order_count", plan.tiles, plan.threads, words, starts, order, shift))
        sort.append(_block_launch("order_sum", 1, plan.threads, starts, 16 * plan.tiles))
        sort.append(_block_launch("order_move", plan.tiles, plan.threads, words, other, starts, order, shift))
        words, other = other, words
    return order, words, sort


def _block_launch(name: str, blocks: int, threads: int, *params: Any) -> Launch:
    kernel = sources.kernel(name)._replace(grid=(min(blocks, sources.BLOCKS), 1, 1), block=(threads, 1, 1))
    return Launch(kernel, params)


def pack_struct(param: Struct, word: Any) -> bytes:
    """The bytes of a struct parameter; ``word`` returns the value of a symbolic word."""
    return struct.pack(
        f"<{len(param.words)}q", *(one if isinstance(one, int) else word(one) for one in param.words)
    )
