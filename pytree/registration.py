"""Register classes as pytree containers.

Source: the ``register_...`` functions of ``jax.tree_util``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ..errors import ArgumentError, TreeRegistrationError
from .nodes import Node, add_node, is_registered, make_attribute_node, make_node, static_fields

C = TypeVar("C", bound=type)


def register_pytree_node(
    kind: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, Any], Any],
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make a class a container.

    Args:
        kind: the class. Its subclasses are not registered.
        flatten: a function from an instance to ``(children, static)``; ``static`` is hashable.
        unflatten: a function from ``(static, children)`` to an instance. It must accept children of any type, since
            transforms replace them.
        flatten_with_keys: a function from an instance to ``(pairs of key and child, static)``, for key paths that
            name the children.

    Raises:
        ArgumentError: ``kind`` is not a class, or a function is not callable.
        TreeRegistrationError: the class is a container already.

    >>> from tandem import pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> pytree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda static, children: Pair(*children))
    >>> pytree.flatten({"p": Pair(1, 2)})[0]
    [1, 2]
    """
    for name, fn in (("flatten", flatten), ("unflatten", unflatten)):
        if not callable(fn):
            raise ArgumentError(f"register_pytree_node: {name} is a function, not {fn!r}")
    named = flatten_with_keys is not None
    _register("register_pytree_node", kind, make_node(flatten_with_keys or flatten, unflatten, named))


def register_pytree_with_keys(
    kind: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[object, object]], object]],
    unflatten: Callable[[Any, Any], object],
) -> None:
    """Make a class a container whose children have their own keys in key paths.

    Args:
        kind: the class.
        flatten_with_keys: a function from an instance to ``(pairs of key and child, static)``.
        unflatten: a function from ``(static, children)`` to an instance.

    Raises:
        ArgumentError, TreeRegistrationError: as for :func:`register_pytree_node`.
    """
    register_pytree_node(kind, flatten_with_keys, unflatten, flatten_with_keys)


def register_pytree_node_class(kind: C) -> C:
    """Make a class a container by its own ``tree_flatten()`` and class method ``tree_unflatten(static, children)``.

    Args:
        kind: the class. Where it has ``tree_flatten_with_keys()``, that is used.

    Returns:
        The class, so that this is a decorator.

    Raises:
        ArgumentError: it lacks one of the methods.

    >>> import tandem as td
    >>> @td.pytree.register_pytree_node_class
    ... class Scaled:
    ...     def __init__(self, value, factor):
    ...         self.value, self.factor = value, factor
    ...     def tree_flatten(self):
    ...         return (self.value,), self.factor
    ...     @classmethod
    ...     def tree_unflatten(cls, factor, children):
    ...         return cls(*children, factor)
    >>> td.tree.map(lambda x: x + 1, Scaled(1, 10)).value
    2
    """
    with_keys = hasattr(kind, "tree_flatten_with_keys")
    needed = ("tree_flatten_with_keys" if with_keys else "tree_flatten", "tree_unflatten")
    for method in needed:
        if not callable(getattr(kind, method, None)):
            raise ArgumentError(f"register_pytree_node_class: {kind!r} has no method {method}")
    unflatten = functools.partial(_unflatten, kind)
    node = make_node(lambda tree: getattr(tree, needed[0])(), unflatten, with_keys)
    _register("register_pytree_node_class", kind, node)
    return kind


register_pytree_with_keys_class = register_pytree_node_class


def _unflatten(kind: Any, static: Any, children: Iterable[object]) -> object:
    return kind.tree_unflatten(static, children)


def register_dataclass(
    kind: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Choose the fields of a dataclass that are children, and those that identify it.

    Dataclasses are containers without this: all fields are children, but those that were declared with
    ``dataclasses.field(metadata={"static": True})``.

    Args:
        kind: a dataclass, or another class with attributes; None to use this as a decorator.
        data_fields: the fields that are children; None: all that are not static.
        meta_fields: the fields that are part of the containers; their values are hashable. None: the static ones.
        drop_fields: fields that are neither; a rebuilt instance has their defaults.

    Returns:
        The class.

    Raises:
        ArgumentError: the fields are not those of the class.
        TreeRegistrationError: the class was registered before.

    >>> import dataclasses
    >>> import tandem as td
    >>> @td.pytree.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: object
    ...     name: str = dataclasses.field(metadata={"static": True})
    >>> td.tree.map(lambda x: 2 * x, Layer(3, "dense"))
    Layer(weight=6, name='dense')
    """
    if kind is None:
        return lambda cls: register_dataclass(cls, data_fields, meta_fields, drop_fields)
    meta = tuple(static_fields(kind) if meta_fields is None and _is_dataclass(kind) else meta_fields or ())
    known = [field.name for field in dataclasses.fields(kind)] if _is_dataclass(kind) else None
    if data_fields is None:
        if known is None:
            raise ArgumentError(
                f"register_dataclass: {kind!r} is no dataclass, so data_fields must say its children"
            )
        data_fields = [name for name in known if name not in meta and name not in drop_fields]
    _check_fields(kind, known, tuple(data_fields), meta, tuple(drop_fields))
    node = make_attribute_node(
        tuple(data_fields), meta, functools.partial(_read_defaults, kind, tuple(drop_fields))
    )
    _register("register_dataclass", kind, node)
    return kind


def _is_dataclass(kind: object) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _check_fields(
    kind: Any, known: list[str] | None, data: tuple[str, ...], meta: tuple[str, ...], drop: tuple[str, ...]
) -> None:
    named = [*data, *meta, *drop]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise ArgumentError(
            f"register_dataclass: {', '.join(twice)} of {kind.__qualname__} is named more than once"
        )
    if known is None:
        return
    unknown = [name for name in named if name not in known]
    missing = [name for name in known if name not in named]
    if unknown or missing:
        parts = [f"has no field {', '.join(unknown)}"] if unknown else []
        parts += [f"has the field {', '.join(missing)}, which is in none of the lists"] if missing else []
        raise ArgumentError(f"register_dataclass: {kind.__qualname__} {' and '.join(parts)}")


def _read_defaults(kind: type, names: tuple[str, ...]) -> dict[str, object]:
    result = {}
    for field in dataclasses.fields(kind) if names and _is_dataclass(kind) else ():
        if field.name in names and field.default is not dataclasses.MISSING:
            result[field.name] = field.default
        elif field.name in names and field.default_factory is not dataclasses.MISSING:
            result[field.name] = field.default_factory()
    return result


def register_static(kind: C) -> C:
    """Make a class a container without leaves: its instances are part of the containers, compared by ``==``.

    Args:
        kind: a class whose instances are hashable.

    Returns:
        The class, so that this is a decorator.

    >>> import tandem as td
    >>> @td.pytree.register_static
    ... class Config(tuple):
    ...     pass
    >>> td.tree.leaves({"config": Config((1, 2)), "x": 3})
    [3]
    """
    _register(
        "register_static",
        kind,
        Node(lambda tree: ((), tree, None), lambda cls, static, children: static, lambda static, count: ()),
    )
    return kind


def _register(what: str, kind: object, node: Node) -> None:
    if not isinstance(kind, type):
        raise ArgumentError(f"{what} takes a class, not {kind!r}")
    if is_registered(kind):
        raise TreeRegistrationError(f"{kind.__qualname__} is registered as a pytree node already")
    add_node(kind, node)


class _OpaquePartial:
    """A wrapper of a ``functools.partial`` whose arguments are not children: Python does not merge it with another."""

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., object]):
        self.fn = fn

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.fn(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return bool(self.fn == (other.fn if isinstance(other, _OpaquePartial) else other))

    def __hash__(self) -> int:
        return hash(self.fn)


class Partial(functools.partial):  # type: ignore[type-arg]
    """A ``functools.partial`` that is a container: its arguments are children, its function identifies it.

    The arguments of a plain ``functools.partial`` that it is made of belong to the function.

    >>> import tandem as td
    >>> add = td.pytree.Partial(lambda x, y: x + y, 1)
    >>> td.tree.map(lambda leaf: 10 * leaf, add)(5)
    15
    """

    def __new__(cls, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Any:
        """The function with these arguments bound."""
        plain = isinstance(fn, functools.partial) and not isinstance(fn, cls)
        return super().__new__(cls, _OpaquePartial(fn) if plain else fn, *args, **kwargs)


add_node(
    Partial,
    make_node(
        lambda p: ((p.args, p.keywords), p.func),
        lambda fn, children: Partial(fn, *children[0], **children[1]),
    ),
)
