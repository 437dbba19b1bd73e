"""Jacobians and Hessians: one ``jvp`` or ``vjp`` for each basis vector, batched by ``vmap``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import lazy, pytree
from ..eager.tensor.dunders import by_name
from ..errors import DTypeError
from ..registry.values import describe
from .arguments import (
    Positions,
    check_given,
    check_positions,
    name_of,
    replace_positions,
    result_leaves,
    tensor_leaves,
)
from .forward import jvp
from .reverse import vjp
from .vmap import vmap

if TYPE_CHECKING:
    from ..eager.tensor.tensor import Tensor
    from ..pytree import TreeDef
    from ..registry.types import Args, Function, Kwargs, Pytree

mapping = lazy.Module(".eager.layers.vmap.mapping")


def jacfwd(
    fun: Function, argnums: Positions = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """Create a function that computes the Jacobian of ``fun`` by forward mode, for few inputs and many results.

    Args:
        fun: a function of pytrees of tensors and numbers that returns a pytree of tensors of any shapes, or with
            ``has_aux`` a pair of that and any pytree.
        argnums: the position of the argument to differentiate with respect to, or a sequence of positions.
        has_aux: whether ``fun`` returns such a pair.
        holomorphic: whether ``fun`` is holomorphic; arguments and results are complex then.

    Returns:
        A function of the arguments of ``fun`` that returns a pytree with the structure of the result. In place of each
        tensor it has a pytree with the structure of the argument (for a sequence of positions a tuple of them), whose
        tensors have shape ``result.shape + argument.shape``. With ``has_aux`` it returns ``(jacobian, aux)``.

    Raises:
        ArgumentError: ``fun`` is not callable, or ``argnums`` does not name its arguments.
        DTypeError: an argument holds integers, or is complex without ``holomorphic=True`` (when called).

    Source: ``jax.jacfwd``.

    >>> import tandem as td
    >>> td.jacfwd(lambda x: x * x.sum())(td.asarray([1.0, 2.0])).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    positions = check_positions("jacfwd", fun, argnums)
    name = name_of("jacfwd", fun)

    @functools.wraps(fun)
    def jacobian(*args: Pytree, **kwargs: Pytree) -> Pytree:
        leaves, treedef, part = _partial(name, fun, positions, args, kwargs)
        _check_kind(name, leaves, holomorphic, "arguments")
        primals = treedef.unflatten(leaves)

        def push(*tangents: Tensor) -> tuple[Pytree, ...]:
            result: tuple[Pytree, ...] = jvp(part, primals, treedef.unflatten(tangents), has_aux)
            return result if has_aux else (*result, None)

        value, columns, aux = vmap(push, out_axes=(None, -1, None))(*_basis(leaves))
        results, outdef = result_leaves(name, value)
        _check_kind(name, results, holomorphic, "results", only=holomorphic)
        rows = [_columns(column, x.shape, leaves) for column, x in zip(pytree.leaves(columns), results)]
        result = outdef.unflatten([_unflatten(treedef, row, argnums) for row in rows])
        return (result, aux) if has_aux else result

    return jacobian


def jacrev(
    fun: Function,
    argnums: Positions = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Create a function that computes the Jacobian of ``fun`` by reverse mode, for many inputs and few results.

    Args:
        fun, argnums, has_aux, holomorphic: as for :func:`jacfwd`.
        allow_int: whether arguments may also hold integers and booleans, whose derivatives are zeros of dtype
            ``td.float0``.

    Returns:
        A function of the arguments of ``fun`` that returns the Jacobian in the layout of :func:`jacfwd`.

    Raises:
        ArgumentError: ``fun`` is not callable, or ``argnums`` does not name its arguments.
        DTypeError: an argument holds integers, or a result is complex without ``holomorphic=True`` (when called).

    Source: ``jax.jacrev``.

    >>> import tandem as td
    >>> td.jacrev(lambda x: x * x.sum())(td.asarray([1.0, 2.0])).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """
    positions = check_positions("jacrev", fun, argnums)
    name = name_of("jacrev", fun)

    @functools.wraps(fun)
    def jacobian(*args: Pytree, **kwargs: Pytree) -> Pytree:
        leaves, treedef, part = _partial(name, fun, positions, args, kwargs, allow_int)
        _check_kind(name, leaves, holomorphic, "arguments", only=holomorphic)
        value, vjp_fn, *aux = vjp(part, *treedef.unflatten(leaves), has_aux=has_aux)
        results, outdef = result_leaves(name, value)
        _check_kind(name, results, holomorphic, "results")
        rows = _rows(vjp_fn, results, outdef, leaves)
        result = outdef.unflatten([_unflatten(treedef, row, argnums) for row in rows])
        return (result, *aux) if has_aux else result

    return jacobian


jacobian = jacrev  # the name of PyTorch


def hessian(
    fun: Function, argnums: Positions = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """Create a function that computes the Hessian of ``fun``, by forward mode over reverse mode.

    Args:
        fun, argnums, has_aux, holomorphic: as for :func:`jacfwd`.

    Returns:
        A function of the arguments of ``fun`` that returns a pytree with the structure of the result. In place of each
        tensor it has a pytree with the structure of the argument, and in place of each tensor of that again such a
        pytree, whose tensors have shape ``result.shape + argument.shape + argument.shape``.

    Raises:
        ArgumentError: ``fun`` is not callable, or ``argnums`` does not name its arguments.
        DTypeError: an argument holds integers (when called).

    Source: ``jax.hessian``.

    >>> import tandem as td
    >>> td.hessian(lambda x: x[0] * x[1] ** 2)(td.asarray([1.0, 2.0])).tolist()
    [[0.0, 4.0], [4.0, 2.0]]
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


# -- parts -------------------------------------------------------------------------------------------------------------
def _partial(
    name: str, fun: Function, positions: tuple[int, ...], args: Args, kwargs: Kwargs, allow_int: bool = False
) -> tuple[list[Tensor], TreeDef, Function]:
    """The leaves of the arguments at the positions, the TreeDef of their list, and ``fun`` of these arguments alone."""
    check_given(name, positions, args)
    leaves, treedef = tensor_leaves(name, [args[position] for position in positions], positions, allow_int)

    def part(*primals: Pytree) -> object:
        return fun(*replace_positions(args, positions, primals), **kwargs)

    return leaves, treedef, part


def _check_kind(name: str, leaves: list[Tensor], holomorphic: bool, what: str, only: bool = True) -> None:
    for leaf in leaves if only else ():
        if holomorphic and leaf.dtype.kind != "c":
            raise DTypeError(f"{name}: with holomorphic=True {what} are complex, not {describe(leaf)}")
        if not holomorphic and not leaf.dtype.is_floating:
            raise DTypeError(
                f"{name}: {what} are real floating-point tensors, not {describe(leaf)}; holomorphic=True "
                "differentiates a holomorphic function, td.jvp and td.vjp any other"
            )


def _starts(leaves: list[Tensor]) -> list[int]:
    """The index of the first element of each leaf among the elements of all leaves."""
    sizes = [leaf.size for leaf in leaves]
    return [sum(sizes[:index]) for index in range(len(sizes))]


def _basis(leaves: list[Tensor]) -> list[Tensor]:
    """For each leaf, of shape ``leaf.shape``, a batch of basis vectors of shape ``(total, *leaf.shape)``.

    ``total`` is the number of elements of all leaves; there is a basis vector for each of them.
    """
    total = sum(leaf.size for leaf in leaves)
    eye, result = by_name("eye"), []
    for leaf, start in zip(leaves, _starts(leaves)):
        device = {} if leaf.device == "cpu" else {"device": leaf.device}
        vectors = eye(total, leaf.size, k=-start, dtype=leaf.dtype, **device)
        result.append(by_name("reshape")(vectors, (total, *leaf.shape)))
    return result


def _columns(columns: Tensor, shape: tuple[int, ...], leaves: list[Tensor]) -> list[Tensor]:
    """Split the tangents of a result, of shape ``(*shape, total)``, into a Jacobian for each leaf of the arguments."""
    return [
        by_name("reshape")(columns[..., start : start + leaf.size], (*shape, *leaf.shape))
        for leaf, start in zip(leaves, _starts(leaves))
    ]


def _rows(
    vjp_fn: Function, results: list[Tensor], outdef: TreeDef, leaves: list[Tensor]
) -> list[list[Tensor]]:
    """Apply ``vjp_fn`` to the basis of the results; return for each result a Jacobian for each leaf."""

    def pull(*cotangents: Tensor) -> tuple[Tensor, ...]:
        return tuple(pytree.leaves(vjp_fn(outdef.unflatten(cotangents))))

    gradients: Sequence[Tensor] = ()
    if results:
        # Its calls are not compiled, so :func:`vmap`, which would look for a compiled form, is not used.
        gradients = mapping.make_batch_function(pull, 0, 0, None, None)(*_basis(results))
    return [
        [
            by_name("reshape")(g[start : start + x.size], (*x.shape, *leaf.shape))
            for g, leaf in zip(gradients, leaves)
        ]
        for start, x in zip(_starts(results), results)
    ]


def _unflatten(treedef: TreeDef, leaves: list[Tensor], argnums: Positions) -> Pytree:
    """The pytree of one argument, or for a sequence of positions a tuple of them."""
    result = treedef.unflatten(leaves)
    return result[0] if isinstance(argnums, int) else tuple(result)
