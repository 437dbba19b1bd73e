"""Native runtime: copies of windows of planes, with zeros outside, for convolutions.

``SIZE`` is the size of an element, ``T`` its type.
"""

from __future__ import annotations

from typing import TypeAlias

from ..fastpath.compiler.dsl import extern, i64, load, native, ptr, store, template
from ..fastpath.compiler.structs import Struct
from ..fastpath.runtime import capi
from .rt_integers import larger, smaller

T: TypeAlias = float  # a type parameter

# `copy_plane` and `copy_lines`, which are compiled by themselves
plane_copy = extern("copy_plane", "None(ptr, i64, i64, ptr, ptr)")
lines_copy = extern("copy_lines", "None(ptr, ptr, ptr)")

SIZE: i64 = template(4)
LONG: i64 = 6  # elements that are copied by a call


class Plane(Struct):
    """A window of a plane: ``rows`` by ``columns`` elements from a start that may be outside, with steps."""

    rows: i64
    columns: i64
    row_step: i64
    column_step: i64
    height: i64
    width: i64
    over: i64  # the strides of the plane, in bytes
    along: i64


@native
def clear(to: ptr, count: i64) -> None:
    if count > 0:
        capi.memset(to, 0, count * SIZE)


@native
def first_inside(start: i64, step: i64) -> i64:
    """Return the number of positions ``start + i * step`` that are negative."""
    return larger(0, (step - 1 - start) // step) if start < 0 else 0


@native
def end_inside(start: i64, step: i64, size: i64, count: i64) -> i64:
    """Return the number of the ``count`` positions that are less than ``size``."""
    return smaller(count, (size - start + step - 1) // step) if start < size else 0


@native
def copy_row(source: ptr, step: i64, count: i64, to: ptr) -> None:
    """Copy elements that are ``step`` bytes apart, four at a time: LLVM unrolls no loops here."""
    left = count
    while left >= 4:
        one, two = load(T, source, 0), load(T, source, step)
        source += 2 * step
        three, four = load(T, source, 0), load(T, source, step)
        source += 2 * step
        store(T, to, 0, one)
        store(T, to, SIZE, two)
        store(T, to, 2 * SIZE, three)
        store(T, to, 3 * SIZE, four)
        to += 4 * SIZE
        left -= 4
    for j in range(left):
        store(T, to, j * SIZE, load(T, source, j * step))


@native
def copy_rows(source: ptr, column: i64, rows: i64, p: Plane, to: ptr) -> None:
    """Copy rows of a window from a column; elements outside are 0."""
    low = smaller(first_inside(column, p.column_step), p.columns)
    high = larger(low, end_inside(column, p.column_step, p.width, p.columns))
    step, count = p.column_step * p.along, high - low
    source += (column + low * p.column_step) * p.along
    over, after = p.row_step * p.over, p.columns - high
    for _ in range(rows):
        for j in range(low):
            store(T, to, j * SIZE, T(0))
        line = to + low * SIZE
        if step == SIZE and count >= LONG:
            capi.memcpy(line, source, count * SIZE)
        else:
            copy_row(source, step, count, line)
        for j in range(after):
            store(T, to, (high + j) * SIZE, T(0))
        source += over
        to += p.columns * SIZE


@native
def is_shifted(p: Plane, start: i64) -> bool:
    """Return whether a window is the plane itself, shifted."""
    dense = p.along == SIZE and p.over == p.width * SIZE and p.columns == p.width
    return dense and p.row_step == 1 and p.column_step == 1 and -p.width < start and start < p.width


@native
def copy_plane(source: ptr, row: i64, column: i64, p: Plane, to: ptr) -> None:
    """Copy the window of a plane that starts at a row and a column; elements outside are 0."""
    low = smaller(first_inside(row, p.row_step), p.rows)
    high = larger(low, end_inside(row, p.row_step, p.height, p.rows))
    clear(to, low * p.columns)
    if is_shifted(p, column):
        if high > low:
            copy_shifted(
                source + (row + low) * p.over, column, high - low, p.width, to + low * p.width * SIZE
            )
    else:
        first = source + (row + low * p.row_step) * p.over
        copy_rows(first, column, high - low, p, to + low * p.columns * SIZE)
    clear(to + high * p.columns * SIZE, (p.rows - high) * p.columns)


@native
def clear_column(to: ptr, rows: i64, width: i64) -> None:
    for i in range(rows):
        store(T, to, i * width * SIZE, T(0))


@native
def copy_shifted(source: ptr, shift: i64, rows: i64, width: i64, to: ptr) -> None:
    """Copy dense rows, moved to the left by ``shift`` columns."""
    left, right = larger(0, -shift), larger(0, shift)
    capi.memcpy(to + left * SIZE, source + right * SIZE, (rows * width - left - right) * SIZE)
    for j in range(left):
        clear_column(to + j * SIZE, rows, width)
    for j in range(right):
        clear_column(to + (width - right + j) * SIZE, rows, width)


class Lines(Struct):
    """Lines of some planes, which are copied without what is between them."""

    planes: i64
    lines: i64  # of a plane
    nbytes: i64  # of a line
    over: i64  # bytes between lines
    apart: i64  # bytes between planes


@native
def copy_lines(source: ptr, p: Lines, to: ptr) -> None:
    for k in range(p.planes):
        line = source + k * p.apart
        for _ in range(p.lines):
            capi.memcpy(to, line, p.nbytes)
            line += p.over
            to += p.nbytes
