"""argsort, sort, argtopk and sort_values; ``sort.dim`` returns the indices too, as in PyTorch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ValueArgumentError
from ...registry.dtypes import DEFAULT_INT, REAL, bfloat16, bool_, is_half
from ...registry.values import TensorSpec
from ..declare.batching import Batched, BatchInfo, Dims
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.derivatives import NotDifferentiable, Rule
from ..declare.kinds import array_op, composite
from ..declare.named_results import ValuesAndIndices
from ..declare.native_kernel import NativeKernel, NativeLoop
from ..declare.shape_rules import compute_dtype, normalize_axis, spec_of
from ..indexing.take import take_along_axis

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Tensor

_ORDERED = (bool_, *REAL)
_LEAST_UNSTABLE = 4  # bytes of the elements that NumPy sorts by vectors if equal ones may be exchanged
_TEXT = """

    Args:
        self: a real tensor of at least one axis; NaN comes last.
        axis: the axis to sort along.
        descending: whether to sort from the largest to the smallest element.
        stable: whether equal elements keep their order; {stable}

    Returns:
        A new tensor of the same shape{dtype}.

    Raises:
        OutOfBoundsError: there is no such axis.
        DTypeError: the tensor is complex.
"""


def _shape_rule(
    self: TensorSpec, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> TensorSpec:
    spec = spec_of(self)
    compute_dtype("argsort", "same", _ORDERED, (spec,))
    normalize_axis("argsort", axis, len(spec.shape))
    return TensorSpec(spec.shape, DEFAULT_INT, spec.device)


def _is_stable(itemsize: int, stable: bool) -> bool:
    """Return whether equal elements keep their order: those of one or two bytes are sorted by counting anyway."""
    return stable or itemsize < _LEAST_UNSTABLE


def _argsort_loop(name: str, is_stable: bool, is_descending: bool) -> NativeLoop:
    def computes(self: TensorSpec, *, stable: bool, descending: bool, **options: object) -> bool:
        return (_is_stable(self.dtype.itemsize, stable), descending) == (is_stable, is_descending)

    return NativeLoop("tandem", name, computes)


def _kernel(xp: ArrayModule, self: Array, *, axis: int, descending: bool, stable: bool) -> Array:
    values = self.astype(xp.float32) if is_half(self.dtype) else self
    if not _is_stable(self.dtype.itemsize, stable):
        order: Array = xp.argsort(values, axis)
        return xp.flip(order, axis) if descending else order
    if not descending:
        return xp.argsort(values, axis, kind="stable")
    # stable: sort the reversed tensor in ascending order and reverse the result
    result = xp.flip(xp.argsort(xp.flip(values, axis), axis, kind="stable"), axis)
    out: Array = self.shape[axis] - 1 - result
    return out


def _batched(info: BatchInfo, in_dims: Dims, self: Tensor, *, axis: int, **options: object) -> Batched:
    return info.call(self, axis=normalize_axis(info.name, axis, len(self.shape) - 1) + 1, **options), 0


argsort = array_op(
    "gather",
    "argsort(Tensor self, *, int axis=-1, bool descending=False, bool stable=True) -> Tensor",
    _shape_rule,
    _kernel,
    doc="The positions of the elements in sorted order along an axis."
    + _TEXT.format(
        dtype=", int64",
        stable="False is up to three\n            times faster for elements of 4 and 8 bytes.",
    )
    + "\n    >>> td.argsort(td.asarray([3, 1, 2])).tolist()\n    [1, 2, 0]\n",
    reference="references.arrays.argsort",
    dtypes=_ORDERED,
    derivative=NotDifferentiable("argsort returns integers"),
    native=NativeKernel(
        (
            _argsort_loop("argsort", True, False),
            _argsort_loop("argsort_descending", True, True),
            _argsort_loop("argsort_any", False, False),
            _argsort_loop("argsort_any_descending", False, True),
        ),
        failure="argsort: there is no memory for the keys",
        error=MemoryError,
        is_exact=True,  # without the order of equal elements the loop is NumPy's own
        axis=lambda self, *, axis, **options: axis,
    ),
    batching=_batched,
    samples="samples.reductions.sorting_samples",
    errors="samples.reductions.sorting_errors",
)


def _topk_shape_rule(self: TensorSpec, k: int, *, axis: int = -1, descending: bool = True) -> TensorSpec:
    spec = _shape_rule(self, axis=axis)
    shape, along = list(spec.shape), normalize_axis("argtopk", axis, len(spec.shape))
    if not 0 <= k <= shape[along]:
        raise ValueArgumentError(f"argtopk: k must be between 0 and {shape[along]}, not {k}")
    shape[along] = k
    return TensorSpec(tuple(shape), spec.dtype, spec.device)


def _topk_kernel(xp: ArrayModule, self: Array, k: int, *, axis: int, descending: bool) -> Array:
    order = _kernel(xp, self, axis=axis, descending=descending, stable=True)
    first: Array = xp.take(order, xp.arange(k), axis)
    return first


def _topk_batched(
    info: BatchInfo, in_dims: Dims, self: Tensor, k: int, *, axis: int, **options: object
) -> Batched:
    along = normalize_axis(info.name, axis, len(self.shape) - 1) + 1
    return info.call(self, k, axis=along, **options), 0


FEW_OF = 8  # a heap selects at most one in so many elements; otherwise all are sorted


def _selects(is_descending: bool, self: TensorSpec, k: int, *, axis: int, descending: bool) -> bool:
    """Whether the loop of one order computes a call by a heap of the selected elements."""
    return descending == is_descending and k * FEW_OF <= self.shape[axis]


argtopk = array_op(
    "gather",
    "argtopk(Tensor self, int k, *, int axis=-1, bool descending=True) -> Tensor",
    _topk_shape_rule,
    _topk_kernel,
    doc="""The positions of the first ``k`` elements in sorted order along an axis: a part of argsort's result.

    Args:
        self: a real tensor of at least one axis; NaN is the largest number, and equal elements keep their order.
        k: how many.
        axis: the axis to select along.
        descending: whether to return the largest elements, from the largest on, or the smallest.

    Returns:
        A new tensor, int64, whose axis has ``k`` elements.

    Raises:
        OutOfBoundsError: there is no such axis.
        ValueArgumentError: ``k`` is negative, or larger than the length of the axis.
        DTypeError: the tensor is complex.

    >>> td.ops.td.argtopk(td.asarray([5, 1, 3]), 2).tolist()
    [0, 2]
    """,
    reference="references.arrays.argtopk",
    dtypes=_ORDERED,
    derivative=NotDifferentiable("argtopk returns integers"),
    native=NativeKernel(
        (
            NativeLoop("tandem", "argtopk", partial(_selects, False)),
            NativeLoop("tandem", "argtopk_descending", partial(_selects, True)),
            NativeLoop("tandem", "argtopk_sorted", lambda self, k, *, descending, axis: not descending),
            NativeLoop(
                "tandem", "argtopk_sorted_descending", lambda self, k, *, descending, axis: descending
            ),
        ),
        failure="argtopk: there is no memory for the keys",
        error=MemoryError,
        is_exact=True,
        axis=lambda self, k, *, axis, **options: axis,
    ),
    batching=_topk_batched,
    samples="samples.order.argtopk_samples",
    errors="samples.order.argtopk_errors",
    method=False,
)


def _values_shape_rule(self: TensorSpec, *, axis: int = -1, descending: bool = False) -> TensorSpec:
    spec = spec_of(self)
    _shape_rule(spec, axis=axis)
    return spec


def _has_different_equals(xp: ArrayModule, self: Array) -> bool:
    """Whether NumPy may exchange floats that are equal to others but have other bits; CuPy does not."""
    is_float = is_half(self.dtype) or self.dtype.kind == "f"
    return is_float and xp is np and bool((np.isnan(self) | (np.signbit(self) & (self == 0))).any())


def _values_kernel(xp: ArrayModule, self: Array, *, axis: int, descending: bool) -> Array:
    if _has_different_equals(xp, self):
        order = _kernel(xp, self, axis=axis, descending=descending, stable=True)
        result: Array = xp.take_along_axis(self, order, axis)
        return result
    values = self.astype(xp.float32) if is_half(self.dtype) else self
    if descending:
        values = xp.flip(values, axis)
    values = xp.sort(values, axis).astype(self.dtype)
    return xp.flip(values, axis) if descending else values


def _values_loop(name: str, has_function: bool, is_descending: bool) -> NativeLoop:
    """Declare a loop; NumPy has no function for bfloat16, and elements of one byte are sorted faster by counting."""

    def computes(self: TensorSpec, *, descending: bool, **options: object) -> bool:
        by_function = self.dtype.itemsize > 1 and self.dtype is not bfloat16
        return (by_function, descending) == (has_function, is_descending)

    return NativeLoop("tandem", name, computes)


def _values_vjp(g: Tensor, self: Tensor, axis: int, descending: bool) -> Tensor:
    order = argsort(self, axis=axis, descending=descending)
    return take_along_axis(g, argsort(order, axis=axis), axis)


sort_values = array_op(
    "gather",
    "sort_values(Tensor self, *, int axis=-1, bool descending=False) -> Tensor",
    _values_shape_rule,
    _values_kernel,
    doc="""The elements in sorted order along an axis; equal elements keep their order.

    Args:
        self: a real tensor of at least one axis; NaN is the largest number.
        axis: the axis to sort along.
        descending: whether to sort from the largest to the smallest element.

    Returns:
        A new tensor of the same shape and dtype.

    Raises:
        OutOfBoundsError: there is no such axis.
        DTypeError: the tensor is complex.

    >>> td.ops.td.sort_values(td.asarray([3, 1, 2])).tolist()
    [1, 2, 3]
    """,
    reference="references.arrays.sort",
    dtypes=_ORDERED,
    derivative=Rule(
        vjp={"self": _values_vjp},
        jvp={
            "self": lambda t, self, axis, descending: take_along_axis(
                t, argsort(self, axis=axis, descending=descending), axis
            )
        },
    ),
    native=NativeKernel(
        (
            _values_loop("sort_keys", False, False),
            _values_loop("sort_keys_descending", False, True),
            _values_loop("sort_values", True, False),
            _values_loop("sort_values_descending", True, True),
        ),
        failure="sort: there is no memory for the elements",
        error=MemoryError,
        is_exact=True,
        axis=lambda self, *, axis, **options: axis,
    ),
    batching=_batched,
    samples="samples.reductions.sorting_samples",
    errors="samples.reductions.sorting_errors",
    method=False,
)


@composite(
    "sort(Tensor self, *, int axis=-1, bool descending=False, bool stable=True) -> Tensor",
    doc="The elements in sorted order along an axis."
    + _TEXT.format(
        dtype=" and dtype",
        stable="they always do.",
    )
    + "\n    >>> td.sort(td.asarray([3, 1, 2])).tolist()\n    [1, 2, 3]\n",
    reference="references.arrays.sort",
    samples="samples.reductions.sorting_samples",
    errors="samples.reductions.sorting_errors",
    dtypes=_ORDERED,
)
def sort(self: Tensor, *, axis: int, descending: bool, stable: bool) -> Tensor:
    return sort_values(self, axis=axis, descending=descending)


@composite(
    "sort.dim(Tensor self, int dim, bool descending=False, *, bool? stable=None) -> (Tensor values, Tensor indices)",
    doc="""The elements in sorted order along an axis, and their indices.

    Args:
        self: a real tensor of at least one axis; NaN comes last, or first in descending order.
        dim: the axis to sort along.
        descending: whether to sort from the largest to the smallest element.
        stable: whether equal elements keep their order; sorting is always stable.

    Returns:
        ``(values, indices)``, a named tuple; the indices are int64.

    Raises:
        OutOfBoundsError: there is no such axis.
        DTypeError: the tensor is complex.

    >>> td.sort(td.asarray([3, 1, 2]), dim=0).indices.tolist()
    [1, 2, 0]
    """,
    reference="references.order.sort_dim",
    samples="samples.order.sort_samples",
    errors=lambda: [ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds")],
    dtypes=_ORDERED,
    spellings={"axis": "dim"},
    result_type=ValuesAndIndices,
)
def sort_dim(self: Tensor, dim: int, descending: bool, *, stable: bool | None) -> tuple[Tensor, Tensor]:
    indices = argsort(self, axis=dim, descending=descending)
    return take_along_axis(self, indices, dim), indices
