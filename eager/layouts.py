"""Sparse tensors as users see them. The machinery (:mod:`.sparse_make`, :mod:`.sparse_ops`) is loaded at first use."""

from __future__ import annotations

from typing import Any

from .. import lazy
from ..operators.declare import LIBRARY
from ..registry.keys import DispatchKey
from ..registry.layouts import sparse_coo, sparse_csr
from ..registry.operator import Operator
from .tensor import Tensor

# Operators with a kernel for sparse tensors; those of the second line run on the stored values, for they give 0 for 0.
STRUCTURAL = (
    "add.Tensor sub.Tensor mul.Tensor div.Tensor permute reshape sum matmul clone contiguous stop_gradient"
)
ON_VALUES = (
    "abs asin asinh atan atanh cast ceil conj erf expm1 floor imag isinf isnan log1p neg positive real relu round "
    "sign signbit sin sinh sqrt square tan tanh trunc"
)


def sparse_coo_tensor(
    indices: Any, values: Any, shape: Any = None, *, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
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
    made: Tensor = lazy.sparse_machinery("make").make_coo(indices, values, shape, dtype, requires_grad)
    return made


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    shape: Any = None,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Tensor:
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
    made: Tensor = lazy.sparse_machinery("make").make_csr(
        crow_indices, col_indices, values, shape, dtype, requires_grad
    )
    return made


# -- methods of Tensor -------------------------------------------------------------------------------------------------
def to_sparse(self: Tensor, layout: Any = sparse_coo) -> Any:
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


METHODS = {
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


for _name in (*STRUCTURAL.split(), *ON_VALUES.split()):
    LIBRARY.impl(_name, sparse_kernel, DispatchKey.SparseCPU, boxed=True)
LIBRARY.fallback(sparse_fallback, DispatchKey.SparseCPU)
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
