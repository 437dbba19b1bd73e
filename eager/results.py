"""What an operator gives back: a tensor, or tuples and lists of them, as a flat list and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..registry.values import TensorBase


def flat(out: Any) -> list[Any]:
    """The results of a call in order; what is no tensor keeps its place."""
    if isinstance(out, (tuple, list)):
        return [item for part in out for item in flat(part)]
    return [out]


def map_results(change: Callable[[Any, int], Any], out: Any, start: int = 0) -> Any:
    """The same results with each tensor replaced by what ``change`` makes of it and its number among them."""
    if not isinstance(out, (tuple, list)):
        return change(out, start) if isinstance(out, TensorBase) else out
    found = []
    for item in out:
        found.append(map_results(change, item, start))
        start += len(flat(item))
    return tuple(found) if isinstance(out, tuple) else found


def specs(out: Any) -> Any:
    """The results' specs in the same structure; None for what is no tensor."""
    if isinstance(out, (tuple, list)):
        return [specs(item) for item in out]
    return getattr(out, "spec", None)
