"""Uniform, Exponential."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...eager.tensor.generator import default_generator
from ...operators.elementwise.exponential import expm1, log, log1p
from ...operators.elementwise.selection import clip, where
from . import constraints as c
from .distribution import Distribution

if TYPE_CHECKING:
    from ...registry.types import Tensor


class Uniform(Distribution):
    """The uniform distribution.

    Args:
        low, high: the ends of the interval.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> torch.distributions.Uniform(0.0, 4.0).variance.item()
    1.3333333730697632
    """

    arg_constraints = {"low": c.real, "high": c.real}
    has_rsample = True
    low: Tensor
    high: Tensor

    def _set_parameters(self, given: Any, validate_args: bool | None) -> None:
        super()._set_parameters(given, validate_args)
        if self._validates:
            self._check(c.greater_than(self.low), self.high, "parameter high")

    @property
    def support(self) -> c.Constraint:
        """The interval."""
        return c.interval(self.low, self.high)

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Uniform numbers."""
        return self.low + (self.high - self.low) * default_generator.uniform(shape, dtype=self.low.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density: minus infinity outside of the interval."""
        x = self._take(value)
        return where((x >= self.low) & (x < self.high), -log(self.high - self.low), -math.inf)

    def cdf(self, value: Any) -> Tensor:
        """The share of the interval below a value."""
        return clip((self._take(value) - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: Any) -> Any:
        """The value above a share of the interval."""
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        """The entropy."""
        return log(self.high - self.low)

    @property
    def mean(self) -> Tensor:
        """The middle."""
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        """NaN: all values are as probable."""
        return self.low * math.nan

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (self.high - self.low) ** 2 / 12


class Exponential(Distribution):
    """The exponential distribution.

    Args:
        rate: the inverse of the mean.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    arg_constraints = {"rate": c.positive}
    support = c.nonnegative
    has_rsample = True
    rate: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Numbers of the standard distribution, divided by the rate."""
        return default_generator.exponential(shape, dtype=self.rate.dtype) / self.rate

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        return log(self.rate) - self.rate * self._take(value)

    def cdf(self, value: Any) -> Tensor:
        """The probability of at most a value."""
        return -expm1(-self.rate * self._take(value))

    def icdf(self, value: Any) -> Tensor:
        """The value whose ``cdf`` is a probability."""
        return -log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        """The entropy."""
        return 1 - log(self.rate)

    @property
    def mean(self) -> Tensor:
        """The inverse of the rate."""
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.rate * 0

    @property
    def variance(self) -> Tensor:
        """The square of the mean."""
        return 1 / self.rate**2
