"""Where the places of a sparse tensor lie: int64 arrays beside its values, on the host or on a device.

What is done with them goes through a module with NumPy's functions; a backend with memory of its own brings one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..errors import DeviceError
from ..registry.keys import DispatchKey
from .tensor import Tensor, wrap

Indices = Any  # an int64 array that nobody writes


class Places(Protocol):
    """Arrays of positions on one device."""

    @property
    def xp(self) -> Any:
        """The module of their functions, a part of NumPy's."""

    @property
    def keys(self) -> int:
        """The key set of a sparse tensor that lies there."""

    def on(self) -> Any:
        """A context manager: what is computed with arrays, is computed there."""

    def own(self, array: Any) -> Indices:
        """Positions, an array of the host or from there, as an array of their own."""

    def array(self, name: str, tensor: Any) -> Any:
        """The elements of a dense integer tensor; ``name`` is what needs them."""

    def tensor(self, array: Any) -> Tensor:
        """Positions as a tensor, which shares their memory."""

    def host(self, array: Any) -> Any:
        """Positions as an array of the host."""

    def expand(self, counts: Any) -> Any:
        """The number ``i``, ``counts[i]`` times, for each ``i``."""


class HostPlaces:
    """In the host's memory."""

    xp: Any = np
    keys = 1 << DispatchKey.SparseCPU

    def on(self) -> Any:
        return contextlib.nullcontext()

    def own(self, array: Any) -> Indices:
        """A copy that cannot be written, so that native code can rely on it."""
        found = np.array(array, np.int64)
        found.flags.writeable = False
        return found

    def array(self, name: str, tensor: Any) -> Any:
        if tensor.device.partition(":")[0] in makers:
            raise DeviceError(
                f"{name} lie on {tensor.device}, and the values on the host; move one of them with .to(...)"
            )
        return tensor._host(name)

    def tensor(self, array: Any) -> Tensor:
        return wrap(array)

    def host(self, array: Any) -> Any:
        return array

    def expand(self, counts: Any) -> Any:
        return np.repeat(np.arange(len(counts)), counts)


HOST: Places = HostPlaces()
# Kind of device -> what makes the Places of a device by its name.
makers: dict[str, Callable[[str], Places]] = {}


def places_at(device: str) -> Places:
    """The Places of the tensors on a device."""
    make = makers.get(device.partition(":")[0])
    return HOST if make is None else make(device)


def linear_index(coordinates: tuple[Indices, ...], shape: tuple[int, ...]) -> Indices:
    """Places as numbers in row-major order."""
    found: Any = 0
    for positions, size in zip(coordinates, shape):
        found = found * size + positions
    return found
