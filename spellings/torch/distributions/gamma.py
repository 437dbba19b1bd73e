"""Distributions of the gamma function: Gamma, Chi2, Beta, Dirichlet, StudentT."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...eager.tensor.generator import default_generator
from ...operators.elementwise.exponential import log, log1p, sqrt
from ...operators.elementwise.selection import where
from ...operators.reductions.folds import sum
from ...special.entropies import xlog1py, xlogy
from ...special.gammas import betainc, betaln, digamma, gammainc, gammaln
from . import constraints as c
from .distribution import Distribution

if TYPE_CHECKING:
    from ...registry.types import Tensor


class Gamma(Distribution):
    """The gamma distribution.

    Args:
        concentration: the shape.
        rate: the inverse of the scale.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> a = torch.tensor(3.0, requires_grad=True)
    >>> torch.distributions.Gamma(a, 2.0).rsample((5,)).sum().backward()
    >>> bool(a.grad > 0)
    True
    """

    arg_constraints = {"concentration": c.positive, "rate": c.positive}
    support = c.nonnegative
    has_rsample = True
    concentration: Tensor
    rate: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Gamma numbers, with the derivative of implicit reparameterization."""
        return default_generator.gamma(self.concentration, shape) / self.rate

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        x, a = self._take(value), self.concentration
        return xlogy(a, self.rate) + xlogy(a - 1, x) - self.rate * x - gammaln(a)

    def cdf(self, value: Any) -> Tensor:
        """By the incomplete gamma function."""
        return gammainc(self.concentration, self.rate * self._take(value))

    def entropy(self) -> Tensor:
        """The entropy."""
        a = self.concentration
        return a - log(self.rate) + gammaln(a) + (1 - a) * digamma(a)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return where(self.concentration > 1, (self.concentration - 1) / self.rate, 0.0)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.concentration / self.rate**2


class Chi2(Gamma):
    """The chi-squared distribution.

    Args:
        df: the degrees of freedom.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    arg_constraints = {"df": c.positive}
    df: Tensor

    @property
    def concentration(self) -> Tensor:  # type: ignore[override]
        """Half of the degrees of freedom."""
        return self.df / 2

    @property
    def rate(self) -> Tensor:  # type: ignore[override]
        """One half."""
        return self.df * 0 + 0.5


class Beta(Distribution):
    """The beta distribution.

    Args:
        concentration1, concentration0: the shapes; the first is that of the values near 1.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    arg_constraints = {"concentration1": c.positive, "concentration0": c.positive}
    support = c.unit_interval
    has_rsample = True
    concentration1: Tensor
    concentration0: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Beta numbers, with the derivative of implicit reparameterization."""
        return default_generator.beta(self.concentration1, self.concentration0, shape)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        x, a, b = self._take(value), self.concentration1, self.concentration0
        return xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b)

    def cdf(self, value: Any) -> Tensor:
        """By the incomplete beta function."""
        return betainc(self.concentration1, self.concentration0, self._take(value))

    def entropy(self) -> Tensor:
        """The entropy."""
        a, b = self.concentration1, self.concentration0
        slopes = (a - 1) * digamma(a) + (b - 1) * digamma(b) - (a + b - 2) * digamma(a + b)
        return betaln(a, b) - slopes

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return (self.concentration1 - 1) / (self.concentration1 + self.concentration0 - 2)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))


class Dirichlet(Distribution):
    """The Dirichlet distribution, of probabilities whose sum is 1.

    Args:
        concentration: the shapes, along the last axis.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    arg_constraints = {"concentration": c.independent(c.positive, 1)}
    support = c.simplex
    has_rsample = True
    concentration: Tensor

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The number of outcomes."""
        return tuple(self.concentration.shape[-1:])

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Probabilities, with the derivative of implicit reparameterization."""
        return default_generator.dirichlet(self.concentration, shape[:-1])

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        a = self.concentration
        return sum(xlogy(a - 1, self._take(value)), -1) + gammaln(sum(a, -1)) - sum(gammaln(a), -1)

    def entropy(self) -> Tensor:
        """The entropy."""
        a = self.concentration
        total, count = sum(a, -1), a.shape[-1]
        norm = sum(gammaln(a), -1) - gammaln(total)
        return norm - (count - total) * digamma(total) - sum((a - 1) * digamma(a), -1)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / sum(self.concentration, -1, keepdims=True)

    @property
    def variance(self) -> Tensor:
        """The variance of each probability."""
        total = sum(self.concentration, -1, keepdims=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))


class StudentT(Distribution):
    """Student's distribution.

    Args:
        df: the degrees of freedom.
        loc: the location.
        scale: the scale.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    arg_constraints = {"df": c.positive, "loc": c.real, "scale": c.positive}
    defaults = {"loc": 0.0, "scale": 1.0}
    support = c.real
    has_rsample = True
    df: Tensor
    loc: Tensor
    scale: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Scaled numbers of the standard distribution."""
        return self.loc + self.scale * default_generator.t(self.df, shape)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        x, half = (self._take(value) - self.loc) / self.scale, self.df / 2
        norm = log(self.scale) + 0.5 * log(self.df) + betaln(half, half * 0 + 0.5)
        return -(half + 0.5) * log1p(x**2 / self.df) - norm

    def entropy(self) -> Tensor:
        """The entropy."""
        half = self.df / 2
        slopes = (half + 0.5) * (digamma(half + 0.5) - digamma(half))
        return log(self.scale * sqrt(self.df)) + slopes + betaln(half, half * 0 + 0.5)

    @property
    def mean(self) -> Tensor:
        """The location; NaN for at most one degree of freedom."""
        return where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        """The location."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance; infinite for at most two degrees of freedom, NaN for at most one."""
        finite = self.scale**2 * self.df / (self.df - 2)
        return where(self.df > 2, finite, where(self.df > 1, math.inf, math.nan))
