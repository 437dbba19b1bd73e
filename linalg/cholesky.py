"""Cholesky factors of matrices.

Sources: Murray, Differentiation of the Cholesky decomposition, 2016; ``torch.linalg.cholesky_ex``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..operators.contraction.matmul import matmul
from ..operators.declare.derivatives import Rule
from ..operators.declare.kinds import composite
from ..operators.declare.native_kernel import NativeLoop
from ..operators.shape.diagonals import diagonal
from ..operators.shape.rearrange import matrix_transpose
from ..operators.shape.triangles import tril
from ..registry.dtypes import int32
from ..registry.values import TensorSpec
from .factorizations import conjugate, from_symmetric, real_diagonal, to_diagonal
from .rules import (
    DTYPES,
    TOLERANCE,
    adjoint,
    call_lapack,
    check_matrices,
    hermitian_part,
    is_unrolled,
    lapack_kernel,
    matrix_op,
    symmetrize,
)
from .solving import inv

if TYPE_CHECKING:
    from ..registry.types import Array, ArrayModule, Tensor


def _orient(xp: ArrayModule, lower: Array, upper: bool) -> Array:
    return xp.conj(xp.swapaxes(lower, -1, -2)) if upper else lower


def _cholesky_vjp(g: Tensor, out: Tensor, upper: bool) -> Tensor:
    lower, g = (adjoint(out), adjoint(g)) if upper else (out, g)
    inverse = inv(lower)
    inner = tril(matmul(matrix_transpose(lower), g))
    inner = inner - to_diagonal(diagonal(inner, 0, -2, -1)) + to_diagonal(real_diagonal(inner)) / 2
    return symmetrize(matmul(matrix_transpose(inverse), matmul(inner, conjugate(inverse))))


cholesky_lower = matrix_op(
    "linalg_cholesky_lower(Tensor self) -> Tensor",
    lambda self: check_matrices("cholesky", self, is_square=True),
    lambda xp, self: call_lapack("cholesky", lambda: xp.linalg.cholesky(self)),
    doc="""The Cholesky factors of matrices of which only the lower triangles are read.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        A lower triangular tensor of the same shape and dtype.

    >>> td.ops.td.linalg_cholesky_lower(td.eye(2) * 4).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """,
    reference="numpy.linalg.cholesky",
    derivative=Rule(vjp={"self": lambda g, out: from_symmetric(_cholesky_vjp(g, out, False))}),
    samples="samples.linalg.definite_matrices",
    errors="samples.linalg.cholesky_errors",
    native=lapack_kernel(
        NativeLoop("tandem", "cholesky", is_unrolled),
        NativeLoop("numpy.linalg", "cholesky_lo"),
        failure="cholesky: Matrix is not positive definite",
    ),
)


@composite(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    doc="""The Cholesky factors of a stack of positive definite matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``; if not symmetric (Hermitian), its symmetric part is factorized.
        upper: whether to return the upper factor.

    Returns:
        A tensor ``L`` of the same shape and dtype, lower triangular, with ``L @ L.mT.conj() = self``; or its adjoint.

    Raises:
        LinearAlgebraError: a matrix is not positive definite.
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.cholesky(td.eye(2) * 4).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """,
    reference="references.linear_algebra.cholesky",
    samples="samples.linalg.definite_samples",
    errors="samples.linalg.cholesky_errors",
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def cholesky(self: Tensor, *, upper: bool) -> Tensor:
    check_matrices("cholesky", self, is_square=True)
    lower: Tensor = cholesky_lower(symmetrize(self))
    return adjoint(lower) if upper else lower


# -- without errors ----------------------------------------------------------------------------------------------------
def _cholesky_ex_shape_rule(self: TensorSpec, *, upper: bool = False) -> tuple[TensorSpec, TensorSpec]:
    spec = check_matrices("cholesky_ex", self, is_square=True)
    return spec, TensorSpec(spec.shape[:-2], int32, spec.device)


def _cholesky_ex_kernel(xp: ArrayModule, self: Array, *, upper: bool) -> tuple[Array, ...]:
    whole = hermitian_part(xp, self)
    info = np.zeros(whole.shape[:-2], np.int32)
    try:
        lower = xp.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        lower = xp.full(whole.shape, xp.nan, whole.dtype)
        for index in np.ndindex(*info.shape):
            try:
                lower[index] = xp.linalg.cholesky(whole[index])
            except np.linalg.LinAlgError:
                info[index] = _find_indefinite_minor(xp, whole[index])
    return _orient(xp, lower, upper), xp.asarray(info)


def _find_indefinite_minor(xp: ArrayModule, matrix: Array) -> int:
    """Return the order of the first leading minor that is not positive definite, of a matrix that has one."""
    for order in range(1, len(matrix)):
        try:
            xp.linalg.cholesky(matrix[:order, :order])
        except np.linalg.LinAlgError:
            return order
    return len(matrix)


cholesky_ex = matrix_op(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False) -> (Tensor L, Tensor info)",
    _cholesky_ex_shape_rule,
    _cholesky_ex_kernel,
    doc="""The Cholesky factors of a stack of matrices, without an error where a matrix is not positive definite.

    Args:
        self: a tensor of shape ``(..., M, M)``; if not symmetric (Hermitian), its symmetric part is factorized.
        upper: whether to return the upper factor.

    Returns:
        ``(L, info)``: the factors as of :func:`cholesky`, NaN for a matrix that is not positive definite; an int32
        tensor of shape ``(...)`` with 0 for a factorized matrix, else the order of its first leading minor that is not
        positive definite.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.cholesky_ex(td.asarray([[1.0, 2.0], [2.0, 1.0]]))[1].tolist()
    2
    """,
    reference="references.linear_algebra.cholesky_ex",
    derivative=Rule(vjp={"self": lambda g, out, upper: _cholesky_vjp(g[0], out[0], upper)}),
    samples="samples.linalg.definite_samples",
)
