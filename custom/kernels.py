"""Kernels in NumPy, C, LLVM IR and CUDA C, not yet bound to an operator.

Each has a method ``bind(op)`` that returns the kernel for the operator's dispatch table.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lazy
from ..backends.cpu.kernels.foreign import BufferKernel, ScalarKernel
from ..eager.tensor.tensor import Tensor, wrap
from ..eager.tensor.weak_scalars import common_dtype, is_weak, strengthen_to
from ..errors import ArgumentError, BackendUnavailableError, SchemaError, ValueArgumentError
from ..operators.foreign.c_signature import CSignature, parse_c_signature
from ..operators.foreign.functions import BufferFunction, ScalarFunction, make_symbol
from ..registry.operator import Operator
from ..registry.schemas.schema import Schema
from ..registry.values import describe, tensors_of
from .adapt import adapt_function
from .c_arguments import bind_parameters
from .c_types import check_own_types
from .llvm import parse_function

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs

cffi = lazy.Module("_cffi_backend")
cuda = lazy.Module(".backends.cuda.load")
cuda_foreign = lazy.Module(".backends.cuda.kernels.foreign")
cupy_cuda = lazy.Module("cupy.cuda")
fastpath = lazy.Module(".backends.cpu.fastpath")

_C_FUNCTION: Any = ctypes.CFUNCTYPE(None).__mro__[1]  # the base of all functions of ctypes
_C_NAMES = {
    v: k for k, v in {"float": ctypes.c_float, "double": ctypes.c_double, "bool": ctypes.c_bool}.items()
} | {getattr(ctypes, f"c_{u}int{n}"): f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)}


class NumpyKernel:
    """A kernel implemented by a function of ndarrays."""

    def __init__(self, fn: Function):
        if not callable(fn):
            raise ArgumentError(f"numpy_kernel takes a function of NumPy arrays, not {fn!r}")
        self.fn = fn

    def bind(self, op: Operator) -> Function:
        """Make the kernel of an operator."""
        fn, name = self.fn, op.name

        def kernel(*args: object, **kwargs: object) -> object:
            args, kwargs = _cast_weak_numbers(op, args, kwargs)
            return _to_tensors(
                name, fn(*map(_to_array, args), **{key: _to_array(v) for key, v in kwargs.items()})
            )

        kernel.__qualname__ = f"numpy_{getattr(fn, '__name__', 'kernel')}"
        return adapt_function(op.schema, kernel)

    def __repr__(self) -> str:
        return f"<NumPy kernel {getattr(self.fn, '__name__', self.fn)!r}>"


def _cast_weak_numbers(op: Operator, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """Cast Python numbers passed for tensors to the promoted dtype of the other tensors."""
    given = tensors_of(op, args, kwargs)
    weak = [value for value in given if is_weak(value)]
    if not weak or len(weak) == len(given):
        return args, kwargs
    dtype = common_dtype([value for value in given if not is_weak(value)])

    def visit(value: object) -> object:
        if type(value) is tuple:
            return tuple(map(visit, value))
        return strengthen_to(value, dtype) if isinstance(value, Tensor) and is_weak(value) else value

    return tuple(map(visit, args)), {name: visit(value) for name, value in kwargs.items()}


def _to_array(value: object) -> object:
    if isinstance(value, Tensor):
        return value._host("a NumPy kernel")
    return tuple(map(_to_array, value)) if type(value) is tuple else value


def _to_tensors(name: str, results: object) -> object:
    if isinstance(results, (np.ndarray, np.generic)):
        return wrap(np.asarray(results))
    if isinstance(results, (tuple, list)):
        return tuple(_to_tensors(name, one) for one in results)
    if results is None or isinstance(results, Tensor):
        return results
    raise ArgumentError(f"{name}: its NumPy kernel gives arrays, not {describe(results)}")


# -- C -----------------------------------------------------------------------------------------------------------------
class CKernel:
    """A kernel implemented by a C function at an address."""

    def __init__(self, address: int, signature: CSignature, keep: object):
        self.address, self.signature, self.keep = address, signature, keep

    def bind(self, op: Operator) -> Function:
        """Make the kernel of an operator.

        Raises:
            SchemaError: the signature has a name that is not in the operator's schema.
        """
        schema = op.schema
        if self.signature.is_scalar:
            return bind_scalar(op, self._scalar(schema), self.keep)
        passed = bind_parameters(schema, self.signature)
        function = BufferFunction(make_symbol(schema.name), self.signature, passed, self.address)
        return adapt_buffer_kernel(schema, BufferKernel(op, function, self.keep))

    def _scalar(self, schema: Schema) -> ScalarFunction:
        params = tuple(param.dtype for param in self.signature.params)
        result = self.signature.result
        if result is None:
            raise SchemaError(f"{self.signature} is no scalar function")
        return ScalarFunction(make_symbol(schema.name), params, result, "C", self.address)

    def __repr__(self) -> str:
        return f"<C kernel {self.signature}>"


def adapt_buffer_kernel(schema: Schema, kernel: BufferKernel) -> Function:
    """Add the check that written arguments are writable to a C kernel."""
    return adapt_function(schema, kernel) if schema.is_mutable else kernel


def bind_scalar(op: Operator, function: ScalarFunction, keep: object) -> Function:
    """Make the kernel of a scalar function; it also provides the shape rule."""
    schema = op.schema
    plain = all(
        a.type.form == "base" and a.type.base == "Tensor" and not a.kwarg_only for a in schema.arguments
    )
    single = len(schema.returns) == 1 and schema.returns[0].type.form == "base"
    if not plain or not single or schema.is_mutable or len(schema.arguments) != len(function.params):
        raise SchemaError(
            f"{schema}: a scalar function of {len(function.params)} numbers serves an operator of as many tensors that "
            "gives one; name pointers, 'void(const float *x, float *out, int64_t x.size)', for any other"
        )
    return ScalarKernel(op, function, keep)


def c_kernel(function: object, signature: str | None) -> CKernel:
    """See :func:`tandem.c_kernel`."""
    address, typed = _find_address(function)
    if signature is None:
        signature = _read_prototype(function if typed is None else typed)
    if not isinstance(signature, str):
        raise ArgumentError(f"c_kernel takes a C prototype, such as 'double(double)', not {signature!r}")
    parsed = parse_c_signature(signature)
    if typed is not None:
        check_own_types(typed, parsed)
    return CKernel(address, parsed, (function, typed))


def _find_address(function: Any) -> tuple[int, object]:
    """Return the address of a function, and its ctypes function or cffi type, if any."""
    if isinstance(function, int) and not isinstance(function, bool):
        return _check_address(function, function), None
    if isinstance(function, _C_FUNCTION):
        return _check_address(function, ctypes.cast(function, ctypes.c_void_p).value), function
    if isinstance(getattr(function, "address", None), int) and hasattr(function, "ctypes"):
        return _check_address(function, function.address), function.ctypes  # numba.cfunc
    if type(function).__module__ == "_cffi_backend":
        return _check_address(function, _cffi_address(function)), cffi.FFI().typeof(function)
    raise ArgumentError(
        f"c_kernel takes a ctypes function, a cffi function pointer, a numba.cfunc or an address, not {function!r}; of "
        "a function of a cffi library take ffi.addressof(lib, 'name')"
    )


def _check_address(function: object, address: int | None) -> int:
    if address is None or not 0 < address < 1 << 64:
        raise ArgumentError(f"c_kernel: {function!r} is not the address of a function")
    return address


def _cffi_address(pointer: object) -> int:
    ffi = cffi.FFI()
    try:
        return int(ffi.cast("uintptr_t", pointer))
    except TypeError:
        raise ArgumentError(
            f"c_kernel: {pointer!r} is not a pointer; take ffi.addressof(lib, 'name')"
        ) from None


def _read_prototype(function: object) -> str:
    """Read the prototype of a ctypes function of numbers."""
    kinds = getattr(function, "argtypes", None)
    result = getattr(function, "restype", None)
    if not kinds or any(kind not in _C_NAMES for kind in (*kinds, result)):
        raise ArgumentError(
            "c_kernel: the function does not say what it takes; give the signature: 'double(double)', or "
            "'void(const float *x, float *out, int64_t x.size)'"
        )
    return f"{_C_NAMES[result]}({', '.join(_C_NAMES[kind] for kind in kinds)})"


# -- LLVM --------------------------------------------------------------------------------------------------------------
class LlvmKernel:
    """A kernel implemented by a scalar function in LLVM IR; each operator has a copy with its own name."""

    def __init__(self, source: object, signature: CSignature | None):
        self.source, self.signature = source, signature
        self.parsed = parse_function(
            source, signature, "checked"
        )  # report LLVM's errors here, not at the first call

    def bind(self, op: Operator) -> Function:
        """Make the kernel of an operator."""
        name = make_symbol(op.schema.name)
        result = parse_function(self.source, self.signature, name)
        return bind_scalar(
            op, ScalarFunction(name, result.params, result.result, "LLVM", 0, result.ir), self.source
        )

    def __repr__(self) -> str:
        return f"<LLVM kernel {self.parsed.result.name}({', '.join(p.name for p in self.parsed.params)})>"


def llvm_kernel(source: object, signature: str | None) -> LlvmKernel:
    """See :func:`tandem.llvm_kernel`."""
    off = fastpath.why_off()
    if off:
        raise BackendUnavailableError(f"llvm_kernel: native code is off: {off}")
    parsed = None if signature is None else parse_c_signature(signature)
    if parsed is not None and not parsed.is_scalar:
        raise SchemaError(f"llvm_kernel takes a scalar function, such as 'double(double)', not {signature!r}")
    return LlvmKernel(source, parsed)


# -- CUDA --------------------------------------------------------------------------------------------------------------
class CudaKernel:
    """A kernel in CUDA C; its source is compiled at construction if NVRTC is installed."""

    def __init__(self, source: str, name: str, signature: str | None):
        if not isinstance(source, str) or not isinstance(name, str):
            raise ArgumentError(
                "cuda_kernel takes the text of a source file and the name of a function in it"
            )
        if "__global__" not in source or name not in source:
            raise ValueArgumentError(f"cuda_kernel: the source has no __global__ function called {name!r}")
        self.source, self.name = source, name
        self.signature = None if signature is None else parse_c_signature(signature)
        _compile_with_nvrtc(source, name)

    def bind(self, op: Operator) -> Function:
        """Make the kernel of an operator.

        Raises:
            SchemaError: the signature has a name that is not in the operator's schema.
        """
        full = op.name
        passed = None if self.signature is None else bind_parameters(op.schema, self.signature)
        run: list[Function] = []

        def kernel(*args: object, **kwargs: object) -> object:
            missing = cuda.tools.missing_requirements()
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
                make = cuda_foreign.user_kernel
                run.append(make(op, self.source, self.name, passed))
            return run[0](*args, **kwargs)

        kernel.__qualname__ = f"cuda_{self.name}"
        kernel.cuda = self  # type: ignore[attr-defined]
        kernel.is_trusted_kernel = True  # type: ignore[attr-defined]
        return kernel

    def __repr__(self) -> str:
        return f"<CUDA kernel {self.name}>"


# What register_kernel takes: a function of tensors, or a kernel of this module.
KernelLike = Callable[..., object] | NumpyKernel | CKernel | LlvmKernel | CudaKernel


def _compile_with_nvrtc(source: str, name: str) -> None:
    """Compile the source with NVRTC if it is installed, to report errors early."""
    if not lazy.is_installed("cupy"):
        return
    try:
        nvrtc = cupy_cuda.nvrtc
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
