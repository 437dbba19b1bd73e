"""The array library (cupy) that computes operators without their own kernels, on tandem's memory without a copy."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

from .... import lazy
from ....errors import UnsupportedError
from ....registry.dtypes import as_dtype
from ..runtime import toolkit as tools
from ..runtime.api import translate_cupy_errors
from ..runtime.arrays import DeviceArray, Layout, layout_of
from ..runtime.devices import device_at
from ..runtime.memory import ExternalBuffer
from ..runtime.streams import stream_at, use_in_cupy


class ArrayLibrary(Protocol):
    """The interface of an array library.

    Attributes:
        xp: the module with NumPy's functions.
    """

    xp: Any

    def view(self, array: DeviceArray) -> Any:
        """The library's array on the memory of tandem's array."""

    def adopt(self, array: Any, index: int) -> DeviceArray:
        """Convert the library's array on a device to tandem's."""

    def on(self, index: int) -> Any:
        """Context manager: calls of the library use a device and its current stream."""

    def capsule(self, array: DeviceArray, version: tuple[int, int] | None) -> Any:
        """A DLPack capsule of tandem's array, without stream synchronization."""

    def from_dlpack(self, capsule: Any) -> Any:
        """The library's array on the memory of a DLPack capsule."""


class _Module:
    """cupy, with the NumPy names that kernels use and cupy lacks."""

    def __init__(self, cupy: Any):
        self._cupy = cupy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cupy, name)

    def errstate(self, **options: Any) -> Any:
        """Do nothing: a device never warns."""
        return contextlib.nullcontext()

    @property
    def special(self) -> Any:
        """SciPy's special functions."""
        return lazy.module("cupyx.scipy.special")

    @property
    def linalg(self) -> Any:
        """``cupy.linalg``, with errors of cuSOLVER raised."""
        return _Linalg(self._cupy.linalg)


class _Linalg:
    """The functions of ``cupy.linalg``, which raise LinAlgError as NumPy's do."""

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
                    f"{name}: the installed cuSOLVER does not support it ({fault}); install a newer CUDA toolkit "
                    f"(CUDA 12.6 or later for eig), or compute it on the CPU: x.to('cpu')"
                ) from None

        return call


class CupyLibrary:
    """The array library cupy."""

    def __init__(self) -> None:
        self.cupy: Any = lazy.module("cupy")
        self.xp = _Module(self.cupy)

    def view(self, array: DeviceArray) -> Any:
        """A cupy array on the same memory, which it keeps alive."""
        layout, cuda = array.layout, self.cupy.cuda
        start, stop = layout.span()
        memory = cuda.UnownedMemory(array.ptr + start, stop - start, array.buffer, layout.index)
        strides = tuple(layout.dtype.itemsize * stride for stride in layout.strides)
        return self.cupy.ndarray(layout.shape, layout.dtype.np, cuda.MemoryPointer(memory, -start), strides)

    def adopt(self, array: Any, index: int) -> DeviceArray:
        """tandem's array on the same memory, which it keeps alive."""
        array = array if isinstance(array, self.cupy.ndarray) else self.cupy.asarray(array)
        buffer = ExternalBuffer(array.data.ptr, array.nbytes, array, stream_at(index))
        return DeviceArray(array.data.ptr, layout_of_cupy(array, index), buffer)

    def on(self, index: int) -> contextlib.AbstractContextManager[None]:
        """Context manager: calls of cupy use a device and tandem's current stream."""
        return use_in_cupy(self.cupy, stream_at(index))

    def capsule(self, array: DeviceArray, version: tuple[int, int] | None) -> Any:
        """A DLPack capsule of tandem's array, without stream synchronization."""
        device_at(array.layout.index).make_current()
        with translate_cupy_errors("DLPack"):
            return self.view(array).__dlpack__(stream=-1, max_version=version)

    def from_dlpack(self, capsule: Any) -> Any:
        """cupy's array on the memory of a DLPack capsule."""
        with translate_cupy_errors("from DLPack"):
            return self.cupy.from_dlpack(capsule)


def layout_of_cupy(array: Any, index: int) -> Layout:
    """The layout of cupy's array on a device."""
    dtype = as_dtype(array.dtype)
    return layout_of(
        tuple(array.shape), tuple(step // dtype.itemsize for step in array.strides), dtype, index
    )


class _Known:
    library: ArrayLibrary | None = None


def library() -> ArrayLibrary:
    """The array library of this process."""
    if _Known.library is None:
        make = tools.toolkit().arrays
        _Known.library = CupyLibrary() if make is None else make()
    return _Known.library


def _forget() -> None:
    _Known.library = None


tools.change_listeners.append(_forget)
