"""``closure_convert``: closure conversion, which turns the tensors that a function captures into arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .. import pytree
from ..eager.tensor.tensor import Tensor
from .arguments import check_callable

if TYPE_CHECKING:
    from ..registry.types import Pytree

P = ParamSpec("P")
R = TypeVar("R")


def closure_convert(fun: Callable[P, R], *example_args: Pytree) -> tuple[Callable[..., R], list[Tensor]]:
    """Convert the tensors that ``fun`` captures in its closure to arguments.

    A function with a custom rule can only be differentiated with respect to its arguments, but a function passed to
    it may capture tensors. The variables of the closure are searched, also those of functions among them, and trees of
    tensors in them; globals and attributes of objects are not.

    Args:
        fun: the function.
        example_args: example arguments; accepted for compatibility with JAX, without effect.

    Returns:
        ``(converted, hoisted)``: floating-point and complex tensors, each once, and a function with
        ``converted(*args, *hoisted) == fun(*args)``.

    Raises:
        ArgumentError: ``fun`` is not a function.

    >>> import tandem as td
    >>> def scaled(w):
    ...     return lambda x: x * w
    >>> converted, hoisted = td.closure_convert(scaled(td.asarray(3.0)))
    >>> hoisted, converted(2.0, td.asarray(5.0))
    ([tensor(3.)], tensor(10.))
    """
    check_callable("closure_convert", fun)
    hoisted: dict[int, Tensor] = {}
    _collect_tensors(fun, hoisted, set())
    tensor_ids = list(hoisted)

    @functools.wraps(fun)
    def converted(*args: object, **kwargs: object) -> R:
        count = len(args) - len(tensor_ids)
        replacements = dict(zip(tensor_ids, args[count:]))
        result: R = _replace_captures(fun, replacements, {})(*args[:count], **kwargs)
        return result

    return converted, list(hoisted.values())


def _cell_contents(fun: FunctionType) -> list[object]:
    """The contents of a function's closure cells."""
    result = []
    for cell in fun.__closure__ or ():
        try:
            result.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            result.append(None)
    return result


def _collect_tensors(value: object, hoisted: dict[int, Tensor], seen: set[int]) -> None:
    """Collect the tensors in a function's closure."""
    if not isinstance(value, FunctionType) or id(value) in seen:
        return
    seen.add(id(value))
    for content in _cell_contents(value):
        for leaf in pytree.leaves(content):
            if isinstance(leaf, Tensor) and leaf.dtype.is_inexact:
                hoisted.setdefault(id(leaf), leaf)
            _collect_tensors(leaf, hoisted, seen)


def _replace_captures(value: Any, replacements: dict[int, Any], copies: dict[int, Any]) -> Any:
    """Copy a function with replaced tensors in its closure."""
    if not isinstance(value, FunctionType) or value.__closure__ is None:
        return value
    if id(value) in copies:
        return copies[id(value)]
    cells = tuple(CellType() for _ in value.__closure__)
    copy = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
    copy.__kwdefaults__ = value.__kwdefaults__
    copies[id(value)] = copy

    def replace_leaf(leaf: object) -> object:
        return (
            replacements.get(id(leaf))
            if id(leaf) in replacements
            else _replace_captures(leaf, replacements, copies)
        )

    for old, cell in zip(value.__closure__, cells):
        try:
            content = old.cell_contents
        except ValueError:
            continue
        cell.cell_contents = pytree.map_tree(replace_leaf, content)
    return copy
