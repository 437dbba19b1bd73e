"""Native runtime: operands to which only the interpreter's evaluation stack refers, whose memory a result may take.

In `a * b + c` nothing reads the product after the sum. NumPy computes such a sum in the product's memory, and calls
this temporary elision. A reference count of one does not suffice: C code that calls an operator may use its operand
afterwards, and owns the only reference to it. So the operands must also be where the current instruction of the running
Python function takes them from; the interpreter releases them after the call.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, noinline, ptr, stack_of
from ..compiler.structs import Struct, at
from . import capi, rt_layouts, rt_record
from . import rt_base as base


class FrameObject(capi.PyObject):
    """A frame object of CPython 3.11 to 3.13."""

    frame: ptr = at(24)


class InterpreterFrame(Struct):
    """The interpreter's frame of CPython 3.11 to 3.13."""

    slots: ptr = at(72, 1)  # the first of the variables, which the evaluation stack follows


# What `Globals.find_operands` returns: the index of the first operand's slot, and the number of operands
INDEX_SHIFT, COUNT_MASK = 2, 3


@noinline
def take_temporary(
    g: base.Globals, flags: i64, args: ptr, arrays: ptr, variant: ptr, rank: i64, dims: ptr
) -> ptr:
    """Return the array of an operand that has the result's layout and dies with this call, a new reference, or NULL.

    NULL may come with an exception: that of a signal handler, which Python ran for the function that finds operands.
    """
    if g.find_operands == NULL or g.note != NULL or rt_record.is_recorded(g, flags, args, base.NIN):
        return NULL
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        tensor = load(ptr, args, i * 8)
        if array != NULL and is_alone(g, tensor, array) and has_result_layout(array, variant, rank, dims):
            is_found = are_on_stack(g, args) and is_alone(g, tensor, array)  # after a Python function has run
            return capi.new_ref(array) if is_found else ptr(0)
    return NULL


@native
def is_alone(g: base.Globals, tensor: base.TensorObject, array: capi.Ndarray) -> bool:
    """Return whether a plain tensor has one reference, and it alone refers to its memory, a buffer of the pool."""
    capsule: capi.PyObject = array.base
    return bool(
        capi.type_of(tensor) == g.tensor
        and tensor.refcnt == 1
        and tensor.keys == g.keys
        and tensor.meta == capi.Py_None
        and tensor.storage == capi.Py_None
        and load(ptr, tensor, g.weak_references) == NULL
        and array.refcnt == 1
        and array.weak_references == NULL
        and capsule != NULL
        and capi.type_of(capsule) == capi.PyCapsule_Type
        and capsule.refcnt == 1
    )


@native
def has_result_layout(array: capi.Ndarray, variant: base.Variant, rank: i64, dims: ptr) -> bool:
    wanted = capi.C_CONTIGUOUS | capi.WRITEABLE
    return bool(
        capi.Descr(array.descr).type_num == variant.descr.type_num
        and (i64(array.flags) & wanted) == wanted
        and i64(array.ndim) == rank
        and rt_layouts.equal_integers(array.dims, dims, rank)
    )


@native
def are_on_stack(g: base.Globals, args: ptr) -> bool:
    """Return whether the running Python function is at an operator whose operands are the arguments.

    False may come with an exception.
    """
    running: FrameObject = capi.PyEval_GetFrame()
    if running == NULL:
        return False
    slot_number = capi.PyObject_Vectorcall(g.find_operands, stack_of(running), 1, NULL)
    if slot_number == NULL:
        return False
    operands = capi.PyLong_AsLongLong(slot_number)
    capi.decref(slot_number)
    if (operands & COUNT_MASK) != base.NIN:
        return False
    frame: InterpreterFrame = running.frame
    slots = frame.slots + (operands >> INDEX_SHIFT) * 8
    if base.NIN == 1:
        return bool(load(ptr, slots, 0) == load(ptr, args, 0))
    first, second = load(ptr, slots, 0), load(ptr, slots, 8)
    one, two = load(ptr, args, 0), load(ptr, args, 8)
    return bool((first == one and second == two) or (first == two and second == one))
