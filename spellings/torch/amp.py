"""``tandem.torch.amp``: autocast and GradScaler."""

from __future__ import annotations

from ..eager.layers.autocast import autocast as autocast
from ..eager.layers.autocast import is_autocast_enabled
from ..optim.grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "is_autocast_available", "is_autocast_enabled"]


def is_autocast_available(device_type: str) -> bool:
    """Whether :class:`autocast` takes a device type.

    >>> import tandem.torch as torch
    >>> torch.amp.is_autocast_available("cpu"), torch.amp.is_autocast_available("mps")
    (True, False)
    """
    return device_type in ("cpu", "cuda", "meta")
