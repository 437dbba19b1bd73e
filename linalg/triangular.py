"""solve_triangular."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.creation.creation import eye
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.selection import where
from ..operators.shape.rearrange import matrix_transpose
from ..operators.shape.triangles import tril, triu
from .rules import check_matrices
from .solving import solve_stack

if TYPE_CHECKING:
    from ..registry.types import Tensor


def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    """The solutions of systems of linear equations with triangular matrices.

    Args:
        A: a tensor of shape ``(..., M, M)``; the elements outside of the triangle are not read.
        B: a tensor of shape ``(..., M, K)``, or ``(..., K, M)`` with ``left=False``.
        upper: whether the upper triangles are read, not the lower ones.
        left: whether to solve ``A @ X = B``; False: ``X @ A = B``.
        unitriangular: whether the diagonals are ones, and not read.

    Returns:
        A tensor of the shape of ``B``, with leading axes that broadcast.

    Raises:
        ShapeError: the matrices are not square, or the shapes do not fit.
        LinearAlgebraError: a matrix is singular.

    >>> import tandem as td
    >>> td.linalg.solve_triangular(td.asarray([[2.0, 9.0], [1.0, 1.0]]), td.ones((2, 1)), upper=False).tolist()
    [[0.5], [0.5]]
    """
    spec = check_matrices("solve_triangular", A, is_square=True)
    matrices = triu(A) if upper else tril(A)
    if unitriangular:
        matrices = where(eye(spec.shape[-1], dtype="bool", device=spec.device), 1, matrices)
    if left:
        return solve_stack(matrices, B)
    check_matrices("solve_triangular", spec_of(B))
    return matrix_transpose(solve_stack(matrix_transpose(matrices), matrix_transpose(B)))
