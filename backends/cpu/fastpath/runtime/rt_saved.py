"""Native runtime: the residuals of a recorded call: values, specs, and their versions."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, u8, unlikely
from ..compiler.structs import Struct, array
from . import capi, rt_operands
from . import rt_base as base


# Slots of Hold; `runtime` supplies them.
class HoldObject(capi.PyObject):
    """The slots of a Hold."""

    slot_prefix = "HOLD_"

    storage: ptr
    version: ptr


MOST_SAVED = 8


# The rules of one set of tensors: the `Active`, the indices of the tensors, and what is saved: kinds and indices
class RuleSet(Struct):
    """The rules of one set of tensors that need gradients, and what they save."""

    active: ptr  # the `ActiveRules`
    count: i64
    indices: ptr = array(3)  # of the tensors
    savers: i64
    saver: ptr = array(16)  # kind and index of each value that is saved


# What is saved: an argument, one that is normalised to a tuple of ints, the result; or the spec of one of them; a tuple
# without tensors
SAVE_VALUE, SAVE_INTEGERS, SAVE_RESULT, SAVE_SPEC, SAVE_RESULT_SPEC, SAVE_TUPLE = 0, 1, 2, 3, 4, 5

DONE, FAILED = 1, -1
TO_PYTHON: i64 = 0


@native
def array_code(g: base.Globals, array: capi.Ndarray) -> i64:
    """Return the code of an array's dtype, or FOREIGN."""
    number = capi.Descr(array.descr).type_num
    if unlikely(number < 0 or number > 255):
        return base.BFLOAT16 if i64(number) == g.bfloat16 else base.FOREIGN
    code = i64(load(u8, g.dtypes, i64(number)))
    return code if code < 16 else base.FOREIGN


@native
def shape_of(array: capi.Ndarray) -> ptr:
    """Return the sizes of an array as a tuple; NULL with an exception set."""
    rank = i64(array.ndim)
    capi.incref(array)
    result = capi.PyTuple_New(rank)
    if likely(result != NULL):
        for d in range(rank):
            size = capi.PyLong_FromLongLong(load(i64, array.dims, d * 8))
            if unlikely(size == NULL):
                capi.decref(result)
                capi.decref(array)
                return NULL
            store(ptr, result, capi.PyTuple.items + d * 8, size)
    capi.decref(array)
    return result


@native
def tuple_of(items: ptr, count: i64, step: i64) -> ptr:
    """Return a tuple of objects stored `step` bytes apart, with new references."""
    result = capi.PyTuple_New(count)
    if likely(result != NULL):
        for k in range(count):
            item = load(ptr, items, k * step)
            store(ptr, result, capi.PyTuple.items + k * 8, capi.new_ref(item))
    return result


@native
def release_all(items: ptr, count: i64, step: i64) -> None:
    for k in range(count):
        capi.decref(load(ptr, items, k * step))


@native
def make_saved(g: base.Globals, rules: RuleSet, values: ptr, tensor: ptr, array: ptr, where: ptr) -> i64:
    """Write the residuals and their versions.

    Python twin: eager/autograd/node.py:Node.save
    """
    kept, count = stack(MOST_SAVED * 16), rules.savers
    if count == 0:
        empty = g.empty
        store(ptr, where, 0, capi.new_ref(empty))
        store(ptr, where, 8, capi.new_ref(empty))
        return DONE
    done: i64 = DONE
    made: i64 = 0
    while made < count and done == DONE:
        saver = rules + RuleSet.saver + made * 16
        done = save_value(
            g, load(i64, saver, 0), values, load(i64, saver, 8), tensor, array, kept + made * 16
        )
        if likely(done == DONE):
            made += 1
    if likely(done == DONE):
        done = FAILED
        saved = tuple_of(kept, count, 16)
        if likely(saved != NULL):
            versions = tuple_of(kept + 8, count, 16)
            store(ptr, where, 0, saved)
            store(ptr, where, 8, versions)
            if likely(versions != NULL):
                done = DONE
            else:
                capi.decref(saved)
    release_all(kept, made, 16)
    release_all(kept + 8, made, 16)
    return done


@native
def save_value(
    g: base.Globals, kind: i64, values: ptr, index: i64, tensor: ptr, array: ptr, where: ptr
) -> i64:
    """Write one residual and its version, as new references."""
    none: ptr = capi.Py_None
    if kind == SAVE_RESULT:
        return save_result(g, tensor, array, where)
    if kind == SAVE_RESULT_SPEC:
        return save_spec(g, array, where)
    x = load(ptr, values, index * 8)
    if kind == SAVE_SPEC:
        source = rt_operands.plain_array(g, x, base.RECORD)
        return save_spec(g, source, where) if likely(source != NULL) else TO_PYTHON
    if kind == SAVE_INTEGERS:
        return save_integers(x, where)
    version = none
    if likely(capi.type_of(x) == g.tensor):
        version = version_of(g, x)
        if unlikely(version == NULL):
            return TO_PYTHON
    elif not is_scalar(x) and (kind != SAVE_TUPLE or capi.type_of(x) != capi.PyTuple_Type):
        return TO_PYTHON
    store(ptr, where, 0, capi.new_ref(x))
    store(ptr, where, 8, capi.new_ref(version))
    return DONE


@native
def is_scalar(x: ptr) -> bool:
    kind = capi.type_of(x)
    return bool(
        x == capi.Py_None
        or kind == capi.PyFloat_Type
        or kind == capi.PyLong_Type
        or kind == capi.PyBool_Type
        or kind == capi.PyComplex_Type
    )


@native
def version_of(g: base.Globals, x: base.TensorObject) -> ptr:
    """Return the version of a tensor's storage, borrowed; NULL for anything unusual.

    Python twin: eager/autograd/node.py:version_of
    """
    storage: base.StorageObject = x.storage
    if likely(storage == capi.Py_None):
        return g.zero
    if unlikely(storage == NULL or capi.type_of(storage) != g.storage):
        return NULL
    return storage.version


@native
def save_integers(x: ptr, where: ptr) -> i64:
    """Save an argument of type `int[]` as the binder converts it: a tuple, or None."""
    value = x
    if capi.type_of(x) == capi.PyLong_Type:
        value = capi.PyTuple_New(1)
        if unlikely(value == NULL):
            return FAILED
        store(ptr, value, capi.PyTuple.items, capi.new_ref(x))
    elif x == capi.Py_None or capi.type_of(x) == capi.PyTuple_Type:
        if x != capi.Py_None and not are_integers(x):
            return TO_PYTHON
        capi.incref(x)
    else:
        return TO_PYTHON
    store(ptr, where, 0, value)
    store(ptr, where, 8, capi.new_ref(capi.Py_None))
    return DONE


@native
def are_integers(x: capi.PyVarObject) -> bool:
    for k in range(x.size):
        if capi.type_of(load(ptr, x, capi.PyTuple.items + k * 8)) != capi.PyLong_Type:
            return False
    return True


@native
def save_spec(g: base.Globals, array: ptr, where: ptr) -> i64:
    """Save shape, dtype and device of an array, without a version counter."""
    code = array_code(g, array)
    if unlikely(code == base.FOREIGN):
        return TO_PYTHON
    shape = shape_of(array)
    if unlikely(shape == NULL):
        return FAILED
    spec = capi.PyType_GenericAlloc(g.spec, 3)
    if unlikely(spec == NULL):
        capi.decref(shape)
        return FAILED
    dtype, device = load(ptr, g.types, code * 8), g.cpu
    store(ptr, spec, capi.PyTuple.items, shape)
    store(ptr, spec, capi.PyTuple.items + 8, capi.new_ref(dtype))
    store(ptr, spec, capi.PyTuple.items + 16, capi.new_ref(device))
    store(ptr, where, 0, spec)
    store(ptr, where, 8, capi.new_ref(capi.Py_None))
    return DONE


@native
def save_result(g: ptr, tensor: ptr, array: ptr, where: ptr) -> i64:
    """Save the result in another tensor, since the result will hold the node; and a hold on its storage."""
    storage = base.shared_storage(g, tensor, array)
    if unlikely(storage == NULL):
        return FAILED
    hold = make_hold(g, storage)
    capi.decref(storage)
    if unlikely(hold == NULL):
        return FAILED
    capi.incref(array)
    alias = base.make_tensor(g, array)
    if unlikely(alias == NULL):
        capi.decref(hold)
        return FAILED
    store(ptr, where, 0, alias)
    store(ptr, where, 8, hold)
    return DONE


@native
def make_hold(g: base.Globals, storage: base.StorageObject) -> ptr:
    """Return a `Hold` on a storage, which counts it; NULL with an exception set.

    Python twin: eager/tensor/storage.py:Hold
    """
    hold: HoldObject = capi.PyType_GenericAlloc(g.hold, 0)
    if unlikely(hold == NULL):
        return NULL
    version = storage.version
    if unlikely(version == NULL):
        version = g.zero
    hold.storage = capi.new_ref(storage)
    hold.version = capi.new_ref(version)
    held, more = storage.hold_count, g.one
    if likely(held == NULL):
        capi.incref(more)
    else:
        capi.incref(held)
        more = capi.PyNumber_Add(held, more)
        capi.decref(held)
        if unlikely(more == NULL):
            capi.decref(hold)
            return NULL
        held = storage.hold_count
    storage.hold_count = more
    if held != NULL:
        capi.decref(held)
    return hold
