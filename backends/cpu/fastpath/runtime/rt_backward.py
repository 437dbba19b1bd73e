"""Native runtime: steps of reverse mode, for ordinary nodes.

For each node: call the derivative rules with the residuals and the gradient; convert their results to shape and dtype
of the arguments; add the gradients to those of leaves and older nodes. Rules, sums and products are called as Python
calls them, so their own entries serve these calls. Any other node is returned to Python.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, stack_of, store, unlikely
from ..compiler.structs import Struct, at
from . import capi, rt_arguments, rt_operands, rt_record, rt_saved
from . import rt_base as base
from .rt_entry import DONE, Outcome


class BackwardEntry(base.OperatorEntry):
    """The entry of the backward pass: functions of the heap and `fit`, classes, -1."""

    pop: ptr = at(16)
    push: ptr = at(24)
    fit: ptr = at(32)
    active: ptr = at(40)
    rule: ptr = at(48)
    minus: ptr = at(56)  # the int -1


class PassArguments(Struct):
    """The arguments of the backward entry, borrowed."""

    deliver: ptr  # the Python function that delivers a gradient
    heap: ptr  # of the nodes to come
    pending: ptr  # gradients of the nodes to come
    leaves: ptr  # gradients of leaves
    keep: ptr  # whether residuals are kept
    recorded: ptr  # whether the pass is recorded, so that saved results need their autograd graph


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

    Python twin: eager/autograd/node_sources.py:next_node
    """
    entry: BackwardEntry = base.entry_data(self)
    if unlikely(
        kwnames != NULL
        or (nargsf & base.ARGS_MASK) != 6
        or capi.type_of(args.heap) != capi.PyList_Type
        or capi.type_of(args.pending) != capi.PyDict_Type
        or capi.type_of(args.leaves) != capi.PyDict_Type
    ):
        return base.fall_back(entry, args, nargsf, kwnames)
    steps: i64 = 0
    while steps < MOST_STEPS and capi.PyVarObject(args.heap).size != 0:
        item = capi.PyObject_Vectorcall(entry.pop, args + PassArguments.heap, 1, NULL)
        if unlikely(item == NULL):
            return NULL
        node = capi.item(item, 1)
        outcome = step(entry, args, node)
        if unlikely(outcome == Outcome.FALL_BACK):
            capi.incref(node)
        capi.decref(item)
        if unlikely(outcome != DONE):
            return node if outcome == Outcome.FALL_BACK else ptr(0)
        steps += 1
    return capi.new_ref(capi.Py_None)


@native
def step(entry: BackwardEntry, args: PassArguments, node: rt_record.NodeObject) -> i64:
    """Return DONE, or an `Outcome`: FAILED, or FALL_BACK if nothing has happened.

    Python twin: eager/autograd/engine.py:Pass._step
    """
    g: base.Globals = entry.globals_
    if unlikely(capi.type_of(node) != g.node or node.results != capi.Py_None):
        return Outcome.FALL_BACK
    active, edges, saved, versions = node.active, node.edges, node.residuals, node.versions
    if unlikely(active == NULL or capi.type_of(active) != entry.active):
        return Outcome.FALL_BACK
    rules = capi.item(active, 0)
    if unlikely(
        not (capi.is_tuple(saved) and capi.is_tuple(versions) and capi.is_tuple(edges))
        or not capi.is_tuple(rules)
        or not are_known(entry, rules, edges, capi.PyVarObject(saved).size)
        or not are_unwritten(g, args, saved, versions)
    ):
        return Outcome.FALL_BACK
    gradient = take_gradient(g, args.pending, node)
    if unlikely(gradient == NULL):
        return Outcome.FALL_BACK
    held = stack_of(active, edges, saved)
    capi.hold_all(held, 3)
    done = send_gradients(entry, args, rules, edges, saved, gradient)
    if likely(done and args.keep == capi.Py_False):
        release_saved(g, node)
    capi.release_all(held, 3)
    capi.decref(gradient)
    return DONE if likely(done) else i64(Outcome.FAILED)


# -- conditions --------------------------------------------------------------------------------------------------------
@native
def are_known(entry: BackwardEntry, rules: capi.PyVarObject, edges: capi.PyVarObject, count: i64) -> bool:
    """Return whether all rules are of single tensors, and use only residuals (`count` of them) and the gradient."""
    if rules.size != edges.size:
        return False
    for k in range(rules.size):
        rule: RuleObject = capi.item(rules, k)
        edge: EdgeObject = capi.item(edges, k)
        if capi.type_of(rule) != entry.rule:
            return False
        is_known = is_edge(edge) if likely(rule.is_list == capi.Py_False) else are_edges(edge)
        if not is_known:
            return False
        if rule.fn == capi.Py_None and rule.constant not in (entry.globals_.one, entry.minus):
            return False
        if not are_indices(rule.indices, count):
            return False
    return True


@native
def is_edge(edge: EdgeObject) -> bool:
    """Return whether an object is an `Edge`, as far as its parts are read."""
    return capi.is_tuple(edge) and edge.size == 4 and capi.is_tuple(edge.shape)


@noinline
def are_edges(edges: capi.PyVarObject) -> bool:
    """Return whether an object is a tuple of edges and None."""
    if not capi.is_tuple(edges):
        return False
    for k in range(edges.size):
        edge = capi.item(edges, k)
        if edge != capi.Py_None and not is_edge(edge):
            return False
    return True


@native
def are_indices(indices: capi.PyVarObject, count: i64) -> bool:
    if not capi.is_tuple(indices) or indices.size > MOST_INDICES:
        return False
    for k in range(indices.size):
        index = rt_arguments.whole_number(capi.item(indices, k))
        if index < -1 or index >= count:
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
        value, version = capi.item(saved, k), capi.item(versions, k)
        if version == capi.Py_None:
            continue
        if capi.type_of(version) == g.hold:
            storage: base.StorageObject = rt_saved.HoldObject(version).storage
            if storage == NULL or capi.type_of(storage) != g.storage or args.recorded != capi.Py_False:
                return False
            if not same_number(storage.version, rt_saved.HoldObject(version).version):
                return False
        elif capi.type_of(value) != g.tensor or not same_number(rt_saved.version_of(g, value), version):
            return False
    return True


@native
def same_number(one: ptr, two: ptr) -> bool:
    """Return whether two objects are equal ints; one or the other may be NULL."""
    if one == NULL or two == NULL:
        return False
    value = rt_arguments.whole_number(one)
    return value != rt_arguments.NO_NUMBER and value == rt_arguments.whole_number(two)


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
    if not capi.is_tuple(versions) or saved == NULL:
        return
    for k in range(capi.PyVarObject(versions).size):
        if capi.item(versions, k) != capi.Py_None:
            node.residuals = capi.new_ref(capi.Py_None)
            node.versions = capi.new_ref(g.empty)
            capi.decref(saved)
            capi.decref(versions)
            return


# -- rules -------------------------------------------------------------------------------------------------------------
@native
def send_gradients(
    entry: ptr, args: ptr, rules: capi.PyVarObject, edges: ptr, saved: ptr, gradient: ptr
) -> bool:
    """Compute the gradients of all arguments and deliver each; return false with an exception set."""
    for k in range(rules.size):
        edge, rule = capi.item(edges, k), RuleObject(capi.item(rules, k))
        result = apply_rule(rule, saved, gradient)
        if unlikely(result == NULL):
            return False
        if unlikely(rule.is_list != capi.Py_False and result != capi.Py_None):
            sent = send_list(entry, args, edge, result)
        else:
            sent = send(entry, args, edge, result)
        if unlikely(not sent):
            return False
    return True


@native
def send(entry: ptr, args: ptr, edge: ptr, gradient: ptr) -> bool:
    """Deliver a gradient, unless it is None; steals `gradient`. Return false with an exception set."""
    if likely(gradient != capi.Py_None):
        gradient = fit_gradient(entry, edge, gradient)
        if unlikely(gradient == NULL):
            return False
        sent = deliver(entry, args, edge, gradient)
    else:
        sent = True
    capi.decref(gradient)
    return sent


@noinline
def send_list(entry: ptr, args: ptr, edges: capi.PyVarObject, gradients: ptr) -> bool:
    """Deliver the gradients of a list of tensors; steals `gradients`. Return false with an exception set.

    Python twin: eager/autograd/engine.py:Pass._deliver_list
    """
    given: capi.PyVarObject = capi.PySequence_Tuple(gradients)
    capi.decref(gradients)
    if unlikely(given == NULL):
        return False
    sent = True
    for k in range(edges.size):
        edge = capi.item(edges, k)
        if edge != capi.Py_None and k < given.size:
            sent = sent and send(entry, args, edge, capi.new_ref(capi.item(given, k)))
    capi.decref(given)
    return sent


@native
def apply_rule(rule: RuleObject, saved: ptr, gradient: ptr) -> ptr:
    """Return the result of a rule, a new reference; NULL with an exception set.

    Python twin: eager/autograd/node.py:apply_rule
    """
    fn, indices = rule.fn, rule.indices
    if fn == capi.Py_None:
        if capi.PyLong_AsLongLong(rule.constant) == -1:
            return capi.PyNumber_Negative(gradient)
        return capi.new_ref(gradient)
    values = stack(MOST_INDICES * 8)
    for k in range(capi.PyVarObject(indices).size):
        index = capi.PyLong_AsLongLong(capi.item(indices, k))
        store(ptr, values, k * 8, gradient if index < 0 else capi.item(saved, index))
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
    fit = capi.PyObject_Vectorcall(entry.fit, stack_of(gradient, edge.shape, edge.dtype), 3, NULL)
    capi.decref(gradient)
    return fit


@native
def has_right_type(g: base.Globals, edge: EdgeObject, gradient: base.TensorObject) -> bool:
    array: capi.Ndarray = gradient.array
    rank = capi.PyVarObject(edge.shape).size
    if capi.type_of(gradient) != g.tensor or i64(array.ndim) != rank:
        return False
    code = rt_operands.array_code(g, array)
    if code == base.FOREIGN or load(ptr, g.types, code * 8) != edge.dtype:
        return False
    for d in range(rank):
        if rt_arguments.whole_number(capi.item(edge.shape, d)) != load(i64, array.dims, d * 8):
            return False
    return bool(array.descr == load(ptr, g.descrs, code * 8))


# -- where gradients go ------------------------------------------------------------------------------------------------
@native
def deliver(entry: BackwardEntry, args: PassArguments, edge: EdgeObject, gradient: ptr) -> bool:
    """Deliver a gradient to its leaf or node; return false with an exception set.

    Python twin: eager/autograd/engine.py:Pass._deliver
    """
    g: base.Globals = entry.globals_
    target = edge.target
    if capi.type_of(target) == g.meta:
        return add_to_table(args.leaves, target, gradient)
    if capi.type_of(target) == g.node and edge.index == g.zero:
        given = capi.PyDict_GetItemWithError(args.pending, target)
        if given == NULL:
            return announce(entry, args, target, gradient)
        return add_to_table(given, g.zero, gradient)
    return capi.succeeds(args.deliver, stack_of(target, edge.index, gradient), 3)


@native
def add_to_table(table: ptr, key: ptr, gradient: ptr) -> bool:
    """Set an item of the pass's dict of gradients, or add to it; return false with an exception set."""
    there = capi.PyDict_GetItemWithError(table, key)
    if there == NULL:
        return bool(capi.PyDict_SetItem(table, key, gradient) == 0)
    capi.incref(there)
    total = capi.PyNumber_Add(there, gradient)
    capi.decref(there)
    if unlikely(total == NULL):
        return False
    failed = capi.PyDict_SetItem(table, key, total)
    capi.decref(total)
    return bool(failed == 0)


@native
def announce(entry: BackwardEntry, args: PassArguments, target: ptr, gradient: ptr) -> bool:
    """Store the first gradient for a result of a node, and put the node into the heap."""
    given = capi.PyDict_New()
    done = given != NULL and capi.PyDict_SetItem(given, entry.globals_.zero, gradient) == 0
    done = done and capi.PyDict_SetItem(args.pending, target, given) == 0
    capi.release(given)
    return done and push(entry, args.heap, target)


@native
def push(entry: BackwardEntry, heap: ptr, node: rt_record.NodeObject) -> bool:
    """Push a node onto the heap, whose items are `(-sequence, node)`."""
    number = capi.PyLong_FromLongLong(-capi.PyLong_AsLongLong(node.sequence))
    item = capi.make_tuple(capi.PyTuple_Type, stack_of(number, capi.new_ref(node)), 2)
    if unlikely(item == NULL):
        return False
    done = capi.succeeds(entry.push, stack_of(heap, item), 2)
    capi.decref(item)
    return done
