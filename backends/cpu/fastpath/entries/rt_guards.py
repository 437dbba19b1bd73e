"""Native runtime: guards of jitted functions: a program checks the arguments and writes their leaves to the frame."""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    call_ptr,
    extern,
    f64,
    i64,
    likely,
    load_f64,
    load_i32,
    load_i64,
    load_ptr,
    native,
    noinline,
    ptr,
    stack,
    store_f64,
    store_i64,
    store_ptr,
    unlikely,
)
from ..glue.jit_layout import (
    A_AT,
    A_DESCR,
    A_DIMS,
    A_RANK,
    A_STRIDES,
    C_AT,
    C_BUFFER_AT,
    C_DATA_AT,
    C_GRAD_KEYS,
    C_KEYS,
    C_LAYOUT,
    C_LAYOUT_AT,
    C_POOL_AT,
    C_PTR_AT,
    C_STREAM_AT,
    C_TYPE,
    C_USERS_AT,
    CELL_CONTENT,
    D_ADD,
    D_INTEGER,
    D_MULTIPLY,
    D_SUBTRACT,
    DEVICE_ALIGNED,
    E_CELL,
    E_ITEM,
    F_BUFFERS,
    F_COUNT,
    F_DEVICE,
    F_FLAGS,
    F_GLOBALS,
    F_HELD,
    F_PROGRAM,
    F_SCALARS,
    F_STREAM,
    FROM_CONSTANT,
    FROM_FLOAT,
    G_ARRAY_LEAF,
    G_ATTRIBUTES,
    G_BOOL_LEAF,
    G_DEVICE_LEAF,
    G_DICT,
    G_FLOAT_LEAF,
    G_INT_LEAF,
    G_SAME,
    G_STRING,
    G_TENSOR_LEAF,
    G_TUPLE,
    S_ARGS,
    S_DERIVED,
    S_EXTERNALS,
    SMALL_INTEGER,
    STREAM_POOL,
    V_DEVICE,
    V_READY,
)
from ..glue.layout import (
    ALIGNED,
    C_CONTIGUOUS,
    FLOAT_VALUE,
    LIST_ITEMS,
    ND_DATA,
    ND_DESCR,
    ND_DIMS,
    ND_FLAGS,
    ND_NDIM,
    ND_STRIDES,
    OB_SIZE,
    TUPLE_ITEMS,
)
from .rt_arguments import PyUnicode_Compare, PyUnicode_Type, string_matches
from .rt_base import (
    G_NOTE,
    NO_GRAD,
    T_KEYS,
    Py_None,
    Py_True,
    PyArray_Type,
    PyBool_Type,
    PyDict_GetItemWithError,
    PyDict_Size,
    PyDict_Type,
    PyErr_Clear,
    PyFloat_Type,
    PyLong_AsLongLongAndOverflow,
    PyLong_Type,
    decref,
    incref,
    type_of,
)
from .rt_operands import plain_array

PyLong_AsUnsignedLongLongMask = extern("PyLong_AsUnsignedLongLongMask", "i64(ptr)")
PyObject_GetAttr = extern("PyObject_GetAttr", "ptr(ptr, ptr)")
PySet_Contains = extern("PySet_Contains", "i32(ptr, ptr)")
PyDict_Next = extern("PyDict_Next", "i32(ptr, ptr, ptr, ptr)")
PyObject_RichCompareBool = extern("PyObject_RichCompareBool", "i32(ptr, ptr, i32)")
EQUAL = 2  # Py_EQ


@native
def release_references(frame: ptr) -> None:
    """Release all references that the frame holds."""
    held = load_ptr(frame, F_HELD)
    for i in range(load_i64(frame, F_COUNT)):
        decref(load_ptr(held, i * 8))


@native
def hold_reference(frame: ptr, x: ptr) -> None:
    """Take a reference that `release_references` releases."""
    incref(x)
    adopt_reference(frame, x)


@native
def adopt_reference(frame: ptr, x: ptr) -> None:
    """Leave an owned reference to `release_references`."""
    count = load_i64(frame, F_COUNT)
    store_ptr(load_ptr(frame, F_HELD), count * 8, x)
    store_i64(frame, F_COUNT, count + 1)


@native
def next_word(frame: ptr) -> i64:
    """Return the next word of the guard program."""
    at = load_ptr(frame, F_PROGRAM)
    store_ptr(frame, F_PROGRAM, at + 8)
    return load_i64(at, 0)


@native
def check_guards(frame: ptr, spec: ptr, args: ptr) -> bool:
    """Return whether all guards of a specialization hold for the arguments.

    Python twin: jit/function.py:JitFunction._find
    """
    for i in range(load_i64(spec, S_ARGS)):
        if not matches(frame, load_ptr(args, i * 8)):
            return False
    for _k in range(load_i64(spec, S_EXTERNALS)):
        if not external_matches(frame):
            return False
    for _k in range(load_i64(spec, S_DERIVED)):
        if not derive(frame):
            return False
    return True


@native
def external_matches(frame: ptr) -> bool:
    kind = next_word(frame)
    result = ptr(next_word(frame))
    if kind == E_CELL:
        result = load_ptr(result, CELL_CONTENT)
    elif kind == E_ITEM:
        result = PyDict_GetItemWithError(result, ptr(next_word(frame)))
    if unlikely(result == NULL):
        PyErr_Clear()
        return False
    return matches(frame, result)


@native
def matches(frame: ptr, x: ptr) -> bool:
    """Return whether an object is what the program expects next; write leaves to the frame."""
    kind = next_word(frame)
    if likely(kind == G_TENSOR_LEAF):
        return tensor_matches(frame, x, ptr(next_word(frame)))
    if kind == G_FLOAT_LEAF:
        return type_of(x) == PyFloat_Type and note_scalar(frame, x, load_i64(x, FLOAT_VALUE))
    if kind == G_INT_LEAF:
        return type_of(x) == PyLong_Type and integer_matches(frame, x)
    if kind == G_BOOL_LEAF:
        return type_of(x) == PyBool_Type and note_scalar(frame, x, 1 if x == Py_True else 0)
    if kind == G_SAME:
        return i64(x) == next_word(frame)
    if kind == G_STRING:
        return string_matches(x, ptr(next_word(frame)))
    if kind == G_ARRAY_LEAF:
        return ndarray_matches(frame, x, ptr(next_word(frame)))
    if kind == G_DEVICE_LEAF:
        return device_matches(frame, x, ptr(next_word(frame)))
    incref(x)
    result = container_matches(frame, kind, x)
    decref(x)
    return result


@native
def container_matches(frame: ptr, kind: i64, x: ptr) -> bool:
    if kind == G_DICT:
        return dict_matches(frame, x)
    if type_of(x) != ptr(next_word(frame)):
        return False
    count = next_word(frame)
    if kind == G_ATTRIBUTES:
        return attributes_match(frame, x, count)
    if load_i64(x, OB_SIZE) != count:
        return False
    for i in range(count):
        item: ptr = NULL
        if kind == G_TUPLE:
            item = load_ptr(x, TUPLE_ITEMS + i * 8)
        elif i < load_i64(x, OB_SIZE):  # an inner guard may have run code that shortened the list
            item = load_ptr(load_ptr(x, LIST_ITEMS), i * 8)
        if item == NULL or not matches(frame, item):
            return False
    return True


@native
def dict_matches(frame: ptr, x: ptr) -> bool:
    """Check the keys, in the order of the traced dict (the function may depend on it), and the items."""
    count = next_word(frame)
    if type_of(x) != PyDict_Type or PyDict_Size(x) != count:
        return False
    position, key, item = stack(8), stack(8), stack(8)
    store_i64(position, 0, 0)
    for _i in range(count):
        wanted = ptr(next_word(frame))
        if PyDict_Next(x, position, key, item) == 0:  # an inner guard may have run code that changed the dict
            return False
        if load_ptr(key, 0) != wanted and not key_matches(load_ptr(key, 0), wanted):
            return False
        if not matches(frame, load_ptr(item, 0)):
            return False
    return True


@noinline
def key_matches(key: ptr, wanted: ptr) -> bool:
    """Return whether two keys, one an exact str or int, are equal and of one type."""
    if type_of(key) != type_of(wanted):
        return False
    if type_of(key) == PyUnicode_Type:
        return PyUnicode_Compare(key, wanted) == 0
    return PyObject_RichCompareBool(key, wanted, EQUAL) == 1


@native
def attributes_match(frame: ptr, x: ptr, count: i64) -> bool:
    """Check the fields of a dataclass instance whose exact type has been checked."""
    for _i in range(count):
        item = PyObject_GetAttr(x, ptr(next_word(frame)))
        if unlikely(item == NULL):
            PyErr_Clear()
            return False
        result = matches(frame, item)
        decref(item)
        if not result:
            return False
    return True


@native
def note_scalar(frame: ptr, x: ptr, bits: i64) -> bool:
    """Write a scalar to the slot that the next word names."""
    store_i64(load_ptr(frame, F_SCALARS), next_word(frame) * 8, bits)
    hold_reference(frame, x)
    return True


@native
def integer_matches(frame: ptr, x: ptr) -> bool:
    """Check that an int is between the bounds of its dtypes; Python raises for any other.

    Python twin: jit/guards/integer_ranges.py:Range.check
    """
    low, high = next_word(frame), next_word(frame)
    overflow = stack(4)
    value = PyLong_AsLongLongAndOverflow(x, overflow)
    if load_i32(overflow, 0) != 0 or value < low or value > high:
        return False
    return note_scalar(frame, x, value)


@native
def tensor_matches(frame: ptr, x: ptr, wanted: ptr) -> bool:
    g = load_ptr(frame, F_GLOBALS)
    array = plain_array(g, x, load_i64(frame, F_FLAGS))
    if unlikely(array == NULL):
        return False
    hold_reference(frame, x)
    return array_matches(frame, array, wanted)


@native
def ndarray_matches(frame: ptr, x: ptr, wanted: ptr) -> bool:
    if type_of(x) != PyArray_Type:
        return False
    hold_reference(frame, x)
    return array_matches(frame, x, wanted)


@native
def device_matches(frame: ptr, x: ptr, wanted: ptr) -> bool:
    """Check a device tensor whose memory belongs to the call's stream, or is registered with that stream."""
    if type_of(x) != load_ptr(wanted, C_TYPE):
        return False
    keys = load_ptr(x, T_KEYS)
    history = load_i64(frame, F_FLAGS) == NO_GRAD and keys == load_ptr(wanted, C_GRAD_KEYS)
    if unlikely(keys != load_ptr(wanted, C_KEYS) and not history):
        return False
    data = load_ptr(x, load_i64(wanted, C_DATA_AT))
    if unlikely(data == NULL):
        return False
    buffer = load_ptr(data, load_i64(wanted, C_BUFFER_AT))
    if load_ptr(data, load_i64(wanted, C_LAYOUT_AT)) != load_ptr(wanted, C_LAYOUT):
        return False
    stream = stream_of(frame)
    if unlikely(stream == NULL):
        return False
    pool = load_ptr(stream, STREAM_POOL)
    if unlikely(load_ptr(buffer, load_i64(wanted, C_POOL_AT)) != pool and not is_user(wanted, buffer, pool)):
        return False
    address = PyLong_AsUnsignedLongLongMask(load_ptr(data, load_i64(wanted, C_PTR_AT)))
    if (address & DEVICE_ALIGNED) != 0:
        return False
    hold_reference(frame, x)
    hold_reference(frame, data)
    store_i64(load_ptr(frame, F_BUFFERS), load_i64(wanted, C_AT) * 8, address)
    return True


@noinline
def is_user(wanted: ptr, buffer: ptr, pool: ptr) -> bool:
    """Return whether memory of another stream or library waits for a pool's stream before it is reused."""
    users = load_ptr(buffer, load_i64(wanted, C_USERS_AT))
    if users == NULL or users == Py_None:
        return False
    result = PySet_Contains(users, load_ptr(pool, load_i64(wanted, C_STREAM_AT)))
    if result < 0:
        PyErr_Clear()
    return result > 0


@native
def stream_of(frame: ptr) -> ptr:
    """Return the struct of the thread's current stream on the current device; NULL if Python must run the call."""
    result = load_ptr(frame, F_STREAM)
    if (
        result == NULL and load_ptr(load_ptr(frame, F_GLOBALS), G_NOTE) == NULL
    ):  # otherwise new tensors must be reported to the open level
        device = load_ptr(frame, F_DEVICE)
        result = call_ptr(load_ptr(device, V_READY), load_ptr(device, V_DEVICE))
        store_ptr(frame, F_STREAM, result)
    return result


@native
def array_matches(frame: ptr, array: ptr, wanted: ptr) -> bool:
    """Check type, shape and strides; on success write the data pointer to its slot among the buffers."""
    rank = load_i64(wanted, A_RANK)
    flags = load_i32(array, ND_FLAGS)
    if load_ptr(array, ND_DESCR) != load_ptr(wanted, A_DESCR) or i64(load_i32(array, ND_NDIM)) != rank:
        return False
    if not words_equal(load_ptr(array, ND_DIMS), load_ptr(wanted, A_DIMS), rank) or (flags & ALIGNED) == 0:
        return False
    strides = load_ptr(wanted, A_STRIDES)
    if strides == NULL:
        if (flags & C_CONTIGUOUS) == 0:
            return False
    elif not words_equal(load_ptr(array, ND_STRIDES), strides, rank):
        return False
    hold_reference(frame, array)
    store_ptr(load_ptr(frame, F_BUFFERS), load_i64(wanted, A_AT) * 8, load_ptr(array, ND_DATA))
    return True


@native
def words_equal(one: ptr, two: ptr, count: i64) -> bool:
    for i in range(count):
        if load_i64(one, i * 8) != load_i64(two, i * 8):
            return False
    return True


# -- derived scalars ---------------------------------------------------------------------------------------------------
@native
def real_operand(frame: ptr) -> f64:
    source, what = next_word(frame), next_word(frame)
    if source == FROM_CONSTANT:
        cell = stack(8)
        store_i64(cell, 0, what)
        return load_f64(cell, 0)
    scalars = load_ptr(frame, F_SCALARS)
    return load_f64(scalars, what * 8) if source == FROM_FLOAT else f64(load_i64(scalars, what * 8))


@native
def integer_operand(frame: ptr) -> i64:
    source, what = next_word(frame), next_word(frame)
    return what if source == FROM_CONSTANT else load_i64(load_ptr(frame, F_SCALARS), what * 8)


@native
def derive(frame: ptr) -> bool:
    """Run Python's arithmetic on scalars; return false where Python would raise, or where a result exceeds 64 bits."""
    operation, place = next_word(frame), next_word(frame)
    where = load_ptr(frame, F_SCALARS) + place * 8
    if operation >= D_INTEGER:
        m, n = integer_operand(frame), integer_operand(frame)
        if m >= SMALL_INTEGER or m <= -SMALL_INTEGER or n >= SMALL_INTEGER or n <= -SMALL_INTEGER:
            return False
        whole = m * n
        if operation == D_INTEGER + D_ADD:
            whole = m + n
        elif operation == D_INTEGER + D_SUBTRACT:
            whole = m - n
        store_i64(where, 0, whole)
        return True
    a, b = real_operand(frame), real_operand(frame)
    if operation == D_ADD:
        store_f64(where, 0, a + b)
    elif operation == D_SUBTRACT:
        store_f64(where, 0, a - b)
    elif operation == D_MULTIPLY:
        store_f64(where, 0, a * b)
    elif b == 0.0:
        return False
    else:
        store_f64(where, 0, a / b)
    return True
