"""Native runtime: the entry of operators whose CPU kernel is a Python function: it is called without the dispatcher.

One entry serves every such operator of any namespace. It takes calls that the binder would leave as they are and whose
key set is that of plain tensors on the CPU; the kernel may be replaced while it runs, so the call holds it.
"""

from __future__ import annotations

from .dsl import (
    NULL,
    apart,
    extern,
    extern_object,
    i64,
    likely,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_i64,
    store_ptr,
    unlikely,
)
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
    decref,
    entry_data,
    incref,
    slow,
    thread_flags,
    type_of,
)
from .rt_operands import plain_array

PyUnicode_Type = extern_object("PyUnicode_Type")
PyExc_OverflowError = extern_object("PyExc_OverflowError")
PyErr_Fetch = extern("PyErr_Fetch", "None(ptr, ptr, ptr)")
PyErr_NormalizeException = extern("PyErr_NormalizeException", "None(ptr, ptr, ptr)")
PyException_SetTraceback = extern("PyException_SetTraceback", "i32(ptr, ptr)")

# The record of one operator; D_GLOBALS, D_SLOW and D_CALLS lie as in any operator's
K_KERNEL = 16  # the function, or NULL
K_LEAST, K_MOST, K_ALL = (
    24,
    32,
    48,
)  # arguments to be given, that may be given by position, that the kernel takes
K_KINDS, K_DEFAULTS = 56, 64  # per argument: what its types may be, as bits; its default or NULL
K_NAMES, K_FAILED = 72, 80  # names of the keyword-only arguments or NULL; what turns an exception into ours
K_SIZE = 88

MOST_ARGUMENTS = 16
TENSOR, INTEGER, REAL, BOOLEAN, STRING, COMPLEX, NOTHING = 1, 2, 4, 8, 16, 32, 64


@native
def kernel_call(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    desc = entry_data(self)
    g = load_ptr(desc, D_GLOBALS)
    flags = thread_flags(g)
    count = nargsf & ARGS_MASK
    kernel = load_ptr(desc, K_KERNEL)
    if unlikely(kwnames != NULL or flags == ELSEWHERE or kernel == NULL):
        return slow(desc, args, nargsf, kwnames)
    if unlikely(
        count < load_i64(desc, K_LEAST)
        or count > load_i64(desc, K_MOST)
        or not taken(g, load_ptr(desc, K_KINDS), args, count, flags)
    ):
        return slow(desc, args, nargsf, kwnames)
    store_i64(desc, D_CALLS, load_i64(desc, D_CALLS) + 1)
    incref(kernel)
    result: ptr = NULL
    if likely(count == load_i64(desc, K_ALL)):
        result = PyObject_Vectorcall(kernel, args, count, NULL)
    else:
        result = call_filled(desc, kernel, args, count)
    decref(kernel)
    return result if likely(result != NULL) else kernel_failed(desc, args, count)


@native
def taken(g: ptr, kinds: ptr, args: ptr, count: i64, flags: i64) -> bool:
    """Whether the arguments are of their types and stay as they are, and the tensors among them are plain."""
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


@apart
def call_filled(desc: ptr, kernel: ptr, args: ptr, count: i64) -> ptr:
    """Call the kernel with the defaults of what was not given."""
    values = stack(MOST_ARGUMENTS * 8)
    for i in range(load_i64(desc, K_ALL)):
        value = load_ptr(args, i * 8) if i < count else load_ptr(load_ptr(desc, K_DEFAULTS), i * 8)
        store_ptr(values, i * 8, value)
    return PyObject_Vectorcall(kernel, values, load_i64(desc, K_MOST), load_ptr(desc, K_NAMES))


@apart
def kernel_failed(desc: ptr, args: ptr, count: i64) -> ptr:
    """An exception is set: want of memory and overflow are told as the dispatcher tells them."""
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
