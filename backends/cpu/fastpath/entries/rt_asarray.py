"""The native entry of `asarray`: tensors of numbers, nested lists of numbers, and NumPy's arrays and scalars."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, ptr, unlikely
from ..runtime import capi, rt_entry, rt_lists, rt_operands
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
