"""``td.autograd``: reverse mode on tensors with ``requires_grad``, as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import lazy
from ...registry.dispatch.keys import DispatchKeySet
from ...registry.operator import Operator
from ..layers.levels import LevelTensor, highest_level, record_at
from ..tensor.results import flat
from ..tensor.weak_scalars import replace_weak_scalars
from .backward import backward as backward
from .backward import gradients_of as grad
from .grad_modes import enable_grad as enable_grad
from .grad_modes import is_grad_enabled as is_grad_enabled
from .grad_modes import no_grad as no_grad
from .kernel import autograd

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs
    from .function import Function as Function
else:

    def __getattr__(name: str) -> object:
        """Load ``Function`` at first use."""
        if name != "Function":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        result = globals()[name] = lazy.module(f"{__package__}.function").Function
        return result

    def __dir__() -> list[str]:
        return sorted({*globals(), "Function"})


__all__ = ["Function", "backward", "enable_grad", "fallback", "grad", "is_grad_enabled", "no_grad"]


def fallback(op: Operator, keyset: DispatchKeySet | int, args: Args, kwargs: Kwargs) -> object:
    """Run and record a call by the operator's declaration, as the Autograd keys do for operators without a kernel.

    A kernel registered with ``lib.impl("op", kernel, "Autograd", boxed=True)`` may call it.

    Args:
        op: the operator.
        keyset: the key set of the call.
        args, kwargs: its bound arguments.

    Returns:
        The result, with a graph node.

    >>> import tandem as td
    >>> def announce(op, keyset, args, kwargs):
    ...     print("recorded:", op.schema.name)
    ...     return td.autograd.fallback(op, keyset, args, kwargs)
    >>> with td.Library("td", "IMPL") as lib:
    ...     _ = lib.impl("exp", announce, "Autograd", boxed=True)
    ...     td.grad(lambda x: td.exp(x))(0.0)
    recorded: exp
    tensor(1.)
    """
    if any(isinstance(item, LevelTensor) for item in flat((args, tuple(kwargs.values())))):
        return record_at(op, highest_level(op, args, kwargs), args, kwargs)
    bits = keyset.bits if isinstance(keyset, DispatchKeySet) else keyset
    return autograd(op, bits, *replace_weak_scalars(op, args, kwargs))
