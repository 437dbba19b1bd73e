"""Functions on trees: flatten, map, reduce, transpose and broadcast, also with key paths.

The names are those of ``jax.tree_util``; :mod:`tandem.tree` has their short forms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..errors import ArgumentError, TreeError
from .keys import KeyPath
from .matching import broadcast_prefix, difference, flatten_up_to
from .nodes import node_of
from .treedef import LEAF, IsLeaf, TreeDef, flatten, flatten_by_path

_MISSING = object()


def tree_flatten(tree: object, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, left to right, and its containers; see :func:`flatten`.

    >>> import tandem as td
    >>> td.tree.flatten([1, (2, 3)], is_leaf=lambda node: type(node) is tuple)[0]
    [1, (2, 3)]
    """
    return flatten(tree, is_leaf)


def tree_unflatten(treedef: TreeDef, leaves: Iterable[object]) -> Any:
    """The tree of ``treedef`` with these leaves.

    Raises:
        ValueArgumentError: their number is not the tree's.
    """
    return treedef.unflatten(tuple(leaves))


def tree_leaves(tree: object, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree, left to right."""
    return flatten(tree, is_leaf)[0]


def tree_structure(tree: object, is_leaf: IsLeaf | None = None) -> TreeDef:
    """The containers of a tree.

    >>> import tandem as td
    >>> td.tree.structure({"w": [1, 2], "b": None})
    dict(['w']: list([0]: *, [1]: *), ['b']: NoneType())
    """
    return flatten(tree, is_leaf)[1]


def all_leaves(items: Iterable[object], is_leaf: IsLeaf | None = None) -> bool:
    """Whether none of the items is a container."""
    return all(node_of(type(item)) is None or (is_leaf is not None and is_leaf(item)) for item in items)


# -- map ---------------------------------------------------------------------------------------------------------------
def tree_map(fn: Callable[..., object], tree: object, *rest: object, is_leaf: IsLeaf | None = None) -> Any:
    """The tree with each leaf replaced by ``fn(leaf, *what the other trees have there)``.

    Args:
        fn: called with a leaf of ``tree`` and what each of ``rest`` has in its place.
        tree: the tree that gives the containers.
        rest: more trees, which begin with the same containers. Dicts may hold their keys in another order.
        is_leaf: called with everything in ``tree``; what it says yes to is a leaf.

    Returns:
        A tree of the containers of ``tree``.

    Raises:
        TreeError: the containers differ; the message names the first key path where they do.

    >>> import tandem as td
    >>> td.tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    leaves, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([fn(leaf) for leaf in leaves])
    return treedef.unflatten([fn(*row) for row in _zip_leaves(treedef, leaves, rest)])


def _zip_leaves(
    treedef: TreeDef, leaves: list[object], rest: Sequence[object]
) -> Iterable[tuple[object, ...]]:
    """For each leaf what all trees have at its place."""
    columns = [flatten_up_to(treedef, other, _tree_name(index)) for index, other in enumerate(rest)]
    return zip(leaves, *columns)


def _tree_name(index: int) -> str:
    return f"tree_map: trees differ: the {('second', 'third')[index] if index < 2 else f'{index + 2}th'} tree"


def tree_map_with_path(
    fn: Callable[..., object],
    tree: object,
    *rest: object,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """As :func:`tree_map`, with ``fn(path, leaf, ...)``; :func:`.keys.keystr` makes text of a path.

    Args:
        fn: called with the key path of a leaf, and then as by :func:`tree_map`.
        tree: the tree that gives the containers.
        rest: more trees, which begin with the same containers.
        is_leaf: called with everything in ``tree``; what it says yes to is a leaf.
        is_leaf_takes_path: whether ``is_leaf`` is called with the key path first.

    >>> import tandem as td
    >>> td.tree.map_with_path(lambda path, x: td.pytree.keystr(path), {"w": [1, 2]})
    {'w': ["['w'][0]", "['w'][1]"]}
    """
    leaves, treedef = _flatten_tree(tree, is_leaf, is_leaf_takes_path)
    rows = _zip_leaves(treedef, leaves, rest)
    return treedef.unflatten([fn(path, *row) for path, row in zip(treedef.key_paths(), rows)])


def _flatten_tree(
    tree: object, is_leaf: Callable[..., bool] | None, takes_path: bool
) -> tuple[list[object], TreeDef]:
    return flatten_by_path(tree, is_leaf) if takes_path and is_leaf else flatten(tree, is_leaf)


def tree_flatten_with_path(
    tree: object, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], TreeDef]:
    """Pairs of key path and leaf, left to right, and the containers.

    Args:
        tree: the tree.
        is_leaf: called with everything in the tree; what it says yes to is a leaf.
        is_leaf_takes_path: whether ``is_leaf`` is called with the key path first.

    >>> import tandem as td
    >>> td.tree.flatten_with_path({"w": 1})[0]
    [((DictKey(key='w'),), 1)]
    """
    leaves, treedef = _flatten_tree(tree, is_leaf, is_leaf_takes_path)
    return list(zip(treedef.key_paths(), leaves)), treedef


def tree_leaves_with_path(
    tree: object, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Pairs of key path and leaf, left to right; the arguments are those of :func:`tree_flatten_with_path`."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# -- reduce ------------------------------------------------------------------------------------------------------------
def tree_reduce(
    fn: Callable[[Any, Any], Any],
    tree: object,
    initializer: object = _MISSING,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """The leaves of a tree put together two by two, from left to right.

    Args:
        fn: a function of what there is so far and a leaf.
        tree: the tree.
        initializer: what to begin with; without it the first leaf.
        is_leaf: what else is a leaf.

    Raises:
        ArgumentError: there is neither a leaf nor something to begin with.

    >>> import tandem as td
    >>> td.tree.reduce(lambda total, x: total + x, {"w": [1, 2], "b": 3})
    6
    """
    leaves = flatten(tree, is_leaf)[0]
    if initializer is not _MISSING:
        return functools.reduce(fn, leaves, initializer)
    if not leaves:
        raise ArgumentError("tree_reduce: the tree has no leaves; say with initializer= what it gives then")
    return functools.reduce(fn, leaves)


def tree_reduce_associative(
    fn: Callable[[Any, Any], Any],
    tree: object,
    *,
    identity: object = _MISSING,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """As :func:`tree_reduce` for an associative function: neighbours first, in as few rounds as possible.

    >>> import tandem as td
    >>> td.tree.reduce_associative(lambda x, y: f"({x}{y})", ["a", "b", "c", "d"])
    '((ab)(cd))'
    """
    leaves = flatten(tree, is_leaf)[0]
    if not leaves:
        if identity is _MISSING:
            raise ArgumentError(
                "tree_reduce_associative: the tree has no leaves; say with identity= what it gives then"
            )
        return identity
    while len(leaves) > 1:
        pairs = [fn(*leaves[at : at + 2]) for at in range(0, len(leaves) - 1, 2)]
        leaves = pairs + leaves[len(pairs) * 2 :]
    return leaves[0]


def tree_all(tree: object, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all leaves are true."""
    return all(flatten(tree, is_leaf)[0])


# -- change of containers ----------------------------------------------------------------------------------------------
def tree_transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, tree: object) -> Any:
    """A tree of trees turned inside out.

    Args:
        outer_treedef: the containers of ``tree`` down to the inner trees.
        inner_treedef: the containers of those; None: as the first one has them.
        tree: a tree of ``outer_treedef`` with a tree of ``inner_treedef`` in the place of each leaf.

    Returns:
        A tree of ``inner_treedef`` with a tree of ``outer_treedef`` in the place of each leaf.

    Raises:
        TreeError: ``tree`` is none; the message names the key path where it differs.

    >>> import tandem as td
    >>> rows = [{"loss": 1, "step": 2}, {"loss": 3, "step": 4}]
    >>> td.tree.transpose(td.tree.structure([0, 0]), None, rows)
    {'loss': [1, 3], 'step': [2, 4]}
    """
    for name, given in (("outer_treedef", outer_treedef), ("inner_treedef", inner_treedef or LEAF)):
        if not isinstance(given, TreeDef):
            raise ArgumentError(
                f"tree_transpose: {name} is a TreeDef, as td.tree.structure gives it, not {given!r}"
            )
    subtrees = flatten_up_to(outer_treedef, tree, "tree_transpose: the tree")
    inner = inner_treedef or (flatten(subtrees[0])[1] if subtrees else LEAF)
    rows = [
        flatten_up_to(inner, subtree, f"tree_transpose: the inner tree at {path or 'the root'}")
        for path, subtree in zip(outer_treedef.paths(), subtrees)
    ]
    columns = zip(*rows) if rows else [()] * inner.leaf_count
    return inner.unflatten([outer_treedef.unflatten(column) for column in columns])


def tree_broadcast(prefix: object, tree: object, is_leaf: IsLeaf | None = None) -> Any:
    """A tree of the containers of ``tree`` whose leaves come from a tree that begins as it does.

    Args:
        prefix: a tree of the same containers down to some depth; each leaf is the value of all leaves below it.
        tree: the tree that gives the containers.
        is_leaf: what else is a leaf of the prefix.

    Raises:
        TreeError: the containers differ; the message names the key path.

    >>> import tandem as td
    >>> td.tree.broadcast({"w": 0.1, "b": 0.2}, {"w": [1, 2], "b": 3})
    {'w': [0.1, 0.1], 'b': 0.2}
    """
    treedef = flatten(tree)[1]
    return treedef.unflatten(broadcast_prefix(prefix, tree, is_leaf))


# -- TreeDefs ----------------------------------------------------------------------------------------------------------
def treedef_children(treedef: TreeDef) -> list[TreeDef]:
    """The TreeDefs directly below one."""
    return list(treedef.children)


def treedef_is_leaf(treedef: TreeDef) -> bool:
    """Whether it is that of a leaf."""
    return treedef._node is None


def treedef_tuple(treedefs: Iterable[TreeDef]) -> TreeDef:
    """The TreeDef of a tuple of trees."""
    children = tuple(treedefs)
    return TreeDef(tuple, len(children), children, node_of(tuple))


def check_same(what: str, one: TreeDef, two: TreeDef) -> None:
    """Raise if two TreeDefs differ.

    Raises:
        TreeError: they do; the message names the first key path where.
    """
    if one != two:
        raise TreeError(f"{what}{difference(one, two)}")
