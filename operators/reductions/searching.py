"""searchsorted and isin."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ...errors import DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import ALL, DEFAULT_INT, REAL, DType, as_dtype, bool_, is_half
from ...registry.values import SCALARS, TensorSpec
from ..creation.creation import full
from ..creation.full import zeros
from ..declare.batching import Batched, BatchInfo, Dims, ensure_batch_axis, flatten_examples, logical_shape
from ..declare.derivatives import NotDifferentiable
from ..declare.kinds import array_op, composite
from ..declare.native_kernel import Decomposition, NativeKernel, NativeLoop
from ..declare.shape_rules import common_device, compute_dtype, is_tensor, promoted_dtype, spec_of
from ..elementwise.casting import cast
from ..elementwise.comparison import eq, logical_and, logical_not, logical_or, lt, ne
from ..elementwise.selection import where
from ..indexing.slicing import basic_index
from ..indexing.take import take, take_along_axis
from ..shape.rearrange import expand_dims
from ..shape.views import reshape
from .folds import any as any_over
from .sorting import sort

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Number, Operand, Tensor

_ORDERED = (bool_, *REAL)


# -- searchsorted ------------------------------------------------------------------------------------------------------
def _shape_rule(
    self: TensorSpec, other: Operand, side: str = "left", sorter: TensorSpec | None = None
) -> TensorSpec:
    spec, values = spec_of(self), spec_of(other)
    compute_dtype("searchsorted", "same", _ORDERED, (self, other))
    if len(spec.shape) != 1:
        raise ShapeError(f"searchsorted: the sorted tensor has one axis, not shape {spec.shape}")
    if side not in ("left", "right"):
        raise ValueArgumentError(f"searchsorted: side must be 'left' or 'right', not {side!r}")
    if sorter is not None and not spec_of(sorter).dtype.is_integer:
        raise DTypeError(f"searchsorted: the sorter has integers, not {spec_of(sorter).dtype}")
    if sorter is not None and spec_of(sorter).shape != spec.shape:
        raise ShapeError(
            f"searchsorted: the sorter of shape {spec_of(sorter).shape} needs the shape {spec.shape} of the tensor"
        )
    tensors: tuple[Operand, ...] = (self, other) if sorter is None else (self, other, sorter)
    return TensorSpec(values.shape, DEFAULT_INT, common_device("searchsorted", tensors))


def _kernel(xp: ArrayModule, self: Array, other: Array | Number, side: str, sorter: Array | None) -> Array:
    spec = TensorSpec(self.shape, as_dtype(self.dtype))
    values = other if isinstance(other, SCALARS) else TensorSpec(other.shape, as_dtype(other.dtype))
    dtype = promoted_dtype("searchsorted", (spec, values))
    native = xp.float32 if is_half(dtype.np) else dtype.np
    table = self.astype(native)
    if sorter is not None:
        table = table[sorter]
    result = xp.searchsorted(table, xp.asarray(other).astype(native), side)
    return xp.asarray(result).astype(xp.int64)


def _batched(
    info: BatchInfo, in_dims: Dims, self: Tensor, other: Tensor, side: str, sorter: Tensor | None
) -> Batched:
    """Batching rule: examples that share the sorted tensor are one call; otherwise a binary search in all rows."""
    if in_dims[0] is None and in_dims[3] is None:
        return info.call(self, other, side, sorter), 0
    _shape_rule(
        TensorSpec(logical_shape(self, in_dims[0]), self.dtype),
        other,
        side,
        None if sorter is None else TensorSpec(logical_shape(sorter, in_dims[3]), sorter.dtype),
    )
    dtype = promoted_dtype("searchsorted", (self, other))
    rows = cast(ensure_batch_axis(self, in_dims[0], info.batch_size), dtype)
    if sorter is not None:
        rows = take_along_axis(rows, ensure_batch_axis(sorter, in_dims[3], info.batch_size), 1)
    values = _to_tensor(other, dtype, self.device)
    values = ensure_batch_axis(values, in_dims[1], info.batch_size)
    return reshape(bisect(rows, flatten_examples(values), side), values.shape), 0


def bisect(rows: Tensor, values: Tensor, side: str) -> Tensor:
    """For each row, the positions of its values, by bisection; NaN is the largest value."""
    size = rows.shape[1]
    low = zeros(values.shape, dtype=DEFAULT_INT, device=rows.device)
    high = low + size
    for _ in range(size.bit_length()):
        middle = (low + high) // 2
        item = take_along_axis(rows, where(lt(middle, size), middle, size - 1), 1)
        one, two = (item, values) if side == "left" else (values, item)
        is_less = logical_or(lt(one, two), logical_and(ne(two, two), eq(one, one)))
        is_behind = logical_and(lt(low, high), is_less if side == "left" else logical_not(is_less))
        low, high = where(is_behind, middle + 1, low), where(is_behind, high, middle)
    return low


def _search_by_sorter(self: Tensor, other: Operand, side: str, sorter: Tensor) -> Tensor:
    return searchsorted(take(self, sorter), other, side)


searchsorted: OperatorFunction[Tensor] = array_op(
    "gather",
    "searchsorted(Tensor self, Tensor other, str side='left', Tensor? sorter=None) -> Tensor",
    _shape_rule,
    _kernel,
    doc="""The positions at which values can be inserted into a sorted tensor so that it stays sorted.

    Args:
        self: a real tensor of one axis in ascending order; NaN comes last.
        other: the values, of any shape; a number or a tensor.
        side: ``"left"``: before elements equal to the value; ``"right"``: behind them.
        sorter: the positions that sort ``self``, such as argsort's result, if it is not sorted.

    Returns:
        An int64 tensor of the shape of ``other``.

    Raises:
        ShapeError: ``self`` does not have one axis, or ``sorter`` has another shape.
        ValueArgumentError: another ``side``.
        DTypeError: a complex tensor, or ``sorter`` does not have integers.

    >>> td.searchsorted(td.asarray([1, 3, 5]), td.asarray([3, 9])).tolist()
    [1, 3]
    """,
    reference="references.arrays.searchsorted",
    dtypes=_ORDERED,
    derivative=NotDifferentiable("searchsorted returns integers"),
    native=NativeKernel(
        (
            NativeLoop(
                "tandem", "searchsorted", lambda self, other, side, sorter: side == "left" and sorter is None
            ),
            NativeLoop(
                "tandem",
                "searchsorted_right",
                lambda self, other, side, sorter: side == "right" and sorter is None,
            ),
        ),
        promotes=True,
        is_exact=True,
    ),
    decomposition=Decomposition(_search_by_sorter, lambda *args: args[3] is not None),
    batching=_batched,
    samples="samples.reductions.search_samples",
    errors="samples.reductions.search_errors",
    spellings={"v": "other", "values": "other", "sorted_sequence": "self"},
)


def _to_tensor(x: Operand, dtype: DType, device: str) -> Tensor:
    return cast(x, dtype) if is_tensor(x) else full((), x, dtype=dtype, device=device)


# -- isin --------------------------------------------------------------------------------------------------------------
FEW_VALUES = 8  # that `isin` compares one by one


@composite(
    "isin(Tensor self, Tensor other, *, bool invert=False) -> Tensor",
    doc="""Whether each element equals one of some values.

    Args:
        self: a tensor or a number.
        other: the values, of any shape; a tensor or a number.
        invert: whether to return where no value is equal instead.

    Returns:
        A bool tensor of the shape of ``self``. NaN equals nothing.

    >>> td.isin(td.asarray([1, 2, 3]), td.asarray([3, 1])).tolist()
    [True, False, True]
    """,
    reference="references.arrays.isin",
    samples="samples.reductions.isin_samples",
    dtypes=ALL,
    method=False,
    spellings={"element": "self", "elements": "self", "test_elements": "other"},
)
def isin(self: Tensor, other: Tensor, *, invert: bool) -> Tensor:
    size, dtype = spec_of(other).size, promoted_dtype("isin", (self, other))
    device = common_device("isin", (self, other))
    elements, values = _to_tensor(self, dtype, device), reshape(_to_tensor(other, dtype, device), (size,))
    if 0 < size <= FEW_VALUES:
        result = functools.reduce(
            logical_or, [eq(elements, basic_index(values, (at,))) for at in range(size)]
        )
    elif dtype.kind == "c" or not size:
        result = any_over(eq(expand_dims(elements, -1), values), -1)
    else:
        table = sort(values)
        position = searchsorted(table, elements)
        inside = lt(position, size)
        result = logical_and(inside, eq(take(table, where(inside, position, 0)), elements))
    return ~result if invert else result
