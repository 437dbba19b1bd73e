"""Native entries of in-place calls of elementwise operators on CUDA tensors, `x.add_(y)` and `x += y`."""

from __future__ import annotations

from ...cpu.fastpath.compiler.dsl import NULL, i64, likely, load, native, ptr, stack, store, unlikely
from ...cpu.fastpath.runtime import capi, rt_entry
from ...cpu.fastpath.runtime import rt_base as base
from ...cpu.fastpath.runtime.rt_entry import Outcome
from . import call_cache_entries, eager_entries, launch_entries, result_entries


@rt_entry.entry(records=False)
def inplace(entry: eager_entries.CudaEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of in-place elementwise operators."""
    if unlikely(kwnames != NULL or count != eager_entries.NIN or eager_entries.notes_tensors(entry)):
        return Outcome.FALL_BACK
    backend, arrays, key = entry.backend, stack(eager_entries.NIN * 8), stack(eager_entries.NIN * 8)
    eager_entries.make_key(backend, args, flags, arrays, key)
    cached: eager_entries.CacheEntry = eager_entries.find_call(entry.variants, key, eager_entries.NIN)
    if unlikely(cached == NULL or load(ptr, arrays, 0) == NULL):
        return Outcome.FALL_BACK
    owner, target = cached.owner, load(ptr, args, 0)
    capi.incref(owner)  # like the arrays: creating a storage may run arbitrary code
    eager_entries.incref_all(arrays)
    done = write_result(cached, entry.globals_, backend, args, arrays)
    eager_entries.decref_all(arrays)
    capi.decref(owner)
    if unlikely(not done):
        return Outcome.FALL_BACK
    entry.calls += 1
    capi.incref(target)
    return target


@native
def write_result(cached: eager_entries.CacheEntry, g: ptr, backend: ptr, args: ptr, arrays: ptr) -> bool:
    """Write the result into the first operand; False, with nothing done, if Python has to."""
    values, target = stack(eager_entries.NIN * 8 + 8), load(ptr, arrays, 0)
    storage = call_cache_entries.get_storage(
        g, backend, load(ptr, args, 0), load(ptr, target, result_entries.A_BUFFER)
    )
    if unlikely(storage == NULL):
        return False
    stream = result_entries.current_stream(cached.device)
    done = False
    if likely(stream != NULL):
        bits = eager_entries.store_operands(
            cached, args, arrays, load(ptr, stream, result_entries.S_POOL), values
        )
        store(i64, values, eager_entries.NIN * 8, load(i64, values, 0))
        if likely(bits >= 0 and have_no_overlap(arrays, values)):
            done = launch_and_count(
                eager_entries.select_launcher(cached, bits),
                load(ptr, stream, result_entries.S_HANDLE),
                values,
                storage,
            )
    capi.decref(storage)
    return done


@native
def launch_and_count(launcher: ptr, stream: ptr, values: ptr, storage: base.StorageObject) -> bool:
    """Launch the kernel, and increment the storage's version."""
    if unlikely(launcher == NULL):
        return False
    before = storage.version
    after = capi.PyLong_FromLongLong(capi.PyLong_AsLongLong(before) + 1)
    if unlikely(after == NULL):
        capi.PyErr_Clear()
        return False
    if unlikely(launch_entries.queue_kernel(launcher, stream, values) != 0):
        capi.decref(after)
        return False
    storage.version = after
    capi.decref(before)
    return True


@native
def have_no_overlap(arrays: ptr, values: ptr) -> bool:
    """Whether no operand shares the target's buffer, except as the same array."""
    target = load(ptr, arrays, 0)
    for i in range(1, eager_entries.NIN):
        array = load(ptr, arrays, i * 8)
        if array != NULL and load(ptr, array, result_entries.A_BUFFER) == load(
            ptr, target, result_entries.A_BUFFER
        ):
            if load(i64, values, i * 8) != load(i64, values, 0):
                return False
            if load(ptr, array, result_entries.A_LAYOUT) != load(ptr, target, result_entries.A_LAYOUT):
                return False
    return True
