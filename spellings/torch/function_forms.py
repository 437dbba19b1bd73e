"""Functions of PyTorch that are methods in tandem, or whose arguments in ``nn.functional`` have another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..nn import functional as F
from ..registry.dtypes import default_float
from .creation import tensor

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Number, Tensor, TensorLike


# -- layers ------------------------------------------------------------------------------------------------------------
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Normalize channels by the moments of the batch, or by running ones: :func:`tandem.nn.functional.batch_norm`.

    Args:
        input: a float tensor of shape (N, C, ...).
        weight, bias: vectors of C factors and summands.
        running_mean, running_var: vectors of C moments, which ``training`` updates in place.
        training: whether the moments are those of the batch.
        momentum: the share of the batch in the running moments.
        eps: what is added to variances.
        cudnn_enabled: accepted for compatibility with PyTorch.

    >>> import tandem.torch as torch
    >>> x = torch.tensor([[1.0], [3.0]])
    >>> torch.batch_norm(x, None, None, None, None, True, 0.1, 0.0).tolist()
    [[-1.0], [1.0]]
    """
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Normalize the channels of each example: :func:`tandem.nn.functional.instance_norm`."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalize groups of channels: :func:`tandem.nn.functional.group_norm`.

    >>> import tandem.torch as torch
    >>> torch.group_norm(torch.tensor([[1.0, 3.0]]), 1, eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    return F.group_norm(input, num_groups, weight, bias, eps)


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a matrix at indices: :func:`tandem.nn.functional.embedding` with the matrix first.

    Args:
        weight: a matrix.
        indices: integers of any shape.
        padding_idx: the row that gets no gradient; -1: none.
        scale_grad_by_freq: whether the gradient of a row is divided by the number of its indices.
        sparse: accepted as in :func:`tandem.nn.functional.embedding`.

    >>> import tandem.torch as torch
    >>> torch.embedding(torch.eye(2), torch.tensor([1])).tolist()
    [[0.0, 1.0]]
    """
    return F.embedding(
        indices,
        weight,
        None if padding_idx == -1 else padding_idx,
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )


# -- methods -----------------------------------------------------------------------------------------------------------
def detach(input: Tensor) -> Tensor:
    """The tensor without its history, in the same memory: ``x.detach()``."""
    return input.detach()


def fill(input: Tensor, value: TensorLike) -> Tensor:
    """A tensor of the same shape and dtype, all of whose elements are a value.

    >>> import tandem.torch as torch
    >>> torch.fill(torch.zeros(2), 3).tolist()
    [3.0, 3.0]
    """
    return input.clone().fill_(value)


def scalar_tensor(
    s: Number, *, dtype: DTypeLike | None = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor without axes of a number; of the default dtype, even of an integer.

    >>> import tandem.torch as torch
    >>> torch.scalar_tensor(3)
    tensor(3.)
    """
    wanted = default_float() if dtype is None else dtype
    return tensor(s, dtype=wanted, device=device, requires_grad=requires_grad)
