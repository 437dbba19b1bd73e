"""Index arrays of sparse tensors: int64 arrays on the device of the values.

Computations use a module with NumPy's functions; a backend with its own memory provides one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...errors import DeviceError
from ...registry.dispatch.keys import DispatchKey
from ..tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule

# An int64 array that nobody writes: NumPy's, or one of the device with the same methods.
Indices = np.ndarray[Any, np.dtype[np.int64]]


class IndexSpace(Protocol):
    """Operations on the index arrays of one device."""

    @property
    def xp(self) -> ArrayModule:
        """The module with NumPy's functions for arrays of the device."""

    @property
    def keys(self) -> int:
        """The key set of a sparse tensor on the device."""

    def on(self) -> AbstractContextManager[object]:
        """Context manager: arrays are computed on the device."""

    def own(self, array: Array) -> Indices:
        """Copy an index array, from the host or the device, to a new array on the device."""

    def array(self, name: str, tensor: Tensor) -> Array:
        """The elements of a dense integer tensor; ``name`` is what needs them."""

    def tensor(self, array: Array) -> Tensor:
        """Wrap an index array as a tensor on the same memory."""

    def host(self, array: Array) -> Array:
        """Copy an index array to the host."""

    def expand(self, counts: Array) -> Array:
        """Repeat each number ``i`` ``counts[i]`` times."""


class HostIndexSpace:
    """The index space of the host."""

    xp: Any = np
    keys = 1 << DispatchKey.SparseCPU

    def on(self) -> AbstractContextManager[object]:
        return contextlib.nullcontext()

    def own(self, array: Array) -> Indices:
        """A copy that cannot be written, so that native code can rely on it."""
        result = np.array(array, np.int64)
        result.flags.writeable = False
        return result

    def array(self, name: str, tensor: Tensor) -> Array:
        if tensor.device.partition(":")[0] in makers:
            raise DeviceError(
                f"{name} are on {tensor.device}, and the values on the host; move one of them with .to(...)"
            )
        return tensor._host(name)

    def tensor(self, array: Array) -> Tensor:
        return wrap(array)

    def host(self, array: Array) -> Array:
        return array

    def expand(self, counts: Array) -> Array:
        return np.repeat(np.arange(len(counts)), counts)


HOST: IndexSpace = HostIndexSpace()
# By kind of device: a function from the name of a device to its index space.
makers: dict[str, Callable[[str], IndexSpace]] = {}


def index_space_of(device: str) -> IndexSpace:
    """The index space of a device, given by its name."""
    make = makers.get(device.partition(":")[0])
    return HOST if make is None else make(device)


def linear_index(coordinates: tuple[Indices, ...], shape: tuple[int, ...]) -> Indices:
    """Convert coordinates to linear (row-major) indices."""
    total: Any = 0
    for positions, size in zip(coordinates, shape):
        total = total * size + positions
    result: Indices = total
    return result
