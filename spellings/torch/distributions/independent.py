"""Independent: batch axes of a distribution as axes of one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ValueArgumentError
from ...operators.reductions.folds import sum
from . import constraints as c
from .distribution import Distribution

if TYPE_CHECKING:
    from ...registry.types import Tensor


class Independent(Distribution):
    """A distribution whose last batch axes are axes of one value; logarithms of probabilities are added up.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: the number of axes.
        validate_args: accepted; the base distribution checks.

    Raises:
        ValueArgumentError: it has fewer batch axes.

    >>> import tandem.torch as torch
    >>> base = torch.distributions.Normal(torch.zeros(2, 3), 1.0)
    >>> vectors = torch.distributions.Independent(base, 1)
    >>> vectors.batch_shape, vectors.event_shape, vectors.log_prob(torch.zeros(3)).shape
    ((2,), (3,), (2,))
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ):
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueArgumentError(
                f"Independent: {reinterpreted_batch_ndims} axes of the batch shape {base_distribution.batch_shape}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        self._split = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        self._batch_shape = base_distribution.batch_shape[: self._split]
        self._parameters = base_distribution._parameters

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The axes of one value."""
        return (*self.base_dist.batch_shape[self._split :], *self.base_dist.event_shape)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """That of the base distribution."""
        return self.base_dist.has_rsample

    @property
    def support(self) -> c.Constraint:
        """That of the base distribution."""
        return c.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    def expand(self, batch_shape: Sequence[int]) -> Any:
        """The distribution with its parameters broadcast to a batch shape."""
        base = self.base_dist.expand((*batch_shape, *self.base_dist.batch_shape[self._split :]))
        return type(self)(base, self.reinterpreted_batch_ndims)

    def _sum(self, x: Tensor) -> Tensor:
        axes = tuple(range(-self.reinterpreted_batch_ndims, 0))
        return sum(x, axes) if axes else x

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Samples of the base distribution."""
        return self.base_dist.draw(shape)

    def log_prob(self, value: Any) -> Tensor:
        """The sum over the axes."""
        return self._sum(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        """The sum over the axes."""
        return self._sum(self.base_dist.entropy())

    @property
    def mean(self) -> Tensor:
        """The means."""
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        """The variances."""
        return self.base_dist.variance

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
