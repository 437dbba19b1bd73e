"""Normal, LogNormal, HalfNormal, and the base class of distributions with a location and a scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...eager.tensor.generator import default_generator
from ...operators.elementwise.arithmetic import abs
from ...operators.elementwise.exponential import erf, exp, expm1, log
from ...operators.elementwise.selection import where
from ...special.normals import erfinv
from . import constraints as c
from .distribution import Distribution

if TYPE_CHECKING:
    from ...registry.types import Tensor

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class LocationScale(Distribution):
    """The base class of distributions whose samples are ``loc + scale * draw``."""

    arg_constraints = {"loc": c.real, "scale": c.positive}
    support = c.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def _standardize(self, value: Any) -> Tensor:
        return (self._take(value) - self.loc) / self.scale

    @property
    def mean(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc


class Normal(LocationScale):
    """The normal distribution.

    Args:
        loc: the mean.
        scale: the standard deviation.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> normal = torch.distributions.Normal(torch.zeros(2), 1.0)
    >>> normal.sample((3,)).shape, round(normal.log_prob(0.0)[0].item(), 4)
    ((3, 2), -0.9189)
    """

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Scaled normal numbers."""
        return self.loc + self.scale * default_generator.normal(shape, dtype=self.loc.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        return -0.5 * self._standardize(value) ** 2 - log(self.scale) - HALF_LOG_TWO_PI

    def cdf(self, value: Any) -> Tensor:
        """By the error function."""
        return 0.5 * (1 + erf(self._standardize(value) * math.sqrt(0.5)))

    def icdf(self, value: Any) -> Tensor:
        """By the inverse error function."""
        return self.loc + self.scale * erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        """The entropy."""
        return 0.5 + HALF_LOG_TWO_PI + log(self.scale)

    @property
    def variance(self) -> Tensor:
        """The square of the scale."""
        return self.scale**2


class LogNormal(LocationScale):
    """The distribution of exponentials of normal numbers.

    Args:
        loc: the mean of the logarithms.
        scale: the standard deviation of the logarithms.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    support = c.positive

    @property
    def base(self) -> Normal:
        """The distribution of the logarithms."""
        return Normal(self.loc, self.scale, validate_args=False)

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Exponentials of normal numbers."""
        return exp(self.base.draw(shape))

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        logarithm = log(self._take(value))
        return self.base.log_prob(logarithm) - logarithm

    def cdf(self, value: Any) -> Tensor:
        """That of the logarithm."""
        return self.base.cdf(log(self._take(value)))

    def icdf(self, value: Any) -> Tensor:
        """The exponential of that of the logarithm."""
        return exp(self.base.icdf(value))

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.base.entropy() + self.loc

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return exp(self.loc + self.scale**2 / 2)

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return exp(self.loc - self.scale**2)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return expm1(self.scale**2) * exp(2 * self.loc + self.scale**2)


class HalfNormal(Distribution):
    """The distribution of magnitudes of normal numbers with mean 0.

    Args:
        scale: the standard deviation of the normal numbers.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    arg_constraints = {"scale": c.positive}
    support = c.nonnegative
    has_rsample = True
    scale: Tensor

    @property
    def base(self) -> Normal:
        """The distribution of the normal numbers."""
        return Normal(0.0, self.scale, validate_args=False)

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Magnitudes of normal numbers."""
        return abs(self.base.draw(shape))

    def log_prob(self, value: Any) -> Tensor:
        """Twice the density, of values that are not negative."""
        x = self._take(value)
        return where(x >= 0, self.base.log_prob(x) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Tensor:
        """The probability of the interval around 0."""
        return 2 * self.base.cdf(self._take(value)) - 1

    def icdf(self, value: Any) -> Tensor:
        """The end of the interval around 0."""
        return self.base.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        """The entropy."""
        return self.base.entropy() - math.log(2)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.scale * 0

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale**2 * (1 - 2 / math.pi)
