"""C functions and objects of CPython, NumPy and the C library, the layouts of their objects, and references.

The layouts hold for 64-bit CPython 3.11 to 3.13 with the GIL and NumPy 2; `glue/layout.py:check` compares each of them
with a live object.
"""

from __future__ import annotations

import sys

from ..compiler import dsl
from ..compiler.dsl import NULL, extern, extern_object, f64, i32, i64, likely, load, native, ptr, unlikely
from ..compiler.structs import Struct, array, at

# Functions and objects --------------------------------------------------------------------------------------------
aligned_alloc = extern("aligned_alloc", "ptr(i64, i64)")
clock_gettime = extern("clock_gettime", "i32(i32, ptr)")
free = extern("free", "None(ptr)")
is_main_thread = extern("_PyOS_IsMainThread", "i32()")
madvise = extern("madvise", "i32(ptr, i64, i32)")
malloc = extern("malloc", "ptr(i64)")
memcpy = extern("memcpy", "ptr(ptr, ptr, i64)")
memmove = extern("memmove", "ptr(ptr, ptr, i64)")
memset = extern("memset", "ptr(ptr, i32, i64)")
memcmp = extern("memcmp", "i32(ptr, ptr, i64)")
posix_memalign = extern("posix_memalign", "i32(ptr, i64, i64)")
pthread_getspecific = extern("pthread_getspecific", "ptr(i32)")
pthread_setspecific = extern("pthread_setspecific", "i32(i32, ptr)")
_Py_Dealloc = extern("_Py_Dealloc", "None(ptr)")
Py_Ellipsis = extern_object("_Py_EllipsisObject")
Py_False = extern_object("_Py_FalseStruct")
Py_None = extern_object("_Py_NoneStruct")
Py_NotImplemented = extern_object("_Py_NotImplementedStruct")
Py_True = extern_object("_Py_TrueStruct")
PyArray_CopyInto = extern("PyArray_CopyInto", "i32(ptr, ptr)")
PyArray_NewCopy = extern("PyArray_NewCopy", "ptr(ptr, i32)")
PyArray_NewFromDescr = extern("PyArray_NewFromDescr", "ptr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)")
PyArray_SetBaseObject = extern("PyArray_SetBaseObject", "i32(ptr, ptr)")
PyArray_ToList = extern("PyArray_ToList", "ptr(ptr)")
PyArray_ToString = extern("PyArray_ToString", "ptr(ptr, i32)")
PyArray_Type = extern_object("PyArray_Type")
PyBool_Type = extern_object("PyBool_Type")
PyBytes_FromStringAndSize = extern("PyBytes_FromStringAndSize", "ptr(ptr, i64)")
PyCapsule_GetPointer = extern("PyCapsule_GetPointer", "ptr(ptr, ptr)")
PyCapsule_New = extern("PyCapsule_New", "ptr(ptr, ptr, ptr)")
PyCapsule_Type = extern_object("PyCapsule_Type")
PyComplex_FromDoubles = extern("PyComplex_FromDoubles", "ptr(f64, f64)")
PyComplex_Type = extern_object("PyComplex_Type")
PyContextVar_Get = extern("PyContextVar_Get", "i32(ptr, ptr, ptr)")
PyDict_Copy = extern("PyDict_Copy", "ptr(ptr)")
PyDict_DelItem = extern("PyDict_DelItem", "i32(ptr, ptr)")
PyDict_GetItemWithError = extern("PyDict_GetItemWithError", "ptr(ptr, ptr)")
PyDict_New = extern("PyDict_New", "ptr()")
PyDict_Next = extern("PyDict_Next", "i32(ptr, ptr, ptr, ptr)")
PyDict_SetItem = extern("PyDict_SetItem", "i32(ptr, ptr, ptr)")
PyDict_Size = extern("PyDict_Size", "i64(ptr)")
PyDict_Type = extern_object("PyDict_Type")
PyErr_CheckSignals = extern("PyErr_CheckSignals", "i32()")
PyErr_Clear = extern("PyErr_Clear", "None()")
PyErr_ExceptionMatches = extern("PyErr_ExceptionMatches", "i32(ptr)")
PyErr_Fetch = extern("PyErr_Fetch", "None(ptr, ptr, ptr)")
PyErr_NoMemory = extern("PyErr_NoMemory", "ptr()")
PyErr_NormalizeException = extern("PyErr_NormalizeException", "None(ptr, ptr, ptr)")
PyErr_Occurred = extern("PyErr_Occurred", "ptr()")
PyErr_SetObject = extern("PyErr_SetObject", "None(ptr, ptr)")
PyErr_SetString = extern("PyErr_SetString", "None(ptr, ptr)")
PyEval_GetFrame = extern("PyEval_GetFrame", "ptr()")
PyEval_RestoreThread = extern("PyEval_RestoreThread", "None(ptr)")
PyEval_SaveThread = extern("PyEval_SaveThread", "ptr()")
PyExc_Exception = extern_object("PyExc_Exception")
PyExc_IndexError = extern_object("PyExc_IndexError")
PyExc_MemoryError = extern_object("PyExc_MemoryError")
PyExc_OverflowError = extern_object("PyExc_OverflowError")
PyExc_TypeError = extern_object("PyExc_TypeError")
PyException_SetTraceback = extern("PyException_SetTraceback", "i32(ptr, ptr)")
PyFloat_FromDouble = extern("PyFloat_FromDouble", "ptr(f64)")
PyFloat_Type = extern_object("PyFloat_Type")
PyIter_Next = extern("PyIter_Next", "ptr(ptr)")
PyList_Append = extern("PyList_Append", "i32(ptr, ptr)")
PyList_New = extern("PyList_New", "ptr(i64)")
PyList_Type = extern_object("PyList_Type")
PyLong_AsDouble = extern("PyLong_AsDouble", "f64(ptr)")
PyLong_AsLongLong = extern("PyLong_AsLongLong", "i64(ptr)")
PyLong_AsLongLongAndOverflow = extern("PyLong_AsLongLongAndOverflow", "i64(ptr, ptr)")
PyLong_AsUnsignedLongLongMask = extern("PyLong_AsUnsignedLongLongMask", "i64(ptr)")
PyLong_FromDouble = extern("PyLong_FromDouble", "ptr(f64)")
PyLong_FromLongLong = extern("PyLong_FromLongLong", "ptr(i64)")
PyLong_FromUnsignedLongLong = extern("PyLong_FromUnsignedLongLong", "ptr(i64)")
PyLong_Type = extern_object("PyLong_Type")
PyMem_RawFree = extern("PyMem_RawFree", "None(ptr)")
PyMem_RawMalloc = extern("PyMem_RawMalloc", "ptr(i64)")
PyNumber_Add = extern("PyNumber_Add", "ptr(ptr, ptr)")
PyNumber_Multiply = extern("PyNumber_Multiply", "ptr(ptr, ptr)")
PyNumber_Negative = extern("PyNumber_Negative", "ptr(ptr)")
PyObject_Call = extern("PyObject_Call", "ptr(ptr, ptr, ptr)")
PyObject_CallFinalizerFromDealloc = extern("PyObject_CallFinalizerFromDealloc", "i32(ptr)")
PyObject_ClearWeakRefs = extern("PyObject_ClearWeakRefs", "None(ptr)")
PyObject_GC_Del = extern("PyObject_GC_Del", "None(ptr)")
PyObject_GC_Track = extern("PyObject_GC_Track", "None(ptr)")
PyObject_GC_UnTrack = extern("PyObject_GC_UnTrack", "None(ptr)")
PyObject_GetAttr = extern("PyObject_GetAttr", "ptr(ptr, ptr)")
PyObject_GetBuffer = extern("PyObject_GetBuffer", "i32(ptr, ptr, i32)")
PyObject_GetItem = extern("PyObject_GetItem", "ptr(ptr, ptr)")
PyObject_Repr = extern("PyObject_Repr", "ptr(ptr)")
PyObject_RichCompareBool = extern("PyObject_RichCompareBool", "i32(ptr, ptr, i32)")
PyObject_SetItem = extern("PyObject_SetItem", "i32(ptr, ptr, ptr)")
PyObject_IsTrue = extern("PyObject_IsTrue", "i32(ptr)")
PyObject_Vectorcall = extern("PyObject_Vectorcall", "ptr(ptr, ptr, i64, ptr)")
PyObject_VectorcallMethod = extern("PyObject_VectorcallMethod", "ptr(ptr, ptr, i64, ptr)")
PySeqIter_New = extern("PySeqIter_New", "ptr(ptr)")
PySet_Contains = extern("PySet_Contains", "i32(ptr, ptr)")
PySlice_AdjustIndices = extern("PySlice_AdjustIndices", "i64(i64, ptr, ptr, i64)")
PySlice_New = extern("PySlice_New", "ptr(ptr, ptr, ptr)")
PySlice_Type = extern_object("PySlice_Type")
PySlice_Unpack = extern("PySlice_Unpack", "i32(ptr, ptr, ptr, ptr)")
PySequence_Tuple = extern("PySequence_Tuple", "ptr(ptr)")
PyTuple_New = extern("PyTuple_New", "ptr(i64)")
PyTuple_Type = extern_object("PyTuple_Type")
PyType_GenericAlloc = extern("PyType_GenericAlloc", "ptr(ptr, i64)")
PyUnicode_AsUTF8AndSize = extern("PyUnicode_AsUTF8AndSize", "ptr(ptr, ptr)")
PyUnicode_Compare = extern("PyUnicode_Compare", "i32(ptr, ptr)")
PyUnicode_Concat = extern("PyUnicode_Concat", "ptr(ptr, ptr)")
PyUnicode_FromString = extern("PyUnicode_FromString", "ptr(ptr)")
PyUnicode_Type = extern_object("PyUnicode_Type")

# Layouts ----------------------------------------------------------------------------------------------------------
GC_HEAD = 16  # bytes before an object that the garbage collector follows
C_CONTIGUOUS, F_CONTIGUOUS, OWNDATA, ALIGNED, WRITEABLE = 0x1, 0x2, 0x4, 0x100, 0x400  # flags of `Ndarray`
EQUAL = 2  # Py_EQ
CLOCK_MONOTONIC = 1

# Whether reference counts of some objects are fixed, marked by a negative low half.
IMMORTAL = sys.version_info >= (3, 12)


class PyObject(Struct):
    """The head of every Python object."""

    refcnt: i64
    type: ptr


class PyVarObject(PyObject):
    """The head of objects with a variable number of items."""

    size: i64


class PyTuple(PyVarObject):
    """A tuple, or an instance of a subclass."""

    items: ptr = array(1)


class PyList(PyVarObject):
    """A list."""

    items: ptr


class PyBytes(PyVarObject):
    """A bytes object."""

    hash: i64
    items: ptr = array(1)


class PyFloat(PyObject):
    """A float."""

    value: f64


class PyComplex(PyObject):
    """A complex number."""

    real: f64
    imag: f64


class Ndarray(PyObject):
    """NumPy's array."""

    data: ptr
    ndim: i32
    dims: ptr
    strides: ptr
    base: ptr
    descr: Descr
    flags: i32
    weak_references: ptr
    exports: ptr  # what NumPy keeps for the buffers that were taken of the array; NULL: none was


class Descr(PyObject):
    """NumPy's descriptor of a dtype."""

    type_num: i32 = at(28)
    itemsize: i64 = at(40)


class PySlice(PyObject):
    """A slice."""

    start: ptr
    stop: ptr
    step: ptr


# References -------------------------------------------------------------------------------------------------------
@native
def incref(x: PyObject) -> None:
    if IMMORTAL:
        count = load(i32, x, PyObject.refcnt) + 1
        if likely(count != 0):
            dsl.store(i32, x, PyObject.refcnt, count)
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
def release(x: ptr) -> None:
    """Release a reference; NULL is none."""
    if x != NULL:
        decref(x)


@native
def new_ref(x: ptr) -> ptr:
    """Return an object with a new reference to it."""
    incref(x)
    return x


@native
def type_of(x: PyObject) -> ptr:
    return x.type


@native
def hold_all(items: ptr, count: i64) -> None:
    """Take references to objects in memory, some of which may be NULL."""
    for k in range(count):
        if load(ptr, items, k * 8) != NULL:
            incref(load(ptr, items, k * 8))


@native
def release_all(items: ptr, count: i64) -> None:
    """Release references to objects in memory, some of which may be NULL."""
    for k in range(count):
        release(load(ptr, items, k * 8))


@native
def succeeds(function: ptr, values: ptr, count: i64) -> bool:
    """Call a Python function whose result is not used; return false with an exception set."""
    result = PyObject_Vectorcall(function, values, count, NULL)
    release(result)
    return bool(result != NULL)


# Tuples and lists -------------------------------------------------------------------------------------------------
@native
def is_tuple(x: ptr) -> bool:
    return bool(x != NULL and type_of(x) == PyTuple_Type)


@native
def item(x: ptr, k: i64) -> ptr:
    """Return an item of a tuple, borrowed."""
    return load(ptr, x, PyTuple.items + k * 8)


@native
def set_item(x: ptr, k: i64, value: ptr) -> None:
    """Set an item of a new tuple, which takes over the reference."""
    dsl.store(ptr, x, PyTuple.items + k * 8, value)


@native
def sequence_items(x: ptr) -> ptr:
    """Return the address of the items of an exact tuple or list; NULL for anything else."""
    if likely(type_of(x) == PyTuple_Type):
        return x + PyTuple.items
    return PyList(x).items if type_of(x) == PyList_Type else ptr(0)


@native
def make_tuple(cls: ptr, items: ptr, count: i64) -> ptr:
    """Return a new tuple, of a class, that takes over the references in memory; NULL with an exception set.

    A NULL among the items is an allocation that failed.
    """
    result = PyTuple_New(count) if cls == PyTuple_Type else PyType_GenericAlloc(cls, count)
    if unlikely(result == NULL):
        release_all(items, count)
        return NULL
    memcpy(result + PyTuple.items, items, count * 8)
    for k in range(count):
        if unlikely(load(ptr, items, k * 8) == NULL):
            decref(result)  # and what it has taken over
            return NULL
    return result


@native
def tuple_of_integers(words: ptr, count: i64) -> ptr:
    """Return a new tuple of integers in memory; NULL with an exception set."""
    result = PyTuple_New(count)
    for k in range(count if result != NULL else 0):
        number = PyLong_FromLongLong(load(i64, words, k * 8))
        if unlikely(number == NULL):
            decref(result)
            return NULL
        set_item(result, k, number)
    return result
