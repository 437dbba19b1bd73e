"""The CUDA backend on the CPU: a test double of the driver, kernels compiled for the CPU, NumPy in place of cupy."""

import contextlib
import ctypes
import functools
import hashlib
import importlib
import os
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from tandem import lazy
from tandem.backends.cuda.runtime import copies, driver, streams, toolkit
from tandem.backends.cuda.runtime.devices import device_at

from . import dlpack
from .build import COMPILER, FLAGS, HERE, host_text, missing
from .cupy_double import CupyDouble

HAS_BOTH = lazy.is_installed("cupy") and lazy.is_installed("scipy")
strict = importlib.import_module("cuda_host.strict") if HAS_BOTH else None

__all__ = ["ArrayDouble", "host_blas", "host_library", "host_toolkit", "missing"]

_HANDLE, _OUT, _INT, _SIZE = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
_U64 = ctypes.c_uint64
# what cupy calls of the driver and tandem does not, and what tests call
MORE = {
    "cuInit": (ctypes.c_uint,),
    "cuDeviceGetCount": (_OUT,),
    "cuDeviceGet": (_OUT, _INT),
    "cuDevicePrimaryCtxRetain": (_OUT, _INT),
    "cuDriverGetVersion": (_OUT,),
    "cuDeviceGetName": (_OUT, _INT, _INT),
    "cuDeviceTotalMem_v2": (_OUT, _INT),
    "cuDeviceGetAttribute": (_OUT, _INT, _INT),
    "cuCtxGetDevice": (_OUT,),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (_OUT, _SIZE),
    "cuMemFree_v2": (_U64,),
    "cuMemcpyHtoDAsync_v2": (_U64, _HANDLE, _SIZE, _HANDLE),
    "cuMemcpyDtoHAsync_v2": (_HANDLE, _U64, _SIZE, _HANDLE),
    "cuMemcpyDtoDAsync_v2": (_U64, _U64, _SIZE, _HANDLE),
    "cuMemcpyPeerAsync": (_U64, _HANDLE, _U64, _HANDLE, _SIZE, _HANDLE),
    "cuMemsetD8Async": (_U64, ctypes.c_ubyte, _SIZE, _HANDLE),
    "cuMemGetInfo_v2": (_OUT, _OUT),
    "cuPointerGetAttribute": (_OUT, _INT, _U64),
    "cuStreamCreateWithPriority": (_OUT, ctypes.c_uint, _INT),
    "cuStreamDestroy_v2": (_HANDLE,),
    "cuStreamSynchronize": (_HANDLE,),
    "cuStreamQuery": (_HANDLE,),
    "cuMemHostAlloc": (_OUT, _SIZE, ctypes.c_uint),
    "cuMemFreeHost": (_HANDLE,),
    "cuModuleLoad": (_OUT, ctypes.c_char_p),
    "cuModuleGetFunction": (_OUT, _HANDLE, ctypes.c_char_p),
    "cuFuncSetAttribute": (_HANDLE, _INT, _INT),
    "cuStreamWaitEvent": (_HANDLE, _HANDLE, ctypes.c_uint),
    "cuStreamBeginCapture_v2": (_HANDLE, _INT),
    "cuStreamEndCapture": (_HANDLE, _OUT),
    "cuEventCreate": (_OUT, ctypes.c_uint),
    "cuEventRecord": (_HANDLE, _HANDLE),
    "cuEventQuery": (_HANDLE,),
    "cuEventSynchronize": (_HANDLE,),
    "cuEventElapsedTime": (_OUT, _HANDLE, _HANDLE),
    "cuEventDestroy_v2": (_HANDLE,),
    "cuGraphGetNodes": (_HANDLE, _OUT, _OUT),
    "cuGraphInstantiateWithFlags": (_OUT, _HANDLE, _U64),
    "cuGraphExecDestroy": (_HANDLE,),
    "cuGraphDestroy": (_HANDLE,),
}


def folder():
    """Where what has been compiled stays for the next process of this user."""
    found = Path(tempfile.gettempdir()) / f"tandem-cuda-host-{os.getuid()}"
    found.mkdir(mode=0o700, exist_ok=True)
    if found.stat().st_uid != os.getuid():
        raise PermissionError(f"{found} belongs to somebody else")
    return found


def compiled(source, target, *flags):
    """A file made by the compiler, unless it is there already; others see it when it is whole."""
    if not target.exists():
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        found = subprocess.run(
            [COMPILER, *FLAGS, *flags, str(source), "-o", str(fresh)], capture_output=True, text=True
        )
        if found.returncode:
            raise RuntimeError(f"g++ refused {source}:\n{found.stderr[:4000]}")
        os.replace(fresh, target)
    return target


@functools.cache
def header():
    """The shim, compiled ahead once for each version of it."""
    text = (HERE / "shim.hpp").read_text()
    place = folder() / f"shim-{_digest(text)}.hpp"
    if not place.exists():
        place.write_text(text)
    compiled(place, place.with_name(f"{place.name}.gch"), "-x", "c++-header")
    return place


def module_file(source, arch="sm_90", options=()):
    """What the double's ``cuModuleLoad`` takes: the path of a library made of the kernels."""
    text = host_text(source).replace(str(HERE / "shim.hpp"), str(header()))
    place = folder() / f"{_digest(text)}.so"
    if not place.exists():
        unit = place.with_suffix(f".{os.getpid()}.cpp")
        unit.write_text(text)
        compiled(unit, place)
        unit.unlink()
    return str(place)


def _digest(text):
    return hashlib.sha256(" ".join([*FLAGS, text]).encode()).hexdigest()[:20]


def host_library():
    """The driver's double, compiled once for each version of its source."""
    source = HERE / "driver.cpp"
    text = source.read_text() + (HERE / "driver.hpp").read_text()
    place = folder() / f"driver-{_digest(text)}.so"
    found = ctypes.CDLL(str(compiled(source, place, "-ldl")))
    for function in ("host_count", "host_faults", "host_live_blocks"):
        getattr(found, function).restype = ctypes.c_long
    found.host_live_bytes.restype = ctypes.c_size_t
    found.host_time.restype = ctypes.c_double
    found.host_cost.argtypes = (ctypes.c_char_p, ctypes.c_long)
    found.host_limit.argtypes = (ctypes.c_size_t,)
    found.host_settle.argtypes = (ctypes.c_void_p,)
    found.host_fail_allocation.argtypes = (ctypes.c_long,)
    found.host_fault_text.restype = ctypes.c_char_p
    return found


def host_blas():
    """cuBLAS's double, compiled once for each version of its source."""
    source = HERE / "cublas.cpp"
    place = folder() / f"cublas-{_digest(source.read_text())}.so"
    found = ctypes.PyDLL(str(compiled(source, place)))
    found.blas_calls.restype = found.blas_batched_calls.restype = ctypes.c_long
    found.blas_refuse.argtypes = ctypes.c_int, ctypes.c_long
    found.blas_last_stream.restype = ctypes.c_void_p
    driver = host_library()
    functions = (driver.host_settle, driver.host_device, driver.host_has_stream)
    found.blas_driver(*(ctypes.cast(one, ctypes.c_void_p) for one in functions))
    return found


class CheckedDriver(driver.Driver):
    """The driver's functions as attributes; a call that fails raises an exception."""

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._prototypes:
            raise AttributeError(f"the CUDA driver's table has no function {name!r}")
        function = self.function(name)

        def call(*args):
            code = function(*args)
            if code:
                raise self.fault(name, code)

        setattr(self, name, call)
        return call

    def get(self, name, kind, *args):
        """The result of a function whose first argument is the address of its result."""
        place = kind()
        getattr(self, name)(ctypes.addressof(place), *args)
        return place.value


class ArrayDouble:
    """NumPy on the double's memory, in cupy's place; as strict as cupy where it is installed."""

    xp = strict.MODULE if strict else np

    def __init__(self, library):
        self.library, self.inside = library, threading.local()

    def view(self, array):
        """An array on an array's memory."""
        at = getattr(self.inside, "index", None)
        assert at == array.layout.index, f"cupy is used on {at}, and {array} lies elsewhere"
        self.library.host_settle(streams.stream_at(at).handle)
        found = self.ndarray(array)
        return strict.Array(found) if strict else found

    def ndarray(self, array):
        """An ndarray on an array's memory."""
        layout = array.layout
        if not layout.size:
            return np.empty(layout.shape, layout.dtype.np)
        start, stop = layout.span()
        step = layout.dtype.itemsize
        memory = (ctypes.c_char * (stop - start)).from_address(array.ptr + start)
        memory.owner = array.buffer  # which an ndarray on it keeps
        strides = [step * stride for stride in layout.strides]
        return np.ndarray(layout.shape, layout.dtype.np, memory, -start, strides)

    def adopt(self, found, index):
        """An array of the double's memory with the elements of an array."""
        if strict:
            assert isinstance(found, strict.Array), f"{type(found)} would go through the host"
            found = strict.bare(found)
        return copies.to_device(np.asarray(found), index)

    def capsule(self, array, version):
        """A DLPack capsule of an array."""
        return dlpack.capsule(array, version)

    def from_dlpack(self, capsule):
        """cupy itself reads capsules, on a machine without a GPU too."""
        if not lazy.is_installed("cupy"):
            pytest.skip("capsules are read by cupy, which is not installed")
        return lazy.module("cupy").from_dlpack(capsule)

    @contextlib.contextmanager
    def on(self, index):
        """What is computed inside is computed on a device, at once, when what is in its stream has been done."""
        device_at(index).make_current()
        before, self.inside.index = getattr(self.inside, "index", None), index
        try:
            with np.errstate(all="ignore"):
                yield
        finally:
            self.inside.index = before


def host_toolkit(library=None):
    """What the backend stands on in tests."""
    library = library or host_library()
    found, arrays = CheckedDriver(library, driver.PROTOTYPES | MORE), ArrayDouble(library)
    cupy = CupyDouble(found)
    return toolkit.Toolkit("host test double", found, module_file, lambda: cupy, lambda: arrays, host_blas)
