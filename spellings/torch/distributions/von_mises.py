"""VonMises: a distribution of angles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...eager.tensor.generator import default_generator
from ...operators.elementwise.arithmetic import remainder, sign
from ...operators.elementwise.casting import astype
from ...operators.elementwise.exponential import log, sqrt
from ...operators.elementwise.selection import clip, where
from ...operators.elementwise.trigonometry import acos, cos
from ...operators.indexing.take import take_along_axis
from ...operators.reductions.folds import argmax
from ...registry.dtypes import float64
from ...special.bessel import i0e, i1e
from . import constraints as c
from .distribution import Distribution

if TYPE_CHECKING:
    from ...registry.types import Tensor

_PROPOSALS = 32  # each is accepted with a probability of at least 0.65: all are refused once in 10^14 samples


class VonMises(Distribution):
    """The von Mises distribution, of angles from -pi to pi.

    Args:
        loc: the mean angle.
        concentration: the inverse of the variance of small deviations.
        validate_args: as for :class:`tandem.torch.distributions.Distribution`.

    >>> import tandem.torch as torch
    >>> round(torch.distributions.VonMises(0.0, 1.0).log_prob(0.0).item(), 3)
    -1.074
    """

    arg_constraints = {"loc": c.real, "concentration": c.positive}
    support = c.real
    loc: Tensor
    concentration: Tensor

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Angles by rejection, of which the first accepted proposals are taken.

        Source: Best and Fisher, Efficient simulation of the von Mises distribution, 1979.
        """
        k = astype(self.concentration, float64)
        uniform = default_generator.uniform((2, _PROPOSALS, *shape), dtype=float64)
        z, threshold = cos(math.pi * uniform[0]), 1 - uniform[1]
        radius = _proposal_radius(k)
        cosine = (1 + radius * z) / (radius + z)
        factor = k * (radius - cosine)
        accepted = (factor * (2 - factor) > threshold) | (log(factor / threshold) + 1 >= factor)
        first = argmax(accepted, axis=0, keepdims=True)
        angle = acos(clip(take_along_axis(cosine, first, axis=0)[0], -1.0, 1.0))
        turned = angle * sign(default_generator.uniform(shape, dtype=float64) - 0.5)
        return astype(remainder(turned + self.loc + math.pi, 2 * math.pi) - math.pi, self.loc.dtype)

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        k = self.concentration
        return k * (cos(self._take(value) - self.loc) - 1) - math.log(2 * math.pi) - log(i0e(k))

    @property
    def mean(self) -> Tensor:
        """The mean angle."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The mean angle."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance: 1 minus the mean cosine of deviations."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)


def _proposal_radius(k: Tensor) -> Any:
    """The parameter of the wrapped Cauchy distribution of proposals; for small concentrations by its series."""
    tau = 1 + sqrt(1 + 4 * k**2)
    rho = (tau - sqrt(2 * tau)) / (2 * k)
    return where(k > 1e-4, (1 + rho**2) / (2 * rho), 1 / k + k)
