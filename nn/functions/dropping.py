"""Dropout of elements, of channels, and with the statistics of SELU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...eager.tensor.generator import default_generator
from ...errors import ValueArgumentError
from ...operators.elementwise.selection import where
from ...operators.nn import layers
from ...operators.random.uniform import bernoulli

if TYPE_CHECKING:
    from ...eager.tensor.generator import Generator
    from ...registry.types import Tensor


def _next_key(generator: Generator | None) -> Tensor:
    words: Tensor = (generator or default_generator).key().words
    return words


def dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Set a random share of the elements to zero and scale the others by ``1 / (1 - p)``; nothing when not training.

    Without training, or if ``p`` is 0, the result is ``input`` itself, as in PyTorch.

    Args:
        input: a tensor of real floating dtype.
        p: the probability that an element is dropped.
        training: whether to drop anything.
        inplace: whether to write the result into ``input``.
        generator: the generator to draw from; None: that of :func:`tandem.nn.manual_seed`.
    """
    if not training or not p:
        return input
    if not inplace:
        return layers.dropout(input, _next_key(generator), p)
    input[...] = layers.dropout(input.clone(), _next_key(generator), p)
    return input


def _draw_mask(name: str, input: Tensor, p: float, generator: Generator | None, leading: int) -> Tensor:
    """Whether each element of the first axes is kept, with all that it holds."""
    if not 0 <= p <= 1:
        raise ValueArgumentError(f"{name}: p must be between 0 and 1, not {p}")
    shape = (*input.shape[:leading], *(1,) * (input.ndim - leading))
    return bernoulli(_next_key(generator), 1 - p, shape)


def _make_channel_dropout(rank: int) -> Callable[..., Tensor]:
    name = f"dropout{rank}d"

    def drop(
        input: Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        if not training or not p:
            return input
        is_single = input.ndim == rank + 1 and rank != 2  # as PyTorch, which takes (N, C, L) for 2
        kept = _draw_mask(name, input, p, generator, 1 if is_single else 2)
        result = where(kept, input * (1 / (1 - p)), 0.0) if p < 1 else input * 0
        return input.copy_(result) if inplace else result

    drop.__name__ = drop.__qualname__ = name
    drop.__doc__ = (
        f"Drop whole channels of a batch of tensors with {rank} axes each: the axes 0 and 1, taken together."
    )
    return drop


dropout1d, dropout2d, dropout3d = map(_make_channel_dropout, (1, 2, 3))


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set a random share of the elements to the least value of SELU, and keep mean 0 and variance 1."""
    return _alpha_dropout("alpha_dropout", input, p, training, inplace, False)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """:func:`alpha_dropout` of whole channels, the axes 0 and 1 taken together."""
    return _alpha_dropout("feature_alpha_dropout", input, p, training, inplace, True)


def _alpha_dropout(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, channels: bool
) -> Tensor:
    if not training or not p:
        return input
    least = -1.7580993408473766  # of selu
    kept = _draw_mask(name, input, p, None, 2 if channels else input.ndim)
    if p == 1:
        result = input * 0
    else:
        scale = ((1 - p) * (1 + p * least * least)) ** -0.5
        result = where(kept, input, least) * scale - scale * least * p
    return input.copy_(result) if inplace else result
