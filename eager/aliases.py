"""Who else lies in a memory that is about to be written: views that nobody has recorded become a family.

A view of a plain tensor is not recorded when it is made; most are never written. When a gradient first flows into such
a memory, the tensors that lie there are looked for among the objects of the process, and each becomes a view of the one
that covers the memory, by the places of its elements. The number of references to the storage says whether all have
been found; if not, or if one of them has a history of its own already, the write is refused.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..registry.operator import Operator, operators
from ..registry.values import describe
from .meta import AutogradMeta, is_detached
from .plans import plan_of
from .storage import owner_of, saved_count
from .tensor import Tensor, wrap, wrap_view
from .views import LOOKING, Family, View, bottom, references


def check_unshared(op: Operator, target: Any) -> None:
    """Refuse to write where a tensor outside of the family shares the memory: its gradient would be lost."""
    family = None if target._meta is None else target._meta.family
    lowest = bottom(target)
    members = [lowest] if family is None else [bottom(member) for member in family.live()]
    strangers = lowest._strangers(members)
    if strangers is False or (strangers is None and lowest._storage is None):
        return
    known = sum(member._storage is lowest._storage for member in members)
    if strangers is None and references(lowest) <= known + saved_count(lowest._storage) + LOOKING:
        return
    if strangers is None and not is_detached(lowest):
        known += sum(map(is_detached, _neighbours(lowest)))
        if references(lowest) <= known + saved_count(lowest._storage) + LOOKING:
            return
    if gather(target) is None:
        raise UnsupportedError(
            f"{op.name}: a gradient goes through this write into {describe(target)}, and it, or another tensor in the "
            "same memory, is a view that was created in no_grad mode or by detach(), or whose history is not recorded: "
            "a gradient would be lost; write inside td.no_grad(), or through the tensor that owns the memory "
            "(x[index] = value), or make a new one: x.at[index].set(value), x.at[index].add(value)"
        )


def gather(target: Any) -> list[Any] | None:
    """Make the plain tensors in a memory a family, none of which has a history so far; what was detached stays out.

    Returns:
        Its members, the root first; None if they cannot be known, or one of them has a history.
    """
    found = in_memory(target)
    if found is None:
        return None
    if is_detached(target) and len(found) > 1:
        return None
    found = [t for t in found if t is target or not is_detached(t)]
    if any(t._meta is not None and t._meta.requires_grad for t in found):
        return None
    owner = owner_of(target._array)
    root = covering(found)
    if root is None:
        if not _covers(owner, owner) or owner.dtype != target._array.dtype:
            return None
        root = wrap_view(owner, target)
    return _family(root, [t for t in found if t is not root])


def in_memory(target: Any) -> list[Any] | None:
    """The plain tensors in the memory of one; None if not all are known."""
    if type(target) is not Tensor or target._storage is None:
        return None
    found = _neighbours(target)
    return found if references(target) == len(found) + saved_count(target._storage) + LOOKING else None


def covering(found: list[Any]) -> Any:
    """The one of the plain tensors in a memory that shows all of it, in order, or None."""
    owner = owner_of(found[0]._array)
    return next((t for t in found if _covers(t._array, owner)), None)


def _neighbours(target: Any) -> list[Any]:
    """The plain tensors in a memory, with the one that is given."""
    found = [t for t in gc.get_referrers(target._storage) if type(t) is Tensor]
    return [t for t in found if t._storage is target._storage]


def _covers(array: Any, owner: Any) -> bool:
    """Whether an array shows all elements of the memory, in order."""
    return bool(
        array.flags.c_contiguous
        and array.nbytes == owner.nbytes
        and array.__array_interface__["data"][0] == owner.__array_interface__["data"][0]
    )


def _family(root: Any, others: list[Any]) -> list[Any] | None:
    places = [_places(t._array, root._array) for t in others]
    if any(found is None for found in places):
        return None
    root._meta = AutogradMeta(None, 0, False)
    family = root._meta.family = Family(root)
    flat = wrap(root._array.reshape(-1))  # on the way only: it does not count as one that shares the storage
    reshape, index = plan_of(operators["td::reshape"]), plan_of(operators["td::index"])
    enter(family, flat, View(reshape, (root, (-1,)), {}))
    for member, found in zip(others, places):
        enter(family, member, View(index, (flat, (wrap(found),), 0), {}))
    return [root, flat, *others]


def enter(family: Family, member: Any, view: View) -> None:
    """Make a tensor without history a member of a family."""
    member._meta = AutogradMeta(None, 0, False)
    member._meta.view, member._meta.family = view, family
    family.add(member)


def _places(array: Any, whole: Any) -> Any:
    """For each element of an array its place in the memory of another one; None if it has other elements."""
    if array.dtype != whole.dtype:
        return None
    offset = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    steps = (offset, *array.strides)
    if any(step % array.itemsize for step in steps):
        return None
    places = np.asarray(offset // array.itemsize, dtype=np.int64)
    for axis, (size, step) in enumerate(zip(array.shape, array.strides)):
        shape = (-1,) + (1,) * (array.ndim - 1 - axis)
        places = places + np.arange(size).reshape(shape) * (step // array.itemsize)
    return np.broadcast_to(places, array.shape).copy()
