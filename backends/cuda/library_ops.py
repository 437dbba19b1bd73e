"""Operators that the array library serves: its arrays on the same memory, the declaration's array kernel, a tensor."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.tensor import Tensor
from ...errors import BackendUnavailableError, OutOfMemoryError
from ...operators.devices import INSTALL
from ...operators.expr import Expr, constant_value, order
from ...operators.rules import compute_dtype, operand_dtypes
from ...operators.scalar import instantiate
from ...operators.scalar_numpy import UFUNCS
from ...registry.dtypes import DType, bfloat16, float32
from ...registry.operator import Operator
from ...registry.values import TensorSpec
from ...tracer.infer import specs_of
from .arrays import contiguous_layout, empty
from .casting import copied
from .library import ArrayLibrary, library
from .memory import empty_cache, is_out_of_memory
from .operands import device_index, flattened, placed, spec_here
from .streams import stream_at
from .tensor import CudaTensor, cuda_tensor


def evaluate(op: Operator, args: tuple[Any, ...]) -> CudaTensor:
    """An elementwise operator whose body has no CUDA C, node by node."""
    decl, name = op.decl, op.schema.name
    args = placed(name, args, constants=True)
    index = device_index(name, args)
    known = tuple(spec_here(one, index) for one in args)
    spec = decl.meta(*known)
    operands = operand_dtypes(decl, compute_dtype(name, decl.result, decl.dtypes, known), len(args))
    root = instantiate(decl.body, operands, spec.dtype)
    found = library()
    with found.on(index):
        values = [_operand(found, one, dtype) for one, dtype in zip(args, operands)]
        result = _computed(found, root, values)
        whole = found.xp.broadcast_to(result, spec.shape).astype(spec.dtype.np)
        return cuda_tensor(found.adopt(whole, index))


def _operand(found: ArrayLibrary, value: Any, dtype: DType) -> Any:
    if type(value) is CudaTensor:
        return found.view(value._data).astype(dtype.np)
    raw = value._array if isinstance(value, Tensor) else np.asarray(value)
    return found.xp.asarray(raw.astype(dtype.np))


def _computed(found: ArrayLibrary, root: Expr, operands: list[Any]) -> Any:
    values: dict[Expr, Any] = {}
    for expr in order(root):
        given = [values[one] for one in expr.args]
        if expr.op == "arg":
            values[expr] = operands[expr.payload]
        elif expr.op == "const":
            values[expr] = constant_value(expr)
        elif expr.op == "cast":
            values[expr] = _cast(found, given[0], expr.dtype)
        elif expr.op == "complex":
            values[expr] = _complex(found.xp, given[0], given[1], expr.dtype)
        else:
            values[expr] = UFUNCS[expr.op](*given)
    return values[root]


def _complex(xp: Any, real: Any, imaginary: Any, dtype: DType) -> Any:
    """Complex numbers of their parts; of a sum, an infinite part would make the other NaN."""
    real, imaginary = xp.broadcast_arrays(xp.asarray(real), xp.asarray(imaginary))
    made = xp.empty(real.shape, dtype.np)
    made.real, made.imag = real, imaginary
    return made


def _cast(found: ArrayLibrary, value: Any, dtype: DType) -> Any:
    array = found.xp.asarray(value)
    return (array.real if array.dtype.kind == "c" and dtype.kind not in "bc" else array).astype(dtype.np)


def library_kernel(op: Operator) -> Callable[..., Any]:
    """The kernel of an operator that declares an array kernel, run by the array library.

    16-bit floats that the library may not know (bfloat16) are computed as float32 and rounded once.
    """
    decl, name = op.decl, op.schema.name
    by_position = decl.kind in ("gather", "scatter") or op.schema.namespace == "sparse"

    def kernel(*args: Any, **options: Any) -> Any:
        args = placed(name, args, decl.kind == "quantized", by_position)
        index = device_index(name, flattened(args))
        spec = decl.meta(*(spec_here(value, index) for value in args), **options)
        promised = specs_of(spec)
        if not any(math.prod(one.shape) for one in promised):  # cuFFT and others refuse what is empty
            made = tuple(cuda_tensor(empty(contiguous_layout(s.shape, s.dtype, index))) for s in promised)
            return made[0] if isinstance(spec, TensorSpec) else made
        found = library()

        def run() -> Any:
            with found.on(index):
                given = [_payload(found, value) for value in args]
                return _wrapped(found, decl.kernel(found.xp, *given, **options), spec, index)

        return guarded(name, index, run)

    return kernel


def guarded(name: str, index: int, run: Callable[[], Any]) -> Any:
    """What a call of the array library gives; it is tried again with the cache given back if memory runs out.

    Raises:
        OutOfMemoryError: the device has no memory for it.
        BackendUnavailableError: a library that cupy needs is not installed.
    """
    try:
        return run()
    except ImportError as fault:
        raise BackendUnavailableError(
            f"{name}: cupy cannot load a library of the CUDA toolkit: {fault}; {INSTALL} brings them"
        ) from None
    except Exception as fault:
        if not is_out_of_memory(fault):
            raise
    gc.collect()
    empty_cache()
    try:
        return run()
    except Exception as fault:
        if not is_out_of_memory(fault) or isinstance(fault, OutOfMemoryError):
            raise
        raise OutOfMemoryError(f"{name}: cuda:{index} has no memory for it: {fault}") from None


def _payload(found: ArrayLibrary, value: Any) -> Any:
    if type(value) is tuple:
        return tuple([_payload(found, one) for one in value])
    if isinstance(value, CudaTensor):
        data = value._data
        data.buffer.used_by(stream_at(data.layout.index))
        return found.view(copied(data, float32) if data.dtype is bfloat16 else data)
    return found.xp.asarray(value._array) if isinstance(value, Tensor) else value


def _wrapped(found: ArrayLibrary, result: Any, spec: Any, index: int) -> Any:
    if isinstance(result, tuple):
        return tuple(_wrapped(found, one, its, index) for one, its in zip(result, spec))
    made = found.adopt(result, index)
    return cuda_tensor(made if made.dtype is spec.dtype else copied(made, spec.dtype))
