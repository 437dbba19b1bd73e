"""Distributions of counts: poisson, binomial, geometric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import lazy
from ...errors import DTypeError, ValueArgumentError
from ...registry.dtypes import DEFAULT_INT, FLOATS, DType, float32, float64, int64
from ..declare.derivatives import NotDifferentiable
from ..declare.kinds import array_op, composite
from ..elementwise.casting import astype
from ..elementwise.exponential import log1p
from ..elementwise.rounding import floor
from ..elementwise.selection import maximum
from .gamma import drawing_batched, drawing_kernel, drawing_shape_rule, fill_parameter
from .portable_math import log_of
from .uniform import float_dtype, open_uniform, sample_shape, working_dtype

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Shape, Tensor

rejection = lazy.Functions(".operators.random.rejection")

COUNTS = NotDifferentiable("it returns counts")


def _poisson_or_minus_one(xp: ArrayModule, key: Array, shape: tuple[int, ...], rate: Array) -> Array:
    result = rejection.poisson(xp, key, shape, rate)
    return xp.where(xp.isnan(result), -1.0, result)


draw_poisson = array_op(
    "random",
    "random_draw_poisson(Tensor key, Tensor lam, SymInt[] shape) -> Tensor",
    drawing_shape_rule("random_draw_poisson", int64),
    drawing_kernel(_poisson_or_minus_one, int64),
    doc="""Samples of the Poisson distribution; :func:`tandem.random.poisson` calls it.

    Args:
        key: a key, or several.
        lam: the rate, a float32 or float64 tensor that broadcasts to the result.
        shape: the shape of what is drawn for each key.

    Returns:
        An int64 tensor of shape ``(*keys, *shape)``.

    Raises:
        DTypeError, ShapeError: no key, another dtype, or shapes that do not fit.

    >>> td.ops.td.random_draw_poisson(td.random.key(0), td.asarray([0.0, 2.0]), (3, 2)).shape
    (3, 2)
    """,
    reference="references.discrete.draw_poisson",
    dtypes=(float32, float64),
    derivative=COUNTS,
    batching=drawing_batched,
    samples="samples.distributions.draw_poisson_samples",
    errors="samples.distributions.draw_poisson_errors",
    method=False,
)
draw_binomial = array_op(
    "random",
    "random_draw_binomial(Tensor key, Tensor n, Tensor p, SymInt[] shape) -> Tensor",
    drawing_shape_rule("random_draw_binomial", None),
    drawing_kernel(rejection.binomial, None),
    doc="""Samples of the binomial distribution; :func:`tandem.random.binomial` calls it.

    Args:
        key: a key, or several.
        n: how many trials, a float32 or float64 tensor that broadcasts to the result.
        p: the probability, likewise.
        shape: the shape of what is drawn for each key.

    Returns:
        A float tensor of shape ``(*keys, *shape)``.

    Raises:
        DTypeError, ShapeError: no key, another dtype, or shapes that do not fit.

    >>> td.ops.td.random_draw_binomial(td.random.key(0), td.asarray(5.0), td.asarray(0.5), (3, 2)).shape
    (3, 2)
    """,
    reference="references.discrete.draw_binomial",
    dtypes=(float32,),
    derivative=COUNTS,
    batching=drawing_batched,
    samples="samples.distributions.draw_binomial_samples",
    errors="samples.distributions.draw_binomial_errors",
    method=False,
)


def _count_dtype(name: str, dtype: DType | None) -> DType:
    if dtype is not None and not (dtype.is_integer or dtype.is_floating):
        raise DTypeError(f"{name}: returns integers, not {dtype}")
    return dtype or DEFAULT_INT


@composite(
    "random_poisson(Tensor key, Tensor lam, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""Samples of the Poisson distribution.

    Args:
        key: a key, or several.
        lam: the rate: a number of at least 0, or a tensor. For an invalid element the result is -1.
        shape: the shape of what is drawn for each key, to which the rate broadcasts; None: its shape.
        dtype: an integer or float dtype; None: int64.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: another dtype, or no key.
        ShapeError: no key, a negative size, or a rate that does not broadcast to the shape.
        ValueArgumentError: a negative number.

    >>> td.random.poisson(td.random.key(0), 2.0, (3, 4)).shape
    (3, 4)
    """,
    reference="references.discrete.poisson",
    samples="samples.distributions.rate_samples",
    errors="samples.distributions.poisson_errors",
    dtypes=FLOATS,
    method=False,
)
def poisson(key: Tensor, lam: Tensor | float, shape: Shape, dtype: DType | None) -> Tensor:
    if type(lam) in (int, float) and not lam >= 0:
        raise ValueArgumentError(f"random_poisson: the rate must be at least 0, not {lam}")
    shape = sample_shape("random_poisson", shape, lam)
    float_dtype("random_poisson", None, lam)
    return astype(
        draw_poisson(key, fill_parameter(key, lam, shape, float64), shape),
        _count_dtype("random_poisson", dtype),
        copy=False,
    )


@composite(
    "random_binomial(Tensor key, Tensor n, Tensor p, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""Samples of the binomial distribution: the number of successes in ``n`` trials.

    Args:
        key: a key, or several.
        n: the number of trials: a number, or a tensor.
        p: the probability of success: a number, or a tensor. For an invalid element the result is NaN.
        shape: the shape of what is drawn for each key, to which both broadcast; None: their shape.
        dtype: a float dtype; None: that of ``p``, float32 for numbers.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: no float dtype, or no key.
        ShapeError: no key, a negative size, or parameters that do not broadcast to the shape.
        ValueArgumentError: a number that is no probability.

    >>> td.random.binomial(td.random.key(0), 10, 1.0, (3,)).tolist()
    [10.0, 10.0, 10.0]
    """,
    reference="references.discrete.binomial",
    samples="samples.distributions.trial_samples",
    errors="samples.distributions.binomial_errors",
    dtypes=FLOATS,
    method=False,
)
def binomial(key: Tensor, n: int, p: Tensor | float, shape: Shape, dtype: DType | None) -> Tensor:
    if type(p) in (int, float) and not 0 <= p <= 1:
        raise ValueArgumentError(f"random_binomial: p must be a probability in [0, 1], not {p}")
    shape = sample_shape("random_binomial", shape, n, p)
    dtype = float_dtype("random_binomial", dtype, n, p)
    return astype(
        draw_binomial(
            key, fill_parameter(key, n, shape, float64), fill_parameter(key, p, shape, float64), shape
        ),
        dtype,
        copy=False,
    )


@composite(
    "random_geometric(Tensor key, Tensor p, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""Samples of the geometric distribution: the number of trials up to the first success, at least 1.

    Args:
        key: a key, or several.
        p: the probability of each trial, above 0: a number, or a tensor.
        shape: the shape of what is drawn for each key, to which ``p`` broadcasts; None: its shape.
        dtype: an integer dtype; None: int64.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: another dtype, or no key.
        ShapeError: no key, a negative size, or a ``p`` that does not broadcast to the shape.
        ValueArgumentError: a number that is no probability, or 0.

    >>> td.random.geometric(td.random.key(0), 1.0, (3,)).tolist()
    [1, 1, 1]
    """,
    reference="references.discrete.geometric",
    samples="samples.distributions.geometric_samples",
    errors="samples.distributions.geometric_errors",
    dtypes=FLOATS[2:],
    method=False,
)
def geometric(key: Tensor, p: Tensor | float, shape: Shape, dtype: DType | None) -> Tensor:
    if type(p) in (int, float) and not 0 < p <= 1:
        raise ValueArgumentError(f"random_geometric: p must be a probability in (0, 1], not {p}")
    shape = sample_shape("random_geometric", shape, p)
    wide = working_dtype(float_dtype("random_geometric", None, p))
    failures = floor(log_of(open_uniform(key, shape, wide)) / log1p(-fill_parameter(key, p, shape, wide)))
    return astype(maximum(failures + 1.0, 1.0), _count_dtype("random_geometric", dtype), copy=False)
