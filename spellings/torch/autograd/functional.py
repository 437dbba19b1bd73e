"""``tandem.torch.autograd.functional``: derivatives of a function at a point, with PyTorch's arguments.

A point is a tensor, or a tuple of tensors, the arguments of the function; results have the same structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...operators.creation.full import ones_like
from ...transforms import forward, jacobians, reverse

if TYPE_CHECKING:
    from ...registry.types import Function, Tensor


def _arguments(point: Any) -> tuple[tuple[Any, ...], Any]:  # noqa: ANN401
    """The arguments of the function, and the ``argnums`` of a transform."""
    return (tuple(point), tuple(range(len(point)))) if isinstance(point, (tuple, list)) else ((point,), 0)


def jacobian(func: Function, inputs: Tensor | Sequence[Tensor]) -> Any:  # noqa: ANN401
    """The Jacobian of each result by each input.

    >>> import tandem.torch as torch
    >>> torch.autograd.functional.jacobian(lambda x: x**2, torch.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    args, argnums = _arguments(inputs)
    return jacobians.jacrev(func, argnums)(*args)


def hessian(func: Function, inputs: Tensor | Sequence[Tensor]) -> Any:  # noqa: ANN401
    """The second derivatives of a function that returns one number."""
    args, argnums = _arguments(inputs)
    return jacobians.hessian(func, argnums)(*args)


def vjp(func: Function, inputs: Tensor | Sequence[Tensor], v: Any = None) -> tuple[Any, Any]:  # noqa: ANN401
    """The result, and the product of a vector and the Jacobian; None: 1, for a result of one element."""
    args, _ = _arguments(inputs)
    result, pull_back = reverse.vjp(func, *args)
    products = pull_back(ones_like(result) if v is None else v)
    return result, products if isinstance(inputs, (tuple, list)) else products[0]


def jvp(func: Function, inputs: Tensor | Sequence[Tensor], v: Any = None) -> tuple[Any, Any]:  # noqa: ANN401
    """The result, and the product of the Jacobian and a vector; None: 1, for an input of one element."""
    args, _ = _arguments(inputs)
    tangents = tuple(map(ones_like, args)) if v is None else _arguments(v)[0]
    result: tuple[Any, Any] = forward.jvp(func, args, tangents)
    return result


def hvp(func: Function, inputs: Tensor | Sequence[Tensor], v: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """The result of a function that returns one number, and the product of its Hessian and a vector."""
    args, argnums = _arguments(inputs)
    _, product = forward.jvp(reverse.grad(func, argnums), args, _arguments(v)[0])
    return func(*args), product


def vhp(func: Function, inputs: Tensor | Sequence[Tensor], v: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """As :func:`hvp`: the Hessian is symmetric."""
    return hvp(func, inputs, v)
