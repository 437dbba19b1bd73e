"""Native runtime: steps of reverse mode, for ordinary nodes.

For each node: call the derivative rules with the residuals and the gradient; convert their results to shape and dtype
of
the arguments; add the gradients to those of leaves and older nodes. Rules, sums and products are called as Python calls
them, so their own entries serve these calls. Any other node is returned to Python.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, extern, i64, likely, load, native, ptr, stack, store, unlikely
from ..compiler.structs import Struct, at
from ..glue.layout import Ndarray, PyTuple, PyVarObject
from .rt_base import (
    ARGS_MASK,
    Globals,
    OperatorEntry,
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
    TensorObject,
    decref,
    entry_data,
    fall_back,
    incref,
    type_of,
)
from .rt_operands import FOREIGN
from .rt_record import NodeObject
from .rt_saved import DONE, FAILED, TO_PYTHON, HoldObject, array_code, version_of
from .rt_storage import StorageObject

PyDict_DelItem = extern("PyDict_DelItem", "i32(ptr, ptr)")
PyNumber_Multiply = extern("PyNumber_Multiply", "ptr(ptr, ptr)")
PyNumber_Negative = extern("PyNumber_Negative", "ptr(ptr)")


class BackwardEntry(OperatorEntry):
    """The entry of the backward pass: functions of the heap and `fit`, classes, -1."""

    pop: ptr = at(16)
    push: ptr = at(24)
    fit: ptr = at(32)
    active: ptr = at(40)
    rule: ptr = at(48)
    minus: ptr = at(56)  # the int -1


# Its arguments: the Python function that delivers a gradient; heap and gradients of the nodes to come; those of
# leaves; whether residuals are kept; whether the pass is recorded, so that saved results need their autograd graph
class PassArguments(Struct):
    """The arguments of the backward entry, borrowed."""

    deliver: ptr  # the Python function that delivers a gradient
    heap: ptr  # of the nodes to come
    pending: ptr  # gradients of the nodes to come
    leaves: ptr  # gradients of leaves
    keep: ptr  # whether residuals are kept
    recorded: ptr  # whether the pass is recorded, so that saved results need their autograd graph


# Items of a Rule and of an edge
class RuleObject(PyTuple):
    """The items of a `Rule`."""

    fn: ptr
    places: ptr
    constant: ptr
    is_partial: ptr
    is_list: ptr


class EdgeObject(PyTuple):
    """The items of an `Edge`."""

    target: ptr = at(24)
    index: ptr
    shape: ptr
    dtype: ptr


MOST_PLACES = 8
MOST_STEPS = 1024  # steps per call; then Python checks for signals and lets other threads run


@native
def backward(self: ptr, args: PassArguments, nargsf: i64, kwnames: ptr) -> ptr:
    """Run steps; return the node that Python must step, or None.

    Python twin: eager/autograd/engine.py:next_node
    """
    desc: BackwardEntry = entry_data(self)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 6 or not are_pass_arguments(args)):
        return fall_back(desc, args, nargsf, kwnames)
    steps: i64 = 0
    while steps < MOST_STEPS and PyVarObject(args.heap).size != 0:
        item = PyObject_Vectorcall(desc.pop, args + PassArguments.heap, 1, NULL)
        if unlikely(item == NULL):
            return NULL
        node = load(ptr, item, PyTuple.items + 8)
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
def are_pass_arguments(args: PassArguments) -> bool:
    return bool(
        type_of(args.heap) == PyList_Type
        and type_of(args.pending) == PyDict_Type
        and type_of(args.leaves) == PyDict_Type
    )


@native
def step(desc: BackwardEntry, args: PassArguments, node: NodeObject) -> i64:
    """Return DONE, FAILED (an exception is set), or TO_PYTHON: nothing has happened.

    Python twin: eager/autograd/engine.py:Pass._step
    """
    g: Globals = desc.globals_
    if unlikely(type_of(node) != g.node or node.results != Py_None):
        return TO_PYTHON
    active, edges = node.active, node.edges
    saved, versions = node.residuals, node.versions
    if unlikely(active == NULL or type_of(active) != desc.active):
        return TO_PYTHON
    rules = load(ptr, active, PyTuple.items)
    if unlikely(not is_tuple(saved) or not is_tuple(versions) or not is_tuple(edges) or not is_tuple(rules)):
        return TO_PYTHON
    if unlikely(
        not are_known(desc, rules, edges, PyVarObject(saved).size)
        or not are_unwritten(g, args, saved, versions)
    ):
        return TO_PYTHON
    gradient = take_gradient(g, args.pending, node)
    if unlikely(gradient == NULL):
        return TO_PYTHON
    incref(active)
    incref(edges)
    incref(saved)
    done = send_gradients(desc, args, rules, edges, saved, gradient)
    if likely(done == DONE and args.keep == Py_False):
        release_saved(g, node)
    decref(saved)
    decref(edges)
    decref(active)
    decref(gradient)
    return done


@native
def is_tuple(x: ptr) -> bool:
    return bool(x != NULL and type_of(x) == PyTuple_Type)


# -- conditions --------------------------------------------------------------------------------------------------------
@native
def are_known(desc: BackwardEntry, rules: PyVarObject, edges: PyVarObject, count: i64) -> bool:
    """Return whether all rules are of single tensors, and use only residuals (`count` of them) and the gradient."""
    if rules.size != edges.size:
        return False
    for k in range(rules.size):
        rule, edge = load(ptr, rules, PyTuple.items + k * 8), load(ptr, edges, PyTuple.items + k * 8)
        if type_of(rule) != desc.rule or RuleObject(rule).is_list != Py_False:
            return False
        if not is_tuple(edge) or PyVarObject(edge).size != 4 or not is_tuple(EdgeObject(edge).shape):
            return False
        if RuleObject(rule).fn == Py_None and not is_sign(desc, RuleObject(rule).constant):
            return False
        if not are_places(RuleObject(rule).places, count):
            return False
    return True


@native
def is_sign(desc: BackwardEntry, constant: ptr) -> bool:
    return bool(constant == desc.globals_.one or constant == desc.minus)


@native
def are_places(places: PyVarObject, count: i64) -> bool:
    if not is_tuple(places) or places.size > MOST_PLACES:
        return False
    for k in range(places.size):
        place = load(ptr, places, PyTuple.items + k * 8)
        if type_of(place) != PyLong_Type:
            return False
        if PyLong_AsLongLong(place) < -1 or PyLong_AsLongLong(place) >= count:
            return False
    return True


@native
def are_unwritten(g: Globals, args: PassArguments, saved: PyVarObject, versions: PyVarObject) -> bool:
    """Return whether no residual was written since and all can be used directly; false if only Python can tell."""
    if saved.size != versions.size:
        return False
    for k in range(saved.size):
        value, version = load(ptr, saved, PyTuple.items + k * 8), load(ptr, versions, PyTuple.items + k * 8)
        if version == Py_None:
            continue
        if type_of(version) == g.hold:
            storage: StorageObject = HoldObject(version).storage
            if storage == NULL or type_of(storage) != g.storage:
                return False
            if args.recorded != Py_False:
                return False
            if not same_number(storage.version, HoldObject(version).version):
                return False
        elif type_of(value) != g.tensor or not same_number(version_of(g, value), version):
            return False
    return True


@native
def same_number(one: ptr, two: ptr) -> bool:
    if one == NULL or two == NULL or type_of(one) != PyLong_Type or type_of(two) != PyLong_Type:
        return False
    return bool(one == two or PyLong_AsLongLong(one) == PyLong_AsLongLong(two))


@native
def take_gradient(g: Globals, pending: ptr, node: ptr) -> ptr:
    """Remove and return the gradient of a node's result; NULL if the node has anything else."""
    given = PyDict_GetItemWithError(pending, node)
    if unlikely(given == NULL or type_of(given) != PyDict_Type or PyDict_Size(given) != 1):
        return NULL
    result = PyDict_GetItemWithError(given, g.zero)
    if unlikely(result == NULL or type_of(result) != g.tensor):
        return NULL
    incref(result)
    PyDict_DelItem(pending, node)
    return result


@native
def release_saved(g: Globals, node: NodeObject) -> None:
    """Release the residuals of a node, if there is a tensor among them.

    Python twin: eager/autograd/node.py:Node.free
    """
    saved, versions = node.residuals, node.versions
    if not is_tuple(versions) or saved == NULL:
        return
    for k in range(PyVarObject(versions).size):
        if load(ptr, versions, PyTuple.items + k * 8) != Py_None:
            none: ptr = Py_None
            empty = g.empty
            incref(none)
            incref(empty)
            node.residuals = none
            node.versions = empty
            decref(saved)
            decref(versions)
            return


# -- rules -------------------------------------------------------------------------------------------------------------
@native
def send_gradients(desc: ptr, args: ptr, rules: PyVarObject, edges: ptr, saved: ptr, gradient: ptr) -> i64:
    """Compute the gradients of all arguments and deliver each.

    Python twin: eager/autograd/engine.py:Pass._deliver_list
    """
    for k in range(rules.size):
        edge = load(ptr, edges, PyTuple.items + k * 8)
        result = apply_rule(load(ptr, rules, PyTuple.items + k * 8), saved, gradient)
        if unlikely(result == NULL):
            return FAILED
        if likely(result != Py_None):
            result = fit_gradient(desc, edge, result)
            if unlikely(result == NULL or deliver(desc, args, edge, result) == FAILED):
                return FAILED
        decref(result)
    return DONE


@native
def apply_rule(rule: RuleObject, saved: ptr, gradient: ptr) -> ptr:
    """Return the result of a rule, a new reference; NULL with an exception set.

    Python twin: eager/autograd/node.py:apply_rule
    """
    fn, places = rule.fn, rule.places
    if fn == Py_None:
        if PyLong_AsLongLong(rule.constant) == -1:
            return PyNumber_Negative(gradient)
        incref(gradient)
        return gradient
    values = stack(MOST_PLACES * 8)
    for k in range(PyVarObject(places).size):
        place = PyLong_AsLongLong(load(ptr, places, PyTuple.items + k * 8))
        store(ptr, values, k * 8, gradient if place < 0 else load(ptr, saved, PyTuple.items + place * 8))
    result = PyObject_Vectorcall(fn, values, PyVarObject(places).size, NULL)
    if result != NULL and rule.is_partial == Py_True:
        product = PyNumber_Multiply(gradient, result)
        decref(result)
        return product
    return result


@native
def fit_gradient(desc: BackwardEntry, edge: EdgeObject, found: ptr) -> ptr:
    """Return a gradient with shape and dtype of the argument; steals `found`. NULL with an exception set.

    Python twin: eager/autograd/node.py:fit
    """
    if likely(has_right_type(desc.globals_, edge, found)):
        return found
    values = stack(24)
    store(ptr, values, 0, found)
    store(ptr, values, 8, edge.shape)
    store(ptr, values, 16, edge.dtype)
    fit = PyObject_Vectorcall(desc.fit, values, 3, NULL)
    decref(found)
    return fit


@native
def has_right_type(g: Globals, edge: EdgeObject, found: TensorObject) -> bool:
    array, shape = found.array, edge.shape
    if type_of(found) != g.tensor or i64(Ndarray(array).ndim) != PyVarObject(shape).size:
        return False
    code = array_code(g, array)
    if code == FOREIGN or load(ptr, g.types, code * 8) != edge.dtype:
        return False
    for d in range(PyVarObject(shape).size):
        size = load(ptr, shape, PyTuple.items + d * 8)
        if type_of(size) != PyLong_Type or PyLong_AsLongLong(size) != load(i64, Ndarray(array).dims, d * 8):
            return False
    return bool(Ndarray(array).descr == load(ptr, g.descrs, code * 8))


# -- where gradients go ------------------------------------------------------------------------------------------------
@native
def deliver(desc: BackwardEntry, args: PassArguments, edge: EdgeObject, found: ptr) -> i64:
    """Deliver a gradient to its leaf or node; steals its reference on failure.

    Python twin: eager/autograd/engine.py:Pass._deliver
    """
    g, target, done = desc.globals_, edge.target, i64(DONE)
    if type_of(target) == Globals(g).meta:
        done = accumulate(args.leaves, target, found)
    elif type_of(target) == Globals(g).node and edge.index == Globals(g).zero:
        given = PyDict_GetItemWithError(args.pending, target)
        if given == NULL:
            done = announce(desc, args, target, found)
        else:
            done = accumulate(given, Globals(g).zero, found)
    else:
        values = stack(24)
        store(ptr, values, 0, target)
        store(ptr, values, 8, edge.index)
        store(ptr, values, 16, found)
        done = is_done(PyObject_Vectorcall(args.deliver, values, 3, NULL))
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
def announce(desc: BackwardEntry, args: PassArguments, target: ptr, found: ptr) -> i64:
    """Store the first gradient for a result of a node, and put the node into the heap."""
    given = PyDict_New()
    if unlikely(given == NULL):
        return FAILED
    failed = PyDict_SetItem(given, desc.globals_.zero, found)
    if likely(failed == 0):
        failed = PyDict_SetItem(args.pending, target, given)
    decref(given)
    return push(desc, args.heap, target) if likely(failed == 0) else FAILED


@native
def push(desc: BackwardEntry, heap: ptr, node: NodeObject) -> i64:
    """Push a node onto the heap, whose items are `(-sequence, node)`."""
    item = PyTuple_New(2)
    if unlikely(item == NULL):
        return FAILED
    number = PyLong_FromLongLong(-PyLong_AsLongLong(node.sequence))
    if unlikely(number == NULL):
        decref(item)
        return FAILED
    incref(node)
    store(ptr, item, PyTuple.items, number)
    store(ptr, item, PyTuple.items + 8, node)
    values = stack(16)
    store(ptr, values, 0, heap)
    store(ptr, values, 8, item)
    done = is_done(PyObject_Vectorcall(desc.push, values, 2, NULL))
    decref(item)
    return done
