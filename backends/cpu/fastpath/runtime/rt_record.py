"""Native runtime: append a call to autograd's graph: the node, its edges, its residuals, the result's AutogradMeta.

It makes the same objects as `eager.autograd.kernel.record_call`, for one result and at most three tensors that have
rules. Other calls are left to Python, which then starts over. Allocating an object may run Python code (the garbage
collector, and finalizers), so values read before are not trusted after; each read takes its reference at once.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack_of, store, unlikely
from ..compiler.structs import Struct, array
from . import capi, rt_operands, rt_saved
from . import rt_base as base
from .rt_entry import DONE, Outcome


# Slots of Node and AutogradMeta; `runtime` supplies them.
class NodeObject(capi.PyObject):
    """The slots of a Node."""

    slot_prefix = "NODE_"

    op: ptr
    active: ptr
    edges: ptr
    sequence: ptr
    residuals: ptr
    versions: ptr
    results: ptr
    reason: ptr


class MetaObject(capi.PyObject):
    """The slots of an AutogradMeta."""

    slot_prefix = "META_"

    requires_grad: ptr
    node: ptr
    index: ptr
    cut_by: ptr
    grad: ptr
    view: ptr
    alias_set: ptr


MOST = 3  # tensors that have rules


class Recording(Struct):
    """The recording of an operator's calls."""

    op: ptr
    count: i64
    listed: i64  # which of these arguments are tuples of tensors, as bits
    indices: ptr = array(3)  # of the tensors that have rules
    rules: ptr = array(8)  # RuleSet for each set of them (as bits); NULL leaves it to Python
    follow: ptr  # the listener for results that are views, or NULL


@native
def finish_call(entry: base.OperatorEntry, flags: i64, values: ptr, count: i64) -> ptr:
    """Return the result of a call, recorded if its first argument requires it; `values`: the arguments, the result."""
    if unlikely(base.has_history(entry.globals_, load(ptr, values, 0), flags)):
        return record_call(entry, values, count)
    return load(ptr, values, count * 8)


@native
def is_recorded(g: base.Globals, flags: i64, values: ptr, count: i64) -> bool:
    """Return whether a tensor among the values makes a call one that autograd records."""
    for k in range(count if flags == base.RECORD else 0):
        x: base.TensorObject = load(ptr, values, k * 8)
        if unlikely(capi.type_of(x) == g.tensor and x.keys == g.grad_keys):
            return True
    return False


@noinline
def record_call(entry: base.OperatorEntry, values: ptr, count: i64) -> ptr:
    """Record a call by its arguments and the result that follows them, whose reference it steals; return the result.

    An `Outcome` as the result is returned; so is NULL for a failure.
    """
    tensor: base.TensorObject = load(ptr, values, count * 8)
    if unlikely(i64(tensor) <= 0):
        return tensor
    recording: Recording = entry.recording
    if likely(recording != NULL):
        g: base.Globals = entry.globals_
        done = record_natively(g, recording, values, count, tensor)
        if likely(done == DONE):
            if recording.follow != NULL and tensor.keys == g.grad_keys:  # a view: Python registers it
                return base.report_tensor(recording.follow, values, count + 1, tensor)
            return tensor
        if done == Outcome.FAILED:
            capi.decref(tensor)
            return NULL
    result = capi.PyObject_Vectorcall(entry.record, values, count + 1, NULL)
    capi.decref(tensor)
    return result


@native
def record_natively(g: ptr, recording: Recording, values: ptr, count: i64, tensor: base.TensorObject) -> i64:
    """Return DONE or an `Outcome`.

    Python twin: eager/autograd/kernel.py:record_call
    """
    array = tensor.array
    code = rt_operands.array_code(g, array)
    if code == base.BOOL:
        return DONE  # a mask: no gradient flows through it, and it stays a plain tensor
    tracked = tracked_set(g, recording, values, count, tensor)
    if unlikely(code < base.FLOAT16 or tracked < 0):
        return Outcome.FALL_BACK
    if tracked == 0:
        return DONE
    rules: rt_saved.RuleSet = load(ptr, recording, Recording.rules + tracked * 8)
    if unlikely(rules == NULL or not are_all_given(rules, count)):
        return Outcome.FALL_BACK
    capi.incref(array)
    parts = stack_of(make_edges(g, rules, values), NULL, NULL)  # edges, residuals, their versions
    done = load(i64, parts, 0)
    if unlikely(done <= 0):
        store(ptr, parts, 0, NULL)
    else:
        done = rt_saved.make_saved(g, rules, values, tensor, array, parts + 8)
        if likely(done == DONE):
            done = attach(g, tensor, make_node(g, recording.op, rules.active, parts))
    capi.release_all(parts, 3)
    capi.decref(array)
    return done


@native
def tracked_set(g: base.Globals, recording: Recording, values: ptr, count: i64, tensor: ptr) -> i64:
    """Return the tensors that have rules and require gradients, as bits; -1 if only Python can tell."""
    result: i64 = 0
    for k in range(recording.count):
        index = load(i64, recording, Recording.indices + k * 8)
        if unlikely(index >= count):
            return -1
        x: base.TensorObject = load(ptr, values, index * 8)
        if unlikely(x == tensor):
            return -1
        if unlikely((recording.listed >> k) & 1 != 0):
            tracked = has_tracked(g, capi.PyVarObject(x))
            if unlikely(tracked < 0):
                return -1
            result |= tracked << k
        elif capi.type_of(x) == g.tensor and x.keys == g.grad_keys:
            if unlikely(history_of(g, x) == NULL):
                return -1
            result |= 1 << k
    return result


@native
def has_tracked(g: base.Globals, tensors: capi.PyVarObject) -> i64:
    """Return 1 if one of the tensors in a tuple requires gradients, else 0; -1 if only Python can tell."""
    if not capi.is_tuple(tensors):
        return -1
    result: i64 = 0
    for k in range(tensors.size):
        x: base.TensorObject = capi.item(tensors, k)
        if unlikely(capi.type_of(x) != g.tensor):
            return -1
        if x.keys == g.grad_keys:
            if unlikely(history_of(g, x) == NULL):
                return -1
            result = 1
    return result


@native
def history_of(g: base.Globals, x: base.TensorObject) -> ptr:
    """Return the AutogradMeta of a tensor that requires gradients, borrowed; NULL for anything unusual."""
    meta: MetaObject = x.meta
    if unlikely(x.keys != g.grad_keys or meta == NULL or capi.type_of(meta) != g.meta):
        return NULL
    return meta if likely(meta.requires_grad == capi.Py_True) else ptr(0)


@native
def are_all_given(rules: rt_saved.RuleSet, count: i64) -> bool:
    """Return whether the call passes all arguments that must be saved."""
    for k in range(rules.savers):
        if load(i64, rules, rt_saved.RuleSet.saver + k * 16 + 8) >= count:
            return False
    return True


# -- edges -------------------------------------------------------------------------------------------------------------
@native
def make_edges(g: ptr, rules: rt_saved.RuleSet, values: ptr) -> ptr:
    """Return the edges as a tuple, or an `Outcome`."""
    edges = capi.PyTuple_New(rules.count)
    for k in range(rules.count if edges != NULL else 0):
        x = load(ptr, values, load(i64, rules, rt_saved.RuleSet.indices + k * 8) * 8)
        edge = make_edge(g, x) if likely(not capi.is_tuple(x)) else make_list_of_edges(g, x)
        if unlikely(i64(edge) <= 0):
            capi.decref(edges)
            return edge
        capi.set_item(edges, k, edge)
    return edges


@noinline
def make_list_of_edges(g: base.Globals, tensors: capi.PyVarObject) -> ptr:
    """Return a tuple of edges, or an `Outcome`: None for a tensor that requires no gradients."""
    edges = capi.PyTuple_New(tensors.size)
    for k in range(tensors.size if edges != NULL else 0):
        x: base.TensorObject = capi.item(tensors, k)
        edge = make_edge(g, x) if x.keys == g.grad_keys else capi.new_ref(capi.Py_None)
        if unlikely(i64(edge) <= 0):
            capi.decref(edges)
            return edge
        capi.set_item(edges, k, edge)
    return edges


@native
def make_edge(g: base.Globals, x: ptr) -> ptr:
    """Return an edge, or an `Outcome`: the receiver of the gradient, the result's index, shape, dtype.

    Python twin: eager/autograd/kernel.py:edge_of
    """
    array = rt_operands.plain_array(g, x, base.RECORD)
    if unlikely(array == NULL):
        return Outcome.FALL_BACK
    code = rt_operands.array_code(g, array)
    meta: MetaObject = history_of(g, x)
    if unlikely(code == base.FOREIGN or meta == NULL or meta.node == NULL or meta.index == NULL):
        return Outcome.FALL_BACK
    target = capi.new_ref(meta.node if meta.node != capi.Py_None else meta)
    index, dtype = capi.new_ref(meta.index), capi.new_ref(load(ptr, g.types, code * 8))
    return capi.make_tuple(capi.PyTuple_Type, stack_of(target, index, rt_saved.shape_of(array), dtype), 4)


# -- the node ----------------------------------------------------------------------------------------------------------
@native
def make_node(g: base.Globals, op: ptr, active: ptr, parts: ptr) -> ptr:
    """Return the node; NULL with an exception set.

    Python twin: eager/autograd/kernel.py:make_node
    """
    number = capi.PyIter_Next(g.sequence)
    if unlikely(number == NULL):
        return NULL
    node: NodeObject = capi.PyType_GenericAlloc(g.node, 0)
    if unlikely(node == NULL):
        capi.decref(number)
        return NULL
    node.op = capi.new_ref(op)
    node.active = capi.new_ref(active)
    node.edges = capi.new_ref(load(ptr, parts, 0))
    node.sequence = number
    node.residuals = capi.new_ref(load(ptr, parts, 8))
    node.versions = capi.new_ref(load(ptr, parts, 16))
    node.results = capi.new_ref(capi.Py_None)
    node.reason = capi.new_ref(g.nothing)
    return node


@native
def attach(g: base.Globals, tensor: base.TensorObject, node: ptr) -> i64:
    """Make a tensor the result of a node; steals the node's reference (NULL for a failure).

    Python twin: eager/autograd/kernel.py:attach
    """
    if unlikely(node == NULL):
        return Outcome.FAILED
    meta: MetaObject = capi.PyType_GenericAlloc(g.meta, 0)
    if unlikely(meta == NULL):
        capi.decref(node)
        return Outcome.FAILED
    meta.requires_grad = capi.new_ref(capi.Py_True)
    meta.node = node
    meta.index = capi.new_ref(g.zero)
    meta.cut_by = capi.new_ref(g.nothing)
    meta.grad = capi.new_ref(capi.Py_None)
    meta.view = capi.new_ref(capi.Py_None)
    meta.alias_set = capi.new_ref(capi.Py_None)
    old_keys, old_meta = tensor.keys, tensor.meta
    tensor.keys = capi.new_ref(g.grad_keys)
    tensor.meta = meta
    capi.release(old_keys)
    capi.release(old_meta)
    return DONE
