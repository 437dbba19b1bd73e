"""Reverse mode: gradients, and ``vjp``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import pytree
from ..eager.autograd.autograd_meta import AutogradMeta, mark_detached
from ..eager.autograd.engine import Pass, ensure_own_memory
from ..eager.layers.levels import Level, LevelTensor, open_level, unwrap, wrap_level
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor, wrap
from ..errors import ArgumentError, DTypeError, ShapeError
from ..registry.dispatch.unwinding import restore_state_on_error
from ..registry.source import source_line
from ..registry.values import describe
from .arguments import (
    Positions,
    check_callable,
    check_given,
    check_positions,
    name_of,
    result_leaves,
    split_aux,
    tensor_leaves,
)
from .linear_function import LinearFunction, LinearFunctionSpec
from .zeros import zero_tangent


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Positions = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that computes ``fun`` and its gradient.

    Args:
        fun: a function whose result is a real floating-point tensor of shape ``()``; with ``has_aux`` a pair of that
            and anything else. Its arguments may be pytrees: dicts, lists, tuples, namedtuples, dataclasses.
        argnums: which positional argument to differentiate by, or a sequence of several.
        has_aux: whether ``fun`` gives such a pair.
        holomorphic: whether arguments and result are complex, and ``fun`` complex differentiable; the gradient is its
            complex derivative then. A real function of complex arguments needs no such promise; see
            ``docs/transforms.md`` for what its gradient is.
        allow_int: whether arguments may hold integers and booleans, too; by these the gradients are zeros of dtype
            ``td.float0``.

    Returns:
        A function of the same arguments that gives ``(value, gradient)``, with ``has_aux``
        ``((value, aux), gradient)``. The gradient has the structure of the argument; for several, it is a tuple.

    Raises:
        ShapeError: the result is no scalar (when called).
        DTypeError: an argument to differentiate by, or the result, is not floating-point, or not complex where
            ``holomorphic`` says so (when called).

    >>> import tandem as td
    >>> def loss(p, x):
    ...     return ((p["w"] * x + p["b"]) ** 2).sum()
    >>> value, g = td.value_and_grad(loss)({"w": 2.0, "b": 1.0}, td.asarray([1.0, 2.0]))
    >>> value, g["w"], g["b"]
    (tensor(34.), tensor(26.), tensor(16.))
    """
    positions = check_positions("grad", fun, argnums)
    name = name_of("grad", fun)

    @functools.wraps(fun)
    @restore_state_on_error
    def with_gradient(*args: Any, **kwargs: Any) -> Any:
        check_given(name, positions, args)
        chosen = [args[position] for position in positions]
        tensors, treedef = tensor_leaves(name, chosen, positions, allow_int)
        _check_holomorphic(name, tensors, holomorphic)
        with open_level(name, source_line()) as level:
            inputs = [_wrap_input(level, tensor) for tensor in tensors]
            given = list(args)
            for position, argument in zip(positions, treedef.unflatten(inputs)):
                given[position] = argument
            value, aux = split_aux(name, fun(*given, **kwargs), has_aux)
            value = asarray(value) if isinstance(value, (np.ndarray, np.generic)) else value
            _check_value(name, value, has_aux, holomorphic)
        gradients = _gradients(level, value, inputs)
        results = treedef.unflatten(gradients)
        value = _unwrap_value(level, value)
        result = (value, pytree.map_tree(lambda leaf: unwrap(level, leaf), aux)) if has_aux else value
        return result, results[0] if isinstance(argnums, int) else tuple(results)

    return with_gradient


def grad(
    fun: Callable[..., Any],
    argnums: Positions = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that computes the gradient of ``fun``.

    Args:
        fun: as for :func:`value_and_grad`.
        argnums: which positional argument to differentiate by, or a sequence of several.
        has_aux: whether ``fun`` gives a pair of the value and anything else.
        holomorphic, allow_int: as for :func:`value_and_grad`.

    Returns:
        A function of the same arguments that gives the gradient; with ``has_aux`` ``(gradient, aux)``.

    Raises:
        ShapeError: the result is no scalar (when called).
        DTypeError: an argument to differentiate by, or the result, is not floating-point (when called).

    >>> import tandem as td
    >>> td.grad(td.grad(lambda x: x**3))(2.0)
    tensor(12.)
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @functools.wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, current = both(*args, **kwargs)
        return (current, value[1]) if has_aux else current

    return gradient


@restore_state_on_error
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``fun``, and the function that takes cotangents of it back to cotangents of the arguments.

    Args:
        fun: a function of trees of tensors that gives such a tree; with ``has_aux`` a pair of that and anything else.
        primals: the arguments.
        has_aux: whether ``fun`` gives such a pair.

    Returns:
        ``(value, vjp_fn)``, with ``has_aux`` ``(value, vjp_fn, aux)``. ``vjp_fn`` takes a tree like the value (None in
        it: zero) and gives a tuple with a tree for each argument; it may be called any number of times. By integers and
        booleans it gives zeros of dtype ``td.float0``. It is a pytree of the tensors that it needs, so jitted functions
        may take it and give it.

    Raises:
        DTypeError: by ``vjp_fn``: a cotangent is of another dtype than the value.
        ShapeError: by ``vjp_fn``: a cotangent is of another shape than the value.
        ArgumentError: by ``vjp_fn``: the cotangents are another tree than the value.

    >>> import tandem as td
    >>> value, back = td.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> value, back(1.0), back(10.0)
    (tensor(6.), (tensor(3.), tensor(2.)), (tensor(30.), tensor(20.)))
    """
    check_callable("vjp", fun)
    name = name_of("vjp", fun)
    tensors, treedef = tensor_leaves(name, primals, range(len(primals)))
    with open_level(name, source_line()) as level:
        inputs = [_wrap_input(level, tensor) for tensor in tensors]
        result, aux = split_aux(name, fun(*treedef.unflatten(inputs)), has_aux)
        leaves, outdef = result_leaves(name, result)
    specs = [leaf.spec for leaf in leaves]
    spec = LinearFunctionSpec(name, True, outdef, specs, treedef, [tensor.spec for tensor in tensors])
    back = LinearFunction(spec, Tape(level, inputs, leaves).pull)
    value = outdef.unflatten([unwrap(level, leaf) for leaf in leaves])
    return (value, back, pytree.map_tree(lambda leaf: unwrap(level, leaf), aux)) if has_aux else (value, back)


class Tape:
    """A function that has run once on values of a level of ``grad``, to be gone through backwards.

    Args:
        level: the level.
        inputs: what was differentiated by.
        results: what came out: values of the level, or others, which depend on none of the inputs.
    """

    def __init__(self, level: Level, inputs: list[Any], results: list[Any]):
        self._inputs = [(meta_at(level, x), x.spec) for x in inputs]
        self._results = [root_at(level, leaf) for leaf in results]

    def pull(self, cotangents: list[Any]) -> list[Any]:
        """The cotangents of the inputs from those of the results (None: zero)."""
        pairs = zip(self._results, cotangents)
        roots = [(*root, g) for root, g in pairs if root is not None and g is not None]
        value = ensure_own_memory(Pass(keep=True).run(roots)) if roots else {}
        for _, _, g in roots:  # what is passed through as it is may be written by nobody but its owner
            for meta, gradient in value.items():
                if gradient is g:
                    value[meta] = by_name("clone")(g)
        return [value[meta] if meta in value else zero_tangent(spec) for meta, spec in self._inputs]


def _wrap_input(level: Level, tensor: Any) -> Any:
    """An argument to differentiate by as a value of the level; integers are what they are."""
    return wrap_level(level, tensor, AutogradMeta()) if tensor.dtype.is_inexact else tensor


def meta_at(level: Level, value: Any) -> AutogradMeta | None:
    """The history of an argument to differentiate by; None for integers."""
    return value._meta if isinstance(value, LevelTensor) and value._level is level else None


def root_at(level: Level, value: Any) -> tuple[Any, int] | None:
    """Where reverse mode starts for a value of a level; None for one that depends on nothing."""
    if isinstance(value, LevelTensor) and value._level is level and value._meta is not None:
        meta: AutogradMeta = value._meta
        return ((meta.node or meta), meta.index) if meta.requires_grad else None
    return None


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
    return pytree.map_tree(lambda leaf: mark_detached(stop(leaf)) if isinstance(leaf, Tensor) else leaf, tree)


# -- checks ------------------------------------------------------------------------------------------------------------
def _check_holomorphic(name: str, tensors: list[Any], holomorphic: bool) -> None:
    for tensor in tensors:
        if holomorphic and tensor.dtype.kind != "c":
            raise DTypeError(f"{name}: with holomorphic=True arguments are complex, not {describe(tensor)}")


def _check_value(name: str, value: Any, has_aux: bool, holomorphic: bool) -> None:
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
    if holomorphic and value.dtype.kind != "c":
        raise DTypeError(f"{name}: with holomorphic=True the function gives complex, not {describe(value)}")
    if not holomorphic and not value.dtype.is_floating:
        complex_hint = (
            "; holomorphic=True differentiates a holomorphic function, td.vjp any other"
            if value.dtype.kind == "c"
            else ""
        )
        raise DTypeError(
            f"{name}: the function must give a real floating-point value, and gave {describe(value)}{complex_hint}"
        )


# -- the backward pass -------------------------------------------------------------------------------------------------
def _gradients(level: Level, value: Any, inputs: list[Any]) -> list[Any]:
    gradients: dict[Any, Any] = {}
    root = root_at(level, value)
    if root is not None:
        gradients = ensure_own_memory(Pass(keep=False).run([(*root, _one_like(value._payload))]))
    metas = [meta_at(level, x) for x in inputs]
    return [gradients[meta] if meta in gradients else zero_tangent(x.spec) for meta, x in zip(metas, inputs)]


def _one_like(value: Any) -> Any:
    """The gradient of a value by itself; without a call of an operator where it can do without."""
    return wrap(np.ones((), value.dtype.np)) if type(value) is Tensor else by_name("ones_like")(value)


def _unwrap_value(level: Level, value: Any) -> Any:
    return unwrap(level, value) if isinstance(value, Tensor) else asarray(float(value))
