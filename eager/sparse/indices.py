"""Index arrays of sparse tensors: int64 arrays on the device of the values.

Computations use a module with NumPy's functions; a backend with its own memory provides one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ...errors import DeviceError
from ...registry.dispatch.keys import DispatchKey
from ..tensor.tensor import Tensor, wrap

Indices = Any  # an int64 array that nobody writes


class IndexSpace(Protocol):
    """Operations on the index arrays of one device."""

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


class HostIndexSpace:
    """In the host's memory."""

    xp: Any = np
    keys = 1 << DispatchKey.SparseCPU

    def on(self) -> Any:
        return contextlib.nullcontext()

    def own(self, array: Any) -> Indices:
        """A copy that cannot be written, so that native code can rely on it."""
        result = np.array(array, np.int64)
        result.flags.writeable = False
        return result

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


HOST: IndexSpace = HostIndexSpace()
# Kind of device -> what makes the Places of a device by its name.
makers: dict[str, Callable[[str], IndexSpace]] = {}


def index_space_of(device: str) -> IndexSpace:
    """The Places of the tensors on a device."""
    make = makers.get(device.partition(":")[0])
    return HOST if make is None else make(device)


def linear_index(coordinates: tuple[Indices, ...], shape: tuple[int, ...]) -> Indices:
    """Places as numbers in row-major order."""
    result: Any = 0
    for positions, size in zip(coordinates, shape):
        result = result * size + positions
    return result
