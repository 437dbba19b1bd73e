"""Native runtime: the storage of a tensor: the memory that it shares with its views, and its version."""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    cstr,
    extern,
    extern_object,
    i64,
    likely,
    load_ptr,
    native,
    ptr,
    store_ptr,
    unlikely,
)
from ..glue.layout import ND_BASE
from .rt_base import (
    G_STORAGE,
    G_ZERO,
    T_STORAGE,
    Py_None,
    PyArray_Type,
    PyType_GenericAlloc,
    decref,
    incref,
    type_of,
)

PyErr_SetString = extern("PyErr_SetString", "None(ptr, ptr)")
PyExc_TypeError = extern_object("PyExc_TypeError")

# Slots of a Storage; `runtime` supplies them.
S_OWNER: i64 = 0
S_VERSION: i64 = 0
S_HOLD_COUNT: i64 = 0


@native
def shared_storage(g: ptr, source: ptr, array: ptr) -> ptr:
    """Return the storage of a tensor, a new reference; it is created if there is none. NULL with an exception set.

    Python twin: eager/tensor/tensor.py:storage_of
    """
    known = load_ptr(source, T_STORAGE)
    if likely(known != Py_None):
        if unlikely(known == NULL or type_of(known) != load_ptr(g, G_STORAGE)):
            PyErr_SetString(load_ptr(PyExc_TypeError, 0), cstr("a tensor's _storage was replaced or deleted"))
            return NULL
        incref(known)
        return known
    made = PyType_GenericAlloc(load_ptr(g, G_STORAGE), 0)
    if unlikely(made == NULL):
        return NULL
    root: ptr = array
    while load_ptr(root, ND_BASE) != NULL and type_of(load_ptr(root, ND_BASE)) == PyArray_Type:
        root = load_ptr(root, ND_BASE)
    zero = load_ptr(g, G_ZERO)
    incref(root)
    incref(zero)
    store_ptr(made, S_OWNER, root)
    store_ptr(made, S_VERSION, zero)
    known = load_ptr(source, T_STORAGE)  # the allocation may have run Python code that created one
    if unlikely(known != Py_None):
        decref(made)
        return shared_storage(g, source, array)
    incref(made)
    store_ptr(source, T_STORAGE, made)
    decref(Py_None)
    return made
