"""Public functions and kernels of sparse and quantized tensors, whose implementations load at first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ... import lazy
from ...operators.declare.declaration import LIBRARY
from ...registry.dispatch.keys import COMPOSED, DispatchKey
from ...registry.dispatch.state import current_keys, set_keys, state
from ...registry.dtypes import int8
from ...registry.layouts import sparse_coo, sparse_csr
from ...registry.lazy_operators import register_lazy
from ...registry.library import Handle
from ...registry.operator import Operator
from .tensor import Tensor
from .transfer import LIBRARY as TRANSFERS

if TYPE_CHECKING:
    from ...registry.types import Args, DTypeLike, Function, Kwargs, Shape
    from ..quantized.tensor import QuantizedTensor
    from ..sparse.tensor import SparseTensor

quantized_construct = lazy.Module(".eager.quantized.construct")
quantized_kernels = lazy.Module(".eager.quantized.kernels")
sparse_construct = lazy.Module(".eager.sparse.construct")
sparse_kernels = lazy.Module(".eager.sparse.kernels")

# Operators with a kernel for sparse tensors. Those in ON_VALUES run on the stored values, since they map 0 to 0.
STRUCTURAL = (
    "add.Tensor sub.Tensor mul.Tensor div.Tensor permute reshape sum matmul clone contiguous stop_gradient"
)
ON_VALUES = (
    "abs asin asinh atan atanh cast ceil conj erf expm1 floor imag isinf isnan log1p neg positive real relu round "
    "sign signbit sin sinh sqrt square tan tanh trunc"
)
QUANTIZED = "relu permute reshape basic_index broadcast_to clone"


def sparse_coo_tensor(
    indices: object,
    values: object,
    shape: Shape | None = None,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: bool = False,
) -> SparseTensor:
    """Create a sparse tensor from coordinates and values (COO).

    Args:
        indices: integers of shape ``(ndim, nnz)``: each column is the index of a value. An index may occur twice; its
            values are then added when necessary (:meth:`coalesce`).
        values: ``nnz`` values; gradients flow back to them.
        shape: the shape; None: just large enough.
        dtype: the dtype of the values; None: theirs.
        requires_grad: whether operations on the tensor are recorded; its ``grad`` has the same indices.

    Returns:
        A tensor of the layout ``td.sparse_coo``.

    Raises:
        ShapeError: indices, values and shape do not fit each other.
        OutOfBoundsError: an index is outside the shape.
        DTypeError: the indices are not integers.

    >>> import tandem as td
    >>> x = td.sparse_coo_tensor([[0, 2], [1, 0]], [3.0, 4.0], (3, 2))
    >>> x
    tensor(indices=[[0, 2], [1, 0]], values=[3., 4.], shape=(3, 2), nnz=2, layout=sparse_coo)
    >>> (x @ td.ones(2)).tolist()
    [3.0, 0.0, 4.0]
    """
    result: SparseTensor = sparse_construct.make_coo(indices, values, shape, dtype, requires_grad)
    return result


def sparse_csr_tensor(
    crow_indices: object,
    col_indices: object,
    values: object,
    shape: Shape | None = None,
    *,
    dtype: DTypeLike | None = None,
    requires_grad: bool = False,
) -> SparseTensor:
    """Create a sparse matrix from compressed rows (CSR).

    Args:
        crow_indices: ``rows + 1`` integers: the start of each row among the values, and their number at the end.
        col_indices: the column of each value.
        values: ``nnz`` values; gradients flow back to them.
        shape: the shape; None: just large enough.
        dtype: the dtype of the values; None: theirs.
        requires_grad: whether operations on the tensor are recorded; its ``grad`` has the same indices.

    Returns:
        A tensor of the layout ``td.sparse_csr``.

    Raises:
        ShapeError: the parts do not fit each other or the shape.
        OutOfBoundsError: the row starts do not increase from 0 to the number of values, or a column is outside.
        DTypeError: row starts or columns are not integers.

    >>> import tandem as td
    >>> x = td.sparse_csr_tensor([0, 1, 1, 2], [1, 0], [3.0, 4.0], (3, 2))
    >>> x.to_dense().tolist()
    [[0.0, 3.0], [0.0, 0.0], [4.0, 0.0]]
    """
    result: SparseTensor = sparse_construct.make_csr(
        crow_indices, col_indices, values, shape, dtype, requires_grad
    )
    return result


def quantize_per_tensor(x: Tensor, scale: float, zero_point: int, dtype: DTypeLike = int8) -> QuantizedTensor:
    """Quantize a tensor to 8-bit integers with one scale: ``round(x / scale) + zero_point``, clamped.

    Args:
        x: a floating-point tensor.
        scale: the distance of neighbouring numbers, positive.
        zero_point: the integer that represents 0.
        dtype: ``td.int8`` or ``td.uint8``.

    Returns:
        A quantized tensor; ``dequantize()`` returns the numbers, ``int_repr()`` the integers.

    Raises:
        DTypeError: ``x`` or ``dtype`` has another dtype.
        ValueArgumentError: the scale is not positive and finite, or the zero point does not fit the dtype.

    >>> import tandem as td
    >>> q = td.quantize_per_tensor(td.asarray([0.24, 1.0, 100.0]), 0.5, 10)
    >>> q.int_repr().tolist(), q.dequantize().tolist()
    ([10, 12, 127], [0.0, 1.0, 58.5])
    """
    result: QuantizedTensor = quantized_construct.per_tensor(x, scale, zero_point, dtype)
    return result


def quantize_per_channel(
    x: Tensor, scales: object, zero_points: object, axis: int, dtype: DTypeLike = int8
) -> QuantizedTensor:
    """Quantize a tensor to 8-bit integers, with a scale and a zero point for each position along an axis.

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
        OutOfBoundsError: the axis does not exist.
        DTypeError, ValueArgumentError: as for :func:`quantize_per_tensor`.

    >>> import tandem as td
    >>> q = td.quantize_per_channel(td.asarray([[1.0, 2.0], [1.0, 2.0]]), [1.0, 0.5], [0, 0], 0)
    >>> q.int_repr().tolist()
    [[1, 2], [2, 4]]
    """
    result: QuantizedTensor = quantized_construct.per_channel(x, scales, zero_points, axis, dtype)
    return result


# -- methods of Tensor -------------------------------------------------------------------------------------------------
def to_sparse(self: Tensor, layout: str = "sparse_coo") -> SparseTensor:
    """Convert to a sparse tensor, which stores only the elements that are not zero.

    Args:
        layout: ``td.sparse_coo`` or ``td.sparse_csr``.

    Returns:
        A sparse tensor; gradients flow to the stored elements.
    """
    result: SparseTensor = sparse_construct.to_sparse(self, layout)
    return result


def to_sparse_coo(self: Tensor) -> SparseTensor:
    """The tensor in the layout ``td.sparse_coo``."""
    return to_sparse(self, sparse_coo)


def to_sparse_csr(self: Tensor) -> SparseTensor:
    """The matrix in the layout ``td.sparse_csr``."""
    return to_sparse(self, sparse_csr)


def to_dense(self: Tensor) -> Tensor:
    """Convert to a dense tensor; return a dense tensor itself."""
    return self if type(self) is Tensor else sparse_construct.dense(self)


def coalesce(self: Tensor) -> Tensor:
    """Sort the indices of a sparse tensor and add values of equal indices; return a dense tensor itself."""
    return self if type(self) is Tensor else sparse_construct.coalesce_tensor(self)


METHODS: dict[str, Function] = {
    "to_sparse": to_sparse,
    "to_sparse_coo": to_sparse_coo,
    "to_sparse_csr": to_sparse_csr,
    "to_dense": to_dense,
    "coalesce": coalesce,
}


# -- the kernels of the key --------------------------------------------------------------------------------------------
def _on_parts(
    run: Callable[[Operator, Args, Kwargs], object], op: Operator, args: Args, kwargs: Kwargs
) -> object:
    """Run a kernel that calls operators on the dense parts of its tensors, with the composed keys not included."""
    before = current_keys()
    try:
        set_keys(state.include & ~COMPOSED, state.exclude)
        return run(op, args, kwargs)
    finally:
        set_keys(*before)


def sparse_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run an operator on sparse tensors, by their values."""
    return _on_parts(sparse_kernels.run, op, args, kwargs)


def sparse_fallback(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run an operator without a kernel for sparse tensors on dense copies, with a warning."""
    return _on_parts(sparse_kernels.fall_back, op, args, kwargs)


def quantized_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run an operator on quantized tensors, by their integers."""
    return _on_parts(quantized_kernels.run, op, args, kwargs)


def quantized_fallback(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Raise the error for an operator without a kernel for quantized tensors."""
    return _on_parts(quantized_kernels.refuse, op, args, kwargs)


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
register_lazy("sparse", ("spmm", "sddmm"), partial(lazy.module, ".eager.sparse.kernels"))
register_lazy(
    "quantized",
    "quantize dequantize int_mm requantize matmul linear add".split(),
    partial(lazy.module, ".eager.quantized.kernels"),
)
