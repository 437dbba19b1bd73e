"""The native entries of `asarray`, of numbers, nested lists, and NumPy's arrays and scalars, and of `x.to(dtype)`."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, ptr, stack_of, unlikely
from ..runtime import capi, rt_arguments, rt_entry, rt_lists, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome


@rt_entry.entry(records=False, count=1)
def asarray(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `asarray` with one argument.

    Python twin: eager/tensor/construct.py:asarray
    """
    g: base.Globals = entry.globals_
    result = convert_object(g, load(ptr, args, 0))
    if unlikely(result == NULL):
        capi.PyErr_Clear()  # Python makes the tensor, or raises the exception
        return Outcome.FALL_BACK
    entry.calls += 1
    return result


@native
def convert_object(g: base.Globals, x: ptr) -> ptr:
    """Return the tensor of an object, a new reference; NULL, perhaps with an exception set, if Python must make it."""
    if capi.type_of(x) == g.tensor:
        return capi.new_ref(x)
    if rt_lists.is_list(x):
        return rt_lists.tensor_of_list(g, x, base.WEAK_COMPLEX)
    weak = rt_operands.scalar_code(x)
    if weak >= 0:
        return rt_operands.tensor_of_scalar(g, x, weak, rt_lists.default_code(g, weak))
    return rt_operands.to_tensor(g, x)


@rt_entry.entry(records=False)
def convert(entry: base.FunctionEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64) -> ptr:
    """The entry of `x.to(dtype)` and `x.to(dtype=dtype)`, which returns the tensor itself if it has that dtype.

    Python twin: eager/tensor/methods.py:to
    """
    g, x = entry.globals_, load(ptr, args, 0)
    if kwnames != NULL and (
        count != 1
        or kwnames.size != 1
        or not rt_arguments.string_matches(capi.item(kwnames, 0), capi.item(entry.names, 0))
    ):
        return Outcome.FALL_BACK
    if unlikely(kwnames == NULL and count != 2):
        return Outcome.FALL_BACK
    dtype, array = load(ptr, args, 8), rt_operands.plain_array(g, x, base.RECORD)
    to = rt_arguments.dtype_code(g, dtype) if array != NULL else i64(base.FOREIGN)
    if unlikely(to < 0):
        return Outcome.FALL_BACK
    entry.calls += 1
    if rt_operands.array_code(g, array) == to:
        return capi.new_ref(x)
    return capi.PyObject_Vectorcall(
        capi.item(entry.targets, 0), stack_of(x, load(ptr, g.types, to * 8)), 2, NULL
    )
