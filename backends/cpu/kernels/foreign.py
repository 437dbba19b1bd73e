"""Eager kernels written in C or LLVM IR: a C function is called through ctypes, a scalar function from a loop."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import lazy
from ....eager.tensor.tensor import Tensor, wrap
from ....errors import BackendUnavailableError, DTypeError, ShapeError
from ....operators.declare.shape_rules import broadcast_shapes
from ....operators.foreign.functions import BufferFunction, ParameterBinding, ScalarFunction, accepts_number
from ....operators.scalar_ir.expr import Expr, arg
from ....registry.dtypes import DType, check_range
from ....registry.operator import Operator
from ....registry.values import TensorSpec, describe
from ....tracer.infer import infer, specs_of

fastpath = lazy.Module(".backends.cpu.fastpath")
foreign_loops = lazy.Module(".backends.cpu.kernels.foreign_loops")

C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    **{f"{u}int{n}": getattr(ctypes, f"c_{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)},
}


def make_call_expr(function: ScalarFunction) -> Expr:
    """Return a scalar function as an expression of its arguments."""
    operands = tuple(arg(index, dtype) for index, dtype in enumerate(function.params))
    return Expr("call", operands, function.result, function)


def operand_array(op: Operator, index: int, value: Any, dtype: DType) -> Any:
    """Return the array of an argument, which must have a given dtype; a number becomes an array.

    Raises:
        DTypeError: the tensor is of another dtype.
        ScalarOverflowError: a Python integer does not fit.
    """
    if isinstance(value, Tensor):
        if value.dtype is not dtype:
            name = op.schema.arguments[index].name
            raise DTypeError(
                f"{op.name}: its kernel takes {dtype.name} for {name!r}, not {describe(value)}; cast it with "
                f"{name}.astype(td.{dtype.name}), or register a kernel for {value.dtype.name}"
            )
        return value._array
    return np.asarray(to_c_number(op, dtype, value), dtype.np)


class ScalarKernel:
    """A kernel that applies a scalar function to broadcast tensors."""

    is_trusted_kernel = True  # it accepts Python numbers and allocates its results
    is_machine_code = True  # compiled code calls it, or contains it

    def __init__(self, op: Operator, function: ScalarFunction, keep: Any):
        self.op, self.function, self._keep = op, function, keep
        self.__qualname__ = f"{function.language.lower()}_{op.schema.name}"
        self._loop: Callable[..., None] | None = None

    def __call__(self, *args: Any) -> Tensor:
        dtypes = self.function.params
        arrays = [operand_array(self.op, k, a, dtype) for k, (a, dtype) in enumerate(zip(args, dtypes))]
        shape = broadcast_shapes(self.op.schema.name, *(a.shape for a in arrays))
        out = np.empty(shape, self.function.result.np)
        if out.size:
            self._run(arrays, out)
        return wrap(out)

    def _run(self, arrays: list[Any], out: Any) -> None:
        if self._loop is None:
            self._loop = self._make_loop()
        self._loop(arrays, out)

    def _make_loop(self) -> Callable[..., None]:
        off = fastpath.why_off()
        if not off:
            return compile_scalar_loop(self.function, self)
        if self.function.ir:
            raise BackendUnavailableError(
                f"{self.op.name}: its kernel is LLVM IR, and native code is off ({off}); register a Python kernel"
            )
        return _make_portable_loop(self.function)

    def named(self, *args: Any) -> TensorSpec:
        """Return the spec of the result."""
        specs = [TensorSpec(a.shape, a.dtype, a.device) for a in args if hasattr(a, "shape")]
        shape = broadcast_shapes(self.op.schema.name, *(spec.shape for spec in specs))
        return TensorSpec(shape, self.function.result, specs[0].device if specs else "cpu")


def _make_portable_loop(function: ScalarFunction) -> Callable[..., None]:
    """Return a loop that calls the function through ctypes for each element."""
    call = _c_function(function.address, function.result, function.params)

    def loop(arrays: list[Any], out: Any) -> None:
        operands = [np.broadcast_to(array, out.shape).flat for array in arrays]
        out[...] = np.fromiter(map(call, *operands), out.dtype, out.size).reshape(out.shape)

    return loop


def compile_scalar_loop(function: ScalarFunction, owner: Any) -> Callable[..., None]:
    """Return an emitted loop that calls, or has inlined, the function."""
    code = foreign_loops.compile_loop(function, make_call_expr(function))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(code["loop"])

    def loop(arrays: list[Any], out: Any) -> None:
        whole = [
            a if a.size == 1 else np.ascontiguousarray(np.broadcast_to(a, out.shape)) for a in arrays
        ] + [out]
        pointers = (ctypes.c_void_p * len(whole))(*(a.ctypes.data for a in whole))
        sizes = (ctypes.c_int64 * 2)(1, out.size)
        steps = [(0, 0 if a.size == 1 and a is not out else a.itemsize) for a in whole]
        strides = (ctypes.c_int64 * (2 * len(whole)))(*(step for pair in steps for step in pair))
        run(pointers, sizes, strides)

    loop.code = code, owner  # type: ignore[attr-defined]  # live as long as the loop
    return loop


def _c_function(address: int, result: DType | None, params: Any) -> Any:
    kinds = [C_TYPES[dtype.name] for dtype in params]
    return ctypes.CFUNCTYPE(None if result is None else C_TYPES[result.name], *kinds)(address)


class BufferKernel:
    """A kernel that calls a C function of data pointers; results are allocated as the fake declares them."""

    is_trusted_kernel = True
    is_machine_code = True

    def __init__(self, op: Operator, function: BufferFunction, keep: Any):
        self.op, self.function, self._keep = op, function, keep
        self.__qualname__ = f"c_{op.schema.name}"
        kinds = [
            ctypes.c_void_p if p.is_pointer else C_TYPES[p.dtype.name] for p in function.signature.params
        ]
        self._call = ctypes.CFUNCTYPE(None, *kinds)(function.address)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        declared = infer(self.op, _to_specs(args), {name: _to_specs(v) for name, v in kwargs.items()})
        results = [np.empty(spec.shape, spec.dtype.np) for spec in specs_of(declared)]
        kept: list[Any] = []
        changed: list[tuple[Any, Any]] = []
        given = [
            self._convert_argument(binding, args, kwargs, results, kept, changed)
            for binding in self.function.bindings
        ]
        self._call(*given)
        for target, copy in changed:
            np.copyto(target, copy)
        if declared is None:
            return None
        return wrap(results[0]) if isinstance(declared, TensorSpec) else tuple(map(wrap, results))

    def _convert_argument(
        self,
        binding: ParameterBinding,
        args: Any,
        kwargs: Any,
        results: list[Any],
        kept: list[Any],
        changed: list[Any],
    ) -> Any:
        """Return the value of one C parameter.

        Args:
            kept: receives arrays that must live until the call returns.
            changed: receives (array, copy) pairs; each copy is written back after the call.
        """
        value = binding.select(args, kwargs, results)
        if not binding.param.is_pointer:
            return to_c_number(self.op, binding.param.dtype, _number_of(binding, value))
        if value is None:
            return None
        array = (
            value
            if binding.result_index >= 0
            else operand_array(self.op, self._argument_index(binding), value, binding.param.dtype)
        )
        if array.dtype != binding.param.dtype.np:
            raise DTypeError(
                f"{self.op.name}: its kernel writes {binding.param.dtype.name}, but the fake declares {array.dtype}"
            )
        whole = np.ascontiguousarray(array)
        kept.append(whole)
        if not binding.param.is_const and whole is not array:
            changed.append((array, whole))
        return whole.ctypes.data

    def _argument_index(self, binding: ParameterBinding) -> int:
        names = [argument.name for argument in self.op.schema.arguments]
        return names.index(binding.kwarg_name or self.op.schema.positional[binding.arg_index].name)


def _number_of(binding: ParameterBinding, value: Any) -> Any:
    """Return a size of an argument or a result, or the number itself."""
    if not binding.param.what:
        return value
    if value is None and binding.param.what != "shape":
        return 0  # an optional argument that is not given
    shape = np.shape(value) if not hasattr(value, "shape") else value.shape
    return measure(binding, tuple(shape))


def measure(binding: ParameterBinding, shape: tuple[int, ...]) -> int:
    """Return the size that a parameter asks for.

    Raises:
        ShapeError: there is no such axis.
    """
    if binding.param.what == "shape" and not -len(shape) <= binding.param.axis < len(shape):
        raise ShapeError(f"a kernel asks for {binding.param}, and the shape is {shape}")
    if binding.param.what == "size":
        return int(np.prod(shape, dtype=np.int64))
    return len(shape) if binding.param.what == "ndim" else shape[binding.param.axis]


def to_c_number(op: Operator, dtype: DType, value: Any) -> Any:
    """Check a Python number for a C parameter, and return it.

    Raises:
        DTypeError: it is not a number of that kind.
        ScalarOverflowError: it does not fit.
    """
    if dtype.is_integer and type(value) is int:
        check_range(dtype, value)
    elif not accepts_number(dtype, value):
        raise DTypeError(f"{op.name}: its kernel takes a number of type {dtype.name}, not {describe(value)}")
    return value


def _to_specs(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.spec
    return tuple(map(_to_specs, value)) if type(value) is tuple else value
