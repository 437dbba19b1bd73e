"""The frame of native entries: `entry` turns a function of a call's arguments into a function of CPython's vectorcall.

`call_entry` is the prologue and the epilogue of every entry; `BODY` in it is the function that differs. What a body and
the functions that it calls return is an object, or an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from ..compiler.dsl import NULL, Opcodes, i64, likely, native, noinline, ptr, stack, unlikely
from . import capi, rt_operands
from . import rt_base as base


class Outcome(Opcodes):
    """The results of a native function that are not objects; all of them are at most 0, and no address is."""

    FAILED = 0  # NULL: an exception is set, and the caller releases what it owns and returns NULL
    RETRY = -1  # an exception is set, and nothing was written: on MemoryError, Python runs the call
    FALL_BACK = -2  # no exception is set, and nothing was written: Python runs the call
    MISS = -3  # as FALL_BACK: no variant for these operands is known, and Python may add one


DONE: i64 = 1  # the success of a function that returns no object

BODY: Any = None  # of `call_entry`: set by `entry`
RECORDS = True
COUNT = -1
CONVERTED: Any = None  # runs calls that the body refuses with converted arguments
FIRST = -1  # the first argument that may be converted; -1: none


@native
def call_entry(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Call the body of an entry, or Python: in a thread whose dispatch state is not plain, and where the body asks."""
    entry: base.OperatorEntry = base.entry_data(self)
    flags = base.thread_flags(entry.globals_)
    if unlikely(flags == base.ELSEWHERE):
        return base.fall_back(entry, args, nargsf, kwnames)
    if COUNT >= 0 and (kwnames != NULL or (nargsf & base.ARGS_MASK) != COUNT):
        return base.fall_back(entry, args, nargsf, kwnames)
    if RECORDS:
        flags = base.allowed_flags(entry, flags)
    result = BODY(entry, args, nargsf & base.ARGS_MASK, kwnames, flags)
    if likely(i64(result) > 0):
        return result
    if FIRST >= 0 and i64(result) == Outcome.FALL_BACK:
        result = CONVERTED(entry, args, nargsf & base.ARGS_MASK, kwnames, flags)
        if likely(i64(result) >= 0):
            return result
    if i64(result) == Outcome.FALL_BACK:
        return base.fall_back(entry, args, nargsf, kwnames)
    if i64(result) == Outcome.MISS:
        return base.call_miss(entry, args, nargsf, kwnames)
    if i64(result) == Outcome.RETRY:
        return base.retry_in_python(entry, args, nargsf, kwnames)
    return result


@native
def call_converted(
    entry: base.OperatorEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64
) -> ptr:
    """Call the body of an entry with tensors in place of NumPy's arrays and scalars; FALL_BACK if there are none."""
    named = kwnames.size if kwnames != NULL else i64(0)
    values = stack(rt_operands.MOST_ARGUMENTS * 8)
    if likely(not rt_operands.convert_arguments(entry.globals_, args, FIRST, count + named, values)):
        return Outcome.FALL_BACK
    result = BODY(entry, values, count, kwnames, flags)
    if i64(result) == Outcome.MISS:
        result = base.call_miss(entry, values, count, kwnames)
    elif i64(result) == Outcome.RETRY:
        result = base.retry_in_python(entry, values, count, kwnames)
    capi.release_all(values, count + named)
    return result


@native
def select_variant(entry: base.OperatorEntry, key: i64) -> ptr:
    """Return the variant of a combination of operand codes that has a loop, or an `Outcome`; FOREIGN has none."""
    if unlikely(key < 0):
        return Outcome.FALL_BACK
    variant: base.Variant = base.find_variant(entry, key)
    if unlikely(variant == NULL):
        entry.missed = key
        return Outcome.MISS
    return variant if likely(variant.loop != NULL) else ptr(Outcome.FALL_BACK)


@native
def finish(entry: base.OperatorEntry, array: ptr) -> ptr:
    """Count a call, and return the tensor of its result, which takes over the array; an outcome is passed on."""
    if unlikely(i64(array) <= 0):
        return array
    entry.calls += 1
    return base.make_tensor(entry.globals_, array)


def entry(
    body: Callable[..., Any] | None = None,
    *,
    records: bool = True,
    count: int = -1,
    converts: int = -1,
) -> Callable[..., Any]:
    """Make a native function the body of an entry.

    Args:
        body: ``body(entry, args, count, kwnames, flags)``: the data of the operator's entry, the arguments, the number
            of positional ones, the names of the others or NULL, and the thread's flags. It returns a new reference or
            an `Outcome`.
        records: whether the entry may record calls: `flags` are then those of `rt_base.allowed_flags`.
        count: the number of arguments of all calls that reach the body, none of them given by name; -1: any.
        converts: the first argument from which on tensors replace NumPy's arrays and scalars, for a second call of the
            body; -1: there is none.

    Returns:
        The native function of the entry, with the signature of CPython's vectorcall.
    """
    if body is None:
        return partial(entry, records=records, count=count, converts=converts)
    scope = {**call_entry.__globals__, "BODY": native(body), "RECORDS": records, "COUNT": count}
    if converts >= 0:
        scope["FIRST"] = converts
        again = _copy_function(call_converted, scope, f"{body.__name__}.converted", body)
        scope["CONVERTED"] = noinline(again)
    frame = native(_copy_function(call_entry, scope, body.__name__, body))
    body.__name__ = f"{body.__name__}.body"
    return frame


def _copy_function(
    function: Any, scope: dict[str, Any], name: str, body: Callable[..., Any]
) -> Callable[..., Any]:
    """Copy a function of this module for a body."""
    made = FunctionType(function.__code__, scope, name)
    made.__annotations__, made.__doc__ = function.__annotations__, body.__doc__
    made.__module__, made.__qualname__ = body.__module__, body.__qualname__
    return made
