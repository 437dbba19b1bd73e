"""Native runtime: loops composed of NumPy's inner loops, for dtypes without emitted code (complex ones).

A program is a list of steps over numbered values: operands, result, constants, blocks of scratch memory. Each step
calls one inner loop, `(pointers, count, strides, data)`: that of a NumPy ufunc, or one defined below.
"""

from __future__ import annotations

from typing import TypeAlias

from ..compiler.dsl import call_void, i8, i32, i64, load, native, ptr, stack, store, template
from ..compiler.structs import Struct, array
from . import rt_base as base
from . import rt_folds

S: TypeAlias = float
T: TypeAlias = float


# The program: number of steps; elements of a block; then the steps
class LoopProgram(Struct):
    """A program of NumPy's inner loops."""

    steps: i64
    block: i64  # elements of a block
    first: ptr = array(1)  # the steps


# A step: loop, its data, number of values (the result is the last); per value its address or location, and stride
class LoopStep(Struct):
    """A step of a program."""

    loop: ptr
    data: ptr
    values: i64  # number of values; the result is the last
    value: ptr = array(1)  # per value: address or location, and stride


VALUES = 4
STEP_BYTES = 24 + 24 * VALUES


# A value: what it is, where (operand's number, offset into the scratch memory, address), bytes of an element
class StepValue(Struct):
    """An argument of a step."""

    kind: i64  # OPERAND, SCRATCH or CONSTANT
    location: i64  # operand's number, offset into the scratch memory, or address
    size: i64  # bytes of an element


OPERAND, SCRATCH, CONSTANT = 0, 1, 2

BLOCK: i64 = 64
MOST_SCRATCH = 16  # blocks of the widest elements, 16 bytes


@native
def program_loop(pointers: ptr, sizes: ptr, strides: ptr, variant: base.Variant) -> None:
    """Run a program over rows, block by block."""
    program, scratch = variant.program, stack(MOST_SCRATCH * BLOCK * 16)
    count, block = load(i64, sizes, 8), LoopProgram(program).block
    for row in range(load(i64, sizes, 0)):
        start: i64 = 0
        while start < count:
            size = count - start if count - start < block else block
            for k in range(LoopProgram(program).steps):
                run_step(
                    program + (LoopProgram.first + k * STEP_BYTES),
                    pointers,
                    strides,
                    scratch,
                    row,
                    start,
                    size,
                )
            start += size


@native
def run_step(
    step: LoopStep, pointers: ptr, strides: ptr, scratch: ptr, row: i64, start: i64, size: i64
) -> None:
    where, steps, count = stack(VALUES * 8), stack(VALUES * 8), stack(8)
    for j in range(step.values):
        value: StepValue = step + (LoopStep.value + j * 24)
        kind, index = value.kind, value.location
        if kind == OPERAND:
            inner = load(i64, strides, index * 16 + 8)
            at = load(ptr, pointers, index * 8) + (row * load(i64, strides, index * 16) + start * inner)
            store(ptr, where, j * 8, at)
            store(i64, steps, j * 8, inner)
        elif kind == SCRATCH:
            store(ptr, where, j * 8, scratch + index)
            store(i64, steps, j * 8, value.size)
        else:
            store(i64, where, j * 8, index)
            store(i64, steps, j * 8, 0)
    store(i64, count, 0, size)
    call_void(step.loop, where, count, steps, step.data)


# Inner loops that no ufunc has. Types: `S` source, `T` target, or the real type of a complex one ------------------
BITS: i64 = template(0)  # 1: the source is bfloat16
PART: i64 = template(0)  # bytes from a complex element to the part that is taken
BYTES: i64 = template(8)


@native
def real_to_complex(pointers: ptr, count: ptr, strides: ptr) -> None:
    for i in range(load(i64, count, 0)):
        at = load(ptr, pointers, 0) + i * load(i64, strides, 0)
        to = load(ptr, pointers, 8) + i * load(i64, strides, 8)
        if BITS:
            store(T, to, 0, T(rt_folds.widen_bfloat16(i32(load(S, at, 0)))))
        else:
            store(T, to, 0, T(load(S, at, 0)))
        store(T, to, BYTES, T(0))


@native
def complex_to_complex(pointers: ptr, count: ptr, strides: ptr) -> None:
    for i in range(load(i64, count, 0)):
        at = load(ptr, pointers, 0) + i * load(i64, strides, 0)
        to = load(ptr, pointers, 8) + i * load(i64, strides, 8)
        store(T, to, 0, T(load(S, at, 0)))
        store(T, to, BYTES, T(load(S, at, PART)))


@native
def part_of_complex(pointers: ptr, count: ptr, strides: ptr) -> None:
    for i in range(load(i64, count, 0)):
        at = load(ptr, pointers, 0) + i * load(i64, strides, 0)
        store(T, load(ptr, pointers, 8), i * load(i64, strides, 8), load(T, at, PART))


@native
def complex_of_parts(pointers: ptr, count: ptr, strides: ptr) -> None:
    for i in range(load(i64, count, 0)):
        to = load(ptr, pointers, 16) + i * load(i64, strides, 16)
        store(T, to, 0, load(T, load(ptr, pointers, 0), i * load(i64, strides, 0)))
        store(T, to, BYTES, load(T, load(ptr, pointers, 8), i * load(i64, strides, 8)))


@native
def complex_product(pointers: ptr, count: ptr, strides: ptr, data: ptr) -> None:
    """Multiply complex numbers with each of the four terms rounded; NumPy's loop fuses some multiply-adds."""
    one, two, to = load(ptr, pointers, 0), load(ptr, pointers, 8), load(ptr, pointers, 16)
    by, and_by, out = load(i64, strides, 0), load(i64, strides, 8), load(i64, strides, 16)
    size = load(i64, count, 0)
    if by == 2 * BYTES and and_by == 2 * BYTES and out == 2 * BYTES:
        for i in range(size):
            multiply_complex(one + i * (2 * BYTES), two + i * (2 * BYTES), to + i * (2 * BYTES))
    else:
        for i in range(size):
            multiply_complex(one + i * by, two + i * and_by, to + i * out)


@native
def multiply_complex(one: ptr, two: ptr, to: ptr) -> None:
    a, b = load(T, one, 0), load(T, one, BYTES)
    c, d = load(T, two, 0), load(T, two, BYTES)
    store(T, to, 0, a * c - b * d)
    store(T, to, BYTES, a * d + b * c)


@native
def select_elements(pointers: ptr, count: ptr, strides: ptr) -> None:
    """Select between two elements of `BYTES` bytes, copied as words of T."""
    for i in range(load(i64, count, 0)):
        yes = load(i8, load(ptr, pointers, 0), i * load(i64, strides, 0)) != 0
        one = load(ptr, pointers, 8) + i * load(i64, strides, 8)
        two = load(ptr, pointers, 16) + i * load(i64, strides, 16)
        to = load(ptr, pointers, 24) + i * load(i64, strides, 24)
        source = one if yes else two
        first = load(T, source, 0)
        if PART != 0:
            store(T, to, PART, load(T, source, PART))
        store(T, to, 0, first)


# Folds and scans by the inner loop of a binary ufunc, whose address is in the variant's program ----------------------
@native
def fold_by_ufunc(source: ptr, out: ptr, sizes: ptr, strides: ptr, again: i64, variant: base.Variant) -> None:
    """A fold like `rt_folds.fold_loop`: the result is both an operand and the output, with stride 0."""
    step, folded = variant.program, load(i64, sizes, 8)
    where, steps, count = stack(24), stack(24), stack(8)
    store(i64, count, 0, folded)
    store(i64, steps, 0, 0)
    store(i64, steps, 8, load(i64, strides, 16))
    store(i64, steps, 16, 0)
    for i in range(load(i64, sizes, 0)):
        to = out + i * load(i64, strides, 8)
        if again == 0:
            store_element(to, step + LoopStep.value)
        store(ptr, where, 0, to)
        store(ptr, where, 8, source + i * load(i64, strides, 0))
        store(ptr, where, 16, to)
        call_void(LoopStep(step).loop, where, count, steps, LoopStep(step).data)


@native
def store_element(to: ptr, source: ptr) -> None:
    """Store the identity of a fold, which follows the step."""
    store(T, to, 0, load(T, source, 0))
    store(T, to, BYTES, load(T, source, BYTES))


@native
def scan_by_ufunc(pointers: ptr, sizes: ptr, strides: ptr, variant: base.Variant) -> None:
    """A scan like the loop of `codegen.eager_scans`: each result is an operand of the next."""
    step, length = variant.program, load(i64, sizes, 8)
    where, steps, count = stack(24), stack(24), stack(8)
    over, to = load(i64, strides, 8), load(i64, strides, 24)
    store(i64, count, 0, length - 1)
    store(i64, steps, 0, to)
    store(i64, steps, 8, over)
    store(i64, steps, 16, to)
    for row in range(load(i64, sizes, 0) if length > 0 else 0):
        source = load(ptr, pointers, 0) + row * load(i64, strides, 0)
        target = load(ptr, pointers, 8) + row * load(i64, strides, 16)
        store_element(target, source)
        store(ptr, where, 0, target)
        store(ptr, where, 8, source + over)
        store(ptr, where, 16, target + to)
        call_void(LoopStep(step).loop, where, count, steps, LoopStep(step).data)
