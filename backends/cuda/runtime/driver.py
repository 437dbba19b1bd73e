"""CUDA driver functions through ctypes: those that native code calls, and those that cupy does not expose.

The other functions are called through cupy (:mod:`.api`). Nothing is loaded before a device is used; :mod:`.toolkit`
chooses the driver.

Source: the CUDA Driver API, version 13.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any

from ....errors import CudaError, OutOfMemoryError

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY = 2
NOT_INITIALIZED = 3
NOT_READY = 600

INT, UINT, SIZE = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
HANDLE = OUT = ctypes.c_void_p

# function -> the types of its arguments; every function returns a status. OUT: the address that a result is written to.
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuCtxSetCurrent": (HANDLE,),
    "cuCtxGetCurrent": (OUT,),
    "cuLaunchKernel": (HANDLE, UINT, UINT, UINT, UINT, UINT, UINT, UINT, HANDLE, HANDLE, HANDLE),
    "cuStreamIsCapturing": (HANDLE, OUT),
    "cuGraphCreate": (OUT, UINT),
    "cuGraphAddKernelNode_v2": (OUT, HANDLE, OUT, SIZE, OUT),
    "cuGraphLaunch": (HANDLE, HANDLE),
    "cuGraphExecKernelNodeSetParams_v2": (HANDLE, HANDLE, OUT),
    "cuGetErrorName": (INT, OUT),
    "cuGetErrorString": (INT, OUT),
}


class Driver:
    """The functions of one driver library.

    Args:
        library: the loaded library.
        prototypes: the types of the functions' arguments.
    """

    def __init__(self, library: Any, prototypes: Mapping[str, tuple[Any, ...]] = PROTOTYPES):
        self._library, self._process, self._prototypes = library, os.getpid(), prototypes

    def function(self, name: str) -> Any:
        """The unchecked function, with the types of its arguments set.

        Raises:
            CudaError: the driver is too old to have it.
        """
        try:
            result = getattr(self._library, name)
        except AttributeError:
            raise CudaError(f"the NVIDIA driver has no {name}; install one for CUDA 12 or later") from None
        if result.argtypes is None:
            result.argtypes, result.restype = self._prototypes[name], INT
        return result

    def address(self, name: str) -> int:
        """The address of a function, for native code to call."""
        return ctypes.cast(self.function(name), ctypes.c_void_p).value or 0

    def check(self, name: str, status: int) -> None:
        """Raise the exception for a status of a function other than 0.

        Raises:
            OutOfMemoryError: the status is CUDA_ERROR_OUT_OF_MEMORY.
            CudaError: any other status.
        """
        if status:
            raise self.fault(name, status)

    def fault(self, name: str, code: int) -> Exception:
        """The exception for a status that a function of the driver has returned."""
        return self.make_error(
            f"{name}: {self._text('cuGetErrorName', code)}: {self._text('cuGetErrorString', code)}", code
        )

    def make_error(self, message: str, code: int) -> Exception:
        """The exception for a status of the driver or of the runtime, with a message."""
        if code == NOT_INITIALIZED and os.getpid() != self._process:
            message += (
                "; CUDA cannot be used in a process forked from one that used it: start processes by 'spawn'"
            )
        return (OutOfMemoryError if code == OUT_OF_MEMORY else CudaError)(message)

    def _text(self, name: str, code: int) -> str:
        """The name or the description of a status."""
        text = ctypes.c_char_p()
        if self.function(name)(code, ctypes.addressof(text)) or text.value is None:
            return f"unknown error {code}"
        return text.value.decode()
