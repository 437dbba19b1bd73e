"""Native entries of eager calls on CUDA tensors: elementwise operators, and matrix products by cuBLAS.

An entry looks up the cached call for the layouts of the arguments, allocates the result, and launches the kernel, or
for a matrix product a :class:`..blas.gemm.Gemm`. On a cache miss it passes the call to Python.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler import dsl
from ...cpu.fastpath.compiler.dsl import NULL, i64, likely, load, native, ptr, store, template, unlikely
from ...cpu.fastpath.compiler.structs import Struct, array
from ...cpu.fastpath.runtime import capi, rt_entry, rt_keys, rt_layouts, rt_operands
from ...cpu.fastpath.runtime import rt_base as base
from ...cpu.fastpath.runtime.rt_entry import Outcome
from . import launch_entries, result_entries

# Compile-time constants of each instance of the entry: the number of operands; whether the first one is written to
NIN: i64 = template(2)
IN_PLACE: i64 = template(0)


# The struct of an entry begins like that of any operator's entry; then the backend's struct
class CudaEntry(base.OperatorEntry):
    """The data of an entry of the CUDA backend."""

    backend: ptr


class CacheEntry(Struct):
    """A cached call: the launchers of its kernels or of its product, or the layout of its view."""

    count: i64  # length of the key
    owner: ptr  # the object that keeps this struct alive
    device: ptr
    result: ptr
    aligned: ptr  # launcher for addresses that are multiples of 16, or NULL
    unaligned: ptr  # launcher for other addresses, or NULL
    second: ptr  # launcher of a second kernel, whose input is the scratch memory that the first one writes, or NULL
    scratch: ptr
    layout: ptr  # layout of the view, or NULL
    offset: i64  # bytes from the source's first element to the view's
    integers: i64  # number of integers of the subscript
    axes: ptr = array(12)  # per integer: size of its axis, and stride of the axis in bytes
    number_dtypes: ptr = array(16)  # per operand: code of the dtype that a Python number is converted to
    keys: ptr = array(rt_keys.MAX_KEY)


ANY_ADDRESS = CacheEntry.aligned, CacheEntry.unaligned  # the fields of a launcher for all addresses
MAX_INTEGERS = 6
CODE_MASK: i64 = 0xFFFFFFFFFFFF
ALIGNED = 15  # bits of an address that have to be zero for vector accesses
FAILED: i64 = -1  # a status: an exception is set


@native
def tracks_new_tensors(entry: base.OperatorEntry) -> bool:
    """Return whether a level of a transform tracks new tensors, so that Python has to run the call."""
    return i64(base.Globals(entry.globals_).note) != 0


@native
def find_call(table: ptr, key: ptr, count: i64) -> ptr:
    """Return the cached call of a key of length ``count``, or NULL.

    The hash table, with linear probing, has its size - 1, then addresses of calls or NULL.

    Python twin of the insertion: backends/cuda/fastpath/eager.py:_insert
    """
    code: i64 = 0
    for i in range(count):
        word = load(i64, key, i * 8)
        code = ((code ^ word ^ (word >> 4)) * 31) & CODE_MASK
    mask = load(i64, table, 0)
    at = (code ^ (code >> 7)) & mask
    result: CacheEntry = load(ptr, table, at * 8 + 8)
    while result != NULL and (
        result.count != count or not rt_layouts.equal_integers(result.keys, key, count)
    ):
        at = (at + 1) & mask
        result = load(ptr, table, at * 8 + 8)
    return result


@rt_entry.entry(records=False)
def elementwise(entry: CudaEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """Answer a call of an elementwise operator, also in place, or of a matrix product."""
    if unlikely(kwnames != NULL or count != NIN or tracks_new_tensors(entry)):
        return Outcome.FALL_BACK
    arrays, key = dsl.stack(NIN * 8), dsl.stack(NIN * 8)
    for i in range(NIN):  # the layouts of arrays, and the types of other arguments
        x = load(ptr, args, i * 8)
        array: result_entries.ArrayObject = rt_operands.plain_array(entry.backend, x, flags)
        store(ptr, arrays, i * 8, array)
        store(ptr, key, i * 8, array.layout if likely(array != NULL) else capi.type_of(x))
    cached = find_call(entry.variants, key, NIN)
    if unlikely(cached == NULL):
        return Outcome.FALL_BACK
    return compute(entry, cached, args, arrays)


@native
def compute(entry: CudaEntry, cached: CacheEntry, args: ptr, arrays: ptr) -> ptr:
    """Launch a cached call, count it and return its result, or an `Outcome`."""
    values = dsl.stack(NIN * 8 + 8)
    stream: result_entries.Stream = result_entries.current_stream(cached.device)
    if unlikely(stream == NULL):
        return Outcome.FALL_BACK
    bits = store_operands(cached, args, arrays, stream.pool, values)
    launcher = cached.aligned if likely(bits == 0) else cached.unaligned
    if unlikely(bits < 0 or launcher == NULL):
        return Outcome.FALL_BACK
    owner = cached.owner  # like the arrays: allocating the result may run arbitrary code
    capi.incref(owner)
    capi.hold_all(arrays, NIN)
    if IN_PLACE:
        result = launch_in_place(entry, cached, launcher, stream, args, arrays, values)
    else:
        result = launch_new(entry, cached, launcher, stream, values)
    capi.release_all(arrays, NIN)
    capi.decref(owner)
    if likely(i64(result) > 0):
        entry.calls += 1
    return result


@native
def store_operands(cached: ptr, args: ptr, arrays: ptr, pool: ptr, values: ptr) -> i64:
    """Store the addresses of arrays and the converted numbers in ``values``; return the bitwise or of the addresses.

    Return -1 for an array in memory of another pool, and for a number that does not fit the dtype.
    """
    bits: i64 = 0
    for i in range(NIN):
        array: result_entries.ArrayObject = load(ptr, arrays, i * 8)
        if likely(array != NULL):
            if unlikely(array.buffer.pool != pool):
                return -1
            address = capi.PyLong_AsUnsignedLongLongMask(array.ptr)
            store(i64, values, i * 8, address)
            bits |= address & ALIGNED
        else:
            x, dtype = load(ptr, args, i * 8), load(i64, cached, CacheEntry.number_dtypes + i * 8)
            if unlikely(not rt_operands.write_scalar(x, rt_operands.scalar_code(x), dtype, values + i * 8)):
                return -1
    return bits


# -- launches ----------------------------------------------------------------------------------------------------------
@native
def launch_new(entry: CudaEntry, cached: CacheEntry, launcher: ptr, stream: ptr, values: ptr) -> ptr:
    """Allocate the result and launch the kernels of a cached call; return the result or an `Outcome`."""
    tensor = result_entries.make_result(cached.device, stream, cached.result, values + NIN * 8)
    status: i64 = FAILED
    if likely(tensor != NULL):
        status = launch_kernels(cached, launcher, stream, values)
        if likely(status == 0):
            return tensor
        capi.decref(tensor)
    if status != FAILED:
        return Outcome.FALL_BACK  # Python launches again, and raises the error of the driver or cuBLAS
    is_final = capi.PyErr_ExceptionMatches(result_entries.Backend(entry.backend).out_of_memory) != 0
    return ptr(Outcome.FAILED if is_final else Outcome.RETRY)  # Python would raise OutOfMemoryError again


@native
def launch_kernels(cached: CacheEntry, launcher: ptr, stream: result_entries.Stream, values: ptr) -> i64:
    """Enqueue the kernels or the product of a call; return the status of the driver or of cuBLAS, or FAILED."""
    if launch_entries.PRODUCT or likely(cached.second == NULL):
        return launch_entries.queue(launcher, stream.handle, values)
    return launch_two_kernels(cached, launcher, stream, values)


@dsl.noinline
def launch_two_kernels(cached: CacheEntry, launcher: ptr, stream: result_entries.Stream, values: ptr) -> i64:
    """Launch two kernels that share scratch memory; return the status of the driver, or FAILED."""
    second_values = dsl.stack(16)
    scratch = result_entries.allocate(cached.device, stream, cached.scratch, second_values)
    if unlikely(scratch == NULL):
        return FAILED
    store(i64, second_values, 8, load(i64, values, 8))
    store(i64, values, 8, load(i64, second_values, 0))
    status = launch_entries.queue_kernel(launcher, stream.handle, values)
    if likely(status == 0):
        status = launch_entries.queue_kernel(cached.second, stream.handle, second_values)
    capi.decref(scratch)
    return status


@native
def launch_in_place(
    entry: CudaEntry, cached: ptr, launcher: ptr, stream: ptr, args: ptr, arrays: ptr, values: ptr
) -> ptr:
    """Launch the kernel with the first operand as its output, and increment the version of its storage."""
    target, array = load(ptr, args, 0), result_entries.ArrayObject(load(ptr, arrays, 0))
    result: ptr = Outcome.FALL_BACK
    storage: base.StorageObject = base.shared_storage(entry.backend, target, array.buffer)
    if unlikely(storage == NULL):
        capi.PyErr_Clear()
        return result
    version = base.next_version(storage)
    store(i64, values, NIN * 8, load(i64, values, 0))
    if unlikely(version == NULL):
        capi.PyErr_Clear()
    elif likely(have_no_overlap(arrays, values) and launch_kernels(cached, launcher, stream, values) == 0):
        base.set_version(storage, version)
        result = capi.new_ref(target)
    else:
        capi.decref(version)
    capi.decref(storage)
    return result


@native
def have_no_overlap(arrays: ptr, values: ptr) -> bool:
    """Return whether no operand overlaps the target; an operand with the same elements is allowed."""
    target: result_entries.ArrayObject = load(ptr, arrays, 0)
    for i in range(1, NIN):
        array: result_entries.ArrayObject = load(ptr, arrays, i * 8)
        if array == NULL or array.buffer != target.buffer:
            continue
        if load(i64, values, i * 8) != load(i64, values, 0) or array.layout != target.layout:
            return False
    return True
