"""Operators on the device that read and write by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...eager.tensor import Tensor
from ...operators.gathering import index_shape
from ...operators.rules import normalize_axis
from ...operators.slicing import plan_shape
from ...registry.dtypes import bool_, int64
from ...registry.keys import CUDA_KEYS
from ...registry.operator import Operator, operators
from .arrays import DeviceArray, overlap
from .casting import contiguous, convert_into, copied
from .copies import to_host
from .gathers import accumulator, gather, nonzero, scatter, scatter_add
from .making import number
from .operands import elsewhere, placed
from .tensor import CudaTensor, cuda_tensor
from .views import broadcast, planned


def beside(value: Any, tensor: CudaTensor) -> Any:
    """What stands for a value in a shape rule: a constant on the host counts as lying beside a tensor."""
    return value.spec._replace(device=tensor.device) if type(value) is Tensor else value


def positions(indices: Sequence[Any], index: int) -> list[DeviceArray]:
    """Index tensors, and numbers, as arrays of int64 on a device."""
    return [
        contiguous(one._data, int64) if type(one) is CudaTensor else number(one, int64, index)
        for one in indices
    ]


def value_array(value: Any, like: DeviceArray) -> DeviceArray:
    """A value to write as an array of the dtype of what is written, apart from its memory."""
    if type(value) is not CudaTensor:
        return number(value, like.dtype, like.layout.index)
    data = value._data
    if data.dtype is like.dtype and not overlap(data, like):
        return data
    return copied(data, like.dtype)


def added(one: DeviceArray, other: DeviceArray) -> DeviceArray:
    """The sum of two arrays of one dtype; of booleans, whether one is true."""
    name = "td::bitwise_or.Tensor" if one.dtype is bool_ else "td::add.Tensor"
    found: Any = operators[name].dispatch(CUDA_KEYS, (cuda_tensor(one), cuda_tensor(other)), {})
    return found._data  # type: ignore[no-any-return]


# -- by a plan ---------------------------------------------------------------------------------------------------------
def put(target: DeviceArray, value: Any, plan: Any, accumulate: bool) -> None:
    """Write a value to the elements that a plan selects, or add it to them."""
    place = planned(target, plan_shape(plan), plan)
    given = value_array(value, target)
    convert_into(place, added(place, broadcast(given, place.shape)) if accumulate else given)


def basic_put_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``basic_put``."""

    def kernel(self: Any, value: Any, plan: Any, *, accumulate: bool) -> CudaTensor:
        self, value = _both("basic_put", self, value)
        op.decl.meta(self, beside(value, self), plan, accumulate=accumulate)
        made = copied(self._data)
        put(made, value, plan, accumulate)
        return cuda_tensor(made)

    return kernel


def _both(name: str, self: Any, value: Any) -> tuple[Any, Any]:
    self, value = placed(name, (self, value), constants=True)
    if type(self) is not CudaTensor:
        raise elsewhere(name, self, value)
    return self, value


# -- by index tensors --------------------------------------------------------------------------------------------------
def index_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``index``."""

    def kernel(self: Any, indices: Any, axis: int) -> CudaTensor:
        self, indices = placed("index", (self, indices), constants=False, indices=True)
        op.decl.meta(self, indices, axis)
        start = normalize_axis("index", axis, len(self.shape))
        selected = index_shape("index", self.shape, indices, axis)
        shape = selected[start : len(selected) - (len(self.shape) - start - len(indices))]
        return cuda_tensor(
            gather("index", self._data, positions(indices, self._data.layout.index), shape, start)
        )

    return kernel


def store(
    name: str, target: DeviceArray, indices: Any, value: Any, axis: int, accumulate: bool
) -> DeviceArray:
    """Write values to integer positions of an array, or add them.

    Returns:
        The array that has the result: ``target``, or where it cannot be added to in one step, another one.
    """
    start = normalize_axis(name, axis, len(target.shape))
    selected = index_shape(name, target.shape, indices, axis)
    shape = selected[start : len(selected) - (len(target.shape) - start - len(indices))]
    given = broadcast(value_array(value, target), selected)
    places = positions(indices, target.layout.index)
    if not accumulate:
        scatter(name, target, places, given, shape, start)
        return target
    wide = accumulator(target.dtype)
    into = target if wide is target.dtype else copied(target, wide)
    scatter_add(name, into, places, given if wide is given.dtype else copied(given, wide), shape, start)
    return into


def index_put_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``index_put``."""

    def kernel(self: Any, indices: Any, value: Any, axis: int, *, accumulate: bool) -> CudaTensor:
        self, indices, value = _all("index_put", self, indices, value)
        op.decl.meta(self, indices, beside(value, self), axis, accumulate=accumulate)
        made = store("index_put", copied(self._data), indices, value, axis, accumulate)
        return cuda_tensor(contiguous(made, self.dtype))

    return kernel


def _all(name: str, self: Any, indices: Any, value: Any) -> tuple[Any, Any, Any]:
    self, value = _both(name, self, value)
    _, indices = placed(name, (self, indices), constants=False, indices=True)
    return self, indices, value


def nonzero_kernel(op: Operator) -> Callable[..., tuple[CudaTensor, ...]]:
    """The kernel of ``nonzero``; without ``size`` the host waits to learn how many there are."""

    def kernel(self: CudaTensor, *, size: int | None, fill_value: int) -> tuple[CudaTensor, ...]:
        op.decl.meta(self, size=0 if size is None else size, fill_value=fill_value)
        data, shape = self._data, self.shape
        mask = copied(data, bool_)
        flat = cuda_tensor(mask.view((data.layout.size,), (1,)))
        order = operators["td::cumsum"].dispatch(CUDA_KEYS, (flat, 0), {"dtype": int64})._data
        if size is None:
            size = int(to_host(order.view((), (), data.layout.size - 1))) if data.layout.size else 0
        found = nonzero(order, shape, size, fill_value)
        rows = (found.view((size,), (1,), axis * size) for axis in range(len(shape)))
        return tuple(cuda_tensor(copied(row)) for row in rows)

    return kernel
