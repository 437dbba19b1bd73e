"""Launch kernels: once with :func:`launch`, or repeatedly with a prepared :class:`Launch`."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..codegen.kernel import CudaKernel
from ..kernels import sources
from . import devices, launcher
from . import toolkit as tools
from .arrays import DeviceArray
from .devices import device_at
from .driver import PROTOTYPES
from .modules import Parameters, kernel_function
from .streams import stream_at

# an array, an int (a C long long), bytes (a struct or a scalar of that size), None (a null pointer), a ctypes value
Value = Any


def to_parameter(value: Value) -> Any:
    """Convert the value of a kernel parameter for :class:`.modules.Parameters`."""
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
    """Launch a kernel in the current stream of a device.

    Args:
        kernel: the kernel.
        index: the device's number.
        grid: the number of blocks.
        values: the kernel's parameters.
        used: the arrays that the kernel reads or writes.
    """
    cells = [to_parameter(value) for value in values]
    launch_function(kernel_function(kernel, index), index, (*grid, *kernel.block, kernel.shared), cells, used)


def launch_function(
    function: int, index: int, sizes: Sequence[int], cells: Sequence[Any], used: Sequence[DeviceArray]
) -> None:
    """Launch a function of a module in the current stream of a device.

    Args:
        function: the driver's handle.
        index: the device's number.
        sizes: grid, block, and bytes of dynamic shared memory.
        cells: the parameters as ctypes values.
        used: the arrays that the function reads or writes.
    """
    at, stream, packed = device_at(index), stream_at(index), Parameters(cells)
    at.make_current()
    at.driver.cuLaunchKernel(function, *sizes, stream.handle, packed.address, None)
    for array in used:
        array.buffer.used_by(stream)


@functools.lru_cache(256)
def _source_kernel(name: str) -> CudaKernel:
    return sources.kernel(name)


def launch_source(
    name: str, on: DeviceArray, count: int, values: Iterable[Value], used: Sequence[DeviceArray]
) -> None:
    """Launch a kernel of :mod:`tandem.backends.cuda.kernels.sources` for ``count`` elements.

    Args:
        name: of the kernel.
        on: an array; its device is used.
        count: the number of elements, which determines the grid.
        values, used: see :func:`launch`.
    """
    kernel = _source_kernel(name)
    launch(kernel, on.layout.index, (kernel.blocks(count, sources.BLOCKS), 1, 1), values, used)


def fill_bytes(array: DeviceArray, value: int) -> None:
    """Set all bytes of a contiguous array."""
    layout = array.layout
    if layout.nbytes:
        stream = stream_at(layout.index)
        stream.fill(array.ptr, value, layout.nbytes)
        array.buffer.used_by(stream)


class Launch:
    """A kernel prepared for repeated launches with different addresses.

    Args:
        kernel: the kernel.
        index: the device's number.
        grid: the number of blocks.
        dynamic: the number of parameters that are given at each launch.
        static: the values of the parameters after them: ctypes values, or the bytes of a struct.
    """

    __slots__ = ("_at", "_call")

    def __init__(
        self,
        kernel: CudaKernel,
        index: int,
        grid: tuple[int, int, int],
        dynamic: int,
        static: Sequence[Any] = (),
    ):
        self._at = device_at(index)
        function = kernel_function(kernel, index)
        values = [_to_ctypes(value) for value in static]
        sizes = (*grid, *kernel.block)
        make = _make_python_launcher if launcher.explain_fallback(dynamic, len(values)) else launcher.Launcher
        address = tools.toolkit().driver.address("cuLaunchKernel")
        self._call: Any = make(address, function, sizes, kernel.shared, dynamic, values)

    @property
    def record(self) -> Any:
        """The native struct of the launcher; None if Python launches the kernel."""
        return getattr(self._call, "record", None)

    def run(self, values: Sequence[int], used: Sequence[DeviceArray]) -> None:
        """Launch the kernel in the current stream.

        Args:
            values: the dynamic parameters, each as an int: an address, or the bits of a number.
            used: the arrays that the kernel reads or writes.
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


def _to_ctypes(value: Any) -> Any:
    return ctypes.create_string_buffer(value, len(value)) if isinstance(value, bytes) else value


def _make_python_launcher(
    address: int, function: int, sizes: Sequence[int], shared: int, dynamic: int, static: Sequence[Any]
) -> Callable[..., int]:
    """A function that does the same as :class:`.launcher.Launcher`, without native code.

    Native twin: backends/cuda/fastpath/launch_entries.py:launch
    """
    queue = ctypes.CFUNCTYPE(ctypes.c_int, *PROTOTYPES["cuLaunchKernel"])(address)

    def call(stream: int, *values: int) -> int:
        packed = Parameters([*map(ctypes.c_uint64, values), *static])
        return int(queue(function, *sizes, shared, stream or None, packed.address, None))

    return call
