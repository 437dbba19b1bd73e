"""``closure_convert``: what a function reaches by its closure becomes arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from .. import pytree
from ..eager.tensor import Tensor
from .arguments import check_callable


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A function without the tensors that ``fun`` reaches by its closure, and these tensors.

    A function with a rule of its own may be differentiated by its arguments only; what it is given a function for may
    reach more. The variables of the closure are looked at, those of the functions among them too, and trees of tensors
    in them; globals and attributes of objects are not.

    Args:
        fun: the function.
        example_args: arguments that it will be called with; accepted for the sake of programs written for JAX.

    Returns:
        ``(converted, hoisted)``: floating-point and complex tensors, each once, and a function with
        ``converted(*args, *hoisted) == fun(*args)``.

    Raises:
        ArgumentError: ``fun`` is no function.

    >>> import tandem as td
    >>> def scaled(w):
    ...     return lambda x: x * w
    >>> converted, hoisted = td.closure_convert(scaled(td.asarray(3.0)))
    >>> hoisted, converted(2.0, td.asarray(5.0))
    ([tensor(3.)], tensor(10.))
    """
    check_callable("closure_convert", fun)
    hoisted: dict[int, Any] = {}
    _collect(fun, hoisted, set())
    order = list(hoisted)

    @functools.wraps(fun)
    def converted(*args: Any, **kwargs: Any) -> Any:
        count = len(args) - len(order)
        instead = dict(zip(order, args[count:]))
        return _rebuilt(fun, instead, {})(*args[:count], **kwargs)

    return converted, list(hoisted.values())


def _contents(fun: FunctionType) -> list[Any]:
    found = []
    for cell in fun.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            found.append(None)
    return found


def _collect(value: Any, hoisted: dict[int, Any], seen: set[int]) -> None:
    """Note the tensors in a function's closure."""
    if not isinstance(value, FunctionType) or id(value) in seen:
        return
    seen.add(id(value))
    for content in _contents(value):
        for leaf in pytree.leaves(content):
            if isinstance(leaf, Tensor) and leaf.dtype.is_inexact:
                hoisted.setdefault(id(leaf), leaf)
            _collect(leaf, hoisted, seen)


def _rebuilt(value: Any, instead: dict[int, Any], made: dict[int, Any]) -> Any:
    """A function like one, with other tensors in its closure."""
    if not isinstance(value, FunctionType) or value.__closure__ is None:
        return value
    if id(value) in made:
        return made[id(value)]
    cells = tuple(CellType() for _ in value.__closure__)
    another = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
    another.__kwdefaults__ = value.__kwdefaults__
    made[id(value)] = another

    def replaced(leaf: Any) -> Any:
        return instead.get(id(leaf)) if id(leaf) in instead else _rebuilt(leaf, instead, made)

    for old, cell in zip(value.__closure__, cells):
        try:
            content = old.cell_contents
        except ValueError:
            continue
        cell.cell_contents = pytree.map_tree(replaced, content)
    return another
