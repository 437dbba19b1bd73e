"""PyTorch's global settings whose only value in tandem satisfies what a program asks for."""

from __future__ import annotations

from ..errors import ArgumentError
from ..registry.values import Device

_PRECISIONS = ("highest", "high", "medium")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: each function has one algorithm, which computes the same result in each call.

    Args:
        mode, warn_only: accepted for compatibility with PyTorch.

    >>> import tandem.torch as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    """


def are_deterministic_algorithms_enabled() -> bool:
    """Whether all algorithms are deterministic: always true."""
    return True


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether other algorithms only warn: always false."""
    return False


def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: products of float32 matrices are computed in float32, which is precise enough for each value.

    Args:
        precision: ``"highest"``, ``"high"`` or ``"medium"``: the least precision.

    Raises:
        ArgumentError: another value.
    """
    if precision not in _PRECISIONS:
        raise ArgumentError(
            f"set_float32_matmul_precision: precision is one of {', '.join(_PRECISIONS)}, not {precision!r}"
        )


def get_float32_matmul_precision() -> str:
    """The precision of products of float32 matrices: always ``"highest"``.

    >>> import tandem.torch as torch
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    return "highest"


def set_default_device(device: str | Device | None) -> None:
    """Accept the CPU, which is always the default device.

    Args:
        device: ``"cpu"``, or None for the same.

    Raises:
        ArgumentError: another device.
    """
    if device is not None and Device(device) != get_default_device():
        raise ArgumentError(
            f"set_default_device: the default device is the CPU; pass device={str(device)!r} to functions"
        )


def get_default_device() -> Device:
    """The CPU.

    >>> import tandem.torch as torch
    >>> torch.get_default_device().type
    'cpu'
    """
    return Device("cpu")
