"""Native runtime: steps of reverse mode, for ordinary nodes.

For each node: call the derivative rules with the residuals and the gradient; convert their results to shape and dtype
of the arguments; add the gradients to those of leaves and older nodes. Rules, sums and products are called as Python
calls them, so their own entries serve these calls. Any other node is returned to Python.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, unlikely
from ..compiler.structs import Struct, at
from . import capi, rt_record, rt_saved
from . import rt_base as base


class BackwardEntry(base.OperatorEntry):
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
class RuleObject(capi.PyTuple):
    """The items of a `Rule`."""

    fn: ptr
    indices: ptr
    constant: ptr
    is_partial: ptr
    is_list: ptr


class EdgeObject(capi.PyTuple):
    """The items of an `Edge`."""

    target: ptr = at(24)
    index: ptr
    shape: ptr
    dtype: ptr


MOST_INDICES = 8
MOST_STEPS = 1024  # steps per call; then Python checks for signals and lets other threads run


@native
def backward(self: ptr, args: PassArguments, nargsf: i64, kwnames: ptr) -> ptr:
    """Run steps; return the node that Python must step, or None.

    Python twin: eager/autograd/engine.py:next_node
    """
    entry: BackwardEntry = base.entry_data(self)
    if unlikely(kwnames != NULL or (nargsf & base.ARGS_MASK) != 6 or not are_pass_arguments(args)):
        return base.fall_back(entry, args, nargsf, kwnames)
    steps: i64 = 0
    while steps < MOST_STEPS and capi.PyVarObject(args.heap).size != 0:
        item = capi.PyObject_Vectorcall(entry.pop, args + PassArguments.heap, 1, NULL)
        if unlikely(item == NULL):
            return NULL
        node = load(ptr, item, capi.PyTuple.items + 8)
        done = step(entry, args, node)
        if unlikely(done != rt_saved.DONE):
            capi.incref(node)
            capi.decref(item)
            if done == rt_saved.TO_PYTHON:
                return node
            capi.decref(node)
            return NULL
        capi.decref(item)
        steps += 1
    return capi.new_ref(capi.Py_None)


@native
def are_pass_arguments(args: PassArguments) -> bool:
    return bool(
        capi.type_of(args.heap) == capi.PyList_Type
        and capi.type_of(args.pending) == capi.PyDict_Type
        and capi.type_of(args.leaves) == capi.PyDict_Type
    )


@native
def step(entry: BackwardEntry, args: PassArguments, node: rt_record.NodeObject) -> i64:
    """Return DONE, FAILED (an exception is set), or TO_PYTHON: nothing has happened.

    Python twin: eager/autograd/engine.py:Pass._step
    """
    g: base.Globals = entry.globals_
    if unlikely(capi.type_of(node) != g.node or node.results != capi.Py_None):
        return rt_saved.TO_PYTHON
    active, edges = node.active, node.edges
    saved, versions = node.residuals, node.versions
    if unlikely(active == NULL or capi.type_of(active) != entry.active):
        return rt_saved.TO_PYTHON
    rules = load(ptr, active, capi.PyTuple.items)
    if unlikely(not is_tuple(saved) or not is_tuple(versions) or not is_tuple(edges) or not is_tuple(rules)):
        return rt_saved.TO_PYTHON
    if unlikely(
        not are_known(entry, rules, edges, capi.PyVarObject(saved).size)
        or not are_unwritten(g, args, saved, versions)
    ):
        return rt_saved.TO_PYTHON
    gradient = take_gradient(g, args.pending, node)
    if unlikely(gradient == NULL):
        return rt_saved.TO_PYTHON
    capi.incref(active)
    capi.incref(edges)
    capi.incref(saved)
    done = send_gradients(entry, args, rules, edges, saved, gradient)
    if likely(done == rt_saved.DONE and args.keep == capi.Py_False):
        release_saved(g, node)
    capi.decref(saved)
    capi.decref(edges)
    capi.decref(active)
    capi.decref(gradient)
    return done


@native
def is_tuple(x: ptr) -> bool:
    return bool(x != NULL and capi.type_of(x) == capi.PyTuple_Type)


# -- conditions --------------------------------------------------------------------------------------------------------
@native
def are_known(entry: BackwardEntry, rules: capi.PyVarObject, edges: capi.PyVarObject, count: i64) -> bool:
    """Return whether all rules are of single tensors, and use only residuals (`count` of them) and the gradient."""
    if rules.size != edges.size:
        return False
    for k in range(rules.size):
        rule, edge = (
            load(ptr, rules, capi.PyTuple.items + k * 8),
            load(ptr, edges, capi.PyTuple.items + k * 8),
        )
        if capi.type_of(rule) != entry.rule or RuleObject(rule).is_list != capi.Py_False:
            return False
        if not is_tuple(edge) or capi.PyVarObject(edge).size != 4 or not is_tuple(EdgeObject(edge).shape):
            return False
        if RuleObject(rule).fn == capi.Py_None and not is_sign(entry, RuleObject(rule).constant):
            return False
        if not are_indices(RuleObject(rule).indices, count):
            return False
    return True


@native
def is_sign(entry: BackwardEntry, constant: ptr) -> bool:
    return bool(constant == entry.globals_.one or constant == entry.minus)


@native
def are_indices(indices: capi.PyVarObject, count: i64) -> bool:
    if not is_tuple(indices) or indices.size > MOST_INDICES:
        return False
    for k in range(indices.size):
        index = load(ptr, indices, capi.PyTuple.items + k * 8)
        if capi.type_of(index) != capi.PyLong_Type:
            return False
        if capi.PyLong_AsLongLong(index) < -1 or capi.PyLong_AsLongLong(index) >= count:
            return False
    return True


@native
def are_unwritten(
    g: base.Globals, args: PassArguments, saved: capi.PyVarObject, versions: capi.PyVarObject
) -> bool:
    """Return whether no residual was written since and all can be used directly; false if only Python can tell."""
    if saved.size != versions.size:
        return False
    for k in range(saved.size):
        value, version = (
            load(ptr, saved, capi.PyTuple.items + k * 8),
            load(ptr, versions, capi.PyTuple.items + k * 8),
        )
        if version == capi.Py_None:
            continue
        if capi.type_of(version) == g.hold:
            storage: base.StorageObject = rt_saved.HoldObject(version).storage
            if storage == NULL or capi.type_of(storage) != g.storage:
                return False
            if args.recorded != capi.Py_False:
                return False
            if not same_number(storage.version, rt_saved.HoldObject(version).version):
                return False
        elif capi.type_of(value) != g.tensor or not same_number(rt_saved.version_of(g, value), version):
            return False
    return True


@native
def same_number(one: ptr, two: ptr) -> bool:
    if (
        one == NULL
        or two == NULL
        or capi.type_of(one) != capi.PyLong_Type
        or capi.type_of(two) != capi.PyLong_Type
    ):
        return False
    return bool(one == two or capi.PyLong_AsLongLong(one) == capi.PyLong_AsLongLong(two))


@native
def take_gradient(g: base.Globals, pending: ptr, node: ptr) -> ptr:
    """Remove and return the gradient of a node's result; NULL if the node has anything else."""
    given = capi.PyDict_GetItemWithError(pending, node)
    if unlikely(given == NULL or capi.type_of(given) != capi.PyDict_Type or capi.PyDict_Size(given) != 1):
        return NULL
    result = capi.PyDict_GetItemWithError(given, g.zero)
    if unlikely(result == NULL or capi.type_of(result) != g.tensor):
        return NULL
    capi.incref(result)
    capi.PyDict_DelItem(pending, node)
    return result


@native
def release_saved(g: base.Globals, node: rt_record.NodeObject) -> None:
    """Release the residuals of a node, if there is a tensor among them.

    Python twin: eager/autograd/node.py:Node.free
    """
    saved, versions = node.residuals, node.versions
    if not is_tuple(versions) or saved == NULL:
        return
    for k in range(capi.PyVarObject(versions).size):
        if load(ptr, versions, capi.PyTuple.items + k * 8) != capi.Py_None:
            node.residuals = capi.new_ref(capi.Py_None)
            node.versions = capi.new_ref(g.empty)
            capi.decref(saved)
            capi.decref(versions)
            return


# -- rules -------------------------------------------------------------------------------------------------------------
@native
def send_gradients(
    entry: ptr, args: ptr, rules: capi.PyVarObject, edges: ptr, saved: ptr, gradient: ptr
) -> i64:
    """Compute the gradients of all arguments and deliver each.

    Python twin: eager/autograd/engine.py:Pass._deliver_list
    """
    for k in range(rules.size):
        edge = load(ptr, edges, capi.PyTuple.items + k * 8)
        result = apply_rule(load(ptr, rules, capi.PyTuple.items + k * 8), saved, gradient)
        if unlikely(result == NULL):
            return rt_saved.FAILED
        if likely(result != capi.Py_None):
            result = fit_gradient(entry, edge, result)
            if unlikely(result == NULL or deliver(entry, args, edge, result) == rt_saved.FAILED):
                return rt_saved.FAILED
        capi.decref(result)
    return rt_saved.DONE


@native
def apply_rule(rule: RuleObject, saved: ptr, gradient: ptr) -> ptr:
    """Return the result of a rule, a new reference; NULL with an exception set.

    Python twin: eager/autograd/node.py:apply_rule
    """
    fn, indices = rule.fn, rule.indices
    if fn == capi.Py_None:
        if capi.PyLong_AsLongLong(rule.constant) == -1:
            return capi.PyNumber_Negative(gradient)
        capi.incref(gradient)
        return gradient
    values = stack(MOST_INDICES * 8)
    for k in range(capi.PyVarObject(indices).size):
        index = capi.PyLong_AsLongLong(load(ptr, indices, capi.PyTuple.items + k * 8))
        store(ptr, values, k * 8, gradient if index < 0 else load(ptr, saved, capi.PyTuple.items + index * 8))
    result = capi.PyObject_Vectorcall(fn, values, capi.PyVarObject(indices).size, NULL)
    if result != NULL and rule.is_partial == capi.Py_True:
        product = capi.PyNumber_Multiply(gradient, result)
        capi.decref(result)
        return product
    return result


@native
def fit_gradient(entry: BackwardEntry, edge: EdgeObject, gradient: ptr) -> ptr:
    """Return a gradient with shape and dtype of the argument; steals `gradient`. NULL with an exception set.

    Python twin: eager/autograd/node.py:fit
    """
    if likely(has_right_type(entry.globals_, edge, gradient)):
        return gradient
    values = stack(24)
    store(ptr, values, 0, gradient)
    store(ptr, values, 8, edge.shape)
    store(ptr, values, 16, edge.dtype)
    fit = capi.PyObject_Vectorcall(entry.fit, values, 3, NULL)
    capi.decref(gradient)
    return fit


@native
def has_right_type(g: base.Globals, edge: EdgeObject, gradient: base.TensorObject) -> bool:
    array, shape = gradient.array, edge.shape
    if capi.type_of(gradient) != g.tensor or i64(capi.Ndarray(array).ndim) != capi.PyVarObject(shape).size:
        return False
    code = rt_saved.array_code(g, array)
    if code == base.FOREIGN or load(ptr, g.types, code * 8) != edge.dtype:
        return False
    for d in range(capi.PyVarObject(shape).size):
        size = load(ptr, shape, capi.PyTuple.items + d * 8)
        if capi.type_of(size) != capi.PyLong_Type or capi.PyLong_AsLongLong(size) != load(
            i64, capi.Ndarray(array).dims, d * 8
        ):
            return False
    return bool(capi.Ndarray(array).descr == load(ptr, g.descrs, code * 8))


# -- where gradients go ------------------------------------------------------------------------------------------------
@native
def deliver(entry: BackwardEntry, args: PassArguments, edge: EdgeObject, gradient: ptr) -> i64:
    """Deliver a gradient to its leaf or node; steals its reference on failure.

    Python twin: eager/autograd/engine.py:Pass._deliver
    """
    g, target, done = entry.globals_, edge.target, i64(rt_saved.DONE)
    if capi.type_of(target) == base.Globals(g).meta:
        done = accumulate(args.leaves, target, gradient)
    elif capi.type_of(target) == base.Globals(g).node and edge.index == base.Globals(g).zero:
        given = capi.PyDict_GetItemWithError(args.pending, target)
        if given == NULL:
            done = announce(entry, args, target, gradient)
        else:
            done = accumulate(given, base.Globals(g).zero, gradient)
    else:
        values = stack(24)
        store(ptr, values, 0, target)
        store(ptr, values, 8, edge.index)
        store(ptr, values, 16, gradient)
        done = is_done(capi.PyObject_Vectorcall(args.deliver, values, 3, NULL))
    if unlikely(done == rt_saved.FAILED):
        capi.decref(gradient)
    return done


@native
def is_done(result: ptr) -> i64:
    """Return DONE if a call that returns None succeeded, else FAILED."""
    if unlikely(result == NULL):
        return rt_saved.FAILED
    capi.decref(result)
    return rt_saved.DONE


@native
def accumulate(table: ptr, key: ptr, gradient: ptr) -> i64:
    """Set an item of a dict, or add to it."""
    there = capi.PyDict_GetItemWithError(table, key)
    if there == NULL:
        return rt_saved.DONE if likely(capi.PyDict_SetItem(table, key, gradient) == 0) else rt_saved.FAILED
    capi.incref(there)
    total = capi.PyNumber_Add(there, gradient)
    capi.decref(there)
    if unlikely(total == NULL):
        return rt_saved.FAILED
    failed = capi.PyDict_SetItem(table, key, total)
    capi.decref(total)
    return rt_saved.DONE if likely(failed == 0) else rt_saved.FAILED


@native
def announce(entry: BackwardEntry, args: PassArguments, target: ptr, gradient: ptr) -> i64:
    """Store the first gradient for a result of a node, and put the node into the heap."""
    given = capi.PyDict_New()
    if unlikely(given == NULL):
        return rt_saved.FAILED
    failed = capi.PyDict_SetItem(given, entry.globals_.zero, gradient)
    if likely(failed == 0):
        failed = capi.PyDict_SetItem(args.pending, target, given)
    capi.decref(given)
    return push(entry, args.heap, target) if likely(failed == 0) else rt_saved.FAILED


@native
def push(entry: BackwardEntry, heap: ptr, node: rt_record.NodeObject) -> i64:
    """Push a node onto the heap, whose items are `(-sequence, node)`."""
    item = capi.PyTuple_New(2)
    if unlikely(item == NULL):
        return rt_saved.FAILED
    number = capi.PyLong_FromLongLong(-capi.PyLong_AsLongLong(node.sequence))
    if unlikely(number == NULL):
        capi.decref(item)
        return rt_saved.FAILED
    store(ptr, item, capi.PyTuple.items, number)
    store(ptr, item, capi.PyTuple.items + 8, capi.new_ref(node))
    values = stack(16)
    store(ptr, values, 0, heap)
    store(ptr, values, 8, item)
    done = is_done(capi.PyObject_Vectorcall(entry.push, values, 2, NULL))
    capi.decref(item)
    return done
