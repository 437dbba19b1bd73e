"""Writing a batch into a tensor that was made inside ``vmap``: from then on it is one for each example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...registry.keys import BACKENDS
from ...registry.operator import Operator
from ...registry.values import describe
from .. import made
from ..aliases import covering, in_memory
from ..dunders import by_name
from ..levels import ADOPTED, LEVEL, Level, LevelTensor, _company
from ..tensor import Tensor, wrap_view
from .tensor import BatchedTensor

# The class of a value of vmap that was another tensor when it was made; classes with more slots have their own.
ADOPTED_BATCHED: dict[type, type] = {
    Tensor: BatchedTensor,
    LevelTensor: BatchedTensor,
    BatchedTensor: BatchedTensor,
}
ADOPTED[BatchedTensor] = LevelTensor


def check_written(op: Operator, level: Level, target: Any) -> None:
    """Refuse to write a batch into what all examples share; a tensor that was made inside becomes a batch.

    Raises:
        UnsupportedError: the tensor is from outside, or not all are known that lie in its memory.
    """
    if not (isinstance(target, BatchedTensor) and target._level is level) and not _adopt(level, target):
        raise UnsupportedError(
            f"{op.name} would write a value of {level.name}, which differs from example to example, into "
            f"{describe(target)}, which is the same for all of them and was not made inside {level.name}, or shares "
            "memory with another tensor; make a new tensor: x = x.at[index].set(value), x = x + y; or write into a "
            "copy that is made inside: x = x.clone()"
        )


def _adopt(level: Level, target: Any) -> bool:
    """Make a tensor that was made inside a level of ``vmap`` a value of it, the same object.

    Its elements are repeated, once for each example, in new memory; all that lie in its memory become views of that.

    Returns:
        Whether it could be done: not for a tensor from outside, or if not all are known that lie in its memory.
    """
    kind = ADOPTED_BATCHED.get(type(target))
    if kind is None or (target._meta is not None and target._meta.family is not None):
        return False
    members, view = _members(target)
    if not members or not made.since(level.depth, members[0]):
        return False
    one = members[0]._twin()
    payload = by_name("clone")(by_name("broadcast_to")(one, (level.batch_size, *one.shape)))
    if view is _view_strided and type(payload) is not Tensor:  # a constant of a trace
        return False
    _become(level, members[0], payload)
    for member in members[1:]:
        _become(level, member, view(member, one, payload))
    return True


def _become(level: Level, target: Any, payload: Any) -> None:
    """Make a tensor a value of a level of ``vmap``."""
    target.__class__ = ADOPTED_BATCHED[type(target)]
    target._payload, target._level, target._meta = payload, level, None
    target._keys = LEVEL | payload._keys & BACKENDS


def _members(target: Any) -> tuple[list[Any], Callable[[Any, Any, Any], Any]]:
    """All tensors in the memory of one, that of the whole memory first, and what makes the batch of each of the others
    from it, the whole one and that one's batch; none if they cannot be known."""
    found = in_memory(target)
    if found is None or len(found) == 1:
        return _company(target) or [], _view_again
    whole = covering(found)
    if whole is None or any(member._meta is not None for member in found):
        return [], _view_strided
    return [whole, *(member for member in found if member is not whole)], _view_strided


def _view_again(member: Any, whole: Any, batch: Any) -> Any:
    """The batch of a traced view: it is taken once more, from what is a batch by now."""
    view = member._meta.view
    member._twin()  # the trace has another in its place
    return view.plan.op(*view.args, **view.kwargs)._payload


def _view_strided(member: Any, whole: Any, batch: Any) -> Any:
    """The batch of a plain view: the same places in the memory of each example."""
    array = member._array
    if not batch.shape[0]:
        return wrap_view(np.empty((0, *array.shape), array.dtype), batch)
    offset = array.__array_interface__["data"][0] - whole._array.__array_interface__["data"][0]
    shape, strides = (batch.shape[0], *array.shape), (batch._array.strides[0], *array.strides)
    part = np.ndarray(shape, array.dtype, batch._array, offset, strides)
    part.flags.writeable = array.flags.writeable
    return wrap_view(part, batch)
