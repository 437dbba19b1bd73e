"""Native runtime: arrays of destroyed tensors, which results and views of the same dtype and sizes take.

A loop makes arrays of the same few shapes again and again. NumPy allocates an object, its sizes and its memory for
each, and computes its flags; an array that nothing else refers to has all of them. The dtype and the sizes give a pair
of slots, and each holds one array. Views are kept without the memory that they were views of.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i32, i64, likely, load, native, ptr, stack, store, unlikely
from . import capi, rt_layouts
from . import rt_base as base

MOST_AXES: i64 = 4
OWN_FLAGS = capi.C_CONTIGUOUS | capi.ALIGNED | capi.WRITEABLE | capi.OWNDATA


@native
def find_spares(slots: ptr, type_num: i64, rank: i64, dims: ptr) -> ptr:
    """Return the first of the two slots for arrays of a dtype and of some sizes."""
    mixed = type_num * 5 + rank
    for d in range(rank):
        mixed = mixed * 31 + load(i64, dims, d * 8)
    return slots + ((mixed ^ mixed >> 7) & (base.SPARE_SLOTS // 2 - 1)) * 16


@native
def has_sizes(spare: capi.Ndarray, descr: ptr, rank: i64, dims: ptr, strides: ptr) -> bool:
    """Return whether a slot holds an array of a dtype and of some sizes, and strides if those are not NULL."""
    return bool(
        spare != NULL
        and spare.descr == descr
        and i64(spare.ndim) == rank
        and rt_layouts.equal_integers(spare.dims, dims, rank)
        and (strides == NULL or rt_layouts.equal_integers(spare.strides, strides, rank))
    )


# Take ----------------------------------------------------------------------------------------------------------------
@native
def take_spare(slots: ptr, descr: capi.Descr, rank: i64, dims: ptr, strides: ptr) -> ptr:
    """Return the array of one of two slots, which becomes free, or NULL."""
    slot = find_spares(slots, i64(descr.type_num), rank, dims)
    if not has_sizes(load(ptr, slot, 0), descr, rank, dims, strides):
        slot += 8
        if not has_sizes(load(ptr, slot, 0), descr, rank, dims, strides):
            return NULL
    result = load(ptr, slot, 0)
    store(ptr, slot, 0, NULL)
    return result


@native
def take_owner(spares: base.SpareArrays, descr: ptr, rank: i64, dims: ptr) -> ptr:
    """Return a contiguous array of uninitialized memory, or NULL."""
    if unlikely(rank > MOST_AXES or spares.limit == 0):
        return NULL
    return take_spare(spares.owners, descr, rank, dims, NULL)


@native
def take_view(
    spares: base.SpareArrays, descr: capi.Descr, rank: i64, dims: ptr, strides: ptr, data: ptr, flags: i32
) -> ptr:
    """Return an array over aligned memory that nothing keeps alive yet, or NULL."""
    if unlikely(rank > MOST_AXES or spares.limit == 0 or not is_aligned_for(i64(data), descr.itemsize)):
        return NULL
    result: capi.Ndarray = take_spare(spares.views, descr, rank, dims, strides)
    if likely(result != NULL):  # which has the flags of its layout
        result.data = data
        result.flags = result.flags & i32(~capi.WRITEABLE) | flags & i32(capi.WRITEABLE)
    return result


@native
def is_aligned_for(address: i64, size: i64) -> bool:
    """Return whether elements of `size` bytes are aligned at an address, as far as eight bytes."""
    return address & ((size if size < 8 else 8) - 1) == 0


# Keep ----------------------------------------------------------------------------------------------------------------
@native
def keep_array(g: base.Globals, spare: capi.Ndarray) -> bool:
    """Take over a reference to the array of a destroyed tensor; return false if that is left to the caller."""
    spares: base.SpareArrays = g.spare_arrays
    if not is_unused(spares, spare) or i64(spare.ndim) > MOST_AXES:
        return False
    if likely((spare.flags & capi.OWNDATA) != 0):
        return is_new_array(spare, spares.limit) and put_spare(spares.owners, spare)
    owner = spare.base
    if owner == NULL or not put_spare(spares.views, spare):
        return False
    spare.base = NULL
    capi.decref(owner)
    return True


@native
def is_unused(spares: base.SpareArrays, spare: capi.Ndarray) -> bool:
    """Return whether nothing else refers to an array, which has flags that new arrays have, and may be kept."""
    return bool(
        spares.limit != 0
        and spare.refcnt == 1
        and capi.type_of(spare) == capi.PyArray_Type
        and spare.weak_references == NULL
        and spare.exports == NULL
        and (spare.flags & capi.ALIGNED) != 0
        and (spare.flags & i32(~(OWN_FLAGS | capi.F_CONTIGUOUS))) == 0
    )


@native
def is_new_array(spare: capi.Ndarray, most: i64) -> bool:
    """Return whether an array of at most so many bytes is like a new one; axes of length 1 may have any stride."""
    rank, strides = i64(spare.ndim), stack(MOST_AXES * 8)
    size = rt_layouts.write_row_major_strides(strides, 8, spare.dims, rank, rt_layouts.item_size(spare))
    return bool(
        (spare.flags & OWN_FLAGS) == OWN_FLAGS
        and spare.base == NULL
        and size <= most
        and rt_layouts.equal_integers(spare.strides, strides, rank)
    )


@native
def put_spare(slots: ptr, spare: capi.Ndarray) -> bool:
    """Store an array in a free one of its two slots."""
    slot = find_spares(slots, i64(capi.Descr(spare.descr).type_num), i64(spare.ndim), spare.dims)
    if load(ptr, slot, 0) != NULL:
        slot += 8
        if load(ptr, slot, 0) != NULL:
            return False
    store(ptr, slot, 0, spare)
    return True
