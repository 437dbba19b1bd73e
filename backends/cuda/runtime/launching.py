"""Load kernels, and launch them: once with :func:`launch`, or repeatedly with a prepared :class:`Launch`.

Modules of CUDA C are compiled and loaded once for each device and process.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .... import lazy
from ....registry.native_type import NativeCallable, accept_entries, set_entry
from ....registry.operator import lock
from ...cpu.fastpath.compiler import engine, lang
from ...cpu.fastpath.glue import layout
from ...cpu.fastpath.glue.structs import StructMemory
from ..codegen.kernel import CudaKernel, module_source
from ..fastpath import launch_entries as rt
from ..kernels import sources
from . import toolkit as tools
from .api import translate_cupy_errors
from .arrays import DeviceArray
from .compiler import OPTIONS
from .devices import Device, device_at
from .memory import note_uses
from .streams import stream_at

native_layer = lazy.Module(".backends.cpu.fastpath")

SHARED_LIMIT = 48 * 1024  # bytes of dynamic shared memory that a function may have without opting in


class Module:
    """Device code that cupy has loaded from a file; cupy keeps it until the process ends.

    Args:
        source: CUDA C with ``extern "C" __global__`` functions.
        at: the device.
        options: of the compiler.
    """

    __slots__ = ("_kernels", "_module", "at")

    def __init__(self, source: str, at: Device, options: tuple[str, ...] = OPTIONS):
        self.at = at
        toolkit = tools.toolkit()
        self._module = toolkit.cupy().RawModule(path=toolkit.compile(source, at.arch, options))
        # by name: the function, its handle, and the largest size of dynamic shared memory that it may have
        self._kernels: dict[str, tuple[Any, int, int]] = {}

    def function(self, name: str, shared: int = 0) -> int:
        """The driver's handle of a function.

        Args:
            name: of the function.
            shared: bytes of dynamic shared memory of its launches.

        Raises:
            CudaError: the code does not load, or has no such function.
        """
        kernel, handle, limit = self._kernels.get(name, (None, 0, SHARED_LIMIT))
        if kernel is None or shared > limit:
            self.at.make_current()
            cupy = tools.toolkit().cupy()
            with translate_cupy_errors(f"loading the kernel {name}"), cupy.cuda.Device(self.at.index):
                kernel = kernel or self._module.get_function(name)
                if shared > limit:
                    kernel.max_dynamic_shared_size_bytes = limit = shared
                handle = kernel.kernel.ptr
            self._kernels[name] = kernel, handle, limit
        return handle


_modules: dict[tuple[int, str, tuple[str, ...]], Module] = {}


def load_module(source: str, index: int, options: tuple[str, ...] = OPTIONS) -> Module:
    """The module of a source on a device, loaded at first use and cached."""
    key = index, source, options
    result = _modules.get(key)
    if result is None:
        with lock:
            result = _modules.get(key) or Module(source, device_at(index), options)
            _modules[key] = result
    return result


def kernel_functions(kernels: Iterable[CudaKernel], index: int) -> list[int]:
    """The driver's handles of kernels, which are compiled as one module."""
    kernels = list(kernels)
    module = load_module(module_source(kernels), index)
    return [module.function(kernel.name, kernel.shared) for kernel in kernels]


tools.change_listeners.append(_modules.clear)


# -- launches ----------------------------------------------------------------------------------------------------------
# an array, an int (a C long long), bytes (a struct or a scalar of that size), None (a null pointer), a ctypes value
Value = Any


def pack_parameters(values: Iterable[Value]) -> Any:
    """The table of pointers to parameters that ``cuLaunchKernel`` reads; it keeps the parameters alive."""
    cells = [_to_ctypes(value) for value in values]
    table = (ctypes.c_void_p * max(len(cells), 1))(*map(ctypes.addressof, cells))
    table.cells = cells  # type: ignore[attr-defined]
    return table


def _to_ctypes(value: Value) -> Any:
    if isinstance(value, bytes):
        return ctypes.create_string_buffer(value, len(value))
    if isinstance(value, DeviceArray):
        return ctypes.c_uint64(value.ptr)
    return ctypes.c_int64(value or 0) if value is None or type(value) is int else value


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
    launch_function(
        kernel_functions([kernel], index)[0], index, (*grid, *kernel.block, kernel.shared), values, used
    )


def launch_function(
    function: int, index: int, sizes: Sequence[int], values: Iterable[Value], used: Sequence[DeviceArray]
) -> None:
    """Launch a function of a module in the current stream of a device.

    Args:
        function: the driver's handle.
        index: the device's number.
        sizes: grid, block, and bytes of dynamic shared memory.
        values, used: see :func:`launch`.
    """
    at, stream, packed = device_at(index), stream_at(index), pack_parameters(values)
    at.make_current()
    queue = at.driver.function("cuLaunchKernel")
    at.driver.check("cuLaunchKernel", queue(function, *sizes, stream.handle, packed, None))
    note_uses(used, stream)


_source_kernel = functools.lru_cache(256)(sources.kernel)


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
        stream.at.runtime.memsetAsync(array.ptr, value, layout.nbytes, stream.number)
        array.buffer.used_by(stream)


def native_code(
    name: str,
    functions: Mapping[str, Callable[..., Any]],
    constants: Mapping[str, Any] | None = None,
) -> engine.Code:
    """Compile native functions of this backend, or load them from the disk cache.

    Args:
        name: of the module.
        functions: the entry points, by name.
        constants: compile-time constants.
    """
    known, backend = dict(constants or {}), Path(__file__).parents[1]
    digest = engine.source_digest(backend / "fastpath", backend / "blas")
    key = engine.fingerprint(f"cuda {name}", digest, repr(sorted(known.items())))
    imports = layout.numpy_symbols()
    return engine.build(
        key, lambda: lang.emit(functions, known), list(functions), imports, passes=engine.Passes.FUNCTIONS
    )


@engine.KeepFirst
def launch_code(product: bool) -> engine.Code:
    """The native code of all launches of kernels, or of all products of cuBLAS."""
    return native_code("launch", {"launch": rt.launch}, {"PRODUCT": int(product)})


@accept_entries
class Launch(NativeCallable):  # type: ignore[misc]
    """A kernel prepared for repeated launches: ``launch(stream, *values)`` returns the driver's status.

    Args:
        kernel: the kernel.
        index: the device's number.
        grid: the number of blocks.
        dynamic: the number of parameters that are given at each launch: addresses, or the bits of numbers.
        static: the values of the parameters after them: ctypes values, or the bytes of a struct.

    Attributes:
        record: the native struct (``Launch`` of ``fastpath/launch_entries.py``); None if Python launches the kernel.
    """

    def __init__(
        self,
        kernel: CudaKernel,
        index: int,
        grid: tuple[int, int, int],
        dynamic: int,
        static: Sequence[Value] = (),
    ):
        self._at, self._function = device_at(index), kernel_functions([kernel], index)[0]
        self._sizes, self._static = (*grid, *kernel.block, kernel.shared), [_to_ctypes(one) for one in static]
        self.record: StructMemory | None = None
        if native_layer.why_off() or dynamic + len(static) > rt.MAX_PARAMETERS:
            return
        driver = self._at.driver.address("cuLaunchKernel")
        self.record = StructMemory(
            rt.Launch, driver=driver, function=self._function, dynamic=dynamic, static=len(static)
        )
        self.record.kept.extend(self._static)
        addresses = map(ctypes.addressof, self._static)
        for offset, words in (rt.Launch.sizes, self._sizes), (rt.Launch.values, addresses):
            for i, word in enumerate(words):
                self.record.set(offset + 8 * i, word)
        self._code = launch_code(product=False)
        set_entry(self, self._code["launch"], self.record.address)

    def __call__(self, stream: int, *values: int) -> int:
        """Launch the kernel without native code.

        Native twin: backends/cuda/fastpath/launch_entries.py:launch
        """
        packed = pack_parameters([*map(ctypes.c_uint64, values), *self._static])
        queue = self._at.driver.function("cuLaunchKernel")
        return int(queue(self._function, *self._sizes, stream or None, packed, None))

    def run(self, values: Sequence[int], used: Sequence[DeviceArray]) -> None:
        """Launch the kernel in the current stream.

        Args:
            values: the dynamic parameters, each as an int: an address, or the bits of a number.
            used: the arrays that the kernel reads or writes.
        """
        self._at.make_current()
        stream = stream_at(self._at.index)
        self._at.driver.check("cuLaunchKernel", self(stream.number, *values))
        note_uses(used, stream)
