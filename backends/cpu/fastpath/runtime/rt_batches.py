"""Native runtime: calls of operators on values of a level of `vmap`.

Where an entry refuses a call, and a level of a transform is open, the call on the batch follows from the kind of the
operator (`Kind`): its arguments are those of the call with the payloads in place of the values, and, for some kinds,
axes or subscripts moved past the batch axis. The operator's function is called with them, so that payloads may be of
any class; then the result becomes a value of the level. Calls that raise run again in Python, whose error is about one
example.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    Opcodes,
    i64,
    likely,
    load,
    native,
    noinline,
    ptr,
    stack,
    stack_of,
    store,
    unlikely,
)
from . import capi, rt_arguments, rt_operands
from . import rt_base as base

MOST_ARGUMENTS = 8
REFUSED = -2  # `rt_entry.Outcome.FALL_BACK`


class Kind(Opcodes):
    """The kinds of operators by how the call on a batch follows from that on examples; 0: Python knows."""

    ELEMENTWISE = 1
    REDUCTION = 2
    INDEX_REDUCTION = 3  # as REDUCTION, of one axis; also scans
    PRODUCT = 4  # of matrices
    SUBSCRIPT = 5
    UNCHANGED = 6  # further arguments do not depend on axes, as those of `astype`
    RESHAPE = 7
    PERMUTE = 8


@native
def is_value(g: base.Globals, x: ptr) -> bool:
    """Return whether an object is a value of a level."""
    kind = capi.type_of(x)
    return kind != NULL and kind in (g.batched, g.level_value)


@native
def level_of(g: base.Globals, x: base.TensorObject) -> ptr:
    """Return the open level of a value, borrowed; NULL if it has ended."""
    level: base.LevelObject = x.storage
    if unlikely(level == NULL or capi.type_of(level) != g.level or level.is_open != capi.Py_True):
        return NULL
    return level


@native
def innermost_level(g: base.Globals, args: ptr, count: i64) -> ptr:
    """Return the innermost level of the values among arguments, borrowed; NULL if one has ended, or there is none."""
    result: base.LevelObject = NULL
    for k in range(count):
        x = load(ptr, args, k * 8)
        if is_value(g, x):
            level: base.LevelObject = level_of(g, x)
            if unlikely(level == NULL):
                return NULL
            if result == NULL or (
                level != result and capi.PyLong_AsLongLong(level.depth) > capi.PyLong_AsLongLong(result.depth)
            ):
                result = level
    return result


@native
def is_batch(g: base.Globals, x: base.TensorObject, level: ptr) -> bool:
    """Return whether an argument is a value of a level of `vmap`."""
    return bool(capi.type_of(x) == g.batched and x.storage == level and x.array != NULL)


@native
def is_shared_parameter(g: base.Globals, x: base.TensorObject) -> bool:
    """Return whether an operand is a tensor that requires gradients, and that all examples share."""
    return bool(capi.type_of(x) == g.tensor and x.keys == g.grad_keys)


@native
def rank_of(g: base.Globals, x: base.TensorObject) -> i64:
    """Return the number of axes of an operand; -1 for any other object."""
    batches: i64 = 0
    while is_value(g, x):
        batches += i64(capi.type_of(x) == g.batched)
        x = x.array
        if unlikely(x == NULL):
            return -1
    if unlikely(capi.type_of(x) != g.tensor):
        return 0 if rt_operands.scalar_code(x) >= 0 else -1
    if unlikely(x.keys not in (g.keys, g.grad_keys)):
        return 0 if x.keys == g.weak_keys else -1
    array: capi.Ndarray = x.array
    if unlikely(array == NULL or capi.type_of(array) != g.array):
        return -1
    return i64(array.ndim) - batches


@native
def call_function(entry: base.OperatorEntry, values: ptr, count: i64, kwnames: capi.PyVarObject) -> ptr:
    """Call the operator's function; its arguments, borrowed from objects that may change, are held meanwhile."""
    total = count + (kwnames.size if kwnames != NULL else i64(0))
    capi.hold_all(values, total)
    result = capi.PyObject_Vectorcall(entry.function, values, count, kwnames)
    capi.release_all(values, total)
    return result


@native
def replace_operands(g: base.Globals, level: ptr, args: ptr, count: i64, values: ptr) -> bool:
    """Write the operands of an elementwise call on a batch; return whether they broadcast as examples do."""
    rank, widest = i64(-1), i64(0)
    for k in range(count):
        x: base.TensorObject = load(ptr, args, k * 8)
        own = rank_of(g, x)
        if unlikely(own < 0 or is_shared_parameter(g, x)):
            return False
        if is_batch(g, x, level):
            if unlikely(rank >= 0 and own != rank):
                return False
            rank = own
            x = x.array
        elif own > widest:
            widest = own
        store(ptr, values, k * 8, x)
    return widest <= rank


@native
def shifted_axis(axis: ptr, rank: i64, kind: i64) -> ptr:
    """Return the axes of a batch that are those of its examples, a new reference; NULL if Python has to find them."""
    if axis == capi.Py_None:
        if unlikely(kind != Kind.REDUCTION or rank > base.MAX_RANK):
            return NULL
        if rank == 1:
            return capi.PyLong_FromLongLong(1)
        axes = stack(base.MAX_RANK * 8)
        for k in range(rank):
            store(i64, axes, k * 8, k + 1)
        return capi.tuple_of_integers(axes, rank)
    position = rt_arguments.position(axis, rank)
    return capi.PyLong_FromLongLong(position + 1) if position != rt_arguments.BAD else ptr(0)


@native
def call_reduction(
    entry: base.OperatorEntry, x: base.TensorObject, args: ptr, count: i64, kwnames: capi.PyVarObject
) -> ptr:
    """Call a reduction with its axes moved past the batch axis; NULL if that is not possible, or raises."""
    rank, named = rank_of(entry.globals_, x), kwnames.size if kwnames != NULL else i64(0)
    axis = load(ptr, args, 8) if count == 2 else capi.Py_None
    keep = capi.Py_False
    for k in range(named):
        name, value = capi.item(kwnames, k), load(ptr, args, (count + k) * 8)
        if name == capi.item(entry.names, rt_arguments.KEEPDIMS):
            keep = value
        elif name == capi.item(entry.names, rt_arguments.AXIS) and count == 1:
            axis = value
        else:
            return NULL
    if unlikely(count > 2 or rank < 0 or keep not in (capi.Py_False, capi.Py_True)):
        return NULL
    shifted = shifted_axis(axis, rank, entry.batching)
    if unlikely(shifted == NULL):
        return NULL
    names: ptr = NULL
    if keep == capi.Py_True:
        names = capi.make_tuple(
            capi.PyTuple_Type, stack_of(capi.new_ref(capi.item(entry.names, rt_arguments.KEEPDIMS))), 1
        )
        if unlikely(names == NULL):
            capi.decref(shifted)
            return NULL
    result = call_function(entry, stack_of(x.array, shifted, keep), 2, names)
    capi.decref(shifted)
    capi.release(names)
    return result


@native
def call_product(entry: base.OperatorEntry, level: ptr, x: base.TensorObject, y: base.TensorObject) -> ptr:
    """Call a product of a batch of vectors or matrices and a matrix, a vector, or a batch of matrices; or NULL.

    Python twin: operators/contraction/matmul.py:_batched
    """
    g = entry.globals_
    rows, columns = rank_of(g, x), rank_of(g, y)
    if unlikely(rows < 1 or columns < 1 or is_shared_parameter(g, x) or is_shared_parameter(g, y)):
        return NULL
    if is_batch(g, x, level):
        if is_batch(g, y, level):
            if rows != 2 or columns != 2:
                return NULL
            return call_function(entry, stack_of(x.array, y.array), 2, NULL)
        return call_function(entry, stack_of(x.array, y), 2, NULL) if columns < 3 else ptr(0)
    if columns != 1 or rows > 2 or not is_batch(g, y, level):
        return NULL
    if rows == 1:
        return call_function(entry, stack_of(y.array, x), 2, NULL)
    turned = capi.PyObject_Vectorcall(g.transpose, stack_of(x), 1, NULL)
    if unlikely(turned == NULL):
        return NULL
    result = call_function(entry, stack_of(y.array, turned), 2, NULL)
    capi.decref(turned)
    return result


@native
def select_from_batch(x: base.TensorObject, key: ptr) -> ptr:
    """Return `x[:, key]` for a key of ints, slices, new axes and ellipses; NULL for another, or if it raises."""
    items, count = stack_of(key), i64(1)
    if capi.type_of(key) == capi.PyTuple_Type:
        items, count = key + capi.PyTuple.items, capi.PyVarObject(key).size
    if unlikely(count >= base.MAX_RANK):
        return NULL
    longer = stack(base.MAX_RANK * 8)
    for k in range(count):
        item = load(ptr, items, k * 8)
        if unlikely(
            item not in (capi.Py_None, capi.Py_Ellipsis)
            and capi.type_of(item) not in (capi.PyLong_Type, capi.PySlice_Type)
        ):
            return NULL
        store(ptr, longer, (k + 1) * 8, item)
    whole = capi.PySlice_New(NULL, NULL, NULL)
    if unlikely(whole == NULL):
        return NULL
    store(ptr, longer, 0, whole)
    capi.hold_all(longer + 8, count)
    subscript = capi.make_tuple(capi.PyTuple_Type, longer, count + 1)
    if unlikely(subscript == NULL):
        return NULL
    payload = capi.new_ref(x.array)
    result = capi.PyObject_GetItem(payload, subscript)
    capi.decref(payload)
    capi.decref(subscript)
    return result


@native
def call_view(
    entry: base.OperatorEntry, level: base.LevelObject, x: base.TensorObject, args: ptr, count: i64
) -> ptr:
    """Call `reshape` or `permute` with the batch axis first; NULL if Python has to run the call, or if it raises."""
    items, number = args + 8, count - 1
    if count == 2 and capi.sequence_items(load(ptr, args, 8)) != NULL:
        items, number = capi.sequence_items(load(ptr, args, 8)), capi.PyVarObject(load(ptr, args, 8)).size
    size, rank = capi.PyLong_AsLongLong(level.batch_size), rank_of(entry.globals_, x)
    if unlikely(number >= base.MAX_RANK or size < 1 or rank < 0):
        return NULL
    is_permutation = entry.batching == Kind.PERMUTE
    if unlikely(is_permutation and number != rank):
        return NULL
    longer = stack(base.MAX_RANK * 8)
    store(i64, longer, 0, 0 if is_permutation else size)
    for k in range(number):
        value = rt_arguments.whole_number(load(ptr, items, k * 8))
        if unlikely(value < (-rank if is_permutation else -1)):
            return NULL
        store(i64, longer, (k + 1) * 8, value + 1 if is_permutation and value >= 0 else value)
    wish = capi.tuple_of_integers(longer, number + 1)
    if unlikely(wish == NULL):
        return NULL
    result = call_function(entry, stack_of(x.array, wish), 2, NULL)
    capi.decref(wish)
    return result


@native
def call_unchanged(
    entry: base.OperatorEntry, x: base.TensorObject, args: ptr, count: i64, kwnames: capi.PyVarObject
) -> ptr:
    """Run the call with the payload in place of the first argument; NULL if another is a value too, or if it raises."""
    total = count + (kwnames.size if kwnames != NULL else i64(0))
    if unlikely(total > MOST_ARGUMENTS):
        return NULL
    values = stack(MOST_ARGUMENTS * 8)
    store(ptr, values, 0, x.array)
    for k in range(1, total):
        value = load(ptr, args, k * 8)
        if unlikely(is_value(entry.globals_, value)):
            return NULL
        store(ptr, values, k * 8, value)
    return call_function(entry, values, count, kwnames)


@native
def call_batch(
    entry: base.OperatorEntry, level: base.LevelObject, args: ptr, count: i64, kwnames: ptr
) -> ptr:
    """Run the call on the batch; NULL if it raises, or without an exception if Python has to run the call."""
    g, kind, first = entry.globals_, entry.batching, base.TensorObject(load(ptr, args, 0))
    if kind == Kind.ELEMENTWISE:
        values = stack(MOST_ARGUMENTS * 8)
        if unlikely(kwnames != NULL or not replace_operands(g, level, args, count, values)):
            return NULL
        return call_function(entry, values, count, NULL)
    if kind == Kind.PRODUCT:
        if unlikely(kwnames != NULL or count != 2):
            return NULL
        return call_product(entry, level, first, load(ptr, args, 8))
    if unlikely(not is_batch(g, first, level)):
        return NULL
    if kind == Kind.SUBSCRIPT:
        return select_from_batch(first, load(ptr, args, 8)) if count == 2 else ptr(0)
    if kind in (Kind.RESHAPE, Kind.PERMUTE):
        return call_view(entry, level, first, args, count) if kwnames == NULL and count >= 2 else ptr(0)
    if kind == Kind.UNCHANGED:
        return call_unchanged(entry, first, args, count, kwnames)
    return call_reduction(entry, first, args, count, kwnames)


@noinline
def run_at_level(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr) -> ptr:
    """Return the result of a call on values of a level, as a value of it; REFUSED if the dispatcher has to run it.

    Python twin: eager/layers/vmap/kernel.py:run
    """
    g = entry.globals_
    if unlikely(count < 1 or count > MOST_ARGUMENTS):
        return REFUSED
    level: base.LevelObject = innermost_level(g, args, count)
    if level == NULL:
        return REFUSED
    is_batch_level = level.run != capi.Py_None
    if not is_batch_level and (entry.forward == NULL or level.forward == capi.Py_None):
        return REFUSED
    capi.incref(level)
    result: ptr = NULL
    if is_batch_level:
        result = call_batch(entry, level, args, count, kwnames)
    else:
        result = capi.PyObject_Vectorcall(entry.forward, args, count, kwnames)
    if likely(result != NULL):
        if is_batch_level:
            result = wrap_batch(g, level, result)
        elif unlikely(result == capi.Py_NotImplemented):
            capi.decref(result)
            result = REFUSED
    elif capi.PyErr_Occurred() == NULL:
        result = REFUSED
    elif capi.PyErr_ExceptionMatches(load(ptr, capi.PyExc_Exception, 0)) != 0:
        capi.PyErr_Clear()  # Python raises it, for one example
        result = REFUSED
    capi.decref(level)
    return result


@native
def wrap_batch(g: base.Globals, level: ptr, payload: base.TensorObject) -> ptr:
    """Return a value of a level of `vmap` that owns the payload; REFUSED if the payload is not a plain CPU tensor.

    Python twin: eager/layers/vmap/tensor.py:wrap_batched
    """
    is_plain = capi.type_of(payload) == g.tensor and payload.keys in (g.keys, g.grad_keys)
    if unlikely(not is_plain and not (is_value(g, payload) and payload.keys == g.level_keys)):
        capi.decref(payload)
        return REFUSED
    value: base.TensorObject = capi.PyType_GenericAlloc(g.batched, 0)
    if unlikely(value == NULL):
        capi.decref(payload)
        return NULL
    value.array = payload
    value.storage = capi.new_ref(level)
    value.meta = capi.new_ref(capi.Py_None)
    value.keys = capi.new_ref(g.level_keys)
    if unlikely(g.note_value != NULL):
        return base.report_tensor(g.note_value, stack_of(value), 1, value)
    return value
