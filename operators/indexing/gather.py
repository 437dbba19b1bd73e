"""Indexing by integer tensors: ``index`` reads, ``index_put`` writes functionally.

Both take index tensors for consecutive axes; :mod:`.subscript` reduces NumPy's general indexing to that by views.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, IndexArgumentError, OutOfBoundsError
from ...registry.dtypes import ALL, DEFAULT_INT
from ...registry.values import TensorSpec
from ..creation.creation import arange
from ..creation.full import zeros
from ..declare.batching import Batched, BatchInfo, Dims, ensure_batch_axis, expand_rank, logical_shape
from ..declare.declaration import IndexSpec
from ..declare.derivatives import Rule
from ..declare.kinds import array_op
from ..declare.native_kernel import Decomposition
from ..declare.quiet import call_quietly
from ..declare.shape_rules import broadcast_shapes, check_rank, normalize_axis, spec_of
from ..elementwise.comparison import eq
from ..elementwise.selection import where
from ..shape.views import inverse_permutation, permute, reshape, sum_to
from .slicing import check_storable

if TYPE_CHECKING:
    from types import ModuleType

    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Tensor

Indices = Sequence[Any]


# -- shapes ------------------------------------------------------------------------------------------------------------
def index_shape(name: str, shape: tuple[int, ...], indices: Indices, axis: int) -> tuple[int, ...]:
    """The shape that index tensors for consecutive axes select.

    Raises:
        ArgumentError: there is no index tensor.
        IndexArgumentError: an index tensor does not have an integer dtype.
        OutOfBoundsError: there are more index tensors than axes.
        ShapeError: the index tensors do not broadcast, or the result has more axes than an array can have.
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
    broadcast = broadcast_shapes(name, *(spec.shape for spec in specs))
    return check_rank(name, shape[:start] + broadcast + shape[start + len(specs) :])


def _numpy_key(xp: ModuleType, self: Array, indices: Indices, axis: int) -> tuple[Array, ...]:
    before: tuple[Any, ...] = (slice(None),) * (axis % max(self.ndim, 1))
    return before + tuple(xp.asarray(one).astype(xp.int64, copy=False) for one in indices)


def _selected_shape(shape: tuple[int, ...], key: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape that a key from :func:`_numpy_key` selects."""
    positions = [one for one in key if not isinstance(one, slice)]
    start = len(key) - len(positions)
    result = broadcast_shapes("index", *(one.shape for one in positions))
    return shape[:start] + result + shape[len(key) :]


def _out_of_bounds(name: str, shape: tuple[int, ...], fault: IndexError) -> OutOfBoundsError:
    return OutOfBoundsError(f"{name}: {fault} (shape {shape})")


# -- reading -----------------------------------------------------------------------------------------------------------
def _read_shape_rule(self: TensorSpec, indices: Indices, axis: int = 0) -> TensorSpec:
    spec = spec_of(self)
    return TensorSpec(index_shape("index", spec.shape, indices, axis), spec.dtype, spec.device)


def _read_kernel(xp: ArrayModule, self: Array, indices: Indices, axis: int) -> Array:
    """Gather elements at integer positions, in new memory.

    Native twin: backends/cpu/fastpath/entries/rt_gathers.py:gather
    """
    key = _numpy_key(xp, self, indices, axis)
    try:
        if len(indices) == 1:
            return xp.take(self, key[-1], axis % self.ndim)
        return xp.array(self[key])  # a copy: for 0-d indices NumPy returns a view
    except IndexError as fault:
        raise _out_of_bounds("index", self.shape, fault) from None


def _prepend_example_index(info: BatchInfo, x: Tensor, dims: Dims, indices: Indices) -> tuple[Tensor, ...]:
    """Index tensors with the example's number prepended, for the batch axis."""
    rank = max(len(logical_shape(one, dim)) for one, dim in zip(indices, dims))
    examples = reshape(arange(info.batch_size, device=x.device), (info.batch_size, *(1,) * rank))
    return (examples, *[expand_rank(one, dim, rank) for one, dim in zip(indices, dims)])


def _front_permutation(axis: int, count: int, rank: int) -> tuple[int, ...]:
    """The permutation that moves ``count`` axes of the examples, from ``axis`` on, directly after the batch axis."""
    moved = range(axis + 1, axis + 1 + count)
    return (0, *moved, *[at for at in range(1, rank) if at not in moved])


def _read_batched(info: BatchInfo, in_dims: Dims, x: Tensor, indices: Indices, axis: int) -> Batched:
    own = logical_shape(x, in_dims[0])
    index_shape("index", own, example_index_specs(indices, in_dims[1]), axis)
    start = normalize_axis("index", axis, len(own))
    if all(dim is None for dim in in_dims[1]):
        return info.call(x, indices, start + 1), 0
    if in_dims[0] is None:
        rank = max(len(logical_shape(one, dim)) for one, dim in zip(indices, in_dims[1]))
        return info.call(
            x, tuple(expand_rank(i, dim, rank) for i, dim in zip(indices, in_dims[1])), start
        ), start
    positions = _prepend_example_index(info, x, in_dims[1], indices)
    order = _front_permutation(start, len(indices), len(x.shape))
    result = info.call(permute(x, order) if start else x, positions, 0)
    back = _front_permutation(start, len(positions[0].shape) - 1, len(result.shape))
    return (permute(result, inverse_permutation(back)) if start else result), 0


def example_index_specs(indices: Indices, dims: Dims) -> list[TensorSpec]:
    """The specs of index tensors for one example."""
    specs = [spec_of(one) for one in indices]
    return [spec._replace(shape=logical_shape(i, dim)) for spec, i, dim in zip(specs, indices, dims)]


def _selects_nothing(self: TensorSpec, indices: Indices, axis: int = 0) -> bool:
    """Whether no position has to be checked."""
    return 0 in spec_of(self).shape and all(0 in spec_of(one).shape for one in indices)


def _empty_selection(self: Tensor, indices: Indices, axis: int = 0) -> Tensor:
    shape = index_shape("index", spec_of(self).shape, indices, axis)
    lead, rest = spec_of(self).shape[:axis], spec_of(self).shape[axis + len(indices) :]
    return zeros((*lead, *shape, *rest), dtype=self.dtype, device=self.device)


index: OperatorFunction[Tensor] = array_op(
    "gather",
    "index(Tensor self, Tensor[] indices, int axis=0) -> Tensor",
    _read_shape_rule,
    _read_kernel,
    doc="""The elements at integer positions; what ``x[:, i, j]`` does with index tensors ``i`` and ``j``.

    Args:
        self: any tensor.
        indices: integer tensors that broadcast, one for each of consecutive axes; negative values count from the end.
        axis: the first of these axes.

    Returns:
        A new tensor; the broadcast shape of the indices takes the place of the indexed axes.

    Raises:
        OutOfBoundsError: a position is out of bounds, or there are more indices than axes.
        IndexArgumentError: an index tensor does not have an integer dtype.
        ShapeError: the indices do not broadcast.

    >>> td.ops.td.index(td.arange(5), [td.asarray([3, -1])]).tolist()
    [3, 4]
    """,
    index_spec=IndexSpec(),
    decomposition=Decomposition(_empty_selection, _selects_nothing),
    reference="references.basic.index",
    dtypes=ALL,
    derivative=Rule(
        vjp={"self": lambda g, indices, axis, self_spec: add_into_zeros(g, indices, axis, self_spec)},
        jvp={"self": lambda t, indices, axis: index(t, indices, axis)},
    ),
    batching=_read_batched,
    samples="samples.indexing.gather_read_samples",
    errors="samples.indexing.gather_read_errors",
    method=False,
)


# -- writing -----------------------------------------------------------------------------------------------------------
def _write_shape_rule(
    self: TensorSpec, indices: Indices, value: Any, axis: int = 0, *, accumulate: bool = False
) -> TensorSpec:
    spec = spec_of(self)
    shape = index_shape("index_put", spec.shape, indices, axis)
    check_storable("index_put", spec, value, shape, accumulate)
    return TensorSpec(spec.shape, spec.dtype, spec.device)


def write_at_indices(
    xp: ModuleType,
    out: Array,
    indices: Indices,
    value: Any,
    axis: int,
    combine: str,
    name: str = "index_put",
) -> None:
    """Write into an array at integer positions, or combine its elements with values by an unbuffered ufunc.

    Args:
        xp: numpy or cupy.
        out: the array that is written.
        indices: arrays of integers for consecutive axes.
        value: an array or a number; it is cast to the dtype of ``out``.
        axis: the first of the axes.
        combine: the name of the ufunc; empty: replace the elements; the last of several values is stored.
        name: the name of the operator, for messages.

    Raises:
        OutOfBoundsError: a position is out of bounds; nothing is written.
    """
    # In row-major order: NumPy writes in the memory order of the index arrays.
    key = _numpy_key(xp, out, [xp.asarray(one, order="C") for one in indices], axis)
    value = call_quietly(xp.asarray(value).astype, out.dtype, "C")  # infinities have no integer
    try:
        if combine:
            # NumPy's ``ufunc.at`` reads out of bounds if the value is smaller than the selection.
            with np.errstate(all="ignore"):
                getattr(xp, combine).at(out, key, xp.broadcast_to(value, _selected_shape(out.shape, key)))
        else:
            out[key] = value
    except IndexError as fault:
        raise _out_of_bounds(name, out.shape, fault) from None


def _write_kernel(
    xp: ArrayModule, self: Array, indices: Indices, value: Any, axis: int, *, accumulate: bool
) -> Array:
    out = xp.array(self)
    write_at_indices(xp, out, indices, value, axis, "add" if accumulate else "")
    return out


def _is_last_write(indices: Indices, axis: int, spec: TensorSpec) -> Tensor:
    """Compute a mask of the written elements that are kept: of those with equal indices, the last."""
    shape = index_shape("index_put", spec.shape, indices, axis)
    size = TensorSpec(shape, DEFAULT_INT).size
    order = reshape(arange(size, device=spec.device), shape)
    written = index_put(zeros(spec.shape, dtype=DEFAULT_INT, device=spec.device), indices, order, axis)
    return eq(index(written, indices, axis), order)


def _value_vjp(
    g: Tensor, indices: Indices, axis: int, accumulate: bool, self_spec: TensorSpec, value_spec: TensorSpec
) -> Tensor:
    read = index(g, indices, axis)
    kept = read if accumulate else where(_is_last_write(indices, axis, self_spec), read, 0)
    return sum_to(kept, value_spec.shape)


def write_batched(
    info: BatchInfo, in_dims: Dims, x: Tensor, indices: Indices, value: Any, axis: int, **options: Any
) -> Batched:
    """Batching rule of ``index_put`` and ``index_reduce``: the example's number is one more index tensor."""
    own = logical_shape(x, in_dims[0])
    selected = index_shape("index_put", own, example_index_specs(indices, in_dims[1]), axis)
    start = normalize_axis("index_put", axis, len(own))
    x = ensure_batch_axis(x, in_dims[0], info.batch_size)
    value = expand_rank(value, in_dims[2], len(selected))
    if all(dim is None for dim in in_dims[1]):
        return info.call(x, indices, value, start + 1, **options), 0
    positions = _prepend_example_index(info, x, in_dims[1], indices)
    if not start:
        return info.call(x, positions, value, 0, **options), 0
    order = _front_permutation(start, len(indices), len(x.shape))
    if spec_of(value).shape:
        value = expand_rank(ensure_batch_axis(value, in_dims[2], info.batch_size), 0, len(selected))
        value = permute(value, _front_permutation(start, len(positions[0].shape) - 1, len(value.shape)))
    result = info.call(permute(x, order), positions, value, 0, **options)
    return permute(result, inverse_permutation(order)), 0


index_put: OperatorFunction[Tensor] = array_op(
    "scatter",
    "index_put(Tensor self, Tensor[] indices, Tensor value, int axis=0, *, bool accumulate=False) -> Tensor",
    _write_shape_rule,
    _write_kernel,
    doc="""A copy of the tensor with the elements at integer positions replaced, or added to.

    Args:
        self: any tensor.
        indices: integer tensors, as for ``index``.
        value: a tensor that broadcasts to the result of ``index``, or a number; cast to the dtype of ``self``.
        axis: the first of the indexed axes.
        accumulate: whether to add the values, all of several for one position; otherwise the last one is stored.

    Returns:
        A new tensor of the shape and dtype of ``self``.

    Raises:
        OutOfBoundsError: a position is out of bounds.
        IndexArgumentError: an index tensor does not have an integer dtype.
        ShapeError: the value does not broadcast.
        DTypeError: the value's dtype is of a higher kind (a float into integers).

    >>> td.ops.td.index_put(td.zeros(3), [td.asarray([1, 1])], 2.0, accumulate=True).tolist()
    [0.0, 4.0, 0.0]
    """,
    index_spec=IndexSpec(writes=True, combine=lambda accumulate=False: "add" if accumulate else ""),
    reference="references.basic.index_put",
    dtypes=ALL,
    derivative=Rule(
        vjp={
            "self": lambda g, indices, axis, accumulate: g if accumulate else index_put(g, indices, 0, axis),
            "value": _value_vjp,
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
    batching=write_batched,
    samples="samples.indexing.gather_write_samples",
    errors="samples.indexing.gather_write_errors",
    method=False,
    autocast="promote",
)


def add_into_zeros(g: Tensor, indices: Indices, axis: int, spec: TensorSpec) -> Tensor:
    """Zeros of a spec with ``g`` added at integer positions: the transpose of reading."""
    return index_put(zeros(spec.shape, dtype=g.dtype, device=spec.device), indices, g, axis, accumulate=True)
