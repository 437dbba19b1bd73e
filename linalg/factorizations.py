"""Factorizations of matrices: Cholesky, QR, eigenvalues of symmetric matrices, singular values.

Derivatives hold where the matrices have full rank and distinct eigenvalues or singular values; where some are equal,
those of the values hold, and what depends on their vectors has the derivative NaN. Eigenvectors and singular vectors of
complex matrices are determined up to a phase, so only what does not depend on it has a derivative.

Sources: Giles, Collected matrix derivative results, 2008; Townsend, Differentiating the singular value decomposition,
2016; Walter and Lehmann, Algorithmic differentiation of linear algebra functions, 2012.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import NotDifferentiableError, ValueArgumentError
from ..operators.comparison import eq, logical_and, ne
from ..operators.complex_parts import conj, real
from ..operators.contraction import matmul
from ..operators.creation import eye
from ..operators.declare import Bad, Draw, Sample
from ..operators.derivatives import Rule
from ..operators.diagonals import diagonal
from ..operators.joining import concat
from ..operators.kinds import composite
from ..operators.pieces import part
from ..operators.rearrange import expand_dims, matrix_transpose
from ..operators.rounding import abs
from ..operators.rules import spec_of
from ..operators.selection import where
from ..operators.triangles import tril
from ..registry.dtypes import DType, bool_
from ..registry.values import TensorSpec
from .rules import (
    SOLVED,
    TAKEN,
    adjoint,
    guarded,
    matrices,
    oblong_errors,
    oblong_samples,
    real_dtype,
    references,
    square_errors,
    square_samples,
    stacked,
    symmetric,
    well_conditioned,
)
from .solving import inv, solve_stack


def conjugated(x: Any) -> Any:
    return conj(x) if spec_of(x).dtype.kind == "c" else x


def on_diagonal(x: Any) -> Any:
    """Matrices with the vectors on their diagonals."""
    spec = spec_of(x)
    return expand_dims(x, -1) * eye(spec.shape[-1], dtype=real_dtype(spec.dtype), device=spec.device)


def _real_diagonal(x: Any) -> Any:
    found = diagonal(x, 0, -2, -1)
    return real(found) if spec_of(x).dtype.kind == "c" else found


def over_gaps(x: Any, values: Any, of_vectors: Any) -> Any:
    """``x[i, j] / (values[j] - values[i])``, and 0 on the diagonal.

    Beside the diagonal, where two values are equal, it is 0 if nothing depends on the vectors, and else NaN.
    """
    gap = expand_dims(values, -2) - expand_dims(values, -1)
    is_same = eq(gap, 0)
    is_unknown = logical_and(ne(of_vectors, 0), ~eye(spec_of(values).shape[-1], dtype=bool_, device=x.device))
    return where(is_same, where(is_unknown, math.nan, 0.0), x / where(is_same, 1.0, gap))


# -- Cholesky ----------------------------------------------------------------------------------------------------------
def _cholesky_meta(self: Any, *, upper: bool = False) -> TensorSpec:
    return matrices("cholesky", self, is_square=True)


def _cholesky_kernel(xp: Any, self: Any, *, upper: bool) -> Any:
    whole = (self + xp.conj(xp.swapaxes(self, -1, -2))) / 2
    lower = guarded("cholesky", lambda: xp.linalg.cholesky(whole))
    return xp.conj(xp.swapaxes(lower, -1, -2)) if upper else lower


def _cholesky_vjp(g: Any, out: Any, upper: bool) -> Any:
    lower, g = (adjoint(out), adjoint(g)) if upper else (out, g)
    inverse = inv(lower)
    inner = tril(matmul(matrix_transpose(lower), g))
    inner = inner - on_diagonal(diagonal(inner, 0, -2, -1)) + on_diagonal(_real_diagonal(inner)) / 2
    return symmetric(matmul(matrix_transpose(inverse), matmul(inner, conjugated(inverse))))


cholesky: Any = stacked(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    _cholesky_meta,
    _cholesky_kernel,
    doc="""The Cholesky factors of a stack of positive definite matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``; of what is not symmetric (Hermitian), the symmetric part is taken.
        upper: whether the factor is the upper one.

    Returns:
        A tensor ``L`` of the same shape and dtype, lower triangular, with ``L @ L.mT.conj() = self``; or its adjoint.

    Raises:
        LinearAlgebraError: a matrix is not positive definite.
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.cholesky(td.eye(2) * 4).tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """,
    reference=references.cholesky,
    derivative=Rule(vjp={"self": _cholesky_vjp}),
    samples=lambda dtype: _definite_samples(dtype),
    errors=lambda: [
        *square_errors(),
        Bad((Draw((2, 2), values=(1, 2, 2, 1)),), ValueError, "positive definite"),
    ],
)


def _definite_samples(dtype: DType) -> list[Sample]:
    return [
        Sample((Draw((1, 1), 0.5, 2.0),)),
        Sample((Draw((2, 1, 1), 0.5, 2.0),), {"upper": True}),
        Sample((Draw((3, 1, 1), 0.5, 2.0),)),
        Sample((Draw((0, 0)),)),
    ]


# -- eigenvalues of symmetric matrices ---------------------------------------------------------------------------------
def _eigh_meta(self: Any) -> tuple[TensorSpec, TensorSpec]:
    spec = matrices("eigh", self, is_square=True)
    return TensorSpec(spec.shape[:-1], real_dtype(spec.dtype), spec.device), spec


def _eigh_kernel(xp: Any, self: Any) -> Any:
    whole = (self + xp.conj(xp.swapaxes(self, -1, -2))) / 2
    return tuple(guarded("eigh", lambda: xp.linalg.eigh(whole)))


def _eigh_vjp(g: Any, out: Any) -> Any:
    values, vectors = out
    turned = matmul(matrix_transpose(vectors), g[1])
    inner = on_diagonal(g[0]) + over_gaps(turned, values, turned)
    return symmetric(matmul(conjugated(vectors), matmul(inner, matrix_transpose(vectors))))


eigh: Any = stacked(
    "linalg_eigh(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    _eigh_meta,
    _eigh_kernel,
    doc="""The eigenvalues and eigenvectors of a stack of symmetric (Hermitian) matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``; of what is not symmetric, the symmetric part is taken.

    Returns:
        ``(eigenvalues, eigenvectors)``: real and ascending, ``(..., M)``; in columns, ``(..., M, M)``.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.eigh(td.eye(2) * 3)[0].tolist()
    [3.0, 3.0]
    """,
    reference=references.eigh,
    derivative=Rule(vjp={"self": _eigh_vjp}),
)


@composite(
    "linalg_eigvalsh(Tensor self) -> Tensor",
    doc="""The eigenvalues of a stack of symmetric (Hermitian) matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``; of what is not symmetric, the symmetric part is taken.

    Returns:
        A real tensor of shape ``(..., M)``, ascending.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.eigvalsh(td.eye(2) * 3).tolist()
    [3.0, 3.0]
    """,
    reference=references.eigvalsh,
    samples=square_samples,
    errors=square_errors,
    dtypes=TAKEN,
    tolerance=SOLVED,
    method=False,
)
def eigvalsh(self: Any) -> Any:
    return eigh(self)[0]


# -- singular values ---------------------------------------------------------------------------------------------------
def _svd_meta(self: Any, *, full_matrices: bool = True) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    spec = matrices("svd", self)
    *lead, rows, columns = spec.shape
    least = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (least, least)
    return (
        TensorSpec((*lead, rows, left), spec.dtype, spec.device),
        TensorSpec((*lead, least), real_dtype(spec.dtype), spec.device),
        TensorSpec((*lead, right, columns), spec.dtype, spec.device),
    )


def _svd_kernel(xp: Any, self: Any, *, full_matrices: bool) -> Any:
    return tuple(guarded("svd", lambda: xp.linalg.svd(self, full_matrices)))


def _svd_vjp(g: Any, self_spec: TensorSpec, out: Any, full_matrices: bool) -> Any:
    rows, columns = self_spec.shape[-2:]
    if full_matrices and rows != columns:
        raise NotDifferentiableError(
            "svd: the vectors that fill up an oblong matrix are any; use full_matrices=False"
        )
    u, s, vh = out
    gu, gs, gvh = conjugated(g[0]), g[1], conjugated(g[2])
    uh, v, wide = adjoint(u), adjoint(vh), expand_dims(s, -2)
    of_u, of_v = matmul(uh, gu), matmul(vh, adjoint(gvh))
    both = _skew(of_u) * wide + expand_dims(s, -1) * _skew(of_v)
    core = over_gaps(both, s * s, abs(of_u) + abs(of_v)) + on_diagonal(gs)
    if self_spec.dtype.kind == "c":
        core = core + on_diagonal(diagonal(_skew(of_u), 0, -2, -1) / (2 * s))
    found = matmul(u, core)
    if rows > columns:
        scaled = gu / wide
        found = found + scaled - matmul(u, matmul(uh, scaled))
    found = matmul(found, vh)
    if columns > rows:
        scaled = gvh / expand_dims(s, -1)
        found = found + matmul(u, scaled - matmul(matmul(scaled, v), vh))
    return conjugated(found)


def _skew(x: Any) -> Any:
    return x - adjoint(x)


svd: Any = stacked(
    "linalg_svd(Tensor self, *, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)",
    _svd_meta,
    _svd_kernel,
    doc="""The singular value decompositions of a stack of matrices.

    Args:
        self: a tensor of shape ``(..., M, N)``.
        full_matrices: whether U and Vh are square; without, they have as many vectors as there are singular values.

    Returns:
        ``(U, S, Vh)`` with ``self = (U * S) @ Vh``; S is real and descending. The derivative of an oblong matrix needs
        ``full_matrices=False``.

    Raises:
        ShapeError: there are fewer than two axes.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.svd(td.eye(2) * 3)[1].tolist()
    [3.0, 3.0]
    """,
    reference=references.svd,
    derivative=Rule(vjp={"self": _svd_vjp}),
    samples=lambda dtype: [
        *(Sample(sample.args, {"full_matrices": False}) for sample in oblong_samples(dtype)),
        Sample((well_conditioned(3),)),
        Sample((Draw((3, 2), values=(3.0, 1.0, -1.0, 2.0, 0.5, 0.0)),)),
    ],
    errors=oblong_errors,
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
    reference=references.svdvals,
    samples=oblong_samples,
    errors=oblong_errors,
    dtypes=TAKEN,
    tolerance=SOLVED,
    method=False,
)
def svdvals(self: Any) -> Any:
    return svd(self, full_matrices=False)[1]


# -- QR ----------------------------------------------------------------------------------------------------------------
def _qr_meta(self: Any, *, mode: str = "reduced") -> tuple[TensorSpec, TensorSpec]:
    spec = matrices("qr", self)
    if mode not in ("reduced", "complete"):
        raise ValueArgumentError(f"qr: the mode is 'reduced' or 'complete', not {mode!r}")
    *lead, rows, columns = spec.shape
    inner = rows if mode == "complete" else min(rows, columns)
    shapes = (*lead, rows, inner), (*lead, inner, columns)
    return TensorSpec(shapes[0], spec.dtype, spec.device), TensorSpec(shapes[1], spec.dtype, spec.device)


def _qr_kernel(xp: Any, self: Any, *, mode: str) -> Any:
    return tuple(guarded("qr", lambda: xp.linalg.qr(self, mode)))


def _qr_vjp(g: Any, self: Any, out: Any, mode: str) -> Any:
    rows, columns = spec_of(self).shape[-2:]
    if mode == "complete" and rows > columns:
        raise NotDifferentiableError("qr: the columns that fill up a tall matrix are any; use mode='reduced'")
    (q, r), gq, gr = out, conjugated(g[0]), conjugated(g[1])
    if columns <= rows:
        return conjugated(_by_square(q, r, gq, gr))
    last = len(spec_of(self).shape) - 1
    behind, of_behind = part(self, last, rows, columns), part(gr, last, rows, columns)
    front = _by_square(
        q, part(r, last, 0, rows), gq + matmul(behind, adjoint(of_behind)), part(gr, last, 0, rows)
    )
    return conjugated(concat([front, matmul(q, of_behind)], -1))


def _by_square(q: Any, r: Any, gq: Any, gr: Any) -> Any:
    """The gradient where R is square."""
    inner = matmul(r, adjoint(gr)) - matmul(adjoint(gq), q)
    below = tril(inner, k=-1)
    whole = below + adjoint(below) + on_diagonal(_real_diagonal(inner))
    return adjoint(solve_stack(r, adjoint(gq + matmul(q, whole))))


qr: Any = stacked(
    "linalg_qr(Tensor self, *, str mode='reduced') -> (Tensor Q, Tensor R)",
    _qr_meta,
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
    reference=references.qr,
    derivative=Rule(vjp={"self": _qr_vjp}),
    samples=lambda dtype: [
        *oblong_samples(dtype),
        Sample((Draw((3, 2), values=(3.0, 1.0, -1.0, 2.0, 0.5, 0.0)),), {"mode": "complete"}),
    ],
    errors=lambda: [*oblong_errors(), Bad((Draw((2, 2)),), ValueError, "mode", {"mode": "full"})],
)
