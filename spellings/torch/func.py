"""``tandem.torch.func``: the transforms of ``tandem`` with PyTorch's names of arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..nn.calls import functional_call as functional_call
from ..nn.calls import stack_module_state as stack_module_state
from ..spellings.forwarding import forward_to as _forward_to
from ..transforms.reverse import value_and_grad
from ..transforms.vmap import vmap as _vmap

if TYPE_CHECKING:
    from ..registry.types import Function, Pytree


def vmap(
    func: Function, in_dims: Pytree = 0, out_dims: Pytree = 0, *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """Vectorize a function, as :func:`tandem.vmap`; ``in_dims`` and ``out_dims`` are the axes of the examples.

    >>> import tandem.torch as torch
    >>> torch.vmap(lambda x: x.sum(), in_dims=1)(torch.ones(2, 3)).tolist()
    [2.0, 2.0, 2.0]
    """
    return _vmap(func, in_dims, out_dims, chunk_size=chunk_size)


def grad_and_value(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """Create a function that computes the gradient and the value of a function, in this order.

    >>> import tandem.torch as torch
    >>> torch.func.grad_and_value(lambda x: x * x)(torch.tensor(3.0))
    (tensor(6.), tensor(9.))
    """
    compute = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def both(*args: object, **kwargs: object) -> tuple[object, object]:
        value, gradient = compute(*args, **kwargs)
        return gradient, value

    return both


__getattr__, __dir__ = _forward_to(__name__, "")
