"""Turn a tensor that was made inside ``vmap`` into a batch when a batch is written into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import UnsupportedError
from ....registry.dispatch.keys import BACKENDS
from ....registry.operator import Operator
from ....registry.values import describe
from ...autograd.alias_sets import find_whole, tensors_in_memory
from ...tensor.dunders import by_name
from ...tensor.tensor import Tensor, wrap_view
from .. import level_allocations
from ..levels import ADOPTED, LEVEL, Level, LevelTensor, find_alias_members
from .tensor import BatchedTensor

# By the class of a tensor: its class as a value of vmap; classes with more slots have their own.
ADOPTED_BATCHED: dict[type, type] = {
    Tensor: BatchedTensor,
    LevelTensor: BatchedTensor,
    BatchedTensor: BatchedTensor,
}
ADOPTED[BatchedTensor] = LevelTensor


def check_written(op: Operator, level: Level, target: Tensor) -> None:
    """Raise UnsupportedError if a batch is written into a tensor that all examples share; adopt one made inside.

    Raises:
        UnsupportedError: the tensor is older than the level, or not all tensors that share its memory were found.
    """
    if not (isinstance(target, BatchedTensor) and target._level is level) and not _adopt(level, target):
        raise UnsupportedError(
            f"{op.name} would write a value of {level.name}, which differs between examples, into "
            f"{describe(target)}, which is the same for all of them and was not made inside {level.name}, or shares "
            "memory with another tensor; make a new tensor: x = x.at[index].set(value), x = x + y; or write into a "
            "copy that is made inside: x = x.clone()"
        )


def _adopt(level: Level, target: Any) -> bool:
    """Turn a tensor that was made inside a level of ``vmap`` into a value of it, in place.

    Its elements are repeated for each example in new memory; tensors that share its memory become views of that.

    Returns:
        Whether it was done; False for an older tensor, or if not all tensors that share its memory were found.
    """
    kind = ADOPTED_BATCHED.get(type(target))
    if kind is None or (target._meta is not None and target._meta.alias_set is not None):
        return False
    members, view = _members(target)
    if not members or not level_allocations.is_made_since(level.scope, members[0]):
        return False
    one = members[0]._copy_object()
    payload = by_name("clone")(by_name("broadcast_to")(one, (level.batch_size, *one.shape)))
    if view is _view_strided and type(payload) is not Tensor:  # a constant of a trace
        return False
    _turn_into_batch(level, members[0], payload)
    for member in members[1:]:
        _turn_into_batch(level, member, view(member, one, payload))
    return True


def _turn_into_batch(level: Level, target: Any, payload: Tensor) -> None:
    """Turn a tensor into a value of a level of ``vmap``."""
    target.__class__ = ADOPTED_BATCHED[type(target)]
    target._payload, target._level, target._meta = payload, level, None
    target._keys = LEVEL | payload._keys & BACKENDS


def _members(target: Tensor) -> tuple[list[Tensor], Callable[[Tensor, Tensor, Tensor], Tensor]]:
    """All tensors that share a memory, the root first, and a function that computes their batches.

    The function takes another member, the root and the root's batch, and returns the member's batch. The list is empty
    if not all members are known.
    """
    result = tensors_in_memory(target)
    if result is None or len(result) == 1:
        return find_alias_members(target) or [], _retake_view
    whole = find_whole(result)
    if whole is None or any(member._meta is not None for member in result):
        return [], _view_strided
    return [whole, *(member for member in result if member is not whole)], _view_strided


def _retake_view(member: Any, whole: Tensor, batch: Tensor) -> Tensor:
    """The batch of a traced view: apply the view operator again to the base, which is a batch now."""
    view = member._meta.view
    member._copy_object()  # the trace gets another object in its place
    result: Tensor = view.derivative.op(*view.args, **view.kwargs)._payload
    return result


def _view_strided(member: Tensor, whole: Tensor, batch: Tensor) -> Tensor:
    """The batch of a plain view: the same offsets in the memory of each example."""
    array = member._array
    if not batch.shape[0]:
        return wrap_view(np.empty((0, *array.shape), array.dtype), batch)
    offset = array.__array_interface__["data"][0] - whole._array.__array_interface__["data"][0]
    shape, strides = (batch.shape[0], *array.shape), (batch._array.strides[0], *array.strides)
    part = np.ndarray(shape, array.dtype, batch._array, offset, strides)
    part.flags.writeable = array.flags.writeable
    return wrap_view(part, batch)
