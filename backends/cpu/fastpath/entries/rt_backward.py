"""Native runtime: steps of reverse mode, for ordinary nodes.

For each node: call the derivative rules with the residuals and the gradient; convert their results to shape and dtype
of
the arguments; add the gradients to those of leaves and older nodes. Rules, sums and products are called as Python calls
them, so their own entries serve these calls. Any other node is returned to Python.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    extern,
    i64,
    likely,
    load_i32,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_ptr,
    unlikely,
)
from ..glue.layout import ND_DESCR, ND_DIMS, ND_NDIM, OB_SIZE, TUPLE_ITEMS
from .rt_base import (
    ARGS_MASK,
    D_GLOBALS,
    G_DESCRS,
    G_EMPTY,
    G_HOLD,
    G_META,
    G_NODE,
    G_ONE,
    G_STORAGE,
    G_TENSOR,
    G_TYPES,
    G_ZERO,
    T_ARRAY,
    Py_False,
    Py_None,
    Py_True,
    PyDict_GetItemWithError,
    PyDict_New,
    PyDict_SetItem,
    PyDict_Size,
    PyDict_Type,
    PyList_Type,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyLong_Type,
    PyNumber_Add,
    PyObject_Vectorcall,
    PyTuple_New,
    PyTuple_Type,
    decref,
    entry_data,
    fall_back,
    incref,
    type_of,
)
from .rt_operands import FOREIGN
from .rt_record import NODE_ACTIVE, NODE_EDGES, NODE_RESIDUALS, NODE_RESULTS, NODE_SEQUENCE, NODE_VERSIONS
from .rt_saved import DONE, FAILED, HOLD_STORAGE, HOLD_VERSION, TO_PYTHON, array_code, version_of
from .rt_storage import S_VERSION

PyDict_DelItem = extern("PyDict_DelItem", "i32(ptr, ptr)")
PyNumber_Multiply = extern("PyNumber_Multiply", "ptr(ptr, ptr)")
PyNumber_Negative = extern("PyNumber_Negative", "ptr(ptr)")

# Fields after D_GLOBALS and D_SLOW: functions of the heap and `fit`; the classes ActiveRules and Rule; -1
B_POP, B_PUSH, B_FIT, B_ACTIVE, B_RULE, B_MINUS, B_SIZE = 16, 24, 32, 40, 48, 56, 64
# Its arguments: the Python function that delivers a gradient; heap and gradients of the nodes to come; those of
# leaves; whether residuals are kept; whether the pass is recorded, so that saved results need their autograd graph
DELIVER, HEAP, PENDING, LEAVES, KEEP, RECORDED = 0, 8, 16, 24, 32, 40
# Items of a Rule and of an edge
FN, PLACES, CONSTANT, IS_PARTIAL, IS_LIST = 32, 40, 48, 56, 64
TARGET, INDEX, SHAPE, DTYPE = 24, 32, 40, 48

MOST_PLACES = 8
MOST_STEPS = 1024  # steps per call; then Python checks for signals and lets other threads run


@native
def backward(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Run steps; return the node that Python must step, or None.

    Python twin: eager/autograd/engine.py:next_node
    """
    desc = entry_data(self)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 6 or not are_pass_arguments(args)):
        return fall_back(desc, args, nargsf, kwnames)
    steps: i64 = 0
    while steps < MOST_STEPS and load_i64(load_ptr(args, HEAP), OB_SIZE) != 0:
        item = PyObject_Vectorcall(load_ptr(desc, B_POP), args + HEAP, 1, NULL)
        if unlikely(item == NULL):
            return NULL
        node = load_ptr(item, TUPLE_ITEMS + 8)
        done = step(desc, args, node)
        if unlikely(done != DONE):
            incref(node)
            decref(item)
            if done == TO_PYTHON:
                return node
            decref(node)
            return NULL
        decref(item)
        steps += 1
    none: ptr = Py_None
    incref(none)
    return none


@native
def are_pass_arguments(args: ptr) -> bool:
    return (
        type_of(load_ptr(args, HEAP)) == PyList_Type
        and type_of(load_ptr(args, PENDING)) == PyDict_Type
        and type_of(load_ptr(args, LEAVES)) == PyDict_Type
    )


@native
def step(desc: ptr, args: ptr, node: ptr) -> i64:
    """Return DONE, FAILED (an exception is set), or TO_PYTHON: nothing has happened.

    Python twin: eager/autograd/engine.py:Pass._step
    """
    g = load_ptr(desc, D_GLOBALS)
    if unlikely(type_of(node) != load_ptr(g, G_NODE) or load_ptr(node, NODE_RESULTS) != Py_None):
        return TO_PYTHON
    active, edges = load_ptr(node, NODE_ACTIVE), load_ptr(node, NODE_EDGES)
    saved, versions = load_ptr(node, NODE_RESIDUALS), load_ptr(node, NODE_VERSIONS)
    if unlikely(active == NULL or type_of(active) != load_ptr(desc, B_ACTIVE)):
        return TO_PYTHON
    rules = load_ptr(active, TUPLE_ITEMS)
    if unlikely(not is_tuple(saved) or not is_tuple(versions) or not is_tuple(edges) or not is_tuple(rules)):
        return TO_PYTHON
    if unlikely(
        not are_known(desc, rules, edges, load_i64(saved, OB_SIZE))
        or not are_unwritten(g, args, saved, versions)
    ):
        return TO_PYTHON
    gradient = take_gradient(g, load_ptr(args, PENDING), node)
    if unlikely(gradient == NULL):
        return TO_PYTHON
    incref(active)
    incref(edges)
    incref(saved)
    done = send_gradients(desc, args, rules, edges, saved, gradient)
    if likely(done == DONE and load_ptr(args, KEEP) == Py_False):
        release_saved(g, node)
    decref(saved)
    decref(edges)
    decref(active)
    decref(gradient)
    return done


@native
def is_tuple(x: ptr) -> bool:
    return x != NULL and type_of(x) == PyTuple_Type


# -- conditions --------------------------------------------------------------------------------------------------------
@native
def are_known(desc: ptr, rules: ptr, edges: ptr, count: i64) -> bool:
    """Return whether all rules are of single tensors, and use only residuals (`count` of them) and the gradient."""
    if load_i64(rules, OB_SIZE) != load_i64(edges, OB_SIZE):
        return False
    for k in range(load_i64(rules, OB_SIZE)):
        rule, edge = load_ptr(rules, TUPLE_ITEMS + k * 8), load_ptr(edges, TUPLE_ITEMS + k * 8)
        if type_of(rule) != load_ptr(desc, B_RULE) or load_ptr(rule, IS_LIST) != Py_False:
            return False
        if not is_tuple(edge) or load_i64(edge, OB_SIZE) != 4 or not is_tuple(load_ptr(edge, SHAPE)):
            return False
        if load_ptr(rule, FN) == Py_None and not is_sign(desc, load_ptr(rule, CONSTANT)):
            return False
        if not are_places(load_ptr(rule, PLACES), count):
            return False
    return True


@native
def is_sign(desc: ptr, constant: ptr) -> bool:
    return constant == load_ptr(load_ptr(desc, D_GLOBALS), G_ONE) or constant == load_ptr(desc, B_MINUS)


@native
def are_places(places: ptr, count: i64) -> bool:
    if not is_tuple(places) or load_i64(places, OB_SIZE) > MOST_PLACES:
        return False
    for k in range(load_i64(places, OB_SIZE)):
        place = load_ptr(places, TUPLE_ITEMS + k * 8)
        if type_of(place) != PyLong_Type:
            return False
        if PyLong_AsLongLong(place) < -1 or PyLong_AsLongLong(place) >= count:
            return False
    return True


@native
def are_unwritten(g: ptr, args: ptr, saved: ptr, versions: ptr) -> bool:
    """Return whether no residual was written since and all can be used directly; false if only Python can tell."""
    if load_i64(saved, OB_SIZE) != load_i64(versions, OB_SIZE):
        return False
    for k in range(load_i64(saved, OB_SIZE)):
        value, version = load_ptr(saved, TUPLE_ITEMS + k * 8), load_ptr(versions, TUPLE_ITEMS + k * 8)
        if version == Py_None:
            continue
        if type_of(version) == load_ptr(g, G_HOLD):
            storage = load_ptr(version, HOLD_STORAGE)
            if storage == NULL or type_of(storage) != load_ptr(g, G_STORAGE):
                return False
            if load_ptr(args, RECORDED) != Py_False:
                return False
            if not same_number(load_ptr(storage, S_VERSION), load_ptr(version, HOLD_VERSION)):
                return False
        elif type_of(value) != load_ptr(g, G_TENSOR) or not same_number(version_of(g, value), version):
            return False
    return True


@native
def same_number(one: ptr, two: ptr) -> bool:
    if one == NULL or two == NULL or type_of(one) != PyLong_Type or type_of(two) != PyLong_Type:
        return False
    return one == two or PyLong_AsLongLong(one) == PyLong_AsLongLong(two)


@native
def take_gradient(g: ptr, pending: ptr, node: ptr) -> ptr:
    """Remove and return the gradient of a node's result; NULL if the node has anything else."""
    given = PyDict_GetItemWithError(pending, node)
    if unlikely(given == NULL or type_of(given) != PyDict_Type or PyDict_Size(given) != 1):
        return NULL
    result = PyDict_GetItemWithError(given, load_ptr(g, G_ZERO))
    if unlikely(result == NULL or type_of(result) != load_ptr(g, G_TENSOR)):
        return NULL
    incref(result)
    PyDict_DelItem(pending, node)
    return result


@native
def release_saved(g: ptr, node: ptr) -> None:
    """Release the residuals of a node, if there is a tensor among them.

    Python twin: eager/autograd/node.py:Node.free
    """
    saved, versions = load_ptr(node, NODE_RESIDUALS), load_ptr(node, NODE_VERSIONS)
    if not is_tuple(versions) or saved == NULL:
        return
    for k in range(load_i64(versions, OB_SIZE)):
        if load_ptr(versions, TUPLE_ITEMS + k * 8) != Py_None:
            none: ptr = Py_None
            empty = load_ptr(g, G_EMPTY)
            incref(none)
            incref(empty)
            store_ptr(node, NODE_RESIDUALS, none)
            store_ptr(node, NODE_VERSIONS, empty)
            decref(saved)
            decref(versions)
            return


# -- rules -------------------------------------------------------------------------------------------------------------
@native
def send_gradients(desc: ptr, args: ptr, rules: ptr, edges: ptr, saved: ptr, gradient: ptr) -> i64:
    """Compute the gradients of all arguments and deliver each.

    Python twin: eager/autograd/engine.py:Pass._deliver_list
    """
    for k in range(load_i64(rules, OB_SIZE)):
        edge = load_ptr(edges, TUPLE_ITEMS + k * 8)
        result = apply_rule(load_ptr(rules, TUPLE_ITEMS + k * 8), saved, gradient)
        if unlikely(result == NULL):
            return FAILED
        if likely(result != Py_None):
            result = fit_gradient(desc, edge, result)
            if unlikely(result == NULL or deliver(desc, args, edge, result) == FAILED):
                return FAILED
        decref(result)
    return DONE


@native
def apply_rule(rule: ptr, saved: ptr, gradient: ptr) -> ptr:
    """Return the result of a rule, a new reference; NULL with an exception set.

    Python twin: eager/autograd/node.py:apply_rule
    """
    fn, places = load_ptr(rule, FN), load_ptr(rule, PLACES)
    if fn == Py_None:
        if PyLong_AsLongLong(load_ptr(rule, CONSTANT)) == -1:
            return PyNumber_Negative(gradient)
        incref(gradient)
        return gradient
    values = stack(MOST_PLACES * 8)
    for k in range(load_i64(places, OB_SIZE)):
        place = PyLong_AsLongLong(load_ptr(places, TUPLE_ITEMS + k * 8))
        store_ptr(values, k * 8, gradient if place < 0 else load_ptr(saved, TUPLE_ITEMS + place * 8))
    result = PyObject_Vectorcall(fn, values, load_i64(places, OB_SIZE), NULL)
    if result != NULL and load_ptr(rule, IS_PARTIAL) == Py_True:
        product = PyNumber_Multiply(gradient, result)
        decref(result)
        return product
    return result


@native
def fit_gradient(desc: ptr, edge: ptr, found: ptr) -> ptr:
    """Return a gradient with shape and dtype of the argument; steals `found`. NULL with an exception set.

    Python twin: eager/autograd/node.py:fit
    """
    if likely(has_right_type(load_ptr(desc, D_GLOBALS), edge, found)):
        return found
    values = stack(24)
    store_ptr(values, 0, found)
    store_ptr(values, 8, load_ptr(edge, SHAPE))
    store_ptr(values, 16, load_ptr(edge, DTYPE))
    fit = PyObject_Vectorcall(load_ptr(desc, B_FIT), values, 3, NULL)
    decref(found)
    return fit


@native
def has_right_type(g: ptr, edge: ptr, found: ptr) -> bool:
    array, shape = load_ptr(found, T_ARRAY), load_ptr(edge, SHAPE)
    if type_of(found) != load_ptr(g, G_TENSOR) or i64(load_i32(array, ND_NDIM)) != load_i64(shape, OB_SIZE):
        return False
    code = array_code(g, array)
    if code == FOREIGN or load_ptr(load_ptr(g, G_TYPES), code * 8) != load_ptr(edge, DTYPE):
        return False
    for d in range(load_i64(shape, OB_SIZE)):
        size = load_ptr(shape, TUPLE_ITEMS + d * 8)
        if type_of(size) != PyLong_Type or PyLong_AsLongLong(size) != load_i64(
            load_ptr(array, ND_DIMS), d * 8
        ):
            return False
    return load_ptr(array, ND_DESCR) == load_ptr(load_ptr(g, G_DESCRS), code * 8)


# -- where gradients go ------------------------------------------------------------------------------------------------
@native
def deliver(desc: ptr, args: ptr, edge: ptr, found: ptr) -> i64:
    """Deliver a gradient to its leaf or node; steals its reference on failure.

    Python twin: eager/autograd/engine.py:Pass._deliver
    """
    g, target, done = load_ptr(desc, D_GLOBALS), load_ptr(edge, TARGET), i64(DONE)
    if type_of(target) == load_ptr(g, G_META):
        done = accumulate(load_ptr(args, LEAVES), target, found)
    elif type_of(target) == load_ptr(g, G_NODE) and load_ptr(edge, INDEX) == load_ptr(g, G_ZERO):
        given = PyDict_GetItemWithError(load_ptr(args, PENDING), target)
        if given == NULL:
            done = announce(desc, args, target, found)
        else:
            done = accumulate(given, load_ptr(g, G_ZERO), found)
    else:
        values = stack(24)
        store_ptr(values, 0, target)
        store_ptr(values, 8, load_ptr(edge, INDEX))
        store_ptr(values, 16, found)
        done = is_done(PyObject_Vectorcall(load_ptr(args, DELIVER), values, 3, NULL))
    if unlikely(done == FAILED):
        decref(found)
    return done


@native
def is_done(result: ptr) -> i64:
    """Return DONE if a call that returns None succeeded, else FAILED."""
    if unlikely(result == NULL):
        return FAILED
    decref(result)
    return DONE


@native
def accumulate(table: ptr, key: ptr, found: ptr) -> i64:
    """Set an item of a dict, or add to it."""
    there = PyDict_GetItemWithError(table, key)
    if there == NULL:
        return DONE if likely(PyDict_SetItem(table, key, found) == 0) else FAILED
    incref(there)
    total = PyNumber_Add(there, found)
    decref(there)
    if unlikely(total == NULL):
        return FAILED
    failed = PyDict_SetItem(table, key, total)
    decref(total)
    return DONE if likely(failed == 0) else FAILED


@native
def announce(desc: ptr, args: ptr, target: ptr, found: ptr) -> i64:
    """Store the first gradient for a result of a node, and put the node into the heap."""
    given = PyDict_New()
    if unlikely(given == NULL):
        return FAILED
    failed = PyDict_SetItem(given, load_ptr(load_ptr(desc, D_GLOBALS), G_ZERO), found)
    if likely(failed == 0):
        failed = PyDict_SetItem(load_ptr(args, PENDING), target, given)
    decref(given)
    return push(desc, load_ptr(args, HEAP), target) if likely(failed == 0) else FAILED


@native
def push(desc: ptr, heap: ptr, node: ptr) -> i64:
    """Push a node onto the heap, whose items are `(-sequence, node)`."""
    item = PyTuple_New(2)
    if unlikely(item == NULL):
        return FAILED
    number = PyLong_FromLongLong(-PyLong_AsLongLong(load_ptr(node, NODE_SEQUENCE)))
    if unlikely(number == NULL):
        decref(item)
        return FAILED
    incref(node)
    store_ptr(item, TUPLE_ITEMS, number)
    store_ptr(item, TUPLE_ITEMS + 8, node)
    values = stack(16)
    store_ptr(values, 0, heap)
    store_ptr(values, 8, item)
    done = is_done(PyObject_Vectorcall(load_ptr(desc, B_PUSH), values, 2, NULL))
    decref(item)
    return done
