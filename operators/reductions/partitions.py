"""lexsort, partition, argpartition and sort_complex, which sort completely, but for some calls of argpartition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import OutOfBoundsError, ShapeError, ValueArgumentError
from ...registry.dtypes import ALL, REAL, bool_, int8, to_complex
from ..declare.derivatives import NotDifferentiable
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from ..elementwise.casting import cast
from ..elementwise.comparison import eq, gt, isnan, logical_and, logical_or, lt
from ..elementwise.complex_parts import imag, real
from ..indexing.take import take_along_axis
from ..shape.views import reshape
from .selection import LEAST_SELECTED, find_rank
from .sorting import argsort, sort

if TYPE_CHECKING:
    from ...registry.types import Tensor

_ORDERED = (bool_, *REAL)
_ARGS = """Args:
    self: tensor of bool, integer or real floating dtype, of at least one axis.
    kth: the position, or several, that the element of the sorted order takes; smaller ones are in front of it.
    axis: the axis; None: the tensor is flattened first.

Returns:
    A new tensor{result}

Raises:
    OutOfBoundsError: a position or the axis is out of bounds.
    DTypeError: the dtype is not supported."""


@composite(
    "lexsort(Tensor[] keys, int axis=-1) -> Tensor",
    doc=make_docstring(
        "The positions that sort by several keys; the last key is the primary one.",
        """Args:
    keys: a list of tensors of one shape, of bool, integer or real floating dtype.
    axis: the axis to sort along.

Returns:
    An int64 tensor of that shape. Equal elements keep their order.

Raises:
    ValueArgumentError: there are no keys.
    ShapeError: the shapes differ.
    OutOfBoundsError: there is no such axis.
    DTypeError: a dtype is not supported.""",
        "td.lexsort([td.asarray([2, 1, 0]), td.asarray([1, 0, 1])]) -> [1, 2, 0]",
    ),
    reference="references.numpy_functions.lexsort",
    derivative=NotDifferentiable("lexsort returns integers"),
    samples="samples.reductions.lexsort_samples",
    errors="samples.reductions.lexsort_errors",
    dtypes=_ORDERED,
    method=False,
)
def lexsort(keys: Sequence[Tensor], axis: int) -> Tensor:
    if not keys:
        raise ValueArgumentError("lexsort: needs at least one key")
    shape = spec_of(keys[0]).shape
    for key in keys:
        if spec_of(key).shape != shape:
            raise ShapeError(f"lexsort: the shapes {shape} and {spec_of(key).shape} of keys differ")
    along = normalize_axis("lexsort", axis, len(shape))
    order = argsort(keys[0], axis=along)
    for key in keys[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, along), axis=along), along)
    return order


def _check_partition(name: str, self: Tensor, kth: tuple[int, ...], axis: int | None) -> tuple[Tensor, int]:
    """The tensor, flattened without an axis, and the axis."""
    shape = spec_of(self).shape
    flat = self if axis is not None else reshape(self, (spec_of(self).size,))
    along = 0 if axis is None else normalize_axis(name, axis, len(shape))
    size = spec_of(flat).shape[along]
    for position in kth:
        if not -size <= position < size:
            raise OutOfBoundsError(f"{name}: position {position} is out of bounds for an axis of {size}")
    return flat, along


def _divide(flat: Tensor, rank: int, axis: int) -> Tensor:
    """The positions of the elements before that of a rank, equal to it, and behind it, each in their order."""
    bound = take_along_axis(flat, find_rank(flat, rank, axis), axis)
    before, behind = lt(flat, bound), gt(flat, bound)
    if spec_of(flat).dtype.is_inexact:  # NaN is the largest number
        before = logical_or(before, logical_and(isnan(bound), eq(flat, flat)))
        behind = logical_or(behind, logical_and(isnan(flat), eq(bound, bound)))
    return argsort(1 + cast(behind, int8) - cast(before, int8), axis=axis)


@composite(
    "partition(Tensor self, int[] kth, int? axis=-1) -> Tensor",
    doc=make_docstring(
        "The elements, with those smaller than the kth in front of it and the others behind it.",
        _ARGS.format(result=". All of it is sorted, as in JAX."),
        "td.partition(td.asarray([3, 1, 2]), 1) -> [1, 2, 3]",
    ),
    reference="references.numpy_functions.partition",
    samples="samples.reductions.partition_samples",
    errors="samples.reductions.partition_errors",
    dtypes=_ORDERED,
    method=False,
    variadic=False,
)
def partition(self: Tensor, kth: tuple[int, ...], axis: int | None) -> Tensor:
    flat, along = _check_partition("partition", self, kth, axis)
    return sort(flat, axis=along)


@composite(
    "argpartition(Tensor self, int[] kth, int? axis=-1) -> Tensor",
    doc=make_docstring(
        "The positions that put the smaller elements in front of the kth and the others behind it.",
        _ARGS.format(
            result=" of int64. Equal elements keep their order, and so may those on one side of the position."
        ),
        "td.argpartition(td.asarray([3, 1, 2]), 1) -> [1, 2, 0]",
    ),
    reference="references.numpy_functions.argpartition",
    derivative=NotDifferentiable("argpartition returns integers"),
    samples="samples.reductions.partition_samples",
    errors="samples.reductions.partition_errors",
    dtypes=_ORDERED,
    method=False,
    variadic=False,
)
def argpartition(self: Tensor, kth: tuple[int, ...], axis: int | None) -> Tensor:
    flat, along = _check_partition("argpartition", self, kth, axis)
    size = spec_of(flat).shape[along]
    if size < LEAST_SELECTED or len({position % size for position in kth}) > 1:
        return argsort(flat, axis=along)
    return _divide(flat, kth[0] % size, along)


@composite(
    "sort_complex(Tensor self) -> Tensor",
    doc=make_docstring(
        "The elements along the last axis as complex numbers, sorted by real parts, then by imaginary ones.",
        """Args:
    self: a tensor of at least one axis.

Returns:
    A new tensor: complex128 for float64 and complex128, the default complex dtype for integers, else complex64.

Raises:
    OutOfBoundsError: the tensor has no axes.""",
        "td.sort_complex(td.asarray([2 + 1j, 1 + 0j, 2 + 0j])) -> [(1+0j), (2+0j), (2+1j)]",
    ),
    reference="numpy.sort_complex",
    samples="samples.reductions.sort_complex_samples",
    errors="samples.reductions.sort_complex_errors",
    dtypes=ALL,
    method=False,
)
def sort_complex(self: Tensor) -> Tensor:
    numbers = cast(self, to_complex(spec_of(self).dtype))
    return take_along_axis(numbers, lexsort([imag(numbers), real(numbers)]))
