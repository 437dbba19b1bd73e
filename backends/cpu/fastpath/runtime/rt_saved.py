"""Native runtime: the residuals of a recorded call: values, specs, and their versions."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack_of, store, unlikely
from ..compiler.structs import Struct, array
from . import capi, rt_operands
from . import rt_base as base
from .rt_entry import DONE, Outcome


# `runtime` supplies the offsets of slots.
class HoldObject(capi.PyObject):
    """The slots of a Hold."""

    slot_prefix = "HOLD_"

    storage: ptr
    version: ptr


MOST_SAVED = 8


class RuleSet(Struct):
    """The rules of one set of tensors that need gradients, and what they save."""

    active: ptr  # the `ActiveRules`
    count: i64
    indices: ptr = array(3)  # of the tensors
    savers: i64
    saver: ptr = array(16)  # kind and index of each value that is saved


# What is saved: an argument, one that is normalised to a tuple of ints, the result; or the spec of one of them; a tuple
# without tensors; the specs of the tensors in a tuple
SAVE_VALUE, SAVE_INTEGERS, SAVE_RESULT, SAVE_SPEC, SAVE_RESULT_SPEC, SAVE_TUPLE, SAVE_SPECS = range(7)


@native
def shape_of(array: capi.Ndarray) -> ptr:
    """Return the sizes of an array as a tuple; NULL with an exception set."""
    capi.incref(array)
    result = capi.tuple_of_integers(array.dims, i64(array.ndim))
    capi.decref(array)
    return result


@native
def make_saved(g: ptr, rules: RuleSet, values: ptr, tensor: ptr, array: ptr, where: ptr) -> i64:
    """Write the residuals and their versions; return DONE or an `Outcome`.

    Python twin: eager/autograd/node.py:Node.save
    """
    residuals, versions = capi.PyTuple_New(rules.savers), capi.PyTuple_New(rules.savers)
    store(ptr, where, 0, residuals)
    store(ptr, where, 8, versions)
    if unlikely(residuals == NULL or versions == NULL):
        return Outcome.FAILED
    for k in range(rules.savers):
        saver, version = rules + RuleSet.saver + k * 16, versions + capi.PyTuple.items + k * 8
        value = save_value(g, load(i64, saver, 0), values, load(i64, saver, 8), tensor, array, version)
        if unlikely(i64(value) <= 0):
            return i64(value)
        capi.set_item(residuals, k, value)
        if load(ptr, version, 0) == NULL:
            store(ptr, version, 0, capi.new_ref(capi.Py_None))
    return DONE


@native
def save_value(
    g: base.Globals, kind: i64, values: ptr, index: i64, tensor: ptr, array: ptr, version: ptr
) -> ptr:
    """Return one residual, or an `Outcome`; a tensor's version is written, as a new reference."""
    if kind == SAVE_RESULT:
        return save_result(g, tensor, array, version)
    if kind == SAVE_RESULT_SPEC:
        return make_spec(g, array)
    x = load(ptr, values, index * 8)
    if kind == SAVE_SPEC:
        return spec_of(g, x)
    if kind == SAVE_SPECS:
        return specs_of(g, x)
    if kind == SAVE_INTEGERS:
        return save_integers(x)
    if likely(capi.type_of(x) == g.tensor):
        known = version_of(g, x)
        if unlikely(known == NULL):
            return Outcome.FALL_BACK
        store(ptr, version, 0, capi.new_ref(known))
    elif x == capi.Py_None or (kind == SAVE_TUPLE and capi.is_tuple(x)):
        return capi.new_ref(x)
    elif rt_operands.scalar_code(x) == base.FOREIGN:
        return Outcome.FALL_BACK
    return capi.new_ref(x)


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
def save_integers(x: capi.PyVarObject) -> ptr:
    """Return an argument of type `int[]` as the binder converts it: a tuple, or None; or an `Outcome`."""
    if capi.type_of(x) == capi.PyLong_Type:
        return capi.make_tuple(capi.PyTuple_Type, stack_of(capi.new_ref(x)), 1)
    if x == capi.Py_None:
        return capi.new_ref(x)
    if not capi.is_tuple(x):
        return Outcome.FALL_BACK
    for k in range(x.size):
        if capi.type_of(capi.item(x, k)) != capi.PyLong_Type:
            return Outcome.FALL_BACK
    return capi.new_ref(x)


@native
def spec_of(g: ptr, x: ptr) -> ptr:
    """Return the spec of a tensor, or an `Outcome`."""
    source = rt_operands.plain_array(g, x, base.RECORD)
    return make_spec(g, source) if likely(source != NULL) else ptr(Outcome.FALL_BACK)


@noinline
def specs_of(g: ptr, tensors: capi.PyVarObject) -> ptr:
    """Return the specs of the tensors in a tuple, or an `Outcome`.

    Python twin: eager/autograd/node.py:spec_deep
    """
    if not capi.is_tuple(tensors):
        return Outcome.FALL_BACK
    specs = capi.PyTuple_New(tensors.size)
    for k in range(tensors.size if specs != NULL else 0):
        spec = spec_of(g, capi.item(tensors, k))
        if unlikely(i64(spec) <= 0):
            capi.decref(specs)
            return spec
        capi.set_item(specs, k, spec)
    return specs


@native
def make_spec(g: base.Globals, array: ptr) -> ptr:
    """Return shape, dtype and device of an array as a `TensorSpec`, or an `Outcome`."""
    code = rt_operands.array_code(g, array)
    if unlikely(code == base.FOREIGN):
        return Outcome.FALL_BACK
    dtype = capi.new_ref(load(ptr, g.types, code * 8))
    return capi.make_tuple(g.spec, stack_of(shape_of(array), dtype, capi.new_ref(g.cpu)), 3)


@native
def save_result(g: ptr, tensor: ptr, array: ptr, version: ptr) -> ptr:
    """Return the result as another tensor, since the result will hold the node; its version holds its storage."""
    storage = base.shared_storage(g, tensor, array)
    if unlikely(storage == NULL):
        return NULL
    hold = make_hold(g, storage)
    capi.decref(storage)
    store(ptr, version, 0, hold)
    return base.make_tensor(g, capi.new_ref(array)) if likely(hold != NULL) else hold


@native
def make_hold(g: base.Globals, storage: base.StorageObject) -> ptr:
    """Return a `Hold` on a storage, which counts it; NULL with an exception set.

    Python twin: eager/tensor/storage.py:Hold
    """
    hold: HoldObject = capi.PyType_GenericAlloc(g.hold, 0)
    if unlikely(hold == NULL):
        return NULL
    version = storage.version
    hold.storage = capi.new_ref(storage)
    hold.version = capi.new_ref(version if likely(version != NULL) else g.zero)
    held = capi.new_ref(storage.hold_count if storage.hold_count != NULL else g.zero)
    more = capi.PyNumber_Add(held, g.one)
    capi.decref(held)
    if unlikely(more == NULL):
        capi.decref(hold)
        return NULL
    held = storage.hold_count
    storage.hold_count = more
    capi.release(held)
    return hold
