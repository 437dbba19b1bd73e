"""Operators that an array library serves: cupy, on the memory of tandem's arrays, without a copy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

from ... import lazy
from ...errors import UnsupportedError
from ...registry.dtypes import as_dtype
from . import toolkit as tools
from .arrays import DeviceArray, layout_of
from .borrowed import Borrowed
from .devices import device_at
from .streams import stream_at, stream_of_cupy


class ArrayLibrary(Protocol):
    """What serves library operators.

    Attributes:
        xp: the module, with NumPy's functions.
    """

    xp: Any

    def view(self, array: DeviceArray) -> Any:
        """The library's array on the memory of one of tandem's."""

    def adopt(self, found: Any, index: int) -> DeviceArray:
        """An array of tandem's with the elements of one of the library's, on a device."""

    def on(self, index: int) -> Any:
        """A context manager: calls work on a device, in its current stream."""


class _Module:
    """cupy, with the names of NumPy that kernels use and it has not."""

    def __init__(self, cupy: Any):
        self._cupy = cupy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cupy, name)

    def errstate(self, **options: Any) -> Any:
        """Nothing to set: a device never warns."""
        return contextlib.nullcontext()

    @property
    def special(self) -> Any:
        """SciPy's special functions."""
        return lazy.module("cupyx.scipy.special")

    @property
    def linalg(self) -> Any:
        """Linear algebra that notices where cuSOLVER has failed."""
        return _Linalg(self._cupy.linalg)


class _Linalg:
    """The functions of ``cupy.linalg``; like NumPy's they raise where there is no result."""

    def __init__(self, functions: Any):
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._functions, name)

        def call(*args: Any) -> Any:
            try:
                with lazy.module("cupyx").errstate(linalg="raise"):
                    return function(*args)
            except RuntimeError as fault:
                if "not available" not in str(fault):
                    raise
                raise UnsupportedError(
                    f"{name}: the cuSOLVER that is installed does not have it ({fault}); a newer CUDA toolkit does "
                    f"(the CUDA 12.6 of 2024 for eig), or compute it on the CPU: x.to('cpu')"
                ) from None

        return call


class CupyLibrary:
    """cupy."""

    def __init__(self) -> None:
        self.cupy: Any = lazy.cupy()
        self.xp = _Module(self.cupy)

    def view(self, array: DeviceArray) -> Any:
        """A cupy array on the same memory; it keeps that memory as long as it lives."""
        layout, cuda = array.layout, self.cupy.cuda
        low, high = layout.extent()
        step = layout.dtype.itemsize
        size = (high + 1 - low) * step if layout.size else 0
        memory = cuda.UnownedMemory(array.ptr + low * step, size, array.buffer, layout.index)
        strides = tuple(step * stride for stride in layout.strides)
        return self.cupy.ndarray(
            layout.shape, layout.dtype.np, cuda.MemoryPointer(memory, -low * step), strides
        )

    def adopt(self, found: Any, index: int) -> DeviceArray:
        """The same memory; it is kept as long as the array of tandem's lives."""
        array = found if isinstance(found, self.cupy.ndarray) else self.cupy.asarray(found)
        dtype = as_dtype(array.dtype)
        strides = tuple(step // dtype.itemsize for step in array.strides)
        layout = layout_of(tuple(array.shape), strides, dtype, index)
        buffer = Borrowed(array.data.ptr, array.nbytes, array, stream_at(index))
        return DeviceArray(array.data.ptr, layout, buffer)

    @contextlib.contextmanager
    def on(self, index: int) -> Iterator[None]:
        """Calls of cupy work on a device, in tandem's current stream."""
        device_at(index).make_current()
        with self.cupy.cuda.Device(index), stream_of_cupy(self.cupy, stream_at(index)):
            yield


class _Known:
    library: ArrayLibrary | None = None


def library() -> ArrayLibrary:
    """What serves library operators in this process."""
    if _Known.library is None:
        make = tools.toolkit().arrays
        _Known.library = CupyLibrary() if make is None else make()
    return _Known.library


def _forget() -> None:
    _Known.library = None


tools.changed.append(_forget)
