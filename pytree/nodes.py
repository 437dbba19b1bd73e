"""Node types: how containers of each type are flattened and unflattened, and which types are leaves."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import ArgumentError
from ..named_tuple import NamedTuple
from .keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

# A flattened container: its children; its static part, hashable; and the keys of the children, if they do not follow
# from the static part.
Parts = tuple[Sequence[Any], Any, Sequence[Any] | None]


class Node(NamedTuple):
    """The functions that flatten and unflatten containers of one type.

    Attributes:
        flatten: returns the children, static part and keys of a container.
        unflatten: builds a container from a TreeDef's ``kind`` and ``static``, and children.
        keys: returns the keys of the children from ``static`` and their number.
        by_key: whether children of two containers are matched by key, regardless of their order.
        attributes: for a class flattened by attributes: the names of the children, and of the static part.
        variables: for a class whose attributes a jitted function guards when it captures an instance: returns the
            dicts of attributes of the instance and of those inside it.
    """

    flatten: Callable[[Any], Parts]
    unflatten: Callable[[Any, Any, Iterable[Any]], Any]
    keys: Callable[[Any, int], Sequence[Any]]
    by_key: bool = False
    attributes: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    variables: Callable[[Any], Iterable[dict[str, object]]] | None = None


def _indices(static: object, count: int) -> Sequence[SequenceKey]:
    return [SequenceKey(index) for index in range(count)]


def _flat_indices(static: object, count: int) -> Sequence[FlattenedIndexKey]:
    return [FlattenedIndexKey(index) for index in range(count)]


def _dict_keys(static: Iterable[object], count: int) -> Sequence[DictKey]:
    return [DictKey(key) for key in static]


def _attributes(static: Iterable[str], count: int) -> Sequence[GetAttrKey]:
    return [GetAttrKey(name) for name in static]


NODES: dict[type, Node] = {
    list: Node(lambda t: (t, len(t), None), lambda k, s, children: list(children), _indices),
    tuple: Node(lambda t: (t, len(t), None), lambda k, s, children: tuple(children), _indices),
    dict: Node(
        lambda t: (list(t.values()), tuple(t), None),
        lambda k, s, children: dict(zip(s, children)),
        _dict_keys,
        True,
    ),
    OrderedDict: Node(
        lambda t: (list(t.values()), tuple(t), None),
        lambda k, s, children: OrderedDict(zip(s, children)),
        _dict_keys,
    ),
    defaultdict: Node(
        lambda t: (list(t.values()), (t.default_factory, tuple(t)), None),
        lambda k, s, children: defaultdict(s[0], zip(s[1], children)),
        lambda s, count: _dict_keys(s[1], count),
        True,
    ),
    deque: Node(
        lambda t: (list(t), (len(t), t.maxlen), None), lambda k, s, children: deque(children, s[1]), _indices
    ),
    type(None): Node(lambda t: ((), None, None), lambda k, s, children: None, _indices),
}
NAMEDTUPLE = Node(lambda t: (t, t._fields, None), lambda k, s, children: k._make(children), _attributes)


# -- dataclasses -------------------------------------------------------------------------------------------------------
def static_fields(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that belong to the static part: those with ``metadata={"static": True}``."""
    return tuple(field.name for field in dataclasses.fields(kind) if field.metadata.get("static"))


def get_attributes(tree: object, names: Sequence[str]) -> list[object]:
    """The values of fields.

    Raises:
        ArgumentError: one has never been set.
    """
    try:
        return [getattr(tree, name) for name in names]
    except AttributeError:
        missing = next(name for name in names if not hasattr(tree, name))
        raise ArgumentError(
            f"a {type(tree).__qualname__} in a tree has no value for its field {missing!r}"
        ) from None


def make_attribute_node(
    data: tuple[str, ...], meta: tuple[str, ...], defaults: Callable[[], dict[str, Any]]
) -> Node:
    """The node of a class whose children are attributes.

    What it builds is a copy past ``__init__`` and ``__post_init__``, which may not take such leaves.

    Args:
        data: the attributes that are children.
        meta: those that identify it; their values are hashable.
        defaults: returns the values of those that are neither.
    """

    def build(kind: type, static: Iterable[object], children: Iterable[object]) -> object:
        made: Any = object.__new__(kind)
        for name, value in (*zip(data, children), *zip(meta, static), *defaults().items()):
            object.__setattr__(made, name, value)
        return made

    return Node(
        lambda tree: (get_attributes(tree, data), tuple(get_attributes(tree, meta)), None),
        build,
        lambda static, count: _attributes(data, count),
        attributes=(data, meta),
    )


_dataclasses: WeakKeyDictionary[type, Node] = WeakKeyDictionary()  # those that nobody has registered


def _make_dataclass_node(kind: type) -> Node:
    meta = static_fields(kind)
    data = tuple(field.name for field in dataclasses.fields(kind) if field.name not in meta)
    result = _dataclasses[kind] = make_attribute_node(data, meta, dict)
    return result


# -- the tables --------------------------------------------------------------------------------------------------------
_collectable: WeakKeyDictionary[type, Node] = WeakKeyDictionary()
"""Classes that are registered where they are defined, which may be in a function that is called often."""
# Types seen so far that are leaves for good, and need not be looked at again.
leaf_types: set[type] = {bool, int, float, complex, str, bytes}
_STABLE_MODULES = ("builtins", "numpy", __name__.partition(".")[0])


def is_tree_node(kind: type) -> bool:
    """Whether a type is a container: what is built in, dataclasses and namedtuples, and what was registered.

    >>> from tandem import pytree
    >>> pytree.is_tree_node(dict), pytree.is_tree_node(int)
    (True, False)
    """
    return node_of(kind) is not None


def node_of(kind: type) -> Node | None:
    """The node of a type; None for a leaf."""
    if kind in leaf_types:
        return None
    result = NODES.get(kind) or _collectable.get(kind) or _dataclasses.get(kind)
    if result is not None:
        return result
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return NAMEDTUPLE
    if dataclasses.is_dataclass(kind):
        return _make_dataclass_node(kind)
    if str(kind.__module__).partition(".")[0] in _STABLE_MODULES:
        leaf_types.add(kind)
    return None


def is_registered(kind: type) -> bool:
    """Whether a type is registered itself, and not through a base class."""
    return kind in NODES or kind in _collectable


def add_node(kind: type, node: Node, is_collectable: bool = False) -> None:
    """Make a type a container.

    Args:
        kind: the type.
        node: its node, which does not refer to a collectable type.
        is_collectable: whether the type may be freed when nothing else refers to it.
    """
    leaf_types.discard(kind)
    table = _collectable if is_collectable else NODES
    table[kind] = node


def make_node(
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, Any], Any],
    own: bool = False,
) -> Node:
    """The node of a registered class.

    Args:
        flatten: returns ``(children, static)``; with ``own`` the children are pairs ``(key, child)``.
        unflatten: makes an instance of ``(static, children)``.
        own: whether the class has keys for its children.
    """

    def flatten_node(tree: object) -> Parts:
        children, static = _check_pair(flatten(tree), tree)
        children = tuple(children)
        if own:
            return (
                tuple(child for _, child in children),
                (len(children), static),
                tuple(key for key, _ in children),
            )
        return children, (len(children), static), None

    return Node(
        flatten_node, lambda kind, static, children: unflatten(static[1], tuple(children)), _flat_indices
    )


def _check_pair(result: object, tree: object) -> tuple[Iterable[Any], object]:
    if isinstance(result, (tuple, list)) and len(result) == 2 and isinstance(result[0], Iterable):
        return result[0], result[1]
    raise ArgumentError(
        f"the function that takes a {type(tree).__qualname__} apart gives (children, static), not {result!r}"
    )
