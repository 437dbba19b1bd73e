"""Eigenvalues and eigenvectors of general matrices.

The vectors have length 1; LAPACK chooses their phase, so only functions that do not depend on it have a derivative.

Sources: Giles, Collected matrix derivative results, 2008; Boeddeker et al., On the computation of complex-valued
gradients, 2017.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.contraction.matmul import matmul
from ..operators.declare.derivatives import Rule
from ..operators.declare.kinds import composite
from ..operators.declare.native_kernel import NativeLoop
from ..operators.elementwise.complex_parts import real
from ..operators.shape.diagonals import diagonal
from ..operators.shape.rearrange import expand_dims, matrix_transpose
from ..registry.dtypes import to_complex
from ..registry.values import TensorSpec
from .factorizations import conjugate, divide_by_gaps, to_diagonal
from .rules import DTYPES, TOLERANCE, call_lapack, check_matrices, lapack_kernel, matrix_op
from .solving import solve

if TYPE_CHECKING:
    from ..registry.types import Array, ArrayModule, Tensor


def _shape_rule(self: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    spec = check_matrices("eig", self, is_square=True)
    dtype = to_complex(spec.dtype)
    return TensorSpec(spec.shape[:-1], dtype, spec.device), spec._replace(dtype=dtype)


def _kernel(xp: ArrayModule, self: Array) -> tuple[Array, ...]:
    dtype = xp.result_type(self.dtype, xp.complex64)  # NumPy returns real results if all are real
    return tuple(one.astype(dtype, copy=False) for one in call_lapack("eig", lambda: xp.linalg.eig(self)))


def _vjp(g: Tensor, self_spec: TensorSpec, out: Tensor) -> Tensor:
    """Differentiate eigenvalues and eigenvectors.

    ``dV = V @ M`` with ``M[i, j] = (inv(V) @ dA @ V)[i, j] / (w[j] - w[i])``, and on the diagonal what leaves each
    vector orthogonal to its change, as its length is 1.
    """
    values, vectors = out
    turned = matrix_transpose(vectors)
    of_vectors = matmul(turned, g[1])
    projection = matmul(turned, conjugate(vectors)) * expand_dims(diagonal(of_vectors, 0, -2, -1), -2)
    rest = of_vectors - projection
    inner = to_diagonal(g[0]) + divide_by_gaps(rest, values, rest)
    result = solve(turned, matmul(inner, turned))
    return result if self_spec.dtype.kind == "c" else real(result)


eig = matrix_op(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    _shape_rule,
    _kernel,
    doc="""The eigenvalues and right eigenvectors of a stack of matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        ``(eigenvalues, eigenvectors)``, complex and in no order: ``(..., M)``, and in columns of length 1
        ``(..., M, M)``.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.eig(td.asarray([[0.0, 1.0], [-1.0, 0.0]]))[0].tolist()
    [1j, -1j]
    """,
    reference="references.linear_algebra.eig",
    derivative=Rule(vjp={"self": _vjp}),
    native=lapack_kernel(
        NativeLoop("numpy.linalg", "eig"),
        failure="eig: Array must not contain infs or NaNs, or Eigenvalues did not converge",
        is_finite=True,
    ),
    samples="samples.linalg.eigen_samples",
)


@composite(
    "linalg_eigvals(Tensor self) -> Tensor",
    doc="""The eigenvalues of a stack of matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        A complex tensor of shape ``(..., M)``, in no order.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.eigvals(td.eye(2) * 3).tolist()
    [(3+0j), (3+0j)]
    """,
    reference="references.linear_algebra.eigvals",
    samples="samples.linalg.eigen_samples",
    errors="samples.linalg.square_errors",
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def eigvals(self: Tensor) -> Tensor:
    result: Tensor = eig(self)[0]
    return result
