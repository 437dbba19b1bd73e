"""Functions of linear algebra with the arguments of NumPy and JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .. import lazy as _lazy

if TYPE_CHECKING:
    from ..registry.types import Tensor

_linalg = _lazy.Module(".linalg")


def svd(
    a: Tensor, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """The singular value decomposition of a stack of matrices; see ``td.linalg.svd``.

    Args:
        a: a tensor of shape ``(..., M, N)``.
        full_matrices: whether the matrices of vectors are square.
        compute_uv: whether to return the vectors; otherwise the singular values only.
        hermitian: accepted for compatibility with NumPy.

    Source: ``numpy.linalg.svd``.

    >>> import tandem.numpy as np
    >>> np.linalg.svd([[3, 0], [0, 4]], compute_uv=False).tolist()
    [4.0, 3.0]
    """
    result: Tensor | tuple[Tensor, Tensor, Tensor]
    result = _linalg.svd(a, full_matrices=full_matrices) if compute_uv else _linalg.svdvals(a)
    return result


def qr(a: Tensor, mode: Literal["reduced", "complete", "r"] = "reduced") -> Tensor | tuple[Tensor, Tensor]:
    """The QR decomposition of a stack of matrices; with the mode "r", the triangular matrices only.

    Source: ``numpy.linalg.qr``; see ``td.linalg.qr``.
    """
    result: Tensor | tuple[Tensor, Tensor]
    result = _linalg.qr(a, mode="reduced").R if mode == "r" else _linalg.qr(a, mode=mode)
    return result


def matrix_rank(
    A: Tensor,
    tol: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """The rank of each matrix; see ``td.linalg.matrix_rank``.

    Args:
        A: a tensor of shape ``(..., M, N)``.
        tol: the singular value up to which values count as 0; None: ``rtol`` times the largest one.
        hermitian: accepted for compatibility with NumPy.
        rtol: the share of the largest singular value that counts as 0; None: it depends on the dtype.

    Source: ``numpy.linalg.matrix_rank``.
    """
    result: Tensor = _linalg.matrix_rank(A, atol=tol, rtol=rtol)
    return result
