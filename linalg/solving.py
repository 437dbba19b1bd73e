"""solve, inv, determinants and matrix_power."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ShapeError
from ..operators.contraction.matmul import matmul
from ..operators.creation.creation import eye
from ..operators.creation.full import zeros
from ..operators.declare.batching import (
    Batched,
    BatchInfo,
    Dims,
    expand_rank,
    logical_shape,
)
from ..operators.declare.declaration import ErrorInput, TensorSample
from ..operators.declare.derivatives import Rule
from ..operators.declare.kinds import composite
from ..operators.declare.native_kernel import NativeLoop
from ..operators.declare.shape_rules import broadcast_shapes, common_device, compute_dtype, spec_of
from ..operators.elementwise.complex_parts import imag
from ..operators.shape.rearrange import expand_dims, matrix_transpose, squeeze
from ..operators.shape.views import broadcast_to, reshape, sum_to
from ..registry.dtypes import INTEGERS
from ..registry.values import TensorSpec
from .rules import (
    DTYPES,
    TOLERANCE,
    call_lapack,
    check_matrices,
    is_unrolled,
    lapack_kernel,
    matrix_op,
    real_dtype,
)

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import Array, ArrayModule, Tensor


# -- solve -------------------------------------------------------------------------------------------------------------
def solve_shape_rule(self: TensorSpec, other: TensorSpec) -> TensorSpec:
    one, two = check_matrices("solve", self, is_square=True), check_matrices("solve", other)
    if one.shape[-1] != two.shape[-2]:
        raise ShapeError(
            f"solve: matrices of shape {one.shape[-2:]} and right-hand sides of shape {two.shape[-2:]} do not fit"
        )
    lead = broadcast_shapes("solve", one.shape[:-2], two.shape[:-2])
    dtype = compute_dtype("solve", "same", DTYPES, (one, two))
    return TensorSpec((*lead, *two.shape[-2:]), dtype, common_device("solve", (one, two)))


def solve_kernel(xp: ArrayModule, self: Array, other: Array) -> Array:
    lead = broadcast_shapes("solve", self.shape[:-2], other.shape[:-2])  # which cupy leaves to its callers
    one, two = (xp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (self, other))
    return call_lapack("solve", lambda: xp.linalg.solve(one, two))


def _matrix_vjp(g: Tensor, self: Tensor, out: Tensor) -> Tensor:
    back = solve_stack(matrix_transpose(self), g)
    return sum_to(-matmul(back, matrix_transpose(out)), self.shape)


def _right_side_vjp(g: Tensor, self: Tensor, other_spec: TensorSpec) -> Tensor:
    return sum_to(solve_stack(matrix_transpose(self), g), other_spec.shape)


def solve_batched(info: BatchInfo, in_dims: Dims, self: Tensor, other: Tensor, *options: object) -> Batched:
    rank = max(len(logical_shape(x, dim)) for x, dim in zip((self, other), in_dims))
    return info.call(expand_rank(self, in_dims[0], rank), expand_rank(other, in_dims[1], rank), *options), 0


solve_stack: OperatorFunction[Tensor] = matrix_op(
    "linalg_solve_stack(Tensor self, Tensor other) -> Tensor",
    solve_shape_rule,
    solve_kernel,
    doc="""The solutions of systems of linear equations with matrices as right-hand sides.

    Args:
        self: a tensor of shape ``(..., M, M)``.
        other: a tensor of shape ``(..., M, K)``.

    Returns:
        A tensor of shape ``(..., M, K)``.

    >>> td.ops.td.linalg_solve_stack(td.eye(2) * 2, td.eye(2)).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """,
    reference="numpy.linalg.solve",
    derivative=Rule(
        vjp={"self": _matrix_vjp, "other": _right_side_vjp},
        jvp={
            "self": lambda t, self, out: -solve_stack(self, matmul(t, out)),
            "other": lambda t, self: solve_stack(self, t),
        },
    ),
    samples="samples.linalg.solve_stack_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), TensorSample((2, 2))), ValueError, "square"),
        ErrorInput((TensorSample((2, 2)), TensorSample((3, 2))), ValueError, "do not fit"),
        ErrorInput((TensorSample((2, 2), values=(1, 2, 2, 4)), TensorSample((2, 2))), ValueError, "Singular"),
    ],
    rule=solve_batched,
    native=lapack_kernel(
        NativeLoop("tandem", "solve", is_unrolled),
        NativeLoop("numpy.linalg", "solve"),
        failure="solve: Singular matrix",
    ),
)


@composite(
    "linalg_solve(Tensor self, Tensor other) -> Tensor",
    doc="""The solutions of systems of linear equations, ``self @ x = other``.

    Args:
        self: a tensor of shape ``(..., M, M)``.
        other: a vector ``(M,)``, or a tensor of shape ``(..., M, K)``; the leading axes broadcast.

    Returns:
        A tensor of shape ``(..., M)`` or ``(..., M, K)`` and the promoted dtype.

    Raises:
        LinearAlgebraError: a matrix is singular.
        ShapeError: the matrices are not square, or the shapes do not fit.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.solve(td.asarray([[2.0, 0.0], [0.0, 4.0]]), td.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """,
    reference="references.linear_algebra.solve",
    samples="samples.linalg.solve_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), TensorSample((2,))), ValueError, "square"),
        ErrorInput((TensorSample((2, 2)), TensorSample((3,))), ValueError, "do not fit"),
        ErrorInput((TensorSample((2, 2)), TensorSample(())), ValueError, "two axes"),
    ],
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def solve(self: Tensor, other: Tensor) -> Tensor:
    if len(spec_of(other).shape) != 1:
        return solve_stack(self, other)
    return squeeze(solve_stack(self, expand_dims(other, -1)), -1)


@composite(
    "linalg_inv(Tensor self) -> Tensor",
    doc="""The inverses of a stack of square matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        LinearAlgebraError: a matrix is singular.
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.inv(td.eye(2) * 2).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """,
    reference="numpy.linalg.inv",
    samples="samples.linalg.square_samples",
    errors="samples.linalg.inv_errors",
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def inv(self: Tensor) -> Tensor:
    spec = check_matrices("inv", self, is_square=True)
    return solve_stack(self, eye(spec.shape[-1], dtype=spec.dtype, device=spec.device))


# -- determinants ------------------------------------------------------------------------------------------------------
def _scalar_spec(name: str, x: TensorSpec) -> TensorSpec:
    spec = check_matrices(name, x, is_square=True)
    return TensorSpec(spec.shape[:-2], spec.dtype, spec.device)


def _per_matrix(g: Tensor) -> Tensor:
    """One number per matrix, in a shape that broadcasts with the matrices."""
    return reshape(g, (*g.shape, 1, 1))


det = matrix_op(
    "linalg_det(Tensor self) -> Tensor",
    lambda self: _scalar_spec("det", self),
    lambda xp, self: call_lapack("det", lambda: xp.asarray(xp.linalg.det(self))),
    doc="""The determinants of a stack of square matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        A tensor of shape ``(...)`` and the same dtype. Its derivative needs invertible matrices.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.det(td.eye(2) * 2).item()
    4.0
    """,
    reference="numpy.linalg.det",
    native=lapack_kernel(NativeLoop("numpy.linalg", "det")),
    derivative=Rule(vjp={"self": lambda g, self, out: _per_matrix(g * out) * matrix_transpose(inv(self))}),
)


def _slogdet_shape_rule(self: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    spec = _scalar_spec("slogdet", self)
    return spec, TensorSpec(spec.shape, real_dtype(spec.dtype), spec.device)


def _slogdet_vjp(g: Tensor, self: Tensor, out: Tensor) -> Tensor:
    of_sign, of_log = g
    if spec_of(self).dtype.kind == "c":
        of_log = of_log + 1j * imag(of_sign * out[0])
    return _per_matrix(of_log) * matrix_transpose(inv(self))


slogdet = matrix_op(
    "linalg_slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
    _slogdet_shape_rule,
    lambda xp, self: call_lapack("slogdet", lambda: tuple(map(xp.asarray, xp.linalg.slogdet(self)))),
    doc="""The signs of the determinants and the logarithms of their magnitudes.

    Args:
        self: a tensor of shape ``(..., M, M)``.

    Returns:
        ``(sign, logabsdet)``, each of shape ``(...)``; a complex sign has magnitude 1.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> [x.item() for x in td.linalg.slogdet(td.eye(2))]
    [1.0, 0.0]
    """,
    reference="references.linear_algebra.slogdet",
    native=lapack_kernel(NativeLoop("numpy.linalg", "slogdet")),
    derivative=Rule(vjp={"self": _slogdet_vjp}),
)


# -- powers ------------------------------------------------------------------------------------------------------------
@composite(
    "linalg_matrix_power(Tensor self, int n) -> Tensor",
    doc="""Integer powers of square matrices.

    Args:
        self: a tensor of shape ``(..., M, M)``.
        n: the exponent; negative: powers of the inverse; 0: the identity.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        LinearAlgebraError: ``n`` is negative and a matrix is singular.
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex; nor integers, if ``n`` is not negative.

    >>> td.linalg.matrix_power(td.eye(2) * 2, 3).tolist()
    [[8.0, 0.0], [0.0, 8.0]]
    """,
    reference="numpy.linalg.matrix_power",
    samples="samples.linalg.matrix_power_samples",
    errors=lambda: [ErrorInput((TensorSample((2, 3)), 2), ValueError, "square")],
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
    autocast="float32",
)
def matrix_power(self: Tensor, n: int) -> Tensor:
    spec = check_matrices(
        "matrix_power", self, is_square=True, dtypes=DTYPES if n < 0 else (*INTEGERS, *DTYPES)
    )
    if n == 0:
        unit = eye(spec.shape[-1], dtype=spec.dtype, device=spec.device)
        return zeros(spec.shape, dtype=spec.dtype, device=spec.device) + broadcast_to(unit, spec.shape)
    base, left = (inv(self) if n < 0 else self), abs(n)
    result: Tensor | None = None
    while True:
        if left % 2:
            result = base if result is None else matmul(result, base)
        left //= 2
        if not left:
            return base if result is None else result
        base = matmul(base, base)
