"""The native entries of ``x.real`` and ``x.imag``: views of the parts of complex numbers.

Each view has the axes of the tensor; `rule` of operators/shape/complex_view.py says the same in elements.
"""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, i64, load, native, ptr, unlikely
from ..runtime import capi, rt_entry, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_views

IMAGINARY: i64 = dsl.template(0)  # 1: the imaginary parts


@rt_entry.entry(records=False, count=1)
def read_part(entry: base.FunctionEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """A view of the parts of complex elements; real ones are the tensor itself, or a call of the target."""
    g: base.Globals = entry.globals_
    x = load(ptr, args, 0)
    array: capi.Ndarray = rt_operands.plain_array(g, x, flags)
    if unlikely(array == NULL or i64(array.ndim) > base.MAX_RANK or base.has_history(g, x, flags)):
        return Outcome.FALL_BACK
    code = rt_operands.array_code(g, array)
    if unlikely(code < 0):
        return Outcome.FALL_BACK
    if code >= base.COMPLEX64:
        return view_part(g, x, array, code)
    if IMAGINARY:
        return capi.PyObject_Vectorcall(capi.item(entry.targets, 0), args, 1, NULL)
    return capi.new_ref(x)


@native
def view_part(g: base.Globals, x: ptr, array: capi.Ndarray, code: i64) -> ptr:
    """Return a tensor over the same memory; NULL with an exception set."""
    part = i64(base.FLOAT32) if code == base.COMPLEX64 else i64(base.FLOAT64)
    descr: capi.Descr = load(ptr, g.descrs, part * 8)
    data = array.data + (i64(descr.itemsize) if IMAGINARY else i64(0))
    return rt_views.make_view_of(g, x, array, descr, i64(array.ndim), array.dims, array.strides, data)
