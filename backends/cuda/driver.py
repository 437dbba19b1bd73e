"""The CUDA driver's functions, by ctypes: each call is checked, and what fails says so by the driver's own name.

A :class:`Driver` stands over one shared library. Nothing is loaded before a device is asked for. Which driver a process
uses is the business of :mod:`.toolkit`.

Source: the CUDA Driver API, version 13.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from ...errors import CudaError, OutOfMemoryError

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY = 2
NOT_INITIALIZED = 3
NOT_READY = 600

INT, UINT, SIZE, U64 = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64
HANDLE, OUT, TEXT, BYTE = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ubyte

# function -> the types of its arguments; every function returns a status. OUT: where a result is written.
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (UINT,),
    "cuDriverGetVersion": (OUT,),
    "cuDeviceGetCount": (OUT,),
    "cuDeviceGet": (OUT, INT),
    "cuDeviceGetName": (OUT, INT, INT),
    "cuDeviceTotalMem_v2": (OUT, INT),
    "cuDeviceGetAttribute": (OUT, INT, INT),
    "cuDevicePrimaryCtxRetain": (OUT, INT),
    "cuCtxSetCurrent": (HANDLE,),
    "cuCtxGetCurrent": (OUT,),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (OUT, SIZE),
    "cuMemFree_v2": (U64,),
    "cuMemAllocAsync": (OUT, SIZE, HANDLE),
    "cuMemFreeAsync": (U64, HANDLE),
    "cuMemHostAlloc": (OUT, SIZE, UINT),
    "cuMemFreeHost": (HANDLE,),
    "cuMemcpyHtoDAsync_v2": (U64, HANDLE, SIZE, HANDLE),
    "cuMemcpyDtoHAsync_v2": (HANDLE, U64, SIZE, HANDLE),
    "cuMemcpyDtoDAsync_v2": (U64, U64, SIZE, HANDLE),
    "cuMemcpyPeerAsync": (U64, HANDLE, U64, HANDLE, SIZE, HANDLE),
    "cuMemsetD8Async": (U64, BYTE, SIZE, HANDLE),
    "cuMemGetInfo_v2": (OUT, OUT),
    "cuModuleLoadData": (OUT, TEXT),
    "cuModuleUnload": (HANDLE,),
    "cuModuleGetFunction": (OUT, HANDLE, TEXT),
    "cuFuncSetAttribute": (HANDLE, INT, INT),
    "cuFuncGetAttribute": (OUT, INT, HANDLE),
    "cuLaunchKernel": (HANDLE, UINT, UINT, UINT, UINT, UINT, UINT, UINT, HANDLE, HANDLE, HANDLE),
    "cuStreamCreateWithPriority": (OUT, UINT, INT),
    "cuStreamDestroy_v2": (HANDLE,),
    "cuStreamSynchronize": (HANDLE,),
    "cuStreamQuery": (HANDLE,),
    "cuStreamWaitEvent": (HANDLE, HANDLE, UINT),
    "cuStreamIsCapturing": (HANDLE, OUT),
    "cuStreamBeginCapture_v2": (HANDLE, INT),
    "cuStreamEndCapture": (HANDLE, OUT),
    "cuEventCreate": (OUT, UINT),
    "cuEventRecord": (HANDLE, HANDLE),
    "cuEventQuery": (HANDLE,),
    "cuEventSynchronize": (HANDLE,),
    "cuEventElapsedTime": (OUT, HANDLE, HANDLE),
    "cuEventDestroy_v2": (HANDLE,),
    "cuGraphCreate": (OUT, UINT),
    "cuGraphAddKernelNode_v2": (OUT, HANDLE, OUT, SIZE, OUT),
    "cuGraphInstantiateWithFlags": (OUT, HANDLE, U64),
    "cuGraphLaunch": (HANDLE, HANDLE),
    "cuGraphUpload": (HANDLE, HANDLE),
    "cuGraphGetNodes": (HANDLE, OUT, OUT),
    "cuGraphNodeGetType": (HANDLE, OUT),
    "cuGraphKernelNodeGetParams_v2": (HANDLE, OUT),
    "cuGraphExecKernelNodeSetParams_v2": (HANDLE, HANDLE, OUT),
    "cuGraphExecDestroy": (HANDLE,),
    "cuGraphDestroy": (HANDLE,),
    "cuPointerGetAttribute": (OUT, INT, U64),
    "cuGetErrorName": (INT, OUT),
    "cuGetErrorString": (INT, OUT),
}


class Driver:
    """The functions of one driver library as attributes; a call that fails raises.

    Raises (each function):
        OutOfMemoryError: the driver's code is CUDA_ERROR_OUT_OF_MEMORY.
        CudaError: any other code.
    """

    def __init__(self, library: Any):
        self._library, self._process = library, os.getpid()

    def function(self, name: str) -> Any:
        """The function itself, unchecked, with the types of its arguments set.

        Raises:
            CudaError: the driver is too old to have it.
        """
        try:
            found = getattr(self._library, name)
        except AttributeError:
            raise CudaError(f"the NVIDIA driver has no {name}; install one for CUDA 12 or later") from None
        found.argtypes, found.restype = PROTOTYPES[name], INT
        return found

    def address(self, name: str) -> int:
        """The address of a function, for machine code to call."""
        return ctypes.cast(self.function(name), ctypes.c_void_p).value or 0

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in PROTOTYPES:
            raise AttributeError(f"the CUDA driver's table has no function {name!r}")
        function = self.function(name)

        def call(*args: Any) -> None:
            code = function(*args)
            if code:
                raise self.fault(name, code)

        call.__name__ = call.__qualname__ = name
        setattr(self, name, call)
        return call

    def get(self, name: str, kind: Any, *args: Any) -> Any:
        """The value that a function writes into its first argument, which is a place for a ``kind``."""
        place = kind()
        getattr(self, name)(ctypes.addressof(place), *args)
        return place.value

    def ready(self, name: str, handle: int | None) -> bool:
        """Whether a query (of a stream or an event) finds that all is done."""
        code = self.function(name)(handle)
        if code not in (0, NOT_READY):
            raise self.fault(name, code)
        return not code

    def fault(self, name: str, code: int) -> Exception:
        """The exception for a status that a function has returned."""
        kind = OutOfMemoryError if code == OUT_OF_MEMORY else CudaError
        said = f"{name}: {self._text('cuGetErrorName', code)}: {self._text('cuGetErrorString', code)}"
        if code == NOT_INITIALIZED and os.getpid() != self._process:
            said += (
                "; CUDA cannot be used in a process forked from one that used it: start processes by 'spawn'"
            )
        return kind(said)

    def _text(self, name: str, code: int) -> str:
        place = ctypes.c_char_p()
        if self.function(name)(code, ctypes.addressof(place)) or place.value is None:
            return f"unknown error {code}"
        return place.value.decode()


def open_library() -> Any:
    """The system's driver library.

    Raises:
        OSError: there is none.
    """
    return ctypes.CDLL(LIBRARY)
