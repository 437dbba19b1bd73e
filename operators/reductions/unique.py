"""``unique``: NumPy's function of the different elements, or slices along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ArgumentError, ConcretizationError, UnsupportedError
from ...registry.values import TensorBase, describe
from ..declare.array_arguments import accept_arrays
from ..declare.shape_rules import normalize_axis, spec_of
from ..elementwise.comparison import isnan
from ..elementwise.selection import minimum, where
from ..shape.joining import concat
from ..shape.rearrange import moveaxis
from ..shape.splitting import slice_axis
from ..shape.views import reshape
from .folds import any as any_of
from .folds import sum as sum_of
from .sets import all_groups, data_dependent_error, group, unique_values, value_counts

if TYPE_CHECKING:
    from ...registry.types import Number, Tensor, TensorLike


@accept_arrays
def unique(
    ar: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Number | Tensor | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The different elements of a tensor, or slices along an axis, in ascending order, with what else is asked for.

    Args:
        ar: a tensor, which is flattened without ``axis``.
        return_index: whether to return the position of the first occurrence of each as well.
        return_inverse: whether to return for each element the index of its value as well.
        return_counts: whether to return how often each occurs as well.
        axis: the axis of the slices to compare, in lexicographic order; None: elements.
        equal_nan: whether NaNs are equal to each other; those in slices never are.
        sorted: accepted for compatibility with NumPy and PyTorch; the order is always ascending.
        size: the number of values to return: the first ones, padded with ``fill_value``, index and count 0. A trace
            requires it, because shapes must not depend on data; None: as many as there are.
        fill_value: the padding; None: the smallest value.

    Returns:
        The values, or a tuple of values, indices, inverse indices and counts, of which those that are asked for.

    Raises:
        ShapeError: ``size`` is negative, or not 0 although there are no elements.
        OutOfBoundsError: there is no such axis.
        UnsupportedError: the tensor is traced and ``size`` is not given.

    Source: ``numpy.unique``, ``jax.numpy.unique``.

    >>> import tandem as td
    >>> td.unique(td.asarray([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    >>> td.unique(td.asarray([[2, 1], [0, 5], [2, 1]]), axis=0).tolist()
    [[0, 5], [2, 1]]
    >>> td.jit(lambda x: td.unique(x, size=4, fill_value=-1))(td.asarray([3, 1, 3])).tolist()
    [1, 3, -1, -1]
    """
    if not isinstance(ar, TensorBase):
        raise ArgumentError(
            f"unique takes a tensor or an array, not {describe(ar)}; convert it with td.asarray"
        )
    tensor: Tensor = ar
    if size is None and axis is None and (tensor.dtype.kind != "c" or not _may_have_nan(tensor)):
        return _unique_elements(tensor, return_index, return_inverse, return_counts, equal_nan)
    shape = spec_of(tensor).shape
    along = 0 if axis is None else normalize_axis("unique", axis, len(shape))
    if axis is None or len(shape) == 1:
        groups = group("unique", reshape(tensor, (-1,)), size, equal_nan)
        values = groups.values()
    else:
        rows = moveaxis(tensor, axis, 0)
        count = shape[along]
        groups = group("unique", reshape(rows, (count, spec_of(rows).size // max(count, 1))), size)
        values = reshape(groups.values(), (groups.bounds.shape[0] - 1, *spec_of(rows).shape[1:]))
    if size is not None and fill_value is not None:
        is_group = reshape(groups.counts() > 0, (size, *(1,) * (len(spec_of(values).shape) - 1)))
        values = where(is_group, values, fill_value).astype(spec_of(tensor).dtype, copy=False)
    values = moveaxis(values, 0, along)
    others = (
        *([groups.indices()] if return_index else []),
        *([groups.inverse_indices(shape if axis is None else (shape[along],))] if return_inverse else []),
        *([groups.counts()] if return_counts else []),
    )
    return (values, *others) if others else values


def _may_have_nan(tensor: Tensor) -> bool:
    """Whether an element is NaN, or is not known: complex NaNs are not last in the order of the set operators."""
    try:
        return bool(any_of(isnan(tensor)))
    except ConcretizationError:
        return True


def _unique_elements(
    tensor: Tensor, return_index: bool, return_inverse: bool, return_counts: bool, equal_nan: bool
) -> Tensor | tuple[Tensor, ...]:
    """The different elements of a real tensor by the set operator that computes no more, which has an eager kernel."""
    indices = inverse = counts = None
    try:
        if return_index or return_inverse:
            values, indices, inverse, counts = all_groups(tensor)
        elif return_counts:
            values, counts = value_counts(tensor)
        else:
            values = unique_values(tensor)
    except UnsupportedError:
        raise data_dependent_error("unique") from None
    dtype, last = values.dtype, values.shape[0] - 1
    excess = int(sum_of(isnan(values))) - 1 if equal_nan and dtype.is_inexact and last > 0 else 0
    if excess > 0:  # NaNs are last, and different from each other
        values, last = slice_axis(values, 0, 0, last - excess + 1), last - excess
        indices = None if indices is None else slice_axis(indices, 0, 0, last + 1)
        inverse = None if inverse is None else minimum(inverse, last)
        if counts is not None:
            ones = slice_axis(counts, 0, last, last + 1)
            counts = concat([slice_axis(counts, 0, 0, last), ones * (excess + 1)])
    if not (return_index or return_inverse or return_counts):
        return values
    asked = ((return_index, indices), (return_inverse, inverse), (return_counts, counts))
    return (values, *[result for is_asked, result in asked if is_asked and result is not None])
