"""``td.autograd``: reverse mode on tensors with ``requires_grad``, beside ``x.backward()``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import lazy
from ..registry.operator import Operator
from .backward import backward as backward
from .backward import gradients_of as grad
from .levels import LevelTensor, highest_level, record_at
from .modes import enable_grad as enable_grad
from .modes import is_grad_enabled as is_grad_enabled
from .modes import no_grad as no_grad
from .record import autograd
from .results import flat

if TYPE_CHECKING:
    from .function import Function as Function
else:

    def __getattr__(name: str) -> Any:
        """``Function``, loaded when somebody first asks for it."""
        if name != "Function":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = lazy.module(f"{__package__}.function").Function
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), "Function"})


__all__ = ["Function", "backward", "enable_grad", "fallback", "grad", "is_grad_enabled", "no_grad"]


def fallback(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a call by the operator's declaration: what the Autograd keys do for operators without a kernel there.

    A kernel that stands in for it, ``lib.impl("op", kernel, "Autograd", boxed=True)``, may hand the call on to it.

    Args:
        op: the operator.
        keyset: the key set of the call.
        args, kwargs: its bound arguments.

    Returns:
        The result, with a history.

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
    return autograd(op, keyset, args, kwargs)
