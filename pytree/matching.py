"""Compare trees: flatten a tree up to the leaves of another one, broadcast prefixes, and describe differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import TreeError
from .nodes import Node, node_of
from .treedef import IsLeaf, TreeDef, flatten


def difference(one: TreeDef, two: TreeDef, path: str = "") -> str:
    """The first difference of two TreeDefs, for error messages: `` at ['w'][0]: list and tuple``; empty if equal."""
    if one.kind is not two.kind:
        return f" at {path or 'the root'}: {_kind_name(one.kind)} and {_kind_name(two.kind)}"
    if one.static != two.static:
        return f" at {path or 'the root'}: {_static_difference(one, two)}"
    pairs = zip(one.children, two.children, one.labels)
    return next((d for a, b, label in pairs if (d := difference(a, b, path + label))), "")


def _kind_name(kind: type | None) -> str:
    return kind.__name__ if kind else "a leaf"


def _static_difference(one: TreeDef, two: TreeDef) -> str:
    first, second = one.labels, two.labels
    name = one.kind.__name__
    if first == second:
        return f"{name} with {one.static!r} and with {two.static!r}"
    if sorted(first) == sorted(second):
        return f"{name} with its items in the order {', '.join(first)} and {', '.join(second)}"
    if one.kind in (list, tuple):
        return f"{name} of {len(first)} and of {len(second)}"
    return f"{name}{_describe_missing_and_extra(first, second)}"


def _describe_missing_and_extra(wanted: Sequence[str], given: Sequence[str]) -> str:
    missing = [label for label in wanted if label not in given]
    extra = [label for label in given if label not in wanted]
    parts = [
        f"{', '.join(names)} {what}" for names, what in ((missing, "missing"), (extra, "too many")) if names
    ]
    return f" with {' and '.join(parts)}" if parts else ""


# -- a tree that goes on below the leaves of another -------------------------------------------------------------------
def flatten_up_to(treedef: TreeDef, tree: object, what: str = "the tree") -> list[Any]:
    """The subtrees of a tree at the leaves of a TreeDef.

    Args:
        treedef: the TreeDef. Dicts may have their keys in another order.
        tree: a tree that begins with the same containers.
        what: the tree's name in messages.

    Raises:
        TreeError: the containers differ; the message names the first key path where they do.

    >>> from tandem import pytree
    >>> pytree.flatten_up_to(pytree.tree_structure({"a": 0, "b": [0]}), {"b": [(1, 2)], "a": 3})
    [3, (1, 2)]
    """
    result: list[Any] = []
    _flatten_up_to(treedef, tree, result, what, ())
    return result


Trail = tuple[tuple[TreeDef, int], ...]  # the containers passed, and which of their children


def _flatten_up_to(treedef: TreeDef, tree: object, leaves: list[object], what: str, trail: Trail) -> None:
    node = treedef._node
    if node is None:
        leaves.append(tree)
        return
    if type(tree) is not treedef.kind:
        raise TreeError(f"{_location(what, trail)} is {_describe(tree)}, not a {_kind_name(treedef.kind)}")
    children, static, keys = node.flatten(tree)
    if static != treedef.static:
        given = list(keys or node.keys(static, len(children)))
        children = _reorder_children(treedef, children, given, static, _location(what, trail))
    if treedef._flat:
        leaves.extend(children)
        return
    for index, (child, item) in enumerate(zip(treedef.children, children)):
        _flatten_up_to(child, item, leaves, what, (*trail, (treedef, index)))


def _location(what: str, trail: Trail) -> str:
    path = "".join(str(treedef.keys[index]) for treedef, index in trail)
    return f"{what} at {path}" if path else what


def _describe(tree: object) -> str:
    return f"a {type(tree).__name__}" if node_of(type(tree)) else f"a leaf, a {type(tree).__name__}"


def _reorder_children(
    treedef: TreeDef, children: Sequence[object], keys: list[object], static: Sequence[object], where: str
) -> list[object]:
    """The children of a container in the order in which a TreeDef has their keys."""
    wanted = list(treedef.keys)
    if treedef._node.by_key and len(keys) == len(wanted):
        by_key = dict(zip(keys, children))
        if by_key.keys() == set(wanted):
            return [by_key[key] for key in wanted]
    name = treedef.kind.__name__
    if wanted == keys:
        raise TreeError(f"{where} is a {name} with {static!r}, not with {treedef.static!r}")
    if treedef.kind in (list, tuple):
        raise TreeError(f"{where} is a {name} of {len(keys)}, not of {len(wanted)}")
    labels, given = [str(key) for key in wanted], [str(key) for key in keys]
    text = (
        _describe_missing_and_extra(labels, given)
        or f" with its items in the order {', '.join(given)}, not {', '.join(labels)}"
    )
    raise TreeError(f"{where} is a {name}{text}")


# -- prefixes ----------------------------------------------------------------------------------------------------------
def spread_prefix(prefix: object, tree: object) -> list[Any]:
    """One value for each leaf of a tree, from a tree that begins as it does.

    Args:
        prefix: a tree of the same containers down to some depth; a leaf, or None, is the value of all leaves below it.
        tree: the tree.

    Raises:
        TreeError: the containers differ; the message names the key path.

    >>> from tandem import pytree
    >>> pytree.spread_prefix({"w": 0, "b": None}, {"w": [1, 2], "b": 3})
    [0, 0, None]
    """
    return broadcast_prefix(prefix, tree, lambda item: item is None, "it")


def broadcast_prefix(
    prefix: object, tree: object, is_leaf: IsLeaf | None = None, what: str = "the prefix"
) -> list[Any]:
    """One value for each leaf of a tree, from a tree that begins as it does.

    Args:
        prefix: a tree of the same containers down to some depth; each leaf is the value of all leaves below it.
        tree: the tree.
        is_leaf: what else is a leaf of the prefix.
        what: what the prefix is called in messages.

    Raises:
        TreeError: the containers differ; the message names the key path.
    """
    result: list[Any] = []
    _broadcast(prefix, tree, is_leaf, result, what, "")
    return result


def _broadcast(
    prefix: object, tree: object, is_leaf: IsLeaf | None, leaves: list[object], what: str, path: str
) -> None:
    kind = type(prefix)
    node = None if is_leaf is not None and is_leaf(prefix) else node_of(kind)
    if node is None:
        leaves += [prefix] * flatten(tree)[1].leaf_count
        return
    where = path or "the root"
    if kind is not type(tree):
        raise TreeError(f"{where} is a {kind.__name__} in {what} and a {type(tree).__name__} in the value")
    (values, own), (children, wanted) = _flatten_with_keys(node, prefix), _flatten_with_keys(node, tree)
    if not (own == wanted or (node.by_key and sorted(map(str, own)) == sorted(map(str, wanted)))):
        sides = [", ".join(map(str, keys)) or "nothing" for keys in (own, wanted)]
        raise TreeError(f"{where} has {sides[0]} in {what} and {sides[1]} in the value")
    given = dict(zip(own, values)) if own != wanted else None
    for index, (child, key) in enumerate(zip(children, wanted)):
        _broadcast(given[key] if given else values[index], child, is_leaf, leaves, what, path + str(key))


def _flatten_with_keys(node: Node, tree: object) -> tuple[Sequence[object], list[object]]:
    """The children of a container and their keys."""
    children, static, keys = node.flatten(tree)
    return children, list(keys or node.keys(static, len(children)))
