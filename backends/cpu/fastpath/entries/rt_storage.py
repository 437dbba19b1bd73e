"""Native runtime: the storage of a tensor: the memory that it shares with its views, and its version."""

from __future__ import annotations

from ..compiler.dsl import NULL, cstr, extern, extern_object, likely, load, native, ptr, unlikely
from ..glue.layout import Ndarray, PyObject
from .rt_base import (
    Globals,
    Py_None,
    PyArray_Type,
    PyType_GenericAlloc,
    TensorObject,
    decref,
    incref,
    type_of,
)

PyErr_SetString = extern("PyErr_SetString", "None(ptr, ptr)")
PyExc_TypeError = extern_object("PyExc_TypeError")


# Slots of a Storage; `runtime` supplies them.
class StorageObject(PyObject):
    """The slots of a Storage."""

    slot_prefix = "S_"

    owner: ptr
    version: ptr
    hold_count: ptr


@native
def shared_storage(g: Globals, source: TensorObject, array: ptr) -> ptr:
    """Return the storage of a tensor, a new reference; it is created if there is none. NULL with an exception set.

    Python twin: eager/tensor/tensor.py:storage_of
    """
    known = source.storage
    if likely(known != Py_None):
        if unlikely(known == NULL or type_of(known) != g.storage):
            PyErr_SetString(
                load(ptr, PyExc_TypeError, 0), cstr("a tensor's _storage was replaced or deleted")
            )
            return NULL
        incref(known)
        return known
    made: StorageObject = PyType_GenericAlloc(g.storage, 0)
    if unlikely(made == NULL):
        return NULL
    root: Ndarray = array
    while root.base != NULL and type_of(root.base) == PyArray_Type:
        root = root.base
    zero = g.zero
    incref(root)
    incref(zero)
    made.owner = root
    made.version = zero
    known = source.storage  # the allocation may have run Python code that created one
    if unlikely(known != Py_None):
        decref(made)
        return shared_storage(g, source, array)
    incref(made)
    source.storage = made
    decref(Py_None)
    return made
