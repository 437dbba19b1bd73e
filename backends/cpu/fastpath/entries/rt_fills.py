"""The native entries of `full(shape, value, dtype=None)`, `zeros(shape, dtype=None)` and `ones(...)`.

They make small tensors; large ones are left to Python, where the system provides zeroed memory. Instances have one
input, the number: NIN is 1 and NARGS is 2.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, f64, i64, likely, load, native, ptr, stack, store, template, unlikely
from ..runtime import capi, rt_entry, rt_memory, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_arguments, rt_copies, rt_elementwise, rt_reduce, rt_reshape, rt_views

VALUE: i64 = template(-1)  # the number; -1: it is the second argument
MOST: i64 = 65536  # maximum bytes of the result


@rt_entry.entry(records=False)
def fill(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `full`, `zeros` and `ones`."""
    g: base.Globals = entry.globals_
    if unlikely(count != (2 if VALUE < 0 else 1)):
        return Outcome.FALL_BACK
    number, dims = stack(16), stack(base.MAX_RANK * 8)
    code = find_result_code(entry, g, args, kwnames, count)
    rank = rt_views.read_integers(load(ptr, args, 0), dims)
    if unlikely(
        code == base.FOREIGN or rank == rt_reshape.REFUSED or not write_number(g, args, code, number)
    ):
        return Outcome.FALL_BACK
    descr: capi.Descr = load(ptr, g.descrs, code * 8)
    if unlikely(descr == NULL):  # of a package that is not loaded
        return Outcome.FALL_BACK
    size = descr.itemsize
    total: i64 = 1
    for d in range(rank):
        extent = load(i64, dims, d * 8)
        if unlikely(extent < 0 or extent > MOST):
            return Outcome.FALL_BACK
        total *= extent
        if unlikely(total > MOST):
            return Outcome.FALL_BACK
    if unlikely(total * size > MOST):
        return Outcome.FALL_BACK
    made: capi.Ndarray = rt_memory.new_array(g, descr, rank, dims, total * size)
    if unlikely(made == NULL):
        return NULL
    fill_elements(number, made.data, total, size)
    entry.calls += 1
    return base.make_tensor(g, made)


@native
def find_result_code(
    entry: base.OperatorEntry, g: ptr, args: ptr, kwnames: capi.PyVarObject, count: i64
) -> i64:
    """Return the code of the given dtype, or of the number's; FOREIGN: Python must run the call."""
    chosen: ptr = capi.Py_None
    if kwnames != NULL:
        name = load(ptr, entry.names, capi.PyTuple.items + rt_reduce.DTYPE_NAME * 8)
        if kwnames.size != 1 or load(ptr, kwnames, capi.PyTuple.items) != name:
            return base.FOREIGN
        chosen = load(ptr, args, count * 8)
    if chosen != capi.Py_None:
        return rt_arguments.dtype_code(g, chosen)
    if VALUE >= 0:
        return base.FLOAT32
    kind = rt_operands.operand_code(g, load(ptr, args, 8), base.PLAIN, stack(8))
    if kind < base.WEAK_BOOL:
        return kind
    if kind == base.WEAK_BOOL:
        return base.BOOL
    return (
        base.INT64 if kind == base.WEAK_INT else base.FLOAT32 if kind == base.WEAK_FLOAT else base.COMPLEX64
    )


@native
def write_number(g: ptr, args: ptr, code: i64, to: ptr) -> bool:
    """Write the number, or the element of a 0-d tensor of the dtype."""
    if VALUE >= 0:
        return (
            rt_operands.write_real(f64(VALUE), code, to)
            if code >= base.FLOAT16
            else rt_operands.write_integer(VALUE, code, to)
        )
    where = stack(8)
    kind = rt_operands.operand_code(g, load(ptr, args, 8), base.PLAIN, where)
    array: capi.Ndarray = load(ptr, where, 0)
    if array != NULL:
        if kind != code or array.ndim != 0:
            return False
        capi.memcpy(to, array.data, rt_copies.item_size(array))
        return True
    if kind == base.FOREIGN or (code == base.BOOL and kind != base.WEAK_BOOL):
        return False
    return rt_operands.write_scalar(load(ptr, args, 8), kind, code, to)


@native
def fill_elements(number: ptr, data: ptr, total: i64, size: i64) -> None:
    """Fill `total` bytes with copies of the number."""
    shape, strides, pointers = stack(8), stack(16), stack(16)
    store(i64, shape, 0, total)
    store(i64, strides, 0, 0)
    store(i64, strides, 8, size)
    store(ptr, pointers, 0, number)
    store(ptr, pointers, 8, data)
    if likely(total != 0):
        rt_elementwise.run_nest(rt_copies.COPY, pointers, shape, strides, 1, ptr(size))
