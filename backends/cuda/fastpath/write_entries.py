"""Native entries of in-place calls of elementwise operators on CUDA tensors, `x.add_(y)` and `x += y`."""

from __future__ import annotations

from ...cpu.fastpath.compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, unlikely
from ...cpu.fastpath.entries.rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    PyErr_Clear,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    decref,
    entry_data,
    fall_back,
    incref,
)
from ...cpu.fastpath.entries.rt_storage import StorageObject
from .call_cache_entries import get_storage
from .eager_entries import (
    NIN,
    CacheEntry,
    CudaEntry,
    decref_all,
    find_call,
    get_flags,
    incref_all,
    make_key,
    select_launcher,
    store_operands,
)
from .launch_entries import queue_kernel
from .result_entries import A_BUFFER, A_LAYOUT, S_HANDLE, S_POOL, current_stream


@native
def inplace(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    entry: CudaEntry = entry_data(self)
    flags = get_flags(entry)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != NIN or flags == ELSEWHERE):
        return fall_back(entry, args, nargsf, kwnames)
    backend, arrays, key = entry.backend, stack(NIN * 8), stack(NIN * 8)
    make_key(backend, args, flags, arrays, key)
    cached: CacheEntry = find_call(entry.variants, key, NIN)
    if unlikely(cached == NULL or load(ptr, arrays, 0) == NULL):
        return fall_back(entry, args, nargsf, kwnames)
    owner, target = cached.owner, load(ptr, args, 0)
    incref(owner)  # like the arrays: creating a storage may run arbitrary code
    incref_all(arrays)
    done = write_result(cached, entry.globals_, backend, args, arrays)
    decref_all(arrays)
    decref(owner)
    if unlikely(not done):
        return fall_back(entry, args, nargsf, kwnames)
    entry.calls += 1
    incref(target)
    return target


@native
def write_result(cached: CacheEntry, g: ptr, backend: ptr, args: ptr, arrays: ptr) -> bool:
    """Write the result into the first operand; False, with nothing done, if Python has to."""
    values, target = stack(NIN * 8 + 8), load(ptr, arrays, 0)
    storage = get_storage(g, backend, load(ptr, args, 0), load(ptr, target, A_BUFFER))
    if unlikely(storage == NULL):
        return False
    stream = current_stream(cached.device)
    done = False
    if likely(stream != NULL):
        bits = store_operands(cached, args, arrays, load(ptr, stream, S_POOL), values)
        store(i64, values, NIN * 8, load(i64, values, 0))
        if likely(bits >= 0 and are_disjoint(arrays, values)):
            done = launch_and_count(
                select_launcher(cached, bits), load(ptr, stream, S_HANDLE), values, storage
            )
    decref(storage)
    return done


@native
def launch_and_count(launcher: ptr, stream: ptr, values: ptr, storage: StorageObject) -> bool:
    """Launch the kernel, and increment the storage's version."""
    if unlikely(launcher == NULL):
        return False
    before = storage.version
    after = PyLong_FromLongLong(PyLong_AsLongLong(before) + 1)
    if unlikely(after == NULL):
        PyErr_Clear()
        return False
    if unlikely(queue_kernel(launcher, stream, values) != 0):
        decref(after)
        return False
    storage.version = after
    decref(before)
    return True


@native
def are_disjoint(arrays: ptr, values: ptr) -> bool:
    """Whether no operand shares the target's buffer, except as the same array."""
    target = load(ptr, arrays, 0)
    for i in range(1, NIN):
        array = load(ptr, arrays, i * 8)
        if array != NULL and load(ptr, array, A_BUFFER) == load(ptr, target, A_BUFFER):
            if load(i64, values, i * 8) != load(i64, values, 0):
                return False
            if load(ptr, array, A_LAYOUT) != load(ptr, target, A_LAYOUT):
                return False
    return True
