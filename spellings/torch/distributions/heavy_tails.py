"""HalfCauchy, Pareto, Weibull, InverseGamma: distributions of positive numbers, whose moments may be infinite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...eager.tensor.generator import default_generator
from ...operators.elementwise.arithmetic import abs
from ...operators.elementwise.exponential import exp, expm1, log, log1p
from ...operators.elementwise.selection import where
from ...operators.elementwise.trigonometry import atan, tan
from ...special.gammas import digamma, gammaincc, gammaln
from . import constraints as c
from .distribution import Distribution
from .location_scale import EULER

if TYPE_CHECKING:
    from ...registry.types import Tensor


class HalfCauchy(Distribution):
    """The distribution of magnitudes of Cauchy numbers with median 0.

    Args:
        scale: the median.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> round(torch.distributions.HalfCauchy(2.0).cdf(2.0).item(), 4)
    0.5
    """

    arg_constraints = {"scale": c.positive}
    support = c.nonnegative
    has_rsample = True
    scale: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Magnitudes of scaled numbers of the standard distribution."""
        return self.scale * abs(default_generator.cauchy(shape, dtype=self.scale.dtype))

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density; minus infinity for negative values."""
        x = self._take(value)
        density = math.log(2 / math.pi) - log(self.scale) - log1p((x / self.scale) ** 2)
        return where(x >= 0, density, -math.inf)

    def cdf(self, value: Any) -> Tensor:
        """By the arctangent."""
        return atan(self._take(value) / self.scale) * (2 / math.pi)

    def icdf(self, value: Any) -> Tensor:
        """By the tangent."""
        return self.scale * tan(value * (math.pi / 2))

    def entropy(self) -> Tensor:
        """The entropy."""
        return math.log(2 * math.pi) + log(self.scale)

    @property
    def mean(self) -> Tensor:
        """Infinity."""
        return where(self.scale > 0, math.inf, math.nan)

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.scale * 0

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return where(self.scale > 0, math.inf, math.nan)


class Pareto(Distribution):
    """The Pareto distribution, of values that are at least the scale.

    Args:
        scale: the least value.
        alpha: the shape: the probability of more than x is ``(scale / x) ** alpha``.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> torch.distributions.Pareto(1.0, 2.0).mean.item()
    2.0
    """

    arg_constraints = {"scale": c.positive, "alpha": c.positive}
    has_rsample = True
    scale: Tensor
    alpha: Tensor

    @property
    def support(self) -> c.Constraint:
        """The numbers from the scale on."""
        return c.greater_than_eq(self.scale)

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Scaled exponentials of exponential numbers."""
        return self.scale * exp(default_generator.exponential(shape, dtype=self.scale.dtype) / self.alpha)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        return log(self.alpha / self.scale) - (self.alpha + 1) * log(self._take(value) / self.scale)

    def cdf(self, value: Any) -> Tensor:
        """The probability of at most a value."""
        return -expm1(-self.alpha * log(self._take(value) / self.scale))

    def icdf(self, value: Any) -> Tensor:
        """The value whose ``cdf`` is a probability."""
        return self.scale * exp(-log1p(-value) / self.alpha)

    def entropy(self) -> Tensor:
        """The entropy."""
        return log(self.scale / self.alpha) + 1 + 1 / self.alpha

    @property
    def mean(self) -> Tensor:
        """The mean; infinite for a shape of at most 1."""
        return where(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        """The scale."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """The variance; infinite for a shape of at most 2."""
        a = self.alpha
        return where(a > 2, self.scale**2 * a / ((a - 1) ** 2 * (a - 2)), math.inf)


class Weibull(Distribution):
    """The Weibull distribution.

    Args:
        scale: the scale.
        concentration: the shape; 1: the exponential distribution.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> round(torch.distributions.Weibull(2.0, 1.0).mean.item(), 4)
    2.0
    """

    arg_constraints = {"scale": c.positive, "concentration": c.positive}
    support = c.nonnegative
    has_rsample = True
    scale: Tensor
    concentration: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Scaled powers of exponential numbers."""
        standard = default_generator.exponential(shape, dtype=self.scale.dtype)
        return self.scale * standard ** (1 / self.concentration)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        x, k = self._take(value) / self.scale, self.concentration
        return log(k / self.scale) + (k - 1) * log(x) - x**k

    def cdf(self, value: Any) -> Tensor:
        """The probability of at most a value."""
        return -expm1(-((self._take(value) / self.scale) ** self.concentration))

    def icdf(self, value: Any) -> Tensor:
        """The value whose ``cdf`` is a probability."""
        return self.scale * (-log1p(-value)) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        """The entropy."""
        k = self.concentration
        return EULER * (1 - 1 / k) + log(self.scale / k) + 1

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.scale * exp(gammaln(1 + 1 / self.concentration))

    @property
    def mode(self) -> Tensor:
        """The most probable value; zero for a shape of at most 1."""
        k = self.concentration
        return where(k > 1, self.scale * ((k - 1) / k) ** (1 / k), 0.0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        k = self.concentration
        return self.scale**2 * (exp(gammaln(1 + 2 / k)) - exp(2 * gammaln(1 + 1 / k)))


class InverseGamma(Distribution):
    """The distribution of inverses of gamma numbers.

    Args:
        concentration, rate: the parameters of the gamma distribution.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> torch.distributions.InverseGamma(3.0, 4.0).mean.item()
    2.0
    """

    arg_constraints = {"concentration": c.positive, "rate": c.positive}
    support = c.positive
    has_rsample = True
    concentration: Tensor
    rate: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Inverses of gamma numbers."""
        return self.rate / default_generator.gamma(self.concentration, shape)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        x, a = self._take(value), self.concentration
        return a * log(self.rate) - (a + 1) * log(x) - self.rate / x - gammaln(a)

    def cdf(self, value: Any) -> Tensor:
        """By the incomplete gamma function."""
        return gammaincc(self.concentration, self.rate / self._take(value))

    def entropy(self) -> Tensor:
        """The entropy."""
        a = self.concentration
        return a + log(self.rate) + gammaln(a) - (1 + a) * digamma(a)

    @property
    def mean(self) -> Tensor:
        """The mean; infinite for a shape of at most 1."""
        return where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """The variance; infinite for a shape of at most 2."""
        a = self.concentration
        return where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)
