"""Native runtime: external C functions, offsets of its structs, references, thread state, falling back to Python.

The structs are plain memory that `structs` fills:

* the process struct `G_*`: the classes and constants that guards compare with, reached through each entry's data;
* the operator struct `D_*`: the data of one operator's entry;
* the variant struct `V_*`: one combination of operand types of an operator, with its loop.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    extern,
    extern_object,
    i64,
    likely,
    load_i32,
    load_i64,
    load_ptr,
    native,
    noinline,
    ptr,
    stack,
    store_i32,
    store_i64,
    store_ptr,
    unlikely,
)
from ..glue.layout import IMMORTAL, OB_REFCNT, OB_TYPE, OP_DATA

# C functions and objects -------------------------------------------------------------------------------------------
_Py_Dealloc = extern("_Py_Dealloc", "None(ptr)")
PyObject_Vectorcall = extern("PyObject_Vectorcall", "ptr(ptr, ptr, i64, ptr)")
PyType_GenericAlloc = extern("PyType_GenericAlloc", "ptr(ptr, i64)")
PyArray_NewFromDescr = extern("PyArray_NewFromDescr", "ptr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)")
PyArray_SetBaseObject = extern("PyArray_SetBaseObject", "i32(ptr, ptr)")
PyLong_AsLongLongAndOverflow = extern("PyLong_AsLongLongAndOverflow", "i64(ptr, ptr)")
PyLong_AsDouble = extern("PyLong_AsDouble", "f64(ptr)")
PyLong_FromLongLong = extern("PyLong_FromLongLong", "ptr(i64)")
PyLong_AsLongLong = extern("PyLong_AsLongLong", "i64(ptr)")
PyNumber_Add = extern("PyNumber_Add", "ptr(ptr, ptr)")
PyDict_New = extern("PyDict_New", "ptr()")
PyDict_Size = extern("PyDict_Size", "i64(ptr)")
PyDict_GetItemWithError = extern("PyDict_GetItemWithError", "ptr(ptr, ptr)")
PyDict_SetItem = extern("PyDict_SetItem", "i32(ptr, ptr, ptr)")
PyErr_Occurred = extern("PyErr_Occurred", "ptr()")
PyErr_Clear = extern("PyErr_Clear", "None()")
PyErr_ExceptionMatches = extern("PyErr_ExceptionMatches", "i32(ptr)")
PyExc_MemoryError = extern_object("PyExc_MemoryError")
PyTuple_New = extern("PyTuple_New", "ptr(i64)")
pthread_getspecific = extern("pthread_getspecific", "ptr(i32)")
PyContextVar_Get = extern("PyContextVar_Get", "i32(ptr, ptr, ptr)")
PyArray_Type, PyFloat_Type, PyLong_Type = (
    extern_object("PyArray_Type"),
    extern_object("PyFloat_Type"),
    extern_object("PyLong_Type"),
)
PyComplex_Type = extern_object("PyComplex_Type")
PyList_Type, PyDict_Type = extern_object("PyList_Type"), extern_object("PyDict_Type")
PyBool_Type, PyTuple_Type = extern_object("PyBool_Type"), extern_object("PyTuple_Type")
Py_None = extern_object("_Py_NoneStruct")
Py_True, Py_False = extern_object("_Py_TrueStruct"), extern_object("_Py_FalseStruct")

# Compile-time values that `runtime` supplies: offsets of the slots of a Tensor.
T_ARRAY: i64 = 0
T_KEYS: i64 = 0
T_META: i64 = 0
T_STORAGE: i64 = 0
K_FLAGS: i64 = 0  # and those of Guards
AT_REST: i64 = 0  # references to G_ACTIVE while every state is the default

# The process record -------------------------------------------------------------------------------------------------
G_TENSOR = 0  # class Tensor
G_KEYS, G_GRAD_KEYS = 8, 16  # the key sets of a plain tensor, and of one that is recorded
G_ACTIVE, G_STATE = (
    24,
    32,
)  # object referenced by states that are not the default; the ContextVar of the dispatch state
G_DTYPES, G_POOL = 40, 48  # map of NumPy's type numbers to codes (256 bytes); entry of the buffer pool
G_OFF = 56  # nonzero: every call goes to Python (the dispatch trace is on)
G_BFLOAT16 = 64  # NumPy's type number of bfloat16, assigned when ml_dtypes is imported
G_STORAGE, G_ZERO = 72, 80  # class Storage; the int 0
G_TYPES = 88  # the DType objects by their codes
G_DESCRS = 96  # their NumPy descriptors
G_NODE, G_META, G_HOLD, G_SPEC = 104, 112, 120, 128  # classes Node, AutogradMeta, Hold, TensorSpec
G_SEQUENCE = 136  # the iterator that numbers nodes
G_EMPTY, G_NOTHING, G_ONE, G_CPU = 144, 152, 160, 168  # the objects (), "", 1 and "cpu"
G_NOTE = 176  # while a level of a transform is open: the function called with new tensors; else NULL
G_JIT_CLOCK = 184  # counts the calls of jitted functions that machine code answers
G_NUMBER, G_WEAK_KEYS = 192, 200  # class Number, the key set of a weak scalar
G_SIZE = 208

# The operator record ------------------------------------------------------------------------------------------------
D_GLOBALS = 0  # process record
D_SLOW, D_MISS = 8, 16  # callables for a failed guard, and for unknown operand types
D_TABLE = 24  # hash table of variants: its size - 1, then pointers (NULL is free)
D_CALLS, D_NAMES = 40, 48  # calls answered natively; tuple of keyword names
D_RECORD = 56  # function that records a call for autograd
D_RECORDS = (
    64  # 0: the entry rejects calls that must be recorded; D_RECORD stays valid, since a call may be running
)
D_PLAN = 72  # struct for recording such a call without Python, or NULL
D_SIZE = 80

# Thread flags
PLAIN, NO_GRAD, ELSEWHERE = 0, 1, 2
RECORD: i64 = 3  # not a thread's flag: PLAIN, in an entry that records

ARGS_MASK: i64 = 0x7FFFFFFFFFFFFFFF  # the top bit of a vectorcall's argument count is a flag


@native
def incref(x: ptr) -> None:
    if IMMORTAL:
        count = load_i32(x, OB_REFCNT) + 1
        if likely(count != 0):
            store_i32(x, OB_REFCNT, count)
    else:
        store_i64(x, OB_REFCNT, load_i64(x, OB_REFCNT) + 1)


@native
def decref(x: ptr) -> None:
    if IMMORTAL and load_i32(x, OB_REFCNT) < 0:
        return
    count = load_i64(x, OB_REFCNT) - 1
    store_i64(x, OB_REFCNT, count)
    if unlikely(count == 0):
        _Py_Dealloc(x)


@native
def type_of(x: ptr) -> ptr:
    return load_ptr(x, OB_TYPE)


@native
def thread_flags(g: ptr) -> i64:
    """Return the dispatch state as flags for native entries: PLAIN, NO_GRAD or ELSEWHERE.

    Python twin: registry/dispatch/state.py:flags_of
    """
    if likely(((load_i64(load_ptr(g, G_ACTIVE), OB_REFCNT) - AT_REST) | load_i64(g, G_OFF)) == 0):
        return PLAIN
    return flags_of_state(g)


@noinline
def flags_of_state(g: ptr) -> i64:
    """Return the flags of the current dispatch state, if any thread has one that is not the default."""
    where = stack(8)
    if load_i64(g, G_OFF) != 0:
        return ELSEWHERE
    if unlikely(PyContextVar_Get(load_ptr(g, G_STATE), NULL, where) < 0):
        PyErr_Clear()
        return ELSEWHERE
    guards = load_ptr(where, 0)
    flags = load_ptr(guards, K_FLAGS)
    result: i64 = ELSEWHERE
    if flags == load_ptr(g, G_ZERO):
        result = PLAIN
    elif flags == load_ptr(g, G_ONE):
        result = NO_GRAD
    decref(guards)
    return result


@native
def fall_back(desc: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Let Python run this call."""
    return PyObject_Vectorcall(load_ptr(desc, D_SLOW), args, nargsf & ARGS_MASK, kwnames)


@noinline
def retry_in_python(desc: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """On MemoryError, clear the error and retry in Python, which raises the proper exception; nothing was written."""
    if PyErr_ExceptionMatches(load_ptr(PyExc_MemoryError, 0)) == 0:
        return NULL
    PyErr_Clear()
    return fall_back(desc, args, nargsf, kwnames)


@native
def make_tensor(g: ptr, array: ptr) -> ptr:
    """Return a plain tensor that owns the array reference; on failure NULL, an exception set, the array released.

    Python twin: eager/tensor/tensor.py:wrap
    """
    tensor = PyType_GenericAlloc(load_ptr(g, G_TENSOR), 0)
    if unlikely(tensor == NULL):
        decref(array)
        return NULL
    none: ptr = Py_None
    keys = load_ptr(g, G_KEYS)
    incref(none)
    incref(none)
    incref(keys)
    store_slots(tensor, array, keys, none)
    if unlikely(load_ptr(g, G_NOTE) != NULL):
        return note_tensor(g, tensor)
    return tensor


@noinline
def note_tensor(g: ptr, tensor: ptr) -> ptr:
    """Report a new tensor to the open level of a transform, and return it."""
    arguments = stack(8)
    store_ptr(arguments, 0, tensor)
    done = PyObject_Vectorcall(load_ptr(g, G_NOTE), arguments, 1, NULL)
    if unlikely(done == NULL):
        decref(tensor)
        return NULL
    decref(done)
    return tensor


@native
def store_slots(tensor: ptr, array: ptr, keys: ptr, none: ptr) -> None:
    store_ptr(tensor, T_ARRAY, array)
    store_ptr(tensor, T_KEYS, keys)
    store_ptr(tensor, T_META, none)
    store_ptr(tensor, T_STORAGE, none)


@native
def entry_data(self: ptr) -> ptr:
    return load_ptr(self, OP_DATA)


@native
def call_miss(desc: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Operand types without a variant: Python runs the call, and may add a variant."""
    return PyObject_Vectorcall(load_ptr(desc, D_MISS), args, nargsf & ARGS_MASK, kwnames)


@native
def allowed_flags(desc: ptr, flags: i64) -> i64:
    """Return which tensors an entry accepts: also those that require gradients, if it can record or need not."""
    return RECORD if flags == PLAIN and load_i64(desc, D_RECORDS) != 0 else flags


@native
def has_history(g: ptr, x: ptr, flags: i64) -> bool:
    """Return whether a call on this tensor, which the entry has accepted, must be recorded."""
    return flags == RECORD and load_ptr(x, T_KEYS) == load_ptr(g, G_GRAD_KEYS)
