"""Reads and updates at integer positions: addresses from index maps, with bounds checks.

At the first index that is out of bounds a kernel stores the index in its status and returns the number of the failed
check plus one. ``main`` reports both after the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....lowering.fusion.loop_ir import IndexedAxis, IndexMap, Update
from ....named_tuple import NamedTuple
from ....operators.scalar_ir.expr import Expr, apply, arg, cast
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .nodes import emit_expr
from .text import MOSTLY_FIRST, Function
from .vectors import load_at_offsets

if TYPE_CHECKING:
    from .vectors import Access, Use, VectorLoop

STATUS_BYTES = 24  # int64 number of the failed check plus one; int64 index; MXCSR
SIGNS_LANES = 4  # of 64 bits, whose signs an instruction of AVX collects


class Check(NamedTuple):
    """A bounds check of a kernel: an index map and the axis whose indices are checked."""

    map: IndexMap
    axis: IndexedAxis


class BoundsChecks:
    """The bounds checks of one kernel.

    Attributes:
        checks: the checks; their numbers are indices of this list.
        offset: bytes from the kernel's scratch pointer to its status; None if nothing is checked.
        passed: the index maps whose indices have been checked already: they are in bounds, and not negative.
    """

    def __init__(self, f: Function):
        self.f = f
        self.checks: list[Check] = []
        self.offset: int | None = None
        self.passed: frozenset[IndexMap] = frozenset()
        self._status = ""

    def check(self, values: str, index_map: IndexMap, axis: IndexedAxis, mask: str | None) -> str:
        """Wrap negative indices along an axis and check bounds; lanes outside of ``mask`` are not checked."""
        f = self.f
        if index_map in self.passed:
            return values
        vec, size = f.vec("i64"), f"splat (i64 {axis.size})"
        if f.lanes == 1 and mask is None:
            return self._check_one(values, index_map, axis)
        before, fail, passed = f.block, f.fresh("out_of_bounds"), f.fresh("in_bounds")
        wraps = f.fresh("negative")
        f.branch(self._are_below(values, axis.size, mask), passed, f"{wraps}, {MOSTLY_FIRST}")
        f.label(wraps)
        negative = f.op(f"icmp slt {vec} {values}, zeroinitializer")
        wrapped = f.op(
            f"select {f.vec('i1')} {negative}, {vec} {f.op(f'add {vec} {values}, {size}')}, {vec} {values}"
        )
        out_of_bounds = f.op(f"icmp uge {vec} {wrapped}, {size}")
        if mask:
            out_of_bounds = f.op(f"and {f.vec('i1')} {out_of_bounds}, {mask}")
        bits = f"i{f.lanes}"
        failed = f.op(f"bitcast {f.vec('i1')} {out_of_bounds} to {bits}")
        wrapping = f.block
        f.branch(f.op(f"icmp ne {bits} {failed}, 0"), fail, passed)
        f.label(fail)
        self._report(values, failed, Check(index_map, axis))
        f.label(passed)
        return f.op(f"phi {vec} [ {values}, %{before} ], [ {wrapped}, %{wrapping} ]")

    def _are_below(self, values: str, size: int, mask: str | None) -> str:
        """Return whether all indices are in bounds and not negative: whether ``i | (size - 1 - i)`` is not negative.

        Comparisons of vectors of int64 would make single bits, which take ten instructions without AVX-512.
        """
        f, vec = self.f, self.f.vec("i64")
        signs = f.op(f"or {vec} {values}, {f.op(f'sub {vec} splat (i64 {size - 1}), {values}')}")
        if mask:
            signs = f.op(f"select {f.vec('i1')} {mask}, {vec} {signs}, {vec} zeroinitializer")
        return self._have_no_sign(signs)

    def _have_no_sign(self, values: str) -> str:
        """Return whether no lane is negative."""
        f, half = self.f, self.f.lanes // 2
        if half >= SIGNS_LANES:
            one, two = (f.extract_lanes(values, "i64", at, half) for at in (0, half))
            with f.width(half):
                return self._have_no_sign(f.op(f"or {f.vec('i64')} {one}, {two}"))
        bits = f"i{f.lanes}"
        negative = f.op(f"icmp slt {f.vec('i64')} {values}, zeroinitializer")
        mask = f.op(f"bitcast {f.vec('i1')} {negative} to {bits}")
        return f.op(f"icmp eq {bits} {mask}, 0")

    def _check_one(self, value: str, index_map: IndexMap, axis: IndexedAxis) -> str:
        """Check one index: a single comparison if it is in bounds and not negative."""
        f, vec, size = self.f, self.f.vec("i64"), f"splat (i64 {axis.size})"
        before, fail, passed = f.block, f.fresh("out_of_bounds"), f.fresh("in_bounds")
        wraps = f.fresh("negative")
        f.branch(self._is_below(value, size), passed, f"{wraps}, {MOSTLY_FIRST}")
        f.label(wraps)
        wrapped = f.op(f"add {vec} {value}, {size}")
        negative = f.op(f"icmp slt {vec} {value}, zeroinitializer")
        valid = f.op(f"and {f.vec('i1')} {negative}, {f.op(f'icmp ult {vec} {wrapped}, {size}')}")
        f.branch(f.op(f"extractelement {f.vec('i1')} {valid}, i64 0"), passed, fail)
        f.label(fail)
        self._report(value, "true", Check(index_map, axis))
        f.label(passed)
        return f.op(f"phi {vec} [ {value}, %{before} ], [ {wrapped}, %{wraps} ]")

    def _is_below(self, value: str, size: str) -> str:
        f = self.f
        below = f.op(f"icmp ult {f.vec('i64')} {value}, {size}")
        return f.op(f"extractelement {f.vec('i1')} {below}, i64 0")

    def _report(self, values: str, failed: str, check: Check) -> None:
        """Emit the failure path of a check: store the index in the status, return the check's number plus one."""
        f, bits = self.f, f"i{self.f.lanes}"
        if check not in self.checks:
            self.checks.append(check)
        if self.offset is None:
            self._status = f.allocate(STATUS_BYTES)
            self.offset = -f.below
        f.module.declare(f"llvm.cttz.{bits}", bits, bits, "i1")
        lane = f.op(f"call {bits} @llvm.cttz.{bits}({bits} {failed}, i1 true)")
        wide = f.op(f"zext {bits} {lane} to i64") if f.lanes < 64 else lane
        value = f.op(f"extractelement {f.vec('i64')} {values}, i64 {wide}")
        f.do(f"store i64 {value}, ptr {f.address(self._status, '8')}, align 1")
        f.do(f"ret i64 {self.checks.index(check) + 1}")

    # -- addresses -------------------------------------------------------------------------------------------------
    def offsets(self, index_map: IndexMap, indices: Sequence[str], itemsize: int, mask: str | None) -> str:
        """Return the offsets in bytes of the elements at vectors of indices."""
        f, total = self.f, ""
        vec = f.vec("i64")
        for values, axis in zip(indices, index_map.axes, strict=True):
            position = self.check(values, index_map, axis, mask)
            step = f.op(f"mul {vec} {position}, splat (i64 {axis.stride * itemsize})")
            total = f.op(f"add {vec} {total}, {step}") if total else step
        return total

    def locate(self, use: Use, index_map: IndexMap, indices: Sequence[str]) -> Use:
        """Return the use of a buffer with its base moved to indices that are equal in all lanes."""
        f = self.f
        firsts = [f.op(f"extractelement {f.vec('i64')} {values}, i64 0") for values in indices]
        with f.width(1):
            vectors = [f.broadcast(first, "i64") for first in firsts]
            offsets = self.offsets(index_map, vectors, use.buffer.dtype.itemsize, None)
            offset = f.op(f"extractelement <1 x i64> {offsets}, i64 0")
        return use._replace(base=f.address(use.base, offset))

    # -- accesses that vary along the last dimension ---------------------------------------------------------------
    def gather(self, e: Expr, indices: Sequence[str], use: Use, loop: VectorLoop) -> str:
        """Load the elements that vectors of indices select."""
        offsets = self.offsets(e.payload, indices, e.dtype.itemsize, loop.mask)
        return load_at_offsets(
            self.f, e.dtype, use.base, lane_offsets(self.f, use, loop.index, offsets), loop.mask
        )

    def update(self, s: Update, known: Mapping[Expr, str], use: Use, loop: VectorLoop) -> None:
        """Update one element, in a loop whose vectors have one lane."""
        f, dtype, value = self.f, s.value.dtype, known[s.value]
        offsets = self.offsets(s.map, [known[one] for one in s.indices], dtype.itemsize, None)
        offsets = lane_offsets(f, use, loop.index, offsets)
        pointer = f.address(use.base, f.op(f"extractelement <1 x i64> {offsets}, i64 0"))
        if s.combine:
            value = combine_values(f, s, f.load_vector(dtype, pointer), value)
        f.store_vector(dtype, value, pointer)


def lane_offsets(f: Function, use: Use, position: str, offsets: str) -> str:
    """Add the lanes' offsets along the last dimension, from ``position`` on, to the offsets of elements."""
    step = use.strides[-1] * use.buffer.dtype.itemsize
    if not step:
        return offsets
    vec = f.vec("i64")
    lanes = f.op(f"add {vec} {f.broadcast(position, 'i64')}, {f.lane_numbers()}")
    return f.op(f"add {vec} {offsets}, {f.op(f'mul {vec} {lanes}, splat (i64 {step})')}")


def combine_values(f: Function, update: Update, old: str, value: str) -> str:
    """Combine the old elements of an update with its values; return the new elements."""
    dtype = update.value.dtype
    return emit_expr(f, _combining_expr(update.combine, dtype), old, value)


def update_row(f: Function, update: Update, value: str, old: Access, new: Access) -> None:
    """Update the elements of a vector along the last dimension."""
    new.store(combine_values(f, update, old.load(), value) if update.combine else value)


def _combining_expr(name: str, dtype: DType) -> Expr:
    wide = dt.float32 if dtype in dt.HALVES else dtype
    return cast(apply(name, *(cast(arg(position, dtype), wide) for position in range(2))), dtype)
