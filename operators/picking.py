"""Taking elements along an axis, and the positions of a mask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import lazy
from ..errors import ShapeError, UnsupportedError
from ..registry.dtypes import ALL, DEFAULT_INT, bool_, int64
from ..registry.values import TensorSpec
from .batching import Batched, BatchInfo, Dims, flat_examples
from .casting import cast
from .comparison import eq, le, logical_and
from .creation import arange, full
from .declare import Bad, Draw, Sample
from .derivatives import NotDifferentiable
from .gathering import index, index_put
from .kinds import LAYOUTS, composite, library
from .rules import check_shape, normalize_axis, spec_of
from .scans import cumsum
from .selection import where
from .slicing import basic_index
from .views import reshape

references = lazy.Functions("operators.references")


@composite(
    "take(Tensor self, Tensor indices, int? axis=None) -> Tensor",
    doc="""The slices at integer positions along an axis.

    Args:
        self: any tensor.
        indices: a tensor of integers; negative ones count from the end.
        axis: the axis; None: positions in the flattened tensor.

    Returns:
        A new tensor with the shape of ``indices`` in the place of the axis.

    Raises:
        OutOfBoundsError: a position or the axis lies outside.
        IndexArgumentError: ``indices`` are not integers.

    >>> td.take(td.asarray([5, 6, 7]), td.asarray([2, 0])).tolist()
    [7, 5]
    """,
    reference="numpy.take",
    samples=lambda dtype: [
        *(
            Sample((Draw((3, 4), layout=layout), Draw((2,), values=(1, -1), dtype=int64), 0))
            for layout in LAYOUTS
        ),
        Sample((Draw((3, 4)), Draw((2, 2), values=(1, -1, 0, 3), dtype=int64), 1)),
        Sample((Draw((3, 4)), Draw((2,), values=(11, -1), dtype=int64))),
        Sample((Draw((3, 4)), 1, 1)),
    ],
    errors=lambda: [
        Bad((Draw((3,)), Draw((1,), values=(3,), dtype=int64)), IndexError, "out of bounds"),
        Bad((Draw((3,)), Draw((1,))), IndexError, "integers"),
        Bad((Draw((3,)), 0, 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
)
def take(self: Any, indices: Any, axis: int | None) -> Any:
    if axis is None:
        self, axis = reshape(self, (spec_of(self).size,)), 0
    return index(self, [indices], axis)


def _along_errors() -> Iterable[Bad]:
    yield Bad((Draw((3, 4)), Draw((3,), dtype=int64)), ValueError, "as many axes")
    yield Bad((Draw((3, 4)), Draw((2, 4), dtype=int64)), ValueError, "broadcast")
    yield Bad((Draw((3, 4)), Draw((3, 1))), IndexError, "integers")
    yield Bad((Draw((3, 4)), Draw((3, 1), values=(4, 0, 0), dtype=int64)), IndexError, "out of bounds")
    yield Bad((Draw((3, 4)), Draw((3, 1), dtype=int64), 2), IndexError, "out of bounds")


@composite(
    "take_along_axis(Tensor self, Tensor indices, int axis=-1) -> Tensor",
    doc="""The elements at the places of ``indices``, whose values say where along one axis: argsort's result fits.

    Args:
        self: any tensor.
        indices: a tensor of integers with as many axes; all but ``axis`` broadcast with those of ``self``.
        axis: the axis that the values of ``indices`` are positions in.

    Returns:
        A new tensor of the broadcast shape, with the size of ``indices`` along the axis.

    Raises:
        ShapeError: the numbers of axes differ, or the others do not broadcast.
        OutOfBoundsError: a position or the axis lies outside.
        IndexArgumentError: ``indices`` are not integers.

    >>> td.take_along_axis(td.asarray([[1, 2], [3, 4]]), td.asarray([[1], [0]])).tolist()
    [[2], [3]]
    """,
    reference="numpy.take_along_axis",
    samples=lambda dtype: [
        Sample((Draw((3, 4)), Draw((3, 1), values=(0, -1, 2), dtype=int64))),
        Sample((Draw((3, 4)), Draw((1, 4), values=(0, -1, 2, 1), dtype=int64), 0)),
        Sample((Draw((3, 4)), Draw((1, 2), values=(3, 1), dtype=int64), 1)),
        Sample((Draw((5,)), Draw((0,), dtype=int64))),
    ],
    errors=_along_errors,
    dtypes=ALL,
)
def take_along_axis(self: Any, indices: Any, axis: int) -> Any:
    shape, rank, device = spec_of(self).shape, len(spec_of(indices).shape), spec_of(self).device
    if len(shape) != rank:
        raise ShapeError(f"take_along_axis: {spec_of(indices)} needs as many axes as shape {shape}")
    along = normalize_axis("take_along_axis", axis, rank)
    grid = [
        indices
        if at == along
        else reshape(arange(n, device=device), [n if a == at else 1 for a in range(rank)])
        for at, n in enumerate(shape)
    ]
    return index(self, grid)


# -- positions of a mask -----------------------------------------------------------------------------------------------
def _nonzero_meta(self: Any, *, size: int | None = None, fill_value: int = 0) -> tuple[TensorSpec, ...]:
    spec = spec_of(self)
    if not spec.shape:
        raise ShapeError("nonzero: a 0-d tensor has no axes; reshape it to (1,)")
    if size is None:
        size = _count(self)
    check_shape("nonzero", (size,))
    return (TensorSpec((size,), DEFAULT_INT, spec.device),) * len(spec.shape)


def _count(self: Any) -> int:
    """How many elements are not zero: known only where there is data, which a trace does not have."""
    array = getattr(self, "_array", None)
    if array is None:
        raise UnsupportedError(
            f"nonzero of {spec_of(self)}: how many positions there are depends on data that a trace does not have. "
            "Use where(mask, x, other) in the place of x[mask], or nonzero(mask, size=n) for at most n positions"
        )
    return int((array != 0).sum())


def _nonzero_kernel(xp: Any, self: Any, *, size: int | None, fill_value: int) -> tuple[Any, ...]:
    found = xp.nonzero(self)
    if size is None:
        return tuple(found)
    padded = xp.full((len(found), size), fill_value, xp.int64)
    for row, places in zip(padded, found):
        row[: len(places)] = places[:size]
    return tuple(padded)


def _nonzero_batched(
    info: BatchInfo, in_dims: Dims, self: Any, *, size: int | None, fill_value: int
) -> Batched:
    """Each example's places, by the number of true elements up to each; what is too much goes into one more slot."""
    if size is None:
        raise UnsupportedError(
            f"nonzero inside {info.name}: how many positions there are differs from example to example. Use "
            "where(mask, x, other) in the place of x[mask], or nonzero(mask, size=n) for at most n positions"
        )
    shape = self.shape[1:]
    if not shape or size < 0:
        _nonzero_meta(TensorSpec(shape, self.dtype), size=size)  # which raises
    mask = cast(flat_examples(self), bool_)
    count, length = mask.shape
    order = cumsum(mask, 1)
    slot = where(logical_and(mask, le(order, size)), order - 1, size)
    examples, places = (arange(n, device=self.device) for n in (count, length))
    empty = full((count, size + 1), length, dtype=DEFAULT_INT, device=self.device)
    filled = index_put(empty, (reshape(examples, (count, 1)), slot), places)
    flat = basic_index(filled, ((0, count, 1), (0, size, 1)))
    found, step = [], length
    for n in shape:
        step //= n or 1
        found.append(where(eq(flat, length), fill_value, flat // (step or 1) % (n or 1)))
    return tuple(found), 0


nonzero = library(
    "gather",
    "nonzero(Tensor self, *, int? size=None, int fill_value=0) -> Tensor[]",
    _nonzero_meta,
    _nonzero_kernel,
    doc="""The positions of the elements that are not zero.

    Args:
        self: a tensor of at least one axis.
        size: how many positions to give, whatever the data: the first ones, filled up with ``fill_value``. A trace
            needs it, since it must know shapes without data.
        fill_value: the position given where there are fewer.

    Returns:
        A tuple of int64 tensors of one axis, one for each axis of ``self``.

    Raises:
        ShapeError: ``self`` is 0-d.
        UnsupportedError: the tensor is traced and ``size`` is not given.

    >>> [i.tolist() for i in td.nonzero(td.asarray([0, 3, 0, 4]))]
    [[1, 3]]
    """,
    reference=references.nonzero,
    dtypes=ALL,
    derivative=NotDifferentiable("nonzero gives integers"),
    batching=_nonzero_batched,
    samples=lambda dtype: [
        *(Sample((Draw((3, 4), layout=layout),)) for layout in LAYOUTS),
        Sample((Draw((0,)),)),
        Sample((Draw((7,), values=(0, 1, 0, 1, 1, 0, 1)),), {"size": 2}),
        Sample((Draw((7,), values=(0, 1, 0, 1, 1, 0, 1)),), {"size": 6, "fill_value": -1}),
    ],
    errors=lambda: [
        Bad((Draw(()),), ValueError, "0-d"),
        Bad((Draw((2,)),), ValueError, "negative", {"size": -1}),
    ],
)
