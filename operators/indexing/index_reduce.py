"""``index_reduce``: combine elements at integer positions with all values for each position, as ``x.at[i].max(v)``.

Source: ``scatter_mul``, ``scatter_min`` and ``scatter_max`` of ``jax.lax``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import DTypeError, ValueArgumentError
from ...registry.dtypes import ALL
from ...registry.values import TensorSpec
from ..creation.creation import arange
from ..creation.full import ones_like, zeros
from ..declare.declaration import IndexSpec
from ..declare.derivatives import Rule
from ..declare.kinds import array_op
from ..declare.shape_rules import is_tensor, spec_of
from ..elementwise.arithmetic import mul
from ..elementwise.casting import astype
from ..elementwise.comparison import eq, ge, logical_and
from ..elementwise.selection import maximum, minimum, where
from ..reductions.sorting import argsort
from ..shape.rearrange import flip
from ..shape.views import broadcast_to, reshape, sum_to
from .gather import Indices, index, index_put, index_shape, write_at_indices, write_batched
from .slicing import check_storable

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Tensor

COMBINE: dict[str, Callable[[Any, Any], Any]] = {"multiply": mul, "minimum": minimum, "maximum": maximum}
COMBINED_BY = {"multiply": "mul", "minimum": "minimum", "maximum": "maximum"}
"""The node of the scalar IR that combines two elements."""


# -- runs of equal positions -------------------------------------------------------------------------------------------
def _is_same_run(indices: Any, width: int) -> Tensor:
    """Whether the entry ``width`` before each entry of sorted positions has the same position."""
    numbers = arange(indices.shape[0], device=indices.device)
    return logical_and(eq(indices, indices.roll(width, 0)), ge(numbers, width))


def _combine_runs(indices: Any, values: Tensor, combine: Callable[[Any, Any], Any]) -> Tensor:
    """An inclusive scan of the values over runs of equal positions, by doubling the covered width in each step."""
    width = 1
    columns = (1,) * (len(values.shape) - 1)
    while width < indices.shape[0]:
        same = _is_same_run(indices, width)
        same = reshape(same, (*same.shape, *columns)) if columns else same
        values = where(same, combine(values.roll(width, 0), values), values)
        width *= 2
    return values


def combine_sorted(
    self: Tensor, positions: Any, values: Tensor, combine: Callable[[Any, Any], Any]
) -> Tensor:
    """The rows of a tensor combined with all values for each: store the scans over runs, and the last one stays.

    Args:
        self: a tensor.
        positions: row numbers, sorted.
        values: a row for each position.
        combine: combines two tensors element by element.
    """
    result = combine(index(self, (positions,), 0), _combine_runs(positions, values, combine))
    return index_put(self, (positions,), result, 0)


def _products_before(indices: Any, values: Tensor) -> Tensor:
    """An exclusive scan of products over runs of equal positions."""
    return where(_is_same_run(indices, 1), _combine_runs(indices, values, mul).roll(1, 0), ones_like(values))


def sort_by_position(spec: TensorSpec, positions: Tensor, value: Any) -> tuple[Any, Any, Any]:
    """Sort the selected positions of a flattened tensor, and the values with them.

    Args:
        spec: the shape and dtype of the tensor.
        positions: of the elements in the flattened tensor, in the shape of the selection.
        value: broadcasts to the selection.

    Returns:
        The sorted positions; their values; the permutation that sorted them.
    """
    flat = reshape(positions, (-1,))
    order = argsort(flat)
    values = reshape(broadcast_to(_as_tensor(value, spec), positions.shape), (-1,))
    return index(flat, (order,), 0), index(values, (order,), 0), order


def _as_tensor(value: Any, spec: TensorSpec) -> Tensor:
    """A value as a tensor of the dtype of a spec."""
    if is_tensor(value):
        return astype(value, spec.dtype, copy=False)
    result: Tensor = zeros((), dtype=spec.dtype, device=spec.device) + value
    return result


def _product_of_others(self: Tensor, indices: Indices, value: Any, axis: int) -> Tensor:
    """For each value the product of the others for its position, without a division, so zeros are allowed."""
    spec = spec_of(self)
    selected = index(reshape(arange(spec.size, device=spec.device), spec.shape), indices, axis)
    positions, values, order = sort_by_position(spec, selected, value)
    behind = flip(_products_before(flip(positions, 0), flip(values, 0)), 0)
    others = mul(_products_before(positions, values), behind)
    return reshape(index(others, (argsort(order),), 0), selected.shape)


def reduce_by_sorting(self: Tensor, positions: Tensor, value: Any, reduce: str) -> Tensor:
    """``index_reduce`` at positions in the flattened tensor, composed of other operators."""
    positions, values, _ = sort_by_position(spec_of(self), positions, value)
    result = combine_sorted(reshape(self, (-1,)), positions, values, COMBINE[reduce])
    return reshape(result, spec_of(self).shape)


# -- derivatives -------------------------------------------------------------------------------------------------------
def _tie_shares(self: Tensor, indices: Indices, value: Any, axis: int, out: Tensor) -> tuple[Tensor, Tensor]:
    """The shares of the elements and of the values in the extremum: 1/n for each of n ties."""
    kept = where(eq(self, out), 1.0, 0.0)
    chosen = where(eq(_as_tensor(value, spec_of(self)), index(out, indices, axis)), 1.0, 0.0)
    count = index_put(kept, indices, chosen, axis, accumulate=True)
    return kept / count, chosen / index(count, indices, axis)


def _self_vjp(
    g: Tensor, self: Tensor, indices: Indices, value: Any, axis: int, reduce: str, out: Tensor
) -> Tensor:
    if reduce == "multiply":
        return index_reduce(g, indices, value, axis, reduce=reduce)
    return g * _tie_shares(self, indices, value, axis, out)[0]


def _value_vjp(
    g: Tensor,
    self: Tensor,
    indices: Indices,
    value: Any,
    axis: int,
    reduce: str,
    out: Tensor,
    value_spec: TensorSpec,
) -> Tensor:
    if reduce == "multiply":
        slope = _product_of_others(self, indices, value, axis)
        return sum_to(index(g * self, indices, axis) * slope, value_spec.shape)
    return sum_to(index(g, indices, axis) * _tie_shares(self, indices, value, axis, out)[1], value_spec.shape)


def _self_jvp(
    t: Tensor, self: Tensor, indices: Indices, value: Any, axis: int, reduce: str, out: Tensor
) -> Tensor:
    return _self_vjp(t, self, indices, value, axis, reduce, out)


def _value_jvp(
    t: Tensor, self: Tensor, indices: Indices, value: Any, axis: int, reduce: str, out: Tensor
) -> Tensor:
    if reduce == "multiply":
        slope = _product_of_others(self, indices, value, axis)
    else:
        slope = _tie_shares(self, indices, value, axis, out)[1]
    empty = zeros(spec_of(self).shape, dtype=t.dtype, device=t.device)
    added = index_put(empty, indices, t * slope, axis, accumulate=True)
    return added * self if reduce == "multiply" else added


# -- the operator ------------------------------------------------------------------------------------------------------
def _shape_rule(self: TensorSpec, indices: Indices, value: Any, axis: int = 0, *, reduce: str) -> TensorSpec:
    spec = spec_of(self)
    if reduce not in COMBINE:
        raise ValueArgumentError(
            f"index_reduce: reduce is one of {', '.join(map(repr, COMBINE))}, not {reduce!r}"
        )
    if spec.dtype.kind == "c" and reduce != "multiply":
        raise DTypeError(f"index_reduce: complex numbers have no {reduce}, and self is {spec}")
    check_storable("index_reduce", spec, value, index_shape("index_reduce", spec.shape, indices, axis))
    return TensorSpec(spec.shape, spec.dtype, spec.device)


def _kernel(xp: ArrayModule, self: Array, indices: Indices, value: Any, axis: int, *, reduce: str) -> Array:
    out = xp.array(self)
    write_at_indices(xp, out, indices, value, axis, reduce, "index_reduce")
    return out


index_reduce: OperatorFunction[Tensor] = array_op(
    "scatter",
    "index_reduce(Tensor self, Tensor[] indices, Tensor value, int axis=0, *, str reduce) -> Tensor",
    _shape_rule,
    _kernel,
    doc="""A copy of the tensor with elements at integer positions combined with all values for each position.

    Args:
        self: any tensor.
        indices: integer tensors, as for ``index``.
        value: a tensor that broadcasts to the result of ``index``, or a number; cast to the dtype of ``self``.
        axis: the first of the indexed axes.
        reduce: ``"multiply"``, ``"minimum"`` or ``"maximum"``.

    Returns:
        A new tensor of the shape and dtype of ``self``.

    Raises:
        OutOfBoundsError: a position is out of bounds.
        IndexArgumentError: an index tensor does not have an integer dtype.
        ShapeError: the value does not broadcast.
        DTypeError: the value's dtype is of a higher kind, or the numbers are complex and ``reduce`` orders them.
        ValueArgumentError: another ``reduce``.

    >>> td.ops.td.index_reduce(td.ones(3), [td.asarray([1, 1])], 2.0, reduce="multiply").tolist()
    [1.0, 4.0, 1.0]
    """,
    index_spec=IndexSpec(writes=True, combine=lambda reduce: COMBINED_BY[reduce]),
    reference="references.basic.index_reduce",
    dtypes=ALL,
    derivative=Rule(
        vjp={"self": _self_vjp, "value": _value_vjp}, jvp={"self": _self_jvp, "value": _value_jvp}
    ),
    batching=write_batched,
    samples="samples.indexing.index_reduce_samples",
    errors="samples.indexing.index_reduce_errors",
    method=False,
    autocast="promote",
)
