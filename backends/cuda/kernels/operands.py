"""Operands of kernels: checks of their devices, and the bits of numbers that are passed by value."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np

from ....eager.tensor.tensor import Tensor
from ....errors import DeviceError
from ....operators.declare.quiet import call_quietly
from ....operators.declare.shape_rules import device_mismatch_error as device_mismatch_error
from ....registry.dtypes import DType, float32
from ....registry.values import TensorSpec
from ..runtime.copies import to_device
from .tensor import CudaTensor, cuda_tensor


def is_constant(value: Any) -> bool:
    """Whether a tensor on the host may be used like a number: 0-d, and requires no gradient."""
    return type(value) is Tensor and not value.shape and not value.requires_grad


def bits_of(value: Any, dtype: DType) -> int:
    """A Python number, or the element of a constant, as the bits of an element of a dtype."""
    if dtype is float32 and type(value) is float:
        return int(ctypes.c_uint32.from_buffer(ctypes.c_float(value)).value)
    if isinstance(value, Tensor):
        value = value._array
    elif dtype.kind == "f" and type(value) is int:
        value = float(value)
    return int.from_bytes(call_quietly(np.asarray(value).astype, dtype.np).tobytes(), "little")


def device_index(name: str, values: Iterable[Any]) -> int:
    """The number of the device of all CUDA tensors of a call.

    Raises:
        DeviceError: the tensors are on several devices, or none is on a CUDA device.
    """
    current: CudaTensor | None = None
    for value in values:
        if type(value) is CudaTensor:
            if current is not None and value._data.layout.index != current._data.layout.index:
                raise device_mismatch_error(name, value, current)
            current = value
    if current is None:
        raise DeviceError(f"{name}: no argument is on a CUDA device")
    return current._data.layout.index


def flatten(args: Iterable[Any]) -> Iterable[Any]:
    """The arguments of a call, with tuples flattened."""
    for value in args:
        if type(value) is tuple:
            yield from value
        else:
            yield value


def check_devices(
    name: str, args: tuple[Any, ...], constants: bool, indices: bool = False
) -> tuple[Any, ...]:
    """Check that all tensors of a call are on one device, and return the arguments.

    Args:
        name: of the operator.
        args: its bound arguments.
        constants: whether constants on the host are accepted; they are not moved.
        indices: whether integer tensors on the host are copied to the device, since indices are often lists.

    Raises:
        DeviceError: an argument is on another device.
    """
    index = device_index(name, flatten(args))
    first = next(value for value in flatten(args) if type(value) is CudaTensor)
    return tuple([_move_operand(name, value, index, first, constants, indices) for value in args])


def _move_operand(name: str, value: Any, index: int, first: Any, constants: bool, indices: bool) -> Any:
    if type(value) is tuple:
        return tuple([_move_operand(name, one, index, first, constants, indices) for one in value])
    if not isinstance(value, Tensor) or type(value) is CudaTensor:
        return value
    if constants and is_constant(value):
        return value
    if indices and type(value) is Tensor and value.dtype.is_integer:
        return cuda_tensor(to_device(value._array, index))
    raise device_mismatch_error(name, value, first)


def spec_here(value: Any, index: int) -> Any:
    """The argument of a shape rule: constants on the host count as being on the device."""
    if type(value) is Tensor:
        return TensorSpec(value.shape, value.dtype, f"cuda:{index}")
    return tuple(spec_here(one, index) for one in value) if type(value) is tuple else value
