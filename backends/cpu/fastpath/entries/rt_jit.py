"""The native entry of jitted functions.

A specialization is a struct `S_*`. Its guard program checks the arguments and says where their data pointers and
scalars go; its build program makes the result structure. Both are arrays of 64-bit words, so a new specialization
compiles only its kernels. The first specialization whose guards hold runs; if there is none, Python runs the call.

The frame of a call: `buffers` (data pointers, passed to the code), `scalars` (8 bytes each) and `held` (owned
references, taken before anything can run Python code, released at the end).
"""

from __future__ import annotations

from ..compiler.dsl import NULL, call_i32, call_ptr, i64, likely, load, native, ptr, stack, store, unlikely
from ..compiler.structs import sizeof
from ..glue import jit_layout
from ..runtime import capi, rt_arguments, rt_entry, rt_memory
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_guards, rt_results

SCRATCH_ALIGNMENT = 64


@rt_entry.entry(records=False)
def jitted_call(entry: ptr, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of jitted functions.

    Python twin: jit/function.py:JitFunction.__call__
    """
    return run_first_match(entry, flags, args, count, kwnames)


@rt_entry.entry(records=False)
def recorded_call(entry: ptr, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Run the forward pass of a call that Python records; Python checks whether its tensors require gradients."""
    if unlikely(flags != base.PLAIN):
        return Outcome.FALL_BACK
    return run_first_match(entry, base.NO_GRAD, args, count, kwnames)


@native
def run_first_match(entry: jit_layout.JitEntry, flags: i64, args: ptr, positional: i64, kwnames: ptr) -> ptr:
    """Return the result of the first specialization whose guards hold; FALL_BACK if there is none."""
    spec: jit_layout.Specialization = entry.head
    while spec != NULL:
        spec.inside += 1  # keeps the struct alive, see JitStruct.unlink
        result = attempt(entry.globals_, spec, flags, args, positional, kwnames)
        following = spec.next
        spec.inside -= 1
        if likely(result != Outcome.FALL_BACK):
            return result
        spec = following
    return Outcome.FALL_BACK


@native
def attempt(
    g: base.Globals,
    spec: jit_layout.Specialization,
    flags: i64,
    args: ptr,
    positional: i64,
    kwnames: capi.PyVarObject,
) -> ptr:
    """Return the result of one specialization; FALL_BACK if its guards do not hold; NULL with an exception set."""
    named = kwnames.size if kwnames != NULL else 0
    if unlikely(spec.flags > flags) or spec.keywords != named or spec.args != positional + named:
        return Outcome.FALL_BACK
    for i in range(named):
        if not rt_arguments.string_matches(capi.item(kwnames, i), load(ptr, spec.names, i * 8)):
            return Outcome.FALL_BACK
    words = spec.buffers + spec.scalars + spec.held
    small = stack(jit_layout.INLINE_WORDS * 8)
    memory = small
    if unlikely(words > jit_layout.INLINE_WORDS):
        memory = capi.PyMem_RawMalloc(words * 8)
        if memory == NULL:
            return capi.PyErr_NoMemory()
    frame: jit_layout.CallFrame = stack(sizeof(jit_layout.CallFrame))
    frame.globals_, frame.flags, frame.program, frame.count = g, flags, spec.guards, 0
    frame.buffers, frame.scalars = memory, memory + spec.buffers * 8
    frame.held = memory + (spec.buffers + spec.scalars) * 8
    frame.device, frame.stream = spec.device, NULL
    result: ptr = Outcome.FALL_BACK
    if likely(rt_guards.check_guards(frame, spec, args)):
        spec.hits += 1
        g.jit_clock += 1
        spec.used = g.jit_clock
        result = run(frame, spec)
    capi.release_all(frame.held, frame.count)
    if unlikely(words > jit_layout.INLINE_WORDS):
        capi.PyMem_RawFree(memory)
    return result


@native
def run(frame: jit_layout.CallFrame, spec: jit_layout.Specialization) -> ptr:
    """Allocate results and scratch memory, run the code, build the result.

    Python twin: backends/cpu/executable.py:CpuExecutable.run
    """
    if unlikely(spec.device != NULL):
        return run_on_device(frame, spec)
    buffers, first = frame.buffers, frame.count
    if unlikely(spec.writes != 0 and not rt_results.can_write(frame, spec)):
        return rt_results.count_miss(spec)
    frame.program = spec.build
    if unlikely(spec.main == NULL):  # there is nothing to compute
        return build_and_write(frame, spec, first)
    if unlikely(not allocate_results(frame, spec)):
        return NULL
    size = spec.workspace
    scratch: ptr = NULL
    if size != 0:
        scratch = spec.spare  # that of the last call; a nested call allocates its own
        spec.spare = NULL
        if unlikely(scratch == NULL):
            scratch = capi.aligned_alloc(SCRATCH_ALIGNMENT, size)
            if unlikely(scratch == NULL):
                return capi.PyErr_NoMemory()
        store(ptr, buffers, spec.workspace_at * 8, scratch)
    store(ptr, buffers, spec.workspace_at * 8 + 8, spec.tables)
    failed = call_i32(spec.main, buffers, frame.scalars)
    if unlikely(spec.spare != NULL):
        capi.free(scratch)
    elif size != 0:
        spec.spare = scratch
    if unlikely(failed != 0):
        return rt_results.retry_failed_writes(spec)
    return build_and_write(frame, spec, first)


@native
def build_and_write(frame: jit_layout.CallFrame, spec: jit_layout.Specialization, first: i64) -> ptr:
    """Build the result, then write the new contents of arguments, from which results may be copied."""
    result = build(frame, frame.held + first * 8)
    if unlikely(spec.writes != 0 and result != NULL and not rt_results.write_back(frame, spec)):
        capi.decref(result)
        return NULL
    return result


@native
def run_on_device(frame: jit_layout.CallFrame, spec: jit_layout.Specialization) -> ptr:
    """Allocate the results, enqueue the code's work on the thread's stream, and build the result.

    Return FALL_BACK if Python must run the call.
    """
    device, stream = frame.device, rt_guards.stream_of(frame)
    if unlikely(stream == NULL):
        return rt_results.count_miss(spec)
    first, at = frame.count, spec.workspace_at
    buffers = frame.buffers
    if unlikely(not make_device_results(frame, spec, device, stream)):
        return NULL
    strategy = jit_layout.DeviceCalls(device).launches
    store(ptr, buffers, at * 8 + 8, spec.tables)
    store(ptr, buffers, at * 8 + 16, strategy)
    store(ptr, buffers, at * 8 + 24, load(ptr, stream, jit_layout.STREAM_HANDLE))
    if unlikely(call_i32(load(ptr, strategy, 0), buffers, frame.scalars) != 0):
        if capi.PyErr_Occurred() != NULL:
            return NULL
        return rt_results.count_miss(spec)  # Python retries, and raises the driver's error
    frame.program = spec.build
    return build(frame, frame.held + first * 8)


@native
def make_device_results(
    frame: jit_layout.CallFrame, spec: jit_layout.Specialization, device: jit_layout.DeviceCalls, stream: ptr
) -> bool:
    """Allocate tensors for the results, then scratch memory, held by the frame; false with an exception set."""
    count = spec.outputs
    where = frame.buffers + (spec.workspace_at - count) * 8
    home, records = device.device, device.results
    for i in range(count):
        made = call_ptr(device.result, home, stream, load(ptr, records, i * 8), where + i * 8)
        if unlikely(made == NULL):
            return False
        rt_guards.adopt_reference(frame, made)
    scratch = device.scratch
    if scratch != NULL:
        block = call_ptr(device.block, home, stream, scratch, where + count * 8)
        if unlikely(block == NULL):
            return False
        rt_guards.adopt_reference(frame, block)
    return True


@native
def allocate_results(frame: jit_layout.CallFrame, spec: jit_layout.Specialization) -> bool:
    """Allocate arrays for the results, held by the frame; some are stored in the memory of written arguments."""
    g, table = frame.globals_, spec.output_table
    for i in range(spec.outputs):
        item: jit_layout.Output = table + i * sizeof(jit_layout.Output)
        array: capi.Ndarray = NULL
        if unlikely(item.written != 0):
            array = capi.new_ref(load(ptr, frame.held, (item.written - 1) * 8))
        else:
            array = rt_memory.new_laid_out(g, item.descr, item.rank, item.dims, item.strides, item.nbytes)
        if unlikely(array == NULL):
            return False
        rt_guards.adopt_reference(frame, array)
        store(ptr, frame.buffers, item.at * 8, array.data)
    return True


# Result structures ------------------------------------------------------------------------------------------------
@native
def build(frame: jit_layout.CallFrame, results: ptr) -> ptr:
    """Return one object of the result structure, a new reference; NULL with an exception set.

    Python twin: jit/outputs.py:OutputTree.build
    """
    kind, what = rt_guards.next_word(frame), rt_guards.next_word(frame)
    if likely(kind == jit_layout.BuildCode.RESULT):
        return base.make_tensor(frame.globals_, capi.new_ref(load(ptr, results, what * 8)))
    if kind == jit_layout.BuildCode.HELD:
        return capi.new_ref(load(ptr, frame.held, what * 8))
    if kind == jit_layout.BuildCode.SAME:
        return capi.new_ref(ptr(what))
    if kind == jit_layout.BuildCode.DICT:
        return build_dict(frame, results, what)
    if kind == jit_layout.BuildCode.SHARED:
        return rt_results.share_result(frame, results + what * 8)
    if kind == jit_layout.BuildCode.VIEW:
        return rt_results.make_view(frame, results, ptr(what))
    if kind >= jit_layout.BuildCode.FLOAT:
        return rt_results.make_number(kind, frame.scalars + what * 8)
    return build_sequence(frame, results, kind, what)


@native
def build_sequence(frame: ptr, results: ptr, kind: i64, count: i64) -> ptr:
    """Return a list, a tuple, or (BuildCode.CALL) the result of a callable applied to the items."""
    maker: ptr = NULL
    if kind == jit_layout.BuildCode.CALL:
        maker = ptr(rt_guards.next_word(frame))
    made = capi.PyList_New(count) if kind == jit_layout.BuildCode.LIST else capi.PyTuple_New(count)
    if unlikely(made == NULL):
        return NULL
    items = capi.sequence_items(made)
    for i in range(count):
        item = build(frame, results)
        if unlikely(item == NULL):
            capi.decref(made)
            return NULL
        store(ptr, items, i * 8, item)
    if kind != jit_layout.BuildCode.CALL:
        return made
    result = capi.PyObject_Vectorcall(maker, items, count, NULL)
    capi.decref(made)
    return result


@native
def build_dict(frame: ptr, results: ptr, count: i64) -> ptr:
    """Return a filled copy of the program's dict of keys: unlike a new dict it need not grow."""
    made = capi.PyDict_Copy(ptr(rt_guards.next_word(frame)))
    if unlikely(made == NULL):
        return NULL
    for _i in range(count):
        key = ptr(rt_guards.next_word(frame))
        item = build(frame, results)
        failed = i64(-1)
        if likely(item != NULL):
            failed = i64(capi.PyDict_SetItem(made, key, item))
            capi.decref(item)
        if unlikely(failed != 0):
            capi.decref(made)
            return NULL
    return made
