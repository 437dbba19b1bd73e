"""Functions on pytrees: flatten, map, reduce, transpose and broadcast, also with key paths.

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
    """Flatten a pytree into a list of leaves, left to right, and a TreeDef; see :func:`flatten`.

    >>> import tandem as td
    >>> td.tree.flatten([1, (2, 3)], is_leaf=lambda node: type(node) is tuple)[0]
    [1, (2, 3)]
    """
    return flatten(tree, is_leaf)


def tree_unflatten(treedef: TreeDef, leaves: Iterable[object]) -> Any:
    """Reconstruct a pytree from a TreeDef and its leaves.

    Raises:
        ValueArgumentError: the number of leaves is not that of the TreeDef.
    """
    return treedef.unflatten(tuple(leaves))


def tree_leaves(tree: object, is_leaf: IsLeaf | None = None) -> list[Any]:
    """Return the leaves of a pytree, left to right."""
    return flatten(tree, is_leaf)[0]


def tree_structure(tree: object, is_leaf: IsLeaf | None = None) -> TreeDef:
    """Return the TreeDef of a pytree.

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
    """Apply a function to each leaf of a pytree, and to the corresponding subtrees of further pytrees.

    Args:
        fn: called with a leaf of ``tree`` and the corresponding subtree of each pytree in ``rest``.
        tree: a pytree; its structure is that of the result.
        rest: pytrees whose structure has that of ``tree`` as a prefix. The keys of dicts may be in another order.
        is_leaf: a predicate that is called with each node of ``tree``; a node for which it is true is a leaf.

    Returns:
        A pytree with the structure of ``tree``.

    Raises:
        TreeError: the structures differ; the message names the first key path where they do.

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
    """Yield each leaf of the first pytree with the corresponding subtrees of the others."""
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
    """Apply ``fn(path, leaf, ...)`` as :func:`tree_map` does; :func:`.keys.keystr` formats a path.

    Args:
        fn: called with the key path of a leaf, then the arguments that :func:`tree_map` passes.
        tree: a pytree; its structure is that of the result.
        rest: pytrees whose structure has that of ``tree`` as a prefix.
        is_leaf: a predicate that is called with each node of ``tree``; a node for which it is true is a leaf.
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
    """Flatten a pytree into pairs of key path and leaf, left to right, and a TreeDef.

    Args:
        tree: a pytree.
        is_leaf: a predicate that is called with each node; a node for which it is true is a leaf.
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
    """Return pairs of key path and leaf, left to right; the arguments are those of :func:`tree_flatten_with_path`."""
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


# -- reduce ------------------------------------------------------------------------------------------------------------
def tree_reduce(
    fn: Callable[[Any, Any], Any],
    tree: object,
    initializer: object = _MISSING,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Reduce the leaves of a pytree with a function of two arguments, from left to right.

    Args:
        fn: a function of the accumulated value and a leaf.
        tree: a pytree.
        initializer: the first accumulated value; without it, the first leaf.
        is_leaf: a predicate that is called with each node; a node for which it is true is a leaf.

    Raises:
        ArgumentError: the pytree has no leaves, and there is no initializer.

    >>> import tandem as td
    >>> td.tree.reduce(lambda total, x: total + x, {"w": [1, 2], "b": 3})
    6
    """
    leaves = flatten(tree, is_leaf)[0]
    if initializer is not _MISSING:
        return functools.reduce(fn, leaves, initializer)
    if not leaves:
        raise ArgumentError("tree_reduce: the pytree has no leaves; pass initializer=")
    return functools.reduce(fn, leaves)


def tree_reduce_associative(
    fn: Callable[[Any, Any], Any],
    tree: object,
    *,
    identity: object = _MISSING,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Reduce the leaves with an associative function, in a balanced tree of calls.

    >>> import tandem as td
    >>> td.tree.reduce_associative(lambda x, y: f"({x}{y})", ["a", "b", "c", "d"])
    '((ab)(cd))'
    """
    leaves = flatten(tree, is_leaf)[0]
    if not leaves:
        if identity is _MISSING:
            raise ArgumentError("tree_reduce_associative: the pytree has no leaves; pass identity=")
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
    """Transpose a pytree of pytrees: exchange the outer and the inner structure.

    Args:
        outer_treedef: the outer structure of ``tree``.
        inner_treedef: the structure of the inner pytrees; None: that of the first one.
        tree: a pytree of structure ``outer_treedef`` whose leaves are pytrees of structure ``inner_treedef``.

    Returns:
        A pytree of structure ``inner_treedef`` whose leaves are pytrees of structure ``outer_treedef``.

    Raises:
        TreeError: ``tree`` does not have this structure; the message names the key path where it differs.

    >>> import tandem as td
    >>> rows = [{"loss": 1, "step": 2}, {"loss": 3, "step": 4}]
    >>> td.tree.transpose(td.tree.structure([0, 0]), None, rows)
    {'loss': [1, 3], 'step': [2, 4]}
    """
    for name, given in (("outer_treedef", outer_treedef), ("inner_treedef", inner_treedef or LEAF)):
        if not isinstance(given, TreeDef):
            raise ArgumentError(
                f"tree_transpose: {name} is a TreeDef, as td.tree.structure returns it, not {given!r}"
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
    """Broadcast a tree prefix to the structure of a pytree.

    Args:
        prefix: a pytree whose structure is a prefix of that of ``tree``; each leaf is the value of all leaves below it.
        tree: a pytree; its structure is that of the result.
        is_leaf: a predicate that is called with each node of the prefix; a node for which it is true is a leaf.

    Raises:
        TreeError: ``prefix`` is not a prefix of ``tree``; the message names the key path.

    >>> import tandem as td
    >>> td.tree.broadcast({"w": 0.1, "b": 0.2}, {"w": [1, 2], "b": 3})
    {'w': [0.1, 0.1], 'b': 0.2}
    """
    treedef = flatten(tree)[1]
    return treedef.unflatten(broadcast_prefix(prefix, tree, is_leaf))


# -- TreeDefs ----------------------------------------------------------------------------------------------------------
def treedef_children(treedef: TreeDef) -> list[TreeDef]:
    """Return the TreeDefs of the children of a TreeDef."""
    return list(treedef.children)


def treedef_is_leaf(treedef: TreeDef) -> bool:
    """Whether a TreeDef is that of a leaf."""
    return treedef._node is None


def treedef_tuple(treedefs: Iterable[TreeDef]) -> TreeDef:
    """Return the TreeDef of a tuple of pytrees, from their TreeDefs."""
    children = tuple(treedefs)
    return TreeDef(tuple, len(children), children, node_of(tuple))


def check_same(what: str, one: TreeDef, two: TreeDef) -> None:
    """Raise if two TreeDefs differ.

    Raises:
        TreeError: they differ; the message names the first key path where they do.
    """
    if one != two:
        raise TreeError(f"{what}{difference(one, two)}")
