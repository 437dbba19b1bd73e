"""Native entries of eager calls on CUDA tensors: elementwise operators, and matrix products by cuBLAS.

An entry looks up the cached call for the layouts of the arguments, allocates the result, and launches the kernel (for
a product, a :class:`..blas.gemm.Gemm`). It passes all other calls to Python.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler import dsl
from ...cpu.fastpath.compiler.dsl import NULL, i64, likely, load, native, ptr, store, template, unlikely
from ...cpu.fastpath.compiler.structs import Struct, array
from ...cpu.fastpath.runtime import capi, rt_operands
from ...cpu.fastpath.runtime import rt_base as base
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
def get_flags(entry: base.OperatorEntry) -> i64:
    """Return the thread's flags, or ELSEWHERE if Python has to run the call.

    It has to if a layer, a mode or the tracer is active, or new tensors are recorded.
    """
    g = entry.globals_
    return base.thread_flags(g) if likely(g.note == NULL) else i64(base.ELSEWHERE)


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


@native
def elementwise(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    entry: CudaEntry = base.entry_data(self)
    flags = get_flags(entry)
    if unlikely(kwnames != NULL or (nargsf & base.ARGS_MASK) != NIN or flags == base.ELSEWHERE):
        return base.fall_back(entry, args, nargsf, kwnames)
    backend, arrays, key = entry.backend, dsl.stack(NIN * 8), dsl.stack(NIN * 8)
    make_key(backend, args, flags, arrays, key)
    cached = find_call(entry.variants, key, NIN)
    if unlikely(cached == NULL):
        return base.fall_back(entry, args, nargsf, kwnames)
    result = compute(cached, args, arrays)
    if unlikely(result == NULL):
        return base.fall_back(entry, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return report_failure(entry, backend, args, nargsf, kwnames)
    entry.calls += 1
    return result


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


@dsl.noinline
def report_failure(entry: ptr, backend: result_entries.Backend, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """Handle a set exception: keep the device's OutOfMemoryError; on MemoryError clear it and retry in Python."""
    if capi.PyErr_ExceptionMatches(backend.out_of_memory) != 0:
        return NULL
    return base.retry_in_python(entry, args, nargsf, kwnames)


@native
def compute(cached: CacheEntry, args: ptr, arrays: ptr) -> ptr:
    """Launch a cached call and return its result; NULL: call Python; -1: an exception is set."""
    device, values = cached.device, dsl.stack(NIN * 8 + 8)
    stream = result_entries.current_stream(device)
    if unlikely(stream == NULL):
        return NULL
    bits = store_operands(cached, args, arrays, load(ptr, stream, result_entries.S_POOL), values)
    if unlikely(bits < 0):
        return NULL
    launcher = select_launcher(cached, bits)
    if unlikely(launcher == NULL):
        return NULL
    owner = cached.owner  # like the arrays: allocating the result may run arbitrary code
    capi.incref(owner)
    incref_all(arrays)
    tensor = result_entries.make_result(device, stream, cached.result, values + NIN * 8)
    if unlikely(tensor == NULL):
        tensor = ptr(-1)
    elif unlikely(launch_kernel(launcher, load(ptr, stream, result_entries.S_HANDLE), values) != 0):
        capi.decref(tensor)
        tensor = NULL  # Python launches again, and raises the error of the driver or cuBLAS
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
