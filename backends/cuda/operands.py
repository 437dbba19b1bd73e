"""What kernels get: arrays of one device, and numbers that are passed by value."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...eager.tensor import Tensor
from ...errors import DeviceError
from ...operators.devices import elsewhere as elsewhere
from ...operators.quiet import quietly
from ...registry.dtypes import DType, float32
from ...registry.values import TensorSpec
from .copies import to_device
from .tensor import CudaTensor, cuda_tensor


def is_constant(value: Any) -> bool:
    """Whether a tensor on the host is as good as a number: 0-d, and without history."""
    return type(value) is Tensor and not value.shape and not value.requires_grad


def bits_of(value: Any, dtype: DType) -> int:
    """A Python number, or the element of a constant, as the bits of an element of a dtype."""
    if dtype is float32 and type(value) is float:
        return int(ctypes.c_uint32.from_buffer(ctypes.c_float(value)).value)
    if isinstance(value, Tensor):
        value = value._array
    elif dtype.kind == "f" and type(value) is int:
        value = float(value)
    return int.from_bytes(quietly(np.asarray(value).astype, dtype.np).tobytes(), "little")


def device_index(name: str, values: Iterable[Any]) -> int:
    """The number of the one device that the tensors of a call lie on.

    Raises:
        DeviceError: they lie on several.
    """
    found: CudaTensor | None = None
    for value in values:
        if type(value) is CudaTensor:
            if found is not None and value._data.layout.index != found._data.layout.index:
                raise elsewhere(name, value, found)
            found = value
    if found is None:
        raise DeviceError(f"{name}: no argument lies on a CUDA device")
    return found._data.layout.index


def flattened(args: Iterable[Any]) -> Iterable[Any]:
    """The values of a call, those in lists one by one."""
    for value in args:
        if type(value) is tuple:
            yield from value
        else:
            yield value


def placed(name: str, args: tuple[Any, ...], constants: bool, indices: bool = False) -> tuple[Any, ...]:
    """Arguments that all lie on one device.

    Args:
        name: of the operator.
        args: its bound arguments.
        constants: whether constants on the host are as good as numbers; they stay where they are.
        indices: whether integer tensors on the host are brought to the device, since positions are often written as a
            list.

    Raises:
        DeviceError: an argument lies elsewhere.
    """
    index = device_index(name, flattened(args))
    first = next(value for value in flattened(args) if type(value) is CudaTensor)
    return tuple([_place(name, value, index, first, constants, indices) for value in args])


def _place(name: str, value: Any, index: int, first: Any, constants: bool, indices: bool) -> Any:
    if type(value) is tuple:
        return tuple([_place(name, one, index, first, constants, indices) for one in value])
    if not isinstance(value, Tensor) or type(value) is CudaTensor:
        return value
    if constants and is_constant(value):
        return value
    if indices and type(value) is Tensor and value.dtype.is_integer:
        return cuda_tensor(to_device(value._array, index))
    raise elsewhere(name, value, first)


def spec_here(value: Any, index: int) -> Any:
    """What stands for an argument in a shape rule: constants count as lying on the device."""
    if type(value) is Tensor:
        return TensorSpec(value.shape, value.dtype, f"cuda:{index}")
    return tuple(spec_here(one, index) for one in value) if type(value) is tuple else value
