"""Factorizations of matrices: QR, eigenvalues of symmetric matrices, singular values.

Derivatives require full rank and distinct eigenvalues or singular values. Where some are equal, the derivatives of the
values are right, and those of their vectors are NaN. Eigenvectors and singular vectors of complex matrices are
determined up to a phase, so only functions that do not depend on it have a derivative.

Sources: Giles, Collected matrix derivative results, 2008; Townsend, Differentiating the singular value decomposition,
2016; Walter and Lehmann, Algorithmic differentiation of linear algebra functions, 2012.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..errors import NotDifferentiableError, ValueArgumentError
from ..operators.contraction.matmul import matmul
from ..operators.creation.creation import eye
from ..operators.declare.derivatives import Rule
from ..operators.declare.kinds import composite
from ..operators.declare.native_kernel import NativeLoop
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.arithmetic import abs
from ..operators.elementwise.comparison import eq, logical_and, ne
from ..operators.elementwise.complex_parts import conj, real
from ..operators.elementwise.selection import where
from ..operators.shape.diagonals import diagonal
from ..operators.shape.joining import concat
from ..operators.shape.rearrange import expand_dims, matrix_transpose
from ..operators.shape.splitting import slice_axis
from ..operators.shape.triangles import tril
from ..registry.dtypes import bool_
from ..registry.values import TensorSpec
from .rules import (
    DTYPES,
    TOLERANCE,
    adjoint,
    call_lapack,
    check_matrices,
    emitted_lapack_kernel,
    has_short_sides,
    lapack_kernel,
    matrix_op,
    real_dtype,
    symmetrize,
)
from .solving import solve_stack

if TYPE_CHECKING:
    from ..registry.types import Array, ArrayModule, Tensor


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate; a real tensor is returned as it is."""
    return conj(x) if spec_of(x).dtype.kind == "c" else x


def to_diagonal(x: Tensor) -> Tensor:
    """Diagonal matrices of the vectors."""
    spec = spec_of(x)
    return expand_dims(x, -1) * eye(spec.shape[-1], dtype=real_dtype(spec.dtype), device=spec.device)


def real_diagonal(x: Tensor) -> Tensor:
    """The diagonals of a stack of matrices, without their imaginary part."""
    result = diagonal(x, 0, -2, -1)
    return real(result) if spec_of(x).dtype.kind == "c" else result


def divide_by_gaps(x: Tensor, values: Tensor, of_vectors: Tensor) -> Tensor:
    """``x[i, j] / (values[j] - values[i])``, and 0 on the diagonal.

    Off the diagonal, where two values are equal, the result is 0 if ``of_vectors`` is 0 there, else NaN.
    """
    gap = expand_dims(values, -2) - expand_dims(values, -1)
    is_same = eq(gap, 0)
    is_unknown = logical_and(ne(of_vectors, 0), ~eye(spec_of(values).shape[-1], dtype=bool_, device=x.device))
    return where(is_same, where(is_unknown, math.nan, 0.0), x / where(is_same, 1.0, gap))


# -- eigenvalues of symmetric matrices ---------------------------------------------------------------------------------
def _eigh_lower_shape_rule(self: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    spec = check_matrices("eigh", self, is_square=True)
    return TensorSpec(spec.shape[:-1], real_dtype(spec.dtype), spec.device), spec


def from_symmetric(g: Tensor) -> Tensor:
    """The gradient of a function of the lower triangle, given that of the same function of symmetric matrices."""
    return tril(g, -1) * 2 + to_diagonal(real_diagonal(g))


def _eigh_vjp(g: Tensor, out: Tensor) -> Tensor:
    values, vectors = out
    turned = matmul(matrix_transpose(vectors), g[1])
    inner = to_diagonal(g[0]) + divide_by_gaps(turned, values, turned)
    return symmetrize(matmul(conjugate(vectors), matmul(inner, matrix_transpose(vectors))))


def _eigvalsh_vjp(g: Tensor, self: Tensor) -> Tensor:
    vectors = eigh_lower(self)[1]
    return symmetrize(matmul(conjugate(vectors), matmul(to_diagonal(g), matrix_transpose(vectors))))


eigh_lower = matrix_op(
    "linalg_eigh_lower(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    _eigh_lower_shape_rule,
    lambda xp, self: tuple(call_lapack("eigh", lambda: xp.linalg.eigh(self))),
    doc="""The eigenvalues and eigenvectors of matrices of which only the lower triangles are read.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        ``(eigenvalues, eigenvectors)`` as of :func:`eigh`.

    >>> td.ops.td.linalg_eigh_lower(td.eye(2) * 3)[0].tolist()
    [3.0, 3.0]
    """,
    reference="references.linear_algebra.eigh_lower",
    derivative=Rule(vjp={"self": lambda g, out: from_symmetric(_eigh_vjp(g, out))}),
    native=lapack_kernel(NativeLoop("numpy.linalg", "eigh_lo"), failure="eigh: Eigenvalues did not converge"),
)


def _read_hermitian(name: str, x: Tensor, triangle: str | None) -> Tensor:
    """The Hermitian matrices of which one triangle is given, or the Hermitian parts of whole matrices."""
    if triangle is None:
        return symmetrize(x)
    if triangle not in ("L", "U", "l", "u"):
        raise ValueArgumentError(f"{name}: UPLO must be 'L' or 'U', not {triangle!r}")
    lower = x if triangle in "Ll" else adjoint(x)
    return tril(lower) + adjoint(tril(lower, k=-1))


@composite(
    "linalg_eigh(Tensor self, str? UPLO=None) -> (Tensor eigenvalues, Tensor eigenvectors)",
    doc="""The eigenvalues and eigenvectors of a stack of symmetric (Hermitian) matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``; if not symmetric, its symmetric part is used.
        UPLO: ``"L"`` or ``"U"``: read the lower or upper triangle only; None: the whole matrices.

    Returns:
        ``(eigenvalues, eigenvectors)``: real and ascending, ``(..., M)``; in columns, ``(..., M, M)``.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.
        ValueArgumentError: ``UPLO`` is another word.

    >>> td.linalg.eigh(td.eye(2) * 3)[0].tolist()
    [3.0, 3.0]
    """,
    reference="references.linear_algebra.eigh",
    samples="samples.linalg.symmetric_samples",
    errors="samples.linalg.square_errors",
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def eigh(self: Tensor, UPLO: str | None) -> tuple[Tensor, Tensor]:
    check_matrices("eigh", self, is_square=True)
    values, vectors = eigh_lower(_read_hermitian("eigh", self, UPLO))
    return values, vectors


eigvalsh_lower = matrix_op(
    "linalg_eigvalsh_lower(Tensor self) -> Tensor",
    lambda self: _eigh_lower_shape_rule(self)[0],
    lambda xp, self: call_lapack("eigvalsh", lambda: xp.linalg.eigvalsh(self)),
    doc="""The eigenvalues of matrices of which only the lower triangles are read.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        The eigenvalues as of :func:`eigvalsh`.

    >>> td.ops.td.linalg_eigvalsh_lower(td.eye(2) * 3).tolist()
    [3.0, 3.0]
    """,
    reference="numpy.linalg.eigvalsh",
    derivative=Rule(vjp={"self": lambda g, self: from_symmetric(_eigvalsh_vjp(g, self))}),
    native=lapack_kernel(
        NativeLoop("numpy.linalg", "eigvalsh_lo"), failure="eigvalsh: Eigenvalues did not converge"
    ),
)


@composite(
    "linalg_eigvalsh(Tensor self, str? UPLO=None) -> Tensor",
    doc="""The eigenvalues of a stack of symmetric (Hermitian) matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``; if not symmetric, its symmetric part is used.
        UPLO: ``"L"`` or ``"U"``: read the lower or upper triangle only; None: the whole matrices.

    Returns:
        A real tensor of shape ``(..., M)``, ascending.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.eigvalsh(td.eye(2) * 3).tolist()
    [3.0, 3.0]
    """,
    reference="references.linear_algebra.eigvalsh",
    samples="samples.linalg.symmetric_samples",
    errors="samples.linalg.square_errors",
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def eigvalsh(self: Tensor, UPLO: str | None) -> Tensor:
    check_matrices("eigvalsh", self, is_square=True)
    result: Tensor = eigvalsh_lower(_read_hermitian("eigvalsh", self, UPLO))
    return result


# -- singular values ---------------------------------------------------------------------------------------------------
def _svd_shape_rule(
    self: TensorSpec, *, full_matrices: bool = True
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    spec = check_matrices("svd", self)
    *lead, rows, columns = spec.shape
    least = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (least, least)
    return (
        TensorSpec((*lead, rows, left), spec.dtype, spec.device),
        TensorSpec((*lead, least), real_dtype(spec.dtype), spec.device),
        TensorSpec((*lead, right, columns), spec.dtype, spec.device),
    )


def _svd_kernel(xp: ArrayModule, self: Array, *, full_matrices: bool) -> tuple[Array, ...]:
    return tuple(call_lapack("svd", lambda: xp.linalg.svd(self, full_matrices)))


def _svd_vjp(g: Tensor, self_spec: TensorSpec, out: Tensor, full_matrices: bool) -> Tensor:
    rows, columns = self_spec.shape[-2:]
    if full_matrices and rows != columns:
        raise NotDifferentiableError(
            "svd: the additional vectors of a rectangular matrix are arbitrary; use full_matrices=False"
        )
    u, s, vh = out
    gu, gs, gvh = conjugate(g[0]), g[1], conjugate(g[2])
    uh, v, wide = adjoint(u), adjoint(vh), expand_dims(s, -2)
    of_u, of_v = matmul(uh, gu), matmul(vh, adjoint(gvh))
    both = _skew_part(of_u) * wide + expand_dims(s, -1) * _skew_part(of_v)
    core = divide_by_gaps(both, s * s, abs(of_u) + abs(of_v)) + to_diagonal(gs)
    if self_spec.dtype.kind == "c":
        core = core + to_diagonal(diagonal(_skew_part(of_u), 0, -2, -1) / (2 * s))
    result = matmul(u, core)
    if rows > columns:
        scaled = gu / wide
        result = result + scaled - matmul(u, matmul(uh, scaled))
    result = matmul(result, vh)
    if columns > rows:
        scaled = gvh / expand_dims(s, -1)
        result = result + matmul(u, scaled - matmul(matmul(scaled, v), vh))
    return conjugate(result)


def _svd_loops() -> list[NativeLoop]:
    """NumPy's loops, which had other names for wide and tall matrices before 2.1."""
    loops = []
    for is_full, letter in ((True, "f"), (False, "s")):
        loops += [
            NativeLoop(
                "numpy.linalg", f"svd_{letter}", lambda self, *, full_matrices, f=is_full: full_matrices is f
            ),
            NativeLoop(
                "numpy.linalg",
                f"svd_m_{letter}",
                lambda self, *, full_matrices, f=is_full: (
                    full_matrices is f and self.shape[-2] < self.shape[-1]
                ),
            ),
            NativeLoop(
                "numpy.linalg",
                f"svd_n_{letter}",
                lambda self, *, full_matrices, f=is_full: (
                    full_matrices is f and self.shape[-2] >= self.shape[-1]
                ),
            ),
        ]
    return loops


def _skew_part(x: Tensor) -> Tensor:
    return x - adjoint(x)


svd = matrix_op(
    "linalg_svd(Tensor self, *, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)",
    _svd_shape_rule,
    _svd_kernel,
    doc="""The singular value decompositions of a stack of matrices.

    Args:
        self: a tensor of shape ``(..., M, N)``.
        full_matrices: whether U and Vh are square; otherwise they have one vector for each singular value.

    Returns:
        ``(U, S, Vh)`` with ``self = (U * S) @ Vh``; S is real and descending. The derivative of rectangular ones needs
        ``full_matrices=False``.

    Raises:
        ShapeError: there are fewer than two axes.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.svd(td.eye(2) * 3)[1].tolist()
    [3.0, 3.0]
    """,
    reference="references.linear_algebra.svd",
    native=lapack_kernel(
        *_svd_loops(),
        failure="svd: SVD did not converge",
    ),
    derivative=Rule(vjp={"self": _svd_vjp}),
    samples="samples.linalg.svd_samples",
    errors="samples.linalg.rectangular_errors",
)


@composite(
    "linalg_svdvals(Tensor self) -> Tensor",
    doc="""The singular values of a stack of matrices.

    Args:
        self: a tensor of shape ``(..., M, N)``.

    Returns:
        A real tensor of shape ``(..., min(M, N))``, descending.

    Raises:
        ShapeError: there are fewer than two axes.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.svdvals(td.eye(2) * 3).tolist()
    [3.0, 3.0]
    """,
    reference="references.linear_algebra.svdvals",
    samples="samples.linalg.rectangular_samples",
    errors="samples.linalg.rectangular_errors",
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def svdvals(self: Tensor) -> Tensor:
    result: Tensor = svd(self, full_matrices=False)[1]
    return result


# -- QR ----------------------------------------------------------------------------------------------------------------
def _qr_shape_rule(self: TensorSpec, *, mode: str = "reduced") -> tuple[TensorSpec, TensorSpec]:
    spec = check_matrices("qr", self)
    if mode not in ("reduced", "complete"):
        raise ValueArgumentError(f"qr: mode must be 'reduced' or 'complete', not {mode!r}")
    *lead, rows, columns = spec.shape
    inner = rows if mode == "complete" else min(rows, columns)
    shapes = (*lead, rows, inner), (*lead, inner, columns)
    return TensorSpec(shapes[0], spec.dtype, spec.device), TensorSpec(shapes[1], spec.dtype, spec.device)


def _qr_kernel(xp: ArrayModule, self: Array, *, mode: str) -> tuple[Array, ...]:
    return tuple(call_lapack("qr", lambda: xp.linalg.qr(self, mode)))


def _qr_vjp(g: Tensor, self: Tensor, out: Tensor, mode: str) -> Tensor:
    rows, columns = spec_of(self).shape[-2:]
    if mode == "complete" and rows > columns:
        raise NotDifferentiableError(
            "qr: the additional columns of a tall matrix are arbitrary; use mode='reduced'"
        )
    (q, r), gq, gr = out, conjugate(g[0]), conjugate(g[1])
    if columns <= rows:
        return conjugate(_square_qr_vjp(q, r, gq, gr))
    last = len(spec_of(self).shape) - 1
    behind, of_behind = slice_axis(self, last, rows, columns), slice_axis(gr, last, rows, columns)
    front = _square_qr_vjp(
        q,
        slice_axis(r, last, 0, rows),
        gq + matmul(behind, adjoint(of_behind)),
        slice_axis(gr, last, 0, rows),
    )
    return conjugate(concat([front, matmul(q, of_behind)], -1))


def _square_qr_vjp(q: Tensor, r: Tensor, gq: Tensor, gr: Tensor) -> Tensor:
    """The vjp of QR for a square R."""
    inner = matmul(r, adjoint(gr)) - matmul(adjoint(gq), q)
    below = tril(inner, k=-1)
    whole = below + adjoint(below) + to_diagonal(real_diagonal(inner))
    return adjoint(solve_stack(r, adjoint(gq + matmul(q, whole))))


qr = matrix_op(
    "linalg_qr(Tensor self, *, str mode='reduced') -> (Tensor Q, Tensor R)",
    _qr_shape_rule,
    _qr_kernel,
    doc="""The QR decompositions of a stack of matrices: orthonormal columns times an upper triangle.

    Args:
        self: a tensor of shape ``(..., M, N)``.
        mode: ``"reduced"``: Q has ``min(M, N)`` columns; ``"complete"``: M.

    Returns:
        ``(Q, R)``.

    Raises:
        ValueArgumentError: another mode.
        ShapeError: there are fewer than two axes.
        DTypeError: neither float32, float64 nor complex.

    >>> [x.shape for x in td.linalg.qr(td.ones((3, 2)))]
    [(3, 2), (2, 2)]
    """,
    reference="references.linear_algebra.qr",
    native=emitted_lapack_kernel(
        "qr",
        NativeLoop("tandem", "qr", lambda self, *, mode: mode == "reduced" and has_short_sides(self)),
        NativeLoop(
            "tandem", "qr_complete", lambda self, *, mode: mode == "complete" and has_short_sides(self)
        ),
    ),
    derivative=Rule(vjp={"self": _qr_vjp}),
    samples="samples.linalg.qr_samples",
    errors="samples.linalg.qr_errors",
)
