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
    refusal: ptr  # the classes of the exceptions with which it refuses arguments
    own_names: ptr  # the keywords that Python handles, a tuple
    values_start: (
        i64  # the first of the arguments of which numbers take the dtype of another one; 0 if there are none
    )
    takes_none: i64  # 1: Python handles calls with None
    most: i64  # Python handles calls with more positional arguments; 0: it does not
    least: i64  # Python handles calls with fewer arguments
    tensors: i64  # bit k: positional argument k is one tensor, or a number or nested lists in its place


@rt_entry.entry(records=False)
def forward(entry: ForwardEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Call the target, or Python if it refuses the arguments.

    Numbers become tensors if the first argument is one and there is no tensor; nested lists of numbers always do.

    Python twin: spellings/numpy/array_likes.py:ListFunction.__call__
    """
    g: base.Globals = entry.globals_
    named = capi.PyVarObject(kwnames).size if kwnames != NULL else i64(0)
    if unlikely(count < 1 or count + named < entry.least):
        return Outcome.FALL_BACK
    if unlikely(kwnames != NULL and has_name(kwnames, entry.own_names)):
        return Outcome.FALL_BACK
    for k in range(1, count):
        if unlikely(rt_arguments.names_default(load(ptr, args, k * 8))):
            return Outcome.FALL_BACK
    if unlikely(entry.takes_none != 0) and not is_passed_on(entry, args, count, kwnames):
        return Outcome.FALL_BACK
    first = load(ptr, args, 0)
    if unlikely(has_values(entry, args, count)):
        result = call_converted(entry, args, count, kwnames, flags)
    elif unlikely(capi.type_of(first) != g.tensor and not is_list_of_objects(first)):
        return Outcome.FALL_BACK
    else:
        result = call_target(entry, args, count, kwnames, flags)
    if likely(result != NULL):
        entry.calls += 1
        return result
    if capi.PyErr_ExceptionMatches(entry.refusal) == 0:
        return NULL
    capi.PyErr_Clear()
    return Outcome.FALL_BACK


@native
def call_target(entry: ForwardEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Call the target. Return an outcome, or NULL with an exception set."""
    if entry.values_start > 0:
        return call_with_values(entry, args, count, kwnames, flags)
    return capi.PyObject_Vectorcall(entry.target, args, count, kwnames)


@native
def is_number(x: ptr) -> bool:
    """Return whether an argument is a Python number other than a bool."""
    return bool(rt_operands.scalar_code(x) > base.WEAK_BOOL)


@native
def has_values(entry: ForwardEntry, args: ptr, count: i64) -> bool:
    """Return whether there are numbers, the first argument among them, or lists in place of tensors."""
    if count > rt_operands.MOST_ARGUMENTS:
        return False
    if (entry.tensors & 1) != 0 and is_number(load(ptr, args, 0)):
        return True
    for k in range(count):
        if (entry.tensors >> k & 1) != 0 and rt_lists.is_list(load(ptr, args, k * 8)):
            return True
    return False


@native
def has_numbers_only(entry: ForwardEntry, args: ptr, count: i64) -> bool:
    """Return whether all arguments in place of tensors are numbers, which then have their own dtypes."""
    for k in range(count):
        x = load(ptr, args, k * 8)
        if (entry.tensors >> k & 1) != 0 and x != capi.Py_None and not is_number(x):
            return False
    return True


@noinline
def call_converted(entry: ForwardEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64) -> ptr:
    """Call the target with tensors of NumPy's default dtypes in place of numbers and nested lists of numbers.

    Return an outcome, or NULL with an exception set.
    """
    named = kwnames.size if kwnames != NULL else i64(0)
    if unlikely(count + named > rt_operands.MOST_ARGUMENTS):  # with those that have names
        return Outcome.FALL_BACK
    values, made = stack(rt_operands.MOST_ARGUMENTS * 8), stack(rt_operands.MOST_ARGUMENTS * 8)
    capi.memcpy(values, args, (count + named) * 8)
    numbers = (entry.tensors & 1) != 0 and has_numbers_only(entry, args, count)
    result = ptr(Outcome.FALL_BACK)
    if likely(convert_values(entry, values, made, count, numbers)):
        result = call_target(entry, values, count, kwnames, flags)
        if numbers and capi.type_of(load(ptr, args, 0)) == capi.PyLong_Type:
            result = call_in_float64(entry, result, args, values, made, count, kwnames, flags)
    else:
        capi.PyErr_Clear()  # Python makes the tensors, or raises the exception
    for k in range(count):
        if load(ptr, made, k * 8) != NULL:
            capi.decref(load(ptr, made, k * 8))
    return result


@native
def convert_values(entry: ForwardEntry, values: ptr, made: ptr, count: i64, numbers: bool) -> bool:
    """Replace lists, and numbers if asked, by tensors.

    These are also stored in `made`, which has NULL where an argument stays.
    """
    g: base.Globals = entry.globals_
    done = True
    for k in range(count):
        x, tensor = load(ptr, values, k * 8), ptr(0)
        if done and (entry.tensors >> k & 1) != 0:
            if rt_lists.is_list(x):
                tensor = rt_lists.tensor_of_list(g, x, True, base.FLOAT64, base.FOREIGN)
                done = tensor != NULL
            elif numbers and x != capi.Py_None:
                code = rt_operands.scalar_code(x)
                tensor = rt_operands.tensor_of_scalar(g, x, code, own_dtype(code))
                done = tensor != NULL
        store(ptr, made, k * 8, tensor)
        if tensor != NULL:
            store(ptr, values, k * 8, tensor)
    return done


@noinline
def call_in_float64(
    entry: ForwardEntry, result: ptr, args: ptr, values: ptr, made: ptr, count: i64, kwnames: ptr, flags: i64
) -> ptr:
    """Return the result of a call whose first argument is an integer: that in float64, if it is of single precision.

    The function says by its result alone whether it computes with integers. The result given is consumed.
    """
    g: base.Globals = entry.globals_
    if result == NULL or i64(result) == Outcome.FALL_BACK:
        return result
    array: capi.Ndarray = rt_operands.plain_array(g, result, base.RECORD)
    code = rt_operands.array_code(g, array) if array != NULL else i64(base.FLOAT32)
    if code not in (base.FLOAT32, base.COMPLEX64):
        return result
    capi.decref(result)
    if array == NULL:  # several results
        return Outcome.FALL_BACK
    double = rt_operands.tensor_of_scalar(g, load(ptr, args, 0), base.WEAK_INT, base.FLOAT64)
    if double == NULL:
        capi.PyErr_Clear()
        return Outcome.FALL_BACK
    capi.decref(load(ptr, made, 0))
    store(ptr, made, 0, double)
    store(ptr, values, 0, double)
    return call_target(entry, values, count, kwnames, flags)


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
