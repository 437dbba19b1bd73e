"""Continuous distributions that follow from one uniform number for each result, or a few."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import lazy
from ..registry.dtypes import FLOATS, DType, float32
from .casting import astype
from .declare import Bad, Draw, Sample
from .exponential import erfc, exp, sqrt
from .kinds import composite
from .random_keys import KEY, KEYS, check_key, key_errors
from .random_math import cotangent, log_of, ndtri
from .random_numbers import computed_in, drawn_shape, float_dtype, normal, open_uniform, parameter
from .selection import maximum, minimum, where

references = lazy.Functions("operators.references_samplers")

Bounds = tuple[tuple[float, float], ...]
ARGS = """Args:
        key: a key, or several.
        shape: the shape of what is drawn for each key.
        dtype: a float dtype; None: float32. The 16-bit ones are drawn in float32 and rounded."""
RETURNS = """Returns:
        A tensor of that shape; with several keys, their axes come first."""
RAISES = """Raises:
        DTypeError: no float dtype, or no key.
        ShapeError: no key, or a negative size."""
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 1e-12}


def _plain_samples(dtype: DType) -> Iterable[Sample]:
    for shape in ((), (0,), (3, 5)):
        yield Sample((KEY, shape), {"dtype": dtype})
    yield Sample((KEYS, 3), {"dtype": dtype})
    yield Sample((KEY, 3))


def _plain_errors() -> list[Bad]:
    return [
        *key_errors(3),
        Bad((KEY, 3), TypeError, "floats", {"dtype": "int32"}),
        Bad((KEY, (-1,)), ValueError, "negative"),
    ]


def _plain(name: str, summary: str, body: Callable[[Any], Any], reference: Any) -> Any:
    """Declare a distribution without parameters: ``body`` of uniform numbers between 0 and 1, both excluded."""

    def run(key: Any, shape: Any, dtype: DType | None) -> Any:
        dtype = float_dtype(f"random_{name}", dtype)
        return astype(body(open_uniform(key, shape, computed_in(dtype))), dtype, copy=False)

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
        samples=_plain_samples,
        errors=_plain_errors,
        dtypes=FLOATS,
        tolerance=TOLERANCE,
        method=False,
    )(run)


exponential = _plain(
    "exponential",
    "Numbers of the exponential distribution with rate 1.",
    lambda u: -log_of(u),
    references.exponential,
)
gumbel = _plain(
    "gumbel",
    "Numbers of Gumbel's distribution: that of the largest of many.",
    lambda u: -log_of(-log_of(u)),
    references.gumbel,
)
laplace = _plain(
    "laplace",
    "Numbers of Laplace's distribution, exponential to both sides of 0.",
    lambda u: where(u < 0.5, 1.0, -1.0) * log_of(2.0 * minimum(u, 1.0 - u)),
    references.laplace,
)
logistic = _plain(
    "logistic",
    "Numbers of the logistic distribution: the log-odds of uniform ones.",
    lambda u: log_of(u) - log_of(1.0 - u),
    references.logistic,
)
cauchy = _plain(
    "cauchy",
    "Numbers of Cauchy's distribution, whose tails are so heavy that it has no mean.",
    cotangent,
    references.cauchy,
)


# -- with parameters ---------------------------------------------------------------------------------------------------
def samples_of(bounds: Bounds, own: DType | None = None) -> Callable[[DType], Iterable[Sample]]:
    """Samples of a distribution with parameters that lie between bounds, of a dtype of their own or the row's."""

    def samples(dtype: DType) -> Iterable[Sample]:
        middle = tuple((low + high) / 2 for low, high in bounds)
        yield Sample((KEY, *middle), {"shape": (3, 4), "dtype": dtype})
        yield Sample((KEY, *(Draw((4,), *one, dtype=own) for one in bounds)), {"dtype": dtype})
        yield Sample((KEY, *(Draw((4,), *one, dtype=own) for one in bounds)), {"shape": (2, 4)})
        yield Sample((KEYS, *(Draw((), *one, dtype=own) for one in bounds)), {"shape": (3,), "dtype": dtype})
        yield Sample((KEY, *(Draw((0,), *one, dtype=own) for one in bounds)), {"dtype": dtype})

    return samples


def errors_of(count: int) -> Callable[[], list[Bad]]:
    """What every distribution with parameters refuses."""

    def errors() -> list[Bad]:
        ones = (1.0,) * count
        return [
            *key_errors(*ones),
            Bad((KEY, *ones), TypeError, "floats", {"dtype": "int32"}),
            Bad((KEY, *ones), ValueError, "negative", {"shape": (-1,)}),
            Bad((KEY, Draw((3,), 1, 2), *ones[1:]), ValueError, "broadcast", {"shape": (2,)}),
        ]

    return errors


def _documented(name: str, summary: str, words: str, example: str) -> str:
    return f"""{summary}

    Args:
        key: a key, or several.
        {words}
        shape: the shape of what is drawn for each key, to which the parameters broadcast; None: theirs.
        dtype: a float dtype; None: that of the parameters, float32 for numbers.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: no float dtype, or no key.
        ShapeError: no key, a negative size, or parameters that do not broadcast to the shape.

    >>> td.random.{name}(td.random.key(0), {example}, shape=(3, 4)).shape
    (3, 4)
    """


def _prepared(name: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """The body of an operator that draws with ``body``, in the dtype that is computed in."""

    def run(key: Any, *given: Any) -> Any:
        *parameters, shape, dtype = given
        shape = drawn_shape(name, shape, *parameters)
        dtype = float_dtype(name, dtype, *parameters)
        wide = computed_in(dtype)
        drawn = body(key, shape, wide, *(parameter(one, wide) for one in parameters))
        return astype(drawn, dtype, copy=False)

    run.__name__ = run.__qualname__ = body.__name__
    return run


def parametric(
    schema: str,
    summary: str,
    words: str,
    *,
    bounds: Bounds,
    reference: Any,
    example: str,
    tolerance: dict[str, float] | None = None,
    implicit: bool = False,
) -> Callable[[Callable[..., Any]], Any]:
    """Declare a distribution with parameters.

    Args:
        schema: its schema, from the parameters on: ``name(Tensor scale)``.
        summary: one sentence.
        words: its parameters, for the documentation.
        bounds: for each parameter the interval that the tests draw from.
        reference: the test's reference.
        example: a call without the key, for the documentation.
        tolerance: where that of all distributions does not do.
        implicit: whether the derivative is that of the distribution, not of the number as it is drawn, so that
            differences of numbers do not show it.

    Returns:
        A decorator of the body, which gets the key, the shape, the dtype to compute in, and the parameters in it.
    """
    name, _, rest = schema.partition("(")
    declared = composite(
        f"random_{name}(Tensor key, {rest[:-1]}, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
        doc=_documented(name, summary, words, example),
        reference=reference,
        samples=samples_of(bounds, float32 if implicit else None),
        errors=errors_of(len(bounds)),
        dtypes=FLOATS,
        tolerance=tolerance or TOLERANCE,
        method=False,
    )
    return lambda body: declared(_prepared(f"random_{name}", body))


def _exponentials(key: Any, shape: Any, wide: DType) -> Any:
    return -log_of(open_uniform(key, shape, wide))


@parametric(
    "lognormal(Tensor sigma)",
    "The exponentials of normal numbers with mean 0.",
    "sigma: the standard deviation of their logarithms.",
    bounds=((0.2, 1.5),),
    reference=references.lognormal,
    example="0.5",
)
def lognormal(key: Any, shape: Any, wide: DType, sigma: Any) -> Any:
    return exp(sigma * normal(key, shape, wide))


@parametric(
    "pareto(Tensor b)",
    "Numbers from 1 on, of Pareto's distribution.",
    "b: the exponent, positive: a share `x ** -b` is beyond x.",
    bounds=((1.0, 4.0),),
    reference=references.pareto,
    example="2.0",
)
def pareto(key: Any, shape: Any, wide: DType, b: Any) -> Any:
    return exp(_exponentials(key, shape, wide) / b)


@parametric(
    "rayleigh(Tensor scale)",
    "The distances of points in the plane whose coordinates are normal.",
    "scale: their standard deviation, positive.",
    bounds=((0.5, 3.0),),
    reference=references.rayleigh,
    example="1.0",
)
def rayleigh(key: Any, shape: Any, wide: DType, scale: Any) -> Any:
    return scale * sqrt(2.0 * _exponentials(key, shape, wide))


@parametric(
    "weibull_min(Tensor scale, Tensor concentration)",
    "Numbers of Weibull's distribution.",
    "scale, concentration: positive; a share `exp(-(x / scale) ** concentration)` is beyond x.",
    bounds=((0.5, 3.0), (0.5, 3.0)),
    reference=references.weibull_min,
    example="1.0, 2.0",
)
def weibull_min(key: Any, shape: Any, wide: DType, scale: Any, power: Any) -> Any:
    drawn = log_of(_exponentials(key, shape, wide))
    return scale * exp(drawn / power)


@parametric(
    "triangular(Tensor left, Tensor mode, Tensor right)",
    "Numbers between two ends whose density rises to one point and falls from there.",
    "left, mode, right: the ends and the point between them.",
    bounds=((-2.0, -1.0), (-0.5, 0.5), (1.0, 2.0)),
    reference=references.triangular,
    example="0.0, 0.5, 1.0",
    tolerance=TOLERANCE | {"float32": 2e-4},
)
def triangular(key: Any, shape: Any, wide: DType, left: Any, mode: Any, right: Any) -> Any:
    u = open_uniform(key, shape, wide)
    rising = left + sqrt(u * ((right - left) * (mode - left)))
    falling = right - sqrt((1.0 - u) * ((right - left) * (right - mode)))
    return where(u * (right - left) < mode - left, rising, falling)


def _below(x: Any) -> Any:
    """The share of the normal distribution below x, to the last digits where it is small."""
    return 0.5 * erfc(x * -math.sqrt(0.5))


@parametric(
    "truncated_normal(Tensor lower, Tensor upper)",
    "Normal numbers with mean 0 and variance 1 that lie between two bounds.",
    "lower, upper: the bounds; infinite ones are none. Both beyond 13 (float64: 37) on one side is too far out.",
    bounds=((-2.0, -0.5), (0.3, 2.0)),
    reference=references.truncated_normal,
    example="-1.0, 2.0",
    tolerance={"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-4, "float64": 1e-10},
)
def truncated_normal(key: Any, shape: Any, wide: DType, low: Any, high: Any) -> Any:
    u = open_uniform(key, shape, wide)
    low, high = 0.0 * u + low, 0.0 * u + high
    flipped = low > 0.0  # the lower tail has more digits
    first, last = where(flipped, -high, low), where(flipped, -low, high)
    start, stop = _below(first), _below(last)
    x = ndtri(start + u * (stop - start))
    return minimum(maximum(where(flipped, -x, x), low), high)


@composite(
    "random_maxwell(Tensor key, SymInt[] shape=[], ScalarType? dtype=None) -> Tensor",
    doc=f"""The lengths of vectors of three normal numbers: Maxwell's distribution of speeds.

    {ARGS}

    {RETURNS}

    {RAISES}

    >>> td.random.maxwell(td.random.key(0), (3, 4)).shape
    (3, 4)
    """,
    reference=references.maxwell,
    samples=_plain_samples,
    errors=_plain_errors,
    dtypes=FLOATS,
    tolerance=TOLERANCE,
    method=False,
)
def maxwell(key: Any, shape: Any, dtype: DType | None) -> Any:
    dtype = float_dtype("random_maxwell", dtype)
    return astype(speeds(key, shape, computed_in(dtype)), dtype, copy=False)


def speeds(key: Any, shape: tuple[int, ...], wide: DType) -> Any:
    """The lengths of vectors of three normal numbers."""
    x = normal(key, (3, *shape), wide)
    return sqrt((x * x).sum(len(check_key("random_maxwell", key).shape) - 1))
