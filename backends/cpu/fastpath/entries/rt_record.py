"""Native runtime: append a call to autograd's graph: the node, its edges, its residuals, the result's AutogradMeta.

It makes the same objects as `eager.autograd.kernel.record_call`, for one result and at most three tensors that have
rules. Other calls are left to Python, which then starts over. Allocating an object may run Python code (the garbage
collector, and finalizers), so values read before are not trusted after; each read takes its reference at once.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    extern,
    i64,
    likely,
    load_i64,
    load_ptr,
    native,
    noinline,
    ptr,
    stack,
    store_ptr,
    unlikely,
)
from ..glue.layout import TUPLE_ITEMS
from .rt_base import (
    D_GLOBALS,
    D_PLAN,
    D_RECORD,
    G_GRAD_KEYS,
    G_META,
    G_NODE,
    G_NOTHING,
    G_SEQUENCE,
    G_TENSOR,
    G_TYPES,
    G_ZERO,
    RECORD,
    T_ARRAY,
    T_KEYS,
    T_META,
    Py_None,
    Py_True,
    PyObject_Vectorcall,
    PyTuple_New,
    PyType_GenericAlloc,
    decref,
    incref,
    type_of,
)
from .rt_operands import BOOL, FLOAT16, FOREIGN, plain_array
from .rt_saved import (
    A_ACTIVE,
    A_COUNT,
    A_PLACES,
    A_SAVER,
    A_SAVERS,
    DONE,
    FAILED,
    TO_PYTHON,
    array_code,
    make_saved,
    release_all,
    shape_of,
    tuple_of,
)

PyIter_Next = extern("PyIter_Next", "ptr(ptr)")

# Slots of Node and AutogradMeta; `runtime` supplies them.
NODE_OP: i64 = 0
NODE_ACTIVE: i64 = 0
NODE_EDGES: i64 = 0
NODE_SEQUENCE: i64 = 0
NODE_RESIDUALS: i64 = 0
NODE_VERSIONS: i64 = 0
NODE_RESULTS: i64 = 0
NODE_REASON: i64 = 0
META_REQUIRES_GRAD: i64 = 0
META_NODE: i64 = 0
META_INDEX: i64 = 0
META_CUT_BY: i64 = 0
META_GRAD: i64 = 0
META_VIEW: i64 = 0
META_ALIAS_SET: i64 = 0

MOST = 3  # tensors that have rules

# How an operator's calls are recorded: the operator, the places of the tensors that have rules, and for each set of
# them (as bits) its rules, NULL for a set that is left to Python; the listener for results that are views, or NULL
R_OP, R_COUNT, R_PLACES, R_RULES, R_FOLLOW, R_SIZE = 0, 8, 16, 40, 104, 112


@noinline
def record_call(desc: ptr, values: ptr, count: i64, tensor: ptr) -> ptr:
    """Record a call by its arguments and its result and return the result; steals its reference. NULL: a failure."""
    if unlikely(tensor == NULL):
        return NULL
    plan = load_ptr(desc, D_PLAN)
    if likely(plan != NULL):
        g = load_ptr(desc, D_GLOBALS)
        done = record_natively(g, plan, values, count, tensor)
        if likely(done == DONE):
            if load_ptr(plan, R_FOLLOW) != NULL and load_ptr(tensor, T_KEYS) == load_ptr(g, G_GRAD_KEYS):
                return register_view(load_ptr(plan, R_FOLLOW), values, count, tensor)
            return tensor
        if done == FAILED:
            decref(tensor)
            return NULL
    store_ptr(values, count * 8, tensor)
    result = PyObject_Vectorcall(load_ptr(desc, D_RECORD), values, count + 1, NULL)
    decref(tensor)
    return result


@noinline
def register_view(follow: ptr, values: ptr, count: i64, tensor: ptr) -> ptr:
    """Register a recorded result as a view of its base, in Python, and return it."""
    store_ptr(values, count * 8, tensor)
    told = PyObject_Vectorcall(follow, values, count + 1, NULL)
    if unlikely(told == NULL):
        decref(tensor)
        return NULL
    decref(told)
    return tensor


@native
def record_natively(g: ptr, plan: ptr, values: ptr, count: i64, tensor: ptr) -> i64:
    """Return DONE, FAILED (an exception is set), or TO_PYTHON.

    Python twin: eager/autograd/kernel.py:record_call
    """
    array = load_ptr(tensor, T_ARRAY)
    code = array_code(g, array)
    if code == BOOL:
        return DONE  # a mask: no gradient flows through it, and it stays a plain tensor
    tracked = tracked_set(g, plan, values, count, tensor)
    if unlikely(code < FLOAT16 or tracked < 0):
        return TO_PYTHON
    if tracked == 0:
        return DONE
    rules = load_ptr(plan, R_RULES + tracked * 8)
    if unlikely(rules == NULL or not are_all_given(rules, count)):
        return TO_PYTHON
    incref(array)
    parts = stack(24)  # edges, saved values, their versions
    done = make_edges(g, rules, values, parts)
    if likely(done == DONE):
        done = make_saved(g, rules, values, tensor, array, parts + 8)
        if likely(done == DONE):
            done = attach(g, tensor, make_node(g, load_ptr(plan, R_OP), load_ptr(rules, A_ACTIVE), parts))
            decref(load_ptr(parts, 8))
            decref(load_ptr(parts, 16))
        decref(load_ptr(parts, 0))
    decref(array)
    return done


@native
def tracked_set(g: ptr, plan: ptr, values: ptr, count: i64, tensor: ptr) -> i64:
    """Return the tensors that have rules and require gradients, as bits; -1 if only Python can tell."""
    result: i64 = 0
    for k in range(load_i64(plan, R_COUNT)):
        place = load_i64(plan, R_PLACES + k * 8)
        if unlikely(place >= count):
            return -1
        x = load_ptr(values, place * 8)
        if unlikely(x == tensor):
            return -1
        if type_of(x) == load_ptr(g, G_TENSOR) and load_ptr(x, T_KEYS) == load_ptr(g, G_GRAD_KEYS):
            if unlikely(history_of(g, x) == NULL):
                return -1
            result |= 1 << k
    return result


@native
def history_of(g: ptr, x: ptr) -> ptr:
    """Return the AutogradMeta of a tensor that requires gradients, borrowed; NULL for anything unusual."""
    meta = load_ptr(x, T_META)
    if unlikely(load_ptr(x, T_KEYS) != load_ptr(g, G_GRAD_KEYS) or meta == NULL):
        return NULL
    if unlikely(type_of(meta) != load_ptr(g, G_META)):
        return NULL
    return meta if likely(load_ptr(meta, META_REQUIRES_GRAD) == Py_True) else ptr(0)


@native
def are_all_given(rules: ptr, count: i64) -> bool:
    """Return whether the call passes all arguments that must be saved."""
    for k in range(load_i64(rules, A_SAVERS)):
        if load_i64(rules, A_SAVER + k * 16 + 8) >= count:
            return False
    return True


# -- edges -------------------------------------------------------------------------------------------------------------
@native
def make_edges(g: ptr, rules: ptr, values: ptr, where: ptr) -> i64:
    edges, count = stack(MOST * 8), load_i64(rules, A_COUNT)
    done: i64 = DONE
    made: i64 = 0
    while made < count and done == DONE:
        done = make_edge(g, load_ptr(values, load_i64(rules, A_PLACES + made * 8) * 8), edges + made * 8)
        if likely(done == DONE):
            made += 1
    if likely(done == DONE):
        result = tuple_of(edges, count, 8)
        store_ptr(where, 0, result)
        done = DONE if result != NULL else FAILED
    release_all(edges, made, 8)
    return done


@native
def make_edge(g: ptr, x: ptr, where: ptr) -> i64:
    """Write an edge: the node or AutogradMeta that receives the gradient, the result's index, shape, dtype.

    Python twin: eager/autograd/kernel.py:edge_of
    """
    array = plain_array(g, x, RECORD)
    if unlikely(array == NULL):
        return TO_PYTHON
    code = array_code(g, array)
    if unlikely(code == FOREIGN):
        return TO_PYTHON
    shape = shape_of(array)
    if unlikely(shape == NULL):
        return FAILED
    edge = PyTuple_New(4)
    if unlikely(edge == NULL):
        decref(shape)
        return FAILED
    meta = history_of(g, x)
    if unlikely(meta == NULL or load_ptr(meta, META_NODE) == NULL or load_ptr(meta, META_INDEX) == NULL):
        decref(edge)
        decref(shape)
        return TO_PYTHON
    target = load_ptr(meta, META_NODE)
    if target == Py_None:
        target = meta
    index, dtype = load_ptr(meta, META_INDEX), load_ptr(load_ptr(g, G_TYPES), code * 8)
    incref(target)
    incref(index)
    incref(dtype)
    store_ptr(edge, TUPLE_ITEMS, target)
    store_ptr(edge, TUPLE_ITEMS + 8, index)
    store_ptr(edge, TUPLE_ITEMS + 16, shape)
    store_ptr(edge, TUPLE_ITEMS + 24, dtype)
    store_ptr(where, 0, edge)
    return DONE


# -- the node ----------------------------------------------------------------------------------------------------------
@native
def make_node(g: ptr, op: ptr, active: ptr, parts: ptr) -> ptr:
    """Return the node; NULL with an exception set.

    Python twin: eager/autograd/kernel.py:make_node
    """
    number = PyIter_Next(load_ptr(g, G_SEQUENCE))
    if unlikely(number == NULL):
        return NULL
    node = PyType_GenericAlloc(load_ptr(g, G_NODE), 0)
    if unlikely(node == NULL):
        decref(number)
        return NULL
    edges, saved, versions = load_ptr(parts, 0), load_ptr(parts, 8), load_ptr(parts, 16)
    none: ptr = Py_None
    nothing = load_ptr(g, G_NOTHING)
    incref(op)
    incref(active)
    incref(edges)
    incref(saved)
    incref(versions)
    incref(none)
    incref(nothing)
    store_ptr(node, NODE_OP, op)
    store_ptr(node, NODE_ACTIVE, active)
    store_ptr(node, NODE_EDGES, edges)
    store_ptr(node, NODE_SEQUENCE, number)
    store_ptr(node, NODE_RESIDUALS, saved)
    store_ptr(node, NODE_VERSIONS, versions)
    store_ptr(node, NODE_RESULTS, none)
    store_ptr(node, NODE_REASON, nothing)
    return node


@native
def attach(g: ptr, tensor: ptr, node: ptr) -> i64:
    """Make a tensor the result of a node; steals the node's reference (NULL for a failure).

    Python twin: eager/autograd/kernel.py:attach
    """
    if unlikely(node == NULL):
        return FAILED
    meta = PyType_GenericAlloc(load_ptr(g, G_META), 0)
    if unlikely(meta == NULL):
        decref(node)
        return FAILED
    none: ptr = Py_None
    truth: ptr = Py_True
    zero, nothing, keys = load_ptr(g, G_ZERO), load_ptr(g, G_NOTHING), load_ptr(g, G_GRAD_KEYS)
    incref(none)
    incref(none)
    incref(none)
    incref(truth)
    incref(zero)
    incref(nothing)
    incref(keys)
    store_ptr(meta, META_REQUIRES_GRAD, truth)
    store_ptr(meta, META_NODE, node)
    store_ptr(meta, META_INDEX, zero)
    store_ptr(meta, META_CUT_BY, nothing)
    store_ptr(meta, META_GRAD, none)
    store_ptr(meta, META_VIEW, none)
    store_ptr(meta, META_ALIAS_SET, none)
    old_keys, old_meta = load_ptr(tensor, T_KEYS), load_ptr(tensor, T_META)
    store_ptr(tensor, T_KEYS, keys)
    store_ptr(tensor, T_META, meta)
    if likely(old_keys != NULL):
        decref(old_keys)
    if likely(old_meta != NULL):
        decref(old_meta)
    return DONE
