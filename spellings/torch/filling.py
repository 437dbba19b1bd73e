"""Methods that fill a tensor with random numbers of a generator: normal_, uniform_, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.compiled import compile_writes_when_hot
from ..eager.tensor.construct import move_to_device
from ..eager.tensor.generator import default_generator
from ..errors import DTypeError, ValueArgumentError
from ..operators.elementwise.casting import astype
from ..operators.elementwise.exponential import exp
from ..registry.dtypes import bool_, int64

if TYPE_CHECKING:
    from ..eager.tensor.generator import Generator
    from ..registry.types import Tensor

# The integers that a float dtype holds exactly are those up to 2 ** digits.
_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def _draw(self: Tensor, name: str, generator: Generator | None) -> Tensor:
    """Random floats of the tensor's shape, and of its dtype."""
    if not self.dtype.is_inexact or self.dtype.kind == "c":
        raise DTypeError(f"{name}: the numbers are real floats, and the tensor is {self.dtype}")
    drawn: Tensor = getattr(generator or default_generator, name.rstrip("_"))(self.shape, self.dtype)
    return move_to_device(drawn, self.device)


@compile_writes_when_hot
def uniform_(
    self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with uniform random numbers between two bounds.

    >>> import tandem.torch as torch
    >>> bool((torch.zeros(3).uniform_(2, 3) >= 2).all())
    True
    """
    drawn = _draw(self, "uniform_", generator)
    return self.copy_(drawn if (from_, to) == (0, 1) else drawn * (to - from_) + from_)


@compile_writes_when_hot
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with random numbers of a normal distribution.

    >>> import tandem.torch as torch
    >>> torch.zeros(2).normal_(3.0, 0.0).tolist()
    [3.0, 3.0]
    """
    drawn = _draw(self, "normal_", generator)
    return self.copy_(drawn if (mean, std) == (0, 1) else drawn * std + mean)


@compile_writes_when_hot
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with exponentials of random numbers of a normal distribution."""
    return self.copy_(exp(_draw(self, "normal", generator) * std + mean))


@compile_writes_when_hot
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with random numbers of a Cauchy distribution."""
    return self.copy_(_draw(self, "cauchy_", generator) * sigma + median)


@compile_writes_when_hot
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with random numbers of an exponential distribution of rate ``lambd``."""
    return self.copy_(_draw(self, "exponential_", generator) / lambd)


@compile_writes_when_hot
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with the numbers of trials up to the first success, whose probability is ``p``."""
    drawn = (generator or default_generator).geometric(p, self.shape)
    return self.copy_(move_to_device(astype(drawn, self.dtype), self.device))


@compile_writes_when_hot
def bernoulli_(self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with ones, with probabilities ``p``, and zeros.

    >>> import tandem.torch as torch
    >>> torch.zeros(2).bernoulli_(1.0).tolist()
    [1.0, 1.0]
    """
    drawn = (generator or default_generator).bernoulli(p, self.shape)
    return self.copy_(move_to_device(astype(drawn, self.dtype), self.device))


@compile_writes_when_hot
def random_(
    self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with random integers: below one bound, from one to below the other, or all that the dtype holds.

    Raises:
        ValueArgumentError: the range has no integers.

    >>> import tandem.torch as torch
    >>> bool((torch.zeros(3).random_(5, 7) >= 5).all())
    True
    """
    low, high = (from_ or 0, to) if to is not None else (0, from_)
    if high is None:
        high = _largest(self) + 1
    if high <= low:
        raise ValueArgumentError(f"random_: there are no integers from {low} to below {high}")
    drawn = (generator or default_generator).integers(self.shape, low, high, dtype=int64)
    return self.copy_(move_to_device(astype(drawn, self.dtype), self.device))


def _largest(x: Tensor) -> int:
    if x.dtype.is_inexact:
        return int(2 ** _DIGITS[x.dtype.name])
    if x.dtype is bool_:
        return 1
    return int(min(2 ** (8 * x.itemsize - (x.dtype.kind == "i")), 2**63 - 1)) - 1
