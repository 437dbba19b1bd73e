"""Densities of the normal distribution, of numbers and of vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .... import lazy
from ....eager.tensor.construct import asarray
from ....operators.elementwise.exponential import exp, log
from .distributions import to_floats

if TYPE_CHECKING:
    from ....registry.types import Tensor, TensorLike

_linalg: Any = lazy.Module(".linalg")
_special: Any = lazy.Module(".special")


class norm:
    """The normal distribution."""

    @staticmethod
    def logpdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of the density."""
        x, loc, scale = to_floats(x, loc, scale)
        return -(((x - loc) / scale) ** 2) / 2 - log(scale) - math.log(2 * math.pi) / 2

    @staticmethod
    def pdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The density."""
        return exp(norm.logpdf(x, loc, scale))

    @staticmethod
    def cdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a smaller value."""
        result: Tensor = _special.ndtr((asarray(x) - loc) / scale)
        return result

    @staticmethod
    def sf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The probability of a larger value."""
        return norm.cdf(-(asarray(x) - loc) / scale)

    @staticmethod
    def logcdf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of :meth:`cdf`."""
        result: Tensor = _special.log_ndtr((asarray(x) - loc) / scale)
        return result

    @staticmethod
    def logsf(x: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The logarithm of :meth:`sf`."""
        result: Tensor = _special.log_ndtr(-(asarray(x) - loc) / scale)
        return result

    @staticmethod
    def isf(q: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The value of which :meth:`sf` is a probability."""
        result: Tensor = loc - _special.ndtri(asarray(q)) * scale
        return result

    @staticmethod
    def ppf(q: TensorLike, loc: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
        """The value of which :meth:`cdf` is a probability."""
        result: Tensor = _special.ndtri(asarray(q)) * scale + loc
        return result


class multivariate_normal:
    """The normal distribution of vectors."""

    @staticmethod
    def logpdf(x: Tensor, mean: TensorLike, cov: Tensor) -> Tensor:
        """The logarithm of the density of vectors along the last axis."""
        factor = _linalg.cholesky(cov)
        offset = (x - mean)[..., None]
        scaled = _linalg.solve_triangular(factor, offset, upper=False)[..., 0]
        size = cov.shape[-1]
        half_determinant = log(factor.diagonal(0, -2, -1)).sum(-1)
        result: Tensor = -(scaled**2).sum(-1) / 2 - half_determinant - size * math.log(2 * math.pi) / 2
        return result

    @staticmethod
    def pdf(x: Tensor, mean: TensorLike, cov: Tensor) -> Tensor:
        """The density of vectors along the last axis."""
        return exp(multivariate_normal.logpdf(x, mean, cov))
