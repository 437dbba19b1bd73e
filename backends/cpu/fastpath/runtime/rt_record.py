"""Native runtime: append a call to autograd's graph: the node, its edges, its residuals, the result's AutogradMeta.

It makes the same objects as `eager.autograd.kernel.record_call`, for one result and at most three tensors that have
rules. Other calls are left to Python, which then starts over. Allocating an object may run Python code (the garbage
collector, and finalizers), so values read before are not trusted after; each read takes its reference at once.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..compiler.structs import Struct, array
from . import capi, rt_operands, rt_saved
from . import rt_base as base


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


# How an operator's calls are recorded: the operator, the indices of the tensors that have rules, and for each set of
# them (as bits) its rules, NULL for a set that is left to Python; the listener for results that are views, or NULL
class Recording(Struct):
    """The recording of an operator's calls."""

    op: ptr
    count: i64
    indices: ptr = array(3)  # of the tensors that have rules
    rules: ptr = array(8)  # RuleSet for each set of them (as bits); NULL leaves it to Python
    follow: ptr  # the listener for results that are views, or NULL


@noinline
def record_call(entry: base.OperatorEntry, values: ptr, count: i64, tensor: base.TensorObject) -> ptr:
    """Record a call by its arguments and its result and return the result; steals its reference. NULL: a failure.

    If the result is an `Outcome`, it is returned.
    """
    if unlikely(i64(tensor) <= 0):
        return tensor
    recording: Recording = entry.recording
    if likely(recording != NULL):
        g: base.Globals = entry.globals_
        done = record_natively(g, recording, values, count, tensor)
        if likely(done == rt_saved.DONE):
            if recording.follow != NULL and tensor.keys == g.grad_keys:
                return register_view(recording.follow, values, count, tensor)
            return tensor
        if done == rt_saved.FAILED:
            capi.decref(tensor)
            return NULL
    store(ptr, values, count * 8, tensor)
    result = capi.PyObject_Vectorcall(entry.record, values, count + 1, NULL)
    capi.decref(tensor)
    return result


@noinline
def register_view(follow: ptr, values: ptr, count: i64, tensor: ptr) -> ptr:
    """Register a recorded result as a view of its base, in Python, and return it."""
    store(ptr, values, count * 8, tensor)
    return base.report_tensor(follow, values, count + 1, tensor)


@native
def record_natively(g: ptr, recording: Recording, values: ptr, count: i64, tensor: base.TensorObject) -> i64:
    """Return DONE, FAILED (an exception is set), or TO_PYTHON.

    Python twin: eager/autograd/kernel.py:record_call
    """
    array = tensor.array
    code = rt_saved.array_code(g, array)
    if code == base.BOOL:
        return rt_saved.DONE  # a mask: no gradient flows through it, and it stays a plain tensor
    tracked = tracked_set(g, recording, values, count, tensor)
    if unlikely(code < base.FLOAT16 or tracked < 0):
        return rt_saved.TO_PYTHON
    if tracked == 0:
        return rt_saved.DONE
    rules: rt_saved.RuleSet = load(ptr, recording, Recording.rules + tracked * 8)
    if unlikely(rules == NULL or not are_all_given(rules, count)):
        return rt_saved.TO_PYTHON
    capi.incref(array)
    parts = stack(24)  # edges, saved values, their versions
    done = make_edges(g, rules, values, parts)
    if likely(done == rt_saved.DONE):
        done = rt_saved.make_saved(g, rules, values, tensor, array, parts + 8)
        if likely(done == rt_saved.DONE):
            done = attach(g, tensor, make_node(g, recording.op, rules.active, parts))
            capi.decref(load(ptr, parts, 8))
            capi.decref(load(ptr, parts, 16))
        capi.decref(load(ptr, parts, 0))
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
        if capi.type_of(x) == g.tensor and x.keys == g.grad_keys:
            if unlikely(history_of(g, x) == NULL):
                return -1
            result |= 1 << k
    return result


@native
def history_of(g: base.Globals, x: base.TensorObject) -> ptr:
    """Return the AutogradMeta of a tensor that requires gradients, borrowed; NULL for anything unusual."""
    meta: MetaObject = x.meta
    if unlikely(x.keys != g.grad_keys or meta == NULL):
        return NULL
    if unlikely(capi.type_of(meta) != g.meta):
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
def make_edges(g: ptr, rules: rt_saved.RuleSet, values: ptr, where: ptr) -> i64:
    edges, count = stack(MOST * 8), rules.count
    done: i64 = rt_saved.DONE
    made: i64 = 0
    while made < count and done == rt_saved.DONE:
        done = make_edge(
            g, load(ptr, values, load(i64, rules, rt_saved.RuleSet.indices + made * 8) * 8), edges + made * 8
        )
        if likely(done == rt_saved.DONE):
            made += 1
    if likely(done == rt_saved.DONE):
        result = rt_saved.tuple_of(edges, count, 8)
        store(ptr, where, 0, result)
        done = rt_saved.DONE if result != NULL else rt_saved.FAILED
    rt_saved.release_all(edges, made, 8)
    return done


@native
def make_edge(g: base.Globals, x: ptr, where: ptr) -> i64:
    """Write an edge: the node or AutogradMeta that receives the gradient, the result's index, shape, dtype.

    Python twin: eager/autograd/kernel.py:edge_of
    """
    array = rt_operands.plain_array(g, x, base.RECORD)
    if unlikely(array == NULL):
        return rt_saved.TO_PYTHON
    code = rt_saved.array_code(g, array)
    if unlikely(code == base.FOREIGN):
        return rt_saved.TO_PYTHON
    shape = rt_saved.shape_of(array)
    if unlikely(shape == NULL):
        return rt_saved.FAILED
    edge = capi.PyTuple_New(4)
    if unlikely(edge == NULL):
        capi.decref(shape)
        return rt_saved.FAILED
    meta: MetaObject = history_of(g, x)
    if unlikely(meta == NULL or meta.node == NULL or meta.index == NULL):
        capi.decref(edge)
        capi.decref(shape)
        return rt_saved.TO_PYTHON
    target = meta.node
    if target == capi.Py_None:
        target = meta
    store(ptr, edge, capi.PyTuple.items, capi.new_ref(target))
    store(ptr, edge, capi.PyTuple.items + 8, capi.new_ref(meta.index))
    store(ptr, edge, capi.PyTuple.items + 16, shape)
    store(ptr, edge, capi.PyTuple.items + 24, capi.new_ref(load(ptr, g.types, code * 8)))
    store(ptr, where, 0, edge)
    return rt_saved.DONE


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
        return rt_saved.FAILED
    meta: MetaObject = capi.PyType_GenericAlloc(g.meta, 0)
    if unlikely(meta == NULL):
        capi.decref(node)
        return rt_saved.FAILED
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
    if likely(old_keys != NULL):
        capi.decref(old_keys)
    if likely(old_meta != NULL):
        capi.decref(old_meta)
    return rt_saved.DONE
