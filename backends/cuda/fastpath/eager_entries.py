"""Native entries of eager calls on CUDA tensors: elementwise operators, and matrix products by cuBLAS.

An entry looks up the cached call for the layouts of the arguments, allocates the result, and launches the kernel (for
a product, a :class:`..blas.gemm.Gemm`). It passes all other calls to Python.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler import dsl
from ...cpu.fastpath.compiler.dsl import NULL, i64, likely, load, native, ptr, store, template, unlikely
from ...cpu.fastpath.compiler.structs import Struct, array
from ...cpu.fastpath.runtime import capi, rt_entry, rt_operands
from ...cpu.fastpath.runtime import rt_base as base
from ...cpu.fastpath.runtime.rt_entry import Outcome
from . import gemm_entries, launch_entries, result_entries

# Compile-time constants of each instance of the entry: the number of operands; whether it serves matrix products
NIN: i64 = template(2)
PRODUCT: i64 = template(0)


# The struct of an entry begins like that of any operator's entry; then the backend's struct
class CudaEntry(base.OperatorEntry):
    """The data of an entry of the CUDA backend."""

    backend: ptr


class CacheEntry(Struct):
    """A cached call of an elementwise operator or a product."""

    count: i64  # length of its key
    owner: ptr  # the object that keeps it alive
    device: ptr
    result: ptr
    dense: i64  # whether all arrays have the same dense layout
    contiguous: ptr
    unaligned: ptr
    strided: ptr
    to: ptr = array(16)  # per operand: the dtype that a Python number is converted to
    keys: ptr = array(24)


# For elementwise operators: whether all arrays have the same dense layout; the launchers by variant; for each operand
# the dtype that a Python number is converted to


MAX_KEY = 24


CODE_MASK: i64 = 0xFFFFFFFFFFFF
ALIGNED = 15  # bits of an address that have to be zero for vector accesses


@native
def notes_tensors(entry: base.OperatorEntry) -> bool:
    """Return whether a level of a transform notes new tensors, so that Python has to run the call."""
    return i64(base.Globals(entry.globals_).note) != 0


@native
def plain_array(backend: result_entries.Backend, x: base.TensorObject, flags: i64) -> ptr:
    """The array, borrowed, of a tensor that needs no gradient (or of any CUDA tensor under no_grad); NULL otherwise."""
    if unlikely(capi.type_of(x) != backend.tensor):
        return NULL
    array, keys = x.array, x.keys
    if unlikely(array == NULL):
        return NULL
    if unlikely(capi.type_of(array) != backend.array):
        return NULL
    if likely(keys == backend.keys and x.meta == capi.Py_None):
        return array
    return array if flags == base.NO_GRAD and keys == backend.grad_keys else NULL


@native
def find_call(table: ptr, key: ptr, count: i64) -> ptr:
    """The cached call of a key of length ``count``, or NULL. The table: its size - 1, then addresses of calls or NULL.

    Python twin of the insertion: backends/cuda/fastpath/eager.py:_insert
    """
    code: i64 = 0
    for i in range(count):
        word = load(i64, key, i * 8)
        code = ((code ^ word ^ (word >> 4)) * 31) & CODE_MASK
    mask = load(i64, table, 0)
    at = (code ^ (code >> 7)) & mask
    result = load(ptr, table, at * 8 + 8)
    while result != NULL and not has_key(result, key, count):
        at = (at + 1) & mask
        result = load(ptr, table, at * 8 + 8)
    return result


@native
def has_key(cached: CacheEntry, key: ptr, count: i64) -> bool:
    if cached.count != count:
        return False
    i: i64 = 0
    while i < count and load(i64, cached, CacheEntry.keys + i * 8) == load(i64, key, i * 8):
        i += 1
    return i == count


@rt_entry.entry(records=False)
def elementwise(entry: CudaEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of elementwise operators and matrix products."""
    if unlikely(kwnames != NULL or count != NIN or notes_tensors(entry)):
        return Outcome.FALL_BACK
    backend, arrays, key = entry.backend, dsl.stack(NIN * 8), dsl.stack(NIN * 8)
    make_key(backend, args, flags, arrays, key)
    cached = find_call(entry.variants, key, NIN)
    if unlikely(cached == NULL):
        return Outcome.FALL_BACK
    return count_call(entry, compute(cached, args, arrays))


@native
def make_key(backend: ptr, args: ptr, flags: i64, arrays: ptr, key: ptr) -> None:
    """Store the key of a call, the layouts of arrays and the types of other arguments; and the arrays."""
    for i in range(NIN):
        x = load(ptr, args, i * 8)
        array = plain_array(backend, x, flags)
        store(ptr, arrays, i * 8, array)
        store(
            ptr,
            key,
            i * 8,
            load(ptr, array, result_entries.A_LAYOUT) if likely(array != NULL) else capi.type_of(x),
        )


@native
def count_call(entry: CudaEntry, result: ptr) -> ptr:
    """Count a call and return its result; pass an outcome on, but do not retry on the device's OutOfMemoryError."""
    if likely(i64(result) > 0):
        entry.calls += 1
    elif i64(result) == Outcome.RETRY and is_out_of_memory(entry.backend):
        return NULL
    return result


@dsl.noinline
def is_out_of_memory(backend: result_entries.Backend) -> bool:
    """Return whether the exception that is set is the device's OutOfMemoryError, which Python would raise again."""
    return i64(capi.PyErr_ExceptionMatches(backend.out_of_memory)) != 0


@native
def compute(cached: CacheEntry, args: ptr, arrays: ptr) -> ptr:
    """Launch a cached call and return its result, or an `Outcome`."""
    device, values = cached.device, dsl.stack(NIN * 8 + 8)
    stream = result_entries.current_stream(device)
    if unlikely(stream == NULL):
        return Outcome.FALL_BACK
    bits = store_operands(cached, args, arrays, load(ptr, stream, result_entries.S_POOL), values)
    if unlikely(bits < 0):
        return Outcome.FALL_BACK
    launcher = select_launcher(cached, bits)
    if unlikely(launcher == NULL):
        return Outcome.FALL_BACK
    owner = cached.owner  # like the arrays: allocating the result may run arbitrary code
    capi.incref(owner)
    incref_all(arrays)
    tensor = result_entries.make_result(device, stream, cached.result, values + NIN * 8)
    if unlikely(tensor == NULL):
        tensor = Outcome.RETRY
    elif unlikely(launch_kernel(launcher, load(ptr, stream, result_entries.S_HANDLE), values) != 0):
        capi.decref(tensor)
        tensor = Outcome.FALL_BACK  # Python launches again, and raises the error of the driver or cuBLAS
    decref_all(arrays)
    capi.decref(owner)
    return tensor


@native
def launch_kernel(launcher: ptr, stream: ptr, values: ptr) -> i64:
    """Put a kernel or a matrix product into a stream, and return the status of the driver or cuBLAS."""
    if PRODUCT:
        return i64(gemm_entries.queue_product(launcher, stream, values))
    return launch_entries.queue_kernel(launcher, stream, values)


@native
def select_launcher(cached: CacheEntry, bits: i64) -> ptr:
    """The launcher for addresses with these bits; NULL if there is none yet."""
    if unlikely(cached.dense == 0):
        return cached.strided
    return load(ptr, cached, CacheEntry.contiguous if likely((bits & ALIGNED) == 0) else CacheEntry.unaligned)


@native
def store_operands(cached: ptr, args: ptr, arrays: ptr, pool: ptr, values: ptr) -> i64:
    """Store the addresses of arrays and the converted numbers in ``values``; the bitwise or of the addresses.

    Returns -1 for an array in memory of another pool, and for a number that does not fit the dtype.
    """
    bits: i64 = 0
    for i in range(NIN):
        array = load(ptr, arrays, i * 8)
        if likely(array != NULL):
            if unlikely(load(ptr, load(ptr, array, result_entries.A_BUFFER), result_entries.B_POOL) != pool):
                return -1
            address = capi.PyLong_AsUnsignedLongLongMask(load(ptr, array, result_entries.A_PTR))
            store(i64, values, i * 8, address)
            bits |= address & ALIGNED
        else:
            x = load(ptr, args, i * 8)
            if unlikely(
                not rt_operands.write_scalar(
                    x, rt_operands.scalar_code(x), load(i64, cached, CacheEntry.to + i * 8), values + i * 8
                )
            ):
                return -1
    return bits


@native
def incref_all(arrays: ptr) -> None:
    for i in range(NIN):
        if load(ptr, arrays, i * 8) != NULL:
            capi.incref(load(ptr, arrays, i * 8))


@native
def decref_all(arrays: ptr) -> None:
    for i in range(NIN):
        if load(ptr, arrays, i * 8) != NULL:
            capi.decref(load(ptr, arrays, i * 8))
