"""Densities of continuous distributions.

``loc`` and ``scale`` shift and stretch a distribution: the density is that of ``(x - loc) / scale``, divided by
``scale``. ``cdf`` is the probability of a smaller value, ``sf`` that of a larger one, ``ppf`` the inverse of ``cdf``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .... import lazy
from ....errors import ShapeError
from ....operators.elementwise.activation import sigmoid
from ....operators.elementwise.arithmetic import abs
from ....operators.elementwise.exponential import exp, expm1, log, log1p
from ....operators.elementwise.selection import clip, where
from ....operators.elementwise.trigonometry import atan, tan
from ....operators.reductions.folds import all, sum
from ....operators.shape.joining import concat
from .distributions import INFINITY, NAN, Cumulative, Density, to_floats

if TYPE_CHECKING:
    from ....registry.types import Tensor, TensorLike

_special: Any = lazy.Module(".special")


def _is_probability(q: Tensor) -> Tensor:
    return (q >= 0) & (q <= 1)


class expon(Cumulative):
    """The exponential distribution."""

    @staticmethod
    def logpdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, loc, scale = to_floats(x, loc, scale)
        return where(x < loc, -INFINITY, -(x - loc) / scale - log(scale))

    @staticmethod
    def cdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a smaller value."""
        return -expm1(expon.logsf(x, loc, scale))

    @staticmethod
    def logcdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of :meth:`cdf`."""
        return log1p(-exp(expon.logsf(x, loc, scale)))

    @staticmethod
    def sf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a larger value."""
        return exp(expon.logsf(x, loc, scale))

    @staticmethod
    def logsf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of :meth:`sf`."""
        x, loc, scale = to_floats(x, loc, scale)
        return where(x < loc, 0.0, -(x - loc) / scale)

    @staticmethod
    def ppf(q: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The value of which :meth:`cdf` is a probability; NaN if it is none."""
        q, loc, scale = to_floats(q, loc, scale)
        return where(_is_probability(q), loc - scale * log1p(-q), NAN)


class uniform(Density):
    """The uniform distribution from ``loc`` to ``loc + scale``."""

    @staticmethod
    def logpdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, loc, scale = to_floats(x, loc, scale)
        return where((x < loc) | (x > loc + scale), -INFINITY, -log(scale))

    @staticmethod
    def cdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a smaller value."""
        x, loc, scale = to_floats(x, loc, scale)
        return clip((x - loc) / scale, 0.0, 1.0)

    @staticmethod
    def ppf(q: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The value of which :meth:`cdf` is a probability; NaN if it is none."""
        q, loc, scale = to_floats(q, loc, scale)
        return where(_is_probability(q), loc + q * scale, NAN)


class laplace(Density):
    """The Laplace distribution."""

    @staticmethod
    def logpdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, loc, scale = to_floats(x, loc, scale)
        return -abs(x - loc) / scale - log(2.0 * scale)

    @staticmethod
    def cdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a smaller value."""
        x, loc, scale = to_floats(x, loc, scale)
        tail = 0.5 * exp(-abs(x - loc) / scale)
        return where(x < loc, tail, 1.0 - tail)


class cauchy(Cumulative):
    """The Cauchy distribution."""

    @staticmethod
    def logpdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, loc, scale = to_floats(x, loc, scale)
        return -log(math.pi * scale) - log1p(((x - loc) / scale) ** 2)

    @staticmethod
    def cdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a smaller value."""
        x, loc, scale = to_floats(x, loc, scale)
        return 0.5 + atan((x - loc) / scale) / math.pi

    @staticmethod
    def sf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a larger value."""
        x, loc, scale = to_floats(x, loc, scale)
        return 0.5 - atan((x - loc) / scale) / math.pi

    @staticmethod
    def ppf(q: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The value of which :meth:`cdf` is a probability."""
        q, loc, scale = to_floats(q, loc, scale)
        return loc + scale * tan(math.pi * (q - 0.5))

    @staticmethod
    def isf(q: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The value of which :meth:`sf` is a probability."""
        q, loc, scale = to_floats(q, loc, scale)
        return loc + scale * tan(math.pi * (0.5 - q))


class beta(Cumulative):
    """The beta distribution."""

    @staticmethod
    def logpdf(
        x: TensorLike, a: TensorLike, b: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0
    ) -> Tensor:
        """The logarithm of the density."""
        x, a, b, loc, scale = to_floats(x, a, b, loc, scale)
        y = (x - loc) / scale
        is_within = (y >= 0) & (y <= 1)
        y = where(is_within, y, 0.5)
        value = (
            _special.xlogy(a - 1.0, y) + _special.xlog1py(b - 1.0, -y) - _special.betaln(a, b) - log(scale)
        )
        return where(is_within, value, -INFINITY)

    @staticmethod
    def cdf(
        x: TensorLike, a: TensorLike, b: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0
    ) -> Tensor:
        """The probability of a smaller value."""
        x, a, b, loc, scale = to_floats(x, a, b, loc, scale)
        result: Tensor = _special.betainc(a, b, clip((x - loc) / scale, 0.0, 1.0))
        return result

    @staticmethod
    def sf(
        x: TensorLike, a: TensorLike, b: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0
    ) -> Tensor:
        """The probability of a larger value."""
        x, a, b, loc, scale = to_floats(x, a, b, loc, scale)
        result: Tensor = _special.betainc(b, a, 1.0 - clip((x - loc) / scale, 0.0, 1.0))
        return result


class gamma(Cumulative):
    """The gamma distribution."""

    @staticmethod
    def logpdf(x: TensorLike, a: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, a, loc, scale = to_floats(x, a, loc, scale)
        y = where(x < loc, 1.0, (x - loc) / scale)
        value = _special.xlogy(a - 1.0, y) - y - _special.gammaln(a) - log(scale)
        return where(x < loc, -INFINITY, value)

    @staticmethod
    def cdf(x: TensorLike, a: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a smaller value."""
        x, a, loc, scale = to_floats(x, a, loc, scale)
        result: Tensor = _special.gammainc(a, clip((x - loc) / scale, 0.0, None))
        return result

    @staticmethod
    def sf(x: TensorLike, a: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a larger value."""
        x, a, loc, scale = to_floats(x, a, loc, scale)
        result: Tensor = _special.gammaincc(a, clip((x - loc) / scale, 0.0, None))
        return result


class chi2(Cumulative):
    """The chi-squared distribution with ``df`` degrees of freedom."""

    @staticmethod
    def logpdf(x: TensorLike, df: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, df, loc, scale = to_floats(x, df, loc, scale)
        return gamma.logpdf(x, df / 2.0, loc, 2.0 * scale)

    @staticmethod
    def cdf(x: TensorLike, df: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a smaller value."""
        x, df, loc, scale = to_floats(x, df, loc, scale)
        return gamma.cdf(x, df / 2.0, loc, 2.0 * scale)

    @staticmethod
    def sf(x: TensorLike, df: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a larger value."""
        x, df, loc, scale = to_floats(x, df, loc, scale)
        return gamma.sf(x, df / 2.0, loc, 2.0 * scale)


class t(Density):
    """Student's distribution with ``df`` degrees of freedom."""

    @staticmethod
    def logpdf(x: TensorLike, df: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, df, loc, scale = to_floats(x, df, loc, scale)
        half = (df + 1.0) / 2.0
        constant = _special.gammaln(half) - _special.gammaln(df / 2.0) - log(df * math.pi) / 2.0 - log(scale)
        result: Tensor = constant - half * log1p(((x - loc) / scale) ** 2 / df)
        return result


class logistic(Density):
    """The logistic distribution."""

    @staticmethod
    def logpdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, loc, scale = to_floats(x, loc, scale)
        distance = abs((x - loc) / scale)
        return -distance - 2.0 * log1p(exp(-distance)) - log(scale)

    @staticmethod
    def cdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a smaller value."""
        x, loc, scale = to_floats(x, loc, scale)
        return sigmoid((x - loc) / scale)

    @staticmethod
    def sf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a larger value."""
        x, loc, scale = to_floats(x, loc, scale)
        return sigmoid((loc - x) / scale)

    @staticmethod
    def ppf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The value of which :meth:`cdf` is a probability."""
        x, loc, scale = to_floats(x, loc, scale)
        result: Tensor = loc + scale * _special.logit(x)
        return result

    @staticmethod
    def isf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The value of which :meth:`sf` is a probability."""
        x, loc, scale = to_floats(x, loc, scale)
        result: Tensor = loc - scale * _special.logit(x)
        return result


class pareto(Cumulative):
    """The Pareto distribution, from ``loc + scale``."""

    @staticmethod
    def logpdf(x: TensorLike, b: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, b, loc, scale = to_floats(x, b, loc, scale)
        y = (x - loc) / scale
        value = log(b) - log(scale) - (b + 1.0) * log(where(y < 1, 1.0, y))
        return where(y < 1, -INFINITY, value)

    @staticmethod
    def logsf(x: TensorLike, b: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of :meth:`sf`."""
        x, b, loc, scale = to_floats(x, b, loc, scale)
        return -b * log(clip((x - loc) / scale, 1.0, None))

    @staticmethod
    def sf(x: TensorLike, b: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a larger value."""
        return exp(pareto.logsf(x, b, loc, scale))

    @staticmethod
    def cdf(x: TensorLike, b: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a smaller value."""
        return -expm1(pareto.logsf(x, b, loc, scale))

    @staticmethod
    def ppf(q: TensorLike, b: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The value of which :meth:`cdf` is a probability; NaN if it is none."""
        q, b, loc, scale = to_floats(q, b, loc, scale)
        return where(_is_probability(q), loc + scale * exp(-log1p(-q) / b), NAN)


class dirichlet(Density):
    """The Dirichlet distribution of vectors of positive numbers with the sum 1."""

    @staticmethod
    def logpdf(x: TensorLike, alpha: TensorLike) -> Tensor:
        """The logarithm of the density of vectors along the first axis; the last component may be left out.

        Raises:
            ShapeError: the vectors have another length than ``alpha``, a tensor of one axis.
        """
        x, alpha = to_floats(x, alpha)
        if alpha.ndim != 1 or x.ndim == 0 or alpha.shape[0] - x.shape[0] not in (0, 1):
            raise ShapeError(f"dirichlet: vectors of shape {x.shape} do not fit alpha of shape {alpha.shape}")
        if x.shape[0] < alpha.shape[0]:
            x = concat([x, 1.0 - sum(x, 0, keepdims=True)], 0)
        constant = sum(_special.gammaln(alpha)) - _special.gammaln(sum(alpha))
        powers = alpha.reshape((-1, *[1] * (x.ndim - 1))) - 1.0
        is_within = all(x > 0, 0) & (abs(sum(x, 0) - 1.0) < 1e-6)
        return where(is_within, sum(_special.xlogy(powers, x), 0) - constant, -INFINITY)
