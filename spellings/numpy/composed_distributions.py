"""Distributions of ``tandem.numpy.random`` that are computed from samples of other distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lazy
from ..control.api import while_loop
from ..errors import ShapeError, ValueArgumentError
from ..operators.creation.creation import arange, full
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.casting import astype
from ..operators.elementwise.comparison import ge, gt, le, logical_and, logical_not, logical_or, lt
from ..operators.elementwise.exponential import exp, expm1, log, log1p, sqrt
from ..operators.elementwise.rounding import floor
from ..operators.elementwise.selection import where
from ..operators.elementwise.trigonometry import acos, cos
from ..operators.random import namespace as samplers
from ..operators.reductions.extrema import amax
from ..operators.reductions.folds import any as any_of
from ..operators.reductions.folds import sum as sum_of
from ..operators.reductions.scans import cumsum
from ..operators.shape.joining import stack
from ..operators.shape.views import broadcast_to, reshape
from ..registry.dtypes import bool_, float64, int64
from .creation import asarray

if TYPE_CHECKING:
    from ..registry.types import Tensor, TensorLike

    Size = int | Sequence[int] | None

_special = lazy.Module(".special")
_NUMBERS = frozenset((int, float))


def to_shape(size: Size, *parameters: TensorLike) -> tuple[int, ...]:
    """The shape of a result: a size, or what the parameters broadcast to."""
    if type(size) is int:
        return (size,)
    if size is None:
        if {type(value) for value in parameters} <= _NUMBERS:
            return ()
        return np.broadcast_shapes(*(spec_of(asarray(value)).shape for value in parameters))
    return (int(size),) if isinstance(size, (int, np.integer)) else tuple(size)


def _to_floats(shape: tuple[int, ...], *parameters: TensorLike) -> list[Tensor]:
    """Parameters as float64 tensors of one shape."""
    return [broadcast_to(astype(asarray(value), float64), shape) for value in parameters]


def _reject(
    key: Any,  # noqa: ANN401
    shape: tuple[int, ...],
    propose: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
) -> Tensor:
    """Samples by rejection: draw again what was not accepted.

    Args:
        key: the key of the draws.
        shape: the shape of the samples, float64.
        propose: from two tensors of uniform numbers, candidates and whether each is accepted.
    """

    def step(carry: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        count, is_done, result = carry
        bits = samplers.uniform(samplers.fold_in(key, count), (2, *shape), float64)
        candidates, is_accepted = propose(bits[0], bits[1])
        chosen = logical_and(is_accepted, logical_not(is_done))
        return count + 1, logical_or(is_done, is_accepted), where(chosen, candidates, result)

    start = (full((), 0, dtype=int64), full(shape, False, dtype=bool_), full(shape, 0.0, dtype=float64))
    result: Tensor = while_loop(lambda carry: any_of(logical_not(carry[1])), step, start)[2]
    return result


class ComposedDistributions:
    """Methods of a generator that need its other samplers."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def standard_cauchy(self, size: Size = None) -> Tensor:
        """The Cauchy distribution of mode 0."""
        result: Tensor = self._draw("cauchy", to_shape(size), float64)
        return result

    def wald(self, mean: TensorLike, scale: TensorLike, size: Size = None) -> Tensor:
        """The Wald, or inverse Gaussian, distribution."""
        shape = to_shape(size, mean, scale)
        centre, width = _to_floats(shape, mean, scale)
        result: Tensor = self._draw("wald", centre / width, shape, float64)
        return result * width

    def power(self, a: TensorLike, size: Size = None) -> Tensor:
        """The distribution on the interval from 0 to 1 whose density is ``a * x**(a - 1)``."""
        shape = to_shape(size, a)
        (exponent,) = _to_floats(shape, a)
        result: Tensor = self.random(shape) ** (1.0 / exponent)
        return result

    def f(self, dfnum: TensorLike, dfden: TensorLike, size: Size = None) -> Tensor:
        """The F distribution."""
        return self.noncentral_f(dfnum, dfden, 0.0, size)

    def noncentral_chisquare(self, df: TensorLike, nonc: TensorLike, size: Size = None) -> Tensor:
        """The noncentral chi-square distribution."""
        shape = to_shape(size, df, nonc)
        freedom, shift = _to_floats(shape, df, nonc)
        result: Tensor = self.chisquare(freedom + 2.0 * self.poisson(shift / 2.0, shape), shape)
        return result

    def noncentral_f(
        self, dfnum: TensorLike, dfden: TensorLike, nonc: TensorLike, size: Size = None
    ) -> Tensor:
        """The noncentral F distribution."""
        shape = to_shape(size, dfnum, dfden, nonc)
        above, below, shift = _to_floats(shape, dfnum, dfden, nonc)
        divisor = self.chisquare(below, shape) / below
        result: Tensor = self.noncentral_chisquare(above, shift, shape) / above / divisor
        return result

    def vonmises(self, mu: TensorLike, kappa: TensorLike, size: Size = None) -> Tensor:
        """The von Mises distribution of angles between -pi and pi."""
        shape = to_shape(size, mu, kappa)
        centre, given = _to_floats(shape, mu, kappa)
        # Best and Fisher, "Efficient simulation of the von Mises distribution", 1979; uniform at kappa = 0
        spread = where(lt(given, 1e-6), 1e-6, given)
        root = 1.0 + sqrt(1.0 + 4.0 * spread * spread)
        share = (root - sqrt(2.0 * root)) / (2.0 * spread)
        limit = where(lt(spread, 1e-5), 1.0 / spread + spread, (1.0 + share * share) / (2.0 * share))

        def propose(one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
            z = cos(math.pi * one)
            cosine = (1.0 + limit * z) / (limit + z)
            rest, height = spread * (limit - cosine), 1.0 - two
            is_accepted = logical_or(ge(rest * (2.0 - rest), height), ge(log(rest / height) + 1.0, rest))
            return cosine, is_accepted

        angle = acos(
            where(gt(given, 1e-8), _reject(self.key(), shape, propose), cos(math.pi * self.random(shape)))
        )
        turned = where(lt(self.random(shape), 0.5), -angle, angle) + centre
        return turned - 2.0 * math.pi * floor((turned + math.pi) / (2.0 * math.pi))

    # -- counts --------------------------------------------------------------------------------------------------------
    def negative_binomial(self, n: TensorLike, p: TensorLike, size: Size = None) -> Tensor:
        """The negative binomial distribution: the failures before ``n`` successes of probability ``p``."""
        shape = to_shape(size, n, p)
        count, chance = _to_floats(shape, n, p)
        result: Tensor = self.poisson(self.standard_gamma(count, shape) * (1.0 - chance) / chance, shape)
        return result

    def zipf(self, a: TensorLike, size: Size = None) -> Tensor:
        """The Zipf distribution: counts k from 1 on, in proportion to ``k**-a``."""
        shape = to_shape(size, a)
        (exponent,) = _to_floats(shape, a)
        less = exponent - 1.0
        base = exp(less * math.log(2.0))

        def propose(one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
            # Devroye, "Non-uniform random variate generation", 1986, X.6
            candidates = floor(exp(-log1p(-one) / less))
            ratio = exp(less * log1p(1.0 / candidates))
            is_accepted = le(two * candidates * (ratio - 1.0) / (base - 1.0), ratio / base)
            return candidates, logical_and(is_accepted, lt(candidates, 2.0**63))

        return astype(_reject(self.key(), shape, propose), int64)

    def logseries(self, p: TensorLike, size: Size = None) -> Tensor:
        """The logarithmic series distribution: counts k from 1 on, in proportion to ``p**k / k``."""
        shape = to_shape(size, p)
        (chance,) = _to_floats(shape, p)
        # Kemp, "Efficient generation of logarithmically distributed pseudo-random variables", 1981
        height = 1.0 - self.random(shape)
        share = -expm1(log1p(-chance) * (1.0 - self.random(shape)))
        large = floor(1.0 + log(height) / log(share))
        near = where(ge(height, share), 1.0, 2.0)
        result = where(ge(height, chance), 1.0, where(le(height, share * share), large, near))
        return astype(result, int64)

    def multinomial(self, n: TensorLike, pvals: TensorLike, size: Size = None) -> Tensor:
        """The multinomial distribution: how often each outcome occurs in ``n`` trials; the last axis is of outcomes."""
        chances = astype(asarray(pvals), float64)
        if not spec_of(chances).shape:
            raise ShapeError("multinomial: pvals has an axis of outcomes")
        shape = to_shape(size, asarray(n), chances[..., 0])
        count = spec_of(chances).shape[-1]
        result: Tensor = self._draw("multinomial", asarray(n), chances, (*shape, count), float64)
        return astype(result, int64)

    def hypergeometric(
        self, ngood: TensorLike, nbad: TensorLike, nsample: TensorLike, size: Size = None
    ) -> Tensor:
        """The hypergeometric distribution: the good ones among ``nsample`` of ``ngood`` good and ``nbad`` bad ones.

        Memory is proportional to the largest result that is possible.
        """
        shape = to_shape(size, ngood, nbad, nsample)
        parameters = [asarray(value) for value in (ngood, nbad, nsample)]
        good, _, drawn = (value.numpy() for value in parameters)
        most = int(np.minimum(good, drawn).max(initial=0))
        return self._count_good([astype(value, float64) for value in parameters], shape, most)

    def _count_good(self, parameters: Sequence[Tensor], shape: tuple[int, ...], most: int) -> Tensor:
        """Samples of the hypergeometric distribution, by the sums of the probabilities of 0 to ``most``."""
        good, bad, drawn = (reshape(value, (*spec_of(value).shape, 1)) for value in parameters)
        counts = arange(most + 1, dtype=float64)
        parts = [counts, good - counts, drawn - counts, bad - drawn + counts]
        sizes: list[Tensor] = [_special.gammaln(where(lt(part, 0), 0.0, part) + 1.0) for part in parts]
        is_possible = logical_and(logical_and(ge(parts[1], 0), ge(parts[2], 0)), ge(parts[3], 0))
        logarithms = where(is_possible, -(sizes[0] + sizes[1] + sizes[2] + sizes[3]), -math.inf)
        sums = cumsum(exp(logarithms - amax(logarithms, -1, keepdims=True)), -1)
        bits = reshape(self.random(shape), (*shape, 1))
        return sum_of(astype(le(sums / sums[..., most:], bits), int64), -1)

    def multivariate_hypergeometric(
        self, colors: Sequence[int] | Tensor, nsample: int, size: Size = None, method: str = "marginals"
    ) -> Tensor:
        """The numbers of items of each color among ``nsample`` that are drawn from ``colors[i]`` items of color i.

        Args:
            colors: the numbers of items: integers that are known.
            nsample: the number of items that are drawn.
            size: the shape of the result without the last axis, of colors.
            method: accepted for compatibility with NumPy.
        """
        numbers = [int(number) for number in asarray(colors).tolist()]
        shape, rest = to_shape(size), sum(numbers)
        if nsample > rest:
            raise ValueArgumentError(
                f"multivariate_hypergeometric: {nsample} items cannot be drawn from {rest}"
            )
        left, results = full(shape, float(nsample), dtype=float64), []
        for number in numbers[:-1]:
            rest -= number
            good, bad = _to_floats(shape, number, rest)
            results.append(self._count_good([good, bad, left], shape, min(number, nsample)))
            left = left - results[-1]
        return stack([*results, astype(left, int64)], -1)
