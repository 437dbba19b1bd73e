"""cuBLAS, as compiled code and eager kernels call it: addresses of its functions, and one handle for each device.

The handle is our own, with the library's defaults: factors on the host, no TF32 for float32, sums of 16-bit floats in
float32, and the workspace that the library chooses for the device (32 MiB on Hopper, what PyTorch gives it there).
Whoever calls sets the stream before, and holds the GIL for both calls, so that all threads can share the handle.

Source: cuBLAS 12 and 13, ``cublasGemmEx`` and ``cublasGemmStridedBatchedEx``.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from ... import lazy
from ...errors import BackendUnavailableError, CudaError, OutOfMemoryError
from ...operators.devices import INSTALL
from ...registry.dtypes import DType
from ...registry.operator import lock
from . import toolkit as tools
from .devices import device_at

PLACE, INT, STEP = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
_SIDE = (PLACE, INT, INT)
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (PLACE,),
    "cublasSetStream_v2": (PLACE, PLACE),
    "cublasGemmEx": (PLACE, *(INT,) * 5, PLACE, *_SIDE, *_SIDE, PLACE, *_SIDE, INT, INT),
    "cublasGemmStridedBatchedEx": (
        *(PLACE, *(INT,) * 5, PLACE, *_SIDE, STEP, *_SIDE, STEP, PLACE, *_SIDE, STEP),
        *(INT, INT, INT),
    ),
}
DEFAULT = -1  # CUBLAS_GEMM_DEFAULT: the library chooses the algorithm
ALLOC_FAILED = 3
STATUS = {
    1: "NOT_INITIALIZED",
    ALLOC_FAILED: "ALLOC_FAILED",
    7: "INVALID_VALUE",
    8: "ARCH_MISMATCH",
    11: "MAPPING_ERROR",
    13: "EXECUTION_FAILED",
    14: "INTERNAL_ERROR",
    15: "NOT_SUPPORTED",
    16: "LICENSE_ERROR",
}
REFUSED = 1 << 16  # compiled code returns this and a status of cuBLAS; those of the driver are smaller


class GemmType(NamedTuple):
    """How cuBLAS multiplies matrices of a dtype.

    Attributes:
        kind: of the elements, a cudaDataType_t.
        compute: in what sums are made, a cublasComputeType_t.
        one, zero: where the factors of that type are in :attr:`Cublas.address`.
    """

    kind: int
    compute: int
    one: int
    zero: int


# in the record: the handle, three functions, then 1 and 0 as numbers of two floats and of two doubles
HANDLE, SET_STREAM, GEMM, BATCHED = 0, 8, 16, 24
_SINGLE, _DOUBLE = (32, 40), (48, 64)
GEMM_TYPES: dict[str, GemmType] = {
    "float16": GemmType(2, 68, *_SINGLE),
    "bfloat16": GemmType(14, 68, *_SINGLE),
    "float32": GemmType(0, 68, *_SINGLE),
    "float64": GemmType(1, 70, *_DOUBLE),
    "complex64": GemmType(4, 68, *_SINGLE),
    "complex128": GemmType(5, 70, *_DOUBLE),
}


class _Record(ctypes.Structure):
    _fields_ = (
        ("words", ctypes.c_uint64 * 4),
        ("single", ctypes.c_float * 4),
        ("double", ctypes.c_double * 4),
    )


def gemm_type(dtype: DType) -> GemmType:
    """How matrices of a dtype are multiplied; a KeyError for one that cuBLAS does not take."""
    return GEMM_TYPES[dtype.name]


class Cublas:
    """cuBLAS on one device.

    Attributes:
        handle: the library's handle.
        address: of a record with the handle, the functions' addresses and the factors.
        functions: by name, to be called from Python.
    """

    def __init__(self, index: int):
        library = _library()
        self.functions = {name: _function(library, name) for name in PROTOTYPES}
        device_at(index).make_current()
        handle = ctypes.c_void_p()
        check("cublasCreate", self.functions["cublasCreate_v2"](ctypes.addressof(handle)))
        self.handle = handle.value or 0
        names = ("cublasSetStream_v2", "cublasGemmEx", "cublasGemmStridedBatchedEx")
        addresses = (ctypes.cast(self.functions[name], ctypes.c_void_p).value or 0 for name in names)
        self._record = _Record((self.handle, *addresses), (1, 0, 0, 0), (1, 0, 0, 0))
        self.address = ctypes.addressof(self._record)


def _library() -> Any:
    """The library that cupy has loaded: its functions are found through cupy's module, which is linked to it."""
    make = tools.toolkit().blas
    if make is not None:
        return make()
    try:
        lazy.cupy()
        return ctypes.PyDLL(lazy.module("cupy_backends.cuda.libs.cublas").__file__)
    except (ImportError, OSError) as fault:
        raise BackendUnavailableError(
            f"matmul: cupy cannot load cuBLAS: {fault}; {INSTALL} brings it"
        ) from None


def _function(library: Any, name: str) -> Any:
    found = getattr(library, name)
    found.argtypes, found.restype = PROTOTYPES[name], INT
    return found


def check(name: str, status: int) -> None:
    """Raise what a function of cuBLAS says.

    Raises:
        OutOfMemoryError: the library has no memory for what it needs itself.
        CudaError: any other status.
    """
    if status:
        raise fault(name, status)


def fault(name: str, status: int) -> Exception:
    """The exception for a status of cuBLAS other than 0."""
    kind = OutOfMemoryError if status == ALLOC_FAILED else CudaError
    return kind(f"{name}: CUBLAS_STATUS_{STATUS.get(status, status)}")


_known: dict[int, Cublas] = {}


def cublas_at(index: int) -> Cublas:
    """cuBLAS on a device, made at its first use.

    Raises:
        BackendUnavailableError: it is not installed.
        OutOfMemoryError: the device has no memory for its workspace.
    """
    found = _known.get(index)
    if found is None:
        with lock:
            found = _known.get(index)
            if found is None:
                found = _known[index] = Cublas(index)
    return found


tools.changed.append(_known.clear)
