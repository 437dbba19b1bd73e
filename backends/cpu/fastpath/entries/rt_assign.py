"""Native runtime: `x[key] = value` and `basic_put(x, value, plan)`: write into a view, in place or into a copy.

The value is a number or a tensor of x's dtype. The operands of the loops are the value and the view: NIN is 1 and NARGS
is 2.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, unlikely
from ..compiler.structs import sizeof
from ..glue.layout import WRITEABLE, Ndarray
from .rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    OperatorEntry,
    Py_None,
    decref,
    entry_data,
    fall_back,
    incref,
    make_tensor,
    thread_flags,
)
from .rt_copies import COPY, copy_contiguous, item_size
from .rt_elementwise import MAX_RANK, coalesce, operand_strides, run_nest
from .rt_gil import RELEASE_BYTES, acquire_gil, release_gil
from .rt_inplace import are_disjoint, bump_version
from .rt_operands import BOOL, WEAK_BOOL, operand_code, write_scalar
from .rt_subscript import KeyState, read_key, read_plan


@native
def assign(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of `x[key] = value`.

    Python twin: eager/tensor/methods.py:setitem
    """
    desc: OperatorEntry = entry_data(self)
    g = desc.globals_
    flags = thread_flags(g)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 3 or flags == ELSEWHERE):
        return fall_back(desc, args, nargsf, kwnames)
    where, scalar, at = stack(16), stack(16), stack(sizeof(KeyState))
    to = operand_code(g, load(ptr, args, 0), flags, where)
    code = operand_code(g, load(ptr, args, 16), flags, where + 8)
    array, value = load(ptr, where, 0), load(ptr, where, 8)
    if unlikely(to < 0 or code < 0 or array == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    dims, steps = stack(MAX_RANK * 8), stack(MAX_RANK * 8)
    writable = (Ndarray(array).flags & WRITEABLE) != 0
    if unlikely(not writable or not read_key(array, args + 8, dims, steps, at)):
        return fall_back(desc, args, nargsf, kwnames)
    fits = prepare_value(load(ptr, args, 16), value, code, to, scalar, dims, at)
    if unlikely(not fits or (value != NULL and not are_disjoint(value, array))):
        return fall_back(desc, args, nargsf, kwnames)
    hold_operands(array, value)  # allocating a storage may run Python code
    written = bump_version(g, load(ptr, args, 0), array)
    if likely(written):
        write(array, value, scalar, dims, steps, at)
        desc.calls += 1
    release_operands(array, value)
    if unlikely(not written):
        return NULL
    none: ptr = Py_None
    incref(none)
    return none


@native
def put(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of `basic_put`, which writes into a copy.

    Python twin: operators/indexing/slicing.py:_write_kernel
    """
    desc: OperatorEntry = entry_data(self)
    g = desc.globals_
    flags = thread_flags(g)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 3 or flags == ELSEWHERE):
        return fall_back(desc, args, nargsf, kwnames)
    where, scalar, at = stack(16), stack(16), stack(sizeof(KeyState))
    to = operand_code(g, load(ptr, args, 0), flags, where)
    code = operand_code(g, load(ptr, args, 8), flags, where + 8)
    array, value = load(ptr, where, 0), load(ptr, where, 8)
    if unlikely(to < 0 or code < 0 or array == NULL or Ndarray(array).ndim > MAX_RANK):
        return fall_back(desc, args, nargsf, kwnames)
    dims, steps = stack(MAX_RANK * 8), stack(MAX_RANK * 8)
    if unlikely(
        not read_plan(array, load(ptr, args, 16), dims, steps, at)
        or not prepare_value(load(ptr, args, 8), value, code, to, scalar, dims, at)
    ):
        return fall_back(desc, args, nargsf, kwnames)
    hold_operands(array, value)  # allocating an array may run Python code
    made = copy_contiguous(g, array, i64(Ndarray(array).ndim), Ndarray(array).dims)
    tensor: ptr = NULL
    if likely(made != NULL):
        read_plan(made, load(ptr, args, 16), dims, steps, at)  # the copy's strides may differ
        write(made, value, scalar, dims, steps, at)
        desc.calls += 1
        tensor = make_tensor(g, made)
    release_operands(array, value)
    return tensor


@native
def hold_operands(array: ptr, value: ptr) -> None:
    incref(array)
    if value != NULL:
        incref(value)


@native
def release_operands(array: ptr, value: ptr) -> None:
    if value != NULL:
        decref(value)
    decref(array)


@native
def prepare_value(x: ptr, value: ptr, code: i64, to: i64, scalar: ptr, dims: ptr, at: KeyState) -> bool:
    """Return whether an operand can be written into the view; a number is written to `scalar` as an element."""
    if value == NULL:
        return (to != BOOL or code == WEAK_BOOL) and write_scalar(x, code, to, scalar)
    return code == to and can_broadcast(value, dims, at.rank)


@native
def can_broadcast(value: Ndarray, dims: ptr, rank: i64) -> bool:
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
def write(array: Ndarray, value: Ndarray, scalar: ptr, dims: ptr, steps: ptr, at: KeyState) -> None:
    """Copy a tensor's elements, or the number in `scalar` if the tensor is NULL, into the view."""
    rank, strides, pointers = at.rank, stack(MAX_RANK * 16), stack(16)
    total: i64 = 1
    operand_strides(value, rank, strides)
    for d in range(rank):
        total *= load(i64, dims, d * 8)
        store(i64, strides, d * 16 + 8, load(i64, steps, d * 8))
    store(ptr, pointers, 0, scalar)
    if value != NULL:
        store(ptr, pointers, 0, value.data)
    store(ptr, pointers, 8, array.data + at.moved)
    if total != 0:
        saved = release_gil(total * item_size(array) >= RELEASE_BYTES)
        run_nest(COPY, pointers, dims, strides, coalesce(dims, strides, rank), ptr(item_size(array)))
        acquire_gil(saved)
