"""NumPy's functions that map a function: apply_along_axis, apply_over_axes, vectorize and fromfunction."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..eager.tensor.construct import asarray
from ..errors import ConcretizationError, ShapeError, UnsupportedError, ValueArgumentError
from ..operators.creation.grids import indices
from ..operators.declare.array_arguments import accept_arrays
from ..operators.declare.shape_rules import broadcast_shapes, is_tensor, normalize_axis, spec_of
from ..operators.shape.joining import stack, unstack
from ..operators.shape.rearrange import expand_dims, moveaxis
from ..operators.shape.views import broadcast_to, reshape
from .vmap import vmap

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor


@accept_arrays
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Tensor, *args: object, **kwargs: object
) -> Any:
    """A function of vectors applied to the vectors along an axis, with :func:`vmap`.

    A function that cannot be batched, such as one of ``x[x > 0]``, is called once for each vector.

    Args:
        func1d: a function of a tensor of one axis.
        axis: the axis.
        arr: a tensor of at least one axis.
        args, kwargs: more arguments of the function.

    Returns:
        A tensor with the axes of the function's result instead of the axis.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> import tandem as td
    >>> td.apply_along_axis(td.cumsum, 1, td.ones((2, 3))).tolist()
    [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
    """
    rank = len(spec_of(arr).shape)
    along = normalize_axis("apply_along_axis", axis, rank)

    def function(row: Tensor) -> Any:
        return func1d(row, *args, **kwargs)

    batched = function
    for at in range(1, rank - along):
        batched = vmap(batched, in_axes=at, out_axes=-1)
    for _ in range(along):
        batched = vmap(batched)
    try:
        return batched(arr)
    except (ConcretizationError, UnsupportedError):
        return _apply_to_each(function, along, arr)


def _apply_to_each(function: Callable[[Tensor], Any], axis: int, arr: Tensor) -> Tensor:
    """Apply a function to the vectors along an axis, one after the other."""
    shape = spec_of(arr).shape
    rows = reshape(moveaxis(arr, axis, -1), (-1, shape[axis]))
    results = stack([asarray(function(row)) for row in unstack(rows, 0)])
    rest, inner = (*shape[:axis], *shape[axis + 1 :]), results.shape[1:]
    order = range(len(rest), len(rest) + len(inner))
    return moveaxis(reshape(results, (*rest, *inner)), tuple(order), tuple(range(axis, axis + len(inner))))


@accept_arrays
def apply_over_axes(func: Callable[[Tensor, int], Tensor], a: Tensor, axes: int | Sequence[int]) -> Tensor:
    """A reduction applied over several axes, one after the other.

    Args:
        func: a function of a tensor and an axis, which keeps the number of axes or removes that axis.
        a: any tensor.
        axes: an axis, or several.

    Returns:
        A tensor with as many axes; the reduced ones have length 1.

    Raises:
        OutOfBoundsError: there is no such axis.
        ShapeError: the function's result has another number of axes.

    >>> import tandem as td
    >>> td.apply_over_axes(td.sum, td.ones((2, 3)), (0, 1)).tolist()
    [[6.0]]
    """
    rank = len(spec_of(a).shape)
    for axis in [axes] if isinstance(axes, int) else axes:
        along = normalize_axis("apply_over_axes", axis, rank)
        result = func(a, along)
        a = expand_dims(result, along) if len(result.shape) == rank - 1 else result
        if len(a.shape) != rank:
            raise ShapeError(
                f"apply_over_axes: the function's result of shape {result.shape} does not fit {rank} axes"
            )
    return a


def fromfunction(
    function: Callable[..., Any], shape: Sequence[int], *, dtype: DTypeLike = float, **kwargs: object
) -> Any:
    """A function of the indices of a grid, called once with tensors of them.

    Args:
        function: a function of as many tensors as there are axes.
        shape: the shape of the grid.
        dtype: the dtype of the indices.
        kwargs: more arguments of the function.

    Returns:
        What the function returns.

    Raises:
        ShapeError: a size is negative.

    >>> import tandem as td
    >>> td.fromfunction(lambda i, j: i + j, (2, 2)).tolist()
    [[0.0, 1.0], [1.0, 2.0]]
    """
    return function(*[x.astype(dtype) for x in unstack(indices(tuple(shape)), 0)], **kwargs)


# -- vectorize ---------------------------------------------------------------------------------------------------------
_CORE = re.compile(r"\(([^()]*)\)")
_SIGNATURE = re.compile(r"\s*\([^()]*\)(\s*,\s*\([^()]*\))*\s*->\s*\([^()]*\)(\s*,\s*\([^()]*\))*\s*")


def _core_ranks(signature: str | None, count: int) -> list[int]:
    """The number of core axes of each argument."""
    if signature is None:
        return [0] * count
    if not _SIGNATURE.fullmatch(signature):
        raise ValueArgumentError(f"vectorize: the signature is such as '(n),(n)->()', not {signature!r}")
    ranks = [
        len(core.split(",")) if core.strip() else 0 for core in _CORE.findall(signature.partition("->")[0])
    ]
    if len(ranks) != count:
        raise ValueArgumentError(f"vectorize: the signature {signature!r} does not have {count} arguments")
    return ranks


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = (), signature: str | None = None
) -> Callable[..., Any]:
    """A function of tensors from a function of their elements, or of core axes, with :func:`vmap`.

    Args:
        pyfunc: the function.
        excluded: positions of arguments that are passed as they are; named arguments always are.
        signature: the core axes, such as ``"(m,n),(n)->(m)"``, which the function gets whole; None: it gets elements.

    Returns:
        The function; the other axes of its arguments broadcast.

    Raises:
        ValueArgumentError: the signature is malformed, or has another number of arguments.
        ShapeError: the shapes do not broadcast, or an argument has fewer axes than its core.

    >>> import tandem as td
    >>> td.vectorize(td.dot, signature="(n),(n)->()")(td.ones((2, 3)), td.ones(3)).tolist()
    [3.0, 3.0]
    """

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        mapped = [at for at in range(len(args)) if at not in excluded]
        ranks = _core_ranks(signature, len(mapped))
        tensors = [args[at] if is_tensor(args[at]) else asarray(args[at]) for at in mapped]
        shapes = [spec_of(one).shape for one in tensors]
        for shape, rank in zip(shapes, ranks):
            if len(shape) < rank:
                raise ShapeError(f"vectorize: an argument of shape {shape} has fewer than {rank} core axes")
        loops = [shape[: len(shape) - rank] for shape, rank in zip(shapes, ranks)]
        loop = broadcast_shapes("vectorize", *loops)

        def function(*values: Tensor) -> Any:
            whole = list(args)
            for at, value in zip(mapped, values):
                whole[at] = value
            return pyfunc(*whole, **kwargs)

        for _ in loop:
            function = vmap(function)
        cores = [shape[len(shape) - rank :] for shape, rank in zip(shapes, ranks)]
        return function(*[broadcast_to(one, loop + core) for one, core in zip(tensors, cores)])

    return vectorized
