"""``td.autograd``: reverse mode on tensors with ``requires_grad``, beside ``x.backward()``."""

from __future__ import annotations

from .backward import backward as backward
from .backward import gradients_of as grad
from .modes import enable_grad as enable_grad
from .modes import is_grad_enabled as is_grad_enabled
from .modes import no_grad as no_grad

__all__ = ["backward", "enable_grad", "grad", "is_grad_enabled", "no_grad"]
