"""Native entries: `x[key] = value` and `basic_put(x, value, plan)`: write into a view, in place or into a copy.

The value is a number or a tensor of x's dtype. The operands of the loops are the value and the view: NIN is 1 and NARGS
is 2.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, unlikely
from ..compiler.structs import sizeof
from ..runtime import capi, rt_entry, rt_gil, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies, rt_elementwise, rt_inplace, rt_subscript


@rt_entry.entry(records=False)
def assign(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `x[key] = value`.

    Python twin: eager/tensor/methods.py:setitem
    """
    g = entry.globals_
    if unlikely(kwnames != NULL or count != 3):
        return Outcome.FALL_BACK
    where, scalar, at = stack(16), stack(16), stack(sizeof(rt_subscript.KeyState))
    to = rt_operands.operand_code(g, load(ptr, args, 0), flags, where)
    code = rt_operands.operand_code(g, load(ptr, args, 16), flags, where + 8)
    array, value = load(ptr, where, 0), load(ptr, where, 8)
    if unlikely(to < 0 or code < 0 or array == NULL):
        return Outcome.FALL_BACK
    dims, steps = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    writable = (capi.Ndarray(array).flags & capi.WRITEABLE) != 0
    if unlikely(not writable or not rt_subscript.read_key(array, args + 8, dims, steps, at)):
        return Outcome.FALL_BACK
    fits = prepare_value(load(ptr, args, 16), value, code, to, scalar, dims, at)
    if unlikely(not fits or (value != NULL and not rt_inplace.have_no_overlap(value, array))):
        return Outcome.FALL_BACK
    hold_operands(array, value)  # allocating a storage may run Python code
    written = rt_inplace.bump_version(g, load(ptr, args, 0), array)
    if likely(written):
        write(array, value, scalar, dims, steps, at)
        entry.calls += 1
    release_operands(array, value)
    if unlikely(not written):
        return NULL
    return capi.new_ref(capi.Py_None)


@rt_entry.entry(records=False)
def put(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `basic_put`, which writes into a copy.

    Python twin: operators/indexing/slicing.py:_write_kernel
    """
    g = entry.globals_
    if unlikely(kwnames != NULL or count != 3):
        return Outcome.FALL_BACK
    where, scalar, at = stack(16), stack(16), stack(sizeof(rt_subscript.KeyState))
    to = rt_operands.operand_code(g, load(ptr, args, 0), flags, where)
    code = rt_operands.operand_code(g, load(ptr, args, 8), flags, where + 8)
    array, value = load(ptr, where, 0), load(ptr, where, 8)
    if unlikely(to < 0 or code < 0 or array == NULL or capi.Ndarray(array).ndim > base.MAX_RANK):
        return Outcome.FALL_BACK
    dims, steps = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    if unlikely(
        not rt_subscript.read_plan(array, load(ptr, args, 16), dims, steps, at)
        or not prepare_value(load(ptr, args, 8), value, code, to, scalar, dims, at)
    ):
        return Outcome.FALL_BACK
    hold_operands(array, value)  # allocating an array may run Python code
    made = rt_copies.copy_contiguous(g, array, i64(capi.Ndarray(array).ndim), capi.Ndarray(array).dims)
    tensor: ptr = NULL
    if likely(made != NULL):
        rt_subscript.read_plan(made, load(ptr, args, 16), dims, steps, at)  # the copy's strides may differ
        write(made, value, scalar, dims, steps, at)
        entry.calls += 1
        tensor = base.make_tensor(g, made)
    release_operands(array, value)
    return tensor


@native
def hold_operands(array: ptr, value: ptr) -> None:
    capi.incref(array)
    if value != NULL:
        capi.incref(value)


@native
def release_operands(array: ptr, value: ptr) -> None:
    if value != NULL:
        capi.decref(value)
    capi.decref(array)


@native
def prepare_value(
    x: ptr, value: ptr, code: i64, to: i64, scalar: ptr, dims: ptr, at: rt_subscript.KeyState
) -> bool:
    """Return whether an operand can be written into the view; a number is written to `scalar` as an element."""
    if value == NULL:
        return (to != base.BOOL or code == base.WEAK_BOOL) and rt_operands.write_scalar(x, code, to, scalar)
    return code == to and can_broadcast(value, dims, at.rank)


@native
def can_broadcast(value: capi.Ndarray, dims: ptr, rank: i64) -> bool:
    """Return whether a value broadcasts to the view."""
    own = i64(value.ndim)
    if own > rank:
        return False
    for d in range(own):
        size = load(i64, value.dims, d * 8)
        if size != 1 and size != load(i64, dims, (rank - own + d) * 8):
            return False
    return True


@native
def write(
    array: capi.Ndarray, value: capi.Ndarray, scalar: ptr, dims: ptr, steps: ptr, at: rt_subscript.KeyState
) -> None:
    """Copy a tensor's elements, or the number in `scalar` if the tensor is NULL, into the view."""
    rank, strides, pointers = at.rank, stack(base.MAX_RANK * 16), stack(16)
    total: i64 = 1
    rt_elementwise.operand_strides(value, rank, strides)
    for d in range(rank):
        total *= load(i64, dims, d * 8)
        store(i64, strides, d * 16 + 8, load(i64, steps, d * 8))
    store(ptr, pointers, 0, scalar)
    if value != NULL:
        store(ptr, pointers, 0, value.data)
    store(ptr, pointers, 8, array.data + at.moved)
    if total != 0:
        saved = rt_gil.release_gil(total * rt_copies.item_size(array) >= rt_gil.RELEASE_BYTES)
        rt_elementwise.run_nest(
            rt_copies.COPY,
            pointers,
            dims,
            strides,
            rt_elementwise.coalesce(dims, strides, rank),
            ptr(rt_copies.item_size(array)),
        )
        rt_gil.acquire_gil(saved)
