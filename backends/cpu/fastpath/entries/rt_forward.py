"""The native entry of callables that convert the arguments of those calls only which another callable refuses."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..runtime import capi, rt_arguments, rt_entry, rt_lists, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

NO_NUMBER = -2


class ForwardEntry(base.OperatorEntry):
    """The entry of one callable."""

    target: ptr  # what is called
    refusal: ptr  # the class of the exception with which it refuses arguments
    own_names: ptr  # the keywords that Python handles, a tuple
    values_start: (
        i64  # the first of the arguments of which numbers take the dtype of another one; 0 if there are none
    )
    takes_none: i64  # 1: Python handles calls with None
    most: i64  # Python handles calls with more positional arguments; 0: it does not


@rt_entry.entry(records=False)
def forward(entry: ForwardEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Call the target, or Python if it refuses the arguments.

    Python also takes calls whose first argument is a number, or a list that begins with one, and calls with a type.

    Python twin: spellings/numpy/array_likes.py:ListFunction.__call__
    """
    g: base.Globals = entry.globals_
    if unlikely(count < 1 or (kwnames != NULL and has_name(kwnames, entry.own_names))):
        return Outcome.FALL_BACK
    for k in range(1, count):
        if unlikely(rt_arguments.names_default(load(ptr, args, k * 8))):
            return Outcome.FALL_BACK
    if unlikely(entry.takes_none != 0) and not is_passed_on(entry, args, count, kwnames):
        return Outcome.FALL_BACK
    first = load(ptr, args, 0)
    if unlikely(capi.type_of(first) != g.tensor and not is_list_of_objects(first)):
        return Outcome.FALL_BACK
    if entry.values_start > 0:
        result = call_with_values(entry, args, count, kwnames, flags)
    else:
        result = capi.PyObject_Vectorcall(entry.target, args, count, kwnames)
    if likely(result != NULL):
        entry.calls += 1
        return result
    if capi.PyErr_ExceptionMatches(entry.refusal) == 0:
        return NULL
    capi.PyErr_Clear()
    return Outcome.FALL_BACK


@native
def is_list_of_objects(x: capi.PyVarObject) -> bool:
    """Return whether an argument is a list or a tuple that does not begin with a number."""
    if not rt_lists.is_list(x):
        return False
    kind = ptr(0) if x.size == 0 else capi.type_of(load(ptr, capi.sequence_items(x), 0))
    return kind not in (capi.PyFloat_Type, capi.PyLong_Type, capi.PyComplex_Type)


@native
def is_passed_on(entry: ForwardEntry, args: ptr, count: i64, kwnames: capi.PyVarObject) -> bool:
    """Return whether no argument is None, and there are not too many by position."""
    for k in range(count + (kwnames.size if kwnames != NULL else 0)):
        if load(ptr, args, k * 8) == capi.Py_None:
            return False
    return bool(entry.most == 0 or count <= entry.most)


@native
def call_with_values(
    entry: ForwardEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64
) -> ptr:
    """Call the target; a number that does not take the precision of another value becomes a tensor first.

    Return an outcome, or NULL with an exception set.
    """
    g: base.Globals = entry.globals_
    named = kwnames.size if kwnames != NULL else i64(0)
    index = find_number(g, args, entry.values_start, count, flags)
    if index == NO_NUMBER:
        return capi.PyObject_Vectorcall(entry.target, args, count, kwnames)
    if unlikely(index == base.FOREIGN or count + named > rt_operands.MOST_ARGUMENTS):
        return Outcome.FALL_BACK
    x, values = load(ptr, args, index * 8), stack(rt_operands.MOST_ARGUMENTS * 8)
    code = rt_operands.scalar_code(x)
    made = rt_operands.tensor_of_scalar(g, x, code, own_dtype(code))
    if unlikely(made == NULL):
        capi.PyErr_Clear()
        return Outcome.FALL_BACK
    capi.memcpy(values, args, (count + named) * 8)
    store(ptr, values, index * 8, made)
    result = capi.PyObject_Vectorcall(entry.target, values, count, kwnames)
    capi.decref(made)
    return result


@native
def find_number(g: base.Globals, args: ptr, start: i64, stop: i64, flags: i64) -> i64:
    """Return the first of the numbers that have their own dtypes; NO_NUMBER; or FOREIGN: Python runs the call.

    A number takes the precision of a value of its kind or a later one (bool, integer, floating-point, complex), and of
    a floating-point one.
    """
    number, kind, where, index = i64(-1), i64(-1), stack(8), i64(NO_NUMBER)
    for k in range(start, stop):
        code = rt_operands.operand_code(g, load(ptr, args, k * 8), flags, where)
        if code == base.FOREIGN:
            return base.FOREIGN
        if code >= base.WEAK_BOOL:
            if code - base.WEAK_BOOL > number:
                number, index = code - base.WEAK_BOOL, k
        elif kind_of(code) > kind:
            kind = kind_of(code)
    return i64(NO_NUMBER) if number <= kind or kind == 2 else index


@native
def own_dtype(code: i64) -> i64:
    """Return the code of the dtype that NumPy gives a number."""
    if code == base.WEAK_BOOL:
        return base.BOOL
    if code == base.WEAK_INT:
        return base.INT64
    return base.FLOAT64 if code == base.WEAK_FLOAT else base.COMPLEX128


@native
def kind_of(code: i64) -> i64:
    """Return the number of the kind of a dtype."""
    if code == base.BOOL:
        return 0
    if code < base.FLOAT16:
        return 1
    return 2 if code < base.COMPLEX64 else 3


@noinline
def has_name(kwnames: capi.PyVarObject, names: capi.PyVarObject) -> bool:
    """Return whether a keyword argument has one of some names."""
    for i in range(kwnames.size):
        for k in range(names.size):
            if rt_arguments.string_matches(capi.item(kwnames, i), capi.item(names, k)):
                return True
    return False
