"""Native runtime: the entry of operators whose CPU kernel is a Python function, which it calls without the dispatcher.

One entry serves every such operator of any namespace. It accepts calls whose arguments the binder would pass unchanged
and whose key set is that of plain CPU tensors. The kernel may be replaced while it runs, so the call holds a reference.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    extern,
    extern_object,
    i64,
    likely,
    load_i64,
    load_ptr,
    native,
    noinline,
    ptr,
    stack,
    store_i64,
    store_ptr,
    unlikely,
)
from ..glue.layout import OB_SIZE, TUPLE_ITEMS
from .rt_base import (
    ARGS_MASK,
    D_CALLS,
    D_GLOBALS,
    ELSEWHERE,
    G_TENSOR,
    Py_None,
    PyBool_Type,
    PyComplex_Type,
    PyErr_ExceptionMatches,
    PyExc_MemoryError,
    PyFloat_Type,
    PyLong_Type,
    PyObject_Vectorcall,
    PyTuple_Type,
    decref,
    entry_data,
    fall_back,
    incref,
    thread_flags,
    type_of,
)
from .rt_operands import plain_array

PyUnicode_Type = extern_object("PyUnicode_Type")
PyExc_OverflowError = extern_object("PyExc_OverflowError")
PyErr_Fetch = extern("PyErr_Fetch", "None(ptr, ptr, ptr)")
PyErr_NormalizeException = extern("PyErr_NormalizeException", "None(ptr, ptr, ptr)")
PyException_SetTraceback = extern("PyException_SetTraceback", "i32(ptr, ptr)")

# The struct of one operator; D_GLOBALS, D_SLOW and D_CALLS are at the offsets of any operator's
K_KERNEL = 16  # the function, or NULL
K_LEAST, K_MOST, K_ALL = (
    24,
    32,
    48,
)  # arguments to be given, that may be given by position, that the kernel takes
K_KINDS, K_DEFAULTS = 56, 64  # per argument: what its types may be, as bits; its default or NULL
K_NAMES, K_FAILED = (
    72,
    80,
)  # names of the keyword-only arguments or NULL; the function that translates an exception
K_RESULTS, K_CHECK = 88, 96  # which results need no check; the function that checks others
K_SIZE = 104

# K_RESULTS: a number of tensors (0: None, 1: a tensor, else a tuple of so many); or one of these
ANY_RESULT, ASK_PYTHON = -1, -2

MOST_ARGUMENTS = 16
TENSOR, INTEGER, REAL, BOOLEAN, STRING, COMPLEX, NOTHING = 1, 2, 4, 8, 16, 32, 64


@native
def kernel_call(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of operators with a Python kernel.

    Python twin: registry/operator.py:Operator.__call__
    """
    desc = entry_data(self)
    g = load_ptr(desc, D_GLOBALS)
    flags = thread_flags(g)
    count = nargsf & ARGS_MASK
    kernel = load_ptr(desc, K_KERNEL)
    if unlikely(kwnames != NULL or flags == ELSEWHERE or kernel == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    if unlikely(
        count < load_i64(desc, K_LEAST)
        or count > load_i64(desc, K_MOST)
        or not are_plain_arguments(g, load_ptr(desc, K_KINDS), args, count, flags)
    ):
        return fall_back(desc, args, nargsf, kwnames)
    store_i64(desc, D_CALLS, load_i64(desc, D_CALLS) + 1)
    incref(kernel)
    result: ptr = NULL
    if likely(count == load_i64(desc, K_ALL)):
        result = PyObject_Vectorcall(kernel, args, count, NULL)
    else:
        result = call_with_defaults(desc, kernel, args, count)
    decref(kernel)
    if unlikely(result == NULL):
        return translate_error(desc, args, count)
    wanted = load_i64(desc, K_RESULTS)
    if likely(wanted == ANY_RESULT or (wanted == 1 and type_of(result) == load_ptr(g, G_TENSOR))):
        return result
    return check_result(desc, g, result, wanted)


@noinline
def check_result(desc: ptr, g: ptr, result: ptr, wanted: i64) -> ptr:
    """Check a result against the schema; returns NULL with an exception set if it does not match.

    Python twin: registry/contract.py:Contract.checked
    """
    if wanted == 0 and result == Py_None:
        return result
    if wanted > 1 and type_of(result) == PyTuple_Type and load_i64(result, OB_SIZE) == wanted:
        plain: i64 = 0
        for i in range(wanted):
            if type_of(load_ptr(result, TUPLE_ITEMS + i * 8)) == load_ptr(g, G_TENSOR):
                plain += 1
        if plain == wanted:
            return result
    given = stack(8)
    store_ptr(given, 0, result)
    results = PyObject_Vectorcall(load_ptr(desc, K_CHECK), given, 1, NULL)
    decref(result)
    return results


@native
def are_plain_arguments(g: ptr, kinds: ptr, args: ptr, count: i64, flags: i64) -> bool:
    """Return whether the arguments have the declared types, need no conversion, and all tensors are plain."""
    tensors: i64 = 0
    for i in range(count):
        x, allowed_kinds = load_ptr(args, i * 8), load_i64(kinds, i * 8)
        if likely(type_of(x) == load_ptr(g, G_TENSOR)):
            if unlikely((allowed_kinds & TENSOR) == 0 or plain_array(g, x, flags) == NULL):
                return False
            tensors += 1
        elif (kind_of(x) & allowed_kinds) == 0:
            return False
    return tensors != 0


@native
def kind_of(x: ptr) -> i64:
    kind = type_of(x)
    if kind == PyLong_Type:
        return INTEGER
    if kind == PyFloat_Type:
        return REAL
    if kind == PyBool_Type:
        return BOOLEAN
    if x == Py_None:
        return NOTHING
    if kind == PyUnicode_Type:
        return STRING
    return COMPLEX if kind == PyComplex_Type else i64(0)


@noinline
def call_with_defaults(desc: ptr, kernel: ptr, args: ptr, count: i64) -> ptr:
    """Call the kernel with defaults for missing arguments."""
    values = stack(MOST_ARGUMENTS * 8)
    for i in range(load_i64(desc, K_ALL)):
        value = load_ptr(args, i * 8) if i < count else load_ptr(load_ptr(desc, K_DEFAULTS), i * 8)
        store_ptr(values, i * 8, value)
    return PyObject_Vectorcall(kernel, values, load_i64(desc, K_MOST), load_ptr(desc, K_NAMES))


@noinline
def translate_error(desc: ptr, args: ptr, count: i64) -> ptr:
    """Replace a MemoryError or OverflowError by the exception that the dispatcher raises."""
    if (
        PyErr_ExceptionMatches(load_ptr(PyExc_MemoryError, 0)) == 0
        and PyErr_ExceptionMatches(load_ptr(PyExc_OverflowError, 0)) == 0
    ):
        return NULL
    fault, values = stack(24), stack(MOST_ARGUMENTS * 8 + 8)
    PyErr_Fetch(fault, fault + 8, fault + 16)
    PyErr_NormalizeException(fault, fault + 8, fault + 16)
    value, traceback = load_ptr(fault, 8), load_ptr(fault, 16)
    if traceback != NULL:
        PyException_SetTraceback(value, traceback)
    store_ptr(values, 0, value)
    for i in range(count):
        store_ptr(values, 8 + i * 8, load_ptr(args, i * 8))
    result = PyObject_Vectorcall(load_ptr(desc, K_FAILED), values, count + 1, NULL)
    decref(load_ptr(fault, 0))
    decref(value)
    if traceback != NULL:
        decref(traceback)
    return result
