"""Eager calls of users' kernels in CUDA C: results from the operator's fake, one thread for each element."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ....eager.tensor.tensor import Tensor
from ....errors import DTypeError
from ....operators.foreign.functions import ParameterBinding
from ....registry.operator import Operator
from ....registry.values import TensorSpec, describe
from ....tracer.infer import infer, specs_of
from ...cpu.kernels.foreign import C_TYPES, measure, to_c_number
from ..runtime.arrays import DeviceArray, contiguous_layout, empty
from ..runtime.compiler import USER_OPTIONS
from ..runtime.launching import launch_function, load_module
from .casting import contiguous, convert_into
from .operands import device_index, flatten
from .tensor import cuda_tensor

THREADS = 256


def user_kernel(
    op: Operator, source: str, name: str, bindings: Sequence[ParameterBinding]
) -> Callable[..., Any]:
    """The kernel of an operator.

    Args:
        op: the operator.
        source: CUDA C.
        name: of the ``__global__`` function in it.
        bindings: the argument of each of its parameters.
    """

    def kernel(*args: Any, **kwargs: Any) -> Any:
        index = device_index(op.schema.name, flatten((*args, *kwargs.values())))
        declared = infer(op, _specs(args), {key: _specs(value) for key, value in kwargs.items()})
        results = [empty(contiguous_layout(s.shape, s.dtype, index)) for s in specs_of(declared)]
        kept: list[DeviceArray] = []
        changed: list[tuple[DeviceArray, DeviceArray]] = []
        cells = [
            _to_parameter(op, binding, binding.select(args, kwargs, results), kept, changed)
            for binding in bindings
        ]
        written = [*results, *(copy for _, copy in changed)] or kept
        count = max((a.layout.size for a in written), default=0)
        if count:
            function = load_module(source, index, USER_OPTIONS).function(name)
            launch_function(function, index, (-(-count // THREADS), 1, 1, THREADS, 1, 1, 0), cells, kept)
        for target, copy in changed:
            if target is not copy:
                convert_into(target, copy)
        tensors = tuple(map(cuda_tensor, results))
        return None if declared is None else tensors[0] if isinstance(declared, TensorSpec) else tensors

    return kernel


def _to_parameter(
    op: Operator,
    binding: ParameterBinding,
    value: Any,
    kept: list[DeviceArray],
    changed: list[tuple[DeviceArray, DeviceArray]],
) -> Any:
    """The value of one parameter as a ctypes object.

    Args:
        op: the operator.
        binding: the parameter.
        value: its argument.
        kept: collects the arrays of the call.
        changed: collects (array, contiguous copy) of the arrays that the kernel writes.
    """
    if not binding.param.is_pointer:
        current = value
        if binding.param.what:
            current = 0 if value is None else measure(binding, tuple(getattr(value, "shape", ())))
        return C_TYPES[binding.param.dtype.name](to_c_number(op, binding.param.dtype, current))
    if value is None:
        return ctypes.c_uint64(0)
    array = value if isinstance(value, DeviceArray) else getattr(value, "_data", None)
    if not isinstance(array, DeviceArray) or array.dtype is not binding.param.dtype:
        raise DTypeError(
            f"{op.name}: its kernel takes {binding.param.dtype.name} on a CUDA device for {binding.param}, not "
            f"{describe(value)}"
        )
    whole = contiguous(array)
    kept.append(whole)
    if not binding.param.is_const and binding.result_index < 0:
        changed.append((array, whole))
    return ctypes.c_uint64(whole.ptr)


def _specs(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.spec
    return tuple(map(_specs, value)) if type(value) is tuple else value
