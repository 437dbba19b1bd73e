"""The native entry of operators that declare a native kernel (`operators/declare/native_kernel.py`).

One entry serves all of them. It has an inline cache of plans (`rt_loops.LoopPlan`): the key of a call holds the dtypes,
sizes and strides of its tensors, the kinds of numbers in the place of tensors, and the values of its other arguments.
Python runs the first call with a key, and makes the plan at the second one. A slot refers to its plan through a list of
the operator's stub: to None where Python runs all calls, to an ellipsis where the key was seen once. A call holds a
reference to the plan that it runs.

Calls whose operands are longer or shorter each time never have a second one. After the slots of plans there are as many
of *symbolic plans*, each for the calls that differ by one size alone, by a multiple of `SIZE_STEP` and within a power
of two. The words of their plans are affine functions of the size, which Python finds and checks; the plan of another
size is computed from them.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..compiler.structs import Struct, array, sizeof
from ..runtime import capi, rt_entry, rt_gil, rt_keys, rt_layouts, rt_loops, rt_memory, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_cached_views

MOST_TENSORS = 4
MOST_RESULTS = 4
MOST_RANK = 8
MOST_LETTERS = 16  # of a string in a key
SMALL: i64 = 1024  # bytes of scratch memory that a call has on its stack
TENSOR, STRING, NUMBER = 6, 7, 8  # tags of keys; those of `rt_keys` are smaller
CELL = 16  # bytes of memory for a number
LEAST_SIZE: i64 = 16  # of a symbolic plan: below it there are few sizes
SIZE_STEP: i64 = 4  # between the sizes of a symbolic plan: their halves are affine functions too
VARIES: i64 = -1  # in the key of a symbolic plan, instead of a size
CONTIGUOUS: i64 = 1 << 32  # there, in the tag of an operand whose strides the key does not have


SYMBOLIC = rt_cached_views.SLOTS * rt_cached_views.LIST_SLOT_SIZE


class LoopEntry(base.OperatorEntry):
    """The data of the entry of one operator."""

    operands: i64  # which positional arguments are tensors, as bits
    changes: i64  # of the default dtype
    make_symbolic: ptr  # returns the symbolic plan of calls, given one of them


class Work(Struct):
    """The operands of one call, and its results."""

    tensors: i64  # how many operands there are
    arrays: ptr = array(
        MOST_TENSORS + MOST_RESULTS
    )  # of the operands (NULL: a number), then those of the results
    numbers: ptr = array(MOST_TENSORS)  # the Python numbers
    cells: ptr = array(MOST_TENSORS * CELL // 8)  # their values


@rt_entry.entry(converts=0)
def loop_call(entry: LoopEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry: tensors by position, and booleans, integers, None and short strings by position or by name.

    Python twin: backends/cpu/native_kernels/eager.py:call
    """
    g: base.Globals = entry.globals_
    key, work = stack(rt_keys.MAX_KEY * 8), stack(sizeof(Work))
    length = write_key(entry, args, count, kwnames, flags, key, work)
    if unlikely(length == rt_keys.INVALID):
        return Outcome.FALL_BACK
    slot: rt_cached_views.CachedList = rt_cached_views.find_slot(entry.variants, key, length)
    if unlikely(slot.length != length or not rt_layouts.equal_integers(slot.key, key, length)):
        made = specialize(entry, args, count, kwnames, key, length, work)
        if unlikely(i64(made) <= 0):
            return made
        put_plan(slot, key, length, made)
    plan: capi.PyBytes = load(ptr, slot.item, 0)
    if unlikely(plan == capi.Py_None):
        return Outcome.FALL_BACK
    if unlikely(plan == capi.Py_Ellipsis):
        return make_plan(entry, args, count, kwnames, flags, key, length)
    program: rt_loops.LoopPlan = plan + capi.PyBytes.items
    if unlikely(program.tensors != load(i64, work, Work.tensors)):
        return Outcome.FALL_BACK
    results = program.results
    history = rt_record.is_recorded(g, flags, args, count)
    if unlikely(history and (results != 1 or kwnames != NULL)):
        return Outcome.FALL_BACK
    result = compute(g, plan, work)
    if unlikely(i64(result) <= 0):
        return result
    entry.calls += 1
    if unlikely(history):
        values = stack(rt_cached_views.MOST_ARGUMENTS * 8 + 8)
        capi.memcpy(values, args, count * 8)
        store(ptr, values, count * 8, result)
        return rt_record.record_call(entry, values, count)
    return result


# Keys ---------------------------------------------------------------------------------------------------------------
@native
def write_key(
    entry: LoopEntry, args: ptr, count: i64, kwnames: capi.PyVarObject, flags: i64, key: ptr, work: Work
) -> i64:
    """Write all that a plan depends on, and the arrays of the tensors; return the length of the key, or INVALID."""
    work.tensors = 0
    names = kwnames.size if unlikely(kwnames != NULL) else i64(0)
    if unlikely(count < 1 or count + names > rt_cached_views.MOST_ARGUMENTS):
        return rt_keys.INVALID
    store(i64, key, 0, count)
    used: i64 = 1
    for k in range(count + names):
        x = load(ptr, args, k * 8)
        if unlikely(k >= count):
            name = capi.item(kwnames, k - count)
            if used >= rt_keys.MAX_KEY or not rt_keys.has_item(entry.names, name):
                return rt_keys.INVALID
            store(ptr, key, used * 8, name)
            used += 1
        is_operand = k < count and (entry.operands >> k) & 1 != 0
        if likely(is_operand and x != capi.Py_None):
            used = encode_operand(entry.globals_, x, flags, key, used, work)
        else:
            used = encode_argument(x, key, used)
        if unlikely(used == rt_keys.INVALID):
            return rt_keys.INVALID
    return used


@native
def encode_operand(g: base.Globals, x: ptr, flags: i64, key: ptr, used: i64, work: Work) -> i64:
    """Encode a plain tensor, or the kind of a number, at an index of the key: the next free index, or INVALID."""
    index = work.tensors
    if unlikely(index >= MOST_TENSORS or used >= rt_keys.MAX_KEY):
        return rt_keys.INVALID
    where = work + Work.arrays + index * 8
    code = rt_operands.operand_code(g, x, flags, where)
    if unlikely(code < 0):
        return rt_keys.INVALID
    work.tensors = index + 1
    operand: capi.Ndarray = load(ptr, where, 0)
    if unlikely(operand == NULL):
        store(ptr, work, Work.numbers + index * 8, x)
        store(i64, key, used * 8, NUMBER | code << 8)
        return used + 1
    rank = i64(operand.ndim)
    if unlikely(rank > MOST_RANK or used + 1 + 2 * rank > rt_keys.MAX_KEY):
        return rt_keys.INVALID
    store(i64, key, used * 8, TENSOR | code << 8 | rank << 16)
    capi.memcpy(key + used * 8 + 8, operand.dims, rank * 8)
    capi.memcpy(key + (used + rank) * 8 + 8, operand.strides, rank * 8)
    return used + 1 + 2 * rank


@native
def encode_argument(x: ptr, key: ptr, used: i64) -> i64:
    """Encode an argument that is not a tensor: the next free index, or INVALID."""
    if likely(capi.type_of(x) != capi.PyUnicode_Type):
        return rt_keys.encode_value(x, NULL, key, used)
    size = stack(8)
    text = capi.PyUnicode_AsUTF8AndSize(x, size)
    if unlikely(text == NULL):
        capi.PyErr_Clear()
        return rt_keys.INVALID
    length = load(i64, size, 0)
    if unlikely(length > MOST_LETTERS or used + 1 + MOST_LETTERS // 8 > rt_keys.MAX_KEY):
        return rt_keys.INVALID
    store(i64, key, used * 8, STRING | length << 8)
    rt_layouts.fill_integers(key + used * 8 + 8, MOST_LETTERS // 8, 0)
    capi.memcpy(key + used * 8 + 8, text, length)
    return used + 1 + MOST_LETTERS // 8


@noinline
def make_plan(
    entry: LoopEntry, args: ptr, count: i64, kwnames: ptr, flags: i64, key: ptr, length: i64
) -> ptr:
    """Let Python make the plan of a key, and the call; the plan is used from the next call on."""
    changes = entry.changes
    plan = capi.PyObject_Vectorcall(entry.miss, args, count, kwnames)
    if unlikely(plan == NULL):
        return NULL
    # another thread may have set the default dtype, of which the plan or the slots are
    if unlikely(plan == capi.Py_Ellipsis or entry.changes != changes):
        capi.decref(plan)
        return Outcome.FALL_BACK
    again, work = stack(rt_keys.MAX_KEY * 8), stack(sizeof(Work))
    now = write_key(entry, args, count, kwnames, flags, again, work)
    # another thread may have given a tensor other memory meanwhile, and even its former memory again
    is_same = now == length and rt_layouts.equal_integers(again, key, length)
    if unlikely(not is_same or not (plan == capi.Py_None or is_made_for(entry.globals_, plan, work))):
        capi.decref(plan)
        return Outcome.FALL_BACK
    put_plan(rt_cached_views.find_slot(entry.variants, key, length), key, length, plan)
    return Outcome.FALL_BACK


# Symbolic plans -------------------------------------------------------------------------------------------------------
@noinline
def specialize(
    entry: LoopEntry, args: ptr, count: i64, kwnames: ptr, key: ptr, length: i64, work: Work
) -> ptr:
    """Return a new plan for a key, from a symbolic one; or an `Outcome`, and remember that the key was seen."""
    g, changes, table = entry.globals_, entry.changes, entry.variants + SYMBOLIC
    general = stack(rt_keys.MAX_KEY * 8)
    size = write_symbolic_key(entry, args, count, key, length, work, general)
    if size != 0:
        slot: rt_cached_views.CachedList = rt_cached_views.find_slot(table, general, length + 1)
        if slot.length != length + 1 or not rt_layouts.equal_integers(slot.key, general, length + 1):
            put_plan(slot, general, length + 1, capi.new_ref(capi.Py_Ellipsis))
        elif load(ptr, slot.item, 0) == capi.Py_Ellipsis:
            symbolic = capi.PyObject_Vectorcall(entry.make_symbolic, args, count, kwnames)
            if unlikely(symbolic == NULL):
                return NULL
            if unlikely(symbolic == capi.Py_Ellipsis or entry.changes != changes):
                capi.decref(symbolic)
                return Outcome.FALL_BACK
            put_plan(rt_cached_views.find_slot(table, general, length + 1), general, length + 1, symbolic)
            return Outcome.FALL_BACK  # Python code has run, which may have changed the tensors
        elif load(ptr, slot.item, 0) != capi.Py_None:
            plan = write_plan(load(ptr, slot.item, 0), size)
            if likely(plan != NULL and is_made_for(g, plan, work)):
                return plan
            if plan == NULL:
                return Outcome.RETRY
            capi.decref(plan)
    put_plan(
        rt_cached_views.find_slot(entry.variants, key, length), key, length, capi.new_ref(capi.Py_Ellipsis)
    )
    return Outcome.FALL_BACK


@native
def write_symbolic_key(
    entry: LoopEntry, args: ptr, count: i64, key: ptr, length: i64, work: Work, general: ptr
) -> i64:
    """Write the key of a symbolic plan: that of a call without one size, but the number of its bits, and its last ones.

    The size is that of the first axis of the first argument that is long enough; other axes of this size vary with it,
    and the strides of contiguous operands with them.

    Returns:
        The size; 0 if the first argument is not such a tensor.
    """
    tag, size = load(i64, key, 8), i64(0)
    if entry.operands & 1 == 0 or tag & 0xFF != TENSOR or length + 1 >= rt_keys.MAX_KEY:
        return 0
    for axis in range(tag >> 16):
        if size == 0 and load(i64, key, 16 + axis * 8) >= LEAST_SIZE:
            size = load(i64, key, 16 + axis * 8)
    if size == 0:
        return 0
    bits, rest = i64(0), size
    while rest != 0:
        bits, rest = bits + 1, rest >> 1
    capi.memcpy(general, key, length * 8)
    store(i64, general, length * 8, bits * SIZE_STEP + size % SIZE_STEP)
    at, k, tensor = i64(1), i64(0), i64(0)
    while k < count and (entry.operands >> k) & 1 != 0 and load(ptr, args, k * 8) != capi.Py_None:
        at += generalize_operand(load(ptr, work, Work.arrays + tensor * 8), size, general + at * 8)
        tensor += 1
        k += 1
    return size


@native
def generalize_operand(operand: capi.Ndarray, size: i64, words: ptr) -> i64:
    """Overwrite what varies with a size in the part of a key that an operand has; return the length of the part."""
    if operand == NULL:
        return 1  # a number
    rank = i64(operand.ndim)
    for axis in range(rank):
        if load(i64, operand.dims, axis * 8) == size:
            store(i64, words, 8 + axis * 8, VARIES)
    if i64(operand.flags & capi.C_CONTIGUOUS) != 0:
        store(i64, words, 0, load(i64, words) | CONTIGUOUS)
        rt_layouts.fill_integers(words + (1 + rank) * 8, rank, 0)
    return 1 + 2 * rank


@native
def write_plan(symbolic: capi.PyBytes, size: i64) -> ptr:
    """Return a new plan for a size; NULL with an exception set."""
    half = symbolic.size // 2
    plan = capi.PyBytes_FromStringAndSize(NULL, half)
    if likely(plan != NULL):
        words = symbolic + capi.PyBytes.items
        for at in range(half // 8):
            word = load(i64, words, at * 8) + size // SIZE_STEP * load(i64, words, half + at * 8)
            store(i64, plan + capi.PyBytes.items, at * 8, word)
    return plan


@native
def is_made_for(g: ptr, plan_bytes: capi.PyBytes, work: Work) -> bool:
    """Return whether the tensors of a call have the dtypes, sizes and strides that a plan was made for."""
    plan: rt_loops.LoopPlan = plan_bytes + capi.PyBytes.items
    if plan.tensors != work.tensors:
        return False
    for k in range(work.tensors):
        array: capi.Ndarray = load(ptr, work, Work.arrays + k * 8)
        operand: rt_loops.LoopOperand = rt_loops.operand_of(plan, k)
        if array == NULL:
            continue  # a number, which does not change
        if rt_operands.array_code(g, array) != operand.code or i64(array.ndim) != operand.rank:
            return False
        if not rt_layouts.equal_integers(plan + operand.dims, array.dims, operand.rank):
            return False
        if not rt_layouts.equal_integers(plan + operand.steps, array.strides, operand.rank):
            return False
    return True


@native
def put_plan(slot: rt_cached_views.CachedList, key: ptr, length: i64, plan: ptr) -> None:
    """Overwrite a slot, which takes over the plan; the GIL is held, and no Python code runs before all is written."""
    before = load(ptr, slot.item, 0)
    rt_cached_views.write_slot_key(slot, key, length)
    store(ptr, slot.item, 0, plan)
    capi.decref(before)


# Calls --------------------------------------------------------------------------------------------------------------
@native
def compute(g: base.Globals, held: capi.PyBytes, work: Work) -> ptr:
    """Run a plan: return a tensor, or a tuple of tensors; or an `Outcome`."""
    plan: rt_loops.LoopPlan = held + capi.PyBytes.items
    tensors, results = work.tensors, plan.results
    made = work + Work.arrays + tensors * 8
    # the loop may run without the GIL, or run Python code (warnings): the tensors and the plan may be dropped
    capi.incref(held)
    capi.hold_all(work + Work.arrays, tensors)
    outcome = make_results(g, plan, made)
    if likely(outcome == rt_entry.DONE):
        outcome = run(plan, work)
        if unlikely(outcome != rt_entry.DONE):
            capi.release_all(made, results)
    capi.release_all(work + Work.arrays, tensors)
    capi.decref(held)
    return wrap_results(g, made, results) if likely(outcome == rt_entry.DONE) else ptr(outcome)


@native
def make_results(g: base.Globals, plan: rt_loops.LoopPlan, made: ptr) -> i64:
    """Allocate the arrays of the results; return DONE, or RETRY with an exception set."""
    for k in range(plan.results):
        result: rt_loops.LoopOperand = rt_loops.operand_of(plan, plan.tensors + plan.numbers + k)
        fresh = rt_memory.new_array(g, result.descr, result.rank, plan + result.dims, result.nbytes)
        if unlikely(fresh == NULL):
            capi.release_all(made, k)
            return Outcome.RETRY
        store(ptr, made, k * 8, fresh)
    return rt_entry.DONE


@native
def run(plan: rt_loops.LoopPlan, work: Work) -> i64:
    """Run a plan on the arrays of a call; return DONE or an `Outcome`."""
    memory, small = stack((MOST_TENSORS + MOST_RESULTS) * 8), stack(SMALL)
    for k in range(work.tensors + plan.results):
        operand: capi.Ndarray = load(ptr, work, Work.arrays + k * 8)
        if likely(operand != NULL):
            store(ptr, memory, k * 8, operand.data)
        else:
            store(ptr, memory, k * 8, write_number(plan, work, k))
            if unlikely(load(ptr, memory, k * 8) == NULL):
                return Outcome.FALL_BACK
    scratch = small if plan.scratch <= SMALL else capi.malloc(plan.scratch)
    if unlikely(scratch == NULL):
        return Outcome.FALL_BACK
    saved = rt_gil.release_gil(plan.is_long != 0)
    failed = rt_loops.run_plan(plan, memory, scratch)
    rt_gil.acquire_gil(saved)
    if unlikely(scratch != small):
        capi.free(scratch)
    if plan.may_raise != 0 and unlikely(capi.PyErr_Occurred() != NULL):
        return Outcome.RETRY
    return Outcome.FALL_BACK if unlikely(failed != 0) else rt_entry.DONE


@noinline
def write_number(plan: ptr, work: Work, k: i64) -> ptr:
    """Write the k-th operand, a number, as an element of its dtype; return its address, or NULL if it does not fit."""
    x, cell = load(ptr, work, Work.numbers + k * 8), work + Work.cells + k * CELL
    code = rt_loops.LoopOperand(rt_loops.operand_of(plan, k)).code
    return cell if rt_operands.write_scalar(x, rt_operands.scalar_code(x), code, cell) else ptr(0)


@native
def wrap_results(g: ptr, made: ptr, results: i64) -> ptr:
    """Return a tensor of an array, or a tuple of tensors, which take over the arrays; on failure NULL or RETRY."""
    if likely(results == 1):
        return base.make_tensor(g, load(ptr, made, 0))
    for k in range(results):
        tensor = base.make_tensor(g, load(ptr, made, k * 8))
        store(ptr, made, k * 8, tensor)
        if unlikely(tensor == NULL):
            capi.release_all(made, results)
            return NULL
    return capi.make_tuple(capi.PyTuple_Type, made, results)
