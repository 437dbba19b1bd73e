"""Native runtime: guards of jitted functions: a program says what the objects must be, leaves go to the frame."""

from __future__ import annotations

from .dsl import (
    NULL,
    apart,
    call_ptr,
    extern,
    extern_object,
    f64,
    i64,
    likely,
    load_f64,
    load_i32,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_f64,
    store_i64,
    store_ptr,
    unlikely,
)
from .jit_layout import (
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
from .layout import (
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
from .rt_operands import (
    plain_array,
)

PyLong_AsUnsignedLongLongMask = extern("PyLong_AsUnsignedLongLongMask", "i64(ptr)")
PyObject_GetAttr = extern("PyObject_GetAttr", "ptr(ptr, ptr)")
PySet_Contains = extern("PySet_Contains", "i32(ptr, ptr)")
PyUnicode_Compare = extern("PyUnicode_Compare", "i32(ptr, ptr)")
PyUnicode_Type = extern_object("PyUnicode_Type")


@native
def release(frame: ptr) -> None:
    held = load_ptr(frame, F_HELD)
    for i in range(load_i64(frame, F_COUNT)):
        decref(load_ptr(held, i * 8))


@native
def hold(frame: ptr, x: ptr) -> None:
    """Take a reference that `release` gives back."""
    incref(x)
    keep(frame, x)


@native
def keep(frame: ptr, x: ptr) -> None:
    """Leave a reference to `release`."""
    count = load_i64(frame, F_COUNT)
    store_ptr(load_ptr(frame, F_HELD), count * 8, x)
    store_i64(frame, F_COUNT, count + 1)


@native
def word(frame: ptr) -> i64:
    """The next word of the guard program."""
    at = load_ptr(frame, F_PROGRAM)
    store_ptr(frame, F_PROGRAM, at + 8)
    return load_i64(at, 0)


@native
def guards_hold(frame: ptr, spec: ptr, args: ptr) -> bool:
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
    kind = word(frame)
    found = ptr(word(frame))
    if kind == E_CELL:
        found = load_ptr(found, CELL_CONTENT)
    elif kind == E_ITEM:
        found = PyDict_GetItemWithError(found, ptr(word(frame)))
    if unlikely(found == NULL):
        PyErr_Clear()
        return False
    return matches(frame, found)


@native
def matches(frame: ptr, x: ptr) -> bool:
    """Whether an object is what the program expects next; leaves are noted in the frame."""
    kind = word(frame)
    if likely(kind == G_TENSOR_LEAF):
        return tensor_matches(frame, x, ptr(word(frame)))
    if kind == G_FLOAT_LEAF:
        return type_of(x) == PyFloat_Type and note_scalar(frame, x, load_i64(x, FLOAT_VALUE))
    if kind == G_INT_LEAF:
        return type_of(x) == PyLong_Type and integer_matches(frame, x)
    if kind == G_BOOL_LEAF:
        return type_of(x) == PyBool_Type and note_scalar(frame, x, 1 if x == Py_True else 0)
    if kind == G_SAME:
        return i64(x) == word(frame)
    if kind == G_STRING:
        return string_matches(x, ptr(word(frame)))
    if kind == G_ARRAY_LEAF:
        return ndarray_matches(frame, x, ptr(word(frame)))
    if kind == G_DEVICE_LEAF:
        return device_matches(frame, x, ptr(word(frame)))
    incref(x)
    found = container_matches(frame, kind, x)
    decref(x)
    return found


@native
def container_matches(frame: ptr, kind: i64, x: ptr) -> bool:
    if kind == G_DICT:
        return dict_matches(frame, x)
    if type_of(x) != ptr(word(frame)):
        return False
    count = word(frame)
    if kind == G_ATTRIBUTES:
        return attributes_match(frame, x, count)
    if load_i64(x, OB_SIZE) != count:
        return False
    for i in range(count):
        item: ptr = NULL
        if kind == G_TUPLE:
            item = load_ptr(x, TUPLE_ITEMS + i * 8)
        elif i < load_i64(x, OB_SIZE):  # a guard further in may have run code that shortens the list
            item = load_ptr(load_ptr(x, LIST_ITEMS), i * 8)
        if item == NULL or not matches(frame, item):
            return False
    return True


@native
def dict_matches(frame: ptr, x: ptr) -> bool:
    count = word(frame)
    if type_of(x) != PyDict_Type or PyDict_Size(x) != count:
        return False
    for _i in range(count):
        item = PyDict_GetItemWithError(x, ptr(word(frame)))
        if unlikely(item == NULL):
            PyErr_Clear()
            return False
        if not matches(frame, item):
            return False
    return True


@native
def attributes_match(frame: ptr, x: ptr, count: i64) -> bool:
    """The fields of a dataclass instance whose exact type has been checked."""
    for _i in range(count):
        item = PyObject_GetAttr(x, ptr(word(frame)))
        if unlikely(item == NULL):
            PyErr_Clear()
            return False
        found = matches(frame, item)
        decref(item)
        if not found:
            return False
    return True


@native
def note_scalar(frame: ptr, x: ptr, bits: i64) -> bool:
    """Put a scalar where the next word says."""
    store_i64(load_ptr(frame, F_SCALARS), word(frame) * 8, bits)
    hold(frame, x)
    return True


@native
def integer_matches(frame: ptr, x: ptr) -> bool:
    """An int between the bounds that its dtypes set; Python says what is wrong with any other."""
    low, high = word(frame), word(frame)
    overflow = stack(4)
    value = PyLong_AsLongLongAndOverflow(x, overflow)
    if load_i32(overflow, 0) != 0 or value < low or value > high:
        return False
    return note_scalar(frame, x, value)


@native
def string_matches(x: ptr, wanted: ptr) -> bool:
    return x == wanted or (type_of(x) == PyUnicode_Type and PyUnicode_Compare(x, wanted) == 0)


@native
def tensor_matches(frame: ptr, x: ptr, wanted: ptr) -> bool:
    g = load_ptr(frame, F_GLOBALS)
    array = plain_array(g, x, load_i64(frame, F_FLAGS))
    if unlikely(array == NULL):
        return False
    hold(frame, x)
    return array_matches(frame, array, wanted)


@native
def ndarray_matches(frame: ptr, x: ptr, wanted: ptr) -> bool:
    if type_of(x) != PyArray_Type:
        return False
    hold(frame, x)
    return array_matches(frame, x, wanted)


@native
def device_matches(frame: ptr, x: ptr, wanted: ptr) -> bool:
    """A tensor of a device, whose memory belongs to the stream of the call, or knows of that stream."""
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
    hold(frame, x)
    hold(frame, data)
    store_i64(load_ptr(frame, F_BUFFERS), load_i64(wanted, C_AT) * 8, address)
    return True


@apart
def is_user(wanted: ptr, buffer: ptr, pool: ptr) -> bool:
    """Whether memory of another stream or library waits for a pool's stream before somebody else gets it."""
    users = load_ptr(buffer, load_i64(wanted, C_USERS_AT))
    if users == NULL or users == Py_None:
        return False
    found = PySet_Contains(users, load_ptr(pool, load_i64(wanted, C_STREAM_AT)))
    if found < 0:
        PyErr_Clear()
    return found > 0


@native
def stream_of(frame: ptr) -> ptr:
    """The record of the thread's current stream, its device being current; NULL where Python has to answer."""
    found = load_ptr(frame, F_STREAM)
    if (
        found == NULL and load_ptr(load_ptr(frame, F_GLOBALS), G_NOTE) == NULL
    ):  # else new tensors are to be noted
        device = load_ptr(frame, F_DEVICE)
        found = call_ptr(load_ptr(device, V_READY), load_ptr(device, V_DEVICE))
        store_ptr(frame, F_STREAM, found)
    return found


@native
def array_matches(frame: ptr, array: ptr, wanted: ptr) -> bool:
    """Type, shape and strides; on success the data pointer goes to its place among the buffers."""
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
    hold(frame, array)
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
    source, what = word(frame), word(frame)
    if source == FROM_CONSTANT:
        cell = stack(8)
        store_i64(cell, 0, what)
        return load_f64(cell, 0)
    scalars = load_ptr(frame, F_SCALARS)
    return load_f64(scalars, what * 8) if source == FROM_FLOAT else f64(load_i64(scalars, what * 8))


@native
def integer_operand(frame: ptr) -> i64:
    source, what = word(frame), word(frame)
    return what if source == FROM_CONSTANT else load_i64(load_ptr(frame, F_SCALARS), what * 8)


@native
def derive(frame: ptr) -> bool:
    """Python's arithmetic on scalars; false where Python would raise, or where its integers are longer than ours."""
    operation, place = word(frame), word(frame)
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
