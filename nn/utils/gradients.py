"""The norm of gradients, and clipping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...eager.autograd.grad_modes import no_grad
from ...errors import ValueArgumentError
from ...operators.elementwise.arithmetic import abs
from ...operators.elementwise.comparison import isfinite
from ...operators.elementwise.exponential import sqrt
from ...operators.elementwise.selection import clip
from ...operators.reductions.folds import max, sum
from ...operators.shape.joining import stack
from ...registry.values import TensorBase

if TYPE_CHECKING:
    from ...registry.types import Tensor


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, TensorBase) else parameters
    return [parameter.grad for parameter in given if parameter.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor | float:
    """The norm of all elements of several tensors.

    Args:
        tensors: the tensors.
        norm_type: the order of the norm, ``inf`` for the largest absolute value.
        error_if_nonfinite: whether a NaN or infinite norm is an error.
        foreach: accepted for programs of PyTorch.

    Raises:
        ValueArgumentError: the norm is not finite, and ``error_if_nonfinite``.
    """
    given = [tensors] if isinstance(tensors, TensorBase) else list(tensors)
    if not given:
        return 0.0
    with no_grad():
        total = _norm(given, float(norm_type))
    if error_if_nonfinite and not isfinite(total):
        raise ValueArgumentError(f"the norm of order {norm_type} of the tensors is {total.item()}")
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor | float,
    foreach: bool | None = None,
) -> None:
    """Scale the gradients in place by ``max_norm / total_norm``, if that is below 1."""
    with no_grad():
        factor = clip(max_norm / (total_norm + 1e-6), None, 1.0)
        for gradient in _gradients(parameters):
            gradient.mul_(factor)


def _norm(tensors: list[Tensor], norm_type: float) -> Tensor:
    if norm_type == float("inf"):
        return max(stack([max(abs(tensor)) for tensor in tensors]))
    if norm_type == 2:
        return sqrt(sum(stack([sum(tensor * tensor) for tensor in tensors])))
    return sum(stack([sum(abs(tensor) ** norm_type) for tensor in tensors])) ** (1 / norm_type)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor | float:
    """Scale the gradients in place so that the norm of all of them together is at most ``max_norm``.

    Args:
        parameters: the parameters whose gradients are scaled.
        max_norm: the largest norm.
        norm_type, error_if_nonfinite, foreach: as for :func:`get_total_norm`.

    Returns:
        The norm before.

    >>> import tandem as td
    >>> x = td.asarray([3.0, 4.0], requires_grad=True)
    >>> (x * x.detach()).sum().backward()
    >>> td.nn.utils.clip_grad_norm_([x], 1.0).item(), [round(g, 3) for g in x.grad.tolist()]
    (5.0, [0.6, 0.8])
    """
    given = [parameters] if isinstance(parameters, TensorBase) else list(parameters)
    gradients = _gradients(given)
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    if gradients:
        clip_grads_with_norm_(given, max_norm, total)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clip the elements of the gradients in place to the interval from ``-clip_value`` to ``clip_value``."""
    with no_grad():
        for gradient in _gradients(parameters):
            gradient[...] = clip(gradient, -clip_value, clip_value)
