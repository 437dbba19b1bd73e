"""Jacobians and Hessians: one ``jvp`` or ``vjp`` for each direction, batched by ``vmap``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import pytree
from ..eager.tensor.dunders import by_name
from ..errors import DTypeError
from ..registry.values import describe
from .arguments import Positions, check_given, check_positions, name_of, result_leaves, tensor_leaves
from .forward import jvp
from .reverse import vjp
from .vmap import vmap


def jacfwd(
    fun: Callable[..., Any], argnums: Positions = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """A function that computes the Jacobian of ``fun`` by forward mode: best for few inputs and many results.

    Args:
        fun: a function of trees of tensors that gives a tree of tensors; with ``has_aux`` a pair of that and anything
            else.
        argnums: which positional argument to differentiate by, or a sequence of several.
        has_aux: whether ``fun`` gives such a pair.
        holomorphic: whether arguments and results are complex, and ``fun`` complex differentiable.

    Returns:
        A function of the same arguments that gives a tree like the result; in the place of each tensor is a tree like
        the argument (for several, a tuple), of tensors of shape ``result.shape + argument.shape``. With ``has_aux``
        ``(jacobian, aux)``.

    Raises:
        DTypeError: an argument is complex and ``holomorphic`` does not say so, or holds integers (when called).

    >>> import tandem as td
    >>> td.jacfwd(lambda x: x * x.sum())(td.asarray([1.0, 2.0])).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    positions = check_positions("jacfwd", fun, argnums)
    name = name_of("jacfwd", fun)

    @functools.wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        part, trees, leaves, treedef = _partial(name, fun, positions, args, kwargs)
        _check_kind(name, leaves, holomorphic, "arguments")

        def push(*directions: Any) -> Any:
            result = jvp(part, trees, treedef.unflatten(directions), has_aux)
            return result if has_aux else (*result, None)

        value, columns, aux = vmap(push, out_axes=(None, -1, None))(*_basis(leaves))
        results, outdef = result_leaves(name, value)
        _check_kind(name, results, holomorphic, "results", only=holomorphic)
        rows = [
            _unflatten(treedef, _columns(column, x.shape, leaves), argnums)
            for column, x in zip(pytree.leaves(columns), results)
        ]
        result = outdef.unflatten(rows)
        return (result, aux) if has_aux else result

    return jacobian


def jacrev(
    fun: Callable[..., Any],
    argnums: Positions = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that computes the Jacobian of ``fun`` by reverse mode: best for many inputs and few results.

    Args:
        fun, argnums, has_aux, holomorphic: as for :func:`jacfwd`.
        allow_int: whether arguments may hold integers and booleans, too; by these the derivatives are zeros of dtype
            ``td.float0``.

    Returns:
        A function of the same arguments; what it gives is described at :func:`jacfwd`.

    Raises:
        DTypeError: a result is complex and ``holomorphic`` does not say so, or an argument holds integers (when
            called).

    >>> import tandem as td
    >>> td.jacrev(lambda x: x * x.sum())(td.asarray([1.0, 2.0])).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    positions = check_positions("jacrev", fun, argnums)
    name = name_of("jacrev", fun)

    @functools.wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        part, trees, leaves, treedef = _partial(name, fun, positions, args, kwargs, allow_int)
        _check_kind(name, leaves, holomorphic, "arguments", only=holomorphic)
        value, back, *aux = vjp(part, *trees, has_aux=has_aux)
        results, outdef = result_leaves(name, value)
        _check_kind(name, results, holomorphic, "results")

        def pull(*cotangents: Any) -> Any:
            return tuple(pytree.leaves(list(back(outdef.unflatten(cotangents)))))

        columns = vmap(pull)(*_basis(results)) if results else ()
        starts = _starts(results)
        rows = [
            [
                by_name("reshape")(g[at : at + x.size], (*x.shape, *leaf.shape))
                for g, leaf in zip(columns, leaves)
            ]
            for at, x in zip(starts, results)
        ]
        result = outdef.unflatten([_unflatten(treedef, row, argnums) for row in rows])
        return (result, *aux) if has_aux else result

    return jacobian


def hessian(
    fun: Callable[..., Any], argnums: Positions = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """A function that computes the matrix of second derivatives of ``fun``: forward mode over reverse mode.

    Args:
        fun, argnums, has_aux, holomorphic: as for :func:`jacfwd`.

    Returns:
        A function of the same arguments that gives a tree like the result; in the place of each tensor is a tree like
        the argument, in the place of each of its tensors again such a tree.

    Raises:
        DTypeError: an argument holds integers (when called).

    >>> import tandem as td
    >>> td.hessian(lambda x: x[0] * x[1] ** 2)(td.asarray([1.0, 2.0])).tolist()
    [[0.0, 4.0], [4.0, 2.0]]
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


# -- parts -------------------------------------------------------------------------------------------------------------
def _partial(
    name: str,
    fun: Callable[..., Any],
    positions: tuple[int, ...],
    args: tuple[Any, ...],
    kwargs: Any,
    allow_int: bool = False,
) -> tuple[Callable[..., Any], list[Any], list[Any], Any]:
    """The function of the arguments to differentiate by, these, their leaves and the TreeDef of their list."""
    check_given(name, positions, args)
    chosen = [args[position] for position in positions]
    leaves, treedef = tensor_leaves(name, chosen, positions, allow_int)

    def part(*chosen: Any) -> Any:
        given = list(args)
        for position, argument in zip(positions, chosen):
            given[position] = argument
        return fun(*given, **kwargs)

    return part, treedef.unflatten(leaves), leaves, treedef


def _check_kind(name: str, leaves: list[Any], holomorphic: bool, what: str, only: bool = True) -> None:
    for leaf in leaves if only else ():
        if holomorphic and leaf.dtype.kind != "c":
            raise DTypeError(f"{name}: with holomorphic=True {what} are complex, not {describe(leaf)}")
        if not holomorphic and not leaf.dtype.is_floating:
            raise DTypeError(
                f"{name}: {what} are real floating-point tensors, not {describe(leaf)}; holomorphic=True "
                "differentiates a holomorphic function, td.jvp and td.vjp any other"
            )


def _starts(leaves: list[Any]) -> list[int]:
    sizes = [leaf.size for leaf in leaves]
    return [sum(sizes[:place]) for place in range(len(sizes))]


def _basis(leaves: list[Any]) -> list[Any]:
    """For each leaf a batch of directions: one for each element of all leaves."""
    total = sum(leaf.size for leaf in leaves)
    eye, result = by_name("eye"), []
    for leaf, at in zip(leaves, _starts(leaves)):
        where = {} if leaf.device == "cpu" else {"device": leaf.device}
        directions = eye(total, leaf.size, k=-at, dtype=leaf.dtype, **where)
        result.append(by_name("reshape")(directions, (total, *leaf.shape)))
    return result


def _columns(column: Any, shape: tuple[int, ...], leaves: list[Any]) -> list[Any]:
    """The parts of a batch of tangents, the batch last, that belong to each leaf of the arguments."""
    return [
        by_name("reshape")(column[..., at : at + leaf.size], (*shape, *leaf.shape))
        for leaf, at in zip(leaves, _starts(leaves))
    ]


def _unflatten(treedef: Any, leaves: list[Any], argnums: Positions) -> Any:
    result = treedef.unflatten(leaves)
    return result[0] if isinstance(argnums, int) else tuple(result)
