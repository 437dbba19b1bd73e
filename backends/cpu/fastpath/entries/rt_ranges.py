"""The native entries of `arange`, `linspace` and `eye`, whose arguments are often other ones in each call.

They compute int32, int64, float32 and float64; other calls, and those with several keywords, are left to Python, which
has code compiled for calls that repeat.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    alwaysinline,
    f32,
    f64,
    i32,
    i64,
    likely,
    load,
    native,
    ptr,
    stack,
    store,
    unlikely,
)
from ..runtime import capi, rt_arguments, rt_entry, rt_memory
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

EXACT: f64 = 9007199254740992.0  # 2^53: smaller integers are exact in float64
MOST: i64 = 1 << 20  # maximum elements of the result
REAL: i64 = 0
WHOLE: i64 = 1
BAD: i64 = -1


@rt_entry.entry(records=False)
def arange(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`arange(start, stop=None, step=1, dtype=None)` of Python numbers.

    Python twin: operators/creation/creation.py:_arange_kernel
    """
    if unlikely(count < 1 or count > 3):
        return Outcome.FALL_BACK
    bounds = stack(24)
    store(f64, bounds, 0, f64(0.0))
    store(f64, bounds, 16, f64(1.0))
    kind = read_numbers(args, count, bounds + (8 if count == 1 else 0))
    code = result_code(entry, args + count * 8, kwnames, kind)
    first, step = load(f64, bounds, 0), load(f64, bounds, 16)
    length = (load(f64, bounds, 8) - first) / step if step != 0.0 else EXACT
    if unlikely(kind == BAD or code < 0 or not (length < f64(MOST))):
        return Outcome.FALL_BACK
    distance = i64(load(f64, bounds, 8)) - i64(first) if kind == WHOLE else i64(0)
    size = count_whole_steps(distance, i64(step)) if kind == WHOLE else count_steps(length)
    return fill_steps(entry, code, size, first, step)


@rt_entry.entry(records=False)
def linspace(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`linspace(start, stop, num, dtype=None)` of Python numbers, with the roundings of NumPy.

    Python twin: operators/creation/creation.py:_linspace_kernel
    """
    if unlikely(count != 3):
        return Outcome.FALL_BACK
    ends = stack(16)
    kind, size = read_numbers(args, 2, ends), rt_arguments.whole_number(load(ptr, args, 16))
    code = result_code(entry, args + 24, kwnames, REAL)
    if unlikely(kind == BAD or code < base.FLOAT32 or size < 2 or size > MOST):
        return Outcome.FALL_BACK
    first, last = load(f64, ends, 0), load(f64, ends, 8)
    step = (last - first) / f64(size - 1)
    if unlikely(not (step < 0.0 or step > 0.0) or step - step != 0.0):
        return Outcome.FALL_BACK
    result = fill_steps(entry, code, size, first, step)
    if likely(i64(result) > 0):
        made: capi.Ndarray = base.TensorObject(result).array
        if code == base.FLOAT64:
            store(f64, made.data, (size - 1) * 8, last)
        else:
            store(f32, made.data, (size - 1) * 4, f32(last))
    return result


@rt_entry.entry(records=False)
def eye(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`eye(n_rows, n_cols=None, dtype=None)`.

    Python twin: operators/creation/creation.py:_eye_kernel
    """
    if unlikely(count < 1 or count > 2):
        return Outcome.FALL_BACK
    rows = rt_arguments.whole_number(load(ptr, args, 0))
    columns = rt_arguments.whole_number(load(ptr, args, count * 8 - 8))
    code = result_code(entry, args + count * 8, kwnames, REAL)
    if unlikely(
        code < 0 or rows < 0 or columns < 0 or rows > MOST or columns > MOST or rows * columns > MOST
    ):
        return Outcome.FALL_BACK
    dims = stack(16)
    store(i64, dims, 0, rows)
    store(i64, dims, 8, columns)
    made: capi.Ndarray = make_result(entry, code, 2, dims, rows * columns)
    if likely(made != NULL):
        size = i64(capi.Descr(made.descr).itemsize)
        capi.memset(made.data, i32(0), rows * columns * size)
        for row in range(rows if rows < columns else columns):
            write_one(made.data, code, row * (columns + 1))
    return rt_entry.finish(entry, made)


# Arguments ------------------------------------------------------------------------------------------------------------
@native
def read_numbers(args: ptr, count: i64, to: ptr) -> i64:
    """Read Python ints and floats as float64; return WHOLE if all are ints, REAL, or BAD."""
    kind: i64 = WHOLE
    for k in range(count):
        x = load(ptr, args, k * 8)
        value: f64 = 0.0
        if capi.type_of(x) == capi.PyFloat_Type:
            value = capi.PyFloat(x).value
            kind = REAL
        else:
            whole = rt_arguments.whole_number(x)
            if unlikely(whole == rt_arguments.NO_NUMBER):
                return BAD
            value = f64(whole)
        if unlikely(not (value < EXACT and value > -EXACT)):
            return BAD
        store(f64, to, k * 8, value)
    return kind


@native
def result_code(entry: base.OperatorEntry, values: ptr, kwnames: ptr, kind: i64) -> i64:
    """Return the code of the dtype, given by name or the default; FOREIGN if Python must run the call."""
    dtype = rt_arguments.read_dtype(entry, values, kwnames)
    g = entry.globals_
    if unlikely(dtype == NULL):
        return base.FOREIGN
    if dtype == capi.Py_None:
        if kind == WHOLE:
            return base.INT64
        return base.FLOAT64 if entry.own_floats != 0 else g.default_float
    code = rt_arguments.named_code(entry, dtype)
    if code == base.FLOAT32 or code == base.FLOAT64:
        return code
    return code if kind == WHOLE and (code == base.INT32 or code == base.INT64) else base.FOREIGN


# Elements -------------------------------------------------------------------------------------------------------------
@native
def count_steps(length: f64) -> i64:
    """Return a number rounded up; 0 if it is negative."""
    if not (length > 0.0):
        return 0
    size = i64(length)
    return size + 1 if f64(size) < length else size


@native
def count_whole_steps(distance: i64, step: i64) -> i64:
    """Return how many multiples of a step, from 0, are below a distance."""
    if step < 0:
        distance = -distance
        step = -step
    return (distance + step - 1) // step if distance > 0 else i64(0)


@native
def make_result(entry: base.OperatorEntry, code: i64, rank: i64, dims: ptr, count: i64) -> ptr:
    """Return a new array of a dtype; NULL with the exception set."""
    descr: capi.Descr = load(ptr, base.Globals(entry.globals_).descrs, code * 8)
    return rt_memory.new_array(entry.globals_, descr, rank, dims, count * descr.itemsize)


@alwaysinline
def write_one(data: ptr, code: i64, at: i64) -> None:
    """Write a float of 1."""
    if code == base.FLOAT64:
        store(f64, data, at * 8, f64(1.0))
    else:
        store(f32, data, at * 4, f32(1.0))


@native
def fill_steps(entry: base.OperatorEntry, code: i64, size: i64, first: f64, step: f64) -> ptr:
    """Return a tensor of `first + i * step`, computed in float64; NULL with the exception set."""
    dims = stack(8)
    store(i64, dims, 0, size)
    made: capi.Ndarray = make_result(entry, code, 1, dims, size)
    if likely(made != NULL):
        data = made.data
        if code == base.FLOAT64:
            for k in range(size):
                store(f64, data, k * 8, f64(k) * step + first)
        elif code == base.FLOAT32:
            for k in range(size):
                store(f32, data, k * 4, f32(f64(k) * step + first))
        else:
            start, distance = i64(first), i64(step)
            for k in range(size):
                write_whole(data, code, k, start + k * distance)
    return rt_entry.finish(entry, made)


@alwaysinline
def write_whole(data: ptr, code: i64, at: i64, value: i64) -> None:
    """Write an int64 or an int32."""
    if code == base.INT64:
        store(i64, data, at * 8, value)
    else:
        store(i32, data, at * 4, i32(value))
