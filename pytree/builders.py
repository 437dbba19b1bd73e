"""Trees of built-in containers that are built again and again: by one expression, which Python compiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

OFTEN = 16  # trees built one container at a time before the expression is worth its compilation
DEEPEST, MOST_LEAVES = 60, 4000

Builder = Callable[[Sequence[Any]], Any]


def builder(treedef: Any) -> Builder | None:
    """What makes a tree of its leaves; None where not all its containers and keys can be written as literals.

    >>> from tandem import pytree
    >>> builder(pytree.tree_structure({"w": [0, None], "b": (0,)}))([1, 2])
    {'w': [1, None], 'b': (2,)}
    """
    if treedef.leaf_count > MOST_LEAVES:
        return None
    text = _text(treedef, itertools.count(), DEEPEST)
    if text is None:
        return None
    made: Builder = eval(f"lambda leaves: {text}", {})  # of literals alone: see _text
    return made


def _text(treedef: Any, numbers: Iterator[int], depth: int) -> str | None:
    kind = treedef.kind
    if kind is None:
        return f"leaves[{next(numbers)}]"
    if kind is type(None):
        return "None"
    if kind not in (list, tuple, dict) or not depth:
        return None
    inside = [_text(child, numbers, depth - 1) for child in treedef.children]
    if None in inside:
        return None
    if kind is not dict:
        items = "".join(f"{item}, " for item in inside)
        return f"[{items}]" if kind is list else f"({items})"
    if not {*map(type, treedef.static)} <= {str, int}:
        return None
    return "{" + ", ".join(f"{key!r}: {item}" for key, item in zip(treedef.static, inside)) + "}"
