"""Distributions computed from samples of other distributions: wald, double_sided_maxwell, multinomial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import FLOATS, DType, float64
from ..declare.kinds import composite
from ..declare.shape_rules import spec_of
from ..elementwise.casting import astype
from ..elementwise.exponential import sqrt
from ..elementwise.selection import where
from ..reductions.scans import cumsum
from ..shape.joining import stack
from ..shape.rearrange import flip
from .continuous import parametric, speeds
from .counts import COUNTS, draw_binomial
from .discrete import draw_signs
from .gamma import fill_parameter, split_key
from .uniform import float_dtype, normal, open_uniform, sample_shape

if TYPE_CHECKING:
    from ...registry.types import Shape, Tensor


@parametric(
    "wald(Tensor mean)",
    "Samples of the Wald (inverse Gaussian) distribution with scale 1.",
    "mean: the mean, positive.",
    bounds=((0.5, 3.0),),
    reference="references.samplers.wald",
    example="2.0",
)
def wald(key: Tensor, shape: Shape, wide: DType, mean: Tensor) -> Tensor:
    # Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots", 1976: one of
    # the two roots of an equation, written so that no digits cancel
    one, two = split_key(key)
    z = normal(one, shape, wide)
    h = 0.5 * mean * z * z
    ratio = 1.0 + h + sqrt(h * (h + 2.0))
    near = open_uniform(two, shape, wide) * (1.0 + 1.0 / ratio) <= 1.0
    return where(near, mean / ratio, mean * ratio)


@parametric(
    "double_sided_maxwell(Tensor loc, Tensor scale)",
    "Samples of the double-sided Maxwell distribution.",
    "loc, scale: the centre and the scale.",
    bounds=((-2.0, 2.0), (0.5, 3.0)),
    reference="references.samplers.double_sided_maxwell",
    example="0.0, 1.0",
)
def double_sided_maxwell(key: Tensor, shape: Shape, wide: DType, loc: Tensor, scale: Tensor) -> Tensor:
    one, two = split_key(key)
    return loc + scale * (draw_signs(two, shape, wide) * speeds(one, shape, wide))


@composite(
    "random_multinomial(Tensor key, Tensor n, Tensor p, SymInt[]? shape=None, ScalarType? dtype=None) -> Tensor",
    doc="""Samples of the multinomial distribution: the number of times that each outcome occurs in ``n`` trials.

    Args:
        key: a key, or several.
        n: the number of trials: a number, or a tensor that broadcasts to the result without its last axis.
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
    reference="references.discrete.multinomial",
    samples="samples.distributions.outcome_samples",
    errors="samples.distributions.multinomial_errors",
    dtypes=FLOATS,
    derivative=COUNTS,
    method=False,
)
def multinomial(key: Tensor, n: int, p: Tensor, shape: Shape, dtype: DType | None) -> Tensor:
    spec = spec_of(p)
    if not spec.size or not spec.shape:
        raise ShapeError(f"random_multinomial: p has an axis of outcomes, unlike {spec}")
    count, dtype = spec.shape[-1], float_dtype("random_multinomial", dtype, p)
    own = sample_shape("random_multinomial", shape, p) if shape is not None else spec.shape
    if own[-1] != count:
        raise ShapeError(f"random_multinomial: the last axis of {own} is not that of the {count} outcomes")
    lead = sample_shape("random_multinomial", None if shape is None else own[:-1], n, p[..., 0])
    p = astype(p, float64, copy=False)
    rest = flip(cumsum(flip(p, -1), -1), -1)  # of each outcome and those after it
    shares = where(rest > 0.0, p / where(rest > 0.0, rest, 1.0), 0.0)
    left = fill_parameter(key, n, (*spec_of(key).shape[:-1], *lead), float64)
    counts = []
    for index, one in enumerate(split_key(key, count)[:-1]):
        share = fill_parameter(key, shares[..., index], lead, float64)
        counts.append(astype(draw_binomial(one, left, share, lead), float64, copy=False))
        left = left - counts[-1]
    return astype(stack([*counts, left], -1), dtype, copy=False)
