"""The arguments of a call: bound to parameters, taken apart into leaves, with the static ones set aside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .. import pytree
from ..errors import ArgumentError
from ..registry.values import TensorBase
from .leaves import LeftOut, is_constant

Kind = inspect.Parameter
_POSITIONAL = (Kind.POSITIONAL_ONLY, Kind.POSITIONAL_OR_KEYWORD)


class Bound(NamedTuple):
    """One call, normalised.

    Attributes:
        leaves: leaves of the arguments that are not static, in the order of the parameters.
        treedef: their containers, as one tuple with an item per parameter.
        statics: values of the static parameters, in order.
        static_keys: hashable stand-ins for them, which tell ``1`` from ``True`` and ``1.0``.
    """

    leaves: list[Any]
    treedef: pytree.TreeDef
    statics: tuple[Any, ...]
    static_keys: tuple[Any, ...]


class Arguments:
    """How calls of one function are normalised.

    Args:
        fn: the function.
        static_argnames, static_argnums: which parameters are static, by name and by position.

    Raises:
        ArgumentError: a static argument is not a parameter.
    """

    def __init__(self, fn: Callable[..., Any], static_argnames: Sequence[str], static_argnums: Sequence[int]):
        self.name = getattr(fn, "__name__", repr(fn))
        self.signature = _signature(fn)
        self.parameters = list(self.signature.parameters.values())
        self.static = self._chosen("static", static_argnames, static_argnums)
        self.dynamic = [p.name for p in self.parameters if p.name not in self.static]
        self._simple = all(p.kind in _POSITIONAL for p in self.parameters)
        self._names = [p.name for p in self.parameters]

    def check_donated(self, names: Sequence[str], numbers: Sequence[int]) -> None:
        """Refuse donated arguments that are no parameters, or static.

        Raises:
            ArgumentError: one is.
        """
        both = sorted(self._chosen("donated", names, numbers) & self.static)
        if both:
            raise ArgumentError(f"jit: {', '.join(both)} of {self.name} cannot be static and donated")

    def _chosen(self, what: str, names: Sequence[str], numbers: Sequence[int]) -> frozenset[str]:
        known = [p.name for p in self.parameters]
        unknown = [repr(name) for name in names if name not in known]
        unknown += [str(n) for n in numbers if not -len(known) <= n < len(known)]
        if unknown:
            raise ArgumentError(
                f"jit: {what} argument {', '.join(unknown)} is no parameter of {self.name}{self.signature}"
            )
        return frozenset(names) | {known[n] for n in numbers}

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        """A call's leaves and static values.

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
        return Bound(leaves, treedef, statics, keys)

    def values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """One value per parameter, defaults filled in; numbers and functions among these as :class:`LeftOut`."""
        if self._simple and not kwargs and len(args) == len(self.parameters):
            return args
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as fault:
            raise ArgumentError(f"{self.name}{self.signature}: {fault}") from None
        given = set(bound.arguments)
        bound.apply_defaults()
        return tuple(
            LeftOut(value) if is_constant(value) and name not in given | self.static else value
            for name, value in bound.arguments.items()
        )

    def call(self, fn: Callable[..., Any], dynamic: Sequence[Any], statics: Sequence[Any]) -> Any:
        """Call the function with values for the dynamic and the static parameters, without what was left out."""
        moving, fixed = iter(dynamic), iter(statics)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        by_name = False  # whether a parameter was left out, so that those behind it are given by name
        for parameter in self.parameters:
            value = next(fixed) if parameter.name in self.static else next(moving)
            if type(value) is LeftOut:
                by_name = True
            elif by_name and parameter.kind is Kind.POSITIONAL_OR_KEYWORD:
                kwargs[parameter.name] = value
            else:
                _place(parameter, value, args, kwargs)
        return fn(*args, **kwargs)

    def paths(self, treedef: pytree.TreeDef) -> list[str]:
        """What each leaf is called: the parameter and the path below it, ``params['w'][0]``."""
        pairs = zip(self.dynamic, treedef.children)
        return [name + path for name, child in pairs for path in child.paths()]

    def _static_key(self, name: str, value: Any) -> Any:
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


def static_key(value: Any) -> Any:
    """A stand-in that compares equal only for values of the same type and, for floats, the same representation."""
    if type(value) in (tuple, frozenset):
        return type(value), type(value)(static_key(item) for item in value)
    return type(value), repr(value) if type(value) in (float, complex) else value


def as_names(names: str | Iterable[str], option: str = "static_argnames") -> tuple[str, ...]:
    """Names of parameters as a tuple."""
    return _items(option, "names", names, str)


def as_numbers(numbers: int | Iterable[int], option: str = "static_argnums") -> tuple[int, ...]:
    """Positions of parameters as a tuple."""
    return _items(option, "positions", numbers, int)


def _items(option: str, what: str, given: Any, kind: type) -> tuple[Any, ...]:
    items = tuple(given) if isinstance(given, Iterable) and not isinstance(given, kind) else (given,)
    if not all(isinstance(item, kind) for item in items):
        raise ArgumentError(f"jit: {option} takes {what} of parameters, not {given!r}")
    return items


def _signature(fn: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        anything = [Kind("args", Kind.VAR_POSITIONAL), Kind("kwargs", Kind.VAR_KEYWORD)]
        return inspect.Signature(anything)


def _place(parameter: inspect.Parameter, value: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    if parameter.kind in _POSITIONAL:
        args.append(value)
    elif parameter.kind is Kind.VAR_POSITIONAL:
        args.extend(value)
    elif parameter.kind is Kind.VAR_KEYWORD:
        kwargs.update(value)
    else:
        kwargs[parameter.name] = value
