"""Reductions, scans and sorting with the arguments of ``jax.lax``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...eager.tensor.construct import asarray
from ...errors import ValueArgumentError
from ...operators.creation.creation import full
from ...operators.declare.named_results import ValuesAndIndices
from ...operators.declare.shape_rules import spec_of
from ...operators.elementwise.arithmetic import add, mul
from ...operators.elementwise.casting import astype
from ...operators.elementwise.selection import maximum, minimum
from ...operators.indexing.take import take_along_axis
from ...operators.reductions import extrema, folds, order_statistics, scans, sorting
from ...operators.shape.joining import concat
from ...operators.shape.rearrange import flip, moveaxis
from ...operators.shape.views import reshape
from ...pytree import flatten
from ...registry.dtypes import DEFAULT_INT

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, Pytree, Tensor


def reduce_sum(operand: Tensor, axes: Sequence[int]) -> Tensor:
    """The sums over axes, in the same dtype."""
    return folds.sum(operand, tuple(axes), dtype=operand.dtype)


def reduce_prod(operand: Tensor, axes: Sequence[int]) -> Tensor:
    """The products over axes, in the same dtype."""
    return folds.prod(operand, tuple(axes), dtype=operand.dtype)


def reduce_max(operand: Tensor, axes: Sequence[int]) -> Tensor:
    """The largest elements over axes."""
    return folds.max(operand, tuple(axes))


def reduce_min(operand: Tensor, axes: Sequence[int]) -> Tensor:
    """The smallest elements over axes."""
    return folds.min(operand, tuple(axes))


def reduce_and(operand: Tensor, axes: Sequence[int]) -> Tensor:
    """Whether all bools over axes are true."""
    return folds.all(operand, tuple(axes))


def reduce_or(operand: Tensor, axes: Sequence[int]) -> Tensor:
    """Whether some bool over axes is true."""
    return folds.any(operand, tuple(axes))


def reduce(
    operands: Pytree,
    init_values: Pytree,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
) -> Pytree:
    """The elements over axes combined by an associative function.

    Args:
        operands: a tensor, or a pytree of tensors of one shape.
        init_values: a number for each tensor, for which the function returns its other argument.
        computation: a function of two pytrees like ``operands``, which computes elementwise.
        dimensions: the axes.

    Source: ``jax.lax.reduce``.

    >>> import tandem.jax as jax
    >>> x = jax.numpy.arange(6).reshape((2, 3))
    >>> jax.lax.reduce(x, 0, jax.lax.add, (0,)).tolist(), jax.lax.reduce(x, 1, lambda a, b: a * b, (1,)).tolist()
    ([3, 5, 7], [0, 60])
    """
    fold = None if isinstance(operands, (tuple, list, dict)) else _FOLDS.get(computation)
    if fold is not None:
        whole: Any = operands
        return astype(computation(fold(whole, dimensions), init_values), whole.dtype)
    leaves, structure = flatten(operands)
    rows = [_flatten_axes(x, dimensions) for x in leaves]
    count = spec_of(rows[0]).shape[0]
    while count > 1:  # neighbours are combined, so that the order of the elements stays
        even = count - count % 2
        pairs = [structure.unflatten([x[at:even:2] for x in rows]) for at in (0, 1)]
        combined = flatten(computation(*pairs))[0]
        rows = [concat([one, x[even:]]) if count % 2 else one for one, x in zip(combined, rows)]
        count = (count + 1) // 2
    if count == 0:
        rows = [
            full((1, *spec_of(x).shape[1:]), 0, dtype=x.dtype) + astype(asarray(init), x.dtype)
            for x, init in zip(rows, flatten(init_values)[0])
        ]
        return structure.unflatten([x[0] for x in rows])
    result = flatten(computation(structure.unflatten([x[0] for x in rows]), init_values))[0]
    return structure.unflatten([astype(one, x.dtype) for one, x in zip(result, leaves)])


def _flatten_axes(x: Tensor, axes: Sequence[int]) -> Tensor:
    """The tensor with some axes as one, which comes first."""
    first = moveaxis(x, tuple(axes), tuple(range(len(axes))))
    return reshape(first, (math.prod(spec_of(first).shape[: len(axes)]), *spec_of(first).shape[len(axes) :]))


_FOLDS: dict[Any, Callable[[Tensor, Sequence[int]], Tensor]] = {
    add: reduce_sum,
    mul: reduce_prod,
    maximum: reduce_max,
    minimum: reduce_min,
}


def argmax(operand: Tensor, axis: int, index_dtype: DTypeLike = DEFAULT_INT) -> Tensor:
    """The indices of the largest elements along an axis."""
    return astype(folds.argmax(operand, axis), index_dtype)


def argmin(operand: Tensor, axis: int, index_dtype: DTypeLike = DEFAULT_INT) -> Tensor:
    """The indices of the smallest elements along an axis."""
    return astype(folds.argmin(operand, axis), index_dtype)


# -- scans -------------------------------------------------------------------------------------------------------------
def _scan(run: Callable[[Tensor], Tensor], operand: Tensor, axis: int, reverse: bool) -> Tensor:
    return flip(run(flip(operand, axis)), axis) if reverse else run(operand)


def cumsum(operand: Tensor, axis: int = 0, reverse: bool = False) -> Tensor:
    """The sums up to and including each element, in the same dtype; from the end with ``reverse``."""
    return _scan(lambda x: scans.cumsum(x, axis, dtype=operand.dtype), operand, axis, reverse)


def cumprod(operand: Tensor, axis: int = 0, reverse: bool = False) -> Tensor:
    """The products up to and including each element, in the same dtype; from the end with ``reverse``."""
    return _scan(lambda x: scans.cumprod(x, axis, dtype=operand.dtype), operand, axis, reverse)


def cummax(operand: Tensor, axis: int = 0, reverse: bool = False) -> Tensor:
    """The largest elements so far, without indices; from the end with ``reverse``."""
    return _scan(lambda x: extrema.cummax(x, axis)[0], operand, axis, reverse)


def cummin(operand: Tensor, axis: int = 0, reverse: bool = False) -> Tensor:
    """The smallest elements so far, without indices; from the end with ``reverse``."""
    return _scan(lambda x: extrema.cummin(x, axis)[0], operand, axis, reverse)


def cumlogsumexp(operand: Tensor, axis: int = 0, reverse: bool = False) -> Tensor:
    """The logarithms of the sums of exponentials so far; from the end with ``reverse``."""
    return _scan(lambda x: scans.logcumsumexp(x, axis), operand, axis, reverse)


# -- order -------------------------------------------------------------------------------------------------------------
def sort(
    operand: Tensor | Sequence[Tensor], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """The elements in ascending order along an axis; of several operands in the order of the first ``num_keys``.

    Raises:
        ValueArgumentError: there are fewer operands than keys, or no key.

    >>> import tandem as td
    >>> keys, values = td.jax.lax.sort((td.asarray([2, 1, 2]), td.asarray([5, 7, 3])), num_keys=2)
    >>> keys.tolist(), values.tolist()
    ([1, 2, 2], [7, 3, 5])
    """
    if not isinstance(operand, (tuple, list)):
        return sorting.sort(operand, axis=dimension, stable=is_stable)
    if not 0 < num_keys <= len(operand):
        raise ValueArgumentError(f"sort: num_keys must be from 1 to {len(operand)}, and not {num_keys}")
    last, *others = reversed(operand[:num_keys])
    order = sorting.argsort(last, axis=dimension, stable=True)
    for key in others:
        again = sorting.argsort(take_along_axis(key, order, dimension), axis=dimension, stable=True)
        order = take_along_axis(order, again, dimension)
    return tuple(take_along_axis(x, order, dimension) for x in operand)


def sort_key_val(
    keys: Tensor, values: Tensor, dimension: int = -1, is_stable: bool = True
) -> tuple[Tensor, Tensor]:
    """The keys in ascending order along an axis, and the values in that order."""
    first, second = sort((keys, values), dimension, is_stable)
    return first, second


def top_k(operand: Tensor, k: int, *, axis: int = -1) -> ValuesAndIndices:
    """The ``k`` largest elements along the last axis, and their indices."""
    return ValuesAndIndices(*order_statistics.topk(operand, k, axis))
