"""diagonal, trace and diag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import ALL
from ..creation.full import zeros
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axes, spec_of
from ..elementwise.casting import clone
from ..indexing.slicing import basic_index, basic_put
from ..reductions.folds import sum
from .rearrange import moveaxis
from .views import reshape

if TYPE_CHECKING:
    from ...registry.types import Tensor

_AXES = """    offset: the diagonal: 0 is the main one, positive offsets are above it.
        axis1, axis2: the axes of the rows and of the columns.
"""
_RAISES = """
    Raises:
        OutOfBoundsError: there is no such axis.
        ShapeError: the two axes are the same.
"""


@composite(
    "diagonal(Tensor(a) self, int offset=0, int axis1=0, int axis2=1) -> Tensor(a)",
    doc=f"""A diagonal of each matrix in a stack.

    Args:
        self: a tensor of at least two axes.
    {_AXES}
    Returns:
        A tensor without the two axes, with the diagonal as the last axis; a view if the strides allow it.
{_RAISES}
    >>> td.diagonal(td.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """,
    reference="numpy.diagonal",
    samples="samples.shape.diagonals_samples",
    errors="samples.shape.diagonals_errors",
    dtypes=ALL,
)
def diagonal(self: Tensor, offset: int, axis1: int, axis2: int) -> Tensor:
    normalize_axes("diagonal", (axis1, axis2), len(spec_of(self).shape))
    matrices = moveaxis(self, (axis1, axis2), (-2, -1))
    *lead, rows, columns = matrices.shape
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    start = max(offset, 0) + max(-offset, 0) * columns if count else 0
    plan = (*((0, n, 1) for n in lead), (start, count, columns + 1))
    return basic_index(reshape(matrices, (*lead, rows * columns)), plan)


@composite(
    "trace(Tensor self, int offset=0, int axis1=0, int axis2=1) -> Tensor",
    doc=f"""The sum along a diagonal of each matrix in a stack.

    Args:
        self: a tensor of at least two axes.
    {_AXES}
    Returns:
        A tensor without the two axes; small integers and bool are summed in int64.
{_RAISES}
    >>> td.trace(td.asarray([[1, 2], [3, 4]])).item()
    5
    """,
    reference="numpy.trace",
    samples="samples.shape.diagonals_samples",
    errors="samples.shape.diagonals_errors",
    dtypes=ALL,
    tolerance={"float16": 5e-3, "bfloat16": 4e-2},
    autocast="float32",
)
def trace(self: Tensor, offset: int, axis1: int, axis2: int) -> Tensor:
    return sum(diagonal(self, offset, axis1, axis2), -1)


@composite(
    "diag(Tensor self, int k=0) -> Tensor",
    doc="""The square matrix with a vector on a diagonal, or the diagonal of a matrix.

    Args:
        self: a vector or a matrix.
        k: the diagonal: 0 is the main one, positive offsets are above it.

    Returns:
        A matrix for a vector, a vector for a matrix.

    Raises:
        ShapeError: the tensor does not have one or two axes.

    >>> td.diag(td.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """,
    reference="numpy.diag",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout), 1)) for layout in LAYOUTS),
        *(SampleInput((TensorSample((3,)), k)) for k in (0, 2, -1)),
        SampleInput((TensorSample((0,)),)),
        SampleInput((TensorSample((2, 2)), -1)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample(()),), ValueError, "one axis or two"),
        ErrorInput((TensorSample((2, 2, 2)),), ValueError, "one axis or two"),
    ],
    dtypes=ALL,
)
def diag(self: Tensor, k: int) -> Tensor:
    spec = spec_of(self)
    if len(spec.shape) not in (1, 2):
        raise ShapeError(
            f"diag: needs one axis or two, not shape {spec.shape}; use diagonal for stacks of matrices"
        )
    if len(spec.shape) == 2:
        return clone(diagonal(self, k))
    count = spec.shape[0]
    side = count + abs(k)
    empty = zeros((side * side,), dtype=spec.dtype, device=spec.device)
    start = k if k >= 0 else -k * side
    return reshape(basic_put(empty, self, ((start if count else 0, count, side + 1),)), (side, side))
