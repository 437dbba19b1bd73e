"""Writing a batch into a tensor that was made inside ``vmap``: from then on it is one for each example."""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedError
from ...registry.keys import BACKENDS
from ...registry.operator import Operator
from ...registry.values import describe
from .. import made
from ..dunders import by_name
from ..levels import ADOPTED, LEVEL, Level, LevelTensor, _company
from ..tensor import Tensor
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
        UnsupportedError: the tensor is from outside, or a view, or has views.
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

    Its elements are repeated, once for each example, in new memory; views of it would not know, so it has none.

    Returns:
        Whether it could be done: not for a tensor from outside, a view, or one that has views.
    """
    kind = ADOPTED_BATCHED.get(type(target))
    if kind is None or (target._meta is not None and target._meta.family is not None):
        return False
    if not _is_alone(target) or not made.since(level.depth, target):
        return False
    one = target._twin()
    payload = by_name("clone")(by_name("broadcast_to")(one, (level.batch_size, *one.shape)))
    target.__class__ = kind
    target._payload, target._level, target._meta = payload, level, None
    target._keys = LEVEL | payload._keys & BACKENDS
    return True


def _is_alone(target: Any) -> bool:
    """Whether no other tensor lies in the same memory."""
    members = _company(target)
    return members is not None and len(members) == 1
