"""Replace the tensors among the residuals of graph nodes, for instance by tensors without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import pytree
from ...registry.dtypes import DType
from ..tensor.storage import Hold
from ..tensor.tensor import Tensor
from .context import Context
from .node import Change, DroppedResiduals, Node, version_of


def change(node: Node, with_: Change) -> bool:
    """Apply a change to the residuals of a node; returns False if they have been dropped and are changed later."""
    node.residuals, node.versions = _change_residuals(node.residuals, node.versions, with_)
    return node.residuals.__class__ is not DroppedResiduals


def _change_residuals(residuals: Any, versions: Any, change: Change) -> tuple[Any, Any]:
    if residuals.__class__ is DroppedResiduals:
        return DroppedResiduals(ChangedResiduals(residuals.source, change), residuals.index), versions
    return change_values(residuals, versions, change)


class ChangedResiduals:
    """The source of dropped residuals that are changed each time they have been recomputed."""

    __slots__ = ("_change", "_source")

    def __init__(self, source: Any, change: Change):
        self._source, self._change = source, change

    def take(self, index: int) -> Any:
        """The state of the recomputed node, with its residuals changed."""
        residuals, versions, *rest = self._source.take(index)
        return (*_change_residuals(residuals, versions, self._change), *rest)


def change_values(values: Sequence[Any], versions: Sequence[Any], change: Change) -> tuple[Any, Any]:
    """Apply a change to the tensors among residuals; return residuals and versions."""
    changed, numbers = [], []
    for value, version in zip(values, versions):
        if version is not None:
            kind = version.__class__
            if kind is list:  # of a tuple of tensors
                value, version = _change_items(value, version, change)
            elif kind is tuple:  # of a result saved by a context
                value, version = change(value, *version)
            else:
                value, version = change(value, version, 0 if kind is Hold else None)
        changed.append(value)
        numbers.append(version)
    return tuple(changed), tuple(numbers)


def _change_items(items: Sequence[object], versions: list[Any], change: Change) -> tuple[Any, list[Any]]:
    pairs = [
        (item, known) if known is None else change(item, known, index if type(known) is Hold else None)
        for index, (item, known) in enumerate(zip(items, versions))
    ]
    return tuple(item for item, _ in pairs), [known for _, known in pairs]


def change_attributes(context: Context, change: Change) -> bool:
    """Apply a change to the tensors that a user's forward has stored as attributes of a context.

    Returns:
        Whether the attributes consist of tensors, numbers, strings and containers of these.
    """
    is_whole = True
    for name, value in vars(context).items():
        if name in _OWN_ATTRIBUTES or type(value) in _PLAIN_TYPES:
            continue
        leaves, treedef = pytree.flatten(value)
        changed = [change(x, version_of(x), None)[0] if isinstance(x, Tensor) else x for x in leaves]
        is_whole = is_whole and all(isinstance(x, Tensor) or type(x) in _PLAIN_TYPES for x in leaves)
        if any(new is not old for new, old in zip(changed, leaves)):
            setattr(context, name, treedef.unflatten(changed))
    return is_whole


_OWN_ATTRIBUTES = frozenset(vars(Context(())))
_PLAIN_TYPES = frozenset((int, float, complex, bool, str, bytes, type(None), DType))
