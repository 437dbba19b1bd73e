"""The frame of native entries: `entry` turns a function of a call's arguments into a function of CPython's vectorcall.

`call_entry` is the prologue and the epilogue of every entry; `BODY` in it is the function that differs. What a body and
the functions that it calls return is an object, or an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from ..... import lazy
from ..compiler.dsl import NULL, Opcodes, i64, likely, load, native, noinline, ptr, stack, unlikely
from . import capi, rt_operands
from . import rt_base as base

rt_outputs = lazy.Module(".backends.cpu.fastpath.runtime.rt_outputs")  # imported to compile an entry


class Outcome(Opcodes):
    """The results of a native function that are not objects; all of them are at most 0, and no address is."""

    FAILED = 0  # NULL: an exception is set, and the caller releases what it owns and returns NULL
    RETRY = -1  # an exception is set, and nothing was written: on MemoryError, Python runs the call
    FALL_BACK = -2  # no exception is set, and nothing was written: Python runs the call
    MISS = -3  # as FALL_BACK: no variant for these operands is known, and Python may add one


DONE: i64 = 1  # the success of a function that returns no object

BODY: Any = None  # of `call_entry`: set by `entry`
RECORDS = True
AT_LEVEL: Any = None  # runs calls on values of levels that the body refuses
TAKES_VALUES = False  # whether there is one
COUNT = -1
CONVERTED: Any = None  # runs calls that the body refuses with converted arguments
FIRST = -1  # the first argument that may be converted; -1: none
WRITING: Any = None  # runs calls with keywords: `call_writing` of the body
HAS_DIRECT = 0  # 1: DIRECT computes calls into `out`
DIRECT: Any = None
CHANGED: Any = None  # runs calls that the body refuses: `call_changed`


@native
def call_entry(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Call the body of an entry, or Python: in a thread whose dispatch state is not plain, and where the body asks."""
    entry: base.OperatorEntry = base.entry_data(self)
    flags = base.thread_flags(entry.globals_)
    if unlikely(flags == base.ELSEWHERE):
        return base.fall_back(entry, args, nargsf, kwnames)
    count = nargsf & base.ARGS_MASK
    if COUNT >= 0 and unlikely(
        (count != COUNT and find_last_names(entry, args, count, kwnames) == NULL)
        or (kwnames != NULL and entry.write_out == NULL)
    ):
        return base.fall_back(entry, args, nargsf, kwnames)
    if RECORDS:
        flags = base.allowed_flags(entry, flags)
    if unlikely(kwnames != NULL and entry.write_out != NULL):
        result = WRITING(entry, args, count, kwnames, flags)
    elif COUNT >= 0 and unlikely(count != COUNT):
        result = ptr(Outcome.FALL_BACK)
    else:
        result = BODY(entry, args, count, kwnames, flags)
    if likely(i64(result) > 0):
        return result
    if i64(result) == Outcome.FALL_BACK:
        result = CHANGED(entry, args, count, kwnames, flags)
    if i64(result) == Outcome.FALL_BACK:
        return base.fall_back(entry, args, nargsf, kwnames)
    if i64(result) == Outcome.MISS:
        return base.call_miss(entry, args, nargsf, kwnames)
    if i64(result) == Outcome.RETRY:
        return base.retry_in_python(entry, args, nargsf, kwnames)
    return result


@native
def call_changed(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Run a call that the body of an entry refuses in another spelling, at a level, or with converted arguments."""
    result = ptr(Outcome.FALL_BACK)
    names = find_last_names(entry, args, count, kwnames)
    if names != NULL:
        count -= 1
        kwnames = names
        result = WRITING(entry, args, count, names, flags)
    if TAKES_VALUES and unlikely(
        i64(result) == Outcome.FALL_BACK and entry.globals_.note != NULL and entry.batching != 0
    ):
        result = AT_LEVEL(entry, args, count, kwnames)
    if FIRST >= 0 and i64(result) == Outcome.FALL_BACK:
        result = CONVERTED(entry, args, count, kwnames, flags)
    return result


@native
def find_last_names(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr) -> ptr:
    """Return the names for a call whose last argument the schema has by name only, `out` for instance; else NULL."""
    if (
        likely(kwnames != NULL or entry.last_names == NULL or count != entry.limit + 1)
        or count < 2
        or (COUNT >= 0 and count != COUNT + 1)
    ):
        return NULL
    names = capi.PyDict_GetItemWithError(entry.last_names, capi.type_of(load(ptr, args, count * 8 - 8)))
    if unlikely(names == NULL):
        capi.PyErr_Clear()
    return names


@native
def call_converted(
    entry: base.OperatorEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64
) -> ptr:
    """Call the body of an entry with tensors in place of NumPy's arrays and scalars; FALL_BACK if there are none."""
    named = kwnames.size if kwnames != NULL else i64(0)
    values = stack(rt_operands.MOST_ARGUMENTS * 8)
    if named != 0 and not rt_outputs.is_valid_out(entry.globals_, args + count * 8, kwnames):
        return Outcome.FALL_BACK
    if likely(not rt_operands.convert_arguments(entry.globals_, args, FIRST, count + named, values)):
        return Outcome.FALL_BACK
    if named != 0 and entry.write_out != NULL:
        result = WRITING(entry, values, count, kwnames, flags)
    else:
        result = BODY(entry, values, count, kwnames, flags)
    if i64(result) == Outcome.MISS:
        result = base.call_miss(entry, values, count, kwnames)
    elif i64(result) == Outcome.RETRY:
        result = base.retry_in_python(entry, values, count, kwnames)
    capi.release_all(values, count + named)
    return result


@native
def call_writing(
    entry: base.OperatorEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64
) -> ptr:
    """Run a call with keywords: where `out` is among them, without that, and write the result into it.

    Python twin: registry/respelled_calls.py:RespelledCalls._writing
    """
    g, named = entry.globals_, kwnames.size
    index = rt_outputs.find_out(g, kwnames)
    if COUNT >= 0 and (index == rt_outputs.NO_OUT or named > 1):
        return Outcome.FALL_BACK
    if index == rt_outputs.NO_OUT:
        return BODY(entry, args, count, kwnames, flags)
    if unlikely(count + named > rt_operands.MOST_ARGUMENTS):
        return Outcome.FALL_BACK
    out, rest = load(ptr, args, (count + index) * 8), ptr(0)
    allowed = base.PLAIN if flags == base.RECORD else flags
    if unlikely(out != capi.Py_None and rt_operands.plain_array(g, out, allowed) == NULL):
        return Outcome.FALL_BACK
    if HAS_DIRECT != 0 and likely(named == 1 and out != capi.Py_None):
        result = DIRECT(entry, args, count, allowed, out)
        if likely(i64(result) != Outcome.FALL_BACK):
            return result
    values = stack(rt_operands.MOST_ARGUMENTS * 8)
    capi.memcpy(values, args, (count + index) * 8)
    capi.memcpy(values + (count + index) * 8, args + (count + index + 1) * 8, (named - index - 1) * 8)
    if unlikely(named > 1):
        rest = rt_outputs.names_without(kwnames, index)
        if unlikely(rest == NULL):
            return Outcome.FAILED
    result = BODY(entry, values, count, rest, flags)
    capi.release(rest)
    if unlikely(i64(result) <= 0 or out == capi.Py_None):
        return result
    return rt_outputs.write_result(entry, result, out, allowed)


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
    direct: Any = None,
    at_level: Callable[..., Any] | None = None,
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
        direct: ``direct(entry, args, count, flags, out)`` computes a call into the tensor ``out``, which is plain, and
            returns that, or FALL_BACK where the body has to compute a result that is copied; None: always.
        at_level: `rt_batches.run_at_level`, if the entry may run calls on values of levels.

    Returns:
        The native function of the entry, with the signature of CPython's vectorcall.
    """
    if body is None:
        return partial(
            entry, records=records, count=count, converts=converts, direct=direct, at_level=at_level
        )
    scope = {**call_entry.__globals__, "BODY": native(body), "RECORDS": records, "COUNT": count}
    scope |= {"AT_LEVEL": at_level, "TAKES_VALUES": at_level is not None}
    if direct is not None:
        scope.update(HAS_DIRECT=1, DIRECT=noinline(direct))
    scope["find_last_names"] = noinline(
        _copy_function(find_last_names, scope, f"{body.__name__}.names", body)
    )
    scope["WRITING"] = noinline(_copy_function(call_writing, scope, f"{body.__name__}.writing", body))
    if converts >= 0:
        scope["FIRST"] = converts
        again = _copy_function(call_converted, scope, f"{body.__name__}.converted", body)
        scope["CONVERTED"] = noinline(again)
    scope["CHANGED"] = noinline(_copy_function(call_changed, scope, f"{body.__name__}.changed", body))
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
