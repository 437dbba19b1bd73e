"""``td.nn.utils``: the norm of gradients, and parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..eager.autograd.grad_modes import no_grad
from ..errors import ShapeError
from ..operators.elementwise.arithmetic import abs
from ..operators.elementwise.exponential import sqrt
from ..operators.elementwise.selection import clip
from ..operators.reductions.folds import max, sum
from ..operators.shape.joining import concat, stack
from ..registry.values import TensorBase

if TYPE_CHECKING:
    from ..registry.types import Tensor


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, TensorBase) else parameters
    return [parameter.grad for parameter in given if parameter.grad is not None]


def _norm(tensors: list[Tensor], norm_type: float) -> Tensor:
    if norm_type == float("inf"):
        return max(stack([max(abs(tensor)) for tensor in tensors]))
    if norm_type == 2:
        return sqrt(sum(stack([sum(tensor * tensor) for tensor in tensors])))
    return sum(stack([sum(abs(tensor) ** norm_type) for tensor in tensors])) ** (1 / norm_type)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0
) -> Tensor | float:
    """Scale the gradients in place so that the norm of all of them together is at most ``max_norm``.

    Returns:
        The norm before.

    >>> import tandem as td
    >>> x = td.asarray([3.0, 4.0], requires_grad=True)
    >>> (x * x.detach()).sum().backward()
    >>> td.nn.utils.clip_grad_norm_([x], 1.0).item(), [round(g, 3) for g in x.grad.tolist()]
    (5.0, [0.6, 0.8])
    """
    gradients = _gradients(parameters)
    if not gradients:
        return 0.0
    with no_grad():
        total = _norm(gradients, float(norm_type))
        factor = clip(max_norm / (total + 1e-6), None, 1.0)
        for gradient in gradients:
            gradient.mul_(factor)
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clip the elements of the gradients in place to the interval from ``-clip_value`` to ``clip_value``."""
    with no_grad():
        for gradient in _gradients(parameters):
            gradient[...] = clip(gradient, -clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters as one vector."""
    return concat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of a vector into the parameters.

    Raises:
        ShapeError: the vector has another number of elements; nothing is written then.
    """
    targets = list(parameters)
    count = 0
    for target in targets:
        count += target.size
    if vec.shape != (count,):
        raise ShapeError(f"vector_to_parameters: the parameters have {count} elements, not {vec.shape}")
    start = 0
    with no_grad():
        for target in targets:
            target[...] = vec[start : start + target.size].reshape(target.shape)
            start += target.size
