"""solve_triangular, and the operator on stacks of matrices that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.contraction.matmul import matmul
from ..operators.creation.creation import eye
from ..operators.declare.batching import Batched, BatchInfo, Dims
from ..operators.declare.declaration import ErrorInput, TensorSample
from ..operators.declare.derivatives import Rule
from ..operators.declare.native_kernel import Decomposition, NativeLoop
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.selection import where
from ..operators.shape.rearrange import matrix_transpose
from ..operators.shape.triangles import tril, triu
from ..operators.shape.views import sum_to
from ..registry.dtypes import float32, float64
from ..registry.values import TensorSpec
from .rules import check_matrices, lapack_kernel, matrix_op
from .solving import solve_batched, solve_kernel, solve_shape_rule, solve_stack

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import Array, ArrayModule, Tensor


_LARGE = 96
"""The rows of triangular matrices from which on BLAS solves systems faster than an emitted loop."""
_LARGE_ALONE = 48
"""The same for a single right-hand side."""


def _keep(x: Tensor, lower: bool) -> Tensor:
    result: Tensor = tril(x) if lower else triu(x)
    return result


def _kernel(xp: ArrayModule, self: Array, other: Array, lower: bool) -> Array:
    return solve_kernel(xp, xp.tril(self) if lower else xp.triu(self), other)


def _matrix_vjp(g: Tensor, self: Tensor, out: Tensor, lower: bool) -> Tensor:
    back = solve_triangular_stack(matrix_transpose(self), g, not lower)
    return _keep(sum_to(-matmul(back, matrix_transpose(out)), self.shape), lower)


def _right_side_vjp(g: Tensor, self: Tensor, other_spec: TensorSpec, lower: bool) -> Tensor:
    return sum_to(solve_triangular_stack(matrix_transpose(self), g, not lower), other_spec.shape)


def _is_large(self: TensorSpec, other: TensorSpec) -> bool:
    """Whether BLAS solves systems faster than an emitted loop."""
    return self.shape[-1] >= (_LARGE_ALONE if other.shape[-1] == 1 else _LARGE)


def _batched(info: BatchInfo, in_dims: Dims, self: Tensor, other: Tensor, lower: bool) -> Batched:
    return solve_batched(info, in_dims, self, other, lower)


solve_triangular_stack: OperatorFunction[Tensor] = matrix_op(
    "linalg_solve_triangular_stack(Tensor self, Tensor other, bool lower) -> Tensor",
    lambda self, other, lower: solve_shape_rule(self, other),
    _kernel,
    doc="""The solutions of systems of linear equations with triangular matrices, by substitution.

    Args:
        self: a tensor of shape ``(..., M, M)``; the elements outside of the triangle are not read.
        other: a tensor of shape ``(..., M, K)``.
        lower: whether the lower triangles are read, not the upper ones.

    Returns:
        A tensor of shape ``(..., M, K)``.

    >>> td.ops.td.linalg_solve_triangular_stack(td.asarray([[2.0, 9.0], [1.0, 1.0]]), td.ones((2, 1)), True).tolist()
    [[0.5], [0.5]]
    """,
    reference="references.linear_algebra.solve_triangular_stack",
    derivative=Rule(
        vjp={"self": _matrix_vjp, "other": _right_side_vjp},
        jvp={
            "self": lambda t, self, out, lower: (
                -solve_triangular_stack(self, matmul(_keep(t, lower), out), lower)
            ),
            "other": lambda t, self, lower: solve_triangular_stack(self, t, lower),
        },
    ),
    samples="samples.linalg.solve_triangular_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), TensorSample((2, 2)), True), ValueError, "square"),
        ErrorInput((TensorSample((2, 2)), TensorSample((3, 2)), True), ValueError, "do not fit"),
        ErrorInput(
            (TensorSample((2, 2), values=(1, 2, 2, 0)), TensorSample((2, 2)), True), ValueError, "Singular"
        ),
    ],
    rule=_batched,
    native=lapack_kernel(
        NativeLoop(
            "tandem", "solve_lower_by_blas", lambda self, other, lower: lower and _is_large(self, other)
        ),
        NativeLoop(
            "tandem", "solve_upper_by_blas", lambda self, other, lower: not lower and _is_large(self, other)
        ),
        NativeLoop("tandem", "solve_lower", lambda self, other, lower: lower),
        NativeLoop("tandem", "solve_upper", lambda self, other, lower: not lower),
        failure="solve: Singular matrix",
        dtypes=(float32, float64),
    ),
    decomposition=Decomposition(
        lambda self, other, lower: solve_stack(_keep(self, lower), other),
        lambda self, other, lower: "c" in (self.dtype.kind, other.dtype.kind),
    ),
)


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
    matrices = A
    if unitriangular:
        matrices = where(eye(spec.shape[-1], dtype="bool", device=spec.device), 1, matrices)
    if left:
        return solve_triangular_stack(matrices, B, not upper)
    check_matrices("solve_triangular", spec_of(B))
    return matrix_transpose(solve_triangular_stack(matrix_transpose(matrices), matrix_transpose(B), upper))
