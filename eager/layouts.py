"""Sparse and quantized tensors as users see them; the machinery (``sparse_*``, ``quantized_*``) loads at first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import lazy
from ..operators.declare import LIBRARY
from ..registry.dtypes import int8
from ..registry.keys import DispatchKey
from ..registry.late import promise
from ..registry.layouts import sparse_coo, sparse_csr
from ..registry.library import Handle
from ..registry.operator import Operator
from .tensor import Tensor
from .transfer import LIBRARY as TRANSFERS

if TYPE_CHECKING:
    from .quantized_tensor import QuantizedTensor
    from .sparse_tensor import SparseTensor

# Operators with a kernel for sparse tensors; those of the second line run on the stored values, for they give 0 for 0.
STRUCTURAL = (
    "add.Tensor sub.Tensor mul.Tensor div.Tensor permute reshape sum matmul clone contiguous stop_gradient"
)
ON_VALUES = (
    "abs asin asinh atan atanh cast ceil conj erf expm1 floor imag isinf isnan log1p neg positive real relu round "
    "sign signbit sin sinh sqrt square tan tanh trunc"
)
QUANTIZED = "relu permute reshape basic_index broadcast_to clone"


def sparse_coo_tensor(
    indices: Any, values: Any, shape: Any = None, *, dtype: Any = None, requires_grad: bool = False
) -> SparseTensor:
    """A sparse tensor of places and the values there (coordinates, COO).

    Args:
        indices: integers of shape ``(ndim, nnz)``: in each column the place of a value. A place may occur twice; its
            values are then added where it matters (:meth:`coalesce`).
        values: ``nnz`` values; gradients flow back to them.
        shape: the shape; None: just large enough.
        dtype: the dtype of the values; None: theirs.
        requires_grad: whether operations on the tensor are recorded; its ``grad`` has the same places.

    Returns:
        A tensor of the layout ``td.sparse_coo``.

    Raises:
        ShapeError: indices, values and shape do not fit each other.
        OutOfBoundsError: an index lies outside of the shape.
        DTypeError: the indices are no integers.

    >>> import tandem as td
    >>> x = td.sparse_coo_tensor([[0, 2], [1, 0]], [3.0, 4.0], (3, 2))
    >>> x
    tensor(indices=[[0, 2], [1, 0]], values=[3., 4.], shape=(3, 2), nnz=2, layout=sparse_coo)
    >>> (x @ td.ones(2)).tolist()
    [3.0, 0.0, 4.0]
    """
    made: SparseTensor = lazy.sparse_machinery("make").make_coo(indices, values, shape, dtype, requires_grad)
    return made


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    shape: Any = None,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
) -> SparseTensor:
    """A sparse matrix in compressed rows (CSR).

    Args:
        crow_indices: ``rows + 1`` integers: where each row starts among the values, and their number at the end.
        col_indices: the column of each value.
        values: ``nnz`` values; gradients flow back to them.
        shape: the shape; None: just large enough.
        dtype: the dtype of the values; None: theirs.
        requires_grad: whether operations on the tensor are recorded; its ``grad`` has the same places.

    Returns:
        A tensor of the layout ``td.sparse_csr``.

    Raises:
        ShapeError: the parts do not fit each other or the shape.
        OutOfBoundsError: the row starts do not rise from 0 to the number of values, or a column lies outside.
        DTypeError: row starts or columns are no integers.

    >>> import tandem as td
    >>> x = td.sparse_csr_tensor([0, 1, 1, 2], [1, 0], [3.0, 4.0], (3, 2))
    >>> x.to_dense().tolist()
    [[0.0, 3.0], [0.0, 0.0], [4.0, 0.0]]
    """
    made: SparseTensor = lazy.sparse_machinery("make").make_csr(
        crow_indices, col_indices, values, shape, dtype, requires_grad
    )
    return made


def quantize_per_tensor(x: Any, scale: float, zero_point: int, dtype: Any = int8) -> QuantizedTensor:
    """Numbers as 8-bit integers with one scale: each is stored as ``round(x / scale) + zero_point``, clamped.

    Args:
        x: a floating-point tensor.
        scale: the distance of neighbouring numbers, positive.
        zero_point: the integer that stands for 0.
        dtype: ``td.int8`` or ``td.uint8``.

    Returns:
        A quantized tensor; ``dequantize()`` gives numbers again, ``int_repr()`` the integers.

    Raises:
        DTypeError: ``x`` or ``dtype`` has another dtype.
        ValueArgumentError: the scale is not positive and finite, or the zero point does not fit the dtype.

    >>> import tandem as td
    >>> q = td.quantize_per_tensor(td.asarray([0.24, 1.0, 100.0]), 0.5, 10)
    >>> q.int_repr().tolist(), q.dequantize().tolist()
    ([10, 12, 127], [0.0, 1.0, 58.5])
    """
    made: QuantizedTensor = lazy.quantized_machinery("make").per_tensor(x, scale, zero_point, dtype)
    return made


def quantize_per_channel(
    x: Any, scales: Any, zero_points: Any, axis: int, dtype: Any = int8
) -> QuantizedTensor:
    """Numbers as 8-bit integers, with a scale and a zero point for each position along an axis.

    Args:
        x: a floating-point tensor.
        scales: a scale for each position, positive.
        zero_points: an integer for each position.
        axis: the axis.
        dtype: ``td.int8`` or ``td.uint8``.

    Returns:
        A quantized tensor.

    Raises:
        ShapeError: there are more or fewer scales or zero points than positions.
        OutOfBoundsError: there is no such axis.
        DTypeError, ValueArgumentError: as for :func:`quantize_per_tensor`.

    >>> import tandem as td
    >>> q = td.quantize_per_channel(td.asarray([[1.0, 2.0], [1.0, 2.0]]), [1.0, 0.5], [0, 0], 0)
    >>> q.int_repr().tolist()
    [[1, 2], [2, 4]]
    """
    made: QuantizedTensor = lazy.quantized_machinery("make").per_channel(x, scales, zero_points, axis, dtype)
    return made


# -- methods of Tensor -------------------------------------------------------------------------------------------------
def to_sparse(self: Tensor, layout: str = "sparse_coo") -> Any:
    """The tensor with only the elements that are not zero stored.

    Args:
        layout: ``td.sparse_coo`` or ``td.sparse_csr``.

    Returns:
        A sparse tensor; gradients flow back to the elements that it stores.
    """
    return lazy.sparse_machinery("make").to_sparse(self, layout)


def to_sparse_coo(self: Tensor) -> Any:
    """The tensor in the layout ``td.sparse_coo``."""
    return to_sparse(self, sparse_coo)


def to_sparse_csr(self: Tensor) -> Any:
    """The matrix in the layout ``td.sparse_csr``."""
    return to_sparse(self, sparse_csr)


def to_dense(self: Tensor) -> Any:
    """The tensor with all its elements stored; a dense tensor itself."""
    return self if type(self) is Tensor else lazy.sparse_machinery("make").dense(self)


def coalesce(self: Tensor) -> Any:
    """A sparse tensor with its places sorted, each once, the values of equal places added; a dense one itself."""
    return self if type(self) is Tensor else lazy.sparse_machinery("make").coalesced(self)


METHODS: dict[str, Callable[..., Any]] = {
    "to_sparse": to_sparse,
    "to_sparse_coo": to_sparse_coo,
    "to_sparse_csr": to_sparse_csr,
    "to_dense": to_dense,
    "coalesce": coalesce,
}


# -- the kernels of the key --------------------------------------------------------------------------------------------
def sparse_kernel(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator on sparse tensors, by their values."""
    return lazy.sparse_machinery("ops").run(op, args, kwargs)


def sparse_fallback(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator that has no kernel for sparse tensors on dense ones, and say so once."""
    return lazy.sparse_machinery("ops").fall_back(op, args, kwargs)


def quantized_kernel(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator on quantized tensors, by their integers."""
    return lazy.quantized_machinery("ops").run(op, args, kwargs)


def quantized_fallback(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Refuse an operator that has no kernel for quantized tensors."""
    return lazy.quantized_machinery("ops").refuse(op, args, kwargs)


def register(sparse: DispatchKey, quantized: DispatchKey) -> list[Handle]:
    """Register the kernels for the keys of a device's sparse and quantized tensors."""
    return [
        *(
            LIBRARY.impl(name, sparse_kernel, sparse, boxed=True)
            for name in f"{STRUCTURAL} {ON_VALUES}".split()
        ),
        *(LIBRARY.impl(name, quantized_kernel, quantized, boxed=True) for name in QUANTIZED.split()),
        TRANSFERS.impl("to", sparse_kernel, sparse, boxed=True),
        TRANSFERS.impl("to", quantized_kernel, quantized, boxed=True),
        LIBRARY.fallback(sparse_fallback, sparse),
        LIBRARY.fallback(quantized_fallback, quantized),
    ]


register(DispatchKey.SparseCPU, DispatchKey.QuantizedCPU)
promise("sparse", ("spmm", "sddmm"), partial(lazy.sparse_machinery, "ops"))
promise(
    "quantized",
    "quantize dequantize int_mm requantize matmul linear add".split(),
    partial(lazy.quantized_machinery, "ops"),
)
