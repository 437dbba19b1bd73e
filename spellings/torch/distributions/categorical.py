"""Distributions of outcomes: Categorical, OneHotCategorical, Multinomial."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...eager.tensor.generator import default_generator
from ...errors import ArgumentError
from ...operators.creation.creation import eye
from ...operators.creation.full import zeros_like
from ...operators.declare.shape_rules import broadcast_shapes
from ...operators.elementwise.casting import astype
from ...operators.elementwise.exponential import exp
from ...operators.elementwise.selection import where
from ...operators.indexing.take import take_along_axis
from ...operators.nn.losses import one_hot
from ...operators.reductions.folds import argmax, sum
from ...operators.shape.views import broadcast_to, reshape
from ...registry.dtypes import int64
from ...special.gammas import gammaln
from . import constraints as c
from .discrete import Binomial, enumerate_values
from .probabilities import OUTCOMES, ProbsOrLogits

if TYPE_CHECKING:
    from ...registry.types import Tensor


class Outcomes(ProbsOrLogits):
    """The base class: the last axis of the parameter has the outcomes."""

    arg_constraints = OUTCOMES
    is_binary = False

    @property
    def _num_events(self) -> int:
        return int(self.param_shape[-1])

    def entropy(self) -> Tensor:
        """The entropy."""
        terms = where(self.probs > 0, self.probs * self.logits, 0.0)
        return -sum(terms, -1)


class Categorical(Outcomes):
    """The categorical distribution: the number of an outcome.

    Args:
        probs: the probabilities along the last axis, up to a factor, or
        logits: their logarithms, up to a constant.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> policy = torch.distributions.Categorical(logits=torch.tensor([0.0, 100.0]))
    >>> action = policy.sample()
    >>> action.item(), policy.log_prob(action).item()
    (1, 0.0)
    """

    has_enumerate_support = True

    @property
    def support(self) -> c.Constraint:
        """The numbers of the outcomes."""
        return c.integer_interval(0, self._num_events - 1)

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Numbers of outcomes, int64."""
        return default_generator.categorical(self.logits, -1, shape)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability."""
        index = astype(self._take(value), int64)
        shape = broadcast_shapes("log_prob", index.shape, self.batch_shape)
        logits = broadcast_to(self.logits, (*shape, self._num_events))
        index = reshape(broadcast_to(index, shape), (*shape, 1))
        return reshape(take_along_axis(logits, index, -1), shape)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The numbers of the outcomes."""
        return enumerate_values(self, self._num_events, int64, expand)

    @property
    def mean(self) -> Tensor:
        """NaN."""
        return zeros_like(self.probs[..., 0]) + math.nan

    @property
    def mode(self) -> Tensor:
        """The most probable outcome."""
        return argmax(self.probs, -1)

    @property
    def variance(self) -> Tensor:
        """NaN."""
        return zeros_like(self.probs[..., 0]) + math.nan


class OneHotCategorical(Outcomes):
    """The categorical distribution, as vectors with a 1 at the outcome.

    Args:
        probs: the probabilities along the last axis, up to a factor, or
        logits: their logarithms, up to a constant.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.
    """

    support = c.one_hot
    has_enumerate_support = True

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The number of outcomes."""
        return (self._num_events,)

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Vectors, as floats."""
        drawn = default_generator.categorical(self.logits, -1, shape[:-1])
        return astype(one_hot(drawn, self._num_events), self.probs.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability."""
        return sum(where(self._take(value) == 1, self.logits, 0.0), -1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """The vectors."""
        count = self._num_events
        values = reshape(eye(count, dtype=self.probs.dtype), (count, *(1 for _ in self.batch_shape), count))
        return broadcast_to(values, (count, *self.batch_shape, count)) if expand else values

    @property
    def mean(self) -> Tensor:
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The most probable vector."""
        return astype(one_hot(argmax(self.probs, -1), self._num_events), self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        """The variances."""
        return self.probs * (1 - self.probs)


class Multinomial(Outcomes):
    """The multinomial distribution: how often each outcome occurs.

    Args:
        total_count: the number of trials, an int.
        probs: the probabilities along the last axis, up to a factor, or
        logits: their logarithms, up to a constant.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    Raises:
        ArgumentError: the number of trials is not an int.
    """

    def __init__(self, total_count: int = 1, *args: Any, validate_args: bool | None = None, **kwargs: Any):
        if not isinstance(total_count, int):
            raise ArgumentError(f"Multinomial: total_count is an int, not {total_count!r}")
        self.total_count = total_count
        super().__init__(*args, validate_args=validate_args, **kwargs)

    @property
    def support(self) -> c.Constraint:
        """Counts whose sum is the number of trials."""
        return c.multinomial(self.total_count)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The number of outcomes."""
        return (self._num_events,)

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Counts, as floats."""
        return default_generator.multinomial(self.total_count, self.probs, shape)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability."""
        x = self._take(value)
        terms = where(x == 0, 0.0, x * self.logits) - gammaln(x + 1)
        return sum(terms, -1) + math.lgamma(self.total_count + 1)

    def entropy(self) -> Tensor:
        """The entropy, from the distributions of the counts of single outcomes."""
        counts = Binomial(self.total_count, self.probs, validate_args=False)
        values = counts.enumerate_support(False)
        logarithms = sum(exp(counts.log_prob(values)) * gammaln(values + 1), (0, -1))
        return self.total_count * super().entropy() - math.lgamma(self.total_count + 1) + logarithms

    @property
    def mean(self) -> Tensor:
        """The means."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        """The variances."""
        return self.total_count * self.probs * (1 - self.probs)
