"""Probabilities of integers; ``loc`` shifts a distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import lazy
from ....operators.elementwise.casting import astype
from ....operators.elementwise.exponential import log, log1p
from ....operators.elementwise.rounding import floor
from ....operators.elementwise.selection import clip, where
from .distributions import INFINITY, NAN, Mass, to_floats

if TYPE_CHECKING:
    from ....registry.types import Tensor, TensorLike

_special: Any = lazy.Module(".special")


class poisson(Mass):
    """The Poisson distribution with the mean ``mu``."""

    @staticmethod
    def logpmf(k: TensorLike, mu: TensorLike, loc: TensorLike = 0.0) -> Tensor:
        """The logarithm of the probability of ``k``; -inf if that is not an integer of at least 0."""
        k, mu, loc = to_floats(k, mu, loc)
        n = k - loc
        is_within = (n >= 0) & (n == floor(n))
        n = where(is_within, n, 0.0)
        return where(is_within, _special.xlogy(n, mu) - mu - _special.gammaln(n + 1.0), -INFINITY)

    @staticmethod
    def cdf(k: TensorLike, mu: TensorLike, loc: TensorLike = 0.0) -> Tensor:
        """The probability of ``k`` or a smaller integer."""
        k, mu, loc = to_floats(k, mu, loc)
        n = floor(k - loc)
        return where(n < 0, 0.0, _special.gammaincc(clip(n, 0.0, None) + 1.0, mu))


class bernoulli(Mass):
    """The Bernoulli distribution: 1 with the probability ``p``, else 0."""

    @staticmethod
    def logpmf(k: TensorLike, p: TensorLike, loc: TensorLike = 0.0) -> Tensor:
        """The logarithm of the probability of ``k``."""
        k, p, loc = to_floats(k, p, loc)
        n = k - loc
        return where(n == 0, log1p(-p), where(n == 1, log(p), -INFINITY))

    @staticmethod
    def cdf(k: TensorLike, p: TensorLike) -> Tensor:
        """The probability of ``k`` or a smaller integer; NaN if ``p`` is not a probability."""
        k, p = to_floats(k, p)
        value = where(k < 0, 0.0, where(k < 1, 1.0 - p, 1.0))
        return where((p >= 0) & (p <= 1), value, NAN)

    @staticmethod
    def ppf(q: TensorLike, p: TensorLike) -> Tensor:
        """The smallest integer of which :meth:`cdf` is at least ``q``; NaN if one is not a probability."""
        q, p = to_floats(q, p)
        is_valid = (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1)
        return where(is_valid, astype(q > 1.0 - p, q.dtype), NAN)


class binom(Mass):
    """The binomial distribution: the number of successes of the probability ``p`` in ``n`` trials."""

    @staticmethod
    def logpmf(k: TensorLike, n: TensorLike, p: TensorLike, loc: TensorLike = 0.0) -> Tensor:
        """The logarithm of the probability of ``k``."""
        k, n, p, loc = to_floats(k, n, p, loc)
        y = k - loc
        is_within = (y >= 0) & (y <= n)
        y = where(is_within, y, 0.0)
        rest = n - y
        gammaln = _special.gammaln
        combinations = gammaln(n + 1.0) - gammaln(y + 1.0) - gammaln(rest + 1.0)
        value = combinations + _special.xlogy(y, p) + _special.xlog1py(rest, -p)
        return where(is_within, value, -INFINITY)


class geom(Mass):
    """The geometric distribution: the number of trials until the first success."""

    @staticmethod
    def logpmf(k: TensorLike, p: TensorLike, loc: TensorLike = 0.0) -> Tensor:
        """The logarithm of the probability of ``k``."""
        k, p, loc = to_floats(k, p, loc)
        n = k - loc
        value = _special.xlog1py(where(n < 1, 0.0, n - 1.0), -p) + log(p)
        return where(n < 1, -INFINITY, value)


class nbinom(Mass):
    """The negative binomial distribution: the number of failures before ``n`` successes."""

    @staticmethod
    def logpmf(k: TensorLike, n: TensorLike, p: TensorLike, loc: TensorLike = 0.0) -> Tensor:
        """The logarithm of the probability of ``k``."""
        k, n, p, loc = to_floats(k, n, p, loc)
        y = where(k < loc, 0.0, k - loc)
        gammaln = _special.gammaln
        combinations = gammaln(y + n) - gammaln(n) - gammaln(y + 1.0)
        value = combinations + _special.xlogy(n, p) + _special.xlog1py(y, -p)
        return where(k < loc, -INFINITY, value)
