"""The Kronecker product and the cross product."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import ALL, NUMERIC
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from ..elementwise.arithmetic import mul
from ..shape.joining import stack
from ..shape.rearrange import moveaxis
from ..shape.views import reshape

if TYPE_CHECKING:
    from ...registry.types import Tensor


@composite(
    "kron(Tensor self, Tensor other) -> Tensor",
    doc="""The Kronecker product: a block of ``other`` times each element of ``self``.

    Args:
        self, other: tensors; leading axes of length 1 are added to the one with fewer axes.

    Returns:
        A tensor of the promoted dtype, whose sizes are the products of the sizes.

    >>> td.kron(td.asarray([1, 10]), td.asarray([1, 2])).tolist()
    [1, 2, 10, 20]
    """,
    reference="references.arrays.kron",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((2, 3), layout=layout), TensorSample((2, 2)))) for layout in LAYOUTS),
        SampleInput((TensorSample((3,)), TensorSample((2, 2)))),
        SampleInput((TensorSample((2, 1, 2)), TensorSample((2,)))),
        SampleInput((TensorSample(()), TensorSample((3,)))),
        SampleInput((TensorSample((0,)), TensorSample((3,)))),
    ],
    dtypes=ALL,
    promotes=True,
)
def kron(self: Tensor, other: Tensor) -> Tensor:
    one, two = spec_of(self).shape, spec_of(other).shape
    rank = max(len(one), len(two))
    one, two = (1,) * (rank - len(one)) + one, (1,) * (rank - len(two)) + two
    spread = reshape(self, tuple(chain(*((size, 1) for size in one))))
    result = mul(spread, reshape(other, tuple(chain(*((1, size) for size in two)))))
    return reshape(result, tuple(a * b for a, b in zip(one, two)))


@composite(
    "cross(Tensor self, Tensor other, *, int axis=-1) -> Tensor",
    doc="""The cross products of three-dimensional vectors.

    Args:
        self, other: tensors with size 3 along the axis; the other axes broadcast.
        axis: the axis of the three coordinates; negative axes count from the last.

    Returns:
        A tensor of the broadcast shape and the promoted dtype.

    Raises:
        ShapeError: a size along the axis is not 3, or the shapes do not broadcast.
        OutOfBoundsError: an operand has no such axis.

    >>> td.cross(td.asarray([1, 0, 0]), td.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """,
    reference="numpy.cross",
    samples=lambda dtype: [
        SampleInput((TensorSample((3,)), TensorSample((3,)))),
        *(SampleInput((TensorSample((2, 3), layout=layout), TensorSample((3,)))) for layout in LAYOUTS),
        SampleInput((TensorSample((3, 2)), TensorSample((3, 2))), {"axis": 0}),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((2,)), TensorSample((2,))), ValueError, "size 3"),
        ErrorInput((TensorSample((2, 3)), TensorSample((3, 3))), ValueError, "broadcast"),
        ErrorInput((TensorSample((3,)), TensorSample((3,))), IndexError, "out of bounds", {"axis": 1}),
    ],
    dtypes=NUMERIC,
    tolerance={"float16": 2e-2, "bfloat16": 1e-1},
)
def cross(self: Tensor, other: Tensor, *, axis: int) -> Tensor:
    parts = []
    for x in (self, other):
        shape = spec_of(x).shape
        along = normalize_axis("cross", axis, len(shape))
        if shape[along] != 3:
            raise ShapeError(f"cross: needs size 3 along axis {axis}, not shape {shape}")
        last = moveaxis(x, along, -1)
        parts.append([last[..., index] for index in range(3)])
    (a, b, c), (d, e, f) = parts
    return moveaxis(stack([b * f - c * e, c * d - a * f, a * e - b * d], -1), -1, axis)
