"""Native runtime: the entry of jitted functions.

A specialization is a struct `S_*`. Its guard program checks the arguments and says where their data pointers and
scalars
go; its build program makes the result structure. Both are arrays of 64-bit words, so a new specialization compiles only
its kernels. The first specialization whose guards hold runs; if there is none, Python runs the call.

The frame of a call: `buffers` (data pointers, passed to the code), `scalars` (8 bytes each) and `held` (owned
references, taken before anything can run Python code, released at the end).
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    call_i32,
    call_ptr,
    extern,
    i64,
    likely,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_i64,
    store_ptr,
    unlikely,
)
from ..glue.jit_layout import (
    F_BUFFERS,
    F_COUNT,
    F_DEVICE,
    F_FLAGS,
    F_GLOBALS,
    F_HELD,
    F_PROGRAM,
    F_SCALARS,
    F_SIZE,
    F_STREAM,
    INLINE_WORDS,
    J_HEAD,
    O_AT,
    O_BYTES,
    O_DESCR,
    O_DIMS,
    O_RANK,
    O_SIZE,
    S_ARGS,
    S_BUFFERS,
    S_BUILD,
    S_DEVICE,
    S_FLAGS,
    S_GUARDS,
    S_HELD,
    S_HITS,
    S_INSIDE,
    S_KEYWORDS,
    S_MAIN,
    S_NAMES,
    S_NEXT,
    S_OUTPUT_TABLE,
    S_OUTPUTS,
    S_SCALARS,
    S_SPARE,
    S_TABLES,
    S_USED,
    S_WORKSPACE,
    S_WORKSPACE_AT,
    STREAM_HANDLE,
    V_BLOCK,
    V_DEVICE,
    V_RESULT,
    V_RESULTS,
    V_SCRATCH,
    V_WAY,
)
from ..glue.layout import ND_DATA, OB_SIZE, TUPLE_ITEMS
from .rt_arguments import string_matches
from .rt_base import (
    ARGS_MASK,
    D_GLOBALS,
    G_JIT_CLOCK,
    NO_GRAD,
    PLAIN,
    PyErr_Occurred,
    entry_data,
    fall_back,
    thread_flags,
)
from .rt_build import build
from .rt_guards import adopt_reference, check_guards, release_references, stream_of
from .rt_memory import new_array

PyErr_NoMemory = extern("PyErr_NoMemory", "ptr()")
aligned_alloc = extern("aligned_alloc", "ptr(i64, i64)")
free = extern("free", "None(ptr)")
SCRATCH_ALIGNMENT = 64
PyMem_RawMalloc = extern("PyMem_RawMalloc", "ptr(i64)")
PyMem_RawFree = extern("PyMem_RawFree", "None(ptr)")


@native
def jitted_call(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of jitted functions.

    Python twin: jit/function.py:JitFunction.__call__
    """
    desc = entry_data(self)
    flags = thread_flags(load_ptr(desc, D_GLOBALS))
    if likely(flags <= NO_GRAD):
        result = run_first_match(desc, flags, args, nargsf & ARGS_MASK, kwnames)
        if likely(result != ptr(-1)):
            return result
    return fall_back(desc, args, nargsf, kwnames)


@native
def recorded_call(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Run the forward pass of a call that Python records; Python checks whether its tensors require gradients."""
    desc = entry_data(self)
    if likely(thread_flags(load_ptr(desc, D_GLOBALS)) == PLAIN):
        result = run_first_match(desc, NO_GRAD, args, nargsf & ARGS_MASK, kwnames)
        if likely(result != ptr(-1)):
            return result
    return fall_back(desc, args, nargsf, kwnames)


@native
def run_first_match(desc: ptr, flags: i64, args: ptr, positional: i64, kwnames: ptr) -> ptr:
    """Return the result of the first specialization whose guards hold; -1 if there is none."""
    spec = load_ptr(desc, J_HEAD)
    while spec != NULL:
        store_i64(
            spec, S_INSIDE, load_i64(spec, S_INSIDE) + 1
        )  # keeps the struct alive, see JitStruct.unlink
        result = attempt(load_ptr(desc, D_GLOBALS), spec, flags, args, positional, kwnames)
        following = load_ptr(spec, S_NEXT)
        store_i64(spec, S_INSIDE, load_i64(spec, S_INSIDE) - 1)
        if likely(result != ptr(-1)):
            return result
        spec = following
    return ptr(-1)


@native
def attempt(g: ptr, spec: ptr, flags: i64, args: ptr, positional: i64, kwnames: ptr) -> ptr:
    """Return the result of one specialization; -1 if its guards do not hold; NULL with an exception set."""
    named: i64 = 0
    if unlikely(load_i64(spec, S_FLAGS) > flags):
        return ptr(-1)
    if kwnames != NULL:
        named = load_i64(kwnames, OB_SIZE)
    if load_i64(spec, S_KEYWORDS) != named or load_i64(spec, S_ARGS) != positional + named:
        return ptr(-1)
    for i in range(named):
        if not string_matches(
            load_ptr(kwnames, TUPLE_ITEMS + i * 8), load_ptr(load_ptr(spec, S_NAMES), i * 8)
        ):
            return ptr(-1)
    words = load_i64(spec, S_BUFFERS) + load_i64(spec, S_SCALARS) + load_i64(spec, S_HELD)
    small = stack(INLINE_WORDS * 8)
    memory = small
    if unlikely(words > INLINE_WORDS):
        memory = PyMem_RawMalloc(words * 8)
        if memory == NULL:
            return PyErr_NoMemory()
    frame = stack(F_SIZE)
    store_ptr(frame, F_GLOBALS, g)
    store_i64(frame, F_FLAGS, flags)
    store_ptr(frame, F_PROGRAM, load_ptr(spec, S_GUARDS))
    store_ptr(frame, F_BUFFERS, memory)
    store_ptr(frame, F_SCALARS, memory + load_i64(spec, S_BUFFERS) * 8)
    store_ptr(frame, F_HELD, memory + (load_i64(spec, S_BUFFERS) + load_i64(spec, S_SCALARS)) * 8)
    store_i64(frame, F_COUNT, 0)
    store_ptr(frame, F_DEVICE, load_ptr(spec, S_DEVICE))
    store_ptr(frame, F_STREAM, NULL)
    result = ptr(-1)
    if likely(check_guards(frame, spec, args)):
        store_i64(spec, S_HITS, load_i64(spec, S_HITS) + 1)
        time = load_i64(g, G_JIT_CLOCK) + 1
        store_i64(g, G_JIT_CLOCK, time)
        store_i64(spec, S_USED, time)
        result = run(frame, spec)
    release_references(frame)
    if unlikely(words > INLINE_WORDS):
        PyMem_RawFree(memory)
    return result


@native
def run(frame: ptr, spec: ptr) -> ptr:
    """Allocate results and scratch memory, run the code, build the result.

    Python twin: backends/cpu/executable.py:CpuExecutable.run
    """
    if unlikely(load_ptr(spec, S_DEVICE) != NULL):
        return run_on_device(frame, spec)
    buffers = load_ptr(frame, F_BUFFERS)
    first = load_i64(frame, F_COUNT)
    if unlikely(not allocate_results(frame, spec)):
        return NULL
    size = load_i64(spec, S_WORKSPACE)
    scratch: ptr = NULL
    if size != 0:
        scratch = acquire_scratch(spec, size)
        if unlikely(scratch == NULL):
            return PyErr_NoMemory()
        store_ptr(buffers, load_i64(spec, S_WORKSPACE_AT) * 8, scratch)
    store_ptr(buffers, load_i64(spec, S_WORKSPACE_AT) * 8 + 8, load_ptr(spec, S_TABLES))
    failed = call_i32(load_ptr(spec, S_MAIN), buffers, load_ptr(frame, F_SCALARS))
    if size != 0:
        release_scratch(spec, scratch)
    if unlikely(failed != 0):
        return NULL
    program = stack(8)
    store_ptr(program, 0, load_ptr(spec, S_BUILD))
    return build(frame, program, load_ptr(frame, F_HELD) + first * 8)


@native
def run_on_device(frame: ptr, spec: ptr) -> ptr:
    """Allocate the results, enqueue the code's work on the thread's stream, and build the result.

    Return -1 if Python must run the call.
    """
    device, stream = load_ptr(frame, F_DEVICE), stream_of(frame)
    if unlikely(stream == NULL):
        return count_miss(spec)
    first, at = load_i64(frame, F_COUNT), load_i64(spec, S_WORKSPACE_AT)
    buffers = load_ptr(frame, F_BUFFERS)
    if unlikely(not make_device_results(frame, spec, device, stream)):
        return NULL
    way = load_ptr(device, V_WAY)
    store_ptr(buffers, at * 8 + 8, load_ptr(spec, S_TABLES))
    store_ptr(buffers, at * 8 + 16, way)
    store_ptr(buffers, at * 8 + 24, load_ptr(stream, STREAM_HANDLE))
    if unlikely(call_i32(load_ptr(way, 0), buffers, load_ptr(frame, F_SCALARS)) != 0):
        if PyErr_Occurred() != NULL:
            return NULL
        return count_miss(spec)  # Python retries, and raises the driver's error
    program = stack(8)
    store_ptr(program, 0, load_ptr(spec, S_BUILD))
    return build(frame, program, load_ptr(frame, F_HELD) + first * 8)


@native
def make_device_results(frame: ptr, spec: ptr, device: ptr, stream: ptr) -> bool:
    """Allocate tensors for the results, then scratch memory, held by the frame; false with an exception set."""
    count = load_i64(spec, S_OUTPUTS)
    where = load_ptr(frame, F_BUFFERS) + (load_i64(spec, S_WORKSPACE_AT) - count) * 8
    home, records = load_ptr(device, V_DEVICE), load_ptr(device, V_RESULTS)
    for i in range(count):
        made = call_ptr(load_ptr(device, V_RESULT), home, stream, load_ptr(records, i * 8), where + i * 8)
        if unlikely(made == NULL):
            return False
        adopt_reference(frame, made)
    scratch = load_ptr(device, V_SCRATCH)
    if scratch != NULL:
        block = call_ptr(load_ptr(device, V_BLOCK), home, stream, scratch, where + count * 8)
        if unlikely(block == NULL):
            return False
        adopt_reference(frame, block)
    return True


@native
def count_miss(spec: ptr) -> ptr:
    """Return -1 for a call that Python must run after all; undo its hit."""
    store_i64(spec, S_HITS, load_i64(spec, S_HITS) - 1)
    return ptr(-1)


@native
def allocate_results(frame: ptr, spec: ptr) -> bool:
    """Allocate arrays for the results, held by the frame."""
    g, table = load_ptr(frame, F_GLOBALS), load_ptr(spec, S_OUTPUT_TABLE)
    for i in range(load_i64(spec, S_OUTPUTS)):
        item = table + i * O_SIZE
        array = new_array(
            g,
            load_ptr(item, O_DESCR),
            load_i64(item, O_RANK),
            load_ptr(item, O_DIMS),
            load_i64(item, O_BYTES),
        )
        if unlikely(array == NULL):
            return False
        adopt_reference(frame, array)
        store_ptr(load_ptr(frame, F_BUFFERS), load_i64(item, O_AT) * 8, load_ptr(array, ND_DATA))
    return True


@native
def acquire_scratch(spec: ptr, size: i64) -> ptr:
    """Return scratch memory: that of the last call, or new memory for a nested call."""
    result = load_ptr(spec, S_SPARE)
    if likely(result != NULL):
        store_ptr(spec, S_SPARE, NULL)
        return result
    return aligned_alloc(SCRATCH_ALIGNMENT, size)


@native
def release_scratch(spec: ptr, scratch: ptr) -> None:
    """Store scratch memory for the next call, or free it."""
    if likely(load_ptr(spec, S_SPARE) == NULL):
        store_ptr(spec, S_SPARE, scratch)
    else:
        free(scratch)
