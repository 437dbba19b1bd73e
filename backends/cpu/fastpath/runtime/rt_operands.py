"""Native runtime: classify operands (plain tensors, weak Python scalars), and write scalars as elements.

Entries take tensors and Python's numbers. Where they refuse a call, its arrays and NumPy scalars are replaced by
tensors, as the binder of the Python path does, and the entry tries again.
"""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, f32, f64, i16, i32, i64, likely, load, native, ptr, stack, store, unlikely
from . import capi, rt_halves, rt_memory
from . import rt_base as base

EXACT: f64 = 9007199254740992.0  # 2**53; float64 has all integers up to it
SCALAR_VALUE = 16  # where NumPy's scalars have their value
MOST_ARGUMENTS = 8  # of calls whose arguments are converted


class NumberObject(base.StorageObject):
    """The slot of a Number."""

    slot_prefix = "N_"

    value: ptr


@native
def plain_array(classes: base.TensorClasses, x: base.TensorObject, flags: i64) -> ptr:
    """Return the array of a plain tensor of a backend, borrowed; NULL for anything else.

    The tensor may have history, if `flags` allow. One without it may have autograd's data: a result of `detach` has.
    """
    if unlikely(capi.type_of(x) != classes.tensor):
        return NULL
    array, keys = x.array, x.keys
    if unlikely(array == NULL or capi.type_of(array) != classes.array):
        return NULL  # Python code may have stored any object in the slot
    if likely(keys == classes.keys):
        return array
    return array if keys == classes.grad_keys and flags in (base.NO_GRAD, base.RECORD) else NULL


@native
def has_marks(g: base.Globals, x: base.TensorObject) -> bool:
    """Return whether a tensor without history has autograd's data: it is detached, or was a leaf."""
    return bool(capi.type_of(x) == g.tensor and x.keys == g.keys and x.meta != capi.Py_None)


@native
def operand_code(g: base.Globals, x: ptr, flags: i64, where: ptr) -> i64:
    """Return the type code of an operand, its array (NULL: a scalar) in `where`; FOREIGN: Python must run the call."""
    array: capi.Ndarray = plain_array(g, x, flags)
    store(ptr, where, 0, array)
    if likely(array != NULL):
        if unlikely((array.flags & capi.ALIGNED) == 0):
            return base.FOREIGN
        return array_code(g, array)
    return scalar_code(x)


@native
def tensor_code(g: ptr, x: ptr, flags: i64, where: ptr) -> i64:
    """Return the `operand_code` of a plain tensor, its array in `where`; FOREIGN for anything else."""
    code = operand_code(g, x, flags, where)
    return code if likely(load(ptr, where, 0) != NULL) else base.FOREIGN


@native
def array_code(g: base.Globals, array: capi.Ndarray) -> i64:
    """Return the code of an array's dtype, or FOREIGN."""
    number = capi.Descr(array.descr).type_num
    if unlikely(number < 0 or number > 255):
        return base.BFLOAT16 if i64(number) == g.bfloat16 else base.FOREIGN
    code = i64(load(dsl.u8, g.dtypes, i64(number)))
    return code if code < 16 else base.FOREIGN


@native
def scalar_code(x: ptr) -> i64:
    kind = capi.type_of(x)
    if kind == capi.PyFloat_Type:
        return base.WEAK_FLOAT
    if kind == capi.PyLong_Type:
        return base.WEAK_INT
    if kind == capi.PyBool_Type:
        return base.WEAK_BOOL
    return base.WEAK_COMPLEX if kind == capi.PyComplex_Type else base.FOREIGN


@native
def shown_code(code: i64) -> i64:
    """Return the code of the dtype that a weak scalar shows."""
    if code == base.WEAK_FLOAT:
        return base.FLOAT32
    if code == base.WEAK_INT:
        return base.INT64
    return base.COMPLEX64 if code == base.WEAK_COMPLEX else base.BOOL


@native
def unwrap_number(g: base.Globals, x: base.TensorObject) -> ptr:
    """Return the Python number that a weak scalar holds, borrowed; anything else is returned unchanged."""
    if likely(capi.type_of(x) != g.tensor) or x.keys != g.weak_keys:
        return x
    storage: NumberObject = x.storage
    if unlikely(storage == NULL or capi.type_of(storage) != g.number):
        return x  # Python code may have stored any object in the slot
    value = storage.value
    return x if value == NULL else value


@native
def operand_key(g: ptr, args: ptr, flags: i64, arrays: ptr) -> i64:
    """Write the arrays of all operands (NULL: a number), and return the key of their types; or FOREIGN.

    A weak scalar has the type of its number.
    """
    key: i64 = 0
    for i in range(base.NIN):
        code = operand_code(g, load(ptr, args, i * 8), flags, arrays + i * 8)
        if unlikely(code < 0):
            code = scalar_code(unwrap_number(g, load(ptr, args, i * 8)))
        if unlikely(code < 0):
            return base.FOREIGN
        key |= code << (i * base.CODE_BITS)
    return key


@dsl.noinline
def key_with_arrays(g: base.Globals, args: ptr, flags: i64, arrays: ptr) -> i64:
    """Return the key as `operand_key`, for operands among which are arrays or scalars of NumPy; FOREIGN if none is."""
    key, is_any = i64(0), False
    for i in range(base.NIN):
        x: capi.Ndarray = load(ptr, args, i * 8)
        code = operand_code(g, x, flags, arrays + i * 8)
        if code < 0:
            code = scalar_code(unwrap_number(g, load(ptr, args, i * 8)))
        if code < 0:
            code, is_any = foreign_code(g, x, arrays + i * 8), True
        if code < 0:
            return base.FOREIGN
        key |= code << (i * base.CODE_BITS)
    return key if is_any else base.FOREIGN


@native
def foreign_code(g: base.Globals, x: capi.Ndarray, where: ptr) -> i64:
    """Return the code of an array of NumPy, which is written to `where`, or of a scalar; or FOREIGN."""
    if capi.type_of(x) != capi.PyArray_Type:
        return scalar_type_code(g, x) if capi.type_of(x) != g.tensor else base.FOREIGN
    if not is_readable(g, x):
        return base.FOREIGN
    store(ptr, where, 0, x)
    return array_code(g, x)


@native
def pair_key(g: ptr, x: ptr, y: ptr, flags: i64, arrays: ptr) -> i64:
    """Return the key of a tensor and an operand, or FOREIGN; write their arrays (NULL: a number)."""
    first, second = tensor_code(g, x, flags, arrays), operand_code(g, y, flags, arrays + 8)
    return first | second << base.CODE_BITS if likely(first >= 0 and second >= 0) else base.FOREIGN


@dsl.noinline
def write_scalar(x: ptr, code: i64, to: i64, where: ptr) -> bool:
    """Write a Python scalar as one element of a dtype; return false if it does not fit (Python then raises)."""
    if code == base.WEAK_FLOAT:
        return write_real(capi.PyFloat(x).value, to, where)
    if code == base.WEAK_COMPLEX:
        return write_complex(capi.PyComplex(x).real, capi.PyComplex(x).imag, to, where)
    if code == base.WEAK_BOOL:
        return write_whole(i64(x == capi.Py_True), to, where)
    if to >= base.FLOAT16:
        value = capi.PyLong_AsDouble(x)
        if unlikely(value == -1.0) and capi.PyErr_Occurred() != NULL:
            capi.PyErr_Clear()
            return False
        is_single = to in (base.FLOAT32, base.COMPLEX64)
        if unlikely(is_single and (value > EXACT or value < -EXACT)):  # it may have been rounded already
            return False
        return write_real(value, to, where)
    overflow = stack(4)
    whole = capi.PyLong_AsLongLongAndOverflow(x, overflow)
    return load(i32, overflow, 0) == 0 and write_integer(whole, to, where)


@native
def write_whole(v: i64, to: i64, where: ptr) -> bool:
    return write_real(f64(v), to, where) if to >= base.FLOAT16 else write_integer(v, to, where)


@native
def write_real(v: f64, to: i64, where: ptr) -> bool:
    if to == base.FLOAT32:
        store(f32, where, 0, f32(v))
    elif to == base.FLOAT64:
        store(f64, where, 0, v)
    elif to not in (base.FLOAT16, base.BFLOAT16):
        return write_complex(v, 0.0, to, where)
    elif f64(f32(v)) != v:  # double rounding could be off by one unit in the last place
        return False
    elif to == base.FLOAT16:
        store(dsl.f16, where, 0, dsl.f16(f32(v)))
    else:
        store(i16, where, 0, i16(rt_halves.round_bfloat16(f32(v))))
    return True


@native
def write_complex(real: f64, imaginary: f64, to: i64, where: ptr) -> bool:
    if to == base.COMPLEX64:
        store(f32, where, 0, f32(real))
        store(f32, where, 4, f32(imaginary))
    else:
        store(f64, where, 0, real)
        store(f64, where, 8, imaginary)
    return to in (base.COMPLEX64, base.COMPLEX128)


@native
def write_integer(v: i64, to: i64, where: ptr) -> bool:
    if to == base.INT64 or (to == base.UINT64 and v >= 0):
        store(i64, where, 0, v)
        return True
    if to in (base.INT32, base.UINT32):
        store(i32, where, 0, i32(v))
        return v == i64(i32(v)) if to == base.INT32 else v == v & 0xFFFFFFFF
    if to in (base.INT16, base.UINT16):
        store(i16, where, 0, i16(v))
        return v == i64(i16(v)) if to == base.INT16 else v == v & 0xFFFF
    store(dsl.i8, where, 0, dsl.i8(v))
    if to == base.INT8:
        return v == i64(dsl.i8(v))
    return v == v & 0xFF if to == base.UINT8 else to == base.BOOL and v == v & 1


# Arrays and scalars of NumPy -----------------------------------------------------------------------------------------
@dsl.noinline
def scalar_type_code(g: base.Globals, x: ptr) -> i64:
    """Return the code of the dtype of a NumPy scalar, or FOREIGN."""
    kind = capi.type_of(x)
    for code in range(base.COMPLEX128 + 1):
        if load(ptr, g.scalar_types, code * 8) == kind:
            return code
    return base.FOREIGN


@native
def is_readable(g: base.Globals, x: capi.Ndarray) -> bool:
    """Return whether a tensor may share an array's memory: its dtype is one of tensors, and it is aligned."""
    code = array_code(g, x)
    return bool(code >= 0 and load(ptr, g.descrs, code * 8) == x.descr and (x.flags & capi.ALIGNED) != 0)


@native
def tensor_of_array(g: base.Globals, x: capi.Ndarray) -> ptr:
    """Return a tensor on an array's memory; NULL, perhaps with an exception set, if Python must make it."""
    if not is_readable(g, x):
        return NULL
    return base.make_tensor(g, capi.new_ref(x))


@dsl.noinline
def tensor_of_scalar(g: base.Globals, x: ptr, code: i64, to: i64) -> ptr:
    """Return a tensor without axes of a number of Python, or of NumPy if the codes are the same; NULL as above."""
    descr: capi.Descr = load(ptr, g.descrs, to * 8)
    made: capi.Ndarray = rt_memory.new_array(g, descr, 0, NULL, descr.itemsize)
    if unlikely(made == NULL):
        return NULL
    if code == to:
        capi.memcpy(made.data, x + SCALAR_VALUE, descr.itemsize)
    elif unlikely(not write_scalar(x, code, to, made.data)):
        capi.decref(made)
        return NULL
    return base.make_tensor(g, made)


@native
def to_tensor(g: base.Globals, x: ptr) -> ptr:
    """Return the tensor of an array or a scalar of NumPy, a new reference; NULL for anything else."""
    if capi.type_of(x) == capi.PyArray_Type:
        return tensor_of_array(g, x)
    if likely(capi.type_of(x) == g.tensor):
        return NULL
    code = scalar_type_code(g, x)
    return ptr(0) if code == base.FOREIGN else tensor_of_scalar(g, x, code, code)


@dsl.noinline
def convert_arguments(g: base.Globals, args: ptr, first: i64, count: i64, values: ptr) -> bool:
    """Write arguments to `values`, from the first on with tensors for NumPy's arrays and scalars, and hold all.

    Return whether there is any; if not, nothing is held.
    """
    if count > MOST_ARGUMENTS:
        return False
    is_any = False
    for i in range(count):
        x = load(ptr, args, i * 8)
        made = to_tensor(g, x) if i >= first else ptr(0)
        is_any = is_any or made != NULL
        store(ptr, values, i * 8, capi.new_ref(x) if made == NULL else made)
    capi.PyErr_Clear()  # of a failed allocation
    if not is_any:
        capi.release_all(values, count)
    return is_any
