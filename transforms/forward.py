"""Forward mode: ``jvp``, ``linearize`` and ``linear_transpose``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from .. import pytree
from ..control.hot_loops import is_known_to_fail
from ..control.hot_transforms import run_transform
from ..eager.autograd.engine import ensure_own_memory
from ..eager.autograd.forward_mode import ForwardMeta, forward, tangent_at
from ..eager.autograd.node import zeros_of
from ..eager.layers.levels import Level, open_level, unwrap, wrap_level
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, DTypeError, NotDifferentiableError
from ..registry.dispatch.unwinding import restore_state_on_error
from ..registry.dtypes import as_dtype, float64
from ..registry.source import source_line
from ..registry.values import TensorSpec, describe
from .arguments import PLAIN, check_callable, match_leaves, name_of, result_leaves, split_aux, tensor_leaves
from .linear_function import LinearFunction, LinearFunctionSpec
from .reverse import vjp
from .tapes import Tape, record
from .zeros import Tangents, zero_tangent

if TYPE_CHECKING:
    from ..pytree import TreeDef
    from ..registry.types import Function, Pytree


@restore_state_on_error
def jvp(fun: Function, primals: Sequence[Pytree], tangents: Sequence[Pytree], has_aux: bool = False) -> Any:
    """Compute the value of ``fun`` and its directional derivative, the Jacobian-vector product.

    Args:
        fun: a function of pytrees of tensors and numbers that returns a pytree of tensors of any shapes, or with
            ``has_aux`` a pair of that and any pytree.
        primals: the arguments of ``fun``, a tuple or a list.
        tangents: a tuple or a list with a tangent for each argument, of its structure, shapes and dtypes; None in it is
            zero. The tangents of integers and booleans are ignored.
        has_aux: whether ``fun`` returns such a pair.

    Returns:
        ``(value, tangent)``, with ``has_aux`` ``(value, tangent, aux)``. ``tangent`` has the structure, shapes and
        dtypes of ``value``; the tangent of an integer or a boolean is zeros of dtype ``td.float0``.

    Raises:
        ArgumentError: ``fun`` is not callable, or ``primals`` and ``tangents`` differ in structure.
        DTypeError: a tangent differs in dtype from its argument.
        ShapeError: a tangent differs in shape from its argument.
        NotDifferentiableError: ``fun`` calls an operator that has no derivative.

    Source: ``jax.jvp``.

    >>> import tandem as td
    >>> td.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 10.0))
    (tensor(6.), tensor(23.))
    """
    check_callable("jvp", fun)
    name = name_of("jvp", fun)
    leaves, treedef, directions = _match_arguments(name, primals, tangents)

    def as_written() -> Pytree:
        return _push(name, fun, leaves, directions, treedef, has_aux)

    if has_aux or is_known_to_fail(fun):
        return as_written()
    count, pattern = len(leaves), [t is not None for t in directions]

    def transform(fun: Function, given: list[Tensor]) -> Pytree:
        rest = iter(given[count:])
        tangents = treedef.unflatten([next(rest) if there else None for there in pattern])
        return jvp(fun, treedef.unflatten(given[:count]), tangents)

    arguments = [*leaves, *[t for t in directions if t is not None]]
    return run_transform(("jvp", *pattern), fun, arguments, treedef, transform, as_written)


def _are_plain(primals: Sequence[Pytree], tangents: Sequence[Pytree]) -> bool:
    """Whether all arguments are plain tensors of floating-point or complex numbers, with tangents that fit them."""
    if type(primals) is not tuple or type(tangents) is not tuple or len(primals) != len(tangents):
        return False
    for x, t in zip(primals, tangents):
        if type(x) is not Tensor or type(t) is not Tensor or x._keys not in PLAIN or t._keys not in PLAIN:
            return False
        one, two = x._array, t._array
        if one.shape != two.shape or one.dtype is not two.dtype or not x.dtype.is_inexact:
            return False
    return True


@cache
def _tuple_of(count: int) -> TreeDef:
    """The structure of a list of tensors."""
    return pytree.flatten([0] * count)[1]


def _match_arguments(
    name: str, primals: Sequence[Pytree], tangents: Sequence[Pytree]
) -> tuple[list[Tensor], TreeDef, list[Tensor | None]]:
    """The leaves of the arguments of ``jvp``, their structure, and their tangents."""
    if _are_plain(primals, tangents):
        return cast(Any, [*primals]), _tuple_of(len(primals)), cast(Any, [*tangents])
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise ArgumentError(f"{name}: {what} is a tuple or a list of arguments, not {describe(given)}")
    leaves, treedef = tensor_leaves(name, primals, range(len(primals)))
    return leaves, treedef, match_leaves(name, "tangent", list(tangents), treedef, leaves)


def _push(
    name: str,
    fun: Function,
    leaves: list[Tensor],
    directions: list[Tensor | None],
    treedef: TreeDef,
    has_aux: bool,
) -> tuple[Pytree, ...]:
    """Run a function at a level of ``jvp``."""
    with open_level(name, source_line(), forward) as level:
        inputs = [
            x if t is None else wrap_level(level, x, ForwardMeta(t)) for x, t in zip(leaves, directions)
        ]
        result, aux = split_aux(name, fun(*treedef.unflatten(inputs)), has_aux)
        is_single = isinstance(result, Tensor) and not has_aux
        results, outdef = ([], treedef) if is_single else result_leaves(name, result)
    if is_single:
        return unwrap(level, result), _tangents(level, [cast(Tensor, result)], directions)[0]
    value = outdef.unflatten([unwrap(level, leaf) for leaf in results])
    tangent = outdef.unflatten(_tangents(level, results, directions))
    if has_aux:
        return value, tangent, pytree.map_tree(lambda leaf: unwrap(level, leaf), aux)
    return value, tangent


def _tangents(level: Level, results: list[Tensor], given: Sequence[Tensor | None]) -> list[Tensor]:
    """The tangents of results, which share memory neither with each other nor with the given tangents."""
    tangents: dict[int, Tensor] = {}
    passed = {id(t) for t in given}
    for index, leaf in enumerate(results):
        tangent = tangent_at(level, leaf)
        tangent = zero_tangent(leaf.spec) if tangent is None else tangent
        tangents[index] = by_name("clone")(tangent) if id(tangent) in passed else tangent
    return list(ensure_own_memory(tangents).values())


def linearize(fun: Function, *primals: Pytree, has_aux: bool = False) -> Any:
    """Compute the value of ``fun``, and its derivative at that point as a linear function of the tangents.

    ``fun`` runs once; the linear function evaluates only the linear part. If ``fun`` calls an operator without a
    reverse rule, ``fun`` runs again in forward mode: once in ``linearize``, which reports a missing derivative, and at
    each call of the linear function.

    Args:
        fun: a function of pytrees of tensors and numbers that returns a pytree of tensors of any shapes, or with
            ``has_aux`` a pair of that and any pytree.
        primals: the arguments of ``fun``.
        has_aux: whether ``fun`` returns such a pair.

    Returns:
        ``(value, jvp_fn)``, with ``has_aux`` ``(value, jvp_fn, aux)``. ``jvp_fn(*tangents)`` takes tangents of the
        structure, shapes and dtypes of the arguments and returns the tangent of the value. It may be called any number
        of times, and is a pytree of its residuals, as is the ``vjp_fn`` of :func:`vjp`.

    Raises:
        ArgumentError: ``fun`` is not callable, or, by ``jvp_fn``, the tangents differ in structure from the arguments.
        DTypeError, ShapeError: a tangent differs in dtype or shape from its argument (by ``jvp_fn``).
        NotDifferentiableError: ``fun`` calls an operator that has no derivative in forward mode either.

    Source: ``jax.linearize``.

    >>> import tandem as td
    >>> value, derivative = td.linearize(lambda x: x**3, 2.0)
    >>> value, derivative(1.0), derivative(0.5)
    (tensor(8.), tensor(12.), tensor(6.))
    """
    check_callable("linearize", fun)
    name = name_of("linearize", fun)
    tensors, treedef = tensor_leaves(name, primals, range(len(primals)))
    tape: Tape | None = None
    try:
        value, vjp_fn, *aux = vjp(fun, *primals, has_aux=has_aux)
        results, outdef = result_leaves(name, value)
        tape = _record_transpose(name, vjp_fn, results, outdef)
    except NotDifferentiableError:
        zeros = treedef.unflatten([zero_tangent(x.spec) for x in tensors])
        value, _, *aux = jvp(fun, primals, zeros, has_aux)
        results, outdef = result_leaves(name, value)

    def push(given: Tangents) -> list[Tensor]:
        if tape is None:
            return pytree.leaves(jvp(fun, primals, treedef.unflatten(given), has_aux)[1])
        pairs = zip(tape.pull(given), results)
        return [t if x.dtype.is_inexact else zero_tangent(x.spec) for t, x in pairs]

    spec = LinearFunctionSpec(
        name, False, treedef, [x.spec for x in tensors], outdef, [x.spec for x in results]
    )
    return (value, LinearFunction(spec, push), *aux)


@restore_state_on_error
def _record_transpose(name: str, vjp_fn: Function, results: list[Tensor], outdef: TreeDef) -> Tape:
    """Record the reverse pass as a tape; the reverse pass of that tape computes tangents."""
    starts = [zeros_of(x.spec) for x in results]

    def call(inputs: list[Tensor]) -> tuple[list[Tensor], None]:
        return pytree.leaves(vjp_fn(outdef.unflatten(inputs))), None

    return record(name, starts, call)[2]


def linear_transpose(fun: Function, *primals: Pytree) -> Callable[..., tuple[Any, ...]]:
    """Create the transpose of a linear function.

    Args:
        fun: a linear function of pytrees of tensors that returns a pytree of tensors; linearity is not checked.
        primals: example arguments, of which only shapes and dtypes are used: pytrees of tensors, of numbers, or of
            objects with ``shape`` and ``dtype``. Integers are transposed as float64, which is exact up to 2**53.

    Returns:
        A function that takes a cotangent of the structure, shapes and dtypes of the result of ``fun`` and returns a
        tuple with a cotangent for each argument.

    Raises:
        ArgumentError: ``fun`` is not callable.
        DTypeError: an argument holds booleans.
        ArgumentError, ShapeError, DTypeError: the cotangent differs from the result of ``fun`` in structure, shape or
            dtype (by the function returned).

    Source: ``jax.linear_transpose``.

    >>> import tandem as td
    >>> transposed = td.linear_transpose(lambda x: 3.0 * x[1:], td.zeros(3))
    >>> transposed(td.asarray([1.0, 2.0]))[0].tolist()
    [0.0, 3.0, 6.0]
    """
    check_callable("linear_transpose", fun)
    name = name_of("linear_transpose", fun)
    leaves, treedef = pytree.flatten(list(primals))
    shaped = [x if hasattr(x, "shape") else asarray(x) for x in leaves]
    specs = [TensorSpec(tuple(x.shape), as_dtype(x.dtype)) for x in shaped]
    if any(spec.dtype.kind == "b" for spec in specs):
        raise DTypeError(f"{name}: an argument holds booleans, and linear functions are of numbers")
    has_integers = any(spec.dtype.is_integer for spec in specs)

    def transposed(cotangents: Pytree) -> tuple[Pytree, ...]:
        """Map the cotangents of the results to cotangents of the arguments."""
        zeros = [zeros_of(spec if spec.dtype.is_inexact else spec._replace(dtype=float64)) for spec in specs]
        vjp_fn: Callable[[Pytree], tuple[Pytree, ...]] = vjp(fun, *treedef.unflatten(zeros))[1]
        if not has_integers:
            return vjp_fn(cotangents)
        result = pytree.leaves(vjp_fn(pytree.map_tree(_to_floating, cotangents)))
        cast = [by_name("astype")(x, spec.dtype) for x, spec in zip(result, specs)]
        return tuple(treedef.unflatten(cast))

    return transposed


def _to_floating(cotangent: object) -> Tensor:
    """Convert a cotangent of integers to float64, in which the function is transposed."""
    tensor = asarray(cotangent)
    return tensor if tensor.dtype.is_inexact else by_name("astype")(tensor, float64)
