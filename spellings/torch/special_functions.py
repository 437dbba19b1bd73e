"""Special functions under PyTorch's names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import special
from ..errors import ValueArgumentError
from ..operators.elementwise.arithmetic import abs
from ..operators.elementwise.comparison import gt
from ..operators.elementwise.selection import where

if TYPE_CHECKING:
    from ..registry.types import Tensor


def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of order 0: :func:`tandem.special.i0`."""
    return special.i0(input)


def igamma(input: Tensor, other: Tensor) -> Tensor:
    """The regularized lower incomplete gamma function: :func:`tandem.special.gammainc`."""
    return special.gammainc(input, other)


def igammac(input: Tensor, other: Tensor) -> Tensor:
    """The regularized upper incomplete gamma function: :func:`tandem.special.gammaincc`."""
    return special.gammaincc(input, other)


def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of :func:`tandem.special.digamma`."""
    return special.polygamma(n, input)


def polygamma_of(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of :func:`tandem.special.digamma`."""
    return special.polygamma(n, input)


def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension ``p``.

    Raises:
        ValueArgumentError: ``p`` is not positive.

    >>> import tandem.torch as torch
    >>> round(torch.mvlgamma(torch.tensor(2.0), 2).item(), 4)
    0.4516
    """
    if p < 1:
        raise ValueArgumentError(f"mvlgamma: p must be positive, not {p}")
    result = special.gammaln(input) + p * (p - 1) / 4 * math.log(math.pi)
    for step in range(1, p):
        result = result + special.gammaln(input - step / 2)
    return result


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The elements whose magnitude is greater than ``lambd``; 0 in place of the others.

    >>> import tandem.torch as torch
    >>> torch.tensor([-1.0, 0.2]).hardshrink().tolist()
    [-1.0, 0.0]
    """
    return where(gt(abs(input), lambd), input, 0)
