"""Laplace, Cauchy, Gumbel: samples are scaled numbers of the standard distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...eager.tensor.generator import default_generator
from ...operators.elementwise.arithmetic import abs, sign
from ...operators.elementwise.exponential import exp, expm1, log, log1p
from ...operators.elementwise.selection import where
from ...operators.elementwise.trigonometry import atan, tan
from .normal import LocationScale

if TYPE_CHECKING:
    from ...registry.types import Tensor

EULER = 0.5772156649015329


class Laplace(LocationScale):
    """The Laplace distribution.

    Args:
        loc: the mean.
        scale: the mean magnitude of the deviation from it.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Scaled numbers of the standard distribution."""
        return self.loc + self.scale * default_generator.laplace(shape, dtype=self.loc.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        return -log(2 * self.scale) - abs(self._standardize(value))

    def cdf(self, value: Any) -> Tensor:
        """The probability of at most a value."""
        x = self._standardize(value)
        return 0.5 - 0.5 * sign(x) * expm1(-abs(x))

    def icdf(self, value: Any) -> Tensor:
        """The value whose ``cdf`` is a probability."""
        term = value - 0.5
        return self.loc - self.scale * sign(term) * log1p(-2 * abs(term))

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1 + log(2 * self.scale)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return 2 * self.scale**2


class Cauchy(LocationScale):
    """The Cauchy distribution, which has no mean.

    Args:
        loc: the median.
        scale: half the width of the interval that has half of the probability.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Scaled numbers of the standard distribution."""
        return self.loc + self.scale * default_generator.cauchy(shape, dtype=self.loc.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        return -math.log(math.pi) - log(self.scale) - log1p(self._standardize(value) ** 2)

    def cdf(self, value: Any) -> Tensor:
        """By the arctangent."""
        return atan(self._standardize(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Tensor:
        """By the tangent."""
        return self.loc + self.scale * tan(math.pi * (value - 0.5))

    def entropy(self) -> Tensor:
        """The entropy."""
        return math.log(4 * math.pi) + log(self.scale)

    @property
    def mean(self) -> Tensor:
        """NaN."""
        return self.loc * math.nan

    @property
    def variance(self) -> Tensor:
        """Infinity."""
        return where(self.scale > 0, math.inf, math.nan)


class Gumbel(LocationScale):
    """The Gumbel distribution, of the largest of many values.

    Args:
        loc: the most probable value.
        scale: the scale.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Scaled numbers of the standard distribution."""
        return self.loc + self.scale * default_generator.gumbel(shape, dtype=self.loc.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        x = -self._standardize(value)
        return x - exp(x) - log(self.scale)

    def cdf(self, value: Any) -> Tensor:
        """The probability of at most a value."""
        return exp(-exp(-self._standardize(value)))

    def icdf(self, value: Any) -> Tensor:
        """The value whose ``cdf`` is a probability."""
        return self.loc - self.scale * log(-log(value))

    def entropy(self) -> Tensor:
        """The entropy."""
        return log(self.scale) + (1 + EULER)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc + EULER * self.scale

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.scale**2 * (math.pi**2 / 6)
