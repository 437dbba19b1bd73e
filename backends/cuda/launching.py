"""Putting kernels into a stream."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from . import devices, texts
from . import toolkit as tools
from .arrays import DeviceArray
from .devices import device_at
from .driver import PROTOTYPES
from .emit.kernel import CudaKernel
from .modules import Parameters, kernel_function
from .streams import stream_at

Value = (
    Any  # an array, an int (a C long long), bytes (a struct or a scalar of that size), None (a null pointer)
)


def cell(value: Value) -> Any:
    """The value of a parameter as ``cuLaunchKernel`` wants it."""
    if isinstance(value, DeviceArray):
        return ctypes.c_uint64(value.ptr)
    if value is None:
        return ctypes.c_uint64(0)
    return ctypes.c_int64(value) if type(value) is int else value


def launch(
    kernel: CudaKernel,
    index: int,
    grid: tuple[int, int, int],
    values: Iterable[Value],
    used: Sequence[DeviceArray],
) -> None:
    """Put one kernel into the current stream of a device.

    Args:
        kernel: the kernel.
        index: the device's number.
        grid: how many blocks.
        values: its parameters.
        used: the arrays that it reads or writes.
    """
    function = kernel_function(kernel, index)
    at, stream = device_at(index), stream_at(index)
    at.make_current()
    packed = Parameters([cell(value) for value in values])
    at.driver.cuLaunchKernel(
        function, *grid, *kernel.block, kernel.shared, stream.handle, packed.address, None
    )
    for array in used:
        pool = array.buffer.pool
        if pool is None or pool.stream is not stream:
            array.buffer.used_by(stream)


@functools.lru_cache(256)
def _text(name: str) -> CudaKernel:
    return texts.kernel(name)


def launch_text(
    name: str, on: DeviceArray, count: int, values: Iterable[Value], used: Sequence[DeviceArray]
) -> None:
    """Put a kernel of :mod:`.texts` into the current stream of an array's device, for ``count`` elements."""
    kernel = _text(name)
    launch(kernel, on.layout.index, (kernel.blocks(count, texts.BLOCKS), 1, 1), values, used)


def fill_bytes(array: DeviceArray, value: int) -> None:
    """Set all bytes of a contiguous array."""
    layout = array.layout
    if layout.nbytes:
        at, stream = device_at(layout.index), stream_at(layout.index)
        at.make_current()
        at.driver.cuMemsetD8Async(array.ptr, value, layout.nbytes, stream.handle)
        array.buffer.used_by(stream)


class _Raw:
    """The driver's launch function, called with Python's lock held: it queues and returns."""

    function: Any = None


def _raw() -> Any:
    if _Raw.function is None:
        address = tools.toolkit().driver.address("cuLaunchKernel")
        _Raw.function = ctypes.PYFUNCTYPE(ctypes.c_int, *PROTOTYPES["cuLaunchKernel"])(address)
    return _Raw.function


def _forget() -> None:
    _Raw.function = None


tools.changed.append(_forget)


class Launch:
    """A kernel that is launched again and again with other addresses.

    Args:
        kernel: the kernel.
        index: the device's number.
        grid: how many blocks.
        kinds: the C types of the parameters that change.
        rest: the values of those that follow and stay.
    """

    __slots__ = ("_at", "_free", "_front", "_grid", "_kinds", "_raw", "_rest")

    def __init__(
        self,
        kernel: CudaKernel,
        index: int,
        grid: tuple[int, int, int],
        kinds: Sequence[Any],
        rest: Sequence[Any] = (),
    ):
        self._at = device_at(index)
        self._front = (kernel_function(kernel, index), *grid, *kernel.block, kernel.shared)
        self._kinds, self._rest = kinds, rest
        self._free: list[Parameters] = []
        self._raw = _raw()

    def take(self) -> Parameters:
        """Cells for the parameters that change; nobody else has them until :meth:`go` is called."""
        try:
            return self._free.pop()
        except IndexError:
            return Parameters([*[kind() for kind in self._kinds], *self._rest])

    def go(self, cells: Parameters, used: Sequence[DeviceArray]) -> None:
        """Put the kernel into the current stream.

        Args:
            cells: what :meth:`take` gave, with values.
            used: the arrays that it works on.
        """
        at = self._at
        if devices.current_thread.context != at.context:
            at.make_current()
        stream = stream_at(at.index)
        code = self._raw(*self._front, stream.handle, cells.address, None)
        self._free.append(cells)
        if code:
            raise at.driver.fault("cuLaunchKernel", code)
        for array in used:
            pool = array.buffer.pool
            if pool is None or pool.stream is not stream:
                array.buffer.used_by(stream)
