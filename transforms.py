"""Transforms: functions that make functions. Here: gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from . import pytree
from .eager.construct import asarray
from .eager.dunders import by_name
from .eager.engine import Pass, own
from .eager.levels import Level, LevelTensor, open_level, unwrap, wrap_level
from .eager.meta import AutogradMeta
from .eager.node import zeros_of
from .eager.tensor import Tensor, wrap
from .errors import ArgumentError, DTypeError, ShapeError
from .registry.source import source_line
from .registry.values import describe

Positions = int | Sequence[int]


def value_and_grad(
    fun: Callable[..., Any], argnums: Positions = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that computes ``fun`` and its gradient.

    Args:
        fun: a function whose result is a real floating-point tensor of shape ``()``; with ``has_aux`` a pair of that
            and anything else. Its arguments may be pytrees: dicts, lists, tuples, namedtuples, dataclasses.
        argnums: which positional argument to differentiate by, or a sequence of several.
        has_aux: whether ``fun`` gives such a pair.

    Returns:
        A function of the same arguments that gives ``(value, gradient)``, with ``has_aux``
        ``((value, aux), gradient)``. The gradient has the structure of the argument; for several, it is a tuple.

    Raises:
        ShapeError: the result is no scalar (when called).
        DTypeError: an argument to differentiate by, or the result, is not floating-point (when called).

    >>> import tandem as td
    >>> def loss(p, x):
    ...     return ((p["w"] * x + p["b"]) ** 2).sum()
    >>> value, g = td.value_and_grad(loss)({"w": 2.0, "b": 1.0}, td.asarray([1.0, 2.0]))
    >>> value, g["w"], g["b"]
    (tensor(34.), tensor(26.), tensor(16.))
    """
    positions = _check_positions(fun, argnums)
    name = f"grad({getattr(fun, '__qualname__', repr(fun))})"

    @functools.wraps(fun)
    def with_gradient(*args: Any, **kwargs: Any) -> Any:
        _check_given(name, positions, args)
        leaves, treedef = pytree.flatten([args[position] for position in positions])
        tensors = [_checked_leaf(name, leaf, i, treedef, positions) for i, leaf in enumerate(leaves)]
        with open_level(name, source_line()) as level:
            inputs = [wrap_level(level, tensor, AutogradMeta()) for tensor in tensors]
            given = list(args)
            for position, argument in zip(positions, treedef.unflatten(inputs)):
                given[position] = argument
            value, aux = _split(name, fun(*given, **kwargs), has_aux)
            _check_value(name, value, has_aux)
        gradients = _gradients(level, value, inputs)
        found = treedef.unflatten(gradients)
        value = _plain(level, value)
        result = (value, pytree.map_tree(lambda leaf: unwrap(level, leaf), aux)) if has_aux else value
        return result, found[0] if isinstance(argnums, int) else tuple(found)

    return with_gradient


def grad(fun: Callable[..., Any], argnums: Positions = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the gradient of ``fun``.

    Args:
        fun: as for :func:`value_and_grad`.
        argnums: which positional argument to differentiate by, or a sequence of several.
        has_aux: whether ``fun`` gives a pair of the value and anything else.

    Returns:
        A function of the same arguments that gives the gradient; with ``has_aux`` ``(gradient, aux)``.

    Raises:
        ShapeError: the result is no scalar (when called).
        DTypeError: an argument to differentiate by, or the result, is not floating-point (when called).

    >>> import tandem as td
    >>> td.grad(td.grad(lambda x: x**3))(2.0)
    tensor(12.)
    """
    both = value_and_grad(fun, argnums, has_aux)

    @functools.wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def stop_gradient(tree: Any) -> Any:
    """The same values, through which no gradient flows.

    Args:
        tree: a tensor, or a pytree of them.

    Returns:
        A tree of the same containers; its tensors share memory with those given.

    >>> import tandem as td
    >>> td.grad(lambda x: x * td.stop_gradient(x))(3.0)
    tensor(3.)
    """
    stop = by_name("stop_gradient")
    return pytree.map_tree(lambda leaf: stop(leaf) if isinstance(leaf, Tensor) else leaf, tree)


# -- checks ------------------------------------------------------------------------------------------------------------
def _check_positions(fun: Any, argnums: Any) -> tuple[int, ...]:
    if not callable(fun):
        raise ArgumentError(f"grad takes a function, not {describe(fun)}; call it as td.grad(fun)(*args)")
    positions = tuple(argnums) if isinstance(argnums, Iterable) else (argnums,)
    if not positions or not all(type(position) is int for position in positions):
        raise ArgumentError(f"grad: argnums is an int or a sequence of ints, not {argnums!r}")
    return positions


def _check_given(name: str, positions: tuple[int, ...], args: tuple[Any, ...]) -> None:
    for position in positions:
        if not -len(args) <= position < len(args):
            raise ArgumentError(
                f"{name}: argnums={position}, and the call has {len(args)} positional arguments; pass what is "
                "differentiated by position"
            )


def _checked_leaf(
    name: str, leaf: Any, index: int, treedef: pytree.TreeDef, positions: tuple[int, ...]
) -> Any:
    """A leaf as a floating-point tensor."""
    try:
        tensor = asarray(leaf)
    except (ArgumentError, DTypeError) as fault:
        raise type(fault)(f"{name}: {_place(index, treedef, positions)}: {fault}") from None
    if not tensor.dtype.is_inexact:
        raise DTypeError(
            f"{name}: {_place(index, treedef, positions)} is {describe(tensor)}, and gradients are by floating-point "
            "values; cast it with x.astype(td.float32), or choose other arguments with argnums"
        )
    return tensor


def _place(index: int, treedef: pytree.TreeDef, positions: tuple[int, ...]) -> str:
    """Which argument a leaf belongs to, and where in it."""
    where, _, path = treedef.paths()[index][1:].partition("]")
    return f"argument {positions[int(where)]}{f', at {path}' if path else ''}"


def _split(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(
            f"{name}: with has_aux=True the function gives a pair (value, aux), not {describe(result)}"
        )
    return result


def _check_value(name: str, value: Any, has_aux: bool) -> None:
    if type(value) in (float, int):
        return
    if not isinstance(value, Tensor):
        hint = "" if has_aux else "; if it gives more than the value, say has_aux=True"
        raise ArgumentError(
            f"{name}: the function must give a tensor of shape (), not {describe(value)}{hint}"
        )
    if value.shape != ():
        raise ShapeError(
            f"{name}: the function must give a tensor of shape (), and gave {describe(value)}; reduce it, for example "
            "with .sum() or .mean()"
        )
    if not value.dtype.is_floating:
        raise DTypeError(
            f"{name}: the function must give a real floating-point value, and gave {describe(value)}"
        )


# -- the backward pass -------------------------------------------------------------------------------------------------
def _gradients(level: Level, value: Any, inputs: list[LevelTensor]) -> list[Any]:
    found: dict[AutogradMeta, Any] = {}
    if isinstance(value, LevelTensor) and value._level is level and value._meta is not None:
        meta: AutogradMeta = value._meta
        one = _one_like(value._payload)
        found = own(Pass(keep=False).run([(meta.node or meta, meta.index, one)]))
    return [found[x._meta] if x._meta in found else zeros_of(x.spec) for x in inputs]


def _one_like(value: Any) -> Any:
    """The gradient of a value by itself; without a call of an operator where it can do without."""
    return wrap(np.ones((), value.dtype.np)) if type(value) is Tensor else by_name("ones_like")(value)


def _plain(level: Level, value: Any) -> Any:
    return unwrap(level, value) if isinstance(value, Tensor) else asarray(float(value))
