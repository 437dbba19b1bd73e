"""Forward mode: ``jvp``, ``linearize`` and ``linear_transpose``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import pytree
from ..eager.autograd.autograd_meta import AutogradMeta
from ..eager.autograd.engine import ensure_own_memory
from ..eager.autograd.forward_mode import ForwardMeta, forward, tangent_at
from ..eager.autograd.node import zeros_of
from ..eager.layers.levels import Level, open_level, unwrap, wrap_level
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..errors import ArgumentError, DTypeError, NotDifferentiableError
from ..registry.dispatch.unwinding import restore_state_on_error
from ..registry.dtypes import as_dtype, float64
from ..registry.source import source_line
from ..registry.values import TensorSpec, describe
from .arguments import check_callable, match_leaves, name_of, result_leaves, split_aux, tensor_leaves
from .linear_function import LinearFunction, LinearFunctionSpec
from .reverse import Tape, vjp
from .zeros import zero_tangent


@restore_state_on_error
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """The value of ``fun``, and its derivative in a direction.

    Args:
        fun: a function of trees of tensors that gives such a tree; with ``has_aux`` a pair of that and anything else.
        primals: the arguments, a tuple or a list.
        tangents: the direction: a tangent for each argument, of its structure, shapes and dtypes; None in it: zero.
            What stands for an integer or a boolean does not count: it cannot vary.
        has_aux: whether ``fun`` gives such a pair.

    Returns:
        ``(value, tangent)``, with ``has_aux`` ``(value, tangent, aux)``. The tangent of an integer or a boolean is
        zeros of dtype ``td.float0``.

    Raises:
        ArgumentError: ``primals`` and ``tangents`` differ in structure.
        DTypeError: a tangent is of another dtype than its argument.
        ShapeError: a tangent is of another shape than its argument.
        NotDifferentiableError: an operator on the way has no derivative.

    >>> import tandem as td
    >>> td.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 10.0))
    (tensor(6.), tensor(23.))
    """
    check_callable("jvp", fun)
    name = name_of("jvp", fun)
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise ArgumentError(f"{name}: {what} is a tuple or a list of arguments, not {describe(given)}")
    leaves, treedef = tensor_leaves(name, primals, range(len(primals)))
    directions = match_leaves(name, "tangent", list(tangents), treedef, leaves)
    with open_level(name, source_line(), forward) as level:
        inputs = [
            x if t is None else wrap_level(level, x, ForwardMeta(t)) for x, t in zip(leaves, directions)
        ]
        result, aux = split_aux(name, fun(*treedef.unflatten(inputs)), has_aux)
        results, outdef = result_leaves(name, result)
    value = outdef.unflatten([unwrap(level, leaf) for leaf in results])
    tangent = outdef.unflatten(_tangents(level, results, directions))
    if has_aux:
        return value, tangent, pytree.map_tree(lambda leaf: unwrap(level, leaf), aux)
    return value, tangent


def _tangents(level: Level, results: list[Any], given: list[Any]) -> list[Any]:
    """The tangents of results, each in memory of its own."""
    tangents: dict[Any, Any] = {}
    passed = {id(t) for t in given}
    for place, leaf in enumerate(results):
        tangent = tangent_at(level, leaf)
        tangent = zero_tangent(leaf.spec) if tangent is None else tangent
        tangents[place] = by_name("clone")(tangent) if id(tangent) in passed else tangent
    return list(ensure_own_memory(tangents).values())


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``fun``, and its derivative at that point as a function of the direction.

    ``fun`` runs once; the function that is returned repeats only what is linear. Where something in ``fun`` has no
    reverse rule, ``fun`` runs again in forward mode: once at once, so that what has no derivative is found here, and
    whenever that function is called.

    Args:
        fun: as for :func:`jvp`.
        primals: the arguments.
        has_aux: whether ``fun`` gives a pair of the value and anything else.

    Returns:
        ``(value, jvp_fn)``, with ``has_aux`` ``(value, jvp_fn, aux)``; ``jvp_fn(*tangents)`` gives the tangent of the
        value, and may be called any number of times; it is a pytree of the tensors
        that it needs, as that of :func:`vjp` is.

    Raises:
        ArgumentError, DTypeError, ShapeError: as for :func:`jvp`.
        NotDifferentiableError: an operator on the way has no derivative in forward mode either.

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
        value, back, *aux = vjp(fun, *primals, has_aux=has_aux)
        results, outdef = result_leaves(name, value)
        tape = _record_transpose(name, back, results, outdef)
    except NotDifferentiableError:
        still = treedef.unflatten([zero_tangent(x.spec) for x in tensors])
        value, _, *aux = jvp(fun, primals, still, has_aux)
        results, outdef = result_leaves(name, value)

    def push(given: list[Any]) -> list[Any]:
        if tape is None:
            return pytree.leaves(jvp(fun, primals, treedef.unflatten(given), has_aux)[1])
        numbers = zip(tape.pull(given), results)
        return [t if x.dtype.is_inexact else zero_tangent(x.spec) for t, x in numbers]

    spec = LinearFunctionSpec(
        name, False, treedef, [x.spec for x in tensors], outdef, [x.spec for x in results]
    )
    return (value, LinearFunction(spec, push), *aux)


@restore_state_on_error
def _record_transpose(name: str, back: Callable[..., Any], results: list[Any], outdef: Any) -> Tape:
    """The reverse pass as a tape: going through it backwards is forward mode."""
    with open_level(name, source_line()) as level:
        starts = [
            wrap_level(level, zeros_of(x.spec), AutogradMeta()) if x.dtype.is_inexact else zeros_of(x.spec)
            for x in results
        ]
        cotangents = pytree.flatten(list(back(outdef.unflatten(starts))))[0]
    return Tape(level, [_wrap_start(start, level) for start in starts], cotangents)


def _wrap_start(start: Any, level: Level) -> Any:
    return start if start.dtype.is_inexact else wrap_level(level, start, AutogradMeta())


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[..., Any]:
    """The transpose of a linear function.

    Args:
        fun: a linear function of trees of tensors; that it is linear is not checked.
        primals: arguments, of which only shapes and dtypes count: tensors, numbers, or anything with ``shape`` and
            ``dtype``. Integers are gone through as float64, which is exact up to 2**53.

    Returns:
        A function that takes a tree like what ``fun`` gives, and gives a tuple with a tree for each argument.

    Raises:
        DTypeError: an argument holds booleans.
        ArgumentError, ShapeError, DTypeError: by that function: the cotangents do not fit what ``fun`` gives.

    >>> import tandem as td
    >>> back = td.linear_transpose(lambda x: 3.0 * x[1:], td.zeros(3))
    >>> back(td.asarray([1.0, 2.0]))[0].tolist()
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

    def transposed(cotangents: Any) -> tuple[Any, ...]:
        """Cotangents of the arguments from those of what the function gives."""
        zeros = [zeros_of(spec if spec.dtype.is_inexact else spec._replace(dtype=float64)) for spec in specs]
        back: Callable[..., tuple[Any, ...]] = vjp(fun, *treedef.unflatten(zeros))[1]
        if not has_integers:
            return back(cotangents)
        result = pytree.leaves(list(back(pytree.map_tree(_floating, cotangents))))
        cast = [by_name("astype")(x, spec.dtype) for x, spec in zip(result, specs)]
        return tuple(treedef.unflatten(cast))

    return transposed


def _floating(cotangent: Any) -> Any:
    """A cotangent of integers as one of what stands for them."""
    cotangent = asarray(cotangent)
    return cotangent if cotangent.dtype.is_inexact else by_name("astype")(cotangent, float64)
