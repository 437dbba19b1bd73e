"""kl_divergence: the Kullback-Leibler divergence of pairs of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError
from ...linalg import solve_triangular
from ...operators.declare.shape_rules import broadcast_shapes
from ...operators.elementwise.activation import softplus
from ...operators.elementwise.arithmetic import abs
from ...operators.elementwise.exponential import exp, log
from ...operators.elementwise.selection import where
from ...operators.reductions.folds import sum
from ...operators.shape.views import broadcast_to
from ...special.entropies import xlogy
from ...special.gammas import betaln, digamma, gammaln
from .categorical import Outcomes
from .discrete import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution
from .gamma import Beta, Dirichlet, Gamma
from .independent import Independent
from .location_scale import Cauchy, Laplace
from .multivariate_normal import MultivariateNormal
from .normal import LogNormal, Normal
from .uniform import Exponential, Uniform

if TYPE_CHECKING:
    from ...registry.types import Tensor

Formula = Callable[[Any, Any], Any]
_FORMULAS: dict[tuple[type, type], Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Decorate a function that computes the divergence of two classes of distributions, and of their subclasses.

    Args:
        type_p, type_q: the classes.
    """

    def register(formula: Formula) -> Formula:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of ``q`` from ``p``: the mean under ``p`` of the difference of the log-probabilities.

    Args:
        p, q: the distributions.

    Returns:
        A tensor of the batch shape.

    Raises:
        NotImplementedError: there is no formula for the pair.

    >>> import tandem.torch as torch
    >>> d = torch.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0)).item()
    0.5
    """
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            formula = _FORMULAS.get((kind_p, kind_q))
            if formula is not None:
                result: Tensor = formula(p, q)
                return result
    raise NotImplementedError(
        f"kl_divergence: there is no formula for {type(p).__name__} and {type(q).__name__}; add one with register_kl"
    )


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - log(ratio))


@register_kl(LogNormal, LogNormal)
def _log_normal(p: Any, q: Any) -> Any:
    return _normal(p, q)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    distance = abs(p.loc - q.loc)
    return log(q.scale / p.scale) + distance / q.scale + p.scale / q.scale * exp(-distance / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    return log(((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale))


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    is_inside = (q.low <= p.low) & (q.high >= p.high)
    return where(is_inside, log((q.high - q.low) / (p.high - p.low)), math.inf)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    square = width**2 / 12 + ((p.high + p.low) / 2 - q.loc) ** 2
    return log(math.sqrt(2 * math.pi) * q.scale / width) + square / (2 * q.scale**2)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - log(ratio)


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    rates = b * log(p.rate / q.rate) + a * (q.rate / p.rate - 1)
    return rates + gammaln(b) - gammaln(a) + (a - b) * digamma(a)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    a, b = p.concentration1, p.concentration0
    c, d = q.concentration1, q.concentration0
    slopes = (a - c) * digamma(a) + (b - d) * digamma(b) + (c + d - a - b) * digamma(a + b)
    return betaln(c, d) - betaln(a, b) + slopes


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = sum(a, -1, keepdims=True)
    norms = gammaln(total[..., 0]) - gammaln(sum(b, -1)) - sum(gammaln(a) - gammaln(b), -1)
    return norms + sum((a - b) * (digamma(a) - digamma(total)), -1)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    return p.probs * (p.logits - q.logits) - softplus(p.logits) + softplus(q.logits)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return _bernoulli(p, q) / p.probs


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    same = p.total_count == q.total_count
    if not bool(same.all()):
        raise ArgumentError("kl_divergence: the binomial distributions have different numbers of trials")
    return p.total_count * _bernoulli(p, q)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Outcomes, Outcomes)
def _outcomes(p: Any, q: Any) -> Any:
    terms = where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
    return sum(where(p.probs == 0, 0.0, terms), -1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    size = p.event_shape[0]
    shape = broadcast_shapes("kl_divergence", p.batch_shape, q.batch_shape)
    root = broadcast_to(q.scale_tril, (*shape, size, size))
    spread = solve_triangular(root, broadcast_to(p.scale_tril, (*shape, size, size)), upper=False)
    shift = solve_triangular(root, broadcast_to(q.loc - p.loc, (*shape, size))[..., None], upper=False)
    square = sum(spread**2, (-2, -1)) + sum(shift**2, (-2, -1))
    return q._half_log_det - p._half_log_det + 0.5 * (square - size)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise ArgumentError("kl_divergence: the distributions have different numbers of axes of one value")
    return p._sum(kl_divergence(p.base_dist, q.base_dist))
