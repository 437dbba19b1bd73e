"""Native runtime: the entries of `full(shape, value, dtype=None)`, `zeros(shape, dtype=None)` and `ones(...)`.

They make small tensors; large ones are left to Python, where the system provides zeroed memory. Instances have one
input, the number: NIN is 1 and NARGS is 2.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, f64, i64, likely, load, native, ptr, stack, store, unlikely
from ..glue.layout import Descr, Ndarray, PyTuple, PyVarObject
from .rt_arguments import dtype_code
from .rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    PLAIN,
    Globals,
    OperatorEntry,
    Py_None,
    entry_data,
    fall_back,
    make_tensor,
    thread_flags,
)
from .rt_copies import COPY, item_size, memcpy
from .rt_elementwise import MAX_RANK, run_nest
from .rt_memory import new_array
from .rt_operands import (
    BOOL,
    COMPLEX64,
    FLOAT16,
    FLOAT32,
    FOREIGN,
    INT64,
    WEAK_BOOL,
    WEAK_FLOAT,
    WEAK_INT,
    operand_code,
    write_integer,
    write_real,
    write_scalar,
)
from .rt_reduce import DTYPE_NAME
from .rt_reshape import REFUSED
from .rt_views import read_integers

VALUE: i64 = -1  # the number; -1: it is the second argument
MOST: i64 = 65536  # maximum bytes of the result


@native
def fill(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of `full`, `zeros` and `ones`."""
    desc: OperatorEntry = entry_data(self)
    g: Globals = desc.globals_
    count: i64 = 2 if VALUE < 0 else 1
    if unlikely((nargsf & ARGS_MASK) != count or thread_flags(g) == ELSEWHERE):
        return fall_back(desc, args, nargsf, kwnames)
    number, dims = stack(16), stack(MAX_RANK * 8)
    code = find_result_code(desc, g, args, kwnames, count)
    rank = read_integers(load(ptr, args, 0), dims)
    if unlikely(code == FOREIGN or rank == REFUSED or not write_number(g, args, code, number)):
        return fall_back(desc, args, nargsf, kwnames)
    descr: Descr = load(ptr, g.descrs, code * 8)
    size = descr.itemsize
    total: i64 = 1
    for d in range(rank):
        extent = load(i64, dims, d * 8)
        if unlikely(extent < 0 or extent > MOST):
            return fall_back(desc, args, nargsf, kwnames)
        total *= extent
        if unlikely(total > MOST):
            return fall_back(desc, args, nargsf, kwnames)
    if unlikely(total * size > MOST):
        return fall_back(desc, args, nargsf, kwnames)
    made: Ndarray = new_array(g, descr, rank, dims, total * size)
    if unlikely(made == NULL):
        return NULL
    fill_elements(number, made.data, total, size)
    desc.calls += 1
    return make_tensor(g, made)


@native
def find_result_code(desc: OperatorEntry, g: ptr, args: ptr, kwnames: PyVarObject, count: i64) -> i64:
    """Return the code of the given dtype, or of the number's; FOREIGN: Python must run the call."""
    chosen: ptr = Py_None
    if kwnames != NULL:
        name = load(ptr, desc.names, PyTuple.items + DTYPE_NAME * 8)
        if kwnames.size != 1 or load(ptr, kwnames, PyTuple.items) != name:
            return FOREIGN
        chosen = load(ptr, args, count * 8)
    if chosen != Py_None:
        return dtype_code(g, chosen)
    if VALUE >= 0:
        return FLOAT32
    kind = operand_code(g, load(ptr, args, 8), PLAIN, stack(8))
    if kind < WEAK_BOOL:
        return kind
    if kind == WEAK_BOOL:
        return BOOL
    return INT64 if kind == WEAK_INT else FLOAT32 if kind == WEAK_FLOAT else COMPLEX64


@native
def write_number(g: ptr, args: ptr, code: i64, to: ptr) -> bool:
    """Write the number, or the element of a 0-d tensor of the dtype."""
    if VALUE >= 0:
        return write_real(f64(VALUE), code, to) if code >= FLOAT16 else write_integer(VALUE, code, to)
    where = stack(8)
    kind = operand_code(g, load(ptr, args, 8), PLAIN, where)
    array: Ndarray = load(ptr, where, 0)
    if array != NULL:
        if kind != code or array.ndim != 0:
            return False
        memcpy(to, array.data, item_size(array))
        return True
    if kind == FOREIGN or (code == BOOL and kind != WEAK_BOOL):
        return False
    return write_scalar(load(ptr, args, 8), kind, code, to)


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
        run_nest(COPY, pointers, shape, strides, 1, ptr(size))
