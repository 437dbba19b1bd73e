"""The native entry of all elementwise operators, instantiated per number of operands; those of `cast` and `astype`.

The entry classifies the operands, finds the variant of their types, broadcasts, allocates the result and runs the
variant's loop: `loop(pointers, sizes[2], strides[operand][2], variant)`, the outer dimension first, inputs before the
output; most loops use only the first three arguments.
"""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, stack_of, store, unlikely
from ..runtime import (
    capi,
    rt_arguments,
    rt_batches,
    rt_entry,
    rt_layouts,
    rt_memory,
    rt_numbers,
    rt_operands,
    rt_outputs,
    rt_record,
    rt_spare_numbers,
    rt_temporaries,
)
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

HAS_COPY: i64 = dsl.template(0)  # 1: `astype`, which takes `copy`


@native
def elementwise_swapped(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of two operands with arguments in reverse, as `__radd__` receives them."""
    if unlikely(kwnames != NULL or (nargsf & base.ARGS_MASK) != 2):
        return base.fall_back(base.entry_data(self), args, nargsf, kwnames)
    return elementwise(self, stack_of(load(ptr, args, 8), load(ptr, args, 0)), 2, NULL)


@native
def elementwise_into(entry: base.OperatorEntry, args: ptr, count: i64, flags: i64, out: ptr) -> ptr:
    """Compute a call that nothing records into `out`, which has the result's shape and dtype; or FALL_BACK."""
    g = entry.globals_
    if unlikely(count != base.NIN):
        return Outcome.FALL_BACK
    arrays, pointers, scalars = stack(base.NARGS * 8), stack(base.NARGS * 8), stack(base.NIN * 16)
    target: capi.Ndarray = rt_operands.plain_array(g, out, flags)
    key = rt_operands.operand_key(g, args, flags, arrays)
    variant: base.Variant = base.find_variant(entry, key) if likely(key != base.FOREIGN) else ptr(0)
    if unlikely(variant == NULL or variant.loop == NULL or not can_hold_result(variant, target, arrays)):
        return Outcome.FALL_BACK
    store(ptr, arrays, base.NIN * 8, target)
    capi.hold_all(arrays, base.NARGS)  # allocating a storage or a copy may run Python code
    if unlikely(
        not rt_outputs.separate_operands(arrays, 0, target)
        or not load_operands(g, variant, args, arrays, key, pointers, scalars)
    ):
        capi.PyErr_Clear()  # Python runs the call, or raises the exception
        capi.release_all(arrays, base.NARGS)
        return Outcome.FALL_BACK
    done = rt_outputs.bump_version(g, out, target)
    if likely(done):
        store(ptr, pointers, base.NIN * 8, target.data)
        compute_into(variant, arrays, target, pointers)
        entry.calls += 1
    capi.release_all(arrays, base.NARGS)
    return capi.new_ref(out) if likely(done) else ptr(0)


@native
def can_hold_result(variant: base.Variant, target: capi.Ndarray, arrays: ptr) -> bool:
    """Return whether a target can hold the result: an operand has its shape, and the others broadcast to it."""
    rank, is_same = i64(target.ndim), False
    if (
        (target.flags & capi.WRITEABLE) == 0
        or (target.flags & capi.ALIGNED) == 0
        or rank > base.MAX_RANK
        or not rt_outputs.has_same_dtype(target, variant.descr)
    ):
        return False
    for i in range(base.NIN):
        array = load(ptr, arrays, i * 8)
        if array != NULL:
            if rt_layouts.has_same_shape(array, target, rank):
                is_same = True
            elif not rt_layouts.can_broadcast(array, target.dims, rank):
                return False
    return is_same


@rt_entry.entry(converts=0, direct=elementwise_into, at_level=rt_batches.run_at_level)
def elementwise(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of elementwise operators.

    Python twin: backends/cpu/kernels/elementwise.py:elementwise_kernel
    """
    g = entry.globals_
    if unlikely(kwnames != NULL or count != base.NIN):
        return Outcome.FALL_BACK
    arrays, pointers, scalars = stack(base.NIN * 8), stack(base.NARGS * 8), stack(base.NIN * 16)
    key, operands = rt_operands.operand_key(g, args, flags, arrays), args
    if unlikely(key == base.FOREIGN) and not rt_record.is_recorded(g, flags, args, base.NIN):
        key, operands = rt_operands.key_with_arrays(g, args, flags, arrays), ptr(0)
    variant: base.Variant = rt_entry.select_variant(entry, key)
    if unlikely(i64(variant) <= 0):
        return variant
    if unlikely(not load_operands(g, variant, args, arrays, key, pointers, scalars)):
        return Outcome.FALL_BACK
    if unlikely(variant.number != 0):
        entry.calls += 1
        return compute_number(variant, pointers, g)
    tensor = ptr(Outcome.FALL_BACK)
    if have_no_axes(arrays):
        tensor = compute_element(entry, variant, pointers)
    if i64(tensor) == Outcome.FALL_BACK:
        tensor = rt_entry.finish(entry, compute(variant, arrays, pointers, g, flags, operands))
    if unlikely(rt_record.is_recorded(g, flags, args, base.NIN)):
        return record_elementwise(entry, g, args, tensor)
    return tensor


@rt_entry.entry(converts=0, at_level=rt_batches.run_at_level)
def cast(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `cast` and `astype`.

    Python twin: operators/elementwise/casting.py:_cast_kernel
    """
    g = entry.globals_
    copy = rt_arguments.keyword_argument(entry, args + 16, kwnames, rt_arguments.COPY, capi.Py_True)
    if unlikely(
        count != 2 or (HAS_COPY == 0 and kwnames != NULL) or copy not in (capi.Py_True, capi.Py_False)
    ):
        return Outcome.FALL_BACK
    arrays, source, dtype = stack(8), load(ptr, args, 0), load(ptr, args, 8)
    code, to = rt_operands.tensor_code(g, source, flags, arrays), rt_arguments.given_dtype(entry, dtype)
    if copy == capi.Py_False and code == to and code >= 0:
        entry.calls += 1
        return capi.new_ref(source)
    variant: base.Variant = rt_entry.select_variant(entry, code | to << base.CODE_BITS)
    if unlikely(i64(variant) <= 0):
        return variant
    array: capi.Ndarray = load(ptr, arrays, 0)
    tensor = rt_entry.finish(entry, compute(variant, arrays, stack_of(array.data, NULL), g, flags, NULL))
    return rt_record.finish_call(entry, flags, stack_of(source, load(ptr, g.types, to * 8), tensor), 2)


@noinline
def record_elementwise(entry: ptr, g: ptr, args: ptr, tensor: ptr) -> ptr:
    """Record a call for autograd and return its result."""
    values = stack(base.NARGS * 8)
    for i in range(base.NIN):
        store(ptr, values, i * 8, rt_operands.unwrap_number(g, load(ptr, args, i * 8)))
    store(ptr, values, base.NIN * 8, tensor)
    return rt_record.record_call(entry, values, base.NIN)


@native
def load_operands(
    g: ptr, variant: ptr, args: ptr, arrays: ptr, key: i64, pointers: ptr, scalars: ptr
) -> bool:
    """Write the data pointers of all operands; Python's numbers are first written to scratch memory."""
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        if likely(array != NULL):
            store(ptr, pointers, i * 8, array.data)
        else:
            code, to = key >> (i * base.CODE_BITS) & 31, load(i64, variant, base.Variant.scalar_codes + i * 8)
            number = rt_operands.unwrap_number(g, load(ptr, args, i * 8))
            if unlikely(code < base.WEAK_BOOL):  # a scalar of NumPy
                store(ptr, pointers, i * 8, number + rt_operands.SCALAR_VALUE)
                continue
            if not rt_operands.write_scalar(number, code, to, scalars + i * 16):
                return False
            store(ptr, pointers, i * 8, scalars + i * 16)
    return True


@noinline
def compute_number(variant: base.Variant, pointers: ptr, g: ptr) -> ptr:
    """Return the result of a call on numbers alone: a weak scalar."""
    sizes, strides, value = stack_of(1, 1), stack(base.NARGS * 16), stack(16)
    for i in range(base.NARGS):
        store(i64, strides, i * 16, 0)
        store(i64, strides, i * 16 + 8, load(i64, variant, base.Variant.sizes + i * 8) if i < base.NIN else 0)
    store(ptr, pointers, base.NIN * 8, value)
    dsl.call_void(variant.loop, pointers, sizes, strides, variant)
    return rt_numbers.make_weak(g, value, variant.number, variant.descr)


@native
def have_no_axes(arrays: ptr) -> bool:
    """Return whether all operands are tensors without axes, or numbers."""
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        if array != NULL and array.ndim != 0:
            return False
    return True


@native
def compute_element(entry: base.OperatorEntry, variant: base.Variant, pointers: ptr) -> ptr:
    """Return the result for operands without axes in a spare tensor; FALL_BACK if there is none."""
    g = entry.globals_
    tensor: base.TensorObject = rt_spare_numbers.take_owner_of(g, variant.descr)
    if unlikely(tensor == NULL):
        return Outcome.FALL_BACK
    array: capi.Ndarray = tensor.array
    store(ptr, pointers, base.NIN * 8, array.data)
    run_once(variant, pointers)
    entry.calls += 1
    return rt_spare_numbers.report(g, tensor)


@native
def run_once(variant: base.Variant, pointers: ptr) -> None:
    """Run a loop for one element."""
    strides = stack(base.NARGS * 16)
    for i in range(base.NARGS):
        store(i64, strides, i * 16, 0)
        size = variant.itemsize
        if i < base.NIN:
            size = load(i64, variant, base.Variant.sizes + i * 8)
        store(i64, strides, i * 16 + 8, size)
    dsl.call_void(variant.loop, pointers, stack_of(1, 1), strides, variant)


@native
def compute(variant: base.Variant, arrays: ptr, pointers: ptr, g: ptr, flags: i64, args: ptr) -> ptr:
    """Return the result's array, or an `Outcome`: FALL_BACK where the shapes do not broadcast.

    The result may be in the memory of one of the arguments, if they are given.
    """
    widest: capi.Ndarray = NULL
    rank: i64 = -1
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        if array != NULL and i64(array.ndim) > rank:
            rank = i64(array.ndim)
            widest = array
    if unlikely(widest == NULL or rank > base.MAX_RANK):
        return Outcome.FALL_BACK
    strides = stack(base.NARGS * 16)
    if unlikely(not is_flat(variant, arrays, widest, rank, strides)):
        return compute_general(variant, arrays, rank, pointers, g, flags, args)
    dims, count = widest.dims, rt_layouts.count_elements(widest.dims, rank)
    result: capi.Ndarray = NULL
    if unlikely(count * variant.itemsize >= rt_memory.POOLED and args != NULL):
        result = rt_temporaries.take_temporary(g, flags, args, arrays, variant, rank, dims)
        if unlikely(result == NULL) and capi.PyErr_Occurred() != NULL:
            return Outcome.FAILED
    if likely(result == NULL):
        result = rt_memory.new_array(g, variant.descr, rank, dims, count * variant.itemsize)
    if unlikely(result == NULL):
        return Outcome.RETRY
    store(ptr, pointers, base.NIN * 8, result.data)
    rt_layouts.run_flat(variant, arrays, pointers, count, strides)
    return result


@native
def is_flat(variant: base.Variant, arrays: ptr, widest: ptr, rank: i64, strides: ptr) -> bool:
    """Return whether every operand is one element, or C-contiguous with the widest one's shape.

    If so, write their strides.
    """
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        step: i64 = 0
        if array != NULL and (array.ndim != 0 or rank == 0):
            if (array.flags & capi.C_CONTIGUOUS) == 0 or not rt_layouts.has_same_shape(array, widest, rank):
                return False
            step = load(i64, variant, base.Variant.sizes + i * 8)
        store(i64, strides, i * 16, 0)
        store(i64, strides, i * 16 + 8, step)
    store(i64, strides, base.NIN * 16, 0)
    store(i64, strides, base.NIN * 16 + 8, variant.itemsize)
    return True


@native
def broadcast(arrays: ptr, rank: i64, shape: ptr, strides: ptr) -> bool:
    """Write the common shape of the operands, and their strides over it; return false if there is none."""
    rt_layouts.fill_integers(shape, rank, 1)
    for i in range(base.NIN):
        array: capi.Ndarray = load(ptr, arrays, i * 8)
        own = i64(array.ndim) if array != NULL else 0
        if not rt_layouts.merge_sizes(array, own, shape, rank):
            return False
        rt_layouts.operand_strides(array, own, rank, strides + i * 8)
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
            rt_layouts.swap(shape, at, at + 1)
            rt_layouts.swap(axes, at, at + 1)
            for i in range(base.NIN):
                rt_layouts.swap(strides, at * base.NARGS + i, (at + 1) * base.NARGS + i)
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
        far = load(i64, strides, (outer * base.NARGS + i) * 8)
        near = load(i64, strides, (inner * base.NARGS + i) * 8)
        if far != 0 and near != 0:
            if (near if near > 0 else -near) <= (far if far > 0 else -far):
                verdict = -1
            elif verdict == 0:
                verdict = 1
    return verdict


@noinline
def compute_general(
    variant: base.Variant, arrays: ptr, rank: i64, pointers: ptr, g: ptr, flags: i64, args: ptr
) -> ptr:
    """Compute broadcast, strided and mixed operands."""
    shape = stack(base.MAX_RANK * 8)
    strides = stack(base.MAX_RANK * base.NARGS * 8)
    if not broadcast(arrays, rank, shape, strides):
        return Outcome.FALL_BACK
    dims, axes, steps = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    capi.memcpy(dims, shape, rank * 8)
    for d in range(rank):
        store(i64, axes, d * 8, d)
    permuted = sort_axes(shape, strides, axes, rank)
    to = strides + base.NIN * 8
    step = rt_layouts.write_row_major_strides(to, base.NARGS * 8, shape, rank, variant.itemsize)
    for d in range(rank):
        store(i64, steps, load(i64, axes, d * 8) * 8, load(i64, to, d * base.NARGS * 8))
    result: capi.Ndarray = NULL
    if unlikely(step >= rt_memory.POOLED and args != NULL and not permuted):
        result = rt_temporaries.take_temporary(g, flags, args, arrays, variant, rank, dims)
        if unlikely(result == NULL) and capi.PyErr_Occurred() != NULL:
            return Outcome.FAILED
    if likely(result == NULL):
        result = rt_memory.new_laid_out(
            g, variant.descr, rank, dims, steps if permuted and step != 0 else NULL, step
        )
    if unlikely(result == NULL):
        return Outcome.RETRY
    store(ptr, pointers, base.NIN * 8, result.data)
    if likely(step != 0):
        rt_layouts.run_strided(variant, arrays, pointers, shape, strides, rank, step)
    return result


@native
def compute_into(variant: base.Variant, arrays: ptr, target: capi.Ndarray, pointers: ptr) -> None:
    rank, flats = i64(target.ndim), stack(base.NARGS * 16)
    total = rt_layouts.count_elements(target.dims, rank)
    is_dense = (target.flags & capi.C_CONTIGUOUS) != 0
    if likely(is_dense and is_flat(variant, arrays, target, rank, flats)):
        rt_layouts.run_flat(variant, arrays, pointers, total, flats)
        return
    shape, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * base.NARGS * 8)
    broadcast(arrays, rank, shape, strides)
    rt_layouts.operand_strides(target, rank, rank, strides + base.NIN * 8)
    if total != 0:
        total *= variant.itemsize
        rt_layouts.run_strided(variant, arrays, pointers, shape, strides, rank, total)
