"""Results of operators (a tensor, or nested tuples and lists of tensors): flatten them and map over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...registry.values import TensorBase

if TYPE_CHECKING:
    pass


def flat(out: object) -> list[Any]:
    """Flatten the results of a call; items that are not tensors are included."""
    if not isinstance(out, (tuple, list)):
        return [out]
    items: list[Any] = []
    for part in out:
        if isinstance(part, (tuple, list)):
            items += flat(part)
        else:
            items.append(part)
    return items


def contains(values: Sequence[object], item: object) -> bool:
    """Whether nested tuples and lists hold an object."""
    return any(
        value is item or (isinstance(value, (tuple, list)) and contains(value, item)) for value in values
    )


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
