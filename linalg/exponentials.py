"""matrix_exp, by scaling, a Padé approximant and squaring.

Source: Higham, The scaling and squaring method for the matrix exponential revisited, 2005.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..operators.contraction.matmul import matmul
from ..operators.creation.creation import eye, nan
from ..operators.elementwise.arithmetic import abs
from ..operators.elementwise.casting import stop_gradient
from ..operators.elementwise.comparison import gt, isfinite
from ..operators.elementwise.exponential import exp2, log2
from ..operators.elementwise.rounding import ceil
from ..operators.elementwise.selection import clip, where
from ..operators.reductions.folds import max, sum
from ..operators.shape.rearrange import expand_dims
from .rules import check_matrices
from .solving import solve_stack

if TYPE_CHECKING:
    from ..registry.types import Tensor

_MOST_SQUARINGS = 16
# The largest norm for which the approximant of degree 13 is accurate in float64.
_THETA = 5.371920351148152
# The coefficients of the numerator of the approximant, that of the power 0 first.
_PADE = [math.factorial(26 - j) // math.factorial(13 - j) // math.factorial(j) for j in range(14)]
_COEFFICIENTS = [(c * math.factorial(13)) / math.factorial(26) for c in _PADE]


def _approximate(x: Tensor) -> Tensor:
    """The Padé approximant of degree 13."""
    c = _COEFFICIENTS
    one = eye(x.shape[-1], dtype=x.dtype, device=x.device)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    odd = matmul(x6, c[13] * x6 + c[11] * x4 + c[9] * x2) + c[7] * x6 + c[5] * x4 + c[3] * x2 + c[1] * one
    even = matmul(x6, c[12] * x6 + c[10] * x4 + c[8] * x2) + c[6] * x6 + c[4] * x4 + c[2] * x2 + c[0] * one
    odd = matmul(x, odd)
    return solve_stack(even - odd, even + odd)


def matrix_exp(A: Tensor) -> Tensor:
    """The exponentials of square matrices: the sum of ``A**k / k!`` over all k.

    Args:
        A: a tensor of shape ``(..., M, M)``, of floating-point or complex dtype.

    Returns:
        A tensor of the same shape and dtype; NaN for matrices with a norm above 350 000, or with NaN or infinity.

    Raises:
        ShapeError: the matrices are not square.
        DTypeError: neither float32, float64 nor complex.

    >>> import tandem as td
    >>> td.linalg.matrix_exp(td.asarray([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    spec = check_matrices("matrix_exp", A, is_square=True)
    if 0 in spec.shape:
        return A * 1
    norms = stop_gradient(max(sum(abs(A), -2), -1))
    count = clip(ceil(log2(norms / _THETA)), 0, None)
    is_known = isfinite(norms) & ~gt(count, _MOST_SQUARINGS)
    count = expand_dims(where(is_known, count, 0.0), (-2, -1))
    result = _approximate(where(expand_dims(is_known, (-2, -1)), A, 0) * exp2(-count))
    for step in range(_MOST_SQUARINGS):
        result = where(gt(count, step), matmul(result, result), result)
    return where(expand_dims(is_known, (-2, -1)), result, nan)
