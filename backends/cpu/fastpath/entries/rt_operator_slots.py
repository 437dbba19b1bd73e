"""Slots of the type Tensor that call special methods: `x + y`, `x += y`, `-x`, `x < y`, `x[key]`, rows of `iter(x)`.

A slot calls the native entry of the method. CPython's slot of a class looks for the method in the class first.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from .....registry import native_type
from ..compiler.dsl import (
    NULL,
    call_ptr,
    cstr,
    extern_object,
    i32,
    i64,
    likely,
    load,
    native,
    noinline,
    ptr,
    stack_of,
    unlikely,
)
from ..glue import special_methods
from ..runtime import capi, rt_arguments, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_views

PROCESS = extern_object("tandem_process")  # the process struct: a slot is called with objects only
METHOD: i64 = 0  # the index of the slot's method in `Globals.methods`: set by `make_slot`
REFLECTED: i64 = 0  # that of the method for a tensor on the right
LESS: i64 = special_methods.METHODS.index("lt")
SUBSCRIPT: i64 = special_methods.METHODS.index("getitem")


# Operators ------------------------------------------------------------------------------------------------------------
@native
def call_method(method: ptr, args: ptr, count: i64) -> ptr:
    """Call a special method: its native entry, or Python."""
    entry = load(ptr, method, native_type.ENTRY)
    if likely(entry != NULL):
        return call_ptr(entry, method, args, count, NULL)
    return capi.PyObject_Vectorcall(method, args, count, NULL)


@native
def call_binary(x: ptr, y: ptr) -> ptr:
    """The slot of an operator of two operands, of which at least one is a tensor.

    CPython tries the slots of both types, first that of the right one if its type is a subclass of the left one's.
    """
    g: base.Globals = PROCESS
    if likely(capi.type_of(x) == g.tensor):
        return call_method(load(ptr, g.methods, METHOD * 8), stack_of(x, y), 2)
    if likely(capi.type_of(y) == g.tensor):
        return call_method(load(ptr, g.methods, REFLECTED * 8), stack_of(y, x), 2)
    return capi.new_ref(capi.Py_NotImplemented)


@native
def call_inplace(x: ptr, y: ptr) -> ptr:
    """The slot of an in-place operator."""
    g: base.Globals = PROCESS
    return call_method(load(ptr, g.methods, METHOD * 8), stack_of(x, y), 2)


@native
def call_unary(x: ptr) -> ptr:
    """The slot of an operator of one operand."""
    g: base.Globals = PROCESS
    return call_method(load(ptr, g.methods, METHOD * 8), stack_of(x), 1)


@native
def slot_compare(x: ptr, y: ptr, which: i32) -> ptr:
    """The slot of comparisons, which CPython numbers."""
    g: base.Globals = PROCESS
    return call_method(load(ptr, g.methods, (LESS + i64(which)) * 8), stack_of(x, y), 2)


def make_slot(template: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the slot of a special method, a copy of one of the functions above."""
    scope = dict(template.__globals__, METHOD=special_methods.METHODS.index(name))
    if name in special_methods.BINARY:
        scope["REFLECTED"] = special_methods.METHODS.index(f"r{name}")
    made = FunctionType(template.__code__, scope, f"slot_{name}")
    made.__annotations__, made.__doc__ = template.__annotations__, template.__doc__
    made.__module__, made.__qualname__ = __name__, made.__name__
    return native(made)


for _template, _names in (
    (call_binary, special_methods.BINARY),
    (call_inplace, special_methods.INPLACE),
    (call_unary, special_methods.UNARY),
):
    globals().update({f"slot_{_name}": make_slot(_template, _name) for _name in _names})


# Rows -----------------------------------------------------------------------------------------------------------------
@native
def slot_subscript(x: ptr, key: ptr) -> ptr:
    """The slot of `x[key]`."""
    g: base.Globals = PROCESS
    method = load(ptr, g.methods, SUBSCRIPT * 8)
    entry = load(ptr, method, native_type.ENTRY)
    if unlikely(entry == NULL or capi.type_of(x) != g.tensor):
        return call_ptr(g.get_subscript, x, key)
    if likely(capi.type_of(key) == capi.PyLong_Type):
        row = select_row(g, method, x, rt_arguments.whole_number(key))
        if likely(i64(row) != Outcome.FALL_BACK):
            return row
    return call_ptr(entry, method, stack_of(x, key), 2, NULL)


@native
def slot_item(x: ptr, position: i64) -> ptr:
    """The slot by which sequences are iterated over; CPython adds the length to negative positions."""
    g: base.Globals = PROCESS
    method = load(ptr, g.methods, SUBSCRIPT * 8)
    if likely(load(ptr, method, native_type.ENTRY) != NULL and capi.type_of(x) == g.tensor and position >= 0):
        row = select_row(g, method, x, position)
        if likely(i64(row) != Outcome.FALL_BACK):
            return row
        if is_end(g, x, position):
            return NULL
    return call_ptr(g.get_item, x, position)


@native
def select_row(g: base.Globals, method: ptr, x: ptr, position: i64) -> ptr:
    """Return the view at one position of the first axis; NULL with an exception set; or FALL_BACK."""
    flags = base.thread_flags(g)
    array: capi.Ndarray = rt_operands.plain_array(g, x, flags) if likely(flags != base.ELSEWHERE) else ptr(0)
    if unlikely(array == NULL) or array.ndim == 0 or array.ndim > base.MAX_RANK:
        return Outcome.FALL_BACK
    size = load(i64, array.dims, 0)
    position = position + size if position < 0 else position
    if unlikely(position < 0 or position >= size):
        return Outcome.FALL_BACK
    entry: base.OperatorEntry = base.entry_data(method)
    entry.calls += 1
    data = array.data + position * load(i64, array.strides, 0)
    return rt_views.make_view_at(g, x, array, i64(array.ndim) - 1, array.dims + 8, array.strides + 8, data)


@noinline
def is_end(g: base.Globals, x: ptr, position: i64) -> bool:
    """Return whether an iteration over a tensor has reached its end, and raise the exception that says so."""
    array: capi.Ndarray = rt_operands.plain_array(g, x, base.RECORD)
    if array == NULL or array.ndim == 0 or position != load(i64, array.dims, 0):
        return False
    capi.PyErr_SetString(
        load(ptr, capi.PyExc_IndexError, 0), cstr("the position is the length of the tensor")
    )
    return True
