"""The CUDA backend on the CPU: a test double of the driver, kernels run by the shim, NumPy in the place of cupy."""

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
from tandem import lazy
from tandem.backends.cuda import copies, driver, streams, toolkit
from tandem.backends.cuda.devices import device_at

from .build import COMPILER, FLAGS, HERE, host_text, missing

strict = importlib.import_module("cuda_host.strict") if lazy.installed("cupy") else None

__all__ = ["ArrayDouble", "host_blas", "host_library", "host_toolkit", "missing"]


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


def module_image(source, arch="sm_90", options=()):
    """What the double's ``cuModuleLoadData`` takes: the path of a library made of the kernels."""
    text = host_text(source).replace(str(HERE / "shim.hpp"), str(header()))
    place = folder() / f"{_digest(text)}.so"
    if not place.exists():
        unit = place.with_suffix(f".{os.getpid()}.cpp")
        unit.write_text(text)
        compiled(unit, place)
        unit.unlink()
    return str(place).encode() + b"\0"


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
    found.blas_driver(ctypes.cast(host_library().host_settle, ctypes.c_void_p))
    return found


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
        low, high = layout.extent()
        step = layout.dtype.itemsize
        memory = (ctypes.c_char * ((high + 1 - low) * step)).from_address(array.ptr + low * step)
        memory.owner = array.buffer  # which an ndarray on it keeps
        strides = [step * stride for stride in layout.strides]
        return np.ndarray(layout.shape, layout.dtype.np, memory, -low * step, strides)

    def adopt(self, found, index):
        """An array of the double's memory with the elements of an array."""
        if strict:
            assert isinstance(found, strict.Array), f"{type(found)} would go through the host"
            found = strict.bare(found)
        return copies.to_device(np.asarray(found), index)

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
    found, arrays = driver.Driver(library), ArrayDouble(library)
    return toolkit.Toolkit("host test double", found, module_image, lambda: arrays, blas=host_blas)
