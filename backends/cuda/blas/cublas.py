"""Access to cuBLAS: the addresses of its functions, and one handle for each device.

The handle is tandem's own, with the library's defaults: factors on the host, no TF32 for float32, sums of 16-bit floats
in float32, and the workspace that the library chooses for the device (32 MiB on Hopper, as in PyTorch). A caller sets
the stream before each call and holds the GIL for both calls, so that all threads can share the handle.

Source: cuBLAS 12 and 13, ``cublasGemmEx`` and ``cublasGemmStridedBatchedEx``.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .... import lazy
from ....errors import BackendUnavailableError, CudaError, OutOfMemoryError
from ....named_tuple import NamedTuple
from ....operators.creation.devices import INSTALL
from ....registry.dtypes import DType
from ....registry.operator import lock
from ..runtime import toolkit as tools
from ..runtime.devices import device_at

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
REFUSED = 1 << 16  # compiled code adds this to a status of cuBLAS; statuses of the driver are smaller


class GemmType(NamedTuple):
    """The types that cuBLAS uses for products of matrices of one dtype.

    Attributes:
        kind: the cudaDataType_t of the elements.
        compute: the cublasComputeType_t of the sums.
        one, zero: the offsets of the factors 1 and 0 of that type from :attr:`Cublas.address`.
    """

    kind: int
    compute: int
    one: int
    zero: int


# offsets in the struct: the handle, three functions, then 1 and 0 as complex numbers of two floats and of two doubles
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


class _Struct(ctypes.Structure):
    _fields_ = (
        ("words", ctypes.c_uint64 * 4),
        ("single", ctypes.c_float * 4),
        ("double", ctypes.c_double * 4),
    )


def gemm_type(dtype: DType) -> GemmType:
    """The types for products of a dtype; raises KeyError if cuBLAS does not support it."""
    return GEMM_TYPES[dtype.name]


class Cublas:
    """cuBLAS on one device.

    Attributes:
        handle: the library's handle.
        address: of a struct with the handle, the functions' addresses and the factors.
        functions: the functions by name, for calls from Python.
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
        self._record = _Struct((self.handle, *addresses), (1, 0, 0, 0), (1, 0, 0, 0))
        self.address = ctypes.addressof(self._record)


def _library() -> Any:
    """The library that cupy has loaded; its functions are looked up in cupy's module, which is linked to it."""
    make = tools.toolkit().blas
    if make is not None:
        return make()
    try:
        return ctypes.PyDLL(lazy.module("cupy.cuda").cublas.__file__)
    except (ImportError, AttributeError, OSError, RuntimeError) as fault:
        first = str(fault).strip().partition("\n")[0]
        raise BackendUnavailableError(
            f"matmul: cupy cannot load cuBLAS: {first}; {INSTALL} brings it"
        ) from None


def _function(library: Any, name: str) -> Any:
    result = getattr(library, name)
    result.argtypes, result.restype = PROTOTYPES[name], INT
    return result


def check(name: str, status: int) -> None:
    """Raise an exception for a status other than 0.

    Raises:
        OutOfMemoryError: the library could not allocate its own memory.
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
    """cuBLAS on a device, initialized at first use.

    Raises:
        BackendUnavailableError: cuBLAS is not installed.
        OutOfMemoryError: the device has no memory for its workspace.
    """
    result = _known.get(index)
    if result is None:
        with lock:
            result = _known.get(index)
            if result is None:
                result = _known[index] = Cublas(index)
    return result


tools.change_listeners.append(_known.clear)
