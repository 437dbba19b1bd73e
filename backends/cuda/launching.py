"""Putting kernels into a stream."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from . import devices, launcher, texts
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


class Launch:
    """A kernel that is launched again and again with other addresses.

    Args:
        kernel: the kernel.
        index: the device's number.
        grid: how many blocks.
        changing: how many parameters are given at each launch.
        staying: the values of those that follow and stay: ctypes values, or the bytes of a struct.
    """

    __slots__ = ("_at", "_call")

    def __init__(
        self,
        kernel: CudaKernel,
        index: int,
        grid: tuple[int, int, int],
        changing: int,
        staying: Sequence[Any] = (),
    ):
        self._at = device_at(index)
        function = kernel_function(kernel, index)
        values = [_kept(value) for value in staying]
        sizes = (*grid, *kernel.block)
        make = _plain if launcher.why_not(changing, len(values)) else launcher.Launcher
        address = tools.toolkit().driver.address("cuLaunchKernel")
        self._call: Any = make(address, function, sizes, kernel.shared, changing, values)

    @property
    def record(self) -> Any:
        """What machine code reads to launch it; None where Python has to."""
        return getattr(self._call, "record", None)

    def go(self, values: Sequence[int], used: Sequence[DeviceArray]) -> None:
        """Put the kernel into the current stream.

        Args:
            values: the parameters that change, each as an int: an address, or the bits of a number.
            used: the arrays that it works on.
        """
        at = self._at
        if devices.current_thread.context != at.context:
            at.make_current()
        stream = stream_at(at.index)
        code = self._call(stream.number, *values)
        if code:
            raise at.driver.fault("cuLaunchKernel", code)
        for array in used:
            pool = array.buffer.pool
            if pool is None or pool.stream is not stream:
                array.buffer.used_by(stream)


def _kept(value: Any) -> Any:
    return ctypes.create_string_buffer(value, len(value)) if isinstance(value, bytes) else value


def _plain(
    address: int, function: int, sizes: Sequence[int], shared: int, changing: int, staying: Sequence[Any]
) -> Any:
    """What :class:`.launcher.Launcher` does, without machine code."""
    queue = ctypes.CFUNCTYPE(ctypes.c_int, *PROTOTYPES["cuLaunchKernel"])(address)

    def call(stream: int, *values: int) -> int:
        packed = Parameters([*map(ctypes.c_uint64, values), *staying])
        return int(queue(function, *sizes, shared, stream or None, packed.address, None))

    return call
