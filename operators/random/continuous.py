"""Continuous distributions computed from one or a few uniform numbers per result."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...registry.dtypes import FLOATS, DType, float32
from ..declare.kinds import composite
from ..elementwise.casting import astype
from ..elementwise.exponential import exp, sqrt
from ..elementwise.selection import maximum, minimum, where
from .key_bits import check_key
from .portable_math import cotangent, erfc, log_of, ndtri
from .uniform import cast_parameter, float_dtype, normal, open_uniform, sample_shape, working_dtype

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Function, Shape, Tensor

Bounds = tuple[tuple[float, float], ...]
ARGS = """Args:
        key: a key, or several.
        shape: the shape of the sample for each key.
        dtype: a float dtype; None: float32. The 16-bit ones are drawn in float32 and rounded."""
RETURNS = """Returns:
        A tensor of that shape; with several keys, their axes come first."""
RAISES = """Raises:
        DTypeError: not a float dtype, or not a key.
        ShapeError: not a key, or a negative size."""
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 1e-12}


def _parameter_free(
    name: str, summary: str, body: Callable[..., Tensor], reference: str | Function
) -> OperatorFunction[Tensor]:
    """Declare a distribution without parameters: ``body`` of uniform numbers between 0 and 1, both excluded."""

    def run(key: Tensor, shape: Shape, dtype: DType | None) -> Tensor:
        dtype = float_dtype(f"random_{name}", dtype)
        return astype(body(open_uniform(key, shape, working_dtype(dtype))), dtype, copy=False)

    run.__name__ = run.__qualname__ = name
    return composite(
        f"random_{name}(Tensor key, SymInt[] shape=[], ScalarType? dtype=None) -> Tensor",
        doc=f"""{summary}

    {ARGS}

    {RETURNS}

    {RAISES}

    >>> td.random.{name}(td.random.key(0), (3, 4)).shape
    (3, 4)
    """,
        reference=reference,
        samples="samples.distributions.plain_samples",
        errors="samples.distributions.plain_errors",
        dtypes=FLOATS,
        tolerance=TOLERANCE,
        method=False,
    )(run)


exponential = _parameter_free(
    "exponential",
    "Samples of the exponential distribution with rate 1.",
    lambda u: -log_of(u),
    "references.samplers.exponential",
)
gumbel = _parameter_free(
    "gumbel",
    "Samples of the Gumbel distribution, the limit distribution of maxima.",
    lambda u: -log_of(-log_of(u)),
    "references.samplers.gumbel",
)
laplace = _parameter_free(
    "laplace",
    "Samples of the Laplace distribution, exponential on both sides of 0.",
    lambda u: where(u < 0.5, 1.0, -1.0) * log_of(2.0 * minimum(u, 1.0 - u)),
    "references.samplers.laplace",
)
logistic = _parameter_free(
    "logistic",
    "Samples of the logistic distribution: the log-odds of uniform numbers.",
    lambda u: log_of(u) - log_of(1.0 - u),
    "references.samplers.logistic",
)
cauchy = _parameter_free(
    "cauchy",
    "Samples of the Cauchy distribution, which has heavy tails and no mean.",
    cotangent,
    "references.samplers.cauchy",
)


# -- with parameters ---------------------------------------------------------------------------------------------------


def _make_doc(name: str, summary: str, words: str, example: str) -> str:
    return f"""{summary}

    Args:
        key: a key, or several.
        {words}
        shape: the shape of the sample for each key, to which the parameters broadcast; None: their shape.
        dtype: a float dtype; None: that of the parameters, float32 for numbers.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: not a float dtype, or not a key.
        ShapeError: not a key, a negative size, or parameters that do not broadcast to the shape.

    >>> td.random.{name}(td.random.key(0), {example}, shape=(3, 4)).shape
    (3, 4)
    """


def _make_body(name: str, body: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An operator's body that calls ``body`` in the working dtype and casts the sample."""

    def run(key: Tensor, *given: object) -> Tensor:
        arguments: tuple[Any, ...] = given
        *parameters, shape, dtype = arguments
        shape = sample_shape(name, shape, *parameters)
        dtype = float_dtype(name, dtype, *parameters)
        wide = working_dtype(dtype)
        drawn = body(key, shape, wide, *(cast_parameter(one, wide) for one in parameters))
        return astype(drawn, dtype, copy=False)

    run.__name__ = run.__qualname__ = body.__name__
    return run


def parametric(
    schema: str,
    summary: str,
    words: str,
    *,
    bounds: Bounds,
    reference: str | Function,
    example: str,
    tolerance: dict[str, float] | None = None,
    implicit: bool = False,
) -> Callable[[Callable[..., Tensor]], OperatorFunction[Tensor]]:
    """Declare a distribution with parameters.

    Args:
        schema: its schema, from the parameters on: ``name(Tensor scale)``.
        summary: one sentence.
        words: the docstring of its parameters.
        bounds: for each parameter the interval of the tests' random values.
        reference: the test's reference.
        example: a call without the key, for the documentation.
        tolerance: replaces the default tolerance of distributions.
        implicit: whether the derivative is that of implicit reparameterization, which finite differences of samples
            do not show.

    Returns:
        A decorator of the body, which is called with the key, the shape, the working dtype, and the cast parameters.
    """
    name, _, rest = schema.partition("(")
    declared = composite(
        f"random_{name}(Tensor key, {rest[:-1]}, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
        doc=_make_doc(name, summary, words, example),
        reference=reference,
        samples=("samples.distributions.distribution_samples", bounds, float32 if implicit else None),
        errors=("samples.distributions.distribution_errors", len(bounds)),
        dtypes=FLOATS,
        tolerance=tolerance or TOLERANCE,
        method=False,
    )
    return lambda body: declared(_make_body(f"random_{name}", body))


def _draw_exponentials(key: Tensor, shape: Shape, wide: DType) -> Tensor:
    return -log_of(open_uniform(key, shape, wide))


@parametric(
    "lognormal(Tensor sigma)",
    "Samples of the log-normal distribution: exponentials of normal numbers with mean 0.",
    "sigma: the standard deviation of their logarithms.",
    bounds=((0.2, 1.5),),
    reference="references.samplers.lognormal",
    example="0.5",
)
def lognormal(key: Tensor, shape: Shape, wide: DType, sigma: Tensor) -> Tensor:
    return exp(sigma * normal(key, shape, wide))


@parametric(
    "pareto(Tensor b)",
    "Samples of the Pareto distribution, from 1 on.",
    "b: the exponent, positive: samples exceed x with probability `x ** -b`.",
    bounds=((1.0, 4.0),),
    reference="references.samplers.pareto",
    example="2.0",
)
def pareto(key: Tensor, shape: Shape, wide: DType, b: Tensor) -> Tensor:
    return exp(_draw_exponentials(key, shape, wide) / b)


@parametric(
    "rayleigh(Tensor scale)",
    "Samples of the Rayleigh distribution: the norms of normal vectors in the plane.",
    "scale: their standard deviation, positive.",
    bounds=((0.5, 3.0),),
    reference="references.samplers.rayleigh",
    example="1.0",
)
def rayleigh(key: Tensor, shape: Shape, wide: DType, scale: Tensor) -> Tensor:
    return scale * sqrt(2.0 * _draw_exponentials(key, shape, wide))


@parametric(
    "weibull_min(Tensor scale, Tensor concentration)",
    "Samples of the Weibull distribution.",
    "scale, concentration: positive; samples exceed x with probability `exp(-(x / scale) ** concentration)`.",
    bounds=((0.5, 3.0), (0.5, 3.0)),
    reference="references.samplers.weibull_min",
    example="1.0, 2.0",
)
def weibull_min(key: Tensor, shape: Shape, wide: DType, scale: Tensor, power: Tensor) -> Tensor:
    drawn = log_of(_draw_exponentials(key, shape, wide))
    return scale * exp(drawn / power)


@parametric(
    "triangular(Tensor left, Tensor mode, Tensor right)",
    "Samples of the triangular distribution, whose density increases linearly to the mode and decreases after it.",
    "left, mode, right: the ends and the mode between them.",
    bounds=((-2.0, -1.0), (-0.5, 0.5), (1.0, 2.0)),
    reference="references.samplers.triangular",
    example="0.0, 0.5, 1.0",
    tolerance=TOLERANCE | {"float32": 2e-4},
)
def triangular(key: Tensor, shape: Shape, wide: DType, left: Tensor, mode: Tensor, right: Tensor) -> Tensor:
    u = open_uniform(key, shape, wide)
    rising = left + sqrt(u * ((right - left) * (mode - left)))
    falling = right - sqrt((1.0 - u) * ((right - left) * (right - mode)))
    return where(u * (right - left) < mode - left, rising, falling)


def _normal_cdf(x: Tensor) -> Tensor:
    """The normal distribution function, accurate in the lower tail."""
    return 0.5 * erfc(x * -math.sqrt(0.5))


@parametric(
    "truncated_normal(Tensor lower, Tensor upper)",
    "Samples of the standard normal distribution truncated to an interval.",
    "lower, upper: the bounds, which may be infinite; not both beyond 13 (float64: 37) on one side.",
    bounds=((-2.0, -0.5), (0.3, 2.0)),
    reference="references.samplers.truncated_normal",
    example="-1.0, 2.0",
    tolerance={"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-4, "float64": 1e-10},
)
def truncated_normal(key: Tensor, shape: Shape, wide: DType, low: Tensor, high: Tensor) -> Tensor:
    u = open_uniform(key, shape, wide)
    low, high = 0.0 * u + low, 0.0 * u + high
    flipped = low > 0.0  # the lower tail has more digits
    first, last = where(flipped, -high, low), where(flipped, -low, high)
    start, stop = _normal_cdf(first), _normal_cdf(last)
    x = ndtri(start + u * (stop - start))
    return minimum(maximum(where(flipped, -x, x), low), high)


@composite(
    "random_maxwell(Tensor key, SymInt[] shape=[], ScalarType? dtype=None) -> Tensor",
    doc=f"""Samples of the Maxwell distribution of speeds: the norms of three-dimensional normal vectors.

    {ARGS}

    {RETURNS}

    {RAISES}

    >>> td.random.maxwell(td.random.key(0), (3, 4)).shape
    (3, 4)
    """,
    reference="references.samplers.maxwell",
    samples="samples.distributions.plain_samples",
    errors="samples.distributions.plain_errors",
    dtypes=FLOATS,
    tolerance=TOLERANCE,
    method=False,
)
def maxwell(key: Tensor, shape: Shape, dtype: DType | None) -> Tensor:
    dtype = float_dtype("random_maxwell", dtype)
    return astype(speeds(key, shape, working_dtype(dtype)), dtype, copy=False)


def speeds(key: Tensor, shape: tuple[int, ...], wide: DType) -> Tensor:
    """The norms of three-dimensional normal vectors."""
    x = normal(key, (3, *shape), wide)
    return sqrt((x * x).sum(len(check_key("random_maxwell", key).shape) - 1))
