"""The kernels of the quantized keys: operators on quantized tensors, written with operators on their integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ...errors import ArgumentError, NoKernelError, ShapeError, UnsupportedError
from ...operators.sparse_quantized.quantized import LIBRARY, check_scale
from ...registry.dispatch.keys import DispatchKey
from ...registry.operator import Operator, operators
from ...registry.values import describe
from ..tensor.dunders import by_name
from ..tensor.transfer import to_device
from .tensor import QuantizedTensor, Scheme, quantized_tensor, to_device_of

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs, Tensor

HAVE_SCALES = {"add": "td.ops.quantized.add", "matmul": "td.ops.quantized.matmul"}


def call_quantized_op(name: str, *args: object) -> Tensor:
    """An operator on the parts of quantized tensors."""
    result: Tensor = operators[f"quantized::{name}"](*args)
    return result


def _operand(name: str, what: str, x: object, per_tensor: bool = True) -> QuantizedTensor:
    if not isinstance(x, QuantizedTensor):
        raise ArgumentError(
            f"quantized::{name}: {what} is dense, {describe(x)}; quantize it with td.quantize_per_tensor(x, scale, "
            "zero_point)"
        )
    if per_tensor and x._scheme.axis is not None:
        raise UnsupportedError(f"quantized::{name}: {what} has a scale per channel; here it has one for all")
    return x


def _result(ints: Tensor, scale: float, zero_point: int, *sources: QuantizedTensor) -> QuantizedTensor:
    return quantized_tensor(ints, Scheme(scale, zero_point, None, any(x._scheme.cut_by for x in sources)))


# -- with a scale for the result ---------------------------------------------------------------------------------------
def matmul(self: Tensor, other: Tensor, scale: float, zero_point: int) -> QuantizedTensor:
    """The product, summed exactly as int32, in a new scale."""
    one, two = _operand("matmul", "self", self), _operand("matmul", "other", other, per_tensor=False)
    scheme = two._scheme
    if scheme.axis is not None and (scheme.axis != len(two.shape) - 1 or len(two.shape) < 2):
        raise UnsupportedError(
            f"quantized::matmul: channels of other lie along its last axis, its columns, not along {scheme.axis}"
        )
    return _product(one, two._ints, scheme, None, scale, zero_point, two)


def linear(
    self: Tensor, weight: Tensor, bias: Tensor | None, scale: float, zero_point: int
) -> QuantizedTensor:
    """``self @ weight.T + bias`` in a new scale; the weight has a scale for all, or one for each row."""
    one, two = _operand("linear", "self", self), _operand("linear", "weight", weight, per_tensor=False)
    scheme = two._scheme
    if len(two.shape) != 2 or scheme.axis not in (None, 0):
        raise ShapeError(
            f"quantized::linear: the weight is a matrix (outputs, inputs) with channels along axis 0, not "
            f"{describe(two)} along {scheme.axis}"
        )
    if bias is not None and bias.shape != two.shape[:1]:
        raise ShapeError(f"quantized::linear: the bias has shape {two.shape[:1]}, not {bias.shape}")
    if isinstance(bias, QuantizedTensor):
        raise ArgumentError(
            "quantized::linear: the bias is dense; it is added to the sums before they are scaled"
        )
    return _product(one, by_name("permute")(two._ints, (1, 0)), scheme, bias, scale, zero_point, two)


def _product(
    one: QuantizedTensor,
    ints: Tensor,
    scheme: Scheme,
    bias: Tensor | None,
    scale: float,
    zero_point: int,
    other: QuantizedTensor,
) -> QuantizedTensor:
    check_scale("quantized product", scale, zero_point, one.dtype)
    zero_points = to_device_of(ints, scheme.zero_points)
    sums = call_quantized_op("int_mm", one._ints, ints, int(one._scheme.zero_points), zero_points)
    unit = one._scheme.scales.astype(np.float32) * scheme.scales.astype(np.float32)
    offsets: Tensor | float = (
        0.0
        if bias is None
        else by_name("div")(by_name("astype")(bias.detach(), "float32"), to_device_of(ints, unit))
    )
    multipliers = to_device_of(ints, np.asarray(unit / np.float32(scale)))
    return _result(
        call_quantized_op("requantize", sums, multipliers, offsets, zero_point, one.dtype),
        scale,
        zero_point,
        one,
        other,
    )


def add(self: Tensor, other: Tensor, scale: float, zero_point: int) -> QuantizedTensor:
    """The sum in a new scale: numbers are added as float32, scaled, rounded and moved by the zero point."""
    one, two = _operand("add", "self", self), _operand("add", "other", other)
    check_scale("quantized::add", scale, zero_point, one.dtype)
    total = by_name("add")(one.dequantize().detach(), two.dequantize().detach())
    inverse = to_device_of(total, np.asarray(np.float32(1) / np.float32(scale)))
    return _result(
        call_quantized_op("requantize", total, inverse, 0.0, zero_point, one.dtype),
        scale,
        zero_point,
        one,
        two,
    )


# -- in the same scale -------------------------------------------------------------------------------------------------
def relu(self: QuantizedTensor) -> QuantizedTensor:
    """Integers below the zero point become the zero point."""
    x = _operand("relu", "self", self)
    zero = by_name("full")((), int(x._scheme.zero_points), dtype=x.dtype)
    return quantized_tensor(by_name("maximum")(x._ints, zero), x._scheme)


def permute(self: QuantizedTensor, axes: tuple[int, ...]) -> QuantizedTensor:
    """The axes in another order, the channels' among them."""
    ints, scheme = by_name("permute")(self._ints, axes), self._scheme
    if scheme.axis is not None:
        scheme = scheme.on_axis([axis % len(axes) for axis in axes].index(scheme.axis))
    return quantized_tensor(ints, scheme)


def _make_layout_kernel(name: str) -> Callable[..., QuantizedTensor]:
    """An operator that moves elements and leaves them as they are."""

    def kernel(self: QuantizedTensor, *args: object) -> QuantizedTensor:
        x = _operand(name, "self", self)
        return quantized_tensor(by_name(name)(x._ints, *args), x._scheme)

    return kernel


def clone(self: QuantizedTensor) -> QuantizedTensor:
    """A copy that also copies the integers."""
    return quantized_tensor(by_name("clone")(self._ints), self._scheme)


def to(self: QuantizedTensor, device: str, *, non_blocking: bool) -> QuantizedTensor:
    """The integers on another device."""
    return quantized_tensor(to_device(self._ints, device, non_blocking=non_blocking), self._scheme)


KERNELS: dict[str, Callable[..., QuantizedTensor]] = {
    "device::to": to,
    "td::relu": relu,
    "td::permute": permute,
    "td::reshape": _make_layout_kernel("reshape"),
    "td::basic_index": _make_layout_kernel("basic_index"),
    "td::broadcast_to": _make_layout_kernel("broadcast_to"),
    "td::clone": clone,
}


def run(op: Operator, args: Args, kwargs: Kwargs) -> QuantizedTensor:
    """Run an operator that has a kernel for quantized tensors."""
    return KERNELS[op.name](*args, **kwargs)


def refuse(op: Operator, args: Args, kwargs: Kwargs) -> NoReturn:
    """Raise NoKernelError: the scale of the result is unknown."""
    given = ", ".join(
        f"quantized {describe(x)}" if isinstance(x, QuantizedTensor) else describe(x) for x in args
    )
    key = next(DispatchKey(x._keys.bit_length() - 1) for x in args if isinstance(x, QuantizedTensor))
    instead = HAVE_SCALES.get(op.schema.name)
    also = f"; {instead}(x, y, scale, zero_point) takes a scale for the result" if instead else ""
    raise NoKernelError(
        f"operator {op.name} has no kernel for quantized tensors (the key {key.name})\n"
        f"  called with: {given}\n"
        f"  what works:  compute with x.dequantize() and quantize the result{also}"
    )


for _kernel in (matmul, linear, add):
    for _key in (DispatchKey.QuantizedCPU, DispatchKey.QuantizedCUDA):
        LIBRARY.impl(_kernel.__name__, _kernel, _key)
