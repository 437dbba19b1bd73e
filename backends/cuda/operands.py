"""What kernels get: arrays of one device, and numbers that are passed by value."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...eager.tensor import Tensor
from ...errors import DeviceError
from ...operators.quiet import quietly
from ...registry.dtypes import HALVES, DType
from ...registry.values import TensorSpec, describe
from .copies import to_device
from .tensor import CudaTensor, cuda_tensor

CELLS: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float16": ctypes.c_uint16,
    "bfloat16": ctypes.c_uint16,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
"""By dtype: the C type of a number that is passed by value; 16-bit floats go as their bits."""


def is_constant(value: Any) -> bool:
    """Whether a tensor on the host is as good as a number: 0-d, and without history."""
    return type(value) is Tensor and not value.shape and not value.requires_grad


def number_of(value: Any, dtype: DType) -> Any:
    """A Python number, or the element of a constant, as the Python number that a cell of a dtype takes."""
    if isinstance(value, Tensor):
        value = value._array
    elif dtype.kind == "f" and type(value) is int:
        value = float(value)
    found = quietly(np.asarray(value).astype, dtype.np)
    return found.view(np.uint16).item() if dtype in HALVES else found.item()


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


def elsewhere(name: str, value: Any, other: Any) -> DeviceError:
    """The error of two tensors on two devices."""
    return DeviceError(
        f"{name}: {describe(value)} lies on {value.device} and {describe(other)} on {other.device}; move one of them "
        f"with .to({other.device!r})"
    )


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
