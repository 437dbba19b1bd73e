"""Operators that the array library (cupy) computes by the array kernels of their declarations: sorts, FFTs, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....eager.tensor.tensor import Tensor
from ....errors import BackendUnavailableError, OutOfMemoryError
from ....operators.creation.devices import INSTALL
from ....operators.declare.shape_rules import compute_dtype, operand_dtypes
from ....operators.scalar_ir.expr import Expr, constant_value, order
from ....operators.scalar_ir.nodes import instantiate
from ....operators.scalar_ir.numpy_evaluation import UFUNCS
from ....registry.dtypes import DType, bfloat16, float32
from ....registry.operator import Operator
from ....registry.values import TensorSpec
from ....tracer.infer import specs_of
from ..runtime.api import translate_cupy_errors
from ..runtime.arrays import contiguous_layout, empty
from ..runtime.memory import retry_out_of_memory
from ..runtime.streams import stream_at
from .casting import copy_array
from .library import ArrayLibrary, library
from .operands import check_devices, device_index, flatten, spec_here
from .tensor import CudaTensor, cuda_tensor


def evaluate(op: Operator, args: tuple[Any, ...]) -> CudaTensor:
    """Evaluate an elementwise operator whose body has no CUDA C, node by node."""
    decl, name = op.decl, op.schema.name
    args = check_devices(name, args, constants=True)
    index = device_index(name, args)
    known = tuple(spec_here(one, index) for one in args)
    spec = decl.shape_rule(*known)
    operands = operand_dtypes(decl, compute_dtype(name, decl.result, decl.dtypes, known), len(args))
    root = instantiate(decl.body, operands, spec.dtype)
    results = library()
    with results.on(index):
        values = [_convert_operand(results, one, dtype) for one, dtype in zip(args, operands)]
        result = _evaluate_body(results, root, values)
        whole = results.xp.broadcast_to(result, spec.shape).astype(spec.dtype.np)
        return cuda_tensor(results.adopt(whole, index))


def _convert_operand(arrays: ArrayLibrary, value: Any, dtype: DType) -> Any:
    if type(value) is CudaTensor:
        return arrays.view(value._data).astype(dtype.np)
    raw = value._array if isinstance(value, Tensor) else np.asarray(value)
    return arrays.xp.asarray(raw.astype(dtype.np))


def _evaluate_body(arrays: ArrayLibrary, root: Expr, operands: list[Any]) -> Any:
    values: dict[Expr, Any] = {}
    for expr in order(root):
        given = [values[one] for one in expr.args]
        if expr.op == "arg":
            values[expr] = operands[expr.payload]
        elif expr.op == "const":
            values[expr] = constant_value(expr)
        elif expr.op == "cast":
            values[expr] = _cast_array(arrays, given[0], expr.dtype)
        elif expr.op == "complex":
            values[expr] = _make_complex(arrays.xp, given[0], given[1], expr.dtype)
        else:
            values[expr] = UFUNCS[expr.op](*given)
    return values[root]


def _make_complex(xp: Any, real: Any, imaginary: Any, dtype: DType) -> Any:
    """Complex numbers from their parts; ``real + 1j * imaginary`` would turn an infinite part into NaN."""
    real, imaginary = xp.broadcast_arrays(xp.asarray(real), xp.asarray(imaginary))
    result = xp.empty(real.shape, dtype.np)
    result.real, result.imag = real, imaginary
    return result


def _cast_array(arrays: ArrayLibrary, value: Any, dtype: DType) -> Any:
    array = arrays.xp.asarray(value)
    return (array.real if array.dtype.kind == "c" and dtype.kind not in "bc" else array).astype(dtype.np)


def library_kernel(op: Operator) -> Callable[..., Any]:
    """The kernel of an operator that declares an array kernel, run by the array library.

    bfloat16, which the library may not support, is computed as float32 and rounded once.
    """
    decl, name = op.decl, op.schema.name
    by_position = decl.kind in ("gather", "scatter") or op.schema.namespace == "sparse"

    def kernel(*args: Any, **options: Any) -> Any:
        args = check_devices(name, args, decl.kind == "quantized", by_position)
        index = device_index(name, flatten(args))
        spec = decl.shape_rule(*(spec_here(value, index) for value in args), **options)
        declared = specs_of(spec)
        if not any(math.prod(one.shape) for one in declared):  # cuFFT and others do not support empty arrays
            results = tuple(cuda_tensor(empty(contiguous_layout(s.shape, s.dtype, index))) for s in declared)
            return results[0] if isinstance(spec, TensorSpec) else results
        arrays = library()

        def run() -> Any:
            with arrays.on(index):
                given = [_to_library(arrays, value) for value in args]
                return _wrap_results(arrays, decl.kernel(arrays.xp, *given, **options), spec, index)

        return call_library(name, index, run)

    return kernel


def call_library(name: str, index: int, run: Callable[[], Any]) -> Any:
    """Call the array library; if memory runs out, free the cache and call it again.

    Raises:
        OutOfMemoryError: the device has no memory for it.
        BackendUnavailableError: a library that cupy needs is not installed.
    """

    def checked() -> Any:
        with translate_cupy_errors(name):
            return run()

    try:
        return retry_out_of_memory(checked, index)
    except ImportError as fault:
        raise BackendUnavailableError(
            f"{name}: cupy cannot load a library of the CUDA toolkit: {fault}; {INSTALL} brings them"
        ) from None
    except OutOfMemoryError as fault:
        raise OutOfMemoryError(f"{name}: cuda:{index} has no memory for it: {fault}") from None


def _to_library(arrays: ArrayLibrary, value: Any) -> Any:
    if type(value) is tuple:
        return tuple([_to_library(arrays, one) for one in value])
    if isinstance(value, CudaTensor):
        data = value._data
        data.buffer.used_by(stream_at(data.layout.index))
        return arrays.view(copy_array(data, float32) if data.dtype is bfloat16 else data)
    return arrays.xp.asarray(value._array) if isinstance(value, Tensor) else value


def _wrap_results(arrays: ArrayLibrary, result: Any, spec: Any, index: int) -> Any:
    if isinstance(result, tuple):
        return tuple(_wrap_results(arrays, one, its, index) for one, its in zip(result, spec))
    array = arrays.adopt(result, index)
    return cuda_tensor(array if array.dtype is spec.dtype else copy_array(array, spec.dtype))
