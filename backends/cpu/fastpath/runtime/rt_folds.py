"""Native runtime: the loops of reductions, as templates over the fold and the types.

A fold loop takes `(in, out, sizes[2], strides[3], again)`: `sizes` are the kept and the folded count; `strides` those
of the input along the kept axis, of the output along it, of the input along the folded axis. If `again` is set, it
continues from the values in the output. Types: `I` input, `A` accumulator, `O` output; bfloat16 is its bits, u16.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from ..compiler import dsl
from ..compiler.dsl import f32, f64, i32, i64, load, native, ptr, reassoc_mul, stack, store, template, u32

I: TypeAlias = int  # noqa: E741
A: TypeAlias = int
O: TypeAlias = int  # noqa: E741

SUM, PROD, MAX, MIN, ANY, ALL = 0, 1, 2, 3, 4, 5
NAN = math.nan
FOLD: i64 = template(0)
FLOATING: i64 = template(0)  # whether A is a float
ISIZE: i64 = template(4)
I_BITS: i64 = template(0)  # 1: the input is bfloat16
O_BITS: i64 = template(0)  # 1: the output is bfloat16
I_PAIR: i64 = template(0)  # 1: the input is complex, two of I; for any and all
BLOCK: i64 = 1024  # elements that are summed in any order before their sum is added to the total


@native
def combine(a: A, b: A) -> A:
    if FOLD == SUM:
        return dsl.reassoc_add(a, b)
    if FOLD == PROD:
        return reassoc_mul(a, b)
    if FOLD == MAX:
        if FLOATING:
            return dsl.fmaximum(a, b)
        return a if a > b else b
    if FOLD == MIN:
        if FLOATING:
            return dsl.fminimum(a, b)
        return a if a < b else b
    if FOLD == ANY:
        return a | b
    return a & b


@native
def load_element(p: ptr) -> A:
    """Load one input as the accumulator's type; as its truth value for any and all."""
    if I_BITS:
        return (
            A(widen_bfloat16(i32(load(I, p, 0))) != 0.0)
            if FOLD in (ANY, ALL)
            else A(widen_bfloat16(i32(load(I, p, 0))))
        )
    if I_PAIR:
        return A(load(I, p, 0) != I(0) or load(I, p, ISIZE // 2) != I(0))
    if FOLD in (ANY, ALL):
        return A(load(I, p, 0) != I(0))
    return A(load(I, p, 0))


@native
def widen_bfloat16(bits: i32) -> f32:
    """Convert bfloat16 bits to float32."""
    where = stack(4)
    store(i32, where, 0, bits << 16)
    return load(f32, where, 0)


@native
def round_bfloat16(value: f32) -> i32:
    """Return the bits of the nearest bfloat16, ties to even."""
    where = stack(4)
    store(f32, where, 0, value)
    bits = load(u32, where, 0)
    near = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return i32((bits >> 16) | 0x40 if value != value else near)


@native
def store_result(p: ptr, value: A) -> None:
    """Write one result."""
    if O_BITS:
        store(O, p, 0, O(round_bfloat16(f32(value))))
    else:
        store(O, p, 0, O(value))


@native
def initial_value(p: ptr) -> A:
    """Return the initial value of a fold: its identity, or for max and min the first element."""
    if FOLD in (SUM, ANY):
        return A(0)
    if FOLD in (PROD, ALL):
        return A(1)
    return load_element(p)


@native
def fold_extreme_row(p: ptr, count: i64, step: i64, start: A) -> A:
    """Return max or min of floats: compare as if there were no NaN, and check for NaN separately."""
    total: A = start
    strange: i64 = 0
    for j in range(count):
        x = load_element(p + j * step)
        total = dsl.quick_max(total, x) if FOLD == MAX else dsl.quick_min(total, x)
        strange |= i64(x != x)
    return A(NAN) if strange != 0 or start != start else total


@native
def fold_extremes(p: ptr, count: i64, step: i64, start: A) -> A:
    return (
        fold_extreme_row(p, count, ISIZE, start) if step == ISIZE else fold_extreme_row(p, count, step, start)
    )


@native
def fold_row(p: ptr, count: i64, step: i64, start: A) -> A:
    if FOLD in (MAX, MIN) and FLOATING:
        return fold_extremes(p, count, step, start)
    total: A = start
    if step == ISIZE:
        for j in range(count):
            total = combine(total, load_element(p + j * ISIZE))
    else:
        for j in range(count):
            total = combine(total, load_element(p + j * step))
    return total


@native
def sum_row(p: ptr, count: i64, step: i64) -> f64:
    """Return a long float sum: blocks in any order, their sums added with compensation (Neumaier)."""
    total: f64 = 0.0
    lost: f64 = 0.0
    done: i64 = 0
    while done < count:
        size = BLOCK if count - done > BLOCK else count - done
        part = f64(fold_row(p + done * step, size, step, A(0)))
        both = total + part
        lost += (total - both) + part if magnitude(total) >= magnitude(part) else (part - both) + total
        total = both
        done += size
    return total + lost if lost == lost else total


@native
def magnitude(x: f64) -> f64:
    return x if x >= 0.0 else -x


@native
def fold_any_row(p: ptr, count: i64, step: i64) -> A:
    """Return the fold of one row."""
    if FOLD == SUM and FLOATING and count > BLOCK:
        return A(sum_row(p, count, step))
    return fold_row(p, count, step, initial_value(p))


@native
def fold_loop(source: ptr, out: ptr, sizes: ptr, strides: ptr, again: i64) -> None:
    """The loop of a fold."""
    kept, folded = load(i64, sizes, 0), load(i64, sizes, 8)
    over, to, step = load(i64, strides, 0), load(i64, strides, 8), load(i64, strides, 16)
    if again == 0 and kept > 1 and folded > 1 and O_IS_A and has_smaller_step(over, step):
        fold_columns(source, out, kept, folded, over, to, step)
        return
    for i in range(kept):
        value = fold_any_row(source + i * over, folded, step)
        if again != 0:
            value = combine(A(load(O, out, i * to)), value)
        store_result(out + i * to, value)


O_IS_A: i64 = template(1)  # whether partial results may be stored in the output


@native
def has_smaller_step(a: i64, b: i64) -> bool:
    return (a if a >= 0 else -a) < (b if b >= 0 else -b)


@native
def fold_columns(source: ptr, out: ptr, kept: i64, folded: i64, over: i64, to: i64, step: i64) -> None:
    """Fold row by row into the output: the kept axis is contiguous in memory."""
    for i in range(kept):
        store(O, out, i * to, O(initial_value(source + i * over)))
    for j in range(folded):
        line = source + j * step
        if over == ISIZE and to == OSIZE:
            for i in range(kept):
                store(
                    O, out, i * OSIZE, O(combine(A(load(O, out, i * OSIZE)), load_element(line + i * ISIZE)))
                )
        else:
            for i in range(kept):
                store(O, out, i * to, O(combine(A(load(O, out, i * to)), load_element(line + i * over))))


OSIZE: i64 = template(4)


@native
def is_better(a: A, b: A) -> bool:
    """Return whether b beats a as the extreme element; NaN beats all but an earlier NaN."""
    if FLOATING:
        if a != a:
            return False
        if b != b:
            return True
    if FOLD == MAX:
        return b > a
    return b < a


@native
def is_same(a: A, b: A) -> bool:
    if FLOATING:
        return a == b or (a != a and b != b)
    return a == b


@native
def index_loop(source: ptr, out: ptr, sizes: ptr, strides: ptr, again: i64) -> None:
    """argmax and argmin over one axis: find the block with the extreme element, then its first index there."""
    kept, folded = load(i64, sizes, 0), load(i64, sizes, 8)
    over, to, step = load(i64, strides, 0), load(i64, strides, 8), load(i64, strides, 16)
    for i in range(kept):
        line = source + i * over
        best, at, begin = load_element(line), i64(0), i64(0)
        while begin < folded:
            size = BLOCK if folded - begin > BLOCK else folded - begin
            candidate = fold_row(line + begin * step, size, step, load_element(line + begin * step))
            if is_better(best, candidate):
                best = candidate
                at = begin
            begin += size
        while not is_same(load_element(line + at * step), best):
            at += 1
        store(O, out, i * to, O(at))
