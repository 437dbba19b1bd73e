"""Native runtime: call an inner loop with the convention of NumPy's generalized ufuncs, for all items of a batch.

A `LoopCall` has the sizes and strides of a call. A `LoopPlan` has all of an eager call for operands of some dtypes,
sizes and strides: the loop, its `LoopCall`, the results, and conversions of operands and results to the loop's dtypes.
A plan is one block of memory (the bytes of a Python object); offsets count from its start.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    Opcodes,
    call_void,
    extern,
    i64,
    load,
    native,
    noinline,
    ptr,
    stack,
    stack_of,
    store,
    template,
)
from ..compiler.structs import Struct, sizeof
from . import capi, rt_layouts

feclearexcept = extern("feclearexcept", "i32(i32)")
fetestexcept = extern("fetestexcept", "i32(i32)")
FE_INVALID: i64 = 1  # on x86-64 and on aarch64
MOST_OPERANDS: i64 = 8
MOST_AXES: i64 = 64
EXPONENT: i64 = 2047  # of infinities and NaN


class Failures(Opcodes):
    """The ways in which a loop reports that it failed."""

    NEVER = 0
    FLAG = 1  # it sets the floating-point exception "invalid" if it failed, and clears it otherwise
    COUNT = 2  # it adds to the integer that `data` points to


class LoopCall(Struct):
    """The sizes and strides of one call; the tables follow."""

    operands: i64  # of these, results included
    axes: i64  # outer axes, for each item of which the loop is called
    failures: i64  # a member of `Failures`
    dims: i64  # the offset of the loop's sizes, in bytes
    steps: i64  # of its strides
    parts: i64  # float64 numbers in an element of the first operand, if its square matrices must be finite; else 0
    outer: i64  # of the outer axes: the size, then each operand's stride in bytes


@native
def call_loop(loop: ptr, data: ptr, operands: ptr, call: LoopCall) -> i64:
    """Call a loop for each item of the outer axes; return a number other than 0 if it failed for one of them."""
    count = call.operands * 8
    at, given, index = stack(MOST_OPERANDS * 8), stack(MOST_OPERANDS * 8), stack(MOST_AXES * 8)
    failed = stack(8)
    store(i64, failed, 0, 0)
    capi.memcpy(at, operands, count)
    for d in range(call.axes):
        store(i64, index, d * 8, 0)
    if call.failures == Failures.FLAG:
        feclearexcept(1)
    elif call.failures == Failures.COUNT:
        data = failed
    more = True
    while more:
        capi.memcpy(given, at, count)
        if call.parts != 0 and not are_finite(load(ptr, given, 0), call):
            return 1
        call_void(loop, given, call + call.dims, call + call.steps, data)
        more = step_outer_axes(call, index, at)
    if call.failures == Failures.FLAG:
        return i64(fetestexcept(1))
    return load(i64, failed, 0)


@noinline
def are_finite(source: ptr, call: LoopCall) -> bool:
    """Return whether all elements of the first operand, square matrices of float64 or complex128, are finite."""
    dims, steps, at = call + call.dims, call + call.steps, call.operands * 8
    size, over, along = load(i64, dims, 8), load(i64, steps, at), load(i64, steps, at + 8)
    for k in range(load(i64, dims, 0)):
        matrix = source + k * load(i64, steps, 0)
        for i in range(size):
            for j in range(size):
                for part in range(call.parts):
                    bits = load(i64, matrix, i * over + j * along + part * 8)
                    if (bits >> 52) & EXPONENT == EXPONENT:
                        return False
    return True


@native
def step_outer_axes(call: LoopCall, index: ptr, pointers: ptr) -> bool:
    """Step the outer axes like an odometer and move the pointers; return false after the last step."""
    more, d = False, call.axes - 1
    while d >= 0 and not more:
        axis = call + call.outer + d * (call.operands + 1) * 8
        at = load(i64, index, d * 8) + 1
        more = at < load(i64, axis, 0)
        steps = i64(1) if more else 1 - at
        for k in range(call.operands):
            moved = load(ptr, pointers, k * 8) + steps * load(i64, axis, 8 + k * 8)
            store(ptr, pointers, k * 8, moved)
        store(i64, index, d * 8, at if more else 0)
        d -= 1
    return more


class LoopPlan(Struct):
    """A call of a loop for operands of some dtypes, sizes and strides; `LoopOperand` structs follow."""

    loop: ptr
    data: ptr  # what is passed to the loop, if it has no words
    words: i64  # the offset of the words whose address is passed to the loop, or 0
    call: i64  # the offset of the `LoopCall`
    tensors: (
        i64  # the number of operands that are given by the call: tensors, or Python numbers in their place
    )
    numbers: i64  # the number of operands that the plan holds, which follow
    results: i64
    scratch: i64  # bytes of scratch memory, for converted operands and results
    is_long: i64  # 1: run without the GIL
    may_raise: i64  # 1: the loop may set a Python exception
    is_emitted: i64  # 1: the loop is tandem's


class LoopOperand(Struct):
    """An operand or a result of a plan."""

    code: i64  # of its dtype
    descr: ptr  # of a result: its NumPy descriptor
    nbytes: i64  # of a result
    rank: i64
    dims: i64  # the offset of its sizes; of a number that the plan holds: the offset of its value
    steps: i64  # of an operand that is given by the call: the offset of its strides, in bytes
    convert: ptr  # the loop that converts an operand before the call, or a result after it; or NULL
    scratch: (
        i64  # the offset in scratch memory of the converted operand, or of the result before its conversion
    )
    axes: i64  # of the conversion
    shape: i64  # the offset of the sizes of the conversion
    strides: i64  # the offset of its strides, of source and target for each axis


@native
def operand_of(plan: ptr, k: i64) -> ptr:
    """Return the k-th operand, numbers and results included, of a plan."""
    return plan + sizeof(LoopPlan) + k * sizeof(LoopOperand)


@native
def run_plan(plan: LoopPlan, memory: ptr, scratch: ptr) -> i64:
    """Run the call of a plan; return a number other than 0 if the loop failed. It needs no GIL.

    Args:
        plan: the plan.
        memory: the addresses of the given operands and of the results.
        scratch: scratch memory of the size in the plan.
    """
    given, tensors, numbers = stack(MOST_OPERANDS * 8), plan.tensors, plan.numbers
    for k in range(tensors + numbers + plan.results):
        operand: LoopOperand = operand_of(plan, k)
        at: ptr = plan + operand.dims
        if k < tensors or k >= tensors + numbers:
            at = load(ptr, memory, (k if k < tensors else k - numbers) * 8)
        if operand.convert != NULL:
            if k < tensors:
                convert(plan, operand, at, scratch + operand.scratch)
            at = scratch + operand.scratch
        store(ptr, given, k * 8, at)
    data = plan.data if plan.words == 0 else plan + plan.words
    failed = call_loop(plan.loop, data, given, plan + plan.call)
    for k in range(tensors, tensors + plan.results if failed == 0 else tensors):
        result: LoopOperand = operand_of(plan, k + numbers)
        if result.convert != NULL:
            convert(plan, result, scratch + result.scratch, load(ptr, memory, k * 8))
    return failed


@native
def convert(plan: ptr, operand: LoopOperand, source: ptr, target: ptr) -> None:
    """Convert the elements of an operand; loops of conversions have two operands (`NARGS`)."""
    shape, strides = plan + operand.shape, plan + operand.strides
    rt_layouts.run_nest(operand.convert, stack_of(source, target), shape, strides, operand.axes, NULL)


fold_loop = extern("fold_loop", "None(ptr, ptr, ptr, ptr)")
COLUMNS: i64 = template(0)  # 1: fold in the order of columns


@native
def fold(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop (n)->() of a fold, by the loop of eager reductions (`codegen/folds/eager.py`)."""
    sizes = stack_of(load(i64, dims, 0), load(i64, dims, 8), COLUMNS, 1)
    strides = stack_of(load(i64, steps, 0), load(i64, steps, 8), load(i64, steps, 16), 0)
    fold_loop(load(ptr, args, 0), load(ptr, args, 8), sizes, strides)
