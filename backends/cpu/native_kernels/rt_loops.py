"""Native runtime: call an inner loop with the convention of NumPy's generalized ufuncs, for all items of a batch."""

from __future__ import annotations

from ..fastpath.compiler.dsl import Opcodes, call_void, extern, i64, load, native, ptr, stack, store
from ..fastpath.compiler.structs import Struct
from ..fastpath.runtime import capi

feclearexcept = extern("feclearexcept", "i32(i32)")
fetestexcept = extern("fetestexcept", "i32(i32)")
FE_INVALID: i64 = 1  # on x86-64 and on aarch64
MOST_OPERANDS: i64 = 8
MOST_AXES: i64 = 64


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
        call_void(loop, given, call + call.dims, call + call.steps, data)
        more = step_outer_axes(call, index, at)
    if call.failures == Failures.FLAG:
        return i64(fetestexcept(1))
    return load(i64, failed, 0)


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
