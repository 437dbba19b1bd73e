"""roll, repeat and tile; ``repeat.ints`` is PyTorch's ``repeat``."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, ConcretizationError, ShapeError, UnsupportedError, ValueArgumentError
from ...registry.dtypes import ALL
from ...registry.values import TensorBase, converters, describe
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from ..indexing.slicing import basic_index
from ..indexing.take import take
from .joining import concat
from .rearrange import full_plan
from .views import broadcast_to, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...registry.types import Array, ArrayModule, Tensor


@composite(
    "roll(Tensor self, int[] shift, int[]? axis=None) -> Tensor",
    doc="""The elements rolled along axes: those shifted out at one end enter at the other.

    Args:
        self: any tensor.
        shift: the number of positions; one int for all axes, or one for each axis.
        axis: the axis or axes; None: roll the flattened tensor and restore the shape.

    Returns:
        A new tensor.

    Raises:
        ValueArgumentError: the numbers of shifts and axes differ.
        OutOfBoundsError: there is no such axis.

    >>> td.roll(td.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """,
    reference="numpy.roll",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout), 2, 1)) for layout in LAYOUTS),
        SampleInput((TensorSample((3, 4)), 5)),
        SampleInput((TensorSample((3, 4)), (1, -9), (0, 1))),
        SampleInput((TensorSample((3, 4)), 1, (0, 1))),
        SampleInput((TensorSample((0, 2)), 1, 0)),
        SampleInput((TensorSample(()), 1)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((3,)), (1, 2), 0), ValueError, "shifts"),
        ErrorInput((TensorSample((3,)), 1, 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
)
def roll(self: Tensor, shift: tuple[int, ...], axis: tuple[int, ...] | None) -> Tensor:
    shape = spec_of(self).shape
    if axis is None:
        flat = reshape(self, (math.prod(shape),))
        return reshape(_roll_axis(flat, sum(shift), 0), shape)
    if len(shift) not in (1, len(axis)):
        raise ValueArgumentError(f"roll: {len(shift)} shifts for {len(axis)} axes")
    for offset, ax in zip(shift * len(axis) if len(shift) == 1 else shift, axis):
        self = _roll_axis(self, offset, normalize_axis("roll", ax, len(shape)))
    return self


def _roll_axis(x: Tensor, shift: int, axis: int) -> Tensor:
    """Roll one axis: exchange its two parts."""
    size = x.shape[axis]
    split = -shift % size if size else 0
    head, tail = full_plan(x.shape), full_plan(x.shape)
    head[axis], tail[axis] = (split, size - split, 1), (0, split, 1)
    return concat([basic_index(x, tuple(plan)) for plan in (head, tail) if plan[axis][1] or not size], axis)


def _to_counts(repeats: int | Sequence[int] | Tensor) -> list[int]:
    """The numbers of repetitions as Python ints; one if it is the same for all elements."""
    given: Any = repeats
    try:
        if isinstance(given, TensorBase):
            given = given.tolist()  # type: ignore[attr-defined]
        return [operator.index(count) for count in (given if isinstance(given, (list, tuple)) else (given,))]
    except (ConcretizationError, UnsupportedError):
        raise UnsupportedError(
            "repeat: the result has a data-dependent shape: the number of its elements depends on data that a trace "
            "does not have. Pass repeats as ints"
        ) from None
    except TypeError:
        raise ArgumentError(f"repeat: repeats are ints, not {describe(repeats)}") from None


def _repeat_array(xp: ArrayModule, x: Array, repeats: object, axis: int | None = None) -> object:
    """The eager kernel: new elements, where the body would not return a view of the argument."""
    size = x.size if axis is None else x.shape[axis]
    if type(repeats) is int:
        is_copy = repeats > 1 and size > 1 and x.size
    elif isinstance(repeats, (list, tuple)):
        is_copy = len(repeats) == size > 1 and all(type(count) is int for count in repeats)
    else:
        is_copy = (
            isinstance(repeats, np.ndarray) and repeats.dtype == np.int64 and repeats.shape == (size,) != (1,)
        )
    counts: Any = repeats
    return x.repeat(counts, axis) if is_copy else NotImplemented


def _tile_array(xp: ArrayModule, x: Array, repetitions: int | Sequence[int]) -> object:
    """The eager kernel: new elements, where the body would not return a view of the argument."""
    given = (repetitions,) if isinstance(repetitions, int) else tuple(repetitions)
    rank = max(x.ndim, len(given))
    sizes, counts = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - len(given)) + given
    is_copy = any(size > 1 and count > 1 for size, count in zip(sizes, counts))
    if not is_copy or min(counts) < 1 or not x.size or not all(type(count) is int for count in counts):
        return NotImplemented
    result = xp.empty([count * size for size, count in zip(sizes, counts)], x.dtype)
    parts = result.reshape([n for pair in zip(counts, sizes) for n in pair])
    parts[...] = x.reshape([n for size in sizes for n in (1, size)])
    return result


def _tile_array_along_axes(xp: ArrayModule, x: Array, repeats: int | Sequence[int]) -> object:
    """The eager kernel of ``repeat.ints``, with a number for each axis at least."""
    rank = 1 if isinstance(repeats, int) else len(repeats)
    return _tile_array(xp, x, repeats) if rank >= x.ndim else NotImplemented


def _repeat_each(self: Tensor, counts: list[int], axis: int) -> Tensor:
    """Each slice along an axis as often as its number says."""
    spec = spec_of(self)
    if len(counts) != spec.shape[axis]:
        raise ShapeError(
            f"repeat: {len(counts)} repeats for {spec.shape[axis]} elements along axis {axis} of shape {spec.shape}"
        )
    order = np.repeat(np.arange(len(counts)), counts)
    return take(self, converters[np.ndarray](order).to_device(spec.device), axis)


@composite(
    "repeat(Tensor self, Any repeats, int? axis=None) -> Tensor",
    doc="""Each element, or slice along an axis, repeated.

    Args:
        self: any tensor.
        repeats: the number of repetitions; or a sequence or tensor of ints, one for each element along the axis. In a
            trace it must not be a traced tensor, because shapes must not depend on data.
        axis: the axis; None: the flattened tensor.

    Returns:
        A new tensor.

    Raises:
        ValueArgumentError: a number of repetitions is negative.
        ShapeError: there are not as many numbers as elements.
        OutOfBoundsError: there is no such axis.
        UnsupportedError: ``repeats`` is a traced tensor.

    >>> td.repeat(td.arange(2), 2).tolist()
    [0, 0, 1, 1]
    """,
    reference="numpy.repeat",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout), 2, 0)) for layout in LAYOUTS),
        SampleInput((TensorSample((3, 4)), 3, -1)),
        SampleInput((TensorSample((3, 4)), 2)),
        SampleInput((TensorSample((3,)), 0)),
        SampleInput((TensorSample(()), 2)),
        SampleInput((TensorSample((3, 4)), (2, 0, 1), 0)),
        SampleInput((TensorSample((2, 2)), (0, 1, 2, 3))),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((3,)), -1), ValueError, "negative"),
        ErrorInput((TensorSample((3,)), (1, -1, 2)), ValueError, "negative"),
        ErrorInput((TensorSample((3,)), (1, 2)), ValueError, "3 elements"),
        ErrorInput((TensorSample((3,)), "ab"), TypeError, "ints"),
        ErrorInput((TensorSample((3,)), 2, 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    eager_kernel=_repeat_array,
    aliases=("repeat_interleave",),
    variadic="ints",
)
def repeat(self: Tensor, repeats: int | Sequence[int] | Tensor, axis: int | None) -> Tensor:
    if axis is None:
        self, axis = reshape(self, (spec_of(self).size,)), 0
    shape = spec_of(self).shape
    along = normalize_axis("repeat", axis, len(shape))
    counts = _to_counts(repeats)
    if min(counts, default=0) < 0:
        raise ValueArgumentError(f"repeat: repeats must be non-negative, not {min(counts)}")
    if len(counts) != 1:
        return _repeat_each(self, counts, along)
    count = counts[0]
    head, tail = shape[: along + 1], shape[along + 1 :]
    wide = broadcast_to(reshape(self, (*head, 1, *tail)), (*head, count, *tail))
    return reshape(wide, (*head[:-1], head[-1] * count, *tail))


@composite(
    "tile(Tensor self, int[] repetitions) -> Tensor",
    doc="""The tensor repeated as a whole along each axis.

    Args:
        self: any tensor.
        repetitions: the number of repetitions for each axis, aligned with the last axes.

    Returns:
        A new tensor, whose rank is the larger one of ``self`` and ``repetitions``.

    Raises:
        ValueArgumentError: a number is negative.

    >>> td.tile(td.arange(2), 2).tolist()
    [0, 1, 0, 1]
    """,
    reference="numpy.tile",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout), (2, 1))) for layout in LAYOUTS),
        SampleInput((TensorSample((3,)), (2, 2))),
        SampleInput((TensorSample((2, 3)), 3)),
        SampleInput((TensorSample((2, 3)), (0, 1))),
        SampleInput((TensorSample(()), ())),
    ],
    errors=lambda: [ErrorInput((TensorSample((3,)), (-1,)), ValueError, "negative")],
    dtypes=ALL,
    eager_kernel=_tile_array,
)
def tile(self: Tensor, repetitions: tuple[int, ...]) -> Tensor:
    if any(count < 0 for count in repetitions):
        raise ValueArgumentError(f"tile: repetitions must be non-negative, not {repetitions}")
    shape = spec_of(self).shape
    rank = max(len(shape), len(repetitions))
    sizes, counts = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(repetitions)) + repetitions
    tiled_shape = [
        n for size, count in zip(sizes, counts) for n in ((size,) if count == 1 else (count, size))
    ]
    broadcastable_shape = [
        n for size, count in zip(sizes, counts) for n in ((size,) if count == 1 else (1, size))
    ]
    return reshape(
        broadcast_to(reshape(self, broadcastable_shape), tiled_shape),
        [size * count for size, count in zip(sizes, counts)],
    )


@composite(
    "repeat.ints(Tensor self, int[] repeats) -> Tensor",
    doc="""The tensor repeated as a whole along each axis, as PyTorch's method: three ints or more select it.

    Args:
        self: any tensor.
        repeats: the number of repetitions for each axis, aligned with the last axes.

    Returns:
        A new tensor.

    Raises:
        ShapeError: there are fewer numbers than axes.
        ValueArgumentError: a number is negative.

    >>> td.asarray([1, 2]).repeat(1, 1, 2).tolist()
    [[[1, 2, 1, 2]]]
    """,
    reference="numpy.tile",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout), (2, 1))) for layout in LAYOUTS),
        SampleInput((TensorSample((2, 3)), (2, 1, 3))),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((3,)), (-1,)), ValueError, "negative"),
        ErrorInput((TensorSample((3, 1)), (2,)), ValueError, "one for each axis"),
    ],
    dtypes=ALL,
    eager_kernel=_tile_array_along_axes,
    variadic=True,
)
def repeat_ints(self: Tensor, repeats: tuple[int, ...]) -> Tensor:
    rank = len(spec_of(self).shape)
    if len(repeats) < rank:
        raise ShapeError(f"repeat: {len(repeats)} numbers for {rank} axes; pass one for each axis")
    return tile(self, repeats)
