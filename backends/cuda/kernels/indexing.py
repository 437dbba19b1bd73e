"""Kernels of indexing operators: basic and advanced indexing, index_put, index_reduce, nonzero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....eager.tensor.tensor import Tensor
from ....operators.creation.creation import arange
from ....operators.declare.shape_rules import normalize_axis
from ....operators.elementwise.comparison import eq
from ....operators.elementwise.selection import where
from ....operators.indexing.gather import index_shape
from ....operators.indexing.index_reduce import reduce_by_sorting
from ....operators.indexing.slicing import plan_shape
from ....operators.shape.views import reshape
from ....registry.dispatch.keys import CUDA_KEYS
from ....registry.dtypes import bool_, int64
from ....registry.operator import Operator, operators
from ..runtime.arrays import DeviceArray, overlap
from ..runtime.copies import to_host
from .casting import contiguous, convert_into, copy_array
from .creation import number
from .gathers import gather, nonzero, scatter, scatter_combine
from .operands import check_devices, device_mismatch_error
from .positions import accumulator
from .tensor import CudaTensor, cuda_tensor
from .views import basic_index, broadcast


def operand_spec(value: Any, tensor: CudaTensor) -> Any:
    """The argument of a shape rule for a value: a constant on the host counts as being on the tensor's device."""
    return value.spec._replace(device=tensor.device) if type(value) is Tensor else value


def positions(indices: Sequence[Any], index: int) -> list[DeviceArray]:
    """Convert index tensors and numbers to int64 arrays on a device."""
    return [
        contiguous(one._data, int64) if type(one) is CudaTensor else number(one, int64, index)
        for one in indices
    ]


def value_array(value: Any, like: DeviceArray) -> DeviceArray:
    """Convert a value to an array of the dtype of ``like`` that does not overlap it."""
    if type(value) is not CudaTensor:
        return number(value, like.dtype, like.layout.index)
    data = value._data
    if data.dtype is like.dtype and not overlap(data, like):
        return data
    return copy_array(data, like.dtype)


def add_arrays(one: DeviceArray, other: DeviceArray) -> DeviceArray:
    """The sum of two arrays of one dtype; logical or for booleans."""
    name = "td::bitwise_or.Tensor" if one.dtype is bool_ else "td::add.Tensor"
    result: Any = operators[name].dispatch(CUDA_KEYS, (cuda_tensor(one), cuda_tensor(other)), {})
    return result._data  # type: ignore[no-any-return]


# -- basic indexing ----------------------------------------------------------------------------------------------------
def put(target: DeviceArray, value: Any, plan: Any, accumulate: bool) -> None:
    """Write a value to the elements that a basic index selects, or add it to them."""
    view = basic_index(target, plan_shape(plan), plan)
    given = value_array(value, target)
    convert_into(view, add_arrays(view, broadcast(given, view.shape)) if accumulate else given)


def basic_put_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``basic_put``."""

    def kernel(self: Any, value: Any, plan: Any, *, accumulate: bool) -> CudaTensor:
        self, value = _both("basic_put", self, value)
        op.decl.shape_rule(self, operand_spec(value, self), plan, accumulate=accumulate)
        result = copy_array(self._data)
        put(result, value, plan, accumulate)
        return cuda_tensor(result)

    return kernel


def _both(name: str, self: Any, value: Any) -> tuple[Any, Any]:
    self, value = check_devices(name, (self, value), constants=True)
    if type(self) is not CudaTensor:
        raise device_mismatch_error(name, self, value)
    return self, value


# -- by index tensors --------------------------------------------------------------------------------------------------
def index_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``index``."""

    def kernel(self: Any, indices: Any, axis: int) -> CudaTensor:
        self, indices = check_devices("index", (self, indices), constants=False, indices=True)
        op.decl.shape_rule(self, indices, axis)
        start = normalize_axis("index", axis, len(self.shape))
        selected = index_shape("index", self.shape, indices, axis)
        shape = selected[start : len(selected) - (len(self.shape) - start - len(indices))]
        return cuda_tensor(
            gather("index", self._data, positions(indices, self._data.layout.index), shape, start)
        )

    return kernel


def store(name: str, target: DeviceArray, indices: Any, value: Any, axis: int, combine: str) -> DeviceArray:
    """Write values to integer positions of an array, or combine them with its elements.

    Args:
        combine: the node of the scalar IR that combines them: ``"add"``, ``"mul"``, or none.

    Returns:
        The array with the result: ``target``, or a copy in the accumulator's dtype.
    """
    start = normalize_axis(name, axis, len(target.shape))
    selected = index_shape(name, target.shape, indices, axis)
    shape = selected[start : len(selected) - (len(target.shape) - start - len(indices))]
    given = broadcast(value_array(value, target), selected)
    slots = positions(indices, target.layout.index)
    if not combine:
        scatter(name, target, slots, given, shape, start)
        return target
    wide = accumulator(target.dtype)
    into = target if wide is target.dtype else copy_array(target, wide)
    given = given if wide is given.dtype else copy_array(given, wide)
    scatter_combine(name, combine, into, slots, given, shape, start)
    return into


def index_put_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``index_put``."""

    def kernel(self: Any, indices: Any, value: Any, axis: int, *, accumulate: bool) -> CudaTensor:
        self, indices, value = _all("index_put", self, indices, value)
        op.decl.shape_rule(self, indices, operand_spec(value, self), axis, accumulate=accumulate)
        combine = op.decl.index_spec.combine(accumulate=accumulate)
        result = store("index_put", copy_array(self._data), indices, value, axis, combine)
        return cuda_tensor(contiguous(result, self.dtype))

    return kernel


def index_reduce_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``index_reduce``, deterministic: it works in the order of the positions."""

    def kernel(self: Any, indices: Any, value: Any, axis: int, *, reduce: str) -> Any:
        self, indices, value = _all("index_reduce", self, indices, value)
        op.decl.shape_rule(self, indices, operand_spec(value, self), axis, reduce=reduce)
        data, combine = self._data, op.decl.index_spec.combine(reduce=reduce)
        if combine == "mul" and data.dtype.kind == "f":
            result = store("index_reduce", copy_array(data), indices, value, axis, combine)
            return cuda_tensor(contiguous(result, data.dtype))
        at = _flat_positions("index_reduce", data, indices, axis)
        return reduce_by_sorting(cuda_tensor(data), at, cuda_tensor(value_array(value, data)), reduce)

    return kernel


def _flat_positions(name: str, data: DeviceArray, indices: Any, axis: int) -> Any:
    """The positions of selected elements in the flattened array; its size where an index is out of bounds.

    A gather reads 0 there, so it reads numbers that count from 1. Nothing is written at the position after the last.
    """
    device = cuda_tensor(data).device
    start, shape = normalize_axis(name, axis, len(data.shape)), index_shape(name, data.shape, indices, axis)
    common = shape[start : len(shape) - (len(data.shape) - start - len(indices))]
    numbers: Any = reshape(arange(1, data.layout.size + 1, device=device), data.shape)
    read = gather(name, numbers._data, positions(indices, data.layout.index), common, start)
    result = cuda_tensor(read)
    return where(eq(result, 0), data.layout.size, result - 1)


def _all(name: str, self: Any, indices: Any, value: Any) -> tuple[Any, Any, Any]:
    self, value = _both(name, self, value)
    _, indices = check_devices(name, (self, indices), constants=False, indices=True)
    return self, indices, value


def nonzero_kernel(op: Operator) -> Callable[..., tuple[CudaTensor, ...]]:
    """The kernel of ``nonzero``; without ``size`` the host waits for the number of nonzero elements."""

    def kernel(self: CudaTensor, *, size: int | None, fill_value: int) -> tuple[CudaTensor, ...]:
        op.decl.shape_rule(self, size=0 if size is None else size, fill_value=fill_value)
        data, shape = self._data, self.shape
        mask = copy_array(data, bool_)
        flat = cuda_tensor(mask.view((data.layout.size,), (1,)))
        order = operators["td::cumsum"].dispatch(CUDA_KEYS, (flat, 0), {"dtype": int64})._data
        if size is None:
            size = int(to_host(order.view((), (), data.layout.size - 1))) if data.layout.size else 0
        result = nonzero(order, shape, size, fill_value)
        rows = (result.view((size,), (1,), axis * size) for axis in range(len(shape)))
        return tuple(cuda_tensor(copy_array(row)) for row in rows)

    return kernel
