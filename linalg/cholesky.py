"""Cholesky factors of matrices.

Sources: Murray, Differentiation of the Cholesky decomposition, 2016; ``torch.linalg.cholesky_ex``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ShapeError
from ..operators.contraction.matmul import matmul
from ..operators.creation.creation import eye
from ..operators.declare.batching import Batched, BatchInfo, Dims, ensure_batch_axis
from ..operators.declare.declaration import ErrorInput, TensorSample
from ..operators.declare.derivatives import NotDifferentiable, Rule
from ..operators.declare.kinds import composite
from ..operators.declare.native_kernel import Decomposition, NativeLoop
from ..operators.declare.shape_rules import spec_of
from ..operators.shape.diagonals import diagonal
from ..operators.shape.rearrange import matrix_transpose
from ..operators.shape.triangles import tril
from ..registry.dtypes import complex128, float64, int32
from ..registry.values import TensorSpec
from .factorizations import conjugate, from_symmetric, real_diagonal, to_diagonal
from .rules import (
    DTYPES,
    REAL,
    TOLERANCE,
    adjoint,
    call_lapack,
    check_matrices,
    emitted_lapack_kernel,
    hermitian_part,
    is_unrolled,
    lapack_kernel,
    matrix_op,
    symmetrize,
)
from .triangular import solve_triangular_stack

if TYPE_CHECKING:
    from ..registry.types import Array, ArrayModule, Tensor


def _cholesky_vjp(g: Tensor, out: Tensor, upper: bool) -> Tensor:
    lower, g = (adjoint(out), adjoint(g)) if upper else (out, g)
    rows = spec_of(lower)
    inverse = solve_triangular_stack(lower, eye(rows.shape[-1], dtype=rows.dtype, device=rows.device), True)
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
        NativeLoop("tandem", "cholesky_by_lapack"),
        NativeLoop("numpy.linalg", "cholesky_lo"),
        failure="cholesky: Matrix is not positive definite",
    ),
)

cholesky_symmetric = matrix_op(
    "linalg_cholesky_symmetric(Tensor self) -> Tensor",
    lambda self: check_matrices("cholesky", self, is_square=True, dtypes=REAL),
    lambda xp, self: call_lapack("cholesky", lambda: xp.linalg.cholesky(hermitian_part(xp, self))),
    dtypes=REAL,
    doc="""The Cholesky factors of the symmetric parts of real matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        A lower triangular tensor of the same shape and dtype.

    >>> td.ops.td.linalg_cholesky_symmetric(td.asarray([[4.0, 2.0], [2.0, 10.0]])).tolist()
    [[2.0, 0.0], [1.0, 3.0]]
    """,
    reference="references.linear_algebra.cholesky",
    derivative=Rule(vjp={"self": lambda g, out: _cholesky_vjp(g, out, False)}),
    samples="samples.linalg.definite_matrices",
    errors="samples.linalg.cholesky_errors",
    native=lapack_kernel(
        NativeLoop("tandem", "cholesky_symmetric", is_unrolled),
        failure="cholesky: Matrix is not positive definite",
    ),
    decomposition=Decomposition(
        lambda self: cholesky_lower(symmetrize(self)), is_eager=lambda self: not is_unrolled(spec_of(self))
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
    """Small matrices are symmetrized by the loop that factorizes them, without an intermediate."""
    spec = check_matrices("cholesky", self, is_square=True)
    is_small = spec.dtype in REAL and is_unrolled(spec)
    lower: Tensor = cholesky_symmetric(self) if is_small else cholesky_lower(symmetrize(self))
    return adjoint(lower) if upper else lower


# -- without errors ----------------------------------------------------------------------------------------------------
def _cholesky_or_nan_kernel(xp: ArrayModule, self: Array) -> Array:
    try:
        result: Array = xp.linalg.cholesky(self)
    except np.linalg.LinAlgError:
        nan = complex(xp.nan, xp.nan) if self.dtype.kind == "c" else xp.nan
        result = xp.full(self.shape, nan, self.dtype)
        for index in np.ndindex(*self.shape[:-2]):
            with contextlib.suppress(np.linalg.LinAlgError):
                result[index] = xp.linalg.cholesky(self[index])
    return result


cholesky_or_nan = matrix_op(
    "linalg_cholesky_or_nan(Tensor self) -> Tensor",
    lambda self: check_matrices("cholesky_ex", self, is_square=True),
    _cholesky_or_nan_kernel,
    doc="""The Cholesky factors of matrices of which only the lower triangles are read; NaN where there is none.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        A lower triangular tensor of the same shape and dtype.

    >>> td.ops.td.linalg_cholesky_or_nan(-td.eye(1)).tolist()
    [[nan]]
    """,
    reference="numpy.linalg.cholesky",
    derivative=Rule(vjp={"self": lambda g, out: from_symmetric(_cholesky_vjp(g, out, False))}),
    samples="samples.linalg.definite_matrices",
    native=lapack_kernel(NativeLoop("tandem", "cholesky_or_nan"), NativeLoop("numpy.linalg", "cholesky_lo")),
)


def _minor_shape_rule(self: TensorSpec, factor: TensorSpec) -> TensorSpec:
    spec = check_matrices("indefinite_minor", self, is_square=True)
    if spec_of(factor).shape != spec.shape:
        raise ShapeError(
            f"indefinite_minor: the factors of {spec} do not have the shape {spec_of(factor).shape}"
        )
    return TensorSpec(spec.shape[:-2], int32, spec.device)


def _minor_kernel(xp: ArrayModule, self: Array, factor: Array) -> Array:
    """Eliminate column by column; the first pivot that is not positive names the minor."""
    size = self.shape[-1]
    info = xp.zeros(self.shape[:-2], xp.int32)
    failed = xp.isnan(factor[..., -1:, -1:]).any((-2, -1))
    if xp is np and not failed.any():
        return info
    rest: Array = self.astype((complex128 if self.dtype.kind == "c" else float64).np)
    for k in range(size):
        pivot = xp.real(rest[..., k, k])
        is_bad = ~(pivot > 0)
        info = xp.where((info == 0) & is_bad, xp.int32(k + 1), info)
        column = rest[..., k] / xp.sqrt(xp.where(is_bad, 1, pivot))[..., None]
        rest = rest - column[..., :, None] * xp.conj(column[..., None, :])
    return xp.where(failed, xp.where(info == 0, xp.int32(size), info), xp.int32(0)).astype(xp.int32)


def _minor_batched(info: BatchInfo, in_dims: Dims, self: Tensor, factor: Tensor) -> Batched:
    pairs = zip((self, factor), in_dims)
    return info.call(*(ensure_batch_axis(x, dim, info.batch_size) for x, dim in pairs)), 0


indefinite_minor = matrix_op(
    "linalg_indefinite_minor(Tensor self, Tensor factor) -> Tensor",
    _minor_shape_rule,
    _minor_kernel,
    doc="""The order of the first leading minor of each matrix that is not positive definite.

    Args:
        self: a tensor of shape ``(..., M, M)``, of which the lower triangles are read.
        factor: the Cholesky factors, NaN where there is none.

    Returns:
        An int32 tensor of shape ``(...)``: 0 for a matrix that has a factor.

    >>> x = -td.eye(1)
    >>> td.ops.td.linalg_indefinite_minor(x, td.ops.td.linalg_cholesky_or_nan(x)).item()
    1
    """,
    reference="references.linear_algebra.indefinite_minor",
    derivative=NotDifferentiable("it returns integers"),
    samples="samples.linalg.minor_samples",
    errors=lambda: [ErrorInput((TensorSample((2, 2)), TensorSample((3, 3))), ValueError, "shape")],
    rule=_minor_batched,
    native=emitted_lapack_kernel("cholesky_ex", NativeLoop("tandem", "indefinite_minor")),
)


@composite(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False) -> (Tensor L, Tensor info)",
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
    samples="samples.linalg.definite_samples",
    errors="samples.linalg.square_errors",
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def cholesky_ex(self: Tensor, *, upper: bool) -> tuple[Tensor, Tensor]:
    check_matrices("cholesky_ex", self, is_square=True)
    whole = symmetrize(self)
    lower: Tensor = cholesky_or_nan(whole)
    info: Tensor = indefinite_minor(whole, lower)
    return adjoint(lower) if upper else lower, info
