"""TreeDef: the structure of a tree without its leaves; flatten and unflatten."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from .. import lazy
from ..errors import ArgumentError, ValueArgumentError
from .builders import COMPILE_AFTER, Builder, compile_builder
from .keys import KeyPath, keystr
from .nodes import NODES, Node, leaf_types, node_of

IsLeaf = Callable[[Any], bool]
_matching = lazy.Module(".pytree.matching")


class TreeDef:
    """The structure of a tree: its containers, without the leaves.

    Attributes:
        kind: type of the outermost container; None for a leaf.
        static: the part that identifies the container together with its type: a dict's keys, a tuple's length, ...
        children: the TreeDefs below it.
        leaf_count: number of leaves.
    """

    __slots__ = (
        "_builder",
        "_flat",
        "_hash",
        "_is_interned",
        "_keys",
        "_node",
        "_unflatten_count",
        "children",
        "kind",
        "leaf_count",
        "static",
    )

    def __init__(
        self,
        kind: Any,
        static: Any,
        children: tuple[TreeDef, ...],
        node: Any,
        keys: Sequence[object] | None = None,
    ):
        self.kind, self.static, self.children, self._node, self._keys = kind, static, children, node, keys
        self.leaf_count: int = 1 if node is None else sum([child.leaf_count for child in children])
        self._flat = node is not None and {*map(id, children)} <= _LEAF_ID
        self._hash: int | None = None
        self._builder: Builder | None = None
        self._unflatten_count = 0  # counts up to COMPILE_AFTER
        self._is_interned = node is None  # interned, so TreeDefs above it can be interned by its identity

    @property
    def num_leaves(self) -> int:
        """Number of leaves, as JAX and optree name it."""
        return self.leaf_count

    @property
    def num_nodes(self) -> int:
        """Number of containers and leaves."""
        return 1 + sum([child.num_nodes for child in self.children])

    # -- building ----------------------------------------------------------------------------------------------------
    def unflatten(self, leaves: Sequence[object]) -> Any:
        """Build the tree with these leaves.

        Raises:
            ValueArgumentError: their number is not the tree's.
        """
        leaves = tuple(leaves)
        if len(leaves) != self.leaf_count:
            raise ValueArgumentError(
                f"the tree {self} has {self.leaf_count} leaves; {len(leaves)} were given"
            )
        if self._builder is not None:
            return self._builder(leaves)
        if self._unflatten_count < COMPILE_AFTER and not (self._flat and self.kind in (list, tuple)):
            self._unflatten_count += 1
            if self._unflatten_count == COMPILE_AFTER:
                self._builder = compile_builder(self)
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[object]) -> object:
        if self._node is None:
            return next(leaves)
        if self._flat:
            return self._node.unflatten(self.kind, self.static, list(islice(leaves, self.leaf_count)))
        children = [next(leaves) if child._node is None else child._build(leaves) for child in self.children]
        return self._node.unflatten(self.kind, self.static, children)

    def build(self, children: Sequence[object]) -> Any:
        """Build the outermost container with these children."""
        return self._node.unflatten(self.kind, self.static, children)

    def compose(self, inner: TreeDef) -> TreeDef:
        """Replace each leaf by another TreeDef."""
        if self._node is None:
            return inner
        return TreeDef(
            self.kind, self.static, tuple([c.compose(inner) for c in self.children]), self._node, self._keys
        )

    def flatten_up_to(self, tree: object) -> list[Any]:
        """Flatten a tree that begins with these containers; returns the subtree at each leaf.

        Raises:
            TreeError: it does not begin with them; the message names the first key path where they differ.

        >>> import tandem as td
        >>> td.tree.structure([0, 0]).flatten_up_to([1, (2, 3)])
        [1, (2, 3)]
        """
        result: list[Any] = _matching.flatten_up_to(self, tree)
        return result

    # -- key paths ---------------------------------------------------------------------------------------------------
    @property
    def keys(self) -> Sequence[object]:
        """The key of each child: a :class:`.keys.DictKey`, :class:`.keys.GetAttrKey`, ..."""
        if self._keys is None:
            self._keys = () if self._node is None else self._node.keys(self.static, len(self.children))
        return self._keys

    @property
    def labels(self) -> list[str]:
        """The same as text: ``[0]``, ``['w']``, ``.mean``."""
        return [str(key) for key in self.keys]

    def key_paths(self) -> list[KeyPath]:
        """The key path of each leaf, as a tuple of keys."""
        if self._node is None:
            return [()]
        return [(key, *rest) for key, child in zip(self.keys, self.children) for rest in child.key_paths()]

    def paths(self) -> list[str]:
        """The key path of each leaf, such as ``['layers'][0].w``; empty for a tree that is a leaf."""
        return [keystr(path) for path in self.key_paths()]

    # -- comparing ---------------------------------------------------------------------------------------------------
    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeDef):
            return False
        try:
            if hash(self) != hash(other):
                return False
        except ArgumentError:
            pass  # a static part that cannot be hashed may be compared all the same
        return (self.kind, self.static, self.children) == (other.kind, other.static, other.children)

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = hash((self.kind, self.static, self.leaf_count if self._flat else self.children))
            except ArgumentError:
                raise  # of a container below
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

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.kind, self.static, self.children))


LEAF = TreeDef(None, None, (), None)
_LEAF_ID = {id(LEAF)}


def _rebuild(kind: type | None, static: object, children: tuple[TreeDef, ...]) -> TreeDef:
    """Rebuild an unpickled TreeDef."""
    return LEAF if kind is None else TreeDef(kind, static, children, node_of(kind))


# -- flattening ------------------------------------------------------------------------------------------------------
def flatten(tree: object, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeDef]:
    """Flatten a tree to its leaves, left to right, and its structure.

    Args:
        tree: the tree.
        is_leaf: called with each node of the tree; a node for which it returns True is a leaf, whatever its type.

    Returns:
        The list of leaves, and the :class:`TreeDef`.

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
        return leaves, _flatten(tree, leaves) if is_leaf is None else _flatten_with_is_leaf(
            tree, leaves, is_leaf
        )
    except RecursionError:
        raise ArgumentError("a tree is nested too deeply, or a container holds itself") from None


def _flatten(tree: object, leaves: list[object]) -> TreeDef:
    kind = type(tree)
    node = NODES.get(kind) or node_of(kind)
    if node is None:
        leaves.append(tree)
        return LEAF
    children, static, keys = node.flatten(tree)
    if leaf_types.issuperset(map(type, children)):
        leaves.extend(children)
        return _intern(kind, static, None, len(children), node, keys)
    child_defs = []
    for child in children:
        if type(child) in leaf_types:
            leaves.append(child)
            child_defs.append(LEAF)
        else:
            child_defs.append(_flatten(child, leaves))
    return _intern(kind, static, tuple(child_defs), len(child_defs), node, keys)


# Interned TreeDefs, because most trees have one of a few structures. Only those of built-in containers are kept, by the
# identity of their children, so that no object of the user stays alive.
_interned: dict[Any, TreeDef] = {}
_INTERNED_KINDS = {list, tuple, dict, type(None)}
MAX_INTERNED = 1024


def _intern(
    kind: type,
    static: Any,
    child_defs: tuple[TreeDef, ...] | None,
    count: int,
    node: Node,
    keys: Sequence[object] | None,
) -> TreeDef:
    """Intern the TreeDef of a container; ``child_defs`` is None if all its children are leaves."""
    if kind not in _INTERNED_KINDS or (kind is dict and not set(map(type, static)) <= _STR_ONLY):
        return TreeDef(kind, static, child_defs or (LEAF,) * count, node, keys)
    key = (kind, static) if child_defs is None else (kind, static, *map(id, child_defs))
    result = _interned.get(key)
    if result is None:
        result = TreeDef(kind, static, child_defs or (LEAF,) * count, node, keys)
        if child_defs is None or all(child._is_interned for child in child_defs):
            if len(_interned) >= MAX_INTERNED:
                _interned.clear()
            result._is_interned = True
            _interned[key] = result
    return result


_STR_ONLY = {str}


def _flatten_with_is_leaf(tree: object, leaves: list[object], is_leaf: IsLeaf) -> TreeDef:
    """As :func:`_flatten`, with a predicate for more leaves."""
    node = None if is_leaf(tree) else node_of(type(tree))
    if node is None:
        leaves.append(tree)
        return LEAF
    children, static, keys = node.flatten(tree)
    child_defs = tuple([_flatten_with_is_leaf(child, leaves, is_leaf) for child in children])
    return TreeDef(type(tree), static, child_defs, node, keys)


def flatten_by_path(
    tree: object, is_leaf: Callable[[KeyPath, Any], bool], path: KeyPath = ()
) -> tuple[list[Any], TreeDef]:
    """As :func:`flatten`, with a predicate that is called with the key path and the subtree.

    Args:
        tree: the tree.
        is_leaf: called with the key path and the node; a node for which it returns True is a leaf.
        path: the key path of the tree within a larger one.
    """
    node = None if is_leaf(path, tree) else node_of(type(tree))
    if node is None:
        return [tree], LEAF
    children, static, keys = node.flatten(tree)
    keys = list(keys or node.keys(static, len(children)))
    flattened = [flatten_by_path(child, is_leaf, (*path, key)) for child, key in zip(children, keys)]
    outer = TreeDef(type(tree), static, tuple([treedef for _, treedef in flattened]), node, keys)
    return [leaf for leaves, _ in flattened for leaf in leaves], outer
