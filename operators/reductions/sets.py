"""The set functions of the Array API standard: unique_all, unique_counts, unique_inverse, unique_values.

Their results are as long as there are different elements, so a trace needs ``size``. The functions in the
namespace ``td`` return named tuples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError, UnsupportedError
from ...named_tuple import NamedTuple
from ...registry.dtypes import ALL, DEFAULT_INT, bool_
from ...registry.values import TensorSpec
from ..creation.creation import arange, full
from ..declare.kinds import composite
from ..declare.named_results import NamedResults
from ..declare.shape_rules import check_shape, spec_of
from ..elementwise.casting import cast
from ..elementwise.comparison import eq, isnan, logical_and, logical_not, ne
from ..elementwise.complex_parts import imag, real
from ..elementwise.selection import where
from ..indexing.take import nonzero, take
from ..shape.joining import concat, unstack
from ..shape.splitting import slice_axis
from ..shape.views import reshape
from .folds import any as any_of
from .scans import cumsum
from .sorting import argsort

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Tensor

_ARGS = """

    Args:
        self: any tensor; it is flattened. NaNs are different from each other.
        size: the number of {what} to return: the first ones, or more with the smallest value as padding{padding}. A
            trace requires it, because shapes must not depend on data; None: as many as there are.

    Returns:
        {returns}

    Raises:
        ShapeError: ``size`` is negative, or not 0 although there are no elements.
        UnsupportedError: the tensor is traced and ``size`` is not given.
"""


def data_dependent_error(name: str) -> UnsupportedError:
    """The error of a trace that does not give the number of different elements."""
    return UnsupportedError(
        f"{name}: the result has a data-dependent shape: the number of different elements depends on data that a "
        f"trace does not have. Pass size=n for n values, or call {name} outside of jit"
    )


def _check_size(name: str, self: Tensor | TensorSpec, size: int | None) -> int:
    """The length of the results; raises in a trace without ``size``."""
    if size is None:
        raise data_dependent_error(name)
    check_shape(name, (size,))
    if size and not spec_of(self).size:
        raise ShapeError(f"{name}: there are no elements, so size must be 0 and not {size}")
    return size


class _Groups(NamedTuple):
    """The elements of a tensor, or the rows of a matrix, in groups of equal ones.

    Attributes:
        order: the positions of the elements in ascending order.
        is_first: for each of these whether it is the first of its group.
        bounds: the starts of the groups in ``order``, and the end of the last.
        ordered: the elements in ascending order.
    """

    order: Tensor
    is_first: Tensor
    bounds: Tensor
    ordered: Tensor

    def starts(self) -> Tensor:
        """The start of each group in ``order``; 0 for padding."""
        start = slice_axis(self.bounds, 0, 0, self.bounds.shape[0] - 1)
        return where(eq(start, self.order.shape[0]), 0, start)

    def values(self) -> Tensor:
        """The element of each group."""
        return take(self.ordered, self.starts(), 0)

    def indices(self) -> Tensor:
        """The flat position of the first element of each group."""
        return take(self.order, self.starts())

    def counts(self) -> Tensor:
        """The number of elements of each group."""
        last = self.bounds.shape[0] - 1
        return slice_axis(self.bounds, 0, 1, last + 1) - slice_axis(self.bounds, 0, 0, last)

    def inverse_indices(self, shape: tuple[int, ...]) -> Tensor:
        """The group of each element."""
        rank = cumsum(cast(self.is_first, DEFAULT_INT), 0) - 1
        return reshape(take(rank, argsort(self.order)), shape)


def _order_of(flat: Tensor) -> Tensor:
    """The positions that sort a tensor of one axis; complex numbers by their real parts, then the imaginary ones."""
    if spec_of(flat).dtype.kind != "c":
        return argsort(flat)
    by_imaginary = argsort(imag(flat))
    return take(by_imaginary, argsort(take(real(flat), by_imaginary)))


def _order_of_rows(rows: Tensor) -> Tensor:
    """The positions that sort the rows of a matrix in lexicographic order."""
    spec = spec_of(rows)
    order = arange(spec.shape[0], device=spec.device)
    for column in reversed(unstack(rows, 1)):
        order = take(order, _order_of(take(column, order)))
    return order


def _differ(one: Tensor, other: Tensor, equal_nan: bool) -> Tensor:
    """Whether elements, or rows, differ."""
    result = ne(one, other)
    if equal_nan and spec_of(one).dtype.is_inexact:
        result = logical_and(result, logical_not(logical_and(isnan(one), isnan(other))))
    return any_of(result, 1) if len(spec_of(one).shape) == 2 else result


def group(name: str, rows: Tensor, size: int | None, equal_nan: bool = False) -> _Groups:
    """Group the equal elements of a tensor of one axis, or the equal rows of a matrix.

    Args:
        name: the caller, for messages.
        rows: the tensor.
        size: the number of groups to return; None: all.
        equal_nan: whether NaNs are equal.
    """
    spec = spec_of(rows)
    count = spec.shape[0]
    if size is not None:
        _check_size(name, rows, size)
    order = _order_of(rows) if len(spec.shape) == 1 else _order_of_rows(rows)
    ordered = take(rows, order, 0)
    edge = full((1,), True, dtype=bool_, device=spec.device)
    differ = _differ(
        slice_axis(ordered, 0, 1, count), slice_axis(ordered, 0, 0, max(count - 1, 0)), equal_nan
    )
    ends = concat([edge, differ, edge] if count else [edge], 0)  # of groups, and the start of the first
    try:
        bounds = nonzero(ends, size=None if size is None else size + 1, fill_value=count)[0]
    except UnsupportedError:
        raise data_dependent_error(name) from None
    return _Groups(order, slice_axis(ends, 0, 0, count), bounds, ordered)


def _group(name: str, self: Tensor, size: int | None) -> _Groups:
    return group(name, reshape(self, (spec_of(self).size,)), size)


# -- eager kernels -----------------------------------------------------------------------------------------------------
_NO_ORDER = np.empty(0, np.int64)
_HASHED = getattr(getattr(np.lib, "_arraysetops_impl", None), "_unique_hash", None)
"""NumPy's set of the elements of an array, which ``numpy.unique`` uses (NumPy 2.3 and later)."""
_MOST_SORTED = 1 << 12  # elements; argsort of more is faster


class _ArrayGroups(NamedTuple):
    """The elements of an array in groups of equal ones.

    Attributes:
        order: the positions of the elements in ascending order; empty if they are not asked for.
        ordered: the elements in ascending order.
        is_first: for each of these whether it is the first of its group.
    """

    order: Array
    ordered: Array
    is_first: Array

    def inverse_indices(self, xp: ArrayModule, shape: tuple[int, ...]) -> Array:
        """The group of each element."""
        result = xp.empty(self.ordered.size, xp.int64)
        result[self.order] = self.is_first.cumsum() - 1
        return result.reshape(shape)

    def counts(self, starts: Array, xp: ArrayModule) -> Array:
        """The number of elements of each group."""
        result = xp.empty(starts.size, xp.int64)
        xp.subtract(starts[1:], starts[:-1], out=result[:-1])
        result[-1] = self.ordered.size - starts[-1]
        return result


def _group_array(
    xp: ArrayModule, self: Array, size: int | None, needs_order: bool = True
) -> _ArrayGroups | None:
    """Group the equal elements of an array; None for calls that the body computes."""
    if size is not None or not 0 < self.size <= _MOST_SORTED or self.dtype.kind not in "biufc":
        return None
    flat = self.reshape(-1)
    if needs_order:
        order = flat.argsort(kind="stable")
        ordered = flat[order]
    else:
        order, ordered = _NO_ORDER, flat.copy()
        ordered.sort(kind="stable")
    if self.dtype.kind == "c" and ordered[-1] != ordered[-1]:  # NumPy sorts complex NaNs in another order
        return None
    return _ArrayGroups(order, ordered, _mark_first(xp, ordered))


def _mark_first(xp: ArrayModule, ordered: Array) -> Array:
    """Whether each of some ordered elements is the first of its group."""
    result: Array = xp.empty(ordered.size, bool)
    result[0] = True
    xp.not_equal(ordered[1:], ordered[:-1], out=result[1:])
    return result


def _all_of_array(xp: ArrayModule, self: Array, *, size: int | None) -> object:
    groups = _group_array(xp, self, size)
    if groups is None:
        return NotImplemented
    starts = groups.is_first.nonzero()[0]
    inverse, counts = groups.inverse_indices(xp, self.shape), groups.counts(starts, xp)
    return groups.ordered[starts], groups.order[starts], inverse, counts


def _counts_of_array(xp: ArrayModule, self: Array, *, size: int | None) -> object:
    groups = _group_array(xp, self, size, needs_order=False)
    if groups is None:
        return NotImplemented
    starts = groups.is_first.nonzero()[0]
    return groups.ordered[starts], groups.counts(starts, xp)


def _inverse_of_array(xp: ArrayModule, self: Array, *, size: int | None) -> object:
    groups = _group_array(xp, self, size)
    if groups is None:
        return NotImplemented
    return groups.ordered[groups.is_first], groups.inverse_indices(xp, self.shape)


def _values_of_array(xp: ArrayModule, self: Array, *, size: int | None) -> object:
    kind, count = self.dtype.kind, self.size
    is_small = count <= _MOST_SORTED
    if size is not None or not count or kind not in "biufc" or (kind == "c" and not is_small):
        return NotImplemented
    ordered = _find_different(self) if xp is np and is_small and kind in "iuc" else None
    if ordered is not None:
        ordered.sort()
        return ordered if kind != "c" or ordered[-1] == ordered[-1] else NotImplemented
    ordered = self.flatten()
    if is_small if kind in "fc" else self.dtype.itemsize <= 2:
        ordered.sort(kind="stable")  # that of short integers is a radix sort
    else:
        ordered.sort()
    if kind == "c" and ordered[-1] != ordered[-1]:  # NumPy sorts complex NaNs in another order
        return NotImplemented
    values: Array = ordered[_mark_first(xp, ordered)]
    if kind == "f" and not is_small:
        _restore_zero(values, self)
    return values


def _find_different(self: Array) -> Array | None:
    """The different elements of an array, of equal ones the first, in any order; None if NumPy cannot tell.

    NumPy's function reads arrays of one axis only, and does not check that.
    """
    result: Any = NotImplemented if _HASHED is None else _HASHED(self.reshape(-1))
    return None if result is NotImplemented else result


def _restore_zero(values: Array, source: Array) -> None:
    """Give a zero among the values the sign of the first zero of the source, as a stable sort does."""
    at = values.searchsorted(0)
    if at < values.size and values[at] == 0:
        values[at] = source.flat[(source == 0).argmax()]


# -- operators ---------------------------------------------------------------------------------------------------------
def _spec(name: str, self: TensorSpec, size: int | None, integers: int) -> tuple[TensorSpec, ...]:
    """The specs of the values, and of ``integers`` tensors of the same length."""
    spec, length = spec_of(self), _check_size(name, self, size)
    return (
        TensorSpec((length,), spec.dtype, spec.device),
        *[TensorSpec((length,), DEFAULT_INT, spec.device)] * integers,
    )


def _inverse_spec(self: TensorSpec) -> TensorSpec:
    spec = spec_of(self)
    return TensorSpec(spec.shape, DEFAULT_INT, spec.device)


def _all_shape_rule(self: TensorSpec, *, size: int | None = None) -> tuple[TensorSpec, ...]:
    values, indices, counts = _spec("unique_all", self, size, 2)
    return values, indices, _inverse_spec(self), counts


@composite(
    "unique_all(Tensor self, *, int? size=None)"
    " -> (Tensor values, Tensor indices, Tensor inverse_indices, Tensor counts)",
    doc="The different elements of a tensor, where they are, and how often."
    + _ARGS.format(
        what="values",
        padding=", index 0 of the sorted elements and count 0",
        returns="``(values, indices, inverse_indices, counts)``: the values in ascending order, the flat position of "
        "the\n        first occurrence of each, for each element of ``self`` the index of its value, and the counts.",
    )
    + "\n    >>> td.unique_all(td.asarray([3, 1, 3])).counts.tolist()\n    [1, 2]\n",
    reference="references.arrays.unique_all",
    shape_rule=_all_shape_rule,
    eager_kernel=_all_of_array,
    samples="samples.reductions.unique_samples",
    errors="samples.reductions.unique_errors",
    dtypes=ALL,
    method=False,
)
def all_groups(self: Tensor, *, size: int | None) -> tuple[Tensor, ...]:
    groups = _group("unique_all", self, size)
    inverse = groups.inverse_indices(spec_of(self).shape)
    return groups.values(), groups.indices(), inverse, groups.counts()


@composite(
    "unique_counts(Tensor self, *, int? size=None) -> (Tensor values, Tensor counts)",
    doc="The different elements of a tensor, and how often they occur."
    + _ARGS.format(
        what="values",
        padding=" and count 0",
        returns="``(values, counts)``: the values in ascending order, and how often each occurs.",
    )
    + "\n    >>> [x.tolist() for x in td.unique_counts(td.asarray([3, 1, 3]))]\n    [[1, 3], [1, 2]]\n",
    reference="references.arrays.unique_counts",
    eager_kernel=_counts_of_array,
    shape_rule=lambda self, *, size=None: _spec("unique_counts", self, size, 1),
    samples="samples.reductions.unique_samples",
    errors="samples.reductions.unique_errors",
    dtypes=ALL,
    method=False,
)
def value_counts(self: Tensor, *, size: int | None) -> tuple[Tensor, ...]:
    groups = _group("unique_counts", self, size)
    return groups.values(), groups.counts()


@composite(
    "unique_inverse(Tensor self, *, int? size=None) -> (Tensor values, Tensor inverse_indices)",
    doc="The different elements of a tensor, and the index of each element among them."
    + _ARGS.format(
        what="values",
        padding="",
        returns="``(values, inverse_indices)``: ascending values, and ``self`` is ``values[inverse_indices]``.",
    )
    + "\n    >>> [x.tolist() for x in td.unique_inverse(td.asarray([3, 1, 3]))]\n    [[1, 3], [1, 0, 1]]\n",
    reference="references.arrays.unique_inverse",
    eager_kernel=_inverse_of_array,
    shape_rule=lambda self, *, size=None: (
        *_spec("unique_inverse", self, size, 0),
        _inverse_spec(self),
    ),
    samples="samples.reductions.unique_samples",
    errors="samples.reductions.unique_errors",
    dtypes=ALL,
    method=False,
)
def _unique_inverse(self: Tensor, *, size: int | None) -> tuple[Tensor, ...]:
    groups = _group("unique_inverse", self, size)
    return groups.values(), groups.inverse_indices(spec_of(self).shape)


@composite(
    "unique_values(Tensor self, *, int? size=None) -> Tensor",
    doc="The different elements of a tensor."
    + _ARGS.format(
        what="values",
        padding="",
        returns="A new tensor of one axis, in ascending order.",
    )
    + "\n    >>> td.unique_values(td.asarray([3, 1, 3])).tolist()\n    [1, 3]\n",
    reference="references.arrays.unique_values",
    eager_kernel=_values_of_array,
    shape_rule=lambda self, *, size=None: _spec("unique_values", self, size, 0)[0],
    samples="samples.reductions.unique_samples",
    errors="samples.reductions.unique_errors",
    dtypes=ALL,
    method=False,
)
def unique_values(self: Tensor, *, size: int | None) -> Tensor:
    return _group("unique_values", self, size).values()


# -- named results -----------------------------------------------------------------------------------------------------
class UniqueAllResult(NamedTuple):
    """The result of :func:`unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The result of :func:`unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The result of :func:`unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


unique_all = NamedResults(all_groups, UniqueAllResult)
unique_counts = NamedResults(value_counts, UniqueCountsResult)
unique_inverse = NamedResults(_unique_inverse, UniqueInverseResult)
