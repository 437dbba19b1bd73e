"""Functions of linear algebra with the arguments of NumPy and JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .. import lazy as _lazy
from ..operators.contraction import kron
from ..operators.shape.rearrange import moveaxis
from .array_likes import name_operator

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


@name_operator(kron.cross, "axisa", "axisb", "axisc", takes_none=True, most=2)
def cross(
    a: Tensor, b: Tensor, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """The cross product of vectors of three coordinates.

    Args:
        a, b: tensors with size 3 along an axis; the other axes broadcast.
        axisa, axisb, axisc: the axes of the coordinates of ``a``, of ``b`` and of the result.
        axis: one axis in place of the three.

    Raises:
        ShapeError: a size along an axis is not 3, or the shapes do not broadcast.

    >>> import tandem.numpy as np
    >>> np.cross(np.eye(3)[:, :2], [0.0, 0.0, 1.0], axisa=0, axisc=0).tolist()
    [[0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]]

    Source: ``numpy.cross``.
    """
    if axis is not None:
        return kron.cross(a, b, axis=axis)
    result = kron.cross(moveaxis(a, axisa, -1), moveaxis(b, axisb, -1))
    return moveaxis(result, -1, axisc)
