"""argwhere, flatnonzero, where, extract and compress: the positions and the elements that a condition selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import ShapeError, UnsupportedError
from ...registry.dtypes import ALL, DEFAULT_INT, bool_
from ...registry.values import TensorSpec
from ..creation.creation import full
from ..declare.derivatives import NotDifferentiable
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import check_shape, normalize_axis, spec_of
from ..elementwise.casting import cast
from ..shape.joining import concat, stack
from ..shape.views import reshape
from .take import nonzero, nonzero_of_array, take

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Number, Tensor, TensorOrSpec

_SIZE = """
    size: the number of {what} to return: the first ones, padded with ``fill_value``. A trace requires it, because
        shapes must not depend on data; None: as many as there are.
    fill_value: the padding."""
_RAISES = """
    UnsupportedError: the {tensor} is traced and ``size`` is not given."""


def _check_size(name: str, spec: TensorSpec, size: int | None) -> int:
    """The length of a result; raises in a trace without ``size`` if the tensor has elements."""
    if size is None and not spec.size:
        return 0
    if size is None:
        raise UnsupportedError(
            f"{name}: the result has a data-dependent shape: the number of positions depends on data that a trace "
            f"does not have. Pass size=n for n positions, or call {name} outside of jit"
        )
    return check_shape(name, (size,))[0]


def _flatten(self: Tensor) -> Tensor:
    return reshape(self, (spec_of(self).size,))


def _positions(name: str, self: Tensor, size: int | None, fill_value: int) -> tuple[Tensor, ...]:
    """The positions of the elements that are not zero, as of :func:`nonzero`; errors name the caller."""
    if size is not None:
        check_shape(name, (size,))
    try:
        return nonzero(self, size=size, fill_value=fill_value)
    except UnsupportedError:
        _check_size(name, spec_of(self), size)
        raise


def _argwhere_of_array(xp: ArrayModule, self: Array, *, size: int | None, fill_value: int) -> object:
    if size is not None or not self.ndim:
        return NotImplemented
    rows = self.nonzero()
    return rows[0].reshape(-1, 1) if len(rows) == 1 else xp.array(rows).T.copy()


def _flatnonzero_of_array(xp: ArrayModule, self: Array, *, size: int | None, fill_value: int) -> object:
    return self.reshape(-1).nonzero()[0] if size is None else NotImplemented


# -- positions ---------------------------------------------------------------------------------------------------------
def _argwhere_shape_rule(self: TensorOrSpec, *, size: int | None = None, fill_value: int = 0) -> TensorSpec:
    spec = spec_of(self)
    return TensorSpec((_check_size("argwhere", spec, size), len(spec.shape)), DEFAULT_INT, spec.device)


@composite(
    "argwhere(Tensor self, *, int? size=None, int fill_value=0) -> Tensor",
    doc=make_docstring(
        "The indices of the elements that are not zero, a row for each.",
        f"""Args:
    self: any tensor.{_SIZE.format(what="rows")}

Returns:
    An int64 tensor of shape ``(count, ndim)``.

Raises:
    ShapeError: ``size`` is negative.{_RAISES.format(tensor="tensor")}""",
        "td.argwhere(td.asarray([[0, 3], [4, 0]])) -> [[0, 1], [1, 0]]",
    ),
    reference="references.numpy_functions.argwhere",
    eager_kernel=_argwhere_of_array,
    derivative=NotDifferentiable("argwhere returns integers"),
    shape_rule=_argwhere_shape_rule,
    samples="samples.indexing.argwhere_samples",
    errors="samples.indexing.size_errors",
    dtypes=ALL,
)
def argwhere(self: Tensor, *, size: int | None, fill_value: int) -> Tensor:
    spec = spec_of(self)
    rows = _positions("argwhere", self if spec.shape else _flatten(self), size, fill_value)
    if spec.shape:
        return stack(rows, -1)
    return full((rows[0].shape[0], 0), 0, dtype=DEFAULT_INT, device=spec.device)


@composite(
    "flatnonzero(Tensor self, *, int? size=None, int fill_value=0) -> Tensor",
    doc=make_docstring(
        "The positions of the elements that are not zero in the flattened tensor.",
        f"""Args:
    self: any tensor.{_SIZE.format(what="positions")}

Returns:
    An int64 tensor of one axis.

Raises:
    ShapeError: ``size`` is negative.{_RAISES.format(tensor="tensor")}""",
        "td.flatnonzero(td.asarray([[0, 3], [4, 0]])) -> [1, 2]",
    ),
    reference="references.numpy_functions.flatnonzero",
    eager_kernel=_flatnonzero_of_array,
    derivative=NotDifferentiable("flatnonzero returns integers"),
    shape_rule=lambda self, *, size=None, fill_value=0: TensorSpec(
        (_check_size("flatnonzero", spec_of(self), size),), DEFAULT_INT, spec_of(self).device
    ),
    samples="samples.indexing.argwhere_samples",
    errors="samples.indexing.size_errors",
    dtypes=ALL,
    method=False,
)
def flatnonzero(self: Tensor, *, size: int | None, fill_value: int) -> Tensor:
    return _positions("flatnonzero", _flatten(self), size, fill_value)[0]


@composite(
    "where.condition(Tensor condition, *, int? size=None, int fill_value=0) -> Tensor[]",
    doc=make_docstring(
        "The positions where a condition is true: `td.where` of a condition alone.",
        f"""Args:
    condition: any tensor.{_SIZE.format(what="positions")}

Returns:
    A tuple of int64 tensors of one axis, one for each axis of the condition: ``td.nonzero(condition)``.

Raises:
    ShapeError: ``size`` is negative, or the condition is 0-d.{_RAISES.format(tensor="condition")}""",
        "td.where(td.asarray([False, True, True]))[0] -> [1, 2]",
    ),
    reference="references.basic.nonzero",
    eager_kernel=nonzero_of_array,
    derivative=NotDifferentiable("where of a condition alone returns integers"),
    shape_rule=lambda condition, *, size=None, fill_value=0: (
        (
            TensorSpec(
                (_check_size("where", spec_of(condition), size),), DEFAULT_INT, spec_of(condition).device
            ),
        )
        * len(spec_of(condition).shape)
    ),
    samples="samples.indexing.where_condition_samples",
    errors="samples.indexing.size_errors",
    dtypes=ALL,
    method=False,
)
def where_condition(condition: Tensor, *, size: int | None, fill_value: int) -> tuple[Tensor, ...]:
    return _positions("where", condition, size, fill_value)


# -- elements ----------------------------------------------------------------------------------------------------------
def _take_where(
    name: str, condition: Tensor, self: Tensor, axis: int, size: int | None, fill_value: Number
) -> Tensor:
    """The slices along an axis where a vector is true; beyond the last one a slice of ``fill_value``."""
    spec, length = spec_of(self), spec_of(condition).size
    shape = spec.shape
    if length > shape[axis]:
        raise ShapeError(f"{name}: a condition of {length} elements is longer than {shape[axis]}, the axis")
    if size is None:
        return take(self, _positions(name, condition, None, 0)[0], axis)
    pad = full((*shape[:axis], 1, *shape[axis + 1 :]), fill_value, dtype=spec.dtype, device=spec.device)
    (positions,) = _positions(name, condition, size, shape[axis])
    return take(concat([self, pad], axis), positions, axis)


def _extract_of_arrays(
    np: ArrayModule, condition: Array, x: Array, *, size: int | None, fill_value: Number
) -> Any:
    """``extract`` without ``size``; NotImplemented for conditions that do not fit."""
    if size is not None or condition.size > x.size:
        return NotImplemented
    return x.ravel()[: condition.size][condition.ravel().astype(bool, copy=False)]


def _compress_of_arrays(
    np: ArrayModule, condition: Array, x: Array, axis: int | None, *, size: int | None, fill_value: Number
) -> Any:
    """``compress`` without ``size``; NotImplemented for conditions that do not fit."""
    whole, along = (x.ravel(), 0) if axis is None else (x, axis)
    fits = condition.ndim == 1 and -whole.ndim <= along < whole.ndim
    if size is not None or not fits or condition.size > whole.shape[along]:
        return NotImplemented
    return whole.compress(condition.astype(bool, copy=False), along)


@composite(
    "extract(Tensor condition, Tensor self, *, int? size=None, Scalar fill_value=0) -> Tensor",
    doc=make_docstring(
        "The elements of a tensor where a condition is true.",
        f"""Args:
    condition: a tensor of bools, or of numbers that are compared with 0; it is flattened.
    self: a tensor with at least as many elements; it is flattened.{_SIZE.format(what="elements")}

Returns:
    A new tensor of one axis.

Raises:
    ShapeError: ``size`` is negative, or the condition has more elements.{_RAISES.format(tensor="condition")}""",
        "td.extract(td.asarray([True, False, True]), td.asarray([5, 6, 7])) -> [5, 7]",
    ),
    reference="references.numpy_functions.extract",
    eager_kernel=_extract_of_arrays,
    samples="samples.indexing.extract_samples",
    errors="samples.indexing.extract_errors",
    dtypes=ALL,
    method=False,
    spellings={"arr": "self"},
)
def extract(condition: Tensor, self: Tensor, *, size: int | None, fill_value: Number) -> Tensor:
    flat = cast(_flatten(condition), bool_)
    return _take_where("extract", flat, _flatten(self), 0, size, fill_value)


@composite(
    "compress(Tensor condition, Tensor self, int? axis=None, *, int? size=None, Scalar fill_value=0) -> Tensor",
    doc=make_docstring(
        "The slices of a tensor along an axis where a vector is true.",
        f"""Args:
    condition: a tensor of one axis, of bools, or of numbers that are compared with 0.
    self: any tensor.
    axis: the axis; None: ``self`` is flattened first.{_SIZE.format(what="slices")}

Returns:
    A new tensor.

Raises:
    ShapeError: ``size`` is negative, or the condition has not one axis, or is longer than the axis.
    OutOfBoundsError: there is no such axis.{_RAISES.format(tensor="condition")}""",
        "td.compress(td.asarray([True, False]), td.asarray([[1, 2], [3, 4]]), 0) -> [[1, 2]]",
    ),
    reference="references.numpy_functions.compress",
    eager_kernel=_compress_of_arrays,
    samples="samples.indexing.compress_samples",
    errors="samples.indexing.compress_errors",
    dtypes=ALL,
    method=False,
)
def compress(
    condition: Tensor, self: Tensor, axis: int | None, *, size: int | None, fill_value: Number
) -> Tensor:
    if len(spec_of(condition).shape) != 1:
        raise ShapeError(f"compress: the condition has one axis, not shape {spec_of(condition).shape}")
    along = 0 if axis is None else normalize_axis("compress", axis, len(spec_of(self).shape))
    whole = _flatten(self) if axis is None else self
    return _take_where("compress", cast(condition, bool_), whole, along, size, fill_value)
