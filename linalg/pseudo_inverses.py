"""Pseudo-inverses of matrices.

Source: Golub and Pereyra, The differentiation of pseudo-inverses, 1973.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ShapeError
from ..operators.contraction.matmul import matmul
from ..operators.creation.full import zeros
from ..operators.declare.derivatives import Rule
from ..operators.declare.kinds import composite
from ..operators.declare.shape_rules import broadcast_shapes, is_tensor, spec_of
from ..operators.elementwise.comparison import gt
from ..operators.elementwise.complex_parts import conj
from ..operators.elementwise.selection import where
from ..operators.reductions.folds import max as max_over
from ..operators.shape.rearrange import expand_dims, matrix_transpose
from ..registry.dtype_functions import finfo
from ..registry.values import TensorSpec
from .factorizations import conjugate, svd
from .rules import DTYPES, TOLERANCE, adjoint, check_matrices

if TYPE_CHECKING:
    from ..registry.types import Tensor


def _pinv_shape_rule(self: TensorSpec, rtol: TensorSpec | float | None = None) -> TensorSpec:
    spec = check_matrices("pinv", self)
    _check_rtol(spec.shape[:-2], getattr(rtol, "shape", ()))
    return TensorSpec((*spec.shape[:-2], *spec.shape[:-3:-1]), spec.dtype, spec.device)


def _check_rtol(lead: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if broadcast_shapes("pinv", shape, lead) != lead:
        raise ShapeError(f"pinv: rtol of shape {shape} does not broadcast to {lead}, the shape of the stack")


def _pinv_vjp(g: Tensor, self: Tensor, out: Tensor) -> Tensor:
    p, gh = adjoint(out), matrix_transpose(g)
    residual = gh - matmul(self, matmul(out, gh))
    value = matmul(residual, matmul(out, p)) - matmul(p, matmul(adjoint(gh), p))
    inner = matmul(p, matmul(out, gh))
    value = value + inner - matmul(inner, matmul(out, self))
    return conj(value) if spec_of(value).dtype.kind == "c" else value


@composite(
    "linalg_pinv(Tensor self, Tensor? rtol=None) -> Tensor",
    doc="""The Moore-Penrose pseudo-inverses of a stack of matrices.

    Args:
        self: a tensor of shape ``(..., M, N)``.
        rtol: singular values up to this share of the largest count as 0: a number, or a tensor that broadcasts to
            ``(...)``; None: the dtype's precision times the longer side.

    Returns:
        A tensor of shape ``(..., N, M)`` and the same dtype; its derivative assumes a constant rank.

    Raises:
        ShapeError: there are fewer than two axes.
        DTypeError: neither float32, float64 nor complex.

    >>> td.linalg.pinv(td.eye(2) * 2).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """,
    reference="references.linear_algebra.pinv",
    spellings={"rcond": "rtol"},
    ignored=("hermitian",),
    explicit=True,
    shape_rule=_pinv_shape_rule,
    derivative=Rule(vjp={"self": _pinv_vjp}),
    autocast="float32",
    samples="samples.linalg.rectangular_samples",
    errors="samples.linalg.rectangular_errors",
    dtypes=DTYPES,
    tolerance=TOLERANCE,
    method=False,
)
def pinv(self: Tensor, rtol: Tensor | float | None) -> Tensor:
    spec = spec_of(self)
    limits: TensorSpec | float | None = spec_of(rtol) if is_tensor(rtol) else rtol  # type: ignore[assignment]
    result = _pinv_shape_rule(spec, limits)
    if not spec.size:
        return zeros(result.shape, dtype=spec.dtype, device=spec.device)
    limit = max(spec.shape[-2:]) * finfo(spec.dtype).eps if rtol is None else rtol
    left, values, right = svd(conjugate(self), full_matrices=False)
    share = expand_dims(limit, -1) if is_tensor(limit) else limit
    is_large = gt(values, share * max_over(values, -1, keepdims=True))
    inverse = where(is_large, 1 / where(is_large, values, 1), 0)
    return matmul(matrix_transpose(right), expand_dims(inverse, -1) * matrix_transpose(left))
