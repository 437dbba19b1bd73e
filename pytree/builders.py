"""Compiled builders: rebuild trees of built-in containers with one compiled expression."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .treedef import TreeDef

COMPILE_AFTER = 16  # trees built one container at a time before the expression is worth its compilation
MAX_DEPTH, MAX_LEAVES = 60, 4000

Builder = Callable[[Sequence[Any]], Any]


def compile_builder(treedef: TreeDef) -> Builder | None:
    """Compile a function from leaves to the tree; None if some container or key has no literal.

    >>> from tandem import pytree
    >>> compile_builder(pytree.tree_structure({"w": [0, None], "b": (0,)}))([1, 2])
    {'w': [1, None], 'b': (2,)}
    """
    if treedef.leaf_count > MAX_LEAVES:
        return None
    text = _expression(treedef, itertools.count(), MAX_DEPTH)
    if text is None:
        return None
    made: Builder = eval(f"lambda leaves: {text}", {})  # of literals alone: see _text
    return made


def _expression(treedef: TreeDef, numbers: Iterator[int], depth: int) -> str | None:
    kind = treedef.kind
    if kind is None:
        return f"leaves[{next(numbers)}]"
    if kind is type(None):
        return "None"
    if kind not in (list, tuple, dict) or not depth:
        return None
    inside = [_expression(child, numbers, depth - 1) for child in treedef.children]
    if None in inside:
        return None
    if kind is not dict:
        items = "".join(f"{item}, " for item in inside)
        return f"[{items}]" if kind is list else f"({items})"
    if not {*map(type, treedef.static)} <= {str, int}:
        return None
    return "{" + ", ".join(f"{key!r}: {item}" for key, item in zip(treedef.static, inside)) + "}"
