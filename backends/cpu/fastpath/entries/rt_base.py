"""Native runtime: external C functions, structs of all entries, references, thread state, falling back to Python.

The structs are plain memory that `structs` fills:

* `Globals`, one in the process: the classes and constants that guards compare with, reached through each entry's data;
* `OperatorEntry`: the data of one operator's entry;
* `rt_elementwise.Variant`: one combination of operand types of an operator, with its loop.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    extern,
    extern_object,
    i32,
    i64,
    likely,
    load,
    native,
    noinline,
    ptr,
    stack,
    store,
    unlikely,
)
from ..compiler.structs import Struct, at
from ..glue.layout import IMMORTAL, OP_DATA, PyObject

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


# `runtime` supplies the offsets of slots, and AT_REST.
class TensorObject(PyObject):
    """The slots of a Tensor."""

    slot_prefix = "T_"

    array: ptr
    keys: ptr
    meta: ptr
    storage: ptr


class GuardsObject(PyObject):
    """The slots of the dispatch state's `Guards`."""

    slot_prefix = "K_"

    flags: ptr


AT_REST: i64 = 0  # references to `Globals.active` while every state is the default


# Structs ------------------------------------------------------------------------------------------------------------
class Globals(Struct):
    """The process struct: the classes and constants that guards compare with."""

    tensor: ptr  # class Tensor
    keys: ptr  # the key set of a plain tensor
    grad_keys: ptr  # the key set of a tensor that is recorded
    active: ptr  # referenced by dispatch states that are not the default
    state: ptr  # the ContextVar of the dispatch state
    dtypes: ptr  # 256 bytes: NumPy's type numbers to codes
    pool: ptr
    off: i64  # nonzero: every call goes to Python (the dispatch trace is on)
    bfloat16: i64  # NumPy's type number of bfloat16, assigned when ml_dtypes is imported
    storage: ptr  # class Storage
    zero: ptr  # the int 0
    types: ptr  # the DType objects by their codes
    descrs: ptr  # their NumPy descriptors
    node: ptr  # class Node
    meta: ptr  # class AutogradMeta
    hold: ptr  # class Hold
    spec: ptr  # class TensorSpec
    sequence: ptr  # the iterator that numbers nodes
    empty: ptr  # ()
    nothing: ptr  # ""
    one: ptr  # the int 1
    cpu: ptr  # "cpu"
    note: ptr  # while a level of a transform is open: the function called with new tensors; else NULL
    jit_clock: i64  # counts the calls of jitted functions that machine code answers
    number: ptr  # class Number
    weak_keys: ptr  # the key set of a weak scalar


class OperatorEntry(Struct):
    """The data of one operator's entry."""

    globals_: Globals
    fall_back: ptr  # called on a failed guard
    miss: ptr  # called on operand types without a variant
    variants: ptr  # hash table: its size - 1, then pointers (NULL is free)
    calls: i64 = at(40)  # calls answered natively
    names: ptr  # tuple of keyword names
    record: ptr  # function that records a call; stays valid, since a call may be running
    records: i64  # 0: the entry rejects calls that must be recorded
    recording: ptr  # Recording, to record a call without Python; or NULL


# Thread flags
PLAIN, NO_GRAD, ELSEWHERE = 0, 1, 2
RECORD: i64 = 3  # not a thread's flag: PLAIN, in an entry that records

ARGS_MASK: i64 = 0x7FFFFFFFFFFFFFFF  # the top bit of a vectorcall's argument count is a flag


@native
def incref(x: PyObject) -> None:
    if IMMORTAL:
        count = load(i32, x, PyObject.refcnt) + 1
        if likely(count != 0):
            store(i32, x, PyObject.refcnt, count)
    else:
        x.refcnt += 1


@native
def decref(x: PyObject) -> None:
    if IMMORTAL and load(i32, x, PyObject.refcnt) < 0:
        return
    count = x.refcnt - 1
    x.refcnt = count
    if unlikely(count == 0):
        _Py_Dealloc(x)


@native
def type_of(x: PyObject) -> ptr:
    return x.type


@native
def thread_flags(g: Globals) -> i64:
    """Return the dispatch state as flags for native entries: PLAIN, NO_GRAD or ELSEWHERE.

    Python twin: registry/dispatch/state.py:flags_of
    """
    if likely(((PyObject(g.active).refcnt - AT_REST) | g.off) == 0):
        return PLAIN
    return flags_of_state(g)


@noinline
def flags_of_state(g: Globals) -> i64:
    """Return the flags of the current dispatch state, if any thread has one that is not the default."""
    where = stack(8)
    if g.off != 0:
        return ELSEWHERE
    if unlikely(PyContextVar_Get(g.state, NULL, where) < 0):
        PyErr_Clear()
        return ELSEWHERE
    guards: GuardsObject = load(ptr, where, 0)
    flags = guards.flags
    result: i64 = ELSEWHERE
    if flags == g.zero:
        result = PLAIN
    elif flags == g.one:
        result = NO_GRAD
    decref(guards)
    return result


@native
def fall_back(desc: OperatorEntry, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Let Python run this call."""
    return PyObject_Vectorcall(desc.fall_back, args, nargsf & ARGS_MASK, kwnames)


@noinline
def retry_in_python(desc: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """On MemoryError, clear the error and retry in Python, which raises the proper exception; nothing was written."""
    if PyErr_ExceptionMatches(load(ptr, PyExc_MemoryError, 0)) == 0:
        return NULL
    PyErr_Clear()
    return fall_back(desc, args, nargsf, kwnames)


@native
def make_tensor(g: Globals, array: ptr) -> ptr:
    """Return a plain tensor that owns the array reference; on failure NULL, an exception set, the array released.

    Python twin: eager/tensor/tensor.py:wrap
    """
    tensor = PyType_GenericAlloc(g.tensor, 0)
    if unlikely(tensor == NULL):
        decref(array)
        return NULL
    none: ptr = Py_None
    keys = g.keys
    incref(none)
    incref(none)
    incref(keys)
    store_slots(tensor, array, keys, none)
    if unlikely(g.note != NULL):
        return note_tensor(g, tensor)
    return tensor


@noinline
def note_tensor(g: Globals, tensor: ptr) -> ptr:
    """Report a new tensor to the open level of a transform, and return it."""
    arguments = stack(8)
    store(ptr, arguments, 0, tensor)
    done = PyObject_Vectorcall(g.note, arguments, 1, NULL)
    if unlikely(done == NULL):
        decref(tensor)
        return NULL
    decref(done)
    return tensor


@native
def store_slots(tensor: TensorObject, array: ptr, keys: ptr, none: ptr) -> None:
    tensor.array = array
    tensor.keys = keys
    tensor.meta = none
    tensor.storage = none


@native
def entry_data(self: ptr) -> ptr:
    return load(ptr, self, OP_DATA)


@native
def call_miss(desc: OperatorEntry, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Operand types without a variant: Python runs the call, and may add a variant."""
    return PyObject_Vectorcall(desc.miss, args, nargsf & ARGS_MASK, kwnames)


@native
def allowed_flags(desc: OperatorEntry, flags: i64) -> i64:
    """Return which tensors an entry accepts: also those that require gradients, if it can record or need not."""
    return RECORD if flags == PLAIN and desc.records != 0 else flags


@native
def has_history(g: Globals, x: TensorObject, flags: i64) -> bool:
    """Return whether a call on this tensor, which the entry has accepted, must be recorded."""
    return flags == RECORD and x.keys == g.grad_keys
