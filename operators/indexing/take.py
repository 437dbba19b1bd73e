"""take, take_along_axis, and nonzero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import ShapeError, UnsupportedError
from ...registry.dtypes import ALL, DEFAULT_INT, bool_, int64
from ...registry.values import TensorSpec
from ..creation.creation import arange, full
from ..declare.batching import Batched, BatchInfo, Dims, flatten_examples
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.derivatives import NotDifferentiable
from ..declare.kinds import array_op, composite
from ..declare.native_kernel import Decomposition
from ..declare.shape_rules import check_shape, normalize_axis, spec_of
from ..elementwise.casting import cast
from ..elementwise.comparison import eq, le, logical_and
from ..elementwise.selection import where
from ..reductions.scans import cumsum
from ..shape.rearrange import expand_dims
from ..shape.views import reshape
from .gather import index, index_put
from .slicing import basic_index

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Tensor, TensorOrSpec


@composite(
    "take(Tensor self, Tensor indices, int? axis=None) -> Tensor",
    doc="""The slices at integer positions along an axis.

    Args:
        self: any tensor.
        indices: a tensor of integers; negative ones count from the end.
        axis: the axis; None: positions in the flattened tensor.

    Returns:
        A new tensor with the axis replaced by the axes of ``indices``.

    Raises:
        OutOfBoundsError: a position or the axis is out of bounds.
        IndexArgumentError: ``indices`` are not integers.

    >>> td.take(td.asarray([5, 6, 7]), td.asarray([2, 0])).tolist()
    [7, 5]
    """,
    reference="numpy.take",
    samples=lambda dtype: [
        *(
            SampleInput(
                (TensorSample((3, 4), layout=layout), TensorSample((2,), values=(1, -1), dtype=int64), 0)
            )
            for layout in LAYOUTS
        ),
        SampleInput((TensorSample((3, 4)), TensorSample((2, 2), values=(1, -1, 0, 3), dtype=int64), 1)),
        SampleInput((TensorSample((3, 4)), TensorSample((2,), values=(11, -1), dtype=int64))),
        SampleInput((TensorSample((3, 4)), 1, 1)),
    ],
    errors=lambda: [
        ErrorInput(
            (TensorSample((3,)), TensorSample((1,), values=(3,), dtype=int64)), IndexError, "out of bounds"
        ),
        ErrorInput((TensorSample((3,)), TensorSample((1,))), IndexError, "integers"),
        ErrorInput((TensorSample((3,)), 0, 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
)
def take(self: Tensor, indices: Tensor, axis: int | None) -> Tensor:
    if axis is None:
        self, axis = reshape(self, (spec_of(self).size,)), 0
    return index(self, [indices], axis)


@composite(
    "take_along_axis(Tensor self, Tensor indices, int axis=-1) -> Tensor",
    doc="""The elements at positions along one axis that ``indices`` has for each element, such as argsort's result.

    Args:
        self: any tensor.
        indices: a tensor of integers with as many axes; all but ``axis`` broadcast with those of ``self``.
        axis: the axis along which the values of ``indices`` are positions.

    Returns:
        A new tensor of the broadcast shape, with the size of ``indices`` along the axis.

    Raises:
        ShapeError: the numbers of axes differ, or the others do not broadcast.
        OutOfBoundsError: a position or the axis is out of bounds.
        IndexArgumentError: ``indices`` are not integers.

    >>> td.take_along_axis(td.asarray([[1, 2], [3, 4]]), td.asarray([[1], [0]])).tolist()
    [[2], [3]]
    """,
    reference="numpy.take_along_axis",
    samples=lambda dtype: [
        SampleInput((TensorSample((3, 4)), TensorSample((3, 1), values=(0, -1, 2), dtype=int64))),
        SampleInput((TensorSample((3, 4)), TensorSample((1, 4), values=(0, -1, 2, 1), dtype=int64), 0)),
        SampleInput((TensorSample((3, 4)), TensorSample((1, 2), values=(3, 1), dtype=int64), 1)),
        SampleInput((TensorSample((5,)), TensorSample((0,), dtype=int64))),
    ],
    errors="samples.indexing.along_errors",
    dtypes=ALL,
    aliases=("take_along_dim",),
)
def take_along_axis(self: Tensor, indices: Tensor, axis: int) -> Tensor:
    shape, rank, device = spec_of(self).shape, len(spec_of(indices).shape), spec_of(self).device
    if len(shape) != rank:
        raise ShapeError(
            f"take_along_axis: the indices {spec_of(indices)} need as many axes as shape {shape}"
        )
    along = normalize_axis("take_along_axis", axis, rank)
    grid = [
        indices
        if at == along
        else reshape(arange(n, device=device), [n if a == at else 1 for a in range(rank)])
        for at, n in enumerate(shape)
    ]
    return index(self, grid)


# -- positions of a mask -----------------------------------------------------------------------------------------------
_ADVICE = (
    "Use where(mask, x, other) instead of x[mask], x.at[mask].get(size=n) for at most n elements, or "
    "nonzero(mask, size=n) for at most n positions; a NumPy array is a mask whose positions are known"
)


def _nonzero_shape_rule(
    self: TensorOrSpec, *, size: int | None = None, fill_value: int = 0
) -> tuple[TensorSpec, ...]:
    spec = spec_of(self)
    if not spec.shape:
        raise ShapeError("nonzero: a 0-d tensor has no axes; reshape it to (1,)")
    if size is None:
        size = _count_nonzero(self)
    check_shape("nonzero", (size,))
    return (TensorSpec((size,), DEFAULT_INT, spec.device),) * len(spec.shape)


def _count_nonzero(self: Any) -> int:
    """The number of elements that are not zero; unknown in a trace, which has no data."""
    array = getattr(self, "_array", None)
    if not spec_of(self).size:
        return 0
    if array is None:
        raise UnsupportedError(
            f"nonzero of {spec_of(self)}: the number of positions depends on data that a trace does not have. {_ADVICE}"
        )
    return int((array != 0).sum())


def _nonzero_kernel(xp: ArrayModule, self: Array, *, size: int | None, fill_value: int) -> tuple[Array, ...]:
    result = xp.nonzero(self)
    if size is None:
        return tuple(result)
    padded = xp.full((len(result), size), fill_value, xp.int64)
    for row, indices in zip(padded, result):
        row[: len(indices)] = indices[:size]
    return tuple(padded)


def nonzero_of_array(xp: ArrayModule, self: Array, *, size: int | None, fill_value: int) -> object:
    """The eager kernel: NumPy's function where the size depends on data; it raises for 0-d arrays."""
    return self.nonzero() if size is None and self.ndim else NotImplemented


def _nonzero_batched(
    info: BatchInfo, in_dims: Dims, self: Tensor, *, size: int | None, fill_value: int
) -> Batched:
    if size is None and 0 in self.shape[1:]:
        size = 0
    if size is None:
        raise UnsupportedError(
            f"nonzero inside {info.name}: the number of positions differs from example to example. {_ADVICE}"
        )
    shape = self.shape[1:]
    if not shape or size < 0:
        _nonzero_shape_rule(TensorSpec(shape, self.dtype), size=size)  # which raises
    return _find_positions(self, size, fill_value), 0


def _find_positions(self: Tensor, size: int, fill_value: int) -> tuple[Tensor, ...]:
    """The positions of the true elements of each example: each is scattered to its rank among them.

    A last slot receives the excess.
    """
    shape = self.shape[1:]
    mask = cast(flatten_examples(self), bool_)
    count, length = mask.shape
    order = cumsum(mask, 1)
    slot = where(logical_and(mask, le(order, size)), order - 1, size)
    examples, indices = (arange(n, device=self.device) for n in (count, length))
    empty = full((count, size + 1), length, dtype=DEFAULT_INT, device=self.device)
    filled = index_put(empty, (reshape(examples, (count, 1)), slot), indices)
    flat = basic_index(filled, ((0, count, 1), (0, size, 1)))
    value, step = [], length
    for n in shape:
        step //= n or 1
        value.append(where(eq(flat, length), fill_value, flat // (step or 1) % (n or 1)))
    return tuple(value)


def _nonzero_of_one(self: Tensor, *, size: int | None, fill_value: int) -> tuple[Tensor, ...]:
    size = size or 0
    return tuple(reshape(x, (size,)) for x in _find_positions(expand_dims(self, 0), size, fill_value))


nonzero = array_op(
    "gather",
    "nonzero(Tensor self, *, int? size=None, int fill_value=0) -> Tensor[]",
    _nonzero_shape_rule,
    _nonzero_kernel,
    doc="""The positions of the elements that are not zero.

    Args:
        self: a tensor of at least one axis.
        size: the number of positions to return: the first ones, padded with ``fill_value``. A trace requires it,
            because shapes must not depend on data.
        fill_value: the padding.

    Returns:
        A tuple of int64 tensors of one axis, one for each axis of ``self``.

    Raises:
        ShapeError: ``self`` is 0-d.
        UnsupportedError: the tensor is traced and ``size`` is not given.

    >>> [i.tolist() for i in td.nonzero(td.asarray([0, 3, 0, 4]))]
    [[1, 3]]
    """,
    reference="references.basic.nonzero",
    eager_kernel=nonzero_of_array,
    dtypes=ALL,
    derivative=NotDifferentiable("nonzero returns integers"),
    decomposition=Decomposition(
        _nonzero_of_one, lambda self, *, size, fill_value: size is not None or not self.size
    ),
    batching=_nonzero_batched,
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout),)) for layout in LAYOUTS),
        SampleInput((TensorSample((0,)),)),
        SampleInput((TensorSample((7,), values=(0, 1, 0, 1, 1, 0, 1)),), {"size": 2}),
        SampleInput((TensorSample((7,), values=(0, 1, 0, 1, 1, 0, 1)),), {"size": 6, "fill_value": -1}),
    ],
    errors=lambda: [
        ErrorInput((TensorSample(()),), ValueError, "0-d"),
        ErrorInput((TensorSample((2,)),), ValueError, "negative", {"size": -1}),
    ],
)
