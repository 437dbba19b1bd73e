"""Parts of a tensor along an axis, and the differences of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from .. import lazy
from ..errors import ArgumentError, ValueArgumentError
from ..registry.dtypes import ALL
from .comparison import logical_xor
from .declare import Bad, Draw, Sample
from .kinds import LAYOUTS, composite
from .rearrange import whole
from .rules import normalize_axis, spec_of
from .slicing import basic_index

references = lazy.Functions("operators.references_arrays")


def part(x: Any, axis: int, start: int, stop: int) -> Any:
    """The view of the places from ``start`` to ``stop`` along an axis."""
    plan = whole(x.shape)
    plan[axis] = (start, stop - start, 1) if stop > start else (0, 0, 1)
    return basic_index(x, tuple(plan))


def _cuts(sections: Any, size: int) -> list[int]:
    """Where the parts end, the last one not counted."""
    if type(sections) is int:
        if sections < 1 or size % sections:
            raise ValueArgumentError(
                f"split: an axis of length {size} does not fall into {sections} equal parts; "
                "say where to cut, as in split(x, [2, 5])"
            )
        return list(accumulate([size // sections] * (sections - 1)))
    if not isinstance(sections, Sequence) or not all(type(cut) is int for cut in sections):
        raise ArgumentError(f"split: sections are a number of parts or a list of places, not {sections!r}")
    return [min(max(cut + size if cut < 0 else cut, 0), size) for cut in sections]


@composite(
    "split(Tensor(a) self, Any sections, int axis=0) -> Tensor(a)[]",
    doc="""The tensor in parts along an axis, as views.

    Args:
        self: a tensor of at least one axis.
        sections: into how many equal parts, or a list of the places to cut at.
        axis: the axis that is cut.

    Returns:
        A tuple of tensors.

    Raises:
        ValueArgumentError: the axis does not fall into so many equal parts.
        ArgumentError: ``sections`` are neither an int nor ints.
        OutOfBoundsError: there is no such axis.

    >>> [x.tolist() for x in td.split(td.arange(4), [1, 3])]
    [[0], [1, 2], [3]]
    """,
    reference=references.split,
    samples=lambda dtype: [
        *(Sample((Draw((4, 3), layout=layout), 2)) for layout in LAYOUTS),
        Sample((Draw((2, 5)), (1, -1), 1)),
        Sample((Draw((3,)), (2, 9))),
        Sample((Draw((0, 2)), 1, -1)),
    ],
    errors=lambda: [
        Bad((Draw((3,)), 2), ValueError, "equal parts"),
        Bad((Draw((3,)), 0), ValueError, "equal parts"),
        Bad((Draw((3,)), "ab"), TypeError, "sections"),
        Bad((Draw((3,)), 1, 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
)
def split(self: Any, sections: Any, axis: int) -> tuple[Any, ...]:
    shape = spec_of(self).shape
    along = normalize_axis("split", axis, len(shape))
    ends = [0, *_cuts(sections, shape[along]), shape[along]]
    return tuple(part(self, along, start, stop) for start, stop in pairwise(ends))


@composite(
    "diff(Tensor self, *, int n=1, int axis=-1) -> Tensor",
    doc="""The differences of neighbours along an axis, ``n`` times.

    Args:
        self: a tensor of at least one axis; of bools, whether neighbours differ.
        n: how often.
        axis: the axis, which gets shorter by ``n``.

    Returns:
        A new tensor of the same dtype.

    Raises:
        ValueArgumentError: ``n`` is negative.
        OutOfBoundsError: there is no such axis.

    >>> td.diff(td.asarray([1, 4, 9])).tolist()
    [3, 5]
    """,
    reference="numpy.diff",
    samples=lambda dtype: [
        *(Sample((Draw((3, 4), layout=layout),)) for layout in LAYOUTS),
        Sample((Draw((4, 3)),), {"n": 2, "axis": 0}),
        Sample((Draw((2,)),), {"n": 3}),
        Sample((Draw((2,)),), {"n": 0}),
    ],
    errors=lambda: [
        Bad((Draw((3,)),), ValueError, "negative", {"n": -1}),
        Bad((Draw(()),), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    tolerance={"float16": 1e-2, "bfloat16": 8e-2},
)
def diff(self: Any, *, n: int, axis: int) -> Any:
    if n < 0:
        raise ValueArgumentError(f"diff: a negative number of times, {n}")
    along = normalize_axis("diff", axis, len(spec_of(self).shape))
    for _ in range(n):
        size = self.shape[along]
        late, early = part(self, along, 1, size), part(self, along, 0, size - 1)
        self = logical_xor(late, early) if spec_of(self).dtype.kind == "b" else late - early
    return self
