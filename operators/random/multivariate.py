"""Distributions of vectors and matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import FLOATS, DType
from ...registry.function import functions
from ...registry.lazy_operators import materialize
from ...registry.values import TensorSpec
from ..contraction.matmul import matmul
from ..declare.kinds import composite
from ..declare.shape_rules import check_shape, spec_of
from ..elementwise.casting import astype
from ..elementwise.exponential import sqrt
from ..elementwise.selection import maximum, where
from ..shape.diagonals import diagonal
from ..shape.rearrange import expand_dims, matrix_transpose
from .continuous import RAISES, exponential
from .gamma import CLOSE, generalized_normal, split_key
from .uniform import cast_parameter, float_dtype, normal, sample_shape, working_dtype

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Shape, Tensor

SUMS = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-10}


def _check_square(name: str, x: Tensor) -> TensorSpec:
    spec = spec_of(x)
    if len(spec.shape) < 2 or spec.shape[-1] != spec.shape[-2]:
        raise ShapeError(f"{name}: takes square matrices, not {spec}")
    return spec


# -- roots of matrices -------------------------------------------------------------------------------------------------
def _linalg_operator(name: str) -> OperatorFunction[Any]:
    materialize(f"td::linalg_{name}")
    return functions[f"td::linalg_{name}"]


def _root_by_cholesky(x: Tensor) -> Tensor:
    root: Tensor = _linalg_operator("cholesky_ex")(x)[0]
    return root


def _root_by_eigh(x: Tensor) -> Tensor:
    values, vectors = _linalg_operator("eigh")(x)
    rounding = np.finfo(spec_of(x).dtype.np).eps * spec_of(x).shape[-1]
    values = where(values < -rounding * values[..., -1:], np.nan, values)
    result: Tensor = vectors * sqrt(maximum(values, 0.0))[..., None, :]
    return result


def _root_by_svd(x: Tensor) -> Tensor:
    vectors, values, _ = _linalg_operator("svd")(x)
    result: Tensor = vectors * sqrt(values)[..., None, :]
    return result


_ROOTS: dict[str, Callable[[Tensor], Tensor]] = {
    "cholesky": _root_by_cholesky,
    "eigh": _root_by_eigh,
    "svd": _root_by_svd,
}


# -- distributions -----------------------------------------------------------------------------------------------------


@composite(
    "random_multivariate_normal(Tensor key, Tensor mean, Tensor cov, SymInt[]? shape=None, ScalarType? dtype=None, "
    "str method='cholesky') -> Tensor",
    doc="""Samples of the multivariate normal distribution.

    Args:
        key: a key, or several.
        mean: a tensor of shape ``(..., n)``.
        cov: a tensor of shape ``(..., n, n)`` of symmetric, positive definite matrices; NaN comes of others.
        shape: the shape of vectors to draw for each key, to which the leading axes broadcast; None: these.
        dtype: a float dtype; None: that of ``mean`` and ``cov``.
        method: how the root of ``cov`` is found: ``"cholesky"``, or ``"eigh"`` or ``"svd"``, which are slower and take
            matrices of lower rank too; of negative eigenvalues ``"svd"`` takes the magnitude.

    Returns:
        A tensor of that shape and one axis of ``n`` more; with several keys, their axes come first.

    Raises:
        DTypeError: no float dtype, or no key.
        ShapeError: no key, or shapes that do not fit.
        ValueArgumentError: another method.

    >>> td.random.multivariate_normal(td.random.key(0), td.zeros(2), td.eye(2), (3,)).shape
    (3, 2)
    """,
    reference="references.vectors.multivariate_normal",
    samples="samples.distributions.normal_samples",
    errors="samples.distributions.multivariate_normal_errors",
    dtypes=FLOATS,
    tolerance=SUMS,
    autocast="float32",
    method=False,
)
def multivariate_normal(
    key: Tensor, mean: Tensor, cov: Tensor, shape: Shape, dtype: DType | None, method: str
) -> Tensor:
    name = "random_multivariate_normal"
    if method not in _ROOTS:
        raise ValueArgumentError(f"{name}: method is one of {', '.join(map(repr, _ROOTS))}, not {method!r}")
    one, two = spec_of(mean), _check_square(name, cov)
    if one.shape[-1:] != two.shape[-1:]:
        raise ShapeError(
            f"{name}: the mean has as many elements as the covariance has rows, unlike {one} and {two}"
        )
    leads = TensorSpec(one.shape[:-1], one.dtype), TensorSpec(two.shape[:-2], two.dtype)
    lead = sample_shape(name, shape, *leads)
    dtype = float_dtype(name, dtype, mean, cov)
    wide = working_dtype(dtype)
    z = normal(key, (*lead, one.shape[-1]), wide)
    spread = matmul(_ROOTS[method](cast_parameter(cov, wide)), z[..., None])[..., 0]
    return astype(cast_parameter(mean, wide) + spread, dtype, copy=False)


@composite(
    "random_orthogonal(Tensor key, int n, SymInt[] shape=[], ScalarType? dtype=None, int? m=None) -> Tensor",
    doc=f"""Orthogonal matrices, uniformly distributed (Haar measure).

    Args:
        key: a key, or several.
        n: the number of rows.
        shape: the shape of matrices to draw for each key.
        dtype: a float dtype; None: float32.
        m: the number of columns; None: n. The shorter rows or columns are at right angles.

    Returns:
        A tensor of shape ``(*shape, n, m)``; with several keys, their axes come first.

    {RAISES}

    >>> td.random.orthogonal(td.random.key(0), 3).shape
    (3, 3)
    """,
    reference="references.vectors.orthogonal",
    samples="samples.distributions.orthogonal_samples",
    errors="samples.distributions.orthogonal_errors",
    dtypes=FLOATS,
    tolerance=SUMS,
    method=False,
)
def orthogonal(key: Tensor, n: int, shape: Shape, dtype: DType | None, m: int | None) -> Tensor:
    dtype = float_dtype("random_orthogonal", dtype)
    m = n if m is None else m
    check_shape("random_orthogonal", (n, m))
    columns, triangle = _linalg_operator("qr")(
        normal(key, (*shape, max(n, m), min(n, m)), working_dtype(dtype))
    )
    signs = where(
        diagonal(triangle, 0, -2, -1) < 0, -1.0, 1.0
    )  # unique factors are those with a positive diagonal
    result = columns * expand_dims(signs, -2)
    return astype(result if n >= m else matrix_transpose(result), dtype, copy=False)


@composite(
    "random_ball(Tensor key, int d, float p=2.0, SymInt[] shape=[], ScalarType? dtype=None) -> Tensor",
    doc=f"""Points in the unit ball, uniformly distributed.

    Args:
        key: a key, or several.
        d: the dimension, at least 1.
        p: the norm that says what the ball is: the ``p``-th root of the sum of the ``p``-th powers.
        shape: the shape of points to draw for each key.
        dtype: a float dtype; None: float32.

    Returns:
        A tensor of shape ``(*shape, d)``; with several keys, their axes come first.

    {RAISES}
        ValueArgumentError: the dimension or ``p`` is not positive.

    >>> td.random.ball(td.random.key(0), 3, shape=(5,)).shape
    (5, 3)
    """,
    reference="references.vectors.ball",
    samples="samples.distributions.ball_samples",
    errors="samples.distributions.ball_errors",
    dtypes=FLOATS,
    tolerance=CLOSE,
    method=False,
)
def ball(key: Tensor, d: int, p: float, shape: Shape, dtype: DType | None) -> Tensor:
    """Source: Barthe and others, "A probabilistic approach to the geometry of the l_p^n-ball", 2005."""
    if d < 1 or not p > 0:
        raise ValueArgumentError(f"random_ball: the dimension and p are positive, unlike {d} and {p}")
    dtype = float_dtype("random_ball", dtype)
    wide = working_dtype(dtype)
    one, two = split_key(key)
    x = generalized_normal(one, p, (*shape, d), wide)
    total = (abs(x) ** p).sum(-1) + exponential(two, shape, wide)
    return astype(x / (total ** (1.0 / p))[..., None], dtype, copy=False)
