"""Devices, and copies between them, with JAX's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..eager.tensor.transfer import synchronize
from ..pytree import tree_map
from ..registry.values import Device

if TYPE_CHECKING:
    from ..registry.types import Pytree


def device_put(x: Pytree, device: str | None = None) -> Pytree:
    """The leaves of a pytree as tensors on a device; None: where they are."""
    return tree_map(lambda leaf: asarray(leaf, device=device), x)


def device_get(x: Pytree) -> Pytree:
    """The tensors of a pytree as NumPy arrays; other leaves as they are."""
    return tree_map(lambda leaf: leaf.numpy() if isinstance(leaf, Tensor) else leaf, x)


def block_until_ready(x: Pytree) -> Pytree:
    """Wait until the work on all devices is done, and return ``x``."""
    synchronize()
    return x


def devices(backend: str | None = None) -> list[Device]:
    """The devices: the CPU."""
    return [Device("cpu")]


def default_backend() -> str:
    """The platform of new tensors."""
    return "cpu"


def device_count(backend: str | None = None) -> int:
    """The number of devices."""
    return len(devices(backend))
