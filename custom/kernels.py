"""Kernels in other languages, before they are bound to an operator: NumPy, C, LLVM IR, CUDA C.

Each has ``bind(custom_op)``, which gives what is put into the operator's table.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lazy
from ..backends.cpu.user_kernels import BufferKernel, ScalarKernel
from ..eager.tensor import Tensor, wrap
from ..errors import ArgumentError, BackendUnavailableError, SchemaError, ValueArgumentError
from ..operators.c_signature import CSignature, parse_c_signature
from ..operators.user_functions import BufferFunction, ScalarFunction, symbol
from ..registry.schema import Schema
from ..registry.values import describe
from .adapt import adapted
from .c_types import check_own_types
from .llvm import parsed_function
from .op import CustomOp
from .passing import passed_for

_C_FUNCTION: Any = ctypes.CFUNCTYPE(None).__mro__[1]  # the base of all functions of ctypes
_NAMES = {
    v: k for k, v in {"float": ctypes.c_float, "double": ctypes.c_double, "bool": ctypes.c_bool}.items()
} | {getattr(ctypes, f"c_{u}int{n}"): f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)}


class NumpyKernel:
    """A function of ndarrays."""

    def __init__(self, fn: Callable[..., Any]):
        if not callable(fn):
            raise ArgumentError(f"numpy_kernel takes a function of NumPy arrays, not {fn!r}")
        self.fn = fn

    def bind(self, op: CustomOp) -> Callable[..., Any]:
        """The kernel of an operator."""
        fn, name = self.fn, op.operator.name

        def kernel(*args: Any, **kwargs: Any) -> Any:
            return _tensors(name, fn(*map(_array, args), **{key: _array(v) for key, v in kwargs.items()}))

        kernel.__qualname__ = f"numpy_{getattr(fn, '__name__', 'kernel')}"
        return adapted(op.operator.schema, kernel)

    def __repr__(self) -> str:
        return f"<NumPy kernel {getattr(self.fn, '__name__', self.fn)!r}>"


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._host("a NumPy kernel")
    return tuple(map(_array, value)) if type(value) is tuple else value


def _tensors(name: str, found: Any) -> Any:
    if isinstance(found, (np.ndarray, np.generic)):
        return wrap(np.asarray(found))
    if isinstance(found, (tuple, list)):
        return tuple(_tensors(name, one) for one in found)
    if found is None or isinstance(found, Tensor):
        return found
    raise ArgumentError(f"{name}: its NumPy kernel gives arrays, not {describe(found)}")


# -- C -----------------------------------------------------------------------------------------------------------------
class CKernel:
    """A function at an address."""

    def __init__(self, address: int, signature: CSignature, keep: Any):
        self.address, self.signature, self.keep = address, signature, keep

    def bind(self, op: CustomOp) -> Callable[..., Any]:
        """The kernel of an operator.

        Raises:
            SchemaError: the signature names something that the operator's schema has not.
        """
        schema = op.operator.schema
        if self.signature.is_scalar:
            return bind_scalar(op, self._scalar(schema), self.keep)
        passed = passed_for(schema, self.signature)
        function = BufferFunction(symbol(schema.name), self.signature, passed, self.address)
        return adapted_buffer(schema, BufferKernel(op.operator, function, self.keep))

    def _scalar(self, schema: Schema) -> ScalarFunction:
        params = tuple(param.dtype for param in self.signature.params)
        result = self.signature.result
        if result is None:
            raise SchemaError(f"{self.signature} is no scalar function")
        return ScalarFunction(symbol(schema.name), params, result, "C", self.address)

    def __repr__(self) -> str:
        return f"<C kernel {self.signature}>"


def adapted_buffer(schema: Schema, kernel: BufferKernel) -> Callable[..., Any]:
    """A C kernel; what it writes has to be writable."""
    return adapted(schema, kernel) if schema.is_mutable else kernel


def bind_scalar(op: CustomOp, function: ScalarFunction, keep: Any) -> Callable[..., Any]:
    """The kernel of a scalar function; it also knows what the result looks like."""
    schema = op.operator.schema
    plain = all(
        a.type.form == "base" and a.type.base == "Tensor" and not a.kwarg_only for a in schema.arguments
    )
    single = len(schema.returns) == 1 and schema.returns[0].type.form == "base"
    if not plain or not single or schema.is_mutable or len(schema.arguments) != len(function.params):
        raise SchemaError(
            f"{schema}: a scalar function of {len(function.params)} numbers serves an operator of as many tensors that "
            "gives one; name pointers, 'void(const float *x, float *out, int64_t x.size)', for any other"
        )
    kernel = ScalarKernel(op.operator, function, keep)
    op.named = kernel.named
    return kernel


def c_kernel(function: Any, signature: str | None) -> CKernel:
    """See :func:`tandem.c_kernel`."""
    address, typed = _address(function)
    if signature is None:
        signature = _declared(function if typed is None else typed)
    if not isinstance(signature, str):
        raise ArgumentError(f"c_kernel takes a C prototype, such as 'double(double)', not {signature!r}")
    parsed = parse_c_signature(signature)
    if typed is not None:
        check_own_types(typed, parsed)
    return CKernel(address, parsed, (function, typed))


def _address(function: Any) -> tuple[int, Any]:
    """The address of a function, and what knows its types: a ctypes function or a type of cffi, where there is one."""
    if isinstance(function, int) and not isinstance(function, bool):
        return _not_null(function, function), None
    if isinstance(function, _C_FUNCTION):
        return _not_null(function, ctypes.cast(function, ctypes.c_void_p).value), function
    if isinstance(getattr(function, "address", None), int) and hasattr(function, "ctypes"):
        return _not_null(function, function.address), function.ctypes  # numba.cfunc
    if type(function).__module__ == "_cffi_backend":
        return _not_null(function, _cffi_address(function)), lazy.cffi_backend().FFI().typeof(function)
    raise ArgumentError(
        f"c_kernel takes a ctypes function, a cffi function pointer, a numba.cfunc or an address, not {function!r}; of "
        "a function of a cffi library take ffi.addressof(lib, 'name')"
    )


def _not_null(function: Any, address: int | None) -> int:
    if address is None or not 0 < address < 1 << 64:
        raise ArgumentError(f"c_kernel: {function!r} is no address of a function")
    return address


def _cffi_address(pointer: Any) -> int:
    ffi = lazy.cffi_backend().FFI()
    try:
        return int(ffi.cast("uintptr_t", pointer))
    except TypeError:
        raise ArgumentError(f"c_kernel: {pointer!r} is no pointer; take ffi.addressof(lib, 'name')") from None


def _declared(function: Any) -> str:
    """The prototype of a ctypes function of numbers."""
    kinds = getattr(function, "argtypes", None)
    result = getattr(function, "restype", None)
    if not kinds or any(kind not in _NAMES for kind in (*kinds, result)):
        raise ArgumentError(
            "c_kernel: the function does not say what it takes; give the signature: 'double(double)', or "
            "'void(const float *x, float *out, int64_t x.size)'"
        )
    return f"{_NAMES[result]}({', '.join(_NAMES[kind] for kind in kinds)})"


# -- LLVM --------------------------------------------------------------------------------------------------------------
class LlvmKernel:
    """A scalar function in LLVM IR; its text is made anew for each operator, under a name of its own."""

    def __init__(self, source: Any, signature: CSignature | None):
        self.source, self.signature = source, signature
        self.parsed = parsed_function(
            source, signature, "checked"
        )  # LLVM's complaints come here, not at the first call

    def bind(self, op: CustomOp) -> Callable[..., Any]:
        """The kernel of an operator."""
        name = symbol(op.operator.schema.name)
        found = parsed_function(self.source, self.signature, name)
        return bind_scalar(
            op, ScalarFunction(name, found.params, found.result, "LLVM", 0, found.ir), self.source
        )

    def __repr__(self) -> str:
        return f"<LLVM kernel {self.parsed.result.name}({', '.join(p.name for p in self.parsed.params)})>"


def llvm_kernel(source: Any, signature: str | None) -> LlvmKernel:
    """See :func:`tandem.llvm_kernel`."""
    off = lazy.native_layer().why_off()
    if off:
        raise BackendUnavailableError(f"llvm_kernel: native code is off: {off}")
    parsed = None if signature is None else parse_c_signature(signature)
    if parsed is not None and not parsed.is_scalar:
        raise SchemaError(f"llvm_kernel takes a scalar function, such as 'double(double)', not {signature!r}")
    return LlvmKernel(source, parsed)


# -- CUDA --------------------------------------------------------------------------------------------------------------
class CudaKernel:
    """A kernel in CUDA C: kept, shown, checked as far as possible, and run where there is a GPU."""

    def __init__(self, source: str, name: str, signature: str | None):
        if not isinstance(source, str) or not isinstance(name, str):
            raise ArgumentError(
                "cuda_kernel takes the text of a source file and the name of a function in it"
            )
        if "__global__" not in source or name not in source:
            raise ValueArgumentError(f"cuda_kernel: the source has no __global__ function called {name!r}")
        self.source, self.name = source, name
        self.signature = None if signature is None else parse_c_signature(signature)
        _compile(source, name)

    def bind(self, op: CustomOp) -> Callable[..., Any]:
        """The kernel of an operator.

        Raises:
            SchemaError: the signature names something that the operator's schema has not.
        """
        full = op.operator.name
        passed = None if self.signature is None else passed_for(op.operator.schema, self.signature)
        run: list[Callable[..., Any]] = []

        def kernel(*args: Any, **kwargs: Any) -> Any:
            missing = lazy.cuda_backend().tools.missing()
            if missing:
                raise BackendUnavailableError(
                    f"{full}: its CUDA kernel {self.name!r} needs a CUDA backend, and {'; '.join(missing)}; on the CPU "
                    'register a kernel for "cpu"'
                )
            if passed is None:
                raise ArgumentError(
                    f"{full}: say what its CUDA kernel {self.name!r} is passed: cuda_kernel(source, name, "
                    "'void(const float *x, float *out, int64_t out.size)')"
                )
            if not run:
                make = lazy.cuda_user_kernels().user_kernel
                run.append(make(op.operator, self.source, self.name, passed))
            return run[0](*args, **kwargs)

        kernel.__qualname__ = f"cuda_{self.name}"
        kernel.cuda = self  # type: ignore[attr-defined]
        return kernel

    def __repr__(self) -> str:
        return f"<CUDA kernel {self.name}>"


def _compile(source: str, name: str) -> None:
    """Let NVRTC look at the source, where it is installed."""
    if not lazy.installed("cupy"):
        return
    try:
        nvrtc = lazy.nvrtc()
        program = nvrtc.createProgram(source, f"{name}.cu", (), ())
    except (ImportError, AttributeError, OSError, RuntimeError):  # cupy is there, and NVRTC is not
        return
    try:
        nvrtc.compileProgram(program, ("--gpu-architecture=compute_80",))
    except nvrtc.NVRTCError:
        log = nvrtc.getProgramLog(program)
        raise ValueArgumentError(f"cuda_kernel: {name} does not compile:\n{log}") from None
    finally:
        nvrtc.destroyProgram(program)
