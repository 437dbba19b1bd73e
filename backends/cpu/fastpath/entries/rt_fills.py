"""The native entries of `full(shape, value, dtype=None)`, `zeros(shape, dtype=None)` and `ones(...)`.

Tensors of several megabytes are left to Python, where the system provides zeroed memory. Instances have one input, the
number: NIN is 1 and NARGS is 2.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, stack_of, store, template, unlikely
from ..runtime import capi, rt_arguments, rt_entry, rt_layouts, rt_memory, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies

VALUE: i64 = template(-1)  # the number; -1: it is the second argument
MOST: i64 = 1 << 22  # maximum bytes of the result


@rt_entry.entry(records=False)
def fill(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `full`, `zeros` and `ones`, also of `tandem.numpy`, which makes float64."""
    g: base.Globals = entry.globals_
    number, dims = stack(16), stack(base.MAX_RANK * 8)
    most = 2 if VALUE < 0 else 1
    listed = count_sizes(args, count)
    if listed > 1:
        most = listed
    if count == most + 1 and kwnames == NULL:
        dtype = load(ptr, args, most * 8)
        if unlikely(rt_arguments.named_code(entry, dtype) < 0):
            return Outcome.FALL_BACK
    elif unlikely(count != most):
        return Outcome.FALL_BACK
    else:
        dtype = rt_arguments.read_dtype(entry, args + count * 8, kwnames)
    if unlikely(dtype == NULL):
        return Outcome.FALL_BACK
    code = write_number(entry, args, dtype, number)
    rank = read_shape(args, listed, dims)
    if unlikely(code == base.FOREIGN or rank == rt_arguments.BAD):
        return Outcome.FALL_BACK
    descr: capi.Descr = load(ptr, g.descrs, code * 8)
    if unlikely(descr == NULL):  # of a package that is not loaded
        return Outcome.FALL_BACK
    size = descr.itemsize
    total = size
    for d in range(rank):
        extent = load(i64, dims, d * 8)
        total *= extent
        if unlikely(extent < 0 or extent > MOST or total > MOST):
            return Outcome.FALL_BACK
    made: capi.Ndarray = rt_memory.new_array(g, descr, rank, dims, total)
    if likely(made != NULL):
        pointers, sizes, strides = stack_of(number, made.data), stack_of(total // size), stack_of(0, size)
        rt_copies.copy_nest(pointers, sizes, strides, 1, size, total)
    return rt_entry.finish(entry, made)


@native
def count_sizes(args: ptr, count: i64) -> i64:
    """Return how many arguments are sizes, as in `zeros(2, 3)`; not more than 1 where the second is a number."""
    sizes: i64 = 0
    while sizes < count and VALUE >= 0 and capi.type_of(load(ptr, args, sizes * 8)) == capi.PyLong_Type:
        sizes += 1
    return sizes


@native
def read_shape(args: ptr, sizes: i64, dims: ptr) -> i64:
    """Write the sizes, which are that many arguments, or one that may be a tuple; return their number, or BAD."""
    if sizes <= 1:
        return rt_arguments.read_integers(load(ptr, args, 0), dims)
    if sizes > base.MAX_RANK:
        return rt_arguments.BAD
    for d in range(sizes):
        size = rt_arguments.whole_number(load(ptr, args, d * 8))
        if size == rt_arguments.NO_NUMBER:
            return rt_arguments.BAD
        store(i64, dims, d * 8, size)
    return sizes


@native
def write_number(entry: base.OperatorEntry, args: ptr, dtype: ptr, to: ptr) -> i64:
    """Write the number, or the element of a 0-d tensor, and return the code of its dtype: the given one, if not None.

    Return FOREIGN if Python must run the call.
    """
    g = entry.globals_
    where, code = stack(8), base.FLOAT64 if entry.own_floats != 0 else base.FLOAT32
    if dtype != capi.Py_None:
        code = rt_arguments.named_code(entry, dtype)
    if VALUE >= 0:
        return code if code >= 0 and rt_operands.write_whole(VALUE, code, to) else base.FOREIGN
    kind = rt_operands.operand_code(g, load(ptr, args, 8), base.PLAIN, where)
    if dtype == capi.Py_None:
        code = kind if kind < base.WEAK_BOOL else rt_operands.shown_code(kind)
    array: capi.Ndarray = load(ptr, where, 0)
    if code < 0 or kind < 0:
        return base.FOREIGN
    if array != NULL:
        if kind != code or array.ndim != 0:
            return base.FOREIGN
        capi.memcpy(to, array.data, rt_layouts.item_size(array))
        return code
    is_lossy = code == base.BOOL and kind != base.WEAK_BOOL
    is_written = not is_lossy and rt_operands.write_scalar(load(ptr, args, 8), kind, code, to)
    return code if is_written else base.FOREIGN
