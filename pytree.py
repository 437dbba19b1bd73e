"""Trees of containers: dicts, lists, tuples, namedtuples, dataclasses, None, and classes that the user registers.

A tree is taken apart into its leaves and a :class:`TreeDef`, which is hashable and builds the tree again from other
leaves. Everything that is not a container is a leaf.

Source: ``jax.tree_util``. Unlike there, dicts keep their order (as PyTorch's and optree's can), and dataclasses are
containers without being registered.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .errors import ArgumentError, RegistrationError, ValueArgumentError

# What a node tells: its children, the labels that name them in key paths, and what else identifies it.
Parts = tuple[Sequence[Any], Sequence[str], Any]


class _Node(NamedTuple):
    """How values of one type come apart and together."""

    take_apart: Callable[[Any], Parts]
    put_together: Callable[[Any, Sequence[Any]], Any]


class TreeDef:
    """The containers of a tree, without the leaves.

    Attributes:
        kind: type of the outermost container; None for a leaf.
        static: what identifies the container beside its type: a dict's keys, a dataclass's field names, ...
        children: the TreeDefs below it.
        labels: how each child is reached: ``[0]``, ``['w']``, ``.mean``.
        leaf_count: number of leaves.
    """

    __slots__ = ("_hash", "_node", "children", "kind", "labels", "leaf_count", "static")

    def __init__(
        self, kind: Any, static: Any, children: tuple[TreeDef, ...], labels: tuple[str, ...], node: Any
    ):
        self.kind, self.static, self.children, self.labels, self._node = kind, static, children, labels, node
        self.leaf_count: int = 1 if node is None else sum(child.leaf_count for child in children)
        self._hash: int | None = None

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The tree with these leaves.

        Raises:
            ValueArgumentError: their number is not the tree's.
        """
        leaves = tuple(leaves)
        if len(leaves) != self.leaf_count:
            raise ValueArgumentError(
                f"the tree {self} has {self.leaf_count} leaves; {len(leaves)} were given"
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self._node is None:
            return next(leaves)
        return self._node.put_together(self, [child._build(leaves) for child in self.children])

    def paths(self) -> list[str]:
        """The key path of each leaf, such as ``['layers'][0].w``; empty for a tree that is a leaf."""
        if self._node is None:
            return [""]
        return [label + rest for label, child in zip(self.labels, self.children) for rest in child.paths()]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeDef) or hash(self) != hash(other):
            return False
        return (self.kind, self.static, self.children) == (other.kind, other.static, other.children)

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = hash((self.kind, self.static, self.children))
            except TypeError:
                name = getattr(self.kind, "__qualname__", self.kind)
                fault = f"the static part {self.static!r} of a {name} in a tree is not hashable"
                raise ArgumentError(fault) from None
        return self._hash

    def __repr__(self) -> str:
        if self._node is None:
            return "*"
        inside = ", ".join(f"{label}: {child}" for label, child in zip(self.labels, self.children))
        return f"{self.kind.__name__}({inside})"


LEAF = TreeDef(None, None, (), (), None)


def _indices(items: Sequence[Any]) -> list[str]:
    return [f"[{index}]" for index in range(len(items))]


def _dict_parts(tree: dict[Any, Any]) -> Parts:
    return list(tree.values()), [f"[{key!r}]" for key in tree], tuple(tree)


def _defaultdict_parts(tree: defaultdict[Any, Any]) -> Parts:
    values, labels, keys = _dict_parts(tree)
    return values, labels, (tree.default_factory, keys)


def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _dataclass_parts(tree: Any) -> Parts:
    names = _fields(type(tree))
    return [getattr(tree, name) for name in names], [f".{name}" for name in names], names


def _build_dataclass(treedef: TreeDef, children: Sequence[Any]) -> Any:
    """A copy of the dataclass as it stands, past ``__init__`` and ``__post_init__``, which may not take such leaves."""
    made = object.__new__(treedef.kind)
    for name, child in zip(treedef.static, children):
        object.__setattr__(made, name, child)
    return made


_REGISTRY: dict[type, _Node] = {
    list: _Node(lambda t: (t, _indices(t), len(t)), lambda d, children: list(children)),
    tuple: _Node(lambda t: (t, _indices(t), len(t)), lambda d, children: tuple(children)),
    dict: _Node(_dict_parts, lambda d, children: dict(zip(d.static, children))),
    OrderedDict: _Node(_dict_parts, lambda d, children: OrderedDict(zip(d.static, children))),
    defaultdict: _Node(_defaultdict_parts, lambda d, c: defaultdict(d.static[0], zip(d.static[1], c))),
    type(None): _Node(lambda t: ((), (), None), lambda d, children: None),
}
_NAMEDTUPLE = _Node(
    lambda t: (tuple(t), [f".{name}" for name in t._fields], t._fields),
    lambda d, children: d.kind._make(children),
)
_DATACLASS = _Node(_dataclass_parts, _build_dataclass)


_leaf_types: set[type] = set()  # those seen so far that stay for ever, and need not be looked at again
_LASTING = ("builtins", "numpy", __name__.partition(".")[0])


def _node_of(kind: type) -> _Node | None:
    if kind in _leaf_types:
        return None
    found = _REGISTRY.get(kind)
    if found is not None:
        return found
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _NAMEDTUPLE
    if dataclasses.is_dataclass(kind):
        return _DATACLASS
    if kind.__module__.partition(".")[0] in _LASTING:
        _leaf_types.add(kind)
    return None


def register_pytree_node(
    kind: type,
    flatten: Callable[[Any], tuple[Sequence[Any], Any]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
) -> None:
    """Make a class a container.

    Args:
        kind: the class; its subclasses are not meant.
        flatten: gives ``(children, static)`` of an instance; ``static`` is hashable.
        unflatten: makes an instance of ``(static, children)``.

    Raises:
        RegistrationError: the class is a container already.

    >>> from tandem import pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda static, children: Pair(*children))
    >>> pytree.flatten({"p": Pair(1, 2)})[0]
    [1, 2]
    """
    if not isinstance(kind, type):
        raise ArgumentError(f"register_pytree_node takes a class, not {kind!r}")
    if kind in _REGISTRY:
        raise RegistrationError(f"{kind.__qualname__} is registered as a pytree node already")

    def take_apart(tree: Any) -> Parts:
        children, static = flatten(tree)
        return children, _indices(children), (len(children), static)

    _leaf_types.discard(kind)
    _REGISTRY[kind] = _Node(take_apart, lambda treedef, children: unflatten(treedef.static[1], children))


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, left to right, and its containers.

    Raises:
        ArgumentError: a container holds itself.

    >>> from tandem import pytree
    >>> leaves, treedef = pytree.flatten({"w": [1, 2], "b": (3, None)})
    >>> leaves, treedef.paths()
    ([1, 2, 3], ["['w'][0]", "['w'][1]", "['b'][0]"])
    >>> treedef.unflatten([10, 20, 30])
    {'w': [10, 20], 'b': (30, None)}
    """
    leaves: list[Any] = []
    try:
        return leaves, _flatten(tree, leaves)
    except RecursionError:
        raise ArgumentError("a tree is nested too deeply, or a container holds itself") from None


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    kind = type(tree)
    node = _node_of(kind)
    if node is None:
        leaves.append(tree)
        return LEAF
    children, labels, static = node.take_apart(tree)
    below = tuple([_flatten(child, leaves) for child in children])
    return TreeDef(kind, static, below, tuple(labels), node)


def unflatten(treedef: TreeDef, leaves: Sequence[Any]) -> Any:
    """The tree of ``treedef`` with these leaves."""
    return treedef.unflatten(leaves)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, left to right."""
    return flatten(tree)[0]


def map_tree(fn: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """The tree with each leaf replaced by ``fn(leaf, *leaves of rest)``.

    Args:
        fn: called with a leaf of each tree.
        tree: the tree that gives the containers.
        rest: more trees of the same containers.

    Raises:
        ArgumentError: the containers differ; the message names the first key path where they do.

    >>> from tandem import pytree
    >>> pytree.map_tree(lambda x, y: x + y, {"a": 1}, {"a": 10})
    {'a': 11}
    """
    first, treedef = flatten(tree)
    columns = [first]
    for other in rest:
        more, there = flatten(other)
        if there != treedef:
            raise ArgumentError(f"map_tree: trees differ{difference(treedef, there)}")
        columns.append(more)
    return treedef.unflatten([fn(*row) for row in zip(*columns)])


def difference(one: TreeDef, two: TreeDef, path: str = "") -> str:
    """Where two TreeDefs first differ, for error messages: `` at ['w'][0]: list and tuple``."""
    if one.kind is not two.kind:
        names = [d.kind.__name__ if d.kind else "a leaf" for d in (one, two)]
        return f" at {path or 'the root'}: {names[0]} and {names[1]}"
    if one.static != two.static:
        return f" at {path or 'the root'}: {one.static} and {two.static}"
    pairs = zip(one.children, two.children, one.labels)
    return next((d for a, b, label in pairs if (d := difference(a, b, path + label))), "")


def spread_prefix(prefix: Any, tree: Any, path: str = "") -> list[Any]:
    """One value for each leaf of a tree, from a tree that begins as it does.

    Args:
        prefix: a tree of the same containers down to some depth; what is no container there, or None, stands for all
            leaves below it.
        tree: the tree.
        path: the key path of both, for messages.

    Raises:
        ArgumentError: the containers differ; the message names the key path.

    >>> from tandem import pytree
    >>> pytree.spread_prefix({"w": 0, "b": None}, {"w": [1, 2], "b": 3})
    [0, 0, None]
    """
    node = None if prefix is None else _node_of(type(prefix))
    if node is None:
        return [prefix] * flatten(tree)[1].leaf_count
    kind, there = type(prefix), type(tree)
    if kind is not there:
        names = kind.__name__, there.__name__
        raise ArgumentError(f"{path or 'the root'} is a {names[0]} in it and a {names[1]} in the value")
    values, labels, _ = node.take_apart(prefix)
    children, wanted, _ = node.take_apart(tree)
    if sorted(labels) != sorted(wanted):
        raise ArgumentError(
            f"{path or 'the root'} has {', '.join(labels) or 'nothing'} in it and {', '.join(wanted) or 'nothing'} in "
            "the value"
        )
    given = dict(zip(labels, values))
    pairs = zip(children, wanted)
    return [found for child, label in pairs for found in spread_prefix(given[label], child, path + label)]
