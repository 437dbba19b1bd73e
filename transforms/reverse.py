"""Reverse mode: ``grad``, ``value_and_grad``, ``vjp`` and ``stop_gradient``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .. import lazy, pytree
from ..eager.autograd.autograd_meta import AutogradMeta, mark_detached
from ..eager.autograd.engine import Pass, ensure_own_memory
from ..eager.layers.levels import Level, LevelTensor, open_level, unwrap
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor, wrap
from ..errors import ArgumentError, DTypeError, ShapeError
from ..registry.dispatch.keys import AUTOGRAD
from ..registry.dispatch.state import current_keys, set_keys, state
from ..registry.dispatch.unwinding import restore_state_on_error
from ..registry.source import source_line
from ..registry.values import describe
from .arguments import (
    Positions,
    check_callable,
    check_given,
    check_positions,
    name_of,
    replace_positions,
    result_leaves,
    split_aux,
    tensor_leaves,
)
from .linear_function import LinearFunction, LinearFunctionSpec
from .tapes import meta_at, record, root_at, unwrap_tree, wrap_input
from .zeros import zero_tangent

if TYPE_CHECKING:
    from ..registry.types import Function, Pytree

recording_scope = lazy.Module(".eager.layers.recording_scope")  # for the first call of grad

T = TypeVar("T")


def value_and_grad(
    fun: Function,
    argnums: Positions = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Create a function that computes the value and the gradient of ``fun`` in one pass.

    Args:
        fun: a function of pytrees of tensors and numbers that returns a real floating-point tensor of shape ``()``, or
            with ``has_aux`` a pair of that tensor and any pytree.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions. Such an
            argument holds floating-point or complex tensors of any shape, or Python numbers.
        has_aux: whether ``fun`` returns such a pair.
        holomorphic: whether ``fun`` is holomorphic; arguments and result are complex then, and the gradient is the
            complex derivative. A real function of complex arguments does not need it; ``docs/transforms.md`` defines
            its gradient.
        allow_int: whether arguments may also hold integers and booleans, whose gradients are zeros of dtype
            ``td.float0``.

    Returns:
        A function of the arguments of ``fun`` that returns ``(value, gradient)``, with ``has_aux``
        ``((value, aux), gradient)``. The gradient has the structure, shapes and dtypes of the argument; for a sequence
        of positions it is a tuple of such gradients.

    Raises:
        ArgumentError: ``fun`` is not callable, ``argnums`` is not an int or a sequence of ints, or, when called, an
            argument is missing or the result is not a tensor.
        ShapeError: the result is not of shape ``()`` (when called).
        DTypeError: an argument to differentiate with respect to, or the result, is not floating-point, or not complex
            with ``holomorphic=True`` (when called).

    Source: ``jax.value_and_grad``.

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
    def with_gradient(*args: Pytree, **kwargs: Pytree) -> tuple[Pytree, Pytree]:
        check_given(name, positions, args)
        primals = [args[position] for position in positions]
        tensors, treedef = tensor_leaves(name, primals, positions, allow_int)
        _check_holomorphic(name, tensors, holomorphic)

        def call(inputs: list[Tensor]) -> tuple[Tensor | float, Pytree]:
            arguments = replace_positions(args, positions, treedef.unflatten(inputs))
            result, aux = split_aux(name, fun(*arguments, **kwargs), has_aux)
            return _check_value(name, result, has_aux, holomorphic), aux

        run = _run_recorded if recording_scope.is_available(tensors) else _run_at_level
        value, aux, leaves = run(name, tensors, call)
        gradients = treedef.unflatten(leaves)
        return (
            (value, aux) if has_aux else value,
            gradients[0] if isinstance(argnums, int) else tuple(gradients),
        )

    return with_gradient


def grad(
    fun: Function,
    argnums: Positions = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Create a function that computes the gradient of ``fun``.

    Args:
        fun: a function of pytrees of tensors and numbers that returns a real floating-point tensor of shape ``()``, or
            with ``has_aux`` a pair of that tensor and any pytree.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        has_aux: whether ``fun`` returns such a pair.
        holomorphic: whether ``fun`` is holomorphic; see :func:`value_and_grad`.
        allow_int: whether arguments may also hold integers and booleans; see :func:`value_and_grad`.

    Returns:
        A function of the arguments of ``fun`` that returns the gradient, with ``has_aux`` ``(gradient, aux)``. The
        gradient has the structure, shapes and dtypes of the argument; for a sequence of positions it is a tuple.

    Raises:
        ArgumentError, ShapeError, DTypeError: as for :func:`value_and_grad`.

    Source: ``jax.grad``.

    >>> import tandem as td
    >>> td.grad(td.grad(lambda x: x**3))(2.0)
    tensor(12.)
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @functools.wraps(fun)
    def gradient(*args: Pytree, **kwargs: Pytree) -> Pytree:
        value, current = both(*args, **kwargs)
        return (current, value[1]) if has_aux else current

    return gradient


@restore_state_on_error
def vjp(fun: Function, *primals: Pytree, has_aux: bool = False) -> Any:
    """Compute the value of ``fun``, and the function that maps cotangents of the value to cotangents of the arguments.

    Args:
        fun: a function of pytrees of tensors and numbers that returns a pytree of tensors of any shapes, or with
            ``has_aux`` a pair of that and any pytree.
        primals: the arguments of ``fun``.
        has_aux: whether ``fun`` returns such a pair.

    Returns:
        ``(value, vjp_fn)``, with ``has_aux`` ``(value, vjp_fn, aux)``. ``vjp_fn`` takes a pytree with the structure,
        shapes and dtypes of the value, in which None is zero, and returns a tuple with a pytree for each argument. The
        cotangents of integers and booleans are zeros of dtype ``td.float0``. ``vjp_fn`` may be called any number of
        times. It is a pytree of its residuals, so jitted functions may take and return it.

    Raises:
        ArgumentError: ``fun`` is not callable, or, by ``vjp_fn``, the cotangents differ in structure from the value.
        DTypeError: a cotangent differs in dtype from the value (by ``vjp_fn``).
        ShapeError: a cotangent differs in shape from the value (by ``vjp_fn``).

    Source: ``jax.vjp``.

    >>> import tandem as td
    >>> value, vjp_fn = td.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> value, vjp_fn(1.0), vjp_fn(10.0)
    (tensor(6.), (tensor(3.), tensor(2.)), (tensor(30.), tensor(20.)))
    """
    check_callable("vjp", fun)
    name = name_of("vjp", fun)
    tensors, treedef = tensor_leaves(name, primals, range(len(primals)))
    outdef: Any = None

    def call(inputs: list[Tensor]) -> tuple[list[Tensor], Pytree]:
        nonlocal outdef
        result, aux = split_aux(name, fun(*treedef.unflatten(inputs)), has_aux)
        leaves, outdef = result_leaves(name, result)
        return leaves, aux

    leaves, aux, tape = record(name, tensors, call)
    specs = [leaf.spec for leaf in leaves]
    spec = LinearFunctionSpec(name, True, outdef, specs, treedef, [tensor.spec for tensor in tensors])
    vjp_fn = LinearFunction(spec, tape.pull)
    value = outdef.unflatten(leaves)
    return (value, vjp_fn, aux) if has_aux else (value, vjp_fn)


def stop_gradient(tree: T) -> T:
    """Return the same values, treated as constants by every derivative.

    Args:
        tree: a tensor of any shape and dtype, or a pytree of tensors; other leaves are returned unchanged.

    Returns:
        A pytree of the same structure, shapes and dtypes; its tensors share memory with those of ``tree``.

    Source: ``jax.lax.stop_gradient``.

    >>> import tandem as td
    >>> td.grad(lambda x: x * td.stop_gradient(x))(3.0)
    tensor(3.)
    """
    stop = by_name("stop_gradient")
    result: T = pytree.map_tree(
        lambda leaf: mark_detached(stop(leaf)) if isinstance(leaf, Tensor) else leaf, tree
    )
    return result


# -- checks ------------------------------------------------------------------------------------------------------------
def _check_holomorphic(name: str, tensors: list[Tensor], holomorphic: bool) -> None:
    for tensor in tensors:
        if holomorphic and tensor.dtype.kind != "c":
            raise DTypeError(f"{name}: with holomorphic=True arguments are complex, not {describe(tensor)}")


def _check_value(name: str, value: object, has_aux: bool, holomorphic: bool) -> Tensor | float:
    """Check the value of the differentiated function; convert NumPy's arrays and numbers to tensors."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = asarray(value)
    if type(value) is float or type(value) is int:
        return value
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
    return value


# -- the two ways to run a function ------------------------------------------------------------------------------------
Call = Callable[[list[Tensor]], tuple[Tensor | float, "Pytree"]]


def _run_at_level(name: str, tensors: list[Tensor], call: Call) -> tuple[Tensor, Pytree, list[Tensor]]:
    """The value, the auxiliary output and the gradients of a function that runs on values of a new level."""
    with open_level(name, source_line()) as level:
        inputs = [wrap_input(level, tensor) for tensor in tensors]
        value, aux = call(inputs)
    gradients = _gradients(level, value, inputs)
    return _unwrap_value(level, value), unwrap_tree(level, aux), gradients


def _run_recorded(name: str, tensors: list[Tensor], call: Call) -> tuple[Tensor, Pytree, list[Tensor]]:
    """The same for a function that runs on leaves of autograd's graph.

    The pass is recorded as well if the value depends on leaves of the caller.
    """
    scope = recording_scope.RecordingScope(name, tensors)
    value: Any = None
    aux: Any = None
    known: dict[int, Tensor] = {}
    try:
        with scope:
            value, aux = call(scope.inputs)
        scope.is_kept = is_kept = scope.depends_on_others(
            [value] if aux is None else [value, *pytree.leaves(aux)]
        )
        gradients = _recorded_gradients(value, scope.inputs, is_kept)
        result = scope.strip(value, known)
        if aux is not None:
            aux = pytree.map_tree(lambda leaf: scope.strip(leaf, known), aux)
        stripped = aux
    finally:
        value = aux = None  # what is alive after this has been leaked
        scope.close()
    return result if isinstance(result, Tensor) else asarray(float(result)), stripped, gradients


def _recorded_gradients(value: Tensor | float, inputs: list[Tensor], is_kept: bool) -> list[Tensor]:
    """The gradient of a recorded value for each leaf."""
    gradients: dict[AutogradMeta, Tensor] = {}
    meta = value._meta if isinstance(value, Tensor) else None
    if meta is not None and meta.requires_grad and isinstance(value, Tensor):
        root = (meta if meta.node is None else meta.node), meta.index, _one_like(value)
        before = current_keys()
        try:
            if not is_kept:
                set_keys(state.include, state.exclude | AUTOGRAD)
            gradients = ensure_own_memory(Pass(keep=is_kept).run([root]))
        finally:
            set_keys(*before)
    metas = [x._meta for x in inputs]
    return [gradients[m] if m in gradients else zero_tangent(x.spec) for m, x in zip(metas, inputs)]


# -- the backward pass -------------------------------------------------------------------------------------------------
def _gradients(level: Level, value: Tensor | float, inputs: list[Tensor]) -> list[Tensor]:
    """The gradient of a value of a level for each input."""
    gradients: dict[AutogradMeta, Tensor] = {}
    root = root_at(level, value)
    if root is not None and isinstance(value, LevelTensor):
        gradients = ensure_own_memory(Pass(keep=False).run([(*root, _one_like(value._payload))]))
    metas = [meta_at(level, x) for x in inputs]
    return [gradients[meta] if meta in gradients else zero_tangent(x.spec) for meta, x in zip(metas, inputs)]


def _one_like(value: Tensor) -> Tensor:
    """The gradient of a value with respect to itself; calls no operator for a plain tensor."""
    return wrap(np.ones((), value.dtype.np)) if type(value) is Tensor else by_name("ones_like")(value)


def _unwrap_value(level: Level, value: Tensor | float) -> Tensor:
    result: Tensor = unwrap(level, value) if isinstance(value, Tensor) else asarray(float(value))
    return result
