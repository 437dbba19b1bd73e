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
from ..eager.tensor.weak_scalars import is_weak, strengthen_to
from ..errors import ArgumentError, BackendUnavailableError, SchemaError, ValueArgumentError
from ..operators.declare.shape_rules import common_dtype
from ..operators.foreign.c_signature import CSignature, parse_c_signature
from ..operators.foreign.functions import BufferFunction, ScalarFunction, make_symbol
from ..registry.operator import Operator
from ..registry.schemas.schema import Schema
from ..registry.values import describe, tensors_of
from .adapt import adapt_function
from .c_arguments import bind_parameters
from .c_types import check_prototype
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
        """Return the kernel for an operator's dispatch table."""
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
        return tuple(_to_tensors(name, result) for result in results)
    if results is None or isinstance(results, Tensor):
        return results
    raise ArgumentError(
        f"{name}: its NumPy kernel must return arrays, not {describe(results)}; use np.asarray"
    )


# -- C -----------------------------------------------------------------------------------------------------------------
class CKernel:
    """A kernel implemented by a C function at an address.

    Args:
        address: the address of the function.
        signature: its C signature.
        keep_alive: the object that owns the function's code.
    """

    def __init__(self, address: int, signature: CSignature, keep_alive: object):
        self.address, self.signature, self.keep_alive = address, signature, keep_alive

    def bind(self, op: Operator) -> Function:
        """Return the kernel for an operator's dispatch table.

        Raises:
            SchemaError: the signature has a name that is not in the operator's schema.
        """
        schema, result = op.schema, self.signature.result
        if result is not None:
            params = tuple(param.dtype for param in self.signature.params)
            scalar = ScalarFunction(make_symbol(schema.name), params, result, "C", self.address)
            return bind_scalar(op, scalar, self.keep_alive)
        arguments = bind_parameters(schema, self.signature)
        function = BufferFunction(make_symbol(schema.name), self.signature, arguments, self.address)
        return adapt_buffer_kernel(schema, BufferKernel(op, function, self.keep_alive))

    def __repr__(self) -> str:
        return f"<C kernel {self.signature}>"


def adapt_buffer_kernel(schema: Schema, kernel: BufferKernel) -> Function:
    """Wrap a C kernel with a check that the arguments that it writes to are writable."""
    return adapt_function(schema, kernel) if schema.is_mutable else kernel


def bind_scalar(op: Operator, function: ScalarFunction, keep_alive: object) -> Function:
    """Return the kernel that broadcasts a scalar function over tensors; it also provides the shape rule."""
    schema = op.schema
    takes_tensors = all(
        a.type.form == "base" and a.type.base == "Tensor" and not a.kwarg_only for a in schema.arguments
    )
    returns_one = len(schema.returns) == 1 and schema.returns[0].type.form == "base"
    if (
        not takes_tensors
        or not returns_one
        or schema.is_mutable
        or len(schema.arguments) != len(function.params)
    ):
        raise SchemaError(
            f"{schema}: a scalar function of {len(function.params)} numbers implements operators that take as many "
            "tensors and return one; for other operators use a function with pointers, such as "
            "'void(const float *x, float *out, int64_t x.size)'"
        )
    return ScalarKernel(op, function, keep_alive)


def c_kernel(function: object, signature: str | None) -> CKernel:
    """See :func:`tandem.c_kernel`."""
    address, prototype = _find_address(function)
    if signature is None:
        signature = _read_prototype(function if prototype is None else prototype)
    if not isinstance(signature, str):
        raise ArgumentError(f"c_kernel takes a C prototype, such as 'double(double)', not {signature!r}")
    parsed = parse_c_signature(signature)
    if prototype is not None:
        check_prototype(prototype, parsed)
    return CKernel(address, parsed, (function, prototype))


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
        f"c_kernel takes a ctypes function, a cffi function pointer, a numba.cfunc or an address, not {function!r}; "
        "for a function of a cffi library pass ffi.addressof(lib, 'name')"
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
            f"c_kernel: {pointer!r} is not a pointer; pass ffi.addressof(lib, 'name')"
        ) from None


def _read_prototype(function: object) -> str:
    """Write the C signature of a ctypes function whose parameters and result are numbers."""
    types = getattr(function, "argtypes", None)
    result = getattr(function, "restype", None)
    if not types or any(ctype not in _C_NAMES for ctype in (*types, result)):
        raise ArgumentError(
            "c_kernel: the function does not declare numbers as its argtypes and restype; pass its signature, such as "
            "'double(double)' or 'void(const float *x, float *out, int64_t x.size)'"
        )
    return f"{_C_NAMES[result]}({', '.join(_C_NAMES[ctype] for ctype in types)})"


# -- LLVM --------------------------------------------------------------------------------------------------------------
class LlvmKernel:
    """A kernel implemented by a scalar function in LLVM IR; each operator has a copy with its own name."""

    def __init__(self, source: object, signature: CSignature | None):
        self.source, self.signature = source, signature
        self.parsed = parse_function(
            source, signature, "checked"
        )  # report LLVM's errors here, not at the first call

    def bind(self, op: Operator) -> Function:
        """Return the kernel for an operator's dispatch table."""
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
        raise BackendUnavailableError(f"llvm_kernel needs native code, which is off: {off}")
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
                "cuda_kernel takes CUDA C source as a str, and the name of a __global__ function in it"
            )
        if "__global__" not in source or name not in source:
            raise ValueArgumentError(f"cuda_kernel: the source has no __global__ function called {name!r}")
        self.source, self.name = source, name
        self.signature = None if signature is None else parse_c_signature(signature)
        _compile_with_nvrtc(source, name)

    def bind(self, op: Operator) -> Function:
        """Return the kernel for an operator's dispatch table.

        Raises:
            SchemaError: the signature has a name that is not in the operator's schema.
        """
        op_name = op.name
        arguments = None if self.signature is None else bind_parameters(op.schema, self.signature)
        launchers: list[Function] = []

        def kernel(*args: object, **kwargs: object) -> object:
            missing = cuda.tools.missing_requirements()
            if missing:
                raise BackendUnavailableError(
                    f"{op_name}: its CUDA kernel {self.name!r} needs a CUDA backend, and {'; '.join(missing)}; on "
                    'the CPU register a kernel for "cpu"'
                )
            if arguments is None:
                raise ArgumentError(
                    f"{op_name}: its CUDA kernel {self.name!r} has no signature; pass one: cuda_kernel(source, name, "
                    "'void(const float *x, float *out, int64_t out.size)')"
                )
            if not launchers:
                launchers.append(cuda_foreign.user_kernel(op, self.source, self.name, arguments))
            return launchers[0](*args, **kwargs)

        kernel.__qualname__ = f"cuda_{self.name}"
        kernel.cuda = self  # type: ignore[attr-defined]
        kernel.is_trusted_kernel = True  # type: ignore[attr-defined]
        return kernel

    def __repr__(self) -> str:
        return f"<CUDA kernel {self.name}>"


# An argument of register_kernel: a function of tensors, or a kernel of this module.
KernelLike = Callable[..., object] | NumpyKernel | CKernel | LlvmKernel | CudaKernel


def _compile_with_nvrtc(source: str, name: str) -> None:
    """Compile the source with NVRTC if it is installed, to report errors early."""
    if not lazy.is_installed("cupy"):
        return
    try:
        nvrtc = cupy_cuda.nvrtc
        program = nvrtc.createProgram(source, f"{name}.cu", (), ())
    except (ImportError, AttributeError, OSError, RuntimeError):  # cupy is installed without NVRTC
        return
    try:
        nvrtc.compileProgram(program, ("--gpu-architecture=compute_80",))
    except nvrtc.NVRTCError:
        log = nvrtc.getProgramLog(program)
        raise ValueArgumentError(f"cuda_kernel: {name} does not compile:\n{log}") from None
    finally:
        nvrtc.destroyProgram(program)
