"""Modules as pytrees: attributes that hold tensors are children, all others identify the module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import pytree
from ..named_tuple import NamedTuple
from ..pytree.keys import GetAttrKey
from ..pytree.nodes import Node, Parts, add_node, node_of
from ..registry.values import TensorBase

if TYPE_CHECKING:
    from .module import Module

CHILDREN = (
    "_child_names"  # the attributes that are children; they stay children, whatever a tree maps them to
)
_CHILD = object()
Static = tuple[
    tuple[str, object], ...
]  # names and values of the attributes in their order; a child is :data:`_CHILD`


class _Container(NamedTuple):
    """A list or dict without tensors as a static value, which is hashable if its leaves are."""

    treedef: pytree.TreeDef
    leaves: tuple[object, ...]


def has_tensors(value: object) -> bool:
    """Whether a value is a tensor or an array, or a container of some; a module is one, even without tensors."""
    if isinstance(value, (TensorBase, np.ndarray)):
        return True
    node = node_of(type(value))
    if node is None:
        return False
    return node.variables is not None or any(has_tensors(child) for child in node.flatten(value)[0])


def _flatten(module: Module) -> Parts:
    variables = vars(module)
    known = variables[CHILDREN]
    names = tuple(name for name, value in variables.items() if name in known or has_tensors(value))
    if names != known:
        variables[CHILDREN] = names
    static = tuple((name, _CHILD if name in names else _freeze(value)) for name, value in variables.items())
    return [variables[name] for name in names], static, None


def _freeze(value: object) -> object:
    kind = type(value)
    if node_of(kind) is None or (issubclass(kind, tuple) and _is_hashable(value)):
        return value
    leaves, treedef = pytree.flatten(value)
    return _Container(treedef, tuple(leaves))


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _unflatten(kind: type, static: Static, children: Iterable[object]) -> object:
    module: Module = object.__new__(kind)
    variables, values = vars(module), iter(children)
    for name, value in static:
        if value is _CHILD:
            variables[name] = next(values)
        else:
            variables[name] = value.treedef.unflatten(value.leaves) if type(value) is _Container else value
    return module


def _name_children(static: Static, count: int) -> Sequence[GetAttrKey]:
    return [GetAttrKey(name) for name, value in static if value is _CHILD]


def _variables_below(module: Module) -> Iterable[dict[str, object]]:
    return map(vars, module.modules())


_NODE = Node(_flatten, _unflatten, _name_children, variables=_variables_below)


def forget_child(module: Module, name: str) -> None:
    """Note that an attribute is assigned to, so that its value decides whether it is a child."""
    known = vars(module)[CHILDREN]
    if name in known:
        vars(module)[CHILDREN] = tuple(other for other in known if other != name)


def register(kind: type) -> None:
    """Make a class of modules a container."""
    add_node(kind, _NODE, is_collectable=True)
