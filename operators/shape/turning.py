"""rot90, fliplr, flipud, rollaxis and diagflat; ``transpose.int`` and ``transpose.ints``, PyTorch's and loose axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import OutOfBoundsError, ShapeError, ValueArgumentError
from ...registry.dtypes import ALL
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from .diagonals import diag
from .rearrange import flatten, flip, moveaxis, swapaxes
from .views import permute

if TYPE_CHECKING:
    from ...registry.types import Tensor


@composite(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    doc=make_docstring(
        "The tensor with two axes exchanged, as in PyTorch: the keywords ``dim0`` and ``dim1`` select it.",
        """Args:
    self: a tensor with these axes.
    dim0, dim1: the two axes.

Returns:
    A view.

Raises:
    OutOfBoundsError: there is no such axis.""",
        "td.transpose(td.asarray([[1, 2], [3, 4]]), dim0=0, dim1=1) -> [[1, 3], [2, 4]]",
    ),
    reference="numpy.swapaxes",
    samples=("samples.shape.rearranged_samples", (3, 4), (0, 1), (1, 1), (-1, 0)),
    errors=lambda: [ErrorInput((TensorSample((3, 4)), 0, 2), IndexError, "out of bounds")],
    dtypes=ALL,
)
def transpose_int(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return swapaxes(self, dim0, dim1)


@composite(
    "transpose.ints(Tensor(a) self, int[] axes) -> Tensor(a)",
    doc=make_docstring(
        "The tensor with its axes in an order given by several arguments, or with two axes exchanged.",
        """Args:
    self: any tensor.
    axes: the axis of ``self`` that becomes each axis of the result, as in NumPy. Two axes of a tensor that has not two
        axes are exchanged, as in PyTorch.

Returns:
    A view.

Raises:
    OutOfBoundsError: there is no such axis.
    ValueArgumentError: the axes are not a permutation.""",
        "td.asarray([[[1], [2]]]).transpose(1, 2) -> [[[1, 2]]]",
    ),
    reference=lambda x, axes: np.swapaxes(x, *axes) if x.ndim != 2 == len(axes) else np.transpose(x, axes),
    samples=lambda dtype: [
        SampleInput((TensorSample(shape), axes))
        for shape, axes in (((2, 3, 4), (1, -1)), ((2, 3, 4), (2, 0, 1)), ((2, 3), (0, 1)), ((3,), (0, 0)))
    ],
    errors=lambda: [
        ErrorInput((TensorSample((3, 4)), (0, 2)), IndexError, "out of bounds"),
        ErrorInput((TensorSample((3, 4)), (1, 1)), ValueError, "permutation"),
        ErrorInput((TensorSample((3, 4, 5)), (1, 3)), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    variadic=True,
)
def transpose_ints(self: Tensor, axes: tuple[int, ...]) -> Tensor:
    is_exchange = len(axes) == 2 != len(spec_of(self).shape)
    return swapaxes(self, *axes) if is_exchange else permute(self, axes)


@composite(
    "rot90(Tensor(a) self, int k=1, int[] axes=[0, 1]) -> Tensor(a)",
    doc=make_docstring(
        "The tensor turned by 90 degrees in the plane of two axes, from the first to the second.",
        """Args:
    self: a tensor of at least two axes.
    k: how often.
    axes: the two axes.

Returns:
    A view.

Raises:
    ValueArgumentError: not two different axes.
    OutOfBoundsError: there is no such axis.""",
        "td.rot90(td.asarray([[1, 2], [3, 4]])) -> [[2, 4], [1, 3]]",
    ),
    reference="numpy.rot90",
    samples="samples.stacking.rot90_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2, 2)), 1, (0, 0)), ValueError, "two different axes"),
        ErrorInput((TensorSample((2,)),), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
)
def rot90(self: Tensor, k: int, axes: tuple[int, ...]) -> Tensor:
    rank = len(spec_of(self).shape)
    plane = [normalize_axis("rot90", axis, rank) for axis in axes]
    if len(set(plane)) != 2 or len(plane) != 2:
        raise ValueArgumentError(f"rot90: needs two different axes, not {tuple(axes)}")
    first, second = plane
    if k % 4 == 0:
        return self
    if k % 4 == 2:
        return flip(self, (first, second))
    if k % 4 == 1:
        return swapaxes(flip(self, (second,)), first, second)
    return flip(swapaxes(self, first, second), (second,))


def _flip_axis(name: str, self: Tensor, axis: int) -> Tensor:
    rank = len(spec_of(self).shape)
    if rank <= axis:
        raise ShapeError(f"{name}: a tensor of {rank} axes; needs at least {axis + 1} axes")
    return flip(self, (axis,))


_FLIP_ARGS = """Args:
    self: a tensor that has the axis.

Returns:
    A view.

Raises:
    ShapeError: the tensor does not have the axis."""


@composite(
    "fliplr(Tensor(a) self) -> Tensor(a)",
    doc=make_docstring(
        "The tensor reversed along the second axis.",
        _FLIP_ARGS,
        "td.fliplr(td.asarray([[1, 2], [3, 4]])) -> [[2, 1], [4, 3]]",
    ),
    reference="numpy.fliplr",
    samples=lambda dtype: [SampleInput((TensorSample((3, 4), layout=layout),)) for layout in LAYOUTS],
    errors=lambda: [ErrorInput((TensorSample((2,)),), ValueError, "axes")],
    dtypes=ALL,
)
def fliplr(self: Tensor) -> Tensor:
    return _flip_axis("fliplr", self, 1)


@composite(
    "flipud(Tensor(a) self) -> Tensor(a)",
    doc=make_docstring(
        "The tensor reversed along the first axis.",
        _FLIP_ARGS,
        "td.flipud(td.asarray([[1, 2], [3, 4]])) -> [[3, 4], [1, 2]]",
    ),
    reference="numpy.flipud",
    samples=lambda dtype: [SampleInput((TensorSample((3, 4), layout=layout),)) for layout in LAYOUTS],
    errors=lambda: [ErrorInput((TensorSample(()),), ValueError, "axes")],
    dtypes=ALL,
)
def flipud(self: Tensor) -> Tensor:
    return _flip_axis("flipud", self, 0)


@composite(
    "rollaxis(Tensor(a) self, int axis, int start=0) -> Tensor(a)",
    doc=make_docstring(
        "The tensor with one axis moved in front of another; `moveaxis` is easier to read.",
        """Args:
    self: a tensor that has the axis.
    axis: the axis to move.
    start: the axis in front of which it goes; the number of axes: the end.

Returns:
    A view.

Raises:
    OutOfBoundsError: there is no such axis.""",
        "td.rollaxis(td.asarray([[1, 2]]), 1) -> [[1], [2]]",
    ),
    reference="numpy.rollaxis",
    samples=lambda dtype: [
        SampleInput((TensorSample((2, 3, 4)), axis, start))
        for axis, start in ((0, 3), (1, 0), (2, 1), (-1, -2), (1, 1))
    ],
    errors=lambda: [
        ErrorInput((TensorSample((2,)), 1), IndexError, "out of bounds"),
        ErrorInput((TensorSample((2,)), 0, 2), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    method=False,
)
def rollaxis(self: Tensor, axis: int, start: int) -> Tensor:
    rank = len(spec_of(self).shape)
    source = normalize_axis("rollaxis", axis, rank)
    if not -rank <= start <= rank:
        raise OutOfBoundsError(f"rollaxis: start {start} is out of bounds for an array of {rank} dimensions")
    target = start + rank if start < 0 else start
    return moveaxis(self, source, target - (source < target))


@composite(
    "diagflat(Tensor self, int k=0) -> Tensor",
    doc=make_docstring(
        "A square matrix with the elements, in order, on a diagonal.",
        """Args:
    self: any tensor.
    k: the offset of the diagonal; positive: above the main one.

Returns:
    A new tensor of two axes.""",
        "td.diagflat(td.asarray([[1], [2]])) -> [[1, 0], [0, 2]]",
    ),
    reference="numpy.diagflat",
    samples=lambda dtype: [
        SampleInput((TensorSample((2, 2)),)),
        SampleInput((TensorSample((3,)), -1)),
        SampleInput((TensorSample(()), 2)),
    ],
    dtypes=ALL,
    spellings={"offset": "k"},
)
def diagflat(self: Tensor, k: int) -> Tensor:
    return diag(flatten(self), k)
