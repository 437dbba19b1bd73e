"""``tandem.torch.autograd.function``: Function, its context, and ``once_differentiable``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...eager.autograd.context import Context as FunctionCtx
from ...eager.autograd.function import Function
from ...eager.autograd.grad_modes import no_grad

if TYPE_CHECKING:
    from ...registry.types import Function as _AnyFunction

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


def once_differentiable(fn: _AnyFunction) -> Callable[..., object]:
    """Decorate a ``backward`` whose calls are not recorded: its gradients have no derivative."""

    @functools.wraps(fn)
    def backward(*args: object) -> object:
        with no_grad():
            return fn(*args)

    return backward
