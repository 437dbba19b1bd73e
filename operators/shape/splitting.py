"""split and diff; ``split.dim`` is PyTorch's, which takes the sizes of the parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from ...errors import ArgumentError, ValueArgumentError
from ...registry.dtypes import ALL
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from ..elementwise.comparison import logical_xor
from ..indexing.slicing import basic_index
from .joining import concat
from .rearrange import full_plan
from .views import broadcast_to

if TYPE_CHECKING:
    from ...registry.types import Tensor


def slice_axis(x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    """A view of the slice ``start:stop`` along an axis."""
    plan = full_plan(x.shape)
    plan[axis] = (start, stop - start, 1) if stop > start else (0, 0, 1)
    return basic_index(x, tuple(plan))


def _cut_positions(sections: int | Sequence[int], size: int) -> list[int]:
    """The ends of the parts, except the last."""
    if type(sections) is int:
        if sections < 1 or size % sections:
            raise ValueArgumentError(
                f"split: an axis of length {size} cannot be split into {sections} equal parts; "
                "pass the positions to split at, as in split(x, [2, 5])"
            )
        return list(accumulate([size // sections] * (sections - 1)))
    if not isinstance(sections, Sequence) or not all(type(cut) is int for cut in sections):
        raise ArgumentError(f"split: sections must be an int or a list of positions, not {sections!r}")
    return [min(max(cut + size if cut < 0 else cut, 0), size) for cut in sections]


@composite(
    "split(Tensor(a) self, Any sections, int axis=0) -> Tensor(a)[]",
    doc="""The tensor in parts along an axis, as views.

    Args:
        self: a tensor of at least one axis.
        sections: the number of equal parts, or a list of the positions to split at.
        axis: the axis to split.

    Returns:
        A tuple of tensors.

    Raises:
        ValueArgumentError: the axis cannot be split into equal parts.
        ArgumentError: ``sections`` is neither an int nor a list of ints.
        OutOfBoundsError: there is no such axis.

    >>> [x.tolist() for x in td.split(td.arange(4), [1, 3])]
    [[0], [1, 2], [3]]
    """,
    reference="references.arrays.split",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((4, 3), layout=layout), 2)) for layout in LAYOUTS),
        SampleInput((TensorSample((2, 5)), (1, -1), 1)),
        SampleInput((TensorSample((3,)), (2, 9))),
        SampleInput((TensorSample((0, 2)), 1, -1)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((3,)), 2), ValueError, "equal parts"),
        ErrorInput((TensorSample((3,)), 0), ValueError, "equal parts"),
        ErrorInput((TensorSample((3,)), "ab"), TypeError, "sections"),
        ErrorInput((TensorSample((3,)), 1, 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
)
def split(self: Tensor, sections: int | Sequence[int], axis: int) -> tuple[Tensor, ...]:
    shape = spec_of(self).shape
    along = normalize_axis("split", axis, len(shape))
    ends = [0, *_cut_positions(sections, shape[along]), shape[along]]
    return tuple(slice_axis(self, along, start, stop) for start, stop in pairwise(ends))


@composite(
    "split.dim(Tensor(a) self, Any split_size, int dim=0) -> Tensor(a)[]",
    doc="""The tensor in parts of given sizes, as in PyTorch: the keywords ``dim`` and ``split_size`` select it.

    Args:
        self: a tensor of at least one axis.
        split_size: the size of each part but the last, which may be smaller; or a list of the sizes.
        dim: the axis to split.

    Returns:
        A tuple of views.

    Raises:
        ValueArgumentError: the size is not positive, or the sizes do not add up to the length of the axis.
        ArgumentError: ``split_size`` is neither an int nor a list of ints.
        OutOfBoundsError: there is no such axis.

    >>> [x.tolist() for x in td.split(td.arange(5), 2, dim=0)]
    [[0, 1], [2, 3], [4]]
    """,
    reference="references.arrays.split_by_size",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((5, 3), layout=layout), 2)) for layout in LAYOUTS),
        SampleInput((TensorSample((2, 5)), (1, 0, 4), 1)),
        SampleInput((TensorSample((3,)), 9)),
        SampleInput((TensorSample((0, 2)), 1, -1)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((3,)), 0), ValueError, "positive"),
        ErrorInput((TensorSample((3,)), (1, 1)), ValueError, "add up to 3"),
        ErrorInput((TensorSample((3,)), "ab"), TypeError, "split_size"),
        ErrorInput((TensorSample((3,)), 1, 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    spellings={"split_size_or_sections": "split_size", "split_sizes": "split_size"},
)
def split_dim(self: Tensor, split_size: int | Sequence[int], dim: int) -> tuple[Tensor, ...]:
    shape = spec_of(self).shape
    size = shape[normalize_axis("split", dim, len(shape))]
    if isinstance(split_size, int):
        if split_size < 1:
            raise ValueArgumentError(f"split: the size of a part must be positive, not {split_size}")
        return split(self, list(range(split_size, size, split_size)), dim)
    if not isinstance(split_size, Sequence) or not all(isinstance(one, int) for one in split_size):
        raise ArgumentError(f"split: split_size must be an int or a list of sizes, not {split_size!r}")
    ends = list(accumulate(split_size))
    if sum(split_size) != size or min(split_size, default=0) < 0:
        raise ValueArgumentError(
            f"split: the sizes {list(split_size)} must add up to {size}, the length of axis {dim}"
        )
    return split(self, ends[:-1], dim)


@composite(
    "diff(Tensor self, *, int n=1, int axis=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    doc="""The n-th differences of neighbours along an axis.

    Args:
        self: a tensor of at least one axis; for bools the result is whether neighbours differ.
        n: the order of the differences.
        axis: the axis, whose length decreases by ``n``.
        prepend, append: values before and behind those of ``self`` along the axis; a number counts as one.

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
        *(SampleInput((TensorSample((3, 4), layout=layout),)) for layout in LAYOUTS),
        SampleInput((TensorSample((4, 3)),), {"n": 2, "axis": 0}),
        SampleInput((TensorSample((2,)),), {"n": 3}),
        SampleInput((TensorSample((2,)),), {"n": 0}),
        SampleInput(
            (TensorSample((3, 4)),), {"prepend": TensorSample((3, 2)), "append": TensorSample((3, 1))}
        ),
        SampleInput((TensorSample((3, 4)),), {"axis": 0, "append": TensorSample((1, 4))}),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((3,)),), ValueError, "negative", {"n": -1}),
        ErrorInput((TensorSample(()),), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    tolerance={"float16": 1e-2, "bfloat16": 8e-2},
    promotes=True,
)
def diff(self: Tensor, *, n: int, axis: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    if n < 0:
        raise ValueArgumentError(f"diff: n must be non-negative, not {n}")
    along = normalize_axis("diff", axis, len(spec_of(self).shape))
    if n and (prepend is not None or append is not None):
        edge = (*self.shape[:along], 1, *self.shape[along + 1 :])
        parts = [
            x if spec_of(x).shape else broadcast_to(x, edge) for x in (prepend, self, append) if x is not None
        ]
        self = concat(parts, along)
    for _ in range(n):
        size = self.shape[along]
        late, early = slice_axis(self, along, 1, size), slice_axis(self, along, 0, size - 1)
        self = logical_xor(late, early) if spec_of(self).dtype.kind == "b" else late - early
    return self
