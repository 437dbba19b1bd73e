"""Random numbers from a global generator, as PyTorch draws them: manual_seed, rand, randn, bernoulli, ...

The numbers are those of ``td.random``, not PyTorch's. ``generator=`` takes a :class:`tandem.Generator`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..eager.compiled import compile_writes_when_hot
from ..eager.tensor.construct import asarray, move_to_device
from ..eager.tensor.generator import Generator, default_generator
from ..errors import DTypeError, ShapeError, ValueArgumentError
from ..operators.declare.shape_rules import broadcast_shapes, is_tensor, spec_of
from ..operators.elementwise.casting import astype
from ..operators.elementwise.exponential import log
from ..operators.shape.rearrange import moveaxis
from ..registry.dtypes import as_dtype, default_float, int64
from .creation import finish, to_shape

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Number, Tensor


# -- the generator -----------------------------------------------------------------------------------------------------
def manual_seed(seed: int) -> Generator:
    """Reset the global generator to a seed, and return it.

    >>> import tandem.torch as torch
    >>> generator = torch.manual_seed(0)
    >>> first = torch.rand(3)
    >>> generator = torch.manual_seed(0)
    >>> torch.equal(torch.rand(3), first)
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Reset the global generator to a random seed, and return the seed."""
    number = secrets.randbits(63)
    default_generator.manual_seed(number)
    return number


def initial_seed() -> int:
    """The seed that the global generator was last reset to."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the global generator."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore a state that :func:`get_rng_state` returned."""
    default_generator.set_state(new_state)


# -- new tensors -------------------------------------------------------------------------------------------------------
def _draw(
    sampler: str,
    shape: tuple[int, ...],
    generator: Generator | None,
    dtype: DTypeLike | None,
    device: str | None,
    requires_grad: bool,
    out: Tensor | None,
) -> Tensor:
    wanted = out.dtype if out is not None else default_float() if dtype is None else as_dtype(dtype)
    if not wanted.is_inexact:
        raise DTypeError(
            f"{sampler}: random numbers of this distribution are floats, not {wanted}; pass a float dtype"
        )
    drawn: Tensor = getattr(generator or default_generator, sampler)(shape, wanted)
    return finish(move_to_device(drawn, device), requires_grad, out)


@compile_writes_when_hot
def rand(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DTypeLike | None = None,
    layout: object = None,
    device: str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Uniform random numbers in [0, 1).

    >>> import tandem.torch as torch
    >>> torch.rand(2, 3).shape
    (2, 3)
    """
    return _draw("uniform", to_shape(size), generator, dtype, device, requires_grad, out)


@compile_writes_when_hot
def randn(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DTypeLike | None = None,
    layout: object = None,
    device: str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Random numbers of the standard normal distribution."""
    return _draw("normal", to_shape(size), generator, dtype, device, requires_grad, out)


@compile_writes_when_hot
def randint(
    low: int,
    high: int | Sequence[int] | None = None,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DTypeLike | None = None,
    layout: object = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Random integers from ``low`` to ``high - 1``; of one bound, from 0.

    >>> import tandem.torch as torch
    >>> bool((torch.randint(3, 5, (4,)) >= 3).all())
    True
    """
    if not isinstance(high, int):
        size = high if size is None else size
        low, high = 0, low
    wanted = out.dtype if out is not None else int64 if dtype is None else as_dtype(dtype)
    drawn = (generator or default_generator).integers(tuple(size or ()), low, high, dtype=int64)
    return finish(move_to_device(astype(drawn, wanted), device), requires_grad, out)


@compile_writes_when_hot
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DTypeLike | None = None,
    layout: object = None,
    device: str | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The integers from 0 to ``n - 1`` in random order.

    >>> import tandem.torch as torch
    >>> torch.sort(torch.randperm(4)).values.tolist()
    [0, 1, 2, 3]
    """
    wanted = out.dtype if out is not None else int64 if dtype is None else as_dtype(dtype)
    drawn = (generator or default_generator).permutation(n)
    return finish(move_to_device(astype(drawn, wanted), device), requires_grad, out)


@compile_writes_when_hot
def rand_like(
    input: Tensor, *, dtype: DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Uniform random numbers in [0, 1), in the shape and dtype of another tensor."""
    spec = spec_of(input)
    return rand(
        spec.shape, dtype=dtype or spec.dtype, device=device or spec.device, requires_grad=requires_grad
    )


@compile_writes_when_hot
def randn_like(
    input: Tensor, *, dtype: DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Random numbers of the standard normal distribution, in the shape and dtype of another tensor."""
    spec = spec_of(input)
    return randn(
        spec.shape, dtype=dtype or spec.dtype, device=device or spec.device, requires_grad=requires_grad
    )


@compile_writes_when_hot
def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Random integers from ``low`` to ``high - 1``, or below ``low``, in the shape and dtype of another tensor."""
    spec = spec_of(input)
    first, last = (0, low) if high is None else (low, high)
    return randint(
        first,
        last,
        spec.shape,
        dtype=dtype or spec.dtype,
        device=device or spec.device,
        requires_grad=requires_grad,
    )


# -- with parameters ---------------------------------------------------------------------------------------------------
@compile_writes_when_hot
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Ones with the probabilities of the elements, or ``p``, and zeros, in the dtype of the tensor.

    >>> import tandem.torch as torch
    >>> torch.bernoulli(torch.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    spec = spec_of(input)
    drawn = (generator or default_generator).bernoulli(input if p is None else p, spec.shape)
    return finish(move_to_device(astype(drawn, spec.dtype), spec.device), False, out)


@compile_writes_when_hot
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices that are drawn with the weights of a vector, or of the rows of a matrix.

    Raises:
        ShapeError: neither a vector nor a matrix.
        ValueArgumentError: more numbers than elements are wanted, without replacement.

    >>> import tandem.torch as torch
    >>> torch.multinomial(torch.tensor([0.0, 3.0]), 1).tolist()
    [1]
    """
    spec = spec_of(input)
    if len(spec.shape) not in (1, 2):
        raise ShapeError(f"multinomial: the weights are a vector or a matrix, not of shape {spec.shape}")
    if not replacement and num_samples > spec.shape[-1]:
        raise ValueArgumentError(
            f"multinomial: {num_samples} of {spec.shape[-1]} indices cannot be drawn without replacement"
        )
    drawn = (generator or default_generator).categorical(
        log(input), -1, (num_samples, *spec.shape[:-1]), replacement
    )
    return finish(moveaxis(drawn, 0, -1), False, out)


@compile_writes_when_hot
def normal(
    mean: Tensor | Number,
    std: Tensor | Number = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Random numbers of normal distributions with given means and standard deviations.

    >>> import tandem.torch as torch
    >>> torch.normal(torch.tensor([1.0, 2.0]), 0.0).tolist()
    [1.0, 2.0]
    """
    tensors = [spec_of(x) for x in (mean, std) if is_tensor(x)]
    shape = tuple(size) if size is not None else broadcast_shapes("normal", *(spec.shape for spec in tensors))
    wanted = dtype or (tensors[0].dtype if tensors else default_float())
    drawn = (generator or default_generator).normal(shape, dtype=as_dtype(wanted))
    target = device or (tensors[0].device if tensors else None)
    return finish(mean + std * move_to_device(drawn, target), requires_grad, out)


@compile_writes_when_hot
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Random numbers of Poisson distributions with the elements as rates, in the dtype of the tensor.

    >>> import tandem.torch as torch
    >>> torch.poisson(torch.zeros(2)).tolist()
    [0.0, 0.0]
    """
    spec = spec_of(input)
    drawn = (generator or default_generator).poisson(asarray(input), spec.shape)
    return move_to_device(astype(drawn, spec.dtype), spec.device)
