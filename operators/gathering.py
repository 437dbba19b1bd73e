"""Indexing by integer tensors: reading, and writing functionally.

``index`` takes tensors for consecutive axes; :mod:`.indexing` reduces to it with views what NumPy allows beyond that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import lazy
from ..errors import ArgumentError, IndexArgumentError, OutOfBoundsError
from ..registry.dtypes import ALL, DEFAULT_INT, DType, int32, int64, uint8
from ..registry.values import TensorSpec
from .batching import Batched, BatchInfo, Dims, at_rank, logical_shape, with_batch
from .comparison import eq
from .creation import arange
from .declare import Bad, Draw, Sample
from .derivatives import Rule
from .filled import zeros
from .kinds import LAYOUTS, library
from .rules import broadcast_shapes, normalize_axis, spec_of
from .selection import where
from .slicing import check_stored
from .views import inverse_permutation, permute, reshape, sum_to

references = lazy.Functions("operators.references")

Indices = Sequence[Any]


# -- shapes ------------------------------------------------------------------------------------------------------------
def index_shape(name: str, shape: tuple[int, ...], indices: Indices, axis: int) -> tuple[int, ...]:
    """The shape that index tensors for consecutive axes select.

    Raises:
        ArgumentError: there is no index tensor.
        IndexArgumentError: one is not of integers.
        OutOfBoundsError: there are more of them than axes.
        ShapeError: they do not broadcast.
    """
    if not indices:
        raise ArgumentError(f"{name}: needs at least one index tensor")
    specs = [spec_of(one) for one in indices]
    for spec in specs:
        if not spec.dtype.is_integer:
            raise IndexArgumentError(
                f"{name}: index tensors hold integers, not {spec.dtype}; cast with astype"
            )
    start = normalize_axis(name, axis, max(len(shape), 1))
    if start + len(specs) > len(shape):
        raise OutOfBoundsError(
            f"{name}: {len(specs)} index tensors from axis {axis} on are too many for shape {shape}"
        )
    return (
        shape[:start] + broadcast_shapes(name, *(spec.shape for spec in specs)) + shape[start + len(specs) :]
    )


def _place(xp: Any, self: Any, indices: Indices, axis: int) -> tuple[Any, ...]:
    before: tuple[Any, ...] = (slice(None),) * (axis % max(self.ndim, 1))
    return before + tuple(xp.asarray(one).astype(xp.int64, copy=False) for one in indices)


def _out_of_bounds(name: str, shape: tuple[int, ...], fault: IndexError) -> OutOfBoundsError:
    return OutOfBoundsError(f"{name}: {fault} (shape {shape})")


# -- reading -----------------------------------------------------------------------------------------------------------
def _read_meta(self: Any, indices: Indices, axis: int = 0) -> TensorSpec:
    spec = spec_of(self)
    return TensorSpec(index_shape("index", spec.shape, indices, axis), spec.dtype, spec.device)


def _read_kernel(xp: Any, self: Any, indices: Indices, axis: int) -> Any:
    place = _place(xp, self, indices, axis)
    try:
        if len(indices) == 1:
            return xp.take(self, place[-1], axis % self.ndim)
        return xp.array(self[place])  # a copy also where all indices are 0-d, which NumPy gives a view for
    except IndexError as fault:
        raise _out_of_bounds("index", self.shape, fault) from None


def _picks() -> Iterable[tuple[tuple[int, ...], tuple[Draw, ...], int]]:
    """Shape, index tensors, axis."""
    one = Draw((4,), values=(2, 0, -1, 2), dtype=int64)
    yield (3, 4), (one,), 0
    yield (3, 4), (one,), 1
    yield (3, 4), (one, Draw((), values=(1,), dtype=int32)), 0
    yield (3, 4), (Draw((), values=(-1,), dtype=int64),), -2
    yield (2, 3, 4), (Draw((2, 1), values=(2, 0), dtype=uint8), one), 1
    yield (5,), (Draw((0,), dtype=int64),), 0
    yield (3, 0), (one,), 0


def _read_samples(dtype: DType) -> Iterable[Sample]:
    for layout in LAYOUTS:
        yield Sample(
            (Draw((3, 4), layout=layout), (Draw((2, 2), values=(0, 2, -3, 1), dtype=int64, layout=layout),))
        )
    for shape, indices, axis in _picks():
        yield Sample((Draw(shape), indices, axis))


def _read_errors() -> Iterable[Bad]:
    one = Draw((2,), values=(0, 1), dtype=int64)
    yield Bad((Draw((3,)), (Draw((1,), values=(3,), dtype=int64),)), IndexError, "out of bounds")
    yield Bad((Draw((3,)), (Draw((1,), values=(-4,), dtype=int64),)), IndexError, "out of bounds")
    yield Bad((Draw((3,)), (Draw((2,)),)), IndexError, "integers, not float32")
    yield Bad((Draw((3,)), (one, one)), IndexError, "too many")
    yield Bad((Draw((3,)), (one,), 1), IndexError, "out of bounds")
    yield Bad((Draw((3,)), ()), TypeError, "at least one")
    yield Bad((Draw((3, 3)), (one, Draw((3,), dtype=int64))), ValueError, "broadcast")


def _with_examples(info: BatchInfo, x: Any, dims: Dims, indices: Indices) -> tuple[Any, ...]:
    """Index tensors for the batch axis and those behind it: the number of the example goes in front."""
    rank = max(len(logical_shape(one, dim)) for one, dim in zip(indices, dims))
    examples = reshape(arange(info.batch_size, device=x.device), (info.batch_size, *(1,) * rank))
    return (examples, *[at_rank(one, dim, rank) for one, dim in zip(indices, dims)])


def _front(axis: int, count: int, rank: int) -> tuple[int, ...]:
    """The permutation of a batch that has ``count`` axes of the examples, from ``axis`` on, right behind the batch."""
    moved = range(axis + 1, axis + 1 + count)
    return (0, *moved, *[at for at in range(1, rank) if at not in moved])


def _read_batched(info: BatchInfo, in_dims: Dims, x: Any, indices: Indices, axis: int) -> Batched:
    own = logical_shape(x, in_dims[0])
    index_shape("index", own, indices_of_examples(indices, in_dims[1]), axis)
    start = normalize_axis("index", axis, len(own))
    if all(dim is None for dim in in_dims[1]):
        return info.call(x, indices, start + 1), 0
    if in_dims[0] is None:
        rank = max(len(logical_shape(one, dim)) for one, dim in zip(indices, in_dims[1]))
        return info.call(x, tuple(at_rank(i, dim, rank) for i, dim in zip(indices, in_dims[1])), start), start
    places = _with_examples(info, x, in_dims[1], indices)
    order = _front(start, len(indices), len(x.shape))
    found = info.call(permute(x, order) if start else x, places, 0)
    back = _front(start, len(places[0].shape) - 1, len(found.shape))
    return (permute(found, inverse_permutation(back)) if start else found), 0


def indices_of_examples(indices: Indices, dims: Dims) -> list[TensorSpec]:
    """The specs that index tensors have for one example."""
    specs = [spec_of(one) for one in indices]
    return [spec._replace(shape=logical_shape(i, dim)) for spec, i, dim in zip(specs, indices, dims)]


index: Any = library(
    "gather",
    "index(Tensor self, Tensor[] indices, int axis=0) -> Tensor",
    _read_meta,
    _read_kernel,
    doc="""The elements at integer positions; what ``x[:, i, j]`` does with index tensors ``i`` and ``j``.

    Args:
        self: any tensor.
        indices: integer tensors that broadcast, one for each of consecutive axes; negative values count from the end.
        axis: the first of these axes.

    Returns:
        A new tensor; the broadcast shape of the indices takes the place of the indexed axes.

    Raises:
        OutOfBoundsError: a position lies outside, or there are more indices than axes.
        IndexArgumentError: an index tensor is not of integers.
        ShapeError: the indices do not broadcast.

    >>> td.ops.td.index(td.arange(5), [td.asarray([3, -1])]).tolist()
    [3, 4]
    """,
    reference=references.index,
    dtypes=ALL,
    derivative=Rule(
        vjp={"self": lambda g, indices, axis, self_spec: add_into_zeros(g, indices, axis, self_spec)},
        jvp={"self": lambda t, indices, axis: index(t, indices, axis)},
    ),
    batching=_read_batched,
    samples=_read_samples,
    errors=_read_errors,
    method=False,
)


# -- writing -----------------------------------------------------------------------------------------------------------
def _write_meta(
    self: Any, indices: Indices, value: Any, axis: int = 0, *, accumulate: bool = False
) -> TensorSpec:
    spec = spec_of(self)
    check_stored("index_put", spec, value, index_shape("index_put", spec.shape, indices, axis))
    return TensorSpec(spec.shape, spec.dtype, spec.device)


def store(xp: Any, out: Any, indices: Indices, value: Any, axis: int, accumulate: bool) -> None:
    """Write into an array at integer positions, or add to it.

    Raises:
        OutOfBoundsError: a position lies outside; nothing is written.
    """
    place = _place(xp, out, indices, axis)
    value = xp.asarray(value).astype(out.dtype)
    try:
        if accumulate:
            xp.add.at(out, place, value)
        else:
            out[place] = value
    except IndexError as fault:
        raise _out_of_bounds("index_put", out.shape, fault) from None


def _write_kernel(xp: Any, self: Any, indices: Indices, value: Any, axis: int, *, accumulate: bool) -> Any:
    out = xp.array(self)
    store(xp, out, indices, value, axis, accumulate)
    return out


def _write_samples(dtype: DType) -> Iterable[Sample]:
    for accumulate in (False, True):
        for shape, indices, axis in _picks():
            selected = index_shape("index_put", shape, [TensorSpec(i.shape, int64) for i in indices], axis)
            yield Sample((Draw(shape), indices, Draw(selected), axis), {"accumulate": accumulate})
        yield Sample(
            (Draw((3, 4)), (Draw((2,), values=(1, 1), dtype=int64),), Draw((4,))), {"accumulate": accumulate}
        )
        weak = True if dtype.kind == "b" else 1
        yield Sample(
            (Draw((3,)), (Draw((2,), values=(1, 1), dtype=int64),), weak), {"accumulate": accumulate}
        )


def _write_errors() -> Iterable[Bad]:
    one = Draw((2,), values=(0, 1), dtype=int64)
    yield Bad((Draw((3,)), (one,), Draw((3,))), ValueError, "broadcast")
    yield Bad((Draw((3,), dtype=int64), (one,), 0.5), TypeError, "does not go into")
    yield Bad((Draw((3,), dtype=uint8), (one,), 300), OverflowError, "fit")
    yield Bad((Draw((1,)), (one,), 1), IndexError, "out of bounds")
    yield Bad((Draw((3,)), (Draw((2,)),), 1), IndexError, "integers")


def _winners(indices: Indices, axis: int, spec: TensorSpec) -> Any:
    """Where a written element is still there at the end: of those at one place, the last."""
    shape = index_shape("index_put", spec.shape, indices, axis)
    size = TensorSpec(shape, DEFAULT_INT).size
    order = reshape(arange(size, device=spec.device), shape)
    written = index_put(zeros(spec.shape, dtype=DEFAULT_INT, device=spec.device), indices, order, axis)
    return eq(index(written, indices, axis), order)


def _by_value(
    g: Any, indices: Indices, axis: int, accumulate: bool, self_spec: TensorSpec, value_spec: TensorSpec
) -> Any:
    read = index(g, indices, axis)
    kept = read if accumulate else where(_winners(indices, axis, self_spec), read, 0)
    return sum_to(kept, value_spec.shape)


def _write_batched(
    info: BatchInfo, in_dims: Dims, x: Any, indices: Indices, value: Any, axis: int, *, accumulate: bool
) -> Batched:
    own = logical_shape(x, in_dims[0])
    selected = index_shape("index_put", own, indices_of_examples(indices, in_dims[1]), axis)
    start = normalize_axis("index_put", axis, len(own))
    x = with_batch(x, in_dims[0], info.batch_size)
    value = at_rank(value, in_dims[2], len(selected))
    if all(dim is None for dim in in_dims[1]):
        return info.call(x, indices, value, start + 1, accumulate=accumulate), 0
    places = _with_examples(info, x, in_dims[1], indices)
    if not start:
        return info.call(x, places, value, 0, accumulate=accumulate), 0
    order = _front(start, len(indices), len(x.shape))
    if spec_of(value).shape:
        value = at_rank(with_batch(value, in_dims[2], info.batch_size), 0, len(selected))
        value = permute(value, _front(start, len(places[0].shape) - 1, len(value.shape)))
    found = info.call(permute(x, order), places, value, 0, accumulate=accumulate)
    return permute(found, inverse_permutation(order)), 0


index_put: Any = library(
    "scatter",
    "index_put(Tensor self, Tensor[] indices, Tensor value, int axis=0, *, bool accumulate=False) -> Tensor",
    _write_meta,
    _write_kernel,
    doc="""A copy of the tensor with the elements at integer positions replaced, or added to.

    Args:
        self: any tensor.
        indices: integer tensors, as for ``index``.
        value: a tensor that broadcasts to what ``index`` would give, or a number; cast to the dtype of ``self``.
        axis: the first of the indexed axes.
        accumulate: add, each of several values for one place; if not, the last of them stays.

    Returns:
        A new tensor of the shape and dtype of ``self``.

    Raises:
        OutOfBoundsError: a position lies outside.
        IndexArgumentError: an index tensor is not of integers.
        ShapeError: the value does not broadcast.
        DTypeError: the value's dtype is of a higher kind (a float into integers).

    >>> td.ops.td.index_put(td.zeros(3), [td.asarray([1, 1])], 2.0, accumulate=True).tolist()
    [0.0, 4.0, 0.0]
    """,
    reference=references.index_put,
    dtypes=ALL,
    derivative=Rule(
        vjp={
            "self": lambda g, indices, axis, accumulate: g if accumulate else index_put(g, indices, 0, axis),
            "value": _by_value,
        },
        jvp={
            "self": lambda t, indices, axis, accumulate: t if accumulate else index_put(t, indices, 0, axis),
            "value": lambda t, indices, axis, accumulate, self_spec: index_put(
                zeros(self_spec.shape, dtype=t.dtype, device=self_spec.device),
                indices,
                t,
                axis,
                accumulate=accumulate,
            ),
        },
    ),
    batching=_write_batched,
    samples=_write_samples,
    errors=_write_errors,
    method=False,
    autocast="promote",
)


def add_into_zeros(g: Any, indices: Indices, axis: int, spec: TensorSpec) -> Any:
    """Zeros of a spec with ``g`` added at integer positions: the transpose of reading."""
    return index_put(zeros(spec.shape, dtype=g.dtype, device=spec.device), indices, g, axis, accumulate=True)
