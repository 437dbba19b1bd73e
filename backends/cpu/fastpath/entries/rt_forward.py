"""The native entry of callables that convert the arguments of those calls only which another callable refuses."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, noinline, ptr, unlikely
from ..runtime import capi, rt_arguments, rt_entry
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome


class ForwardEntry(base.OperatorEntry):
    """The entry of one callable."""

    target: ptr  # what is called
    refusal: ptr  # the class of the exception with which it refuses arguments
    own_names: ptr  # the keywords that Python handles, a tuple


@rt_entry.entry(records=False)
def forward(entry: ForwardEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Call the target, or Python if it refuses the arguments; Python also takes calls whose first one is a number.

    Python twin: spellings/numpy/array_likes.py:ListFunction.__call__
    """
    g: base.Globals = entry.globals_
    if unlikely(count < 1 or (kwnames != NULL and has_name(kwnames, entry.own_names))):
        return Outcome.FALL_BACK
    kind = capi.type_of(load(ptr, args, 0))
    if unlikely(kind not in (g.tensor, capi.PyList_Type, capi.PyTuple_Type)):
        return Outcome.FALL_BACK
    result = capi.PyObject_Vectorcall(entry.target, args, count, kwnames)
    if likely(result != NULL):
        entry.calls += 1
        return result
    if capi.PyErr_ExceptionMatches(entry.refusal) == 0:
        return NULL
    capi.PyErr_Clear()
    return Outcome.FALL_BACK


@noinline
def has_name(kwnames: capi.PyVarObject, names: capi.PyVarObject) -> bool:
    """Return whether a keyword argument has one of some names."""
    for i in range(kwnames.size):
        for k in range(names.size):
            if rt_arguments.string_matches(capi.item(kwnames, i), capi.item(names, k)):
                return True
    return False
