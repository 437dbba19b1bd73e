"""intersect1d, union1d, setdiff1d and setxor1d."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import UnsupportedError
from ...registry.dtypes import REAL, bool_
from ..creation.creation import full
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import check_shape, promoted_dtype, spec_of
from ..elementwise.casting import cast
from ..elementwise.comparison import logical_and, logical_not, ne
from ..indexing.positions import extract
from ..shape.joining import concat
from ..shape.splitting import slice_axis
from ..shape.views import reshape
from .searching import isin
from .sorting import sort

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Number, Tensor

_ARGS = """Args:
    self, other: tensors of bool, integer or real floating dtype; they are flattened.
    assume_unique: accepted for compatibility with NumPy; it has no effect.
    size: the number of elements to return: the first ones, padded with ``fill_value``. A trace requires it, because
        shapes must not depend on data; None: as many as there are.
    fill_value: the padding.

Returns:
    A new tensor of one axis and the promoted dtype, in ascending order. NaNs are different from each other.

Raises:
    ShapeError: ``size`` is negative.
    UnsupportedError: a tensor is traced and ``size`` is not given.
    DTypeError: the dtype is not supported."""
_SCHEMA = "(Tensor self, Tensor other, {unique}*, int? size=None, Scalar fill_value=0) -> Tensor"
_UNIQUE = _SCHEMA.format(unique="bool assume_unique=False, ")
_ORDERED = (bool_, *REAL)
_NUMBER_KINDS = {
    "b": (bool,),
    "i": (bool, int),
    "u": (bool, int),
    "f": (bool, int, float),
}  # that keep a dtype
_SAMPLES, _ERRORS = "samples.reductions.set_samples", "samples.reductions.set_errors"


def _flatten(name: str, self: Tensor, other: Tensor) -> list[Tensor]:
    dtype = promoted_dtype(name, (self, other))
    return [cast(reshape(one, (spec_of(one).size,)), dtype) for one in (self, other)]


def _keep_first(
    name: str, ordered: Tensor, mask: Tensor | None, size: int | None, fill_value: Number
) -> Tensor:
    """The first of each group of equal elements of a sorted vector, where a mask is true."""
    spec = spec_of(ordered)
    if size is not None:
        check_shape(name, (size,))
    edge = full((min(spec.size, 1),), True, dtype=bool_, device=spec.device)
    late, early = slice_axis(ordered, 0, 1, spec.size), slice_axis(ordered, 0, 0, max(spec.size - 1, 0))
    first = concat([edge, ne(late, early)]) if spec.size else edge
    try:
        return extract(
            first if mask is None else logical_and(first, mask), ordered, size=size, fill_value=fill_value
        )
    except UnsupportedError:
        if size is not None:
            raise
        raise UnsupportedError(
            f"{name}: the result has a data-dependent shape: the number of elements depends on data that a trace does "
            f"not have. Pass size=n for n elements, or call {name} outside of jit"
        ) from None


# -- eager kernels -----------------------------------------------------------------------------------------------------
def _find_other(self: Array, other: object, size: int | None) -> Array | None:
    """The second array of a call that the kernels compute: two arrays of one dtype, or a number that has it."""
    if size is not None or self.dtype.kind not in "biuf" or not self.size:
        return None
    if isinstance(other, np.ndarray):
        return other if self.dtype == other.dtype and other.size else None
    if type(other) not in _NUMBER_KINDS.get(self.dtype.kind, ()):
        return None
    try:
        if type(other) is int and self.dtype.kind == "f":
            np.int64(other)  # raises as the body does
        with np.errstate(over="ignore"):
            return np.array(other, self.dtype)
    except OverflowError:
        return None


def _sort_array(x: Array) -> Array:
    result = x.flatten()
    result.sort(kind="stable")
    return result


def _is_among(xp: ArrayModule, ordered: Array, others: Array) -> Array:
    """Which elements of a sorted vector are among those of another one."""
    positions = others.searchsorted(ordered)
    xp.minimum(positions, others.size - 1, out=positions)
    result: Array = others[positions] == ordered
    return result


def _first_of_array(xp: ArrayModule, ordered: Array, mask: Array | None = None) -> Array:
    """The first of each group of equal elements of a sorted vector, where a mask is true."""
    first = xp.empty(ordered.size, bool)
    first[0] = True
    xp.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first if mask is None else first & mask]


def _union_of_arrays(
    xp: ArrayModule, self: Array, other: Array, *, size: int | None, fill_value: Number
) -> object:
    array = _find_other(self, other, size)
    if array is None:
        return NotImplemented
    return _first_of_array(xp, _sort_array(xp.concatenate((self.reshape(-1), array.reshape(-1)))))


def _intersection_of_arrays(
    xp: ArrayModule, self: Array, other: Array, assume_unique: bool, *, size: int | None, fill_value: Number
) -> object:
    array = _find_other(self, other, size)
    if array is None:
        return NotImplemented
    ordered = _sort_array(self)
    return _first_of_array(xp, ordered, _is_among(xp, ordered, _sort_array(array)))


def _difference_of_arrays(
    xp: ArrayModule, self: Array, other: Array, assume_unique: bool, *, size: int | None, fill_value: Number
) -> object:
    array = _find_other(self, other, size)
    if array is None:
        return NotImplemented
    ordered = _sort_array(self)
    return _first_of_array(xp, ordered, ~_is_among(xp, ordered, _sort_array(array)))


def _symmetric_difference_of_arrays(
    xp: ArrayModule, self: Array, other: Array, assume_unique: bool, *, size: int | None, fill_value: Number
) -> object:
    array = _find_other(self, other, size)
    if array is None:
        return NotImplemented
    one, two = _sort_array(self), _sort_array(array)
    ordered = _sort_array(xp.concatenate((one, two)))
    return _first_of_array(xp, ordered, _is_among(xp, ordered, one) != _is_among(xp, ordered, two))


# -- operators ---------------------------------------------------------------------------------------------------------
@composite(
    "union1d" + _SCHEMA.format(unique=""),
    doc=make_docstring(
        "The elements of either tensor.",
        _ARGS.replace("    assume_unique: accepted for compatibility with NumPy; it has no effect.\n", ""),
        "td.union1d(td.asarray([3, 1]), td.asarray([1, 2])) -> [1, 2, 3]",
    ),
    reference="references.numpy_functions.union1d",
    eager_kernel=_union_of_arrays,
    samples=_SAMPLES,
    errors=_ERRORS,
    dtypes=_ORDERED,
    method=False,
    spellings={"ar1": "self", "ar2": "other"},
    promotes=True,
)
def union1d(self: Tensor, other: Tensor, *, size: int | None, fill_value: Number) -> Tensor:
    ordered = sort(concat(_flatten("union1d", self, other)))
    return _keep_first("union1d", ordered, None, size, fill_value)


@composite(
    "intersect1d" + _UNIQUE,
    doc=make_docstring(
        "The elements of both tensors.",
        _ARGS,
        "td.intersect1d(td.asarray([3, 1]), td.asarray([1, 2])) -> [1]",
    ),
    reference="references.numpy_functions.intersect1d",
    eager_kernel=_intersection_of_arrays,
    samples=_SAMPLES,
    errors=_ERRORS,
    dtypes=_ORDERED,
    method=False,
    spellings={"ar1": "self", "ar2": "other"},
    promotes=True,
)
def intersect1d(
    self: Tensor, other: Tensor, assume_unique: bool, *, size: int | None, fill_value: Number
) -> Tensor:
    one, two = _flatten("intersect1d", self, other)
    ordered = sort(one)
    return _keep_first("intersect1d", ordered, isin(ordered, two), size, fill_value)


@composite(
    "setdiff1d" + _UNIQUE,
    doc=make_docstring(
        "The elements of the first tensor that the second one does not have.",
        _ARGS,
        "td.setdiff1d(td.asarray([3, 1]), td.asarray([1, 2])) -> [3]",
    ),
    reference="references.numpy_functions.setdiff1d",
    eager_kernel=_difference_of_arrays,
    samples=_SAMPLES,
    errors=_ERRORS,
    dtypes=_ORDERED,
    method=False,
    spellings={"ar1": "self", "ar2": "other"},
    promotes=True,
)
def setdiff1d(
    self: Tensor, other: Tensor, assume_unique: bool, *, size: int | None, fill_value: Number
) -> Tensor:
    one, two = _flatten("setdiff1d", self, other)
    ordered = sort(one)
    return _keep_first("setdiff1d", ordered, logical_not(isin(ordered, two)), size, fill_value)


@composite(
    "setxor1d" + _UNIQUE,
    doc=make_docstring(
        "The elements of one of the tensors alone.",
        _ARGS,
        "td.setxor1d(td.asarray([3, 1]), td.asarray([1, 2])) -> [2, 3]",
    ),
    reference="references.numpy_functions.setxor1d",
    eager_kernel=_symmetric_difference_of_arrays,
    samples=_SAMPLES,
    errors=_ERRORS,
    dtypes=_ORDERED,
    method=False,
    spellings={"ar1": "self", "ar2": "other"},
    promotes=True,
)
def setxor1d(
    self: Tensor, other: Tensor, assume_unique: bool, *, size: int | None, fill_value: Number
) -> Tensor:
    one, two = _flatten("setxor1d", self, other)
    ordered = sort(concat([one, two]))
    return _keep_first("setxor1d", ordered, ne(isin(ordered, one), isin(ordered, two)), size, fill_value)
