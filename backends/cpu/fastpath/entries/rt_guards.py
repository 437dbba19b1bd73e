"""Native entries: guards of jitted functions: a program checks the arguments and writes their leaves to the frame."""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, f64, i64, likely, load, native, ptr, stack, stack_of, store, unlikely
from ..glue import jit_layout
from ..runtime import capi, rt_arguments, rt_layouts, rt_operands
from ..runtime import rt_base as base


@native
def hold_reference(frame: ptr, x: ptr) -> None:
    """Take a reference that the end of the call releases."""
    capi.incref(x)
    adopt_reference(frame, x)


@native
def adopt_reference(frame: jit_layout.CallFrame, x: ptr) -> None:
    """Leave an owned reference to the end of the call."""
    count = frame.count
    store(ptr, frame.held, count * 8, x)
    frame.count = count + 1


@native
def next_word(frame: jit_layout.CallFrame) -> i64:
    """Return the next word of the guard program."""
    at = frame.program
    frame.program = at + 8
    return load(i64, at, 0)


@native
def check_guards(frame: ptr, spec: jit_layout.Specialization, args: ptr) -> bool:
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
    if kind == jit_layout.GuardCode.CELL:
        result = load(ptr, result, jit_layout.CELL_CONTENT)
    elif kind == jit_layout.GuardCode.ITEM:
        result = capi.PyDict_GetItemWithError(result, ptr(next_word(frame)))
    if unlikely(result == NULL):
        capi.PyErr_Clear()
        return False
    return matches(frame, result)


@native
def matches(frame: ptr, x: ptr) -> bool:
    """Return whether an object is what the program expects next; write leaves to the frame."""
    kind = next_word(frame)
    if likely(kind == jit_layout.GuardCode.TENSOR):
        return tensor_matches(frame, x, ptr(next_word(frame)))
    if kind == jit_layout.GuardCode.FLOAT:
        return capi.type_of(x) == capi.PyFloat_Type and note_scalar(
            frame, x, load(i64, x, capi.PyFloat.value)
        )
    if kind == jit_layout.GuardCode.INT:
        return integer_matches(frame, x)
    if kind == jit_layout.GuardCode.BOOL:
        return capi.type_of(x) == capi.PyBool_Type and note_scalar(frame, x, 1 if x == capi.Py_True else 0)
    if kind == jit_layout.GuardCode.SAME:
        return i64(x) == next_word(frame)
    if kind == jit_layout.GuardCode.EQUAL_INT:
        wanted = next_word(frame)
        return wanted != rt_arguments.NO_NUMBER and rt_arguments.whole_number(x) == wanted
    if kind == jit_layout.GuardCode.EQUAL_FLOAT:
        return capi.type_of(x) == capi.PyFloat_Type and load(i64, x, capi.PyFloat.value) == next_word(frame)
    if kind == jit_layout.GuardCode.STRING:
        return rt_arguments.string_matches(x, ptr(next_word(frame)))
    if kind >= jit_layout.GuardCode.ARRAY_LIKE:
        return array_like_matches(frame, kind, x)
    capi.incref(x)
    result = container_matches(frame, kind, x)
    capi.decref(x)
    return result


@native
def array_like_matches(frame: ptr, kind: i64, x: ptr) -> bool:
    if kind == jit_layout.GuardCode.ARRAY:
        return ndarray_matches(frame, x, ptr(next_word(frame)))
    if kind == jit_layout.GuardCode.DEVICE:
        return device_matches(frame, x, ptr(next_word(frame)))
    if kind == jit_layout.GuardCode.NUMPY_SCALAR:
        return numpy_scalar_matches(frame, x)
    if kind == jit_layout.GuardCode.WEAK:
        return weak_scalar_matches(frame, x)
    return recorded_tensor_matches(frame, x, ptr(next_word(frame)))


@native
def numpy_scalar_matches(frame: jit_layout.CallFrame, x: ptr) -> bool:
    """Check the class of a scalar of NumPy; write the address of its value to its slot among the buffers."""
    if i64(capi.type_of(x)) != next_word(frame):
        return False
    hold_reference(frame, x)
    store(ptr, frame.buffers, next_word(frame) * 8, x + jit_layout.NUMPY_SCALAR_VALUE)
    return True


@native
def weak_scalar_matches(frame: jit_layout.CallFrame, x: ptr) -> bool:
    number = rt_operands.unwrap_number(frame.globals_, x)
    return False if number == x else matches(frame, number)


@native
def container_matches(frame: ptr, kind: i64, x: capi.PyList) -> bool:
    if kind == jit_layout.GuardCode.DICT:
        return dict_matches(frame, x)
    if capi.type_of(x) != ptr(next_word(frame)):
        return False
    count = next_word(frame)
    if kind == jit_layout.GuardCode.ATTRIBUTES:
        return attributes_match(frame, x, count)
    if x.size != count:
        return False
    for i in range(count):
        items = x + capi.PyTuple.items if kind == jit_layout.GuardCode.TUPLE else x.items
        # an inner guard may have run code that shortened the list
        if i >= x.size or not matches(frame, load(ptr, items, i * 8)):
            return False
    return True


@native
def dict_matches(frame: ptr, x: ptr) -> bool:
    """Check the keys, in the order of the traced dict (the function may depend on it), and the items."""
    count = next_word(frame)
    if capi.type_of(x) != capi.PyDict_Type or capi.PyDict_Size(x) != count:
        return False
    position, key, item = stack_of(0), stack(8), stack(8)
    for _i in range(count):
        wanted = ptr(next_word(frame))
        if capi.PyDict_Next(x, position, key, item) == 0:  # an inner guard may have changed the dict
            return False
        if load(ptr, key, 0) != wanted and not key_matches(load(ptr, key, 0), wanted):
            return False
        if not matches(frame, load(ptr, item, 0)):
            return False
    return True


@dsl.noinline
def key_matches(key: ptr, wanted: ptr) -> bool:
    """Return whether two keys, one an exact str or int, are equal and of one type."""
    if capi.type_of(key) != capi.type_of(wanted):
        return False
    if capi.type_of(key) == capi.PyUnicode_Type:
        return bool(capi.PyUnicode_Compare(key, wanted) == 0)
    return bool(capi.PyObject_RichCompareBool(key, wanted, capi.EQUAL) == 1)


@native
def attributes_match(frame: ptr, x: ptr, count: i64) -> bool:
    """Check the fields of a dataclass instance whose exact type has been checked."""
    for _i in range(count):
        item = capi.PyObject_GetAttr(x, ptr(next_word(frame)))
        if unlikely(item == NULL):
            capi.PyErr_Clear()
            return False
        result = matches(frame, item)
        capi.decref(item)
        if not result:
            return False
    return True


@native
def note_scalar(frame: jit_layout.CallFrame, x: ptr, bits: i64) -> bool:
    """Write a scalar to the slot that the next word names."""
    store(i64, frame.scalars, next_word(frame) * 8, bits)
    hold_reference(frame, x)
    return True


@native
def integer_matches(frame: ptr, x: ptr) -> bool:
    """Check that an int is between the bounds of its dtypes; Python raises for any other.

    Python twin: jit/guards/integer_ranges.py:Range.check
    """
    low, high, value = next_word(frame), next_word(frame), rt_arguments.whole_number(x)
    if value == rt_arguments.NO_NUMBER or value < low or value > high:
        return False
    return note_scalar(frame, x, value)


@native
def tensor_matches(frame: jit_layout.CallFrame, x: ptr, wanted: ptr) -> bool:
    g = frame.globals_
    array = rt_operands.plain_array(g, x, frame.flags)
    if unlikely(array == NULL):
        return False
    hold_reference(frame, x)
    return array_matches(frame, array, wanted)


@native
def recorded_tensor_matches(frame: jit_layout.CallFrame, x: base.TensorObject, wanted: ptr) -> bool:
    g = base.Globals(frame.globals_)
    array = rt_operands.plain_array(g, x, base.RECORD)
    if array == NULL or x.keys != g.grad_keys:
        return False
    hold_reference(frame, x)
    return array_matches(frame, array, wanted)


@native
def ndarray_matches(frame: ptr, x: ptr, wanted: ptr) -> bool:
    if capi.type_of(x) != capi.PyArray_Type:
        return False
    hold_reference(frame, x)
    return array_matches(frame, x, wanted)


@native
def device_matches(frame: jit_layout.CallFrame, x: base.TensorObject, wanted: jit_layout.DeviceGuard) -> bool:
    """Check a device tensor whose memory belongs to the call's stream, or is registered with that stream."""
    if capi.type_of(x) != wanted.type:
        return False
    keys = x.keys
    history = frame.flags == base.NO_GRAD and keys == wanted.grad_keys
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
    pool = load(ptr, stream, jit_layout.STREAM_POOL)
    if unlikely(load(ptr, buffer, wanted.pool_at) != pool and not is_user(wanted, buffer, pool)):
        return False
    address = capi.PyLong_AsUnsignedLongLongMask(load(ptr, data, wanted.ptr_at))
    if (address & jit_layout.DEVICE_ALIGNED) != 0:
        return False
    hold_reference(frame, x)
    hold_reference(frame, data)
    store(i64, frame.buffers, wanted.at * 8, address)
    return True


@dsl.noinline
def is_user(wanted: jit_layout.DeviceGuard, buffer: ptr, pool: ptr) -> bool:
    """Return whether memory of another stream or library waits for a pool's stream before it is reused."""
    users = load(ptr, buffer, wanted.users_at)
    if users == NULL or users == capi.Py_None:
        return False
    result = capi.PySet_Contains(users, load(ptr, pool, wanted.stream_at))
    if result < 0:
        capi.PyErr_Clear()
    return bool(result > 0)


@native
def stream_of(frame: jit_layout.CallFrame) -> ptr:
    """Return the struct of the thread's current stream on the current device; NULL if Python must run the call."""
    result = frame.stream
    # with an open level, new tensors must be reported to it
    if result == NULL and base.Globals(frame.globals_).note == NULL:
        device: jit_layout.DeviceCalls = frame.device
        result = dsl.call_ptr(device.ready, device.device)
        frame.stream = result
    return result


@native
def array_matches(frame: jit_layout.CallFrame, array: capi.Ndarray, wanted: jit_layout.ArrayGuard) -> bool:
    """Check type, shape and strides; on success write the data pointer to its slot among the buffers."""
    rank, flags = wanted.rank, array.flags
    if array.descr != wanted.descr or i64(array.ndim) != rank:
        return False
    if not rt_layouts.equal_integers(array.dims, wanted.dims, rank) or (flags & capi.ALIGNED) == 0:
        return False
    strides, data = wanted.strides, array.data
    if unlikely(wanted.is_copied != 0):
        return copy_matches(frame, array, wanted)
    if strides == NULL:
        if (flags & capi.C_CONTIGUOUS) == 0:
            return False
    elif rt_layouts.equal_integers(array.strides, strides, rank):
        data = data + wanted.low
    else:
        return False
    hold_reference(frame, array)
    store(ptr, frame.buffers, wanted.at * 8, data)
    return True


@dsl.noinline
def copy_matches(frame: jit_layout.CallFrame, array: capi.Ndarray, wanted: jit_layout.ArrayGuard) -> bool:
    """Check that an array is not C-contiguous; on success write the data pointer of a copy to its slot."""
    if (array.flags & capi.C_CONTIGUOUS) != 0:
        return False
    copied: capi.Ndarray = capi.PyArray_NewCopy(array, 0)
    if copied == NULL:
        capi.PyErr_Clear()  # Python runs the call, and raises the exception
        return False
    adopt_reference(frame, copied)
    store(ptr, frame.buffers, wanted.at * 8, copied.data)
    return True


# -- derived scalars ---------------------------------------------------------------------------------------------------
@native
def real_operand(frame: jit_layout.CallFrame) -> f64:
    source, what = next_word(frame), next_word(frame)
    if source == jit_layout.ScalarSource.CONSTANT:
        return load(f64, stack_of(what), 0)
    where = frame.scalars + what * 8
    return load(f64, where, 0) if source == jit_layout.ScalarSource.FLOAT else f64(load(i64, where, 0))


@native
def integer_operand(frame: jit_layout.CallFrame) -> i64:
    source, what = next_word(frame), next_word(frame)
    return what if source == jit_layout.ScalarSource.CONSTANT else load(i64, frame.scalars, what * 8)


@native
def is_small(n: i64) -> bool:
    return n > -jit_layout.SMALL_INTEGER and n < jit_layout.SMALL_INTEGER


@native
def derive(frame: jit_layout.CallFrame) -> bool:
    """Run Python's arithmetic on scalars; return false where Python would raise, or where a result exceeds 64 bits."""
    operation, index = next_word(frame), next_word(frame)
    where = frame.scalars + index * 8
    if operation >= jit_layout.DerivedCode.INTEGER:
        m, n = integer_operand(frame), integer_operand(frame)
        if not is_small(m) or not is_small(n):
            return False
        whole = m * n
        if operation == jit_layout.DerivedCode.INTEGER + jit_layout.DerivedCode.ADD:
            whole = m + n
        elif operation == jit_layout.DerivedCode.INTEGER + jit_layout.DerivedCode.SUBTRACT:
            whole = m - n
        store(i64, where, 0, whole)
        return True
    a, b = real_operand(frame), real_operand(frame)
    real = a * b
    if operation == jit_layout.DerivedCode.ADD:
        real = a + b
    elif operation == jit_layout.DerivedCode.SUBTRACT:
        real = a - b
    elif operation == jit_layout.DerivedCode.DIVIDE:
        real = a / b
    store(f64, where, 0, real)
    return operation != jit_layout.DerivedCode.DIVIDE or b != 0.0
