"""The deallocator of tensors, and the list of destroyed ones whose memory new tensors take.

CPython's deallocator of classes looks for what a class may have, such as a dictionary; this one knows the slots of
Tensor. Most tensors of a loop live for one step: their memory goes from one to the next.

Source: the free lists of CPython's tuples and floats.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    extern_object,
    i64,
    likely,
    load,
    native,
    noinline,
    ptr,
    stack_of,
    store,
    unlikely,
)
from ..runtime import capi
from ..runtime import rt_base as base

PROCESS = extern_object("tandem_process")  # the process struct: a slot of a type takes an object only
MOST_FREE: i64 = 128
FINALIZE = 392  # offset of the slot `tp_finalize` in a type


@native
def deallocate(x: base.TensorObject) -> None:
    """The slot `tp_dealloc` of Tensor. Instances of subclasses arrive here from their own deallocator."""
    g: base.Globals = PROCESS
    kind = capi.type_of(x)
    is_plain = kind == g.tensor
    has_finalizer = is_plain and load(ptr, kind, FINALIZE) != NULL
    if unlikely(has_finalizer) and capi.PyObject_CallFinalizerFromDealloc(x) < 0:
        return  # something refers to the tensor again
    capi.PyObject_GC_UnTrack(x)
    if unlikely(load(ptr, x, g.weak_references) != NULL):
        capi.PyObject_ClearWeakRefs(x)
    held = stack_of(x.array, x.storage, x.meta, x.keys)
    x.array, x.storage, x.meta, x.keys = NULL, NULL, NULL, NULL
    capi.release_all(held, 4)
    if likely(is_plain and g.free_count < MOST_FREE):
        store(i64, x, -capi.GC_HEAD, 0)
        store(i64, x, 8 - capi.GC_HEAD, 0)
        x.array = g.free
        g.free = x
        g.free_count += 1
    else:
        delete(x, kind)


@noinline
def delete(x: ptr, kind: ptr) -> None:
    """Free the memory of an object, which refers to its class."""
    capi.PyObject_GC_Del(x)
    capi.decref(kind)
