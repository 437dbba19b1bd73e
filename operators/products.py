"""Products of all pairs of elements, and of vectors in space."""

from __future__ import annotations

from itertools import chain
from typing import Any

from .. import lazy
from ..errors import ShapeError
from ..registry.dtypes import ALL, NUMERIC
from .arithmetic import mul
from .declare import Bad, Draw, Sample
from .joining import stack
from .kinds import LAYOUTS, composite
from .rearrange import moveaxis
from .rules import normalize_axis, spec_of
from .views import reshape

references = lazy.Functions("operators.references_arrays")


@composite(
    "kron(Tensor self, Tensor other) -> Tensor",
    doc="""The Kronecker product: each element of ``self`` times the whole of ``other``, laid out in blocks.

    Args:
        self, other: tensors; the one with fewer axes gets new ones of length 1 in front.

    Returns:
        A tensor of the promoted dtype, whose sizes are the products of the sizes.

    >>> td.kron(td.asarray([1, 10]), td.asarray([1, 2])).tolist()
    [1, 2, 10, 20]
    """,
    reference=references.kron,
    samples=lambda dtype: [
        *(Sample((Draw((2, 3), layout=layout), Draw((2, 2)))) for layout in LAYOUTS),
        Sample((Draw((3,)), Draw((2, 2)))),
        Sample((Draw((2, 1, 2)), Draw((2,)))),
        Sample((Draw(()), Draw((3,)))),
        Sample((Draw((0,)), Draw((3,)))),
    ],
    dtypes=ALL,
)
def kron(self: Any, other: Any) -> Any:
    one, two = spec_of(self).shape, spec_of(other).shape
    rank = max(len(one), len(two))
    one, two = (1,) * (rank - len(one)) + one, (1,) * (rank - len(two)) + two
    apart = reshape(self, tuple(chain(*((size, 1) for size in one))))
    found = mul(apart, reshape(other, tuple(chain(*((1, size) for size in two)))))
    return reshape(found, tuple(a * b for a, b in zip(one, two)))


@composite(
    "cross(Tensor self, Tensor other, *, int axis=-1) -> Tensor",
    doc="""The cross products of vectors in space.

    Args:
        self, other: tensors with size 3 along the axis; the other axes broadcast.
        axis: the axis of the three coordinates; negative: counted from the last.

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
        Sample((Draw((3,)), Draw((3,)))),
        *(Sample((Draw((2, 3), layout=layout), Draw((3,)))) for layout in LAYOUTS),
        Sample((Draw((3, 2)), Draw((3, 2))), {"axis": 0}),
    ],
    errors=lambda: [
        Bad((Draw((2,)), Draw((2,))), ValueError, "size 3"),
        Bad((Draw((2, 3)), Draw((3, 3))), ValueError, "broadcast"),
        Bad((Draw((3,)), Draw((3,))), IndexError, "out of bounds", {"axis": 1}),
    ],
    dtypes=NUMERIC,
    tolerance={"float16": 2e-2, "bfloat16": 1e-1},
)
def cross(self: Any, other: Any, *, axis: int) -> Any:
    parts = []
    for x in (self, other):
        shape = spec_of(x).shape
        along = normalize_axis("cross", axis, len(shape))
        if shape[along] != 3:
            raise ShapeError(f"cross: needs size 3 along axis {axis}, not shape {shape}")
        last = moveaxis(x, along, -1)
        parts.append([last[..., place] for place in range(3)])
    (a, b, c), (d, e, f) = parts
    return moveaxis(stack([b * f - c * e, c * d - a * f, a * e - b * d], -1), -1, axis)
