"""Key paths: the keys that lead from a container to a child.

Source: the key types of ``jax.tree_util``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..named_tuple import NamedTuple


class SequenceKey(NamedTuple):
    """An item of a list or tuple: ``[0]``."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


class DictKey(NamedTuple):
    """An item of a dict: ``['w']``."""

    key: object

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(NamedTuple):
    """An attribute, of a namedtuple or dataclass: ``.mean``."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(NamedTuple):
    """A child of a registered class that does not name its children: ``[0]``."""

    key: int

    def __str__(self) -> str:
        return f"[{self.key}]"


KeyPath = tuple[Any, ...]


def keystr(path: Iterable[object], *, simple: bool = False, separator: str = "") -> str:
    """A key path as text.

    Args:
        path: its steps, from the root to the leaf.
        simple: whether the names stand alone, ``w`` for ``['w']``.
        separator: what stands between two steps.

    Returns:
        The text; empty for the root.

    >>> from tandem import pytree
    >>> path = (pytree.DictKey("layers"), pytree.SequenceKey(0), pytree.GetAttrKey("w"))
    >>> pytree.keystr(path), pytree.keystr(path, simple=True, separator="/")
    ("['layers'][0].w", 'layers/0/w')
    """
    return separator.join(_name(step) if simple else str(step) for step in path)


def _name(step: Any) -> str:
    known = isinstance(step, (SequenceKey, DictKey, GetAttrKey, FlattenedIndexKey))
    return str(step[0]) if known else str(step)
