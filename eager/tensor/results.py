"""Results of operators (a tensor, or nested tuples and lists of tensors): flatten them and map over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...registry.values import TensorBase

if TYPE_CHECKING:
    pass


def flat(out: object) -> list[Any]:
    """Flatten the results of a call; items that are not tensors are included."""
    if isinstance(out, (tuple, list)):
        return [item for part in out for item in flat(part)]
    return [out]


def map_results(change: Callable[[Any, int], object], out: object, start: int = 0) -> Any:
    """Replace each tensor by ``change(tensor, index)``, with its index in the flat results."""
    if not isinstance(out, (tuple, list)):
        return change(out, start) if isinstance(out, TensorBase) else out
    items = []
    for item in out:
        items.append(map_results(change, item, start))
        start += len(flat(item))
    return tuple(items) if isinstance(out, tuple) else items


def specs(out: object) -> object:
    """The specs of the results in the same structure; None for items that are not tensors."""
    if isinstance(out, (tuple, list)):
        return [specs(item) for item in out]
    return getattr(out, "spec", None)
