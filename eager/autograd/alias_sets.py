"""Before an in-place write, find untracked tensors that alias the target and merge them into one alias set.

A view of a plain tensor is not recorded when it is made, since most are never written. When a gradient first flows into
the memory, the garbage collector's lists of objects yield the tensors on its storage, and each becomes a view of the
tensor that covers the memory, by the offsets of its elements. The reference count of the storage shows whether all of
them were found. If not, or if one already has an autograd graph of its own, the write is refused. The young generations
are searched first: views are mostly new, and to search all objects takes milliseconds.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UnsupportedError
from ...operators.declare.ownership import unwrap_levels
from ...registry.operator import Operator, operators
from ...registry.values import describe
from ..tensor.storage import count_holds, owner_of
from ..tensor.tensor import Tensor, wrap, wrap_view
from .autograd_meta import AutogradMeta, is_detached
from .derivative_rules import derivative_of
from .view_writes import PROBE_REFERENCES, AliasSet, View, count_references

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry.types import Array


# Objects among which the tensors on a storage are found, the fastest first.
_CANDIDATES: tuple[Callable[[object], list[Any]], ...] = (
    lambda storage: gc.get_objects(0),
    lambda storage: gc.get_objects(1),
    gc.get_referrers,
)


def check_unshared(op: Operator, target: Tensor) -> None:
    """Raise UnsupportedError if a tensor outside the alias set shares the memory: its gradient would be lost."""
    alias_set = None if target._meta is None else target._meta.alias_set
    lowest = unwrap_levels(target)
    members = [lowest] if alias_set is None else [unwrap_levels(member) for member in alias_set.live()]
    has_untracked = lowest._has_untracked_aliases(members)
    if has_untracked is False or (has_untracked is None and lowest._storage is None):
        return
    known = sum(member._storage is lowest._storage for member in members)
    if has_untracked is None and _count_users(lowest) <= known:
        return
    if has_untracked is None and not is_detached(lowest):
        known += sum(map(is_detached, _find_tensors_on_storage(lowest, _count_users(lowest))))
        if _count_users(lowest) <= known:
            return
    if make_alias_set(target) is None:
        raise UnsupportedError(
            f"{op.name}: a gradient goes through this write into {describe(target)}, and it, or another tensor in the "
            "same memory, is a view that was created in no_grad mode or by detach(), or whose history is not recorded: "
            "a gradient would be lost; write inside td.no_grad(), or through the tensor that owns the memory "
            "(x[index] = value), or make a new one: x.at[index].set(value), x.at[index].add(value)"
        )


def make_alias_set(target: Tensor) -> list[Tensor] | None:
    """Merge the plain tensors that share the target's memory into one alias set; detached tensors stay out.

    Returns:
        The members, the root first; None if not all tensors on the storage were found, or one of them has an autograd
        graph.
    """
    result = tensors_in_memory(target)
    if result is None:
        return None
    if is_detached(target) and len(result) > 1:
        return None
    result = [t for t in result if t is target or not is_detached(t)]
    if any(t._meta is not None and t._meta.requires_grad for t in result):
        return None
    owner = owner_of(target._array)
    root = find_whole(result)
    if root is None:
        if not _covers(owner, owner) or owner.dtype != target._array.dtype:
            return None
        root = wrap_view(owner, target)
    return _build_alias_set(root, [t for t in result if t is not root])


def tensors_in_memory(target: Tensor) -> list[Tensor] | None:
    """The plain tensors that share a tensor's memory; None if not all were found."""
    if type(target) is not Tensor or target._storage is None:
        return None
    result = _find_tensors_on_storage(target, _count_users(target))
    return result if len(result) == _count_users(target) else None


def find_whole(tensors: list[Tensor]) -> Tensor | None:
    """The tensor that covers the whole memory in order, or None."""
    owner = owner_of(tensors[0]._array)
    return next((t for t in tensors if _covers(t._array, owner)), None)


def _count_users(target: Tensor) -> int:
    """The references to a tensor's storage: one for each plain tensor on it, and any that are not known."""
    return count_references(target) - count_holds(target._storage) - PROBE_REFERENCES


def _find_tensors_on_storage(target: Tensor, wanted: int) -> list[Tensor]:
    """The plain tensors on a tensor's storage, itself included; all of them if there are at most ``wanted``."""
    result: dict[int, Tensor] = {}
    for find_candidates in _CANDIDATES:
        for t in find_candidates(target._storage):
            if type(t) is Tensor and t._storage is target._storage:
                result[id(t)] = t  # a collection in between may move an object to the next generation
        if len(result) == wanted:
            break
    return list(result.values())


def _covers(array: Array, owner: Array) -> bool:
    """Whether an array has all elements of the memory, in order."""
    return bool(
        array.flags.c_contiguous
        and array.nbytes == owner.nbytes
        and array.__array_interface__["data"][0] == owner.__array_interface__["data"][0]
    )


def _build_alias_set(root: Tensor, others: list[Tensor]) -> list[Tensor] | None:
    offset_arrays = []
    for other in others:
        offsets = _element_offsets(other._array, root._array)
        if offsets is None:
            return None
        offset_arrays.append(offsets)
    root._meta = AutogradMeta(None, 0, False)
    alias_set = root._meta.alias_set = AliasSet(root)
    flat = wrap(root._array.reshape(-1))  # an intermediate, not counted among the tensors on the storage
    reshape, index = derivative_of(operators["td::reshape"]), derivative_of(operators["td::index"])
    add_member(alias_set, flat, View(reshape, (root, (-1,)), {}))
    for member, offsets in zip(others, offset_arrays):
        add_member(alias_set, member, View(index, (flat, (wrap(offsets),), 0), {}))
    return [root, flat, *others]


def add_member(alias_set: AliasSet, member: Tensor, view: View) -> None:
    """Add a tensor without an autograd graph to an alias set."""
    member._meta = AutogradMeta(None, 0, False)
    member._meta.view, member._meta.alias_set = view, alias_set
    alias_set.add(member)


def _element_offsets(array: Array, whole: Array) -> Array | None:
    """The flat index of each element of `array` in the memory of `whole`; None if the elements do not coincide."""
    if array.dtype != whole.dtype:
        return None
    offset = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    steps = (offset, *array.strides)
    if any(step % array.itemsize for step in steps):
        return None
    indices = np.asarray(offset // array.itemsize, dtype=np.int64)
    for axis, (size, step) in enumerate(zip(array.shape, array.strides)):
        shape = (-1,) + (1,) * (array.ndim - 1 - axis)
        indices = indices + np.arange(size).reshape(shape) * (step // array.itemsize)
    return np.broadcast_to(indices, array.shape).copy()
