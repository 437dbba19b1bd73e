"""Reads and writes along one axis, with PyTorch's names: gather, scatter, index_add, masked_fill, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import ALL, NUMERIC
from ..creation.creation import arange
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import broadcast_shapes, is_known, is_tensor, normalize_axis, spec_of
from ..elementwise.arithmetic import floor_divide
from ..elementwise.casting import cast
from ..elementwise.selection import maximum, where
from ..reductions.scans import cumsum
from ..shape.views import broadcast_to, reshape
from .gather import index as index_at
from .gather import index_put
from .index_reduce import index_reduce
from .slicing import basic_index

if TYPE_CHECKING:
    from ...registry.types import Number, Tensor

_INDEX = "index: tensor of integers; negative ones count from the end"
_SCATTER_ARGS = f"""Args:
    self: any tensor.
    axis: the axis along which the values of `index` are positions.
    {_INDEX}. It has as many axes as `self`, and is not longer along the others.
    src: the values, a tensor that is at least as long as `index` along each axis, or a number.{{more}}

Returns:
    A new tensor of the shape and dtype of `self`.

Raises:
    ShapeError: the shapes do not fit.
    OutOfBoundsError: a position is out of bounds."""
_SELECT_ARGS = f"""Args:
    self: any tensor.
    axis: the axis.
    {_INDEX}, with one axis.{{more}}

Returns:
    A new tensor of the dtype of `self`.

Raises:
    ShapeError: the shapes do not fit.
    OutOfBoundsError: a position is out of bounds."""


def _positions(name: str, self: Tensor, axis: int, index: Tensor) -> list[Tensor]:
    """For each axis of ``self`` the positions that ``index`` selects, as integer tensors that broadcast."""
    shape, sizes = spec_of(self).shape, spec_of(index).shape
    along = normalize_axis(name, axis, len(shape))
    if len(sizes) != len(shape) or any(
        n > shape[at] for at, n in enumerate(sizes) if at != along and len(shape) == len(sizes)
    ):
        raise ShapeError(
            f"{name}: the index {spec_of(index)} needs as many axes as {spec_of(self)}, and may be longer along axis "
            f"{along} only"
        )
    device = spec_of(self).device
    return [
        index
        if at == along
        else reshape(arange(n, device=device), [n if a == at else 1 for a in range(len(sizes))])
        for at, n in enumerate(sizes)
    ]


def _source_part(name: str, src: Tensor, index: Tensor) -> Tensor:
    """The part of the source that ``index`` reads: its first elements along each axis."""
    if not is_tensor(src) or not spec_of(src).shape:
        return src
    shape, sizes = spec_of(src).shape, spec_of(index).shape
    if len(shape) != len(sizes) or any(n > own for n, own in zip(sizes, shape)):
        raise ShapeError(f"{name}: the index {spec_of(index)} is longer than the source {spec_of(src)}")
    return src if shape == sizes else basic_index(src, tuple((0, n, 1) for n in sizes))


@composite(
    "gather(Tensor self, int axis, Tensor index) -> Tensor",
    doc=make_docstring(
        "The elements at positions along one axis; unlike for `take_along_axis`, axes do not broadcast.",
        f"""Args:
    self: any tensor.
    axis: the axis along which the values of `index` are positions.
    {_INDEX}. It has as many axes as `self`, and is not longer along the others.

Returns:
    A new tensor of the shape of `index`.

Raises:
    ShapeError: the shapes do not fit.
    OutOfBoundsError: a position is out of bounds.""",
        "td.gather(td.asarray([[1, 2], [3, 4]]), 1, td.asarray([[1], [0]])) -> [[2], [3]]",
    ),
    reference="references.torch_functions.gather",
    samples="samples.along_axis.gather_samples",
    errors="samples.along_axis.gather_errors",
    dtypes=ALL,
)
def gather(self: Tensor, axis: int, index: Tensor) -> Tensor:
    return index_at(self, _positions("gather", self, axis, index))


@composite(
    "scatter(Tensor self, int axis, Tensor index, Tensor src, *, str? reduce=None) -> Tensor",
    doc=make_docstring(
        "A copy of the tensor with values written to positions along one axis.",
        _SCATTER_ARGS.format(
            more='\n    reduce: None; or `"add"` or `"multiply"`, to combine the values with those of `self`.'
        ),
        "td.scatter(td.zeros(3), 0, td.asarray([2, 0]), td.asarray([5.0, 6.0])) -> [6.0, 0.0, 5.0]",
    ),
    reference="references.torch_functions.scatter",
    samples="samples.along_axis.scatter_samples",
    errors="samples.along_axis.scatter_errors",
    dtypes=ALL,
    spellings={"value": "src"},
    inplace="set",
)
def scatter(self: Tensor, axis: int, index: Tensor, src: Tensor, *, reduce: str | None) -> Tensor:
    positions, part = _positions("scatter", self, axis, index), _source_part("scatter", src, index)
    if reduce == "multiply":
        return index_reduce(self, positions, part, reduce="multiply")
    if reduce not in (None, "add"):
        raise ValueArgumentError(f"scatter: reduce is None, 'add' or 'multiply', not {reduce!r}")
    return index_put(self, positions, part, accumulate=reduce == "add")


@composite(
    "scatter_add(Tensor self, int axis, Tensor index, Tensor src) -> Tensor",
    doc=make_docstring(
        "A copy of the tensor with values added at positions along one axis; a position that repeats gets all.",
        _SCATTER_ARGS.format(more=""),
        "td.scatter_add(td.zeros(2), 0, td.asarray([1, 1]), td.asarray([5.0, 6.0])) -> [0.0, 11.0]",
    ),
    reference="references.torch_functions.scatter_add",
    samples="samples.along_axis.scatter_samples",
    errors="samples.along_axis.scatter_errors",
    dtypes=NUMERIC,
    inplace="add",
)
def scatter_add(self: Tensor, axis: int, index: Tensor, src: Tensor) -> Tensor:
    part = _source_part("scatter_add", src, index)
    return index_put(self, _positions("scatter_add", self, axis, index), part, accumulate=True)


_REDUCTIONS = {"sum": 0, "mean": 0, "prod": 1, "amax": None, "amin": None}


@composite(
    "scatter_reduce(Tensor self, int axis, Tensor index, Tensor src, str reduce, *, bool include_self=True)"
    " -> Tensor",
    doc=make_docstring(
        "A copy of the tensor with elements at positions along one axis combined with all values for each.",
        _SCATTER_ARGS.format(
            more="""
    reduce: `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`.
    include_self: whether the elements of `self` take part where values are written."""
        ),
        "td.scatter_reduce(td.ones(2), 0, td.asarray([1, 1]), td.asarray([5.0, 6.0]), 'amax') -> [1.0, 6.0]",
    ),
    reference="references.torch_functions.scatter_reduce",
    samples="samples.along_axis.scatter_reduce_samples",
    errors="samples.along_axis.scatter_reduce_errors",
    dtypes=tuple(dtype for dtype in NUMERIC if dtype.kind != "c"),
    inplace=True,
    autocast="float32",
)
def scatter_reduce(
    self: Tensor, axis: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool
) -> Tensor:
    if reduce not in _REDUCTIONS:
        raise ValueArgumentError(f"scatter_reduce: reduce is one of {', '.join(_REDUCTIONS)}, not {reduce!r}")
    positions = _positions("scatter_reduce", self, axis, index)
    part, start = _source_part("scatter_reduce", src, index), _REDUCTIONS[reduce]
    base = self if include_self else index_put(self, positions, part if start is None else start)
    if start is None:
        return index_reduce(base, positions, part, reduce="maximum" if reduce == "amax" else "minimum")
    if reduce == "prod":
        return index_reduce(base, positions, part, reduce="multiply")
    total = index_put(base, positions, part, accumulate=True)
    if reduce == "sum":
        return total
    spec = spec_of(self)
    ones = cast(
        broadcast_to(reshape(arange(1, 2, device=spec.device), (1,) * spec.ndim), spec.shape), spec.dtype
    )
    count = index_put(ones if include_self else ones * 0, positions, 1, accumulate=True)
    count = maximum(count, 1)
    return total / count if spec.dtype.is_inexact else floor_divide(total, count)


# -- whole slices ------------------------------------------------------------------------------------------------------
def _check_vector(name: str, index: Tensor) -> Tensor:
    """A vector of positions; a 0-d tensor counts as one."""
    if spec_of(index).ndim > 1:
        raise ShapeError(f"{name}: the index has one axis, not shape {spec_of(index).shape}")
    return index if spec_of(index).ndim else reshape(index, (1,))


@composite(
    "index_select(Tensor self, int axis, Tensor index) -> Tensor",
    doc=make_docstring(
        "The slices at positions along an axis.",
        _SELECT_ARGS.format(more=""),
        "td.index_select(td.asarray([[1, 2], [3, 4]]), 1, td.asarray([1])) -> [[2], [4]]",
    ),
    reference="references.torch_functions.index_select",
    samples="samples.along_axis.select_samples",
    errors="samples.along_axis.select_errors",
    dtypes=ALL,
)
def index_select(self: Tensor, axis: int, index: Tensor) -> Tensor:
    along = normalize_axis("index_select", axis, spec_of(self).ndim)
    return index_at(self, [_check_vector("index_select", index)], along)


def _check_source(name: str, self: Tensor, axis: int, index: Tensor, source: Tensor) -> int:
    """The axis; raises ShapeError if the source is not shaped like the selected slices."""
    shape, along = spec_of(self).shape, normalize_axis(name, axis, spec_of(self).ndim)
    expected = (*shape[:along], spec_of(index).shape[0], *shape[along + 1 :])
    if spec_of(source).shape != expected:
        raise ShapeError(f"{name}: the source has shape {spec_of(source).shape}, and must have {expected}")
    return along


@composite(
    "index_add(Tensor self, int axis, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    doc=make_docstring(
        "A copy of the tensor with slices added at positions along an axis; a position that repeats gets all.",
        _SELECT_ARGS.format(
            more="\n    source: the slices, shaped like those selected.\n    alpha: a factor of `source`."
        ),
        "td.index_add(td.zeros(2), 0, td.asarray([1, 1]), td.asarray([5.0, 6.0])) -> [0.0, 11.0]",
    ),
    reference="references.torch_functions.index_add",
    samples="samples.along_axis.index_write_samples",
    errors="samples.along_axis.index_write_errors",
    dtypes=NUMERIC,
    inplace="add",
)
def index_add(self: Tensor, axis: int, index: Tensor, source: Tensor, *, alpha: Number) -> Tensor:
    index = _check_vector("index_add", index)
    along = _check_source("index_add", self, axis, index, source)
    return index_put(self, [index], source if is_known(alpha, 1) else source * alpha, along, accumulate=True)


@composite(
    "index_copy(Tensor self, int axis, Tensor index, Tensor source) -> Tensor",
    doc=make_docstring(
        "A copy of the tensor with slices written to positions along an axis.",
        _SELECT_ARGS.format(more="\n    source: the slices, shaped like those selected."),
        "td.index_copy(td.zeros(2), 0, td.asarray([1]), td.asarray([5.0])) -> [0.0, 5.0]",
    ),
    reference="references.torch_functions.index_copy",
    samples="samples.along_axis.index_write_samples",
    errors="samples.along_axis.index_write_errors",
    dtypes=ALL,
    inplace="set",
)
def index_copy(self: Tensor, axis: int, index: Tensor, source: Tensor) -> Tensor:
    index = _check_vector("index_copy", index)
    return index_put(self, [index], source, _check_source("index_copy", self, axis, index, source))


@composite(
    "index_fill(Tensor self, int axis, Tensor index, Tensor value) -> Tensor",
    doc=make_docstring(
        "A copy of the tensor with one value written to the slices at positions along an axis.",
        _SELECT_ARGS.format(more="\n    value: a number, or a tensor without axes."),
        "td.index_fill(td.zeros(2), 0, td.asarray([1]), 5.0) -> [0.0, 5.0]",
    ),
    reference="references.torch_functions.index_fill",
    samples="samples.along_axis.index_fill_samples",
    errors="samples.along_axis.index_fill_errors",
    dtypes=ALL,
    inplace="set",
)
def index_fill(self: Tensor, axis: int, index: Tensor, value: Tensor) -> Tensor:
    if is_tensor(value) and spec_of(value).shape:
        raise ShapeError(f"index_fill: the value has no axes, and {spec_of(value)} has")
    along = normalize_axis("index_fill", axis, spec_of(self).ndim)
    return index_put(self, [_check_vector("index_fill", index)], value, along)


# -- masks -------------------------------------------------------------------------------------------------------------
@composite(
    "masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor",
    doc=make_docstring(
        "A copy of the tensor with one value where a mask is true.",
        """Args:
    self: any tensor.
    mask: a bool tensor; the shapes broadcast.
    value: a number, or a tensor without axes.

Returns:
    A new tensor of the broadcast shape and the dtype of `self`.

Raises:
    DTypeError: the mask is not bool, or the value is not of the dtype's kind.
    ShapeError: the shapes do not broadcast, or the value has axes.""",
        "td.masked_fill(td.ones(2), td.asarray([True, False]), 5.0) -> [5.0, 1.0]",
    ),
    reference="references.torch_functions.masked_fill",
    samples="samples.along_axis.masked_fill_samples",
    errors="samples.along_axis.masked_fill_errors",
    dtypes=ALL,
    inplace=True,
)
def masked_fill(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    if is_tensor(value) and spec_of(value).shape:
        raise ShapeError(f"masked_fill: the value has no axes, and {spec_of(value)} has")
    dtype = spec_of(self).dtype
    result = where(mask, cast(value, dtype) if is_tensor(value) else value, self)
    if spec_of(result).dtype is not dtype:
        raise DTypeError(f"masked_fill: {value} cannot be written into {spec_of(self)}")
    return result


@composite(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    doc=make_docstring(
        "A copy of the tensor with the elements of a source, in order, where a mask is true.",
        """Args:
    self: any tensor.
    mask: a bool tensor; the shapes broadcast.
    source: a tensor of the same dtype with at least as many elements as the mask has true ones.

Returns:
    A new tensor of the broadcast shape and the dtype of `self`.

Raises:
    DTypeError: the mask is not bool, or the dtypes differ.
    OutOfBoundsError: the source has too few elements.""",
        "td.masked_scatter(td.zeros(3), td.asarray([True, False, True]), td.ones(2)) -> [1.0, 0.0, 1.0]",
    ),
    reference="references.torch_functions.masked_scatter",
    samples="samples.along_axis.masked_scatter_samples",
    errors="samples.along_axis.masked_scatter_errors",
    dtypes=ALL,
    inplace=True,
    promotes=True,
)
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    if spec_of(source).dtype is not spec_of(self).dtype:
        raise DTypeError(
            f"masked_scatter: the source {spec_of(source)} differs in dtype from {spec_of(self)}"
        )
    shape = broadcast_shapes("masked_scatter", spec_of(self).shape, spec_of(mask).shape)
    mask = broadcast_to(mask, shape)
    if not spec_of(mask).size:
        return broadcast_to(self, shape)
    order = maximum(cumsum(reshape(mask, (-1,)), 0) - 1, 0)
    values = index_at(reshape(source, (-1,)), [order])
    return where(mask, reshape(values, shape), self)
