"""The native entry of all elementwise operators, instantiated per number of operands.

The entry classifies the operands, finds the variant of their types, broadcasts, allocates the result and runs the
variant's loop: `loop(pointers, sizes[2], strides[operand][2], variant)`, the outer dimension first, inputs before the
output; most loops use only the first three arguments.
"""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..runtime import capi, rt_entry, rt_gil, rt_memory, rt_numbers, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome


@native
def elementwise_swapped(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of two operands with arguments in reverse, as `__radd__` receives them."""
    turned = stack(16)
    if unlikely(kwnames != NULL or (nargsf & base.ARGS_MASK) != 2):
        return base.fall_back(base.entry_data(self), args, nargsf, kwnames)
    store(ptr, turned, 0, load(ptr, args, 8))
    store(ptr, turned, 8, load(ptr, args, 0))
    return elementwise(self, turned, 2, NULL)


@rt_entry.entry
def elementwise(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of elementwise operators.

    Python twin: backends/cpu/kernels/elementwise.py:elementwise_kernel
    """
    g = entry.globals_
    if unlikely(kwnames != NULL or count != base.NIN):
        return Outcome.FALL_BACK
    arrays = stack(base.NIN * 8)
    key: i64 = 0
    for i in range(base.NIN):
        code = rt_operands.operand_or_number_code(g, load(ptr, args, i * 8), flags, arrays + i * 8)
        if unlikely(code < 0):
            return Outcome.FALL_BACK
        key |= code << (i * base.CODE_BITS)
    variant: base.Variant = base.find_variant(entry, key)
    if unlikely(variant == NULL):
        return Outcome.MISS
    pointers = stack(base.NARGS * 8)
    scalars = stack(base.NIN * 16)
    if unlikely(variant.loop == NULL or not load_operands(g, variant, args, arrays, key, pointers, scalars)):
        return Outcome.FALL_BACK
    if unlikely(variant.number != 0):
        entry.calls += 1
        return compute_number(variant, pointers, g)
    tensor = rt_entry.finish(entry, compute(variant, arrays, pointers, g))
    return (
        record_elementwise(entry, g, args, tensor)
        if unlikely(is_recorded(g, args, arrays, flags))
        else tensor
    )


@native
def is_recorded(g: ptr, args: ptr, arrays: ptr, flags: i64) -> bool:
    """Return whether any operand makes the call one that autograd records."""
    result = False
    for i in range(base.NIN):
        if load(ptr, arrays, i * 8) != NULL and base.has_history(g, load(ptr, args, i * 8), flags):
            result = True
    return result


@noinline
def record_elementwise(entry: ptr, g: ptr, args: ptr, tensor: ptr) -> ptr:
    """Record a call for autograd and return its result."""
    values = stack(base.NARGS * 8)
    for i in range(base.NIN):
        store(ptr, values, i * 8, rt_operands.unwrap_number(g, load(ptr, args, i * 8)))
    return rt_record.record_call(entry, values, base.NIN, tensor)


@native
def load_operands(
    g: ptr, variant: ptr, args: ptr, arrays: ptr, key: i64, pointers: ptr, scalars: ptr
) -> bool:
    """Write the data pointers of all operands; scalars are first written to scratch memory."""
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        if likely(array != NULL):
            store(ptr, pointers, i * 8, array.data)
        else:
            code = (key >> (i * base.CODE_BITS)) & 31
            number, to = (
                rt_operands.unwrap_number(g, load(ptr, args, i * 8)),
                load(i64, variant, base.Variant.scalar_codes + i * 8),
            )
            if not rt_operands.write_scalar(number, code, to, scalars + i * 16):
                return False
            store(ptr, pointers, i * 8, scalars + i * 16)
    return True


@noinline
def compute_number(variant: base.Variant, pointers: ptr, g: ptr) -> ptr:
    """Return the result of a call on numbers alone: a weak scalar."""
    sizes, strides, value = stack(16), stack(base.NARGS * 16), stack(16)
    for i in range(base.NARGS):
        store(i64, strides, i * 16, 0)
        store(i64, strides, i * 16 + 8, load(i64, variant, base.Variant.sizes + i * 8) if i < base.NIN else 0)
    store(i64, sizes, 0, 1)
    store(i64, sizes, 8, 1)
    store(ptr, pointers, base.NIN * 8, value)
    dsl.call_void(variant.loop, pointers, sizes, strides, variant)
    return rt_numbers.make_weak(g, value, variant.number, variant.descr)


@native
def compute(variant: ptr, arrays: ptr, pointers: ptr, g: ptr) -> ptr:
    """Return the result's array, or an `Outcome`: FALL_BACK where the shapes do not broadcast."""
    widest: ptr = NULL
    rank: i64 = -1
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        if array != NULL and i64(array.ndim) > rank:
            rank = i64(array.ndim)
            widest = array
    if unlikely(widest == NULL or rank > base.MAX_RANK):
        return Outcome.FALL_BACK
    strides = stack(base.NARGS * 16)
    if likely(is_flat(variant, arrays, widest, rank, strides)):
        return compute_flat(variant, arrays, widest, rank, pointers, strides, g)
    return compute_general(variant, arrays, rank, pointers, g)


@native
def is_flat(variant: base.Variant, arrays: ptr, widest: ptr, rank: i64, strides: ptr) -> bool:
    """Return whether every operand is one element, or C-contiguous with the widest one's shape.

    If so, write their strides.
    """
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        step: i64 = 0
        if array != NULL and (array.ndim != 0 or rank == 0):
            if (array.flags & capi.C_CONTIGUOUS) == 0 or not has_same_shape(array, widest, rank):
                return False
            step = load(i64, variant, base.Variant.sizes + i * 8)
        store(i64, strides, i * 16, 0)
        store(i64, strides, i * 16 + 8, step)
    store(i64, strides, base.NIN * 16, 0)
    store(i64, strides, base.NIN * 16 + 8, variant.itemsize)
    return True


@native
def has_same_shape(array: capi.Ndarray, other: capi.Ndarray, rank: i64) -> bool:
    if array == other:
        return True
    if i64(array.ndim) != rank:
        return False
    mine, theirs = array.dims, other.dims
    d: i64 = 0
    while d < rank and load(i64, mine, d * 8) == load(i64, theirs, d * 8):
        d += 1
    return d == rank


@native
def compute_flat(
    variant: base.Variant, arrays: ptr, widest: capi.Ndarray, rank: i64, pointers: ptr, strides: ptr, g: ptr
) -> ptr:
    sizes, dims = stack(16), widest.dims
    count: i64 = 1
    for d in range(rank):
        count *= load(i64, dims, d * 8)
    result: capi.Ndarray = rt_memory.new_array(g, variant.descr, rank, dims, count * variant.itemsize)
    if unlikely(result == NULL):
        return Outcome.RETRY
    store(ptr, pointers, base.NIN * 8, result.data)
    store(i64, sizes, 0, 1)
    store(i64, sizes, 8, count)
    if unlikely(count >= variant.release):
        rt_gil.hold_arrays(arrays, base.NIN)
        rt_gil.run_unlocked(variant.loop, pointers, sizes, strides, variant)
        rt_gil.drop_arrays(arrays, base.NIN)
        return result
    dsl.call_void(variant.loop, pointers, sizes, strides, variant)
    return result


@native
def broadcast(arrays: ptr, rank: i64, shape: ptr) -> bool:
    """Write the common shape of the operands; return false if there is none."""
    for d in range(rank):
        store(i64, shape, d * 8, 1)
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        if array != NULL:
            own = i64(array.ndim)
            dims = array.dims
            for d in range(own):
                size = load(i64, dims, d * 8)
                at = (rank - own + d) * 8
                if size != 1 and load(i64, shape, at) != size:
                    if load(i64, shape, at) != 1:
                        return False
                    store(i64, shape, at, size)
    return True


@native
def operand_strides(array: capi.Ndarray, rank: i64, to: ptr) -> None:
    """Write strides over the common shape of rank `rank`, 0 along broadcast axes, NARGS * 8 bytes apart."""
    for d in range(rank):
        store(i64, to, d * base.NARGS * 8, 0)
    if array != NULL:
        own = i64(array.ndim)
        dims, strides = array.dims, array.strides
        for d in range(own):
            if load(i64, dims, d * 8) != 1:
                store(i64, to, (rank - own + d) * base.NARGS * 8, load(i64, strides, d * 8))


@native
def coalesce(shape: ptr, strides: ptr, rank: i64) -> i64:
    """Merge adjacent axes that every operand traverses as one; drop axes of size 1; return the rank (at least 1)."""
    used: i64 = 0
    for d in range(rank):
        size = load(i64, shape, d * 8)
        if size != 1:
            if used > 0 and can_merge_axes(strides, used - 1, d, size):
                store(i64, shape, used * 8 - 8, load(i64, shape, used * 8 - 8) * size)
                used -= 1
            else:
                store(i64, shape, used * 8, size)
            for i in range(base.NARGS):
                store(i64, strides, (used * base.NARGS + i) * 8, load(i64, strides, (d * base.NARGS + i) * 8))
            used += 1
    return used


@native
def can_merge_axes(strides: ptr, outer: i64, inner: i64, size: i64) -> bool:
    for i in range(base.NARGS):
        if load(i64, strides, (outer * base.NARGS + i) * 8) != size * load(
            i64, strides, (inner * base.NARGS + i) * 8
        ):
            return False
    return True


@native
def sort_axes(shape: ptr, strides: ptr, axes: ptr, rank: i64) -> bool:
    """Sort the axes by the operands' strides, the largest first; return whether any axis moved.

    The order is NumPy's ("K"), so that the result has the same memory layout as one computed by Python.
    """
    moved = False
    for k in range(1, rank):
        at = rank - 1 - k
        index, inner, verdict = at, at + 1, i64(0)
        while inner < rank and verdict >= 0:
            verdict = compare_steps(strides, at, inner)
            if verdict > 0:
                index = inner
            inner += 1
        while at < index:
            moved = True
            swap(shape, at, at + 1)
            swap(axes, at, at + 1)
            for i in range(base.NIN):
                swap(strides, at * base.NARGS + i, (at + 1) * base.NARGS + i)
            at += 1
    return moved


@native
def compare_steps(strides: ptr, outer: i64, inner: i64) -> i64:
    """Compare the operands' strides along two axes.

    Return 1 if all operands that vary along both have larger strides along the inner axis, -1 if one has not, 0 if none
    varies.
    """
    verdict: i64 = 0
    for i in range(base.NIN):
        far, near = (
            load(i64, strides, (outer * base.NARGS + i) * 8),
            load(i64, strides, (inner * base.NARGS + i) * 8),
        )
        if far != 0 and near != 0:
            if far < 0:
                far = 0 - far
            if near < 0:
                near = 0 - near
            if near <= far:
                verdict = -1
            elif verdict == 0:
                verdict = 1
    return verdict


@native
def swap(values: ptr, one: i64, other: i64) -> None:
    kept = load(i64, values, one * 8)
    store(i64, values, one * 8, load(i64, values, other * 8))
    store(i64, values, other * 8, kept)


@noinline
def compute_general(variant: base.Variant, arrays: ptr, rank: i64, pointers: ptr, g: ptr) -> ptr:
    """Compute broadcast, strided and mixed operands."""
    shape = stack(base.MAX_RANK * 8)
    strides = stack(base.MAX_RANK * base.NARGS * 8)
    if not broadcast(arrays, rank, shape):
        return Outcome.FALL_BACK
    for i in range(base.NIN):
        operand_strides(load(ptr, arrays, i * 8), rank, strides + i * 8)
    dims, axes, steps = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    for d in range(rank):
        store(i64, dims, d * 8, load(i64, shape, d * 8))
        store(i64, axes, d * 8, d)
    permuted = sort_axes(shape, strides, axes, rank)
    step = variant.itemsize
    for k in range(rank):
        d = rank - 1 - k
        store(i64, strides, (d * base.NARGS + base.NIN) * 8, step)
        store(i64, steps, load(i64, axes, d * 8) * 8, step)
        step *= load(i64, shape, d * 8)
    result: capi.Ndarray = rt_memory.new_laid_out(
        g, variant.descr, rank, dims, steps if permuted and step != 0 else NULL, step
    )
    if unlikely(result == NULL):
        return Outcome.RETRY
    store(ptr, pointers, base.NIN * 8, result.data)
    if likely(step != 0):
        rank = coalesce(shape, strides, rank)
        rt_gil.hold_arrays(arrays, base.NIN)
        saved = rt_gil.release_gil(step >= variant.release * variant.itemsize)
        run_nest(variant.loop, pointers, shape, strides, rank, variant)
        rt_gil.acquire_gil(saved)
        rt_gil.drop_arrays(arrays, base.NIN)
    return result


@native
def run_nest(loop: ptr, pointers: ptr, shape: ptr, strides: ptr, rank: i64, context: ptr) -> None:
    """Iterate over the outer axes and call the loop for the two inner ones."""
    sizes, inner = stack(16), stack(base.NARGS * 16)
    store(i64, sizes, 0, load(i64, shape, rank * 8 - 16) if rank > 1 else 1)
    store(i64, sizes, 8, load(i64, shape, rank * 8 - 8) if rank > 0 else 1)
    for i in range(base.NARGS):
        store(i64, inner, i * 16, load(i64, strides, ((rank - 2) * base.NARGS + i) * 8) if rank > 1 else 0)
        store(
            i64, inner, i * 16 + 8, load(i64, strides, ((rank - 1) * base.NARGS + i) * 8) if rank > 0 else 0
        )
    outer = rank - 2
    index = stack(base.MAX_RANK * 8)
    for d in range(outer):
        store(i64, index, d * 8, 0)
    more = True
    while more:
        dsl.call_void(loop, pointers, sizes, inner, context)
        more = advance(pointers, shape, strides, index, outer)


@native
def advance(pointers: ptr, shape: ptr, strides: ptr, index: ptr, outer: i64) -> bool:
    """Step the outer axes like an odometer; return false after the last step."""
    d = outer - 1
    while d >= 0:
        at = load(i64, index, d * 8) + 1
        back = at == load(i64, shape, d * 8)
        for i in range(base.NARGS):
            step = load(i64, strides, (d * base.NARGS + i) * 8)
            moved = load(ptr, pointers, i * 8) + (step * (1 - at) if back else step)
            store(ptr, pointers, i * 8, moved)
        store(i64, index, d * 8, 0 if back else at)
        if not back:
            return True
        d -= 1
    return False
