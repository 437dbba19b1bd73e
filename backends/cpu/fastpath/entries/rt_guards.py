"""Native runtime: guards of jitted functions: a program checks the arguments and writes their leaves to the frame."""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    call_ptr,
    extern,
    f64,
    i32,
    i64,
    likely,
    load,
    native,
    noinline,
    ptr,
    stack,
    store,
    unlikely,
)
from ..glue.jit_layout import (
    CELL_CONTENT,
    DEVICE_ALIGNED,
    SMALL_INTEGER,
    STREAM_POOL,
    ArrayGuard,
    CallFrame,
    DerivedCode,
    DeviceCalls,
    DeviceGuard,
    GuardCode,
    ScalarSource,
    Specialization,
)
from ..glue.layout import ALIGNED, C_CONTIGUOUS, Ndarray, PyFloat, PyList, PyTuple
from .rt_arguments import PyUnicode_Compare, PyUnicode_Type, string_matches
from .rt_base import (
    NO_GRAD,
    Globals,
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
    TensorObject,
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
def release_references(frame: CallFrame) -> None:
    """Release all references that the frame holds."""
    held = frame.held
    for i in range(frame.count):
        decref(load(ptr, held, i * 8))


@native
def hold_reference(frame: ptr, x: ptr) -> None:
    """Take a reference that `release_references` releases."""
    incref(x)
    adopt_reference(frame, x)


@native
def adopt_reference(frame: CallFrame, x: ptr) -> None:
    """Leave an owned reference to `release_references`."""
    count = frame.count
    store(ptr, frame.held, count * 8, x)
    frame.count = count + 1


@native
def next_word(frame: CallFrame) -> i64:
    """Return the next word of the guard program."""
    at = frame.program
    frame.program = at + 8
    return load(i64, at, 0)


@native
def check_guards(frame: ptr, spec: Specialization, args: ptr) -> bool:
    """Return whether all guards of a specialization hold for the arguments.

    Python twin: jit/function.py:JitFunction._find
    """
    for i in range(spec.args):
        if not matches(frame, load(ptr, args, i * 8)):
            return False
    for _k in range(spec.externals):
        if not external_matches(frame):
            return False
    for _k in range(spec.derived):
        if not derive(frame):
            return False
    return True


@native
def external_matches(frame: ptr) -> bool:
    kind = next_word(frame)
    result = ptr(next_word(frame))
    if kind == GuardCode.CELL:
        result = load(ptr, result, CELL_CONTENT)
    elif kind == GuardCode.ITEM:
        result = PyDict_GetItemWithError(result, ptr(next_word(frame)))
    if unlikely(result == NULL):
        PyErr_Clear()
        return False
    return matches(frame, result)


@native
def matches(frame: ptr, x: ptr) -> bool:
    """Return whether an object is what the program expects next; write leaves to the frame."""
    kind = next_word(frame)
    if likely(kind == GuardCode.TENSOR):
        return tensor_matches(frame, x, ptr(next_word(frame)))
    if kind == GuardCode.FLOAT:
        return type_of(x) == PyFloat_Type and note_scalar(frame, x, load(i64, x, PyFloat.value))
    if kind == GuardCode.INT:
        return type_of(x) == PyLong_Type and integer_matches(frame, x)
    if kind == GuardCode.BOOL:
        return type_of(x) == PyBool_Type and note_scalar(frame, x, 1 if x == Py_True else 0)
    if kind == GuardCode.SAME:
        return i64(x) == next_word(frame)
    if kind == GuardCode.STRING:
        return string_matches(x, ptr(next_word(frame)))
    if kind == GuardCode.ARRAY:
        return ndarray_matches(frame, x, ptr(next_word(frame)))
    if kind == GuardCode.DEVICE:
        return device_matches(frame, x, ptr(next_word(frame)))
    incref(x)
    result = container_matches(frame, kind, x)
    decref(x)
    return result


@native
def container_matches(frame: ptr, kind: i64, x: PyList) -> bool:
    if kind == GuardCode.DICT:
        return dict_matches(frame, x)
    if type_of(x) != ptr(next_word(frame)):
        return False
    count = next_word(frame)
    if kind == GuardCode.ATTRIBUTES:
        return attributes_match(frame, x, count)
    if x.size != count:
        return False
    for i in range(count):
        item: ptr = NULL
        if kind == GuardCode.TUPLE:
            item = load(ptr, x, PyTuple.items + i * 8)
        elif i < x.size:  # an inner guard may have run code that shortened the list
            item = load(ptr, x.items, i * 8)
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
    store(i64, position, 0, 0)
    for _i in range(count):
        wanted = ptr(next_word(frame))
        if PyDict_Next(x, position, key, item) == 0:  # an inner guard may have run code that changed the dict
            return False
        if load(ptr, key, 0) != wanted and not key_matches(load(ptr, key, 0), wanted):
            return False
        if not matches(frame, load(ptr, item, 0)):
            return False
    return True


@noinline
def key_matches(key: ptr, wanted: ptr) -> bool:
    """Return whether two keys, one an exact str or int, are equal and of one type."""
    if type_of(key) != type_of(wanted):
        return False
    if type_of(key) == PyUnicode_Type:
        return bool(PyUnicode_Compare(key, wanted) == 0)
    return bool(PyObject_RichCompareBool(key, wanted, EQUAL) == 1)


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
def note_scalar(frame: CallFrame, x: ptr, bits: i64) -> bool:
    """Write a scalar to the slot that the next word names."""
    store(i64, frame.scalars, next_word(frame) * 8, bits)
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
    if load(i32, overflow, 0) != 0 or value < low or value > high:
        return False
    return note_scalar(frame, x, value)


@native
def tensor_matches(frame: CallFrame, x: ptr, wanted: ptr) -> bool:
    g = frame.globals_
    array = plain_array(g, x, frame.flags)
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
def device_matches(frame: CallFrame, x: TensorObject, wanted: DeviceGuard) -> bool:
    """Check a device tensor whose memory belongs to the call's stream, or is registered with that stream."""
    if type_of(x) != wanted.type:
        return False
    keys = x.keys
    history = frame.flags == NO_GRAD and keys == wanted.grad_keys
    if unlikely(keys != wanted.keys and not history):
        return False
    data = load(ptr, x, wanted.data_at)
    if unlikely(data == NULL):
        return False
    buffer = load(ptr, data, wanted.buffer_at)
    if load(ptr, data, wanted.layout_at) != wanted.layout:
        return False
    stream = stream_of(frame)
    if unlikely(stream == NULL):
        return False
    pool = load(ptr, stream, STREAM_POOL)
    if unlikely(load(ptr, buffer, wanted.pool_at) != pool and not is_user(wanted, buffer, pool)):
        return False
    address = PyLong_AsUnsignedLongLongMask(load(ptr, data, wanted.ptr_at))
    if (address & DEVICE_ALIGNED) != 0:
        return False
    hold_reference(frame, x)
    hold_reference(frame, data)
    store(i64, frame.buffers, wanted.at * 8, address)
    return True


@noinline
def is_user(wanted: DeviceGuard, buffer: ptr, pool: ptr) -> bool:
    """Return whether memory of another stream or library waits for a pool's stream before it is reused."""
    users = load(ptr, buffer, wanted.users_at)
    if users == NULL or users == Py_None:
        return False
    result = PySet_Contains(users, load(ptr, pool, wanted.stream_at))
    if result < 0:
        PyErr_Clear()
    return bool(result > 0)


@native
def stream_of(frame: CallFrame) -> ptr:
    """Return the struct of the thread's current stream on the current device; NULL if Python must run the call."""
    result = frame.stream
    if (
        result == NULL and Globals(frame.globals_).note == NULL
    ):  # otherwise new tensors must be reported to the open level
        device: DeviceCalls = frame.device
        result = call_ptr(device.ready, device.device)
        frame.stream = result
    return result


@native
def array_matches(frame: CallFrame, array: Ndarray, wanted: ArrayGuard) -> bool:
    """Check type, shape and strides; on success write the data pointer to its slot among the buffers."""
    rank = wanted.rank
    flags = array.flags
    if array.descr != wanted.descr or i64(array.ndim) != rank:
        return False
    if not words_equal(array.dims, wanted.dims, rank) or (flags & ALIGNED) == 0:
        return False
    strides = wanted.strides
    if strides == NULL:
        if (flags & C_CONTIGUOUS) == 0:
            return False
    elif not words_equal(array.strides, strides, rank):
        return False
    hold_reference(frame, array)
    store(ptr, frame.buffers, wanted.at * 8, array.data)
    return True


@native
def words_equal(one: ptr, two: ptr, count: i64) -> bool:
    for i in range(count):
        if load(i64, one, i * 8) != load(i64, two, i * 8):
            return False
    return True


# -- derived scalars ---------------------------------------------------------------------------------------------------
@native
def real_operand(frame: CallFrame) -> f64:
    source, what = next_word(frame), next_word(frame)
    if source == ScalarSource.CONSTANT:
        cell = stack(8)
        store(i64, cell, 0, what)
        return load(f64, cell, 0)
    scalars = frame.scalars
    return load(f64, scalars, what * 8) if source == ScalarSource.FLOAT else f64(load(i64, scalars, what * 8))


@native
def integer_operand(frame: CallFrame) -> i64:
    source, what = next_word(frame), next_word(frame)
    return what if source == ScalarSource.CONSTANT else load(i64, frame.scalars, what * 8)


@native
def derive(frame: CallFrame) -> bool:
    """Run Python's arithmetic on scalars; return false where Python would raise, or where a result exceeds 64 bits."""
    operation, place = next_word(frame), next_word(frame)
    where = frame.scalars + place * 8
    if operation >= DerivedCode.INTEGER:
        m, n = integer_operand(frame), integer_operand(frame)
        if m >= SMALL_INTEGER or m <= -SMALL_INTEGER or n >= SMALL_INTEGER or n <= -SMALL_INTEGER:
            return False
        whole = m * n
        if operation == DerivedCode.INTEGER + DerivedCode.ADD:
            whole = m + n
        elif operation == DerivedCode.INTEGER + DerivedCode.SUBTRACT:
            whole = m - n
        store(i64, where, 0, whole)
        return True
    a, b = real_operand(frame), real_operand(frame)
    if operation == DerivedCode.ADD:
        store(f64, where, 0, a + b)
    elif operation == DerivedCode.SUBTRACT:
        store(f64, where, 0, a - b)
    elif operation == DerivedCode.MULTIPLY:
        store(f64, where, 0, a * b)
    elif b == 0.0:
        return False
    else:
        store(f64, where, 0, a / b)
    return True
