"""Distributions made of several draws of other ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import lazy
from ..errors import ShapeError
from ..registry.dtypes import FLOATS, DType, float32, float64
from .casting import astype
from .declare import Bad, Draw, Sample
from .exponential import sqrt
from .joining import stack
from .kinds import composite
from .random_continuous import parametric, speeds
from .random_counts import COUNTS, draw_binomial
from .random_discrete import signs
from .random_gamma import filled, halves
from .random_keys import KEY, KEYS, key_errors
from .random_numbers import drawn_shape, float_dtype, normal, open_uniform
from .rearrange import flip
from .rules import spec_of
from .scans import cumsum
from .selection import where

discrete = lazy.Functions("operators.references_discrete")
references = lazy.Functions("operators.references_samplers")


@parametric(
    "wald(Tensor mean)",
    "Numbers of Wald's distribution, the inverse Gaussian one, with scale 1: when a walk with drift gets to 1.",
    "mean: the mean, positive.",
    bounds=((0.5, 3.0),),
    reference=references.wald,
    example="2.0",
)
def wald(key: Any, shape: Any, wide: DType, mean: Any) -> Any:
    # Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots", 1976: one of
    # the two roots of an equation, written so that no digits cancel
    one, two = halves(key)
    z = normal(one, shape, wide)
    h = 0.5 * mean * z * z
    ratio = 1.0 + h + sqrt(h * (h + 2.0))
    near = open_uniform(two, shape, wide) * (1.0 + 1.0 / ratio) <= 1.0
    return where(near, mean / ratio, mean * ratio)


@parametric(
    "double_sided_maxwell(Tensor loc, Tensor scale)",
    "Numbers of Maxwell's distribution, to both sides of a centre.",
    "loc, scale: the centre, and what the numbers are multiplied with.",
    bounds=((-2.0, 2.0), (0.5, 3.0)),
    reference=references.double_sided_maxwell,
    example="0.0, 1.0",
)
def double_sided_maxwell(key: Any, shape: Any, wide: DType, loc: Any, scale: Any) -> Any:
    one, two = halves(key)
    return loc + scale * (signs(two, shape, wide) * speeds(one, shape, wide))


def _outcome_samples(dtype: DType) -> Iterable[Sample]:
    yield Sample((KEY, 10, Draw((3,), 0.1, 0.9, dtype=float32)))
    yield Sample((KEY, 50, Draw((2, 4), 0.1, 0.9, dtype=float32)), {"dtype": dtype})
    yield Sample((KEY, Draw((2,), values=(5, 60)), Draw((3,), 0.1, 0.9, dtype=float32)), {"shape": (4, 2, 3)})
    yield Sample((KEYS, 20, Draw((3,), 0.1, 0.9, dtype=float32)))


@composite(
    "random_multinomial(Tensor key, Tensor n, Tensor p, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""How often each outcome comes in ``n`` trials: numbers of the multinomial distribution.

    Args:
        key: a key, or several.
        n: how many trials: a number, or a tensor that broadcasts to the result without its last axis.
        p: the probabilities of the outcomes along the last axis, up to a common factor.
        shape: the shape of what is drawn for each key, outcomes included; None: what ``n`` and ``p`` broadcast to.
        dtype: a float dtype; None: that of ``p``.

    Returns:
        A tensor of that shape, whose sums along the last axis are ``n``; with several keys, their axes come first.

    Raises:
        DTypeError: no float dtype, or no key.
        ShapeError: no key, a ``p`` without an axis or without outcomes, or parameters that do not broadcast.

    >>> td.random.multinomial(td.random.key(0), 10, td.asarray([0.0, 1.0, 0.0])).tolist()
    [0.0, 10.0, 0.0]
    """,
    reference=discrete.multinomial,
    samples=_outcome_samples,
    errors=lambda: [
        *key_errors(3, Draw((3,), 0, 1, dtype=float32)),
        Bad((KEY, 3, 0.5), ValueError, "axis of outcomes"),
        Bad((KEY, 3, Draw((0,), dtype=float32)), ValueError, "axis of outcomes"),
        Bad((KEY, 3, Draw((3,), 0, 1, dtype=float32), (2,)), ValueError, "broadcast"),
        Bad((KEY, 3, Draw((3,), 0, 1, dtype=float32)), TypeError, "floats", {"dtype": "int32"}),
    ],
    dtypes=FLOATS,
    derivative=COUNTS,
    method=False,
)
def multinomial(key: Any, n: Any, p: Any, shape: Any, dtype: DType | None) -> Any:
    spec = spec_of(p)
    if not spec.size or not spec.shape:
        raise ShapeError(f"random_multinomial: p has an axis of outcomes, unlike {spec}")
    count, dtype = spec.shape[-1], float_dtype("random_multinomial", dtype, p)
    own = drawn_shape("random_multinomial", shape, p) if shape is not None else spec.shape
    if own[-1] != count:
        raise ShapeError(f"random_multinomial: the last axis of {own} is not that of the {count} outcomes")
    lead = drawn_shape("random_multinomial", None if shape is None else own[:-1], n, p[..., 0])
    p = astype(p, float64, copy=False)
    rest = flip(cumsum(flip(p, -1), -1), -1)  # of each outcome and those behind it
    shares = where(rest > 0.0, p / where(rest > 0.0, rest, 1.0), 0.0)
    left = filled(key, n, (*spec_of(key).shape[:-1], *lead), float64)
    counts = []
    for place, one in enumerate(halves(key, count)[:-1]):
        share = filled(key, shares[..., place], lead, float64)
        counts.append(astype(draw_binomial(one, left, share, lead), float64, copy=False))
        left = left - counts[-1]
    return astype(stack([*counts, left], -1), dtype, copy=False)
