"""Modules of device code: compile and load CUDA C, once for each device and process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from ....registry.operator import lock
from ..codegen.kernel import CudaKernel, module_source
from . import toolkit as tools
from .api import translate_cupy_errors
from .compiler import OPTIONS
from .devices import Device, device_at

SHARED_LIMIT = 48 * 1024  # bytes of dynamic shared memory that a function may have without opting in


class Module:
    """Device code that cupy has loaded from a file; cupy keeps it until the process ends.

    Args:
        source: CUDA C with ``extern "C" __global__`` functions.
        at: the device.
        options: of the compiler.
    """

    __slots__ = ("_kernels", "_module", "_shared", "at")

    def __init__(self, source: str, at: Device, options: tuple[str, ...] = OPTIONS):
        self.at = at
        toolkit = tools.toolkit()
        self._module = toolkit.cupy().RawModule(path=toolkit.compile(source, at.arch, options))
        self._kernels: dict[str, tuple[Any, int]] = {}
        self._shared: dict[str, int] = {}  # the largest size requested for a function, if above the limit

    def function(self, name: str, shared: int = 0) -> int:
        """The driver's handle of a function.

        Args:
            name: of the function.
            shared: bytes of dynamic shared memory of its launches.

        Raises:
            CudaError: the code does not load, or has no such function.
        """
        known = self._kernels.get(name)
        if known is None or shared > self._shared.get(name, SHARED_LIMIT):
            self.at.make_current()
            with (
                translate_cupy_errors(f"loading the kernel {name}"),
                tools.toolkit().cupy().cuda.Device(self.at.index),
            ):
                kernel = self._module.get_function(name) if known is None else known[0]
                if shared > SHARED_LIMIT:
                    kernel.max_dynamic_shared_size_bytes = self._shared[name] = shared
                known = self._kernels[name] = kernel, kernel.kernel.ptr
        return known[1]


_modules: dict[tuple[int, str, tuple[str, ...]], Module] = {}


def load_module(source: str, index: int, options: tuple[str, ...] = OPTIONS) -> Module:
    """The module of a source on a device, loaded at first use and cached."""
    key = index, source, options
    result = _modules.get(key)
    if result is None:
        with lock:
            result = _modules.get(key)
            if result is None:
                result = _modules[key] = Module(source, device_at(index), options)
    return result


def kernel_function(kernel: CudaKernel, index: int) -> int:
    """The driver's handle of a kernel on a device; the kernel is compiled as a module of its own."""
    return load_module(module_source([kernel]), index).function(kernel.name, kernel.shared)


def kernel_functions(kernels: Iterable[CudaKernel], index: int) -> list[int]:
    """The driver's handles of kernels, which are compiled as one module."""
    kernels = list(kernels)
    module = load_module(module_source(kernels), index)
    return [module.function(kernel.name, kernel.shared) for kernel in kernels]


class Parameters:
    """The packed parameters of a launch, as ``cuLaunchKernel`` reads them.

    Args:
        values: for each parameter a ctypes value, or the bytes of a struct.

    Attributes:
        address: of the table of pointers to the values.
        cells: the values; a pointer parameter is set by ``cells[i].value = address``.
    """

    __slots__ = ("_table", "address", "cells")

    def __init__(self, values: Iterable[Any]):
        self.cells = [
            ctypes.create_string_buffer(value, len(value)) if isinstance(value, bytes) else value
            for value in values
        ]
        self._table = (ctypes.c_void_p * max(len(self.cells), 1))(*map(ctypes.addressof, self.cells))
        self.address = ctypes.addressof(self._table)

    def __getitem__(self, index: int) -> Any:
        return self.cells[index]


def _forget() -> None:
    _modules.clear()


tools.change_listeners.append(_forget)
