"""Distributions of counts: Bernoulli, Geometric, Binomial, NegativeBinomial, Poisson."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...eager.tensor.generator import default_generator
from ...errors import UnsupportedError
from ...operators.creation.creation import arange
from ...operators.elementwise.activation import softplus
from ...operators.elementwise.casting import astype
from ...operators.elementwise.exponential import exp, log, log1p
from ...operators.elementwise.rounding import floor
from ...operators.elementwise.selection import maximum, where
from ...operators.reductions.folds import max, min, sum
from ...operators.shape.views import broadcast_to, reshape
from ...special.entropies import xlogy
from ...special.gammas import gammaln
from . import constraints as c
from .distribution import Distribution
from .probabilities import BINARY, ProbsOrLogits, clamp_probs

if TYPE_CHECKING:
    from ...registry.types import Tensor


def enumerate_values(distribution: Distribution, count: int, dtype: Any, expand: bool) -> Tensor:
    """The numbers below ``count`` along a first axis, before the axes of the batch."""
    values = arange(count, dtype=dtype)
    values = reshape(values, (count, *(1 for _ in distribution.batch_shape)))
    return broadcast_to(values, (count, *distribution.batch_shape)) if expand else values


class Bernoulli(ProbsOrLogits):
    """The Bernoulli distribution: 1 with a probability, else 0.

    Args:
        probs: the probability of 1, or
        logits: its logit.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> torch.distributions.Bernoulli(logits=0.0).log_prob(1.0).exp().item()
    0.5
    """

    arg_constraints = BINARY
    support = c.boolean
    has_enumerate_support = True

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Ones and zeros, as floats."""
        return astype(default_generator.bernoulli(self.probs, shape), self.probs.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability."""
        return self._take(value) * self.logits - softplus(self.logits)

    def entropy(self) -> Tensor:
        """The entropy."""
        return softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 and 1."""
        return enumerate_values(self, 2, self.probs.dtype, expand)

    @property
    def mean(self) -> Tensor:
        """The probability."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The more probable value; NaN if both are as probable."""
        more = astype(self.probs >= 0.5, self.probs.dtype)
        return where(self.probs == 0.5, math.nan, more)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)


class Geometric(ProbsOrLogits):
    """The geometric distribution: the number of failures before the first success.

    Args:
        probs: the probability of a success, or
        logits: its logit.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    arg_constraints = BINARY
    support = c.nonnegative_integer

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Logarithms of uniform numbers, rounded down."""
        uniform = 1 - default_generator.uniform(shape, dtype=self.probs.dtype)
        return floor(log(uniform) / log1p(-clamp_probs(self.probs)))

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability."""
        x, p = self._take(value), self.probs
        return where((p == 1) & (x == 0), 0.0, x * log1p(-clamp_probs(p))) + log(p)

    def entropy(self) -> Tensor:
        """The entropy."""
        return (softplus(self.logits) - self.probs * self.logits) / self.probs

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        """Zero."""
        return self.probs * 0

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (1 / self.probs - 1) / self.probs


class Binomial(ProbsOrLogits):
    """The binomial distribution: the number of successes in several trials.

    Args:
        total_count: the number of trials.
        probs: the probability of a success, or
        logits: its logit.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    arg_constraints = {"total_count": c.nonnegative_integer, **BINARY}
    defaults = {"total_count": 1}
    before = ("total_count",)
    has_enumerate_support = True
    total_count: Tensor

    @property
    def support(self) -> c.Constraint:
        """The numbers up to that of the trials."""
        return c.integer_interval(0, self.total_count)

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Numbers of successes, as floats."""
        return default_generator.binomial(self.total_count, self.probs, shape)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability."""
        x, n = self._take(value), self.total_count
        choices = gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1)
        return choices + x * self.logits - n * softplus(self.logits)

    def entropy(self) -> Tensor:
        """The entropy; of distributions with the same number of trials."""
        logarithms = self.log_prob(self.enumerate_support(False))
        return -sum(exp(logarithms) * logarithms, 0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The numbers up to that of the trials."""
        count = int(max(self.total_count))
        if int(min(self.total_count)) != count:
            raise UnsupportedError("Binomial: the distributions have several numbers of trials")
        return enumerate_values(self, count + 1, self.probs.dtype, expand)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        """The most probable number."""
        return where(self.probs == 1, self.total_count, floor((self.total_count + 1) * self.probs))

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)


class NegativeBinomial(ProbsOrLogits):
    """The negative binomial distribution: the number of successes before a number of failures.

    Args:
        total_count: the number of failures, which need not be an integer.
        probs: the probability of a success, or
        logits: its logit.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> torch.distributions.NegativeBinomial(4.0, 0.5).mean.item()
    4.0
    """

    arg_constraints = {
        "total_count": c.nonnegative,
        "probs": c.half_open_interval(0.0, 1.0),
        "logits": c.real,
    }
    before = ("total_count",)
    support = c.nonnegative_integer
    total_count: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Poisson numbers whose rates are gamma numbers."""
        rate = default_generator.gamma(self.total_count, shape) * exp(self.logits)
        return default_generator.poisson(rate, shape, dtype=self.total_count.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability."""
        x, n = self._take(value), self.total_count
        choices = where(n + x == 0, 0.0, gammaln(n + x) - gammaln(x + 1) - gammaln(n))
        return choices - n * softplus(self.logits) - x * softplus(-self.logits)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.total_count * exp(self.logits)

    @property
    def mode(self) -> Tensor:
        """The most probable number."""
        return maximum(floor((self.total_count - 1) * exp(self.logits)), 0.0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.mean * (1 + exp(self.logits))


class Poisson(Distribution):
    """The Poisson distribution.

    Args:
        rate: the mean.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    arg_constraints = {"rate": c.nonnegative}
    support = c.nonnegative_integer
    rate: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Counts, as floats."""
        return default_generator.poisson(self.rate, shape, dtype=self.rate.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability."""
        x = self._take(value)
        return xlogy(x, self.rate) - self.rate - gammaln(x + 1)

    @property
    def mean(self) -> Tensor:
        """The rate."""
        return self.rate

    @property
    def mode(self) -> Tensor:
        """The most probable count."""
        return floor(self.rate)

    @property
    def variance(self) -> Tensor:
        """The rate."""
        return self.rate
