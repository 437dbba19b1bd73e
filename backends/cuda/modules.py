"""Modules of device code: source to functions that can be launched, once per device and process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from ...registry.operator import lock
from . import toolkit as tools
from .compiler import OPTIONS
from .devices import Device, device_at
from .emit.kernel import CudaKernel, module_source

SHARED_LIMIT = 48 * 1024  # bytes of shared memory that a function may have without asking
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class Module:
    """Loaded device code; unloaded when the object goes.

    Args:
        source: CUDA C with ``extern "C" __global__`` functions.
        at: the device.
        options: of the compiler.
    """

    __slots__ = ("_functions", "_handle", "_shared", "at")

    def __init__(self, source: str, at: Device, options: tuple[str, ...] = OPTIONS):
        self.at = at
        image = tools.toolkit().compile(source, at.arch, options)
        at.make_current()
        self._handle = at.driver.get("cuModuleLoadData", ctypes.c_void_p, image)
        self._functions: dict[str, int] = {}
        self._shared: dict[
            str, int
        ] = {}  # the most that a function has been given, where that is above the limit

    def function(self, name: str, shared: int = 0) -> int:
        """The driver's handle of a function.

        Args:
            name: of the function.
            shared: bytes of dynamic shared memory that launches ask for.
        """
        found = self._functions.get(name)
        if found is None:
            self.at.make_current()
            found = self.at.driver.get("cuModuleGetFunction", ctypes.c_void_p, self._handle, name.encode())
            self._functions[name] = found
        if shared > self._shared.get(name, SHARED_LIMIT):
            self.at.make_current()
            self.at.driver.cuFuncSetAttribute(found, MAX_DYNAMIC_SHARED, shared)
            self._shared[name] = shared
        return found

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            self.at.give_back("cuModuleUnload", handle)


_modules: dict[tuple[int, str, tuple[str, ...]], Module] = {}


def module_of(source: str, index: int, options: tuple[str, ...] = OPTIONS) -> Module:
    """The module of a source on a device, loaded at its first use and kept."""
    key = index, source, options
    found = _modules.get(key)
    if found is None:
        with lock:
            found = _modules.get(key)
            if found is None:
                found = _modules[key] = Module(source, device_at(index), options)
    return found


def kernel_function(kernel: CudaKernel, index: int) -> int:
    """The driver's handle of a printed kernel, on a device; the kernel is a module of its own."""
    return module_of(module_source([kernel]), index).function(kernel.name, kernel.shared)


def kernel_functions(kernels: Iterable[CudaKernel], index: int) -> list[int]:
    """The driver's handles of kernels that are compiled as one module."""
    kernels = list(kernels)
    module = module_of(module_source(kernels), index)
    return [module.function(kernel.name, kernel.shared) for kernel in kernels]


class Parameters:
    """The parameters of a launch, packed: what ``cuLaunchKernel`` reads.

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

    def __getitem__(self, place: int) -> Any:
        return self.cells[place]


def _forget() -> None:
    _modules.clear()


tools.changed.append(_forget)
