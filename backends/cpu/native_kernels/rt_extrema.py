"""Native runtime: the positions of running extrema.

``T``, ``U`` and the template parameters are those of `rt_sorting`; ``SMALLEST`` asks for the smallest elements.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import (
    alwaysinline,
    i64,
    load,
    native,
    ptr,
    stack,
    store,
    template,
    vector_range,
)
from .rt_sorting import ALL, BLOCK, FLOAT, SIZE, T, U, key_of

SMALLEST: i64 = template(0)
LINES: i64 = 16  # adjacent lines that are scanned together


@native
def extremum_key(source: ptr) -> U:
    """Return the key of an element: that of an extremum is the largest, and those of NaN are larger."""
    key = key_of(source)
    if SMALLEST:
        return key if FLOAT != 0 and key == U(ALL) else ~key
    return key


@alwaysinline
def has_extremum(source: ptr, step: i64, bound: U, extremum: T) -> bool:
    """Return whether one of BLOCK elements is at least as extreme as the extremum so far, whose key is `bound`."""
    result = False
    for j in range(BLOCK):
        if FLOAT and SIZE >= 4:
            element = load(T, source + j * step)
            result = result | bool(not (element > extremum if SMALLEST else element < extremum))
        else:
            result = result | bool(extremum_key(source + j * step) >= bound)
    return result


@native
def scan_line(source: ptr, step: i64, out: ptr, out_step: i64, count: i64) -> None:
    """Write the positions of one line: a block without an extremum has the position before it."""
    bound, position, i = U(0), i64(0), i64(0)
    while i < count:
        many, start = i + BLOCK <= count, source + i * step
        # constant steps make vectors
        if many and step == SIZE and not has_extremum(start, SIZE, bound, load(T, source, position * step)):
            if out_step == 8:
                for j in range(BLOCK):
                    store(i64, out, (i + j) * 8, position)
            else:
                for j in range(BLOCK):
                    store(i64, out, (i + j) * out_step, position)
            i += BLOCK
        else:
            stop = i + BLOCK if many else count
            while i < stop:
                key = extremum_key(source + i * step)
                if key >= bound:
                    bound, position = key, i
                store(i64, out, i * out_step, position)
                i += 1


@alwaysinline
def scan_lines(source: ptr, step: i64, out: ptr, out_step: i64, count: i64) -> None:
    """Write the positions of LINES lines whose elements and results are adjacent."""
    bounds, positions = stack(LINES * SIZE), stack(LINES * 8)
    for lane in range(LINES):
        store(U, bounds, lane * SIZE, U(0))
        store(i64, positions, lane * 8, 0)
    for i in range(count):
        line, to = source + i * step, out + i * out_step
        for lane in vector_range(LINES):
            key, bound = extremum_key(line + lane * SIZE), load(U, bounds, lane * SIZE)
            position = load(i64, positions, lane * 8)
            store(U, bounds, lane * SIZE, key if key >= bound else bound)
            position = i if key >= bound else position
            store(i64, positions, lane * 8, position)
            store(i64, to, lane * 8, position)


@native
def running_positions(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `running_argmax` and `running_argmin`, (n)->(n)."""
    source, out, lines, count = load(ptr, args, 0), load(ptr, args, 8), load(i64, dims, 0), load(i64, dims, 8)
    over, out_over = load(i64, steps, 0), load(i64, steps, 8)
    if over == SIZE and out_over == 8:
        while lines >= LINES:
            scan_lines(source, load(i64, steps, 16), out, load(i64, steps, 24), count)
            source, out, lines = source + LINES * over, out + LINES * out_over, lines - LINES
    for _ in range(lines):
        scan_line(source, load(i64, steps, 16), out, load(i64, steps, 24), count)
        source, out = source + over, out + out_over
