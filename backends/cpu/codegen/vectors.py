"""A loop over whole vectors along one dimension whose size and strides are known when it is written.

The last vector may be partial: on processors without masks its operands are then copied to the stack and its results
from there, so the body is written once and never accesses memory outside the arrays. Operands with other strides are
always copied so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ....lowering.fusion.loop_ir import Buffer
from ....named_tuple import NamedTuple
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from ..target import vector_target
from .elementwise import lanes_below, pack_helper
from .folds.reducers import Reducer, State
from .interleaving import MOST_COLUMNS, Interleaving
from .text import PARTS, Function, memory_type

Pairs = list[tuple[str, str]]
MOST_PEELED = 4
"""Whole vectors before a partial one that is written apart: in longer loops its time does not matter."""
MOST_MOVED = 8
"""The most elements of a vector that are loaded or stored one by one."""


# -- buffers in a stage -----------------------------------------------------------------------------------------------
class Use(NamedTuple):
    """A buffer in a stage: the address of the current row, and its strides over the stage's dimensions."""

    buffer: Buffer
    base: str
    strides: tuple[int, ...]

    def offset_along(self, f: Function, dim: int, index: str) -> Use:
        """Return the use with ``index`` along ``dim`` fixed."""
        step = self.strides[dim] * self.buffer.dtype.itemsize
        return Use(
            self.buffer,
            f.address(self.base, f.op(f"mul i64 {index}, {step}")) if step else self.base,
            self.strides,
        )

    def is_transposed(self, across: int) -> bool:
        """Return whether elements along a dimension are adjacent, and those along the last one far from each other."""
        return self.strides[across] == 1 and self.strides[-1] not in (0, 1)


def split_state(items: Sequence[Reducer], values: Sequence[str]) -> list[State]:
    """Split carried values into one state per reduction."""
    result, at = [], 0
    for x in items:
        result.append(list(values[at : at + len(x.state)]))
        at += len(x.state)
    return result


def move_long_axis_last(
    shape: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the dimensions in an order whose last is long enough for vectors, if accesses along it are not slower."""
    if len(shape) < 2 or shape[-1] >= 8 or max(shape) < 64:
        return shape, strides
    longest = shape.index(max(shape))
    if _cost_along(longest, strides) > _cost_along(len(shape) - 1, strides) * 8 / shape[-1]:
        return shape, strides
    order = [d for d in range(len(shape)) if d != longest] + [longest]
    return tuple(shape[d] for d in order), [tuple(s[d] for d in order) for s in strides]


def _cost_along(dim: int, strides: list[tuple[int, ...]]) -> int:
    """The approximate cost of vectors along a dimension, in those of contiguous ones."""
    along = [abs(s[dim]) for s in strides]
    return sum(0 if not s else 1 if s == 1 else 2 if s <= MOST_COLUMNS else 8 for s in along)


# -- loops over vectors -----------------------------------------------------------------------------------------------
class Access:
    """One use of an array in a vector loop: read or written, along a dimension with a known stride (in elements)."""

    def __init__(self, f: Function, dtype: DType, base: str, stride: int, *, writes: bool = False):
        self.f, self.dtype, self.base, self.stride, self.writes = f, dtype, base, stride, writes
        self.size = dtype.itemsize
        self.scratch = ""
        self.mask: str | None = None
        self.rows: str | None = None
        self.exact = 0
        self.interleaving: Interleaving | None = None

    def stage(self, index: str, loop: VectorLoop) -> None:
        """Compute this vector's address, copying the vector to the stack if its stride is neither 1 nor -1."""
        f, step = self.f, self.stride * self.size
        self.here = f.address(self.base, f.op(f"mul i64 {index}, {step}"))
        self.pointer, self.mask = self.here, None
        self.copied, self.is_gathered, self.exact = self.stride != 1, False, 0
        if self.interleaving is not None:
            self.by_element = self.is_reversed = False
            self.rows = None if loop.tail == 0 else loop.count
            return
        self.is_reversed = self._can_reverse(loop)
        if loop.exact and (self.is_reversed or not self.copied):
            self.copied = self.by_element = False
            self.exact = loop.exact
            self.pointer = (
                f.address(self.here, str((loop.exact - 1) * step)) if self.is_reversed else self.here
            )
            return
        if self.is_reversed:
            self.copied = self.by_element = False
            self.pointer = f.address(self.here, str((f.lanes - 1) * step))
            self.mask = loop.reversed_mask()
            return
        self.by_element = self.copied and loop.is_known and self.moves_elements()
        if self.by_element:
            self.exact = loop.exact
            return
        self.is_gathered = self.copied and not self.writes and vector_target().masks and self.size >= 4
        if self.is_gathered:
            self.mask = loop.mask
            return
        if loop.tail != 0 and not self.copied and vector_target().masks:
            self.mask = loop.mask
            return
        if self.copied or loop.tail != 0:
            self.scratch = f.allocate(f.lanes * self.size, clear=f.lanes * self.size)
        if self.copied:
            self.pointer = self.scratch
            if not self.writes:
                self._strided(loop.count)
        elif loop.tail != 0:
            self.pointer = f.op(f"select i1 {loop.last}, ptr {self.scratch}, ptr {self.here}")

    def moves_elements(self) -> bool:
        """Return whether to move the elements of vectors one by one, rather than by a copy in memory.

        A copy is loaded before its elements are all in memory, which takes longer than the elements themselves; but it
        is shorter code, and processors with masks gather vectors.
        """
        f = self.f
        few = f.lanes <= MOST_MOVED and not vector_target().masks
        return (f.is_small or few) and self.dtype not in PARTS

    def _can_reverse(self, loop: VectorLoop) -> bool:
        """Return whether to load vectors from their last element on and reverse them; no other memory is read."""
        backwards = self.stride == -1 and not self.writes and self.dtype not in PARTS
        return backwards and (loop.is_known or vector_target().masks)

    def copy_tail(self, tail: int | None, count: str) -> None:
        """Copy the partial vector of a contiguous array, in or out."""
        target, source = (self.here, self.scratch) if self.writes else (self.scratch, self.here)
        self.f.module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1")
        size = self.f.op(f"mul i64 {count}, {self.size}") if tail is None else tail * self.size
        self.f.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def finish(self, loop: VectorLoop) -> None:
        """Copy a written vector to an array with another stride."""
        if self.copied and not self.by_element and self.interleaving is None:
            self._strided(loop.count)

    def _element_pointers(self) -> Iterator[str]:
        """Return the addresses of the elements of this vector."""
        for lane in range(self.exact or self.f.lanes):
            yield self.f.address(self.here, str(lane * self.stride * self.size))

    def _load_elements(self) -> str:
        f, element = self.f, memory_type(self.dtype)
        vector = "zeroinitializer" if self.exact else "poison"
        for lane, pointer in enumerate(self._element_pointers()):
            value = f.load(element, pointer)
            vector = f.op(f"insertelement {f.vec(element)} {vector}, {element} {value}, i64 {lane}")
        return f.from_memory(vector, self.dtype)

    def _store_elements(self, value: str) -> None:
        f, element = self.f, memory_type(self.dtype)
        vector = f.to_memory(value, self.dtype)
        for lane, pointer in enumerate(self._element_pointers()):
            single = f.op(f"extractelement {f.vec(element)} {vector}, i64 {lane}")
            f.do(f"store {element} {single}, ptr {pointer}, align 1")

    def _strided(self, count: str) -> None:
        helper = pack_helper(self.f.module, self.size, unpack=self.writes)
        step = self.stride * self.size
        self.f.do(f"call void @{helper}(ptr {self.scratch}, ptr {self.here}, i64 {step}, i64 {count})")

    def load(self) -> str:
        """Return the vector, read once: LLVM repeats loads of a part after the copy of the next vector."""
        if self.interleaving is not None:
            return self.interleaving.load(self, self.rows)
        if self.by_element:
            return self._load_elements()
        if self.exact:
            return self.f.load_some(self.dtype, self.pointer, self.exact, self.is_reversed)
        f, dtype = self.f, self.dtype
        if self.is_gathered:
            offsets = f.op(f"mul {f.vec('i64')} {f.lane_numbers()}, splat (i64 {self.stride * self.size})")
            return load_at_offsets(f, dtype, self.here, offsets, self.mask)
        if self.mask:
            value = f.load_masked(dtype, self.pointer, self.mask)
        else:
            value = f.load_vector(dtype, self.pointer, "volatile " if self.copied else "")
        if self.is_reversed:
            value = f.reverse(value, "i1" if dtype is dt.bool_ else memory_type(dtype))
        return value

    def store(self, value: str) -> None:
        if self.interleaving is not None:
            self.interleaving.store(self, value, self.rows)
            return
        if self.by_element:
            self._store_elements(value)
            return
        if self.exact:
            self.f.store_some(self.dtype, value, self.pointer, self.exact)
            return
        if self.mask:
            self.f.store_masked(self.dtype, value, self.pointer, self.mask)
            return
        self.f.store_vector(self.dtype, value, self.pointer)


def load_at_offsets(f: Function, dtype: DType, base: str, offsets: str, mask: str | None) -> str:
    """Load the elements at offsets in bytes from ``base``; lanes outside of ``mask`` are not read."""
    part, size = f.part_of(dtype)
    values = [_load_parts(f, part, base, offsets, at * part.itemsize, mask) for at in range(size)]
    return values[0] if size == 1 else f.join_parts(memory_type(part), *values)


def _load_parts(f: Function, dtype: DType, base: str, offsets: str, shift: int, mask: str | None) -> str:
    element, start = memory_type(dtype), f.address(base, str(shift)) if shift else base
    vec = f.vec(element)
    pointers = f.op(f"getelementptr i8, ptr {start}, {f.vec('i64')} {offsets}")
    symbol = f"llvm.masked.gather.v{f.lanes}{f.suffix(element)}.v{f.lanes}p0"
    f.module.declare(symbol, vec, f.vec("ptr"), f.vec("i1"), vec)
    name = "%" + f.fresh()  # not through op(): memory changes, so loads are never shared
    arguments = f"{f.vec('ptr')} align 1 {pointers}, {f.vec('i1')} {mask or 'splat (i1 true)'}"
    f.lines.append(f"  {name} = call {vec} @{symbol}({arguments}, {vec} zeroinitializer)")
    return f.from_memory(name, dtype)


class VectorLoop:
    """State of a vector loop that its body may use.

    Attributes:
        tail: elements of the partial last vector: 0 if every vector is whole, None if known at run time only.
        count: i64, elements of this vector.
        last: i1, whether this vector is partial.
        mask: the lanes that hold elements, or None if all do.
        exact: elements of this vector if it is a partial one outside of a loop: exactly these are loaded and stored, as
            masked stores are not forwarded to loads that follow.
    """

    def __init__(self, f: Function, index: str, stop: str, tail: int | None, exact: int = 0):
        self._f, self.index, self.tail, self.exact = f, index, tail, exact
        self.count, self.last = str(f.lanes), "false"
        self.mask: str | None = None
        if exact:
            self.count, self.last = str(exact), "true"
            self.mask = self._constant_mask(range(exact))
        elif tail != 0:
            self.last = f.op(f"icmp sgt i64 {f.op(f'add i64 {index}, {f.lanes}')}, {stop}")
            short = f.op(f"sub i64 {stop}, {index}") if tail is None else tail
            # LLVM stores vectors of less than 16 bytes as vectors of 16, and forgets that a constant mask ends before;
            # with a constant mask of one lane it writes a narrowed value in full width. So it must not know the number.
            if tail == 1 or (tail is not None and f.lanes < 16):
                short, tail = f.op(f'call i64 asm "", "=r,0"(i64 {tail})'), None
            self.count = f.op(f"select i1 {self.last}, i64 {short}, i64 {f.lanes}")
            self.mask = lanes_below(f, self.count) if tail is None else self._constant_mask(range(tail))
        self._known_tail, self._reversed_mask = tail, ""

    @property
    def is_known(self) -> bool:
        """Whether the number of elements of this vector is known when it is written."""
        return self.tail == 0 or self.exact > 0

    def reversed_mask(self) -> str | None:
        """Return the mask of the lanes that hold elements of a vector in reverse order, or None if all do.

        The bits of a mask are not reversed: AVX-512 has no instruction for that, and in a register of numbers that
        takes as long as four vectors.
        """
        if self.mask is not None and not self._reversed_mask:
            f, tail = self._f, self._known_tail
            if tail is None:
                self._reversed_mask = lanes_below(f, f.op(f"sub i64 {f.lanes}, {self.count}"), "sge")
            else:
                self._reversed_mask = self._constant_mask(range(f.lanes - tail, f.lanes))
        return self._reversed_mask or None

    def _constant_mask(self, lanes: range) -> str:
        f = self._f
        bits = ", ".join(f"i1 {'true' if k in lanes else 'false'}" for k in range(f.lanes))
        return f.op(f"select i1 {self.last}, {f.vec('i1')} <{bits}>, {f.vec('i1')} splat (i1 true)")


Body = Callable[[VectorLoop, list[str]], list[str]]


def vector_loop(
    f: Function,
    stop: str,
    tail: int | None,
    accesses: Sequence[Access],
    carried: Pairs,
    body: Body,
    is_short: bool = False,
) -> list[str]:
    """Write ``for index in range(0, stop, lanes)``; only the last vector may be short, by having ``tail`` elements.

    ``body(loop, carried)`` loads and stores through ``accesses`` and returns the next carried values. If the body
    ``is_short``, it may be written a second time for the last vector.

    Returns:
        The carried values after the loop.
    """
    values = [initial for _, initial in carried]
    if tail is None or not stop.isdigit():
        return _write_loop(f, stop, tail, accesses, carried, body)
    whole = int(stop) - tail
    if tail == 0 and whole == f.lanes:
        return _write_vector(f, VectorLoop(f, "0", stop, 0), accesses, values, body)
    if tail == 0 or (whole and not _is_tail_peeled(f, whole, accesses, is_short)):
        return _write_loop(f, stop, tail, accesses, carried, body)
    if whole:
        values = vector_loop(f, str(whole), 0, accesses, carried, body)
    return _write_vector(f, VectorLoop(f, str(whole), stop, tail, exact=tail), accesses, values, body)


def _is_tail_peeled(f: Function, whole: int, accesses: Sequence[Access], is_short: bool) -> bool:
    """Return whether the partial vector after ``whole`` elements is written apart.

    Without masks, a partial vector within the loop is copied in memory, and all vectors are addressed by a selection.
    """
    if vector_target().masks:
        return is_short and whole <= MOST_PEELED * f.lanes
    return is_short or any(abs(a.stride) > 1 and a.moves_elements() for a in accesses)


def _write_loop(
    f: Function, stop: str, tail: int | None, accesses: Sequence[Access], carried: Pairs, body: Body
) -> list[str]:
    with f.loop("0", stop, str(f.lanes), carried) as around:
        loop = VectorLoop(f, around.index, stop, tail)
        around.next = _write_vector(f, loop, accesses, around.carried, body)
    return around.carried


def _write_vector(
    f: Function, loop: VectorLoop, accesses: Sequence[Access], values: list[str], body: Body
) -> list[str]:
    """Write the body for one vector; return the next carried values."""
    for a in accesses:
        a.stage(loop.index, loop)
    _emit_tails(f, loop, [a for a in accesses if not a.writes])
    f.count = loop.count
    after = body(loop, values)
    f.count = ""
    for a in accesses:
        if a.writes:
            a.finish(loop)
    _emit_tails(f, loop, [a for a in accesses if a.writes])
    return after


def _emit_tails(f: Function, loop: VectorLoop, accesses: Sequence[Access]) -> None:
    dense = [a for a in accesses if not a.copied and not a.mask and not a.exact]
    if loop.tail != 0 and dense:
        with f.when(loop.last):
            for a in dense:
                a.copy_tail(loop.tail, loop.count)
