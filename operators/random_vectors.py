"""Distributions of vectors and matrices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import lazy
from ..errors import ShapeError, ValueArgumentError
from ..registry.dtypes import FLOATS, DType, float32, float64
from ..registry.function import functions
from ..registry.late import declare_promised
from ..registry.values import TensorSpec
from .batching import leading
from .casting import astype
from .contraction import matmul
from .declare import Bad, Draw, Sample
from .derivatives import NotDifferentiable, Rule
from .exponential import sqrt
from .kinds import composite, library
from .random_continuous import RAISES, exponential
from .random_gamma import CLOSE, generalized_normal, halves
from .random_keys import KEY, KEYS, key_errors
from .random_numbers import computed_in, drawn_shape, float_dtype, normal, parameter
from .rearrange import matrix_transpose
from .rules import check_shape, spec_of
from .selection import maximum, where
from .triangles import tril

references = lazy.Functions("operators.references_vectors")

SUMS = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-10}


def _square(name: str, x: Any) -> TensorSpec:
    spec = spec_of(x)
    if len(spec.shape) < 2 or spec.shape[-1] != spec.shape[-2]:
        raise ShapeError(f"{name}: takes square matrices, not {spec}")
    return spec


# -- factors -----------------------------------------------------------------------------------------------------------
def _each(xp: Any, function: Any, x: Any) -> Any:
    """``function`` of each matrix; NaN where it has no answer, which does not spoil the others'."""
    out = xp.full(x.shape, xp.nan, x.dtype)
    for place in np.ndindex(*x.shape[:-2]):
        try:
            out[place] = function(x[place])
        except np.linalg.LinAlgError:
            continue
    return out


def _factor_kernel(xp: Any, x: Any) -> Any:
    return _each(xp, xp.linalg.cholesky, 0.5 * (x + xp.swapaxes(x, -1, -2)))


def _half_diagonal(x: Any) -> Any:
    """The lower triangle with half of the diagonal."""
    return 0.5 * (tril(x) + tril(x, k=-1))


def _factor_transpose(g: Any, out: Any) -> Any:
    """Source: Murray, "Differentiation of the Cholesky decomposition", 2016."""
    inverse = lower_inverse(out)
    middle = _half_diagonal(matmul(matrix_transpose(out), g))
    whole = matmul(matmul(matrix_transpose(inverse), middle), inverse)
    return 0.5 * (whole + matrix_transpose(whole))


def _factor_tangent(t: Any, out: Any) -> Any:
    inverse = lower_inverse(out)
    even = 0.5 * (t + matrix_transpose(t))
    return matmul(out, _half_diagonal(matmul(matmul(inverse, even), matrix_transpose(inverse))))


FACTORS: dict[str, Any] = {
    "dtypes": (float32, float64),
    "batching": leading,
    "tolerance": SUMS,
    "method": False,
}


def _matrices(dtype: DType) -> Iterable[Sample]:
    yield Sample((Draw((2, 2), values=(2.0, 0.5, 0.5, 1.0)),))
    yield Sample((Draw((3, 3), values=(4.0, 1, 2, 1, 3, 0, 2, 0, 2), dtype=float64),))
    yield Sample((Draw((2, 2, 2), values=(2.0, 0.5, 0.5, 1.0, 3.0, 0.0, 0.0, 1.0)),))
    yield Sample((Draw((0, 0)),))


def _matrix_errors() -> list[Bad]:
    return [Bad((Draw((2, 3), dtype=float32),), ValueError, "square")]


factor: Any = library(
    "random",
    "random_factor(Tensor x) -> Tensor",
    lambda x: _square("random_factor", x),
    _factor_kernel,
    doc="""The factor of Cholesky: the lower triangle L with ``L @ L.T`` the matrix.

    Args:
        x: a float32 or float64 tensor of symmetric matrices, along the last two axes.

    Returns:
        A tensor of the same shape and dtype; NaN for a matrix that is not positive definite.

    Raises:
        ShapeError: the matrices are not square.

    >>> td.ops.td.random_factor(td.asarray([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """,
    reference="numpy.linalg.cholesky",
    derivative=Rule(vjp={"x": _factor_transpose}, jvp={"x": _factor_tangent}),
    samples=_matrices,
    errors=_matrix_errors,
    **FACTORS,
)


def _inverse_kernel(xp: Any, x: Any) -> Any:
    return xp.tril(_each(xp, xp.linalg.inv, xp.tril(x)))


lower_inverse: Any = library(
    "random",
    "random_lower_inverse(Tensor x) -> Tensor",
    lambda x: _square("random_lower_inverse", x),
    _inverse_kernel,
    doc="""The inverse of a lower triangle.

    Args:
        x: a float32 or float64 tensor of lower triangles, along the last two axes.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ShapeError: the matrices are not square.

    >>> td.ops.td.random_lower_inverse(td.asarray([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """,
    reference="numpy.linalg.inv",
    derivative=Rule(
        vjp={"x": lambda g, out: -tril(matmul(matmul(matrix_transpose(out), g), matrix_transpose(out)))},
        jvp={"x": lambda t, out: -matmul(matmul(out, tril(t)), out)},
    ),
    samples=lambda dtype: [
        Sample((Draw((2, 2), values=(2.0, 0.0, 0.5, 1.0)),)),
        Sample((Draw((3, 3), values=(2.0, 0, 0, 1, 3, 0, 2, 1, 2), dtype=float64),)),
        Sample((Draw((2, 2, 2), values=(2.0, 0.0, 0.5, 1.0, 3.0, 0.0, 0.0, 1.0)),)),
    ],
    errors=_matrix_errors,
    **FACTORS,
)


def _orthogonal_kernel(xp: Any, x: Any) -> Any:
    q, r = xp.linalg.qr(x)
    diagonal = xp.diagonal(r, axis1=-2, axis2=-1)
    return q * xp.where(diagonal < 0, -1, 1).astype(x.dtype)[..., None, :]


def _tall(x: Any) -> TensorSpec:
    spec = spec_of(x)
    if len(spec.shape) < 2 or spec.shape[-2] < spec.shape[-1]:
        raise ShapeError(
            f"random_orthonormal: takes matrices with at least as many rows as columns, not {spec}"
        )
    return spec


orthonormal: Any = library(
    "random",
    "random_orthonormal(Tensor x) -> Tensor",
    _tall,
    _orthogonal_kernel,
    doc="""Columns of length 1 at right angles that span what the first columns of a matrix span.

    Args:
        x: a float32 or float64 tensor of matrices with at least as many rows as columns, along the last two axes.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ShapeError: there are more columns.

    >>> td.ops.td.random_orthonormal(td.asarray([[3.0], [4.0]])).shape
    (2, 1)
    """,
    reference=references.orthonormal,
    derivative=NotDifferentiable("it is made for random matrices"),
    samples=lambda dtype: [
        Sample((Draw((3, 2), distinct=True),)),
        Sample((Draw((2, 2, 2), distinct=True),)),
        Sample((Draw((2, 0)),)),
    ],
    errors=lambda: [Bad((Draw((2, 3), dtype=float32),), ValueError, "rows")],
    **FACTORS,
)


def _linalg(name: str) -> Any:
    declare_promised(f"td::linalg_{name}")
    return functions[f"td::linalg_{name}"]


def _root_by_eigh(x: Any) -> Any:
    values, vectors = _linalg("eigh")(x)
    rounding = np.finfo(spec_of(x).dtype.np).eps * spec_of(x).shape[-1]
    values = where(values < -rounding * values[..., -1:], np.nan, values)
    return vectors * sqrt(maximum(values, 0.0))[..., None, :]


def _root_by_svd(x: Any) -> Any:
    vectors, values, _ = _linalg("svd")(x)
    return vectors * sqrt(values)[..., None, :]


_ROOTS = {"cholesky": factor, "eigh": _root_by_eigh, "svd": _root_by_svd}


# -- distributions -----------------------------------------------------------------------------------------------------
def _normal_samples(dtype: DType) -> Iterable[Sample]:
    mean, cov = Draw((2,), -1, 1), Draw((2, 2), values=(2.0, 0.5, 0.5, 1.0), dtype=float32)
    yield Sample((KEY, mean, cov), {"dtype": dtype})
    yield Sample((KEY, mean, cov), {"shape": (3, 2)})
    yield Sample((KEYS, mean, cov), {"shape": (3,)})
    yield Sample((KEY, Draw((3, 2), -1, 1), cov), {"dtype": dtype})


@composite(
    "random_multivariate_normal(Tensor key, Tensor mean, Tensor cov, SymInt[]? shape=None, ScalarType? dtype=None, "
    "str method='cholesky') -> Tensor",
    doc="""Vectors of normal numbers with given means and covariances.

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
    reference=references.multivariate_normal,
    samples=_normal_samples,
    errors=lambda: [
        *key_errors(Draw((2,)), Draw((2, 2))),
        Bad((KEY, Draw((2,)), Draw((2, 3))), ValueError, "square"),
        Bad((KEY, Draw((3,)), Draw((2, 2))), ValueError, "mean"),
        Bad((KEY, Draw((2,)), Draw((2, 2))), TypeError, "floats", {"dtype": "int32"}),
        Bad((KEY, Draw((2, 3)), Draw((3, 3))), ValueError, "broadcast", {"shape": (3,)}),
        Bad((KEY, Draw((2,)), Draw((2, 2))), ValueError, "method", {"method": "lu"}),
    ],
    dtypes=FLOATS,
    tolerance=SUMS,
    autocast="float32",
    method=False,
)
def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any, dtype: DType | None, method: str) -> Any:
    name = "random_multivariate_normal"
    if method not in _ROOTS:
        raise ValueArgumentError(f"{name}: method is one of {', '.join(map(repr, _ROOTS))}, not {method!r}")
    one, two = spec_of(mean), _square(name, cov)
    if one.shape[-1:] != two.shape[-1:]:
        raise ShapeError(
            f"{name}: the mean has as many elements as the covariance has rows, unlike {one} and {two}"
        )
    leads = TensorSpec(one.shape[:-1], one.dtype), TensorSpec(two.shape[:-2], two.dtype)
    lead = drawn_shape(name, shape, *leads)
    dtype = float_dtype(name, dtype, mean, cov)
    wide = computed_in(dtype)
    z = normal(key, (*lead, one.shape[-1]), wide)
    spread = matmul(_ROOTS[method](parameter(cov, wide)), z[..., None])[..., 0]
    return astype(parameter(mean, wide) + spread, dtype, copy=False)


@composite(
    "random_orthogonal(Tensor key, int n, SymInt[] shape=[], ScalarType? dtype=None, int? m=None) -> Tensor",
    doc=f"""Orthogonal matrices, all equally likely.

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
    reference=references.orthogonal,
    samples=lambda dtype: [
        Sample((KEY, 3)),
        Sample((KEY, 2, (2,)), {"dtype": dtype, "m": 4}),
        Sample((KEYS, 3), {"m": 2}),
    ],
    errors=lambda: [
        *key_errors(3),
        Bad((KEY, -1), ValueError, "negative"),
        Bad((KEY, 2), TypeError, "floats", {"dtype": "int32"}),
    ],
    dtypes=FLOATS,
    tolerance=SUMS,
    method=False,
)
def orthogonal(key: Any, n: int, shape: Any, dtype: DType | None, m: int | None) -> Any:
    dtype = float_dtype("random_orthogonal", dtype)
    m = n if m is None else m
    check_shape("random_orthogonal", (n, m))
    found = orthonormal(normal(key, (*shape, max(n, m), min(n, m)), computed_in(dtype)))
    return astype(found if n >= m else matrix_transpose(found), dtype, copy=False)


@composite(
    "random_ball(Tensor key, int d, float p=2.0, SymInt[] shape=[], ScalarType? dtype=None) -> Tensor",
    doc=f"""Points of the unit ball, all equally likely.

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
    reference=references.ball,
    samples=lambda dtype: [
        Sample((KEY, 3)),
        Sample((KEY, 2, 1.0, (4,)), {"dtype": dtype}),
        Sample((KEYS, 2), {"shape": (3,)}),
    ],
    errors=lambda: [
        *key_errors(3),
        Bad((KEY, 0), ValueError, "dimension"),
        Bad((KEY, 2, -1.0), ValueError, "positive"),
        Bad((KEY, 2), TypeError, "floats", {"dtype": "int32"}),
    ],
    dtypes=FLOATS,
    tolerance=CLOSE,
    method=False,
)
def ball(key: Any, d: int, p: float, shape: Any, dtype: DType | None) -> Any:
    """Source: Barthe and others, "A probabilistic approach to the geometry of the l_p^n-ball", 2005."""
    if d < 1 or not p > 0:
        raise ValueArgumentError(f"random_ball: the dimension and p are positive, unlike {d} and {p}")
    dtype = float_dtype("random_ball", dtype)
    wide = computed_in(dtype)
    one, two = halves(key)
    x = generalized_normal(one, p, (*shape, d), wide)
    total = (abs(x) ** p).sum(-1) + exponential(two, shape, wide)
    return astype(x / (total ** (1.0 / p))[..., None], dtype, copy=False)
