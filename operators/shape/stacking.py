"""vstack, hstack, dstack, column_stack, and atleast_1d to atleast_3d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ValueArgumentError
from ...registry.dtypes import ALL
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import spec_of
from .joining import concat, numbers_to_tensors
from .rearrange import expand_dims, transpose
from .views import reshape

if TYPE_CHECKING:
    from ...registry.types import Tensor

_ARGS = """Args:
    tensors: a list or tuple of tensors whose shapes agree except along the axis.

Returns:
    A new tensor of the promoted dtype.

Raises:
    ValueArgumentError: the list is empty.
    ShapeError: the shapes differ in another axis."""
_ERRORS = "samples.stacking.stack_errors"


def _check_stacked(name: str, tensors: Sequence[Any]) -> Sequence[Any]:
    if not tensors:
        raise ValueArgumentError(f"{name}: needs at least one tensor")
    return numbers_to_tensors(tensors)


@composite(
    "vstack(Tensor[] tensors) -> Tensor",
    doc=make_docstring(
        "Tensors joined as rows: along the first axis, 1-d tensors as matrices of one row.",
        _ARGS,
        "td.vstack([td.arange(2), td.arange(2)]) -> [[0, 1], [0, 1]]",
    ),
    reference="numpy.vstack",
    samples=("samples.stacking.stack_samples", 0),
    errors=_ERRORS,
    dtypes=ALL,
    method=False,
    aliases=("row_stack",),
)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    return concat([atleast_2d(one) for one in _check_stacked("vstack", tensors)], 0)


@composite(
    "hstack(Tensor[] tensors) -> Tensor",
    doc=make_docstring(
        "Tensors joined as columns: along the second axis, 1-d tensors along their only one.",
        _ARGS,
        "td.hstack([td.arange(2), td.arange(2)]) -> [0, 1, 0, 1]",
    ),
    reference="numpy.hstack",
    samples=("samples.stacking.stack_samples", 1),
    errors=_ERRORS,
    dtypes=ALL,
    method=False,
)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    parts = [atleast_1d(one) for one in _check_stacked("hstack", tensors)]
    return concat(parts, 0 if len(parts[0].shape) == 1 else 1)


@composite(
    "dstack(Tensor[] tensors) -> Tensor",
    doc=make_docstring(
        "Tensors joined along the third axis, after `atleast_3d`.",
        _ARGS,
        "td.dstack([td.arange(2), td.arange(2)]) -> [[[0, 0], [1, 1]]]",
    ),
    reference="numpy.dstack",
    samples=("samples.stacking.stack_samples", 2),
    errors=_ERRORS,
    dtypes=ALL,
    method=False,
)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    return concat([atleast_3d(one) for one in _check_stacked("dstack", tensors)], 2)


@composite(
    "column_stack(Tensor[] tensors) -> Tensor",
    doc=make_docstring(
        "Tensors joined along the second axis, 1-d tensors as columns.",
        _ARGS,
        "td.column_stack([td.arange(2), td.arange(2)]) -> [[0, 0], [1, 1]]",
    ),
    reference="numpy.column_stack",
    samples=("samples.stacking.stack_samples", 1),
    errors=_ERRORS,
    dtypes=ALL,
    method=False,
)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    parts = _check_stacked("column_stack", tensors)
    return concat([transpose(atleast_2d(one)) if len(one.shape) < 2 else one for one in parts], 1)


# -- at least so many axes ---------------------------------------------------------------------------------------------
_AXES_ARGS = """Args:
    self: any tensor.

Returns:
    A view."""


@composite(
    "atleast_1d(Tensor(a) self) -> Tensor(a)",
    doc=make_docstring(
        "The tensor with at least one axis.", _AXES_ARGS, "td.ops.td.atleast_1d(td.asarray(3)) -> [3]"
    ),
    reference="numpy.atleast_1d",
    samples="samples.stacking.rank_samples",
    dtypes=ALL,
    method=False,
)
def atleast_1d(self: Tensor) -> Tensor:
    return expand_dims(self, 0) if not spec_of(self).shape else self


@composite(
    "atleast_2d(Tensor(a) self) -> Tensor(a)",
    doc=make_docstring(
        "The tensor with at least two axes; new axes are in front.",
        _AXES_ARGS,
        "td.ops.td.atleast_2d(td.asarray(3)) -> [[3]]",
    ),
    reference="numpy.atleast_2d",
    samples="samples.stacking.rank_samples",
    dtypes=ALL,
    method=False,
)
def atleast_2d(self: Tensor) -> Tensor:
    shape = spec_of(self).shape
    return self if len(shape) >= 2 else reshape(self, (1, *(shape or (1,))))


@composite(
    "atleast_3d(Tensor(a) self) -> Tensor(a)",
    doc=make_docstring(
        "The tensor with at least three axes: of shape (1, n, 1) for a vector, (m, n, 1) for a matrix.",
        _AXES_ARGS,
        "td.ops.td.atleast_3d(td.asarray([3, 4])) -> [[[3], [4]]]",
    ),
    reference="numpy.atleast_3d",
    samples="samples.stacking.rank_samples",
    dtypes=ALL,
    method=False,
)
def atleast_3d(self: Tensor) -> Tensor:
    shape = spec_of(self).shape
    if len(shape) >= 3:
        return self
    return expand_dims(self, 2) if len(shape) == 2 else reshape(self, (1, *(shape or (1,)), 1))
