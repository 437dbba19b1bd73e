"""Binding of a call's arguments: match them to parameters, flatten the dynamic ones, separate the static ones."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import pytree
from ..eager.tensor.element_count import ElementCount
from ..errors import ArgumentError
from ..named_tuple import NamedTuple
from ..registry.values import TensorBase
from .guards.leaves import DefaultValue

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs

Kind = inspect.Parameter
_POSITIONAL = (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)


class BoundArguments(NamedTuple):
    """The bound arguments of one call.

    Attributes:
        leaves: leaves of the arguments that are not static, in the order of the parameters.
        treedef: their containers, as one tuple with an item per parameter.
        statics: values of the static parameters, in order.
        static_keys: hashable keys of those values, which distinguish ``1``, ``True`` and ``1.0``.
    """

    leaves: list[Any]
    treedef: pytree.TreeDef
    statics: tuple[Any, ...]
    static_keys: tuple[object, ...]


class Arguments:
    """Binds the arguments of calls of one function.

    Args:
        fn: the function.
        static_argnames, static_argnums: which parameters are static, by name and by position.

    Raises:
        ArgumentError: a static argument is not a parameter.
    """

    def __init__(self, fn: Function, static_argnames: Sequence[str], static_argnums: Sequence[int]):
        self.name = getattr(fn, "__name__", repr(fn))
        self.signature = _signature(fn)
        self.parameters = list(self.signature.parameters.values())
        self.static = self._resolve_names("static", static_argnames, static_argnums)
        self.dynamic = [p.name for p in self.parameters if p.name not in self.static]
        self.donated: frozenset[str] = frozenset()
        self._simple = all(p.kind in _POSITIONAL for p in self.parameters)
        self._names = [p.name for p in self.parameters]
        self._positional = [p.name for p in self.parameters if p.kind in _POSITIONAL]
        self._named = {
            p.name for p in self.parameters if p.kind in (Kind.POSITIONAL_OR_KEYWORD, Kind.KEYWORD_ONLY)
        }
        self._rest = next((p.name for p in self.parameters if p.kind is Kind.VAR_POSITIONAL), "")
        self._keywords = next((p.name for p in self.parameters if p.kind is Kind.VAR_KEYWORD), "")

    def set_donated(self, names: Sequence[str], numbers: Sequence[int]) -> None:
        """Set the donated parameters.

        Raises:
            ArgumentError: one is.
        """
        self.donated = self._resolve_names("donated", names, numbers)
        both = sorted(self.donated & self.static)
        if both:
            raise ArgumentError(f"jit: {', '.join(both)} of {self.name} cannot be static and donated")

    def _resolve_names(self, what: str, names: Sequence[str], numbers: Sequence[int]) -> frozenset[str]:
        known = [p.name for p in self.parameters]
        unknown = [repr(name) for name in names if name not in known]
        unknown += [str(n) for n in numbers if not -len(known) <= n < len(known)]
        if unknown:
            raise ArgumentError(
                f"jit: {what} argument {', '.join(unknown)} is not a parameter of {self.name}{self.signature}"
            )
        return frozenset(names) | {known[n] for n in numbers}

    def bind(self, args: Args, kwargs: Kwargs) -> BoundArguments:
        """Bind a call: flatten the dynamic arguments and collect the static values.

        Raises:
            ArgumentError: the arguments do not fit the signature, or a static one is not hashable.
        """
        values = self.values(args, kwargs)
        if self.static:
            pairs = list(zip(self._names, values))
            statics = tuple(value for name, value in pairs if name in self.static)
            keys = tuple(self._static_key(name, value) for name, value in pairs if name in self.static)
            values = tuple(value for name, value in pairs if name not in self.static)
        else:
            statics = keys = ()
        leaves, treedef = pytree.flatten(tuple(values))
        leaves = [int(leaf) if type(leaf) is ElementCount else leaf for leaf in leaves]  # x.size
        return BoundArguments(leaves, treedef, statics, keys)

    def match_call(self, positional: int, names: Sequence[str]) -> list[tuple[str, int | str | None]]:
        """The parameters that receive the arguments of a call, in the order of the call.

        Args:
            positional: number of positional arguments.
            names: of the keyword arguments.

        Returns:
            For each argument the name of its parameter, and its index in ``*args`` or its key in ``**kwargs``.
        """
        count = len(self._positional)
        items: list[tuple[str, int | str | None]] = [(name, None) for name in self._positional[:positional]]
        items += [(self._rest, index) for index in range(positional - count)]
        return items + [(name, None) if name in self._named else (self._keywords, name) for name in names]

    def values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One value per parameter; defaults that the call does not replace are wrapped in :class:`DefaultValue`."""
        if self._simple and not kwargs and len(args) == len(self.parameters):
            return args
        return self._bind_complete(args, kwargs) or self._bind_by_inspect(args, kwargs)

    def _bind_complete(self, args: Args, kwargs: Kwargs) -> tuple[object, ...] | None:
        """Bind a call that passes every parameter, without :mod:`inspect`; None if the call needs it."""
        if len(args) < len(self._positional) or not (self._rest or len(args) == len(self._positional)):
            return None
        others = dict(kwargs)
        items: list[Any] = list(args[: len(self._positional)])
        for parameter in self.parameters[len(self._positional) :]:
            if parameter.kind is Kind.VAR_POSITIONAL:
                items.append(args[len(self._positional) :])
            elif parameter.kind is Kind.VAR_KEYWORD:
                if any(name in self._named for name in others):
                    return None  # an argument that is given twice
                items.append(others)
                others = {}
            elif parameter.name in others:
                items.append(others.pop(parameter.name))
            else:
                return None
        return None if others else tuple(items)

    def _bind_by_inspect(self, args: Args, kwargs: Kwargs) -> tuple[object, ...]:
        """Bind a call with :mod:`inspect`."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as fault:
            raise ArgumentError(f"{self.name}{self.signature}: {fault}") from None
        given = set(bound.arguments)
        bound.apply_defaults()
        kept = given | self.static | {self._rest, self._keywords}
        return tuple(
            value if name in kept else DefaultValue(value) for name, value in bound.arguments.items()
        )

    def call(self, fn: Callable[..., Any], dynamic: Sequence[Any], statics: Sequence[Any]) -> Any:
        """Call the function with dynamic and static values; parameters that were left to their defaults are omitted."""
        leaves, fixed = iter(dynamic), iter(statics)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        by_name = False  # whether a parameter was omitted, so that later ones must be passed by name
        for parameter in self.parameters:
            value = next(fixed) if parameter.name in self.static else next(leaves)
            if type(value) is DefaultValue:
                by_name = True
            elif by_name and parameter.kind is Kind.POSITIONAL_OR_KEYWORD:
                kwargs[parameter.name] = value
            else:
                _append_argument(parameter, value, args, kwargs)
        return fn(*args, **kwargs)

    def paths(self, treedef: pytree.TreeDef) -> list[str]:
        """The name of each leaf: the parameter and the key path, ``params['w'][0]``."""
        pairs = zip(self.dynamic, treedef.children)
        return [name + path for name, child in pairs for path in child.paths()]

    def begins_with_leaf(self, treedef: pytree.TreeDef) -> bool:
        """Whether the first argument of a call is a single dynamic leaf, such as the ``self`` of a method."""
        if not self._names or self._names[0] in self.static:
            return False
        first = treedef.children[0]
        if self._names[0] == self._rest and first.children:
            first = first.children[0]
        return first.kind is None

    def _static_key(self, name: str, value: object) -> object:
        if isinstance(value, TensorBase):
            raise ArgumentError(
                f"{self.name}: static argument {name!r} is a tensor, whose values would be compiled in; take the name "
                "out of static_argnames, or pass a number"
            )
        key = static_key(value)
        try:
            hash(key)
        except TypeError:
            raise ArgumentError(
                f"{self.name}: static argument {name!r} must be hashable, {type(value).__name__} is not; "
                "pass a tuple for a list, a frozen dataclass for a configuration, or take it out of static_argnames"
            ) from None
        return key


_INNER: dict[type, tuple[str, ...]] = {
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools.partialmethod: ("func",),
    FunctionType: ("__wrapped__",),
}


def is_wrapped_in(fn: object, value: object) -> bool:
    """Whether a class attribute is a function, or a descriptor or decorated function that calls it."""
    if value is fn:
        return True
    inner = [getattr(value, name, None) for name in _INNER.get(type(value), ())]
    return any(is_wrapped_in(fn, each) for each in inner if each is not None)


def static_key(value: Any) -> Any:
    """A key that compares equal only for values of the same type and, for floats, the same representation."""
    if type(value) in (tuple, frozenset):
        return type(value), type(value)(static_key(item) for item in value)
    return type(value), repr(value) if type(value) in (float, complex) else value


def as_names(names: str | Iterable[str], option: str = "static_argnames") -> tuple[str, ...]:
    """Names of parameters as a tuple."""
    return _to_tuple(option, "names", names, str)


def as_numbers(numbers: int | Iterable[int], option: str = "static_argnums") -> tuple[int, ...]:
    """Positions of parameters as a tuple."""
    return _to_tuple(option, "positions", numbers, int)


def _to_tuple(option: str, what: str, given: object, kind: type) -> tuple[Any, ...]:
    items = tuple(given) if isinstance(given, Iterable) and not isinstance(given, kind) else (given,)
    if not all(isinstance(item, kind) for item in items):
        raise ArgumentError(f"jit: {option} takes {what} of parameters, not {given!r}")
    return items


def _signature(fn: Function) -> inspect.Signature:
    try:
        if not isinstance(fn, np.ufunc):  # its options exclude each other, also with their defaults
            return inspect.signature(fn)
    except (TypeError, ValueError):
        pass
    anything = [Kind("args", Kind.VAR_POSITIONAL), Kind("kwargs", Kind.VAR_KEYWORD)]
    return inspect.Signature(anything)


def _append_argument(
    parameter: inspect.Parameter, value: Any, args: list[Any], kwargs: dict[str, object]
) -> None:
    if parameter.kind in _POSITIONAL:
        args.append(value)
    elif parameter.kind is Kind.VAR_POSITIONAL:
        args.extend(value)
    elif parameter.kind is Kind.VAR_KEYWORD:
        kwargs.update(value)
    else:
        kwargs[parameter.name] = value
