"""Affine quantization to 8-bit integers: operators on integers with scales and zero points, and on quantized tensors.

An integer represents ``scale * (integer - zero_point)``. A number is quantized by rounding ``number / scale +
zero_point`` to the nearest integer, halves to even, and clamping. Scales are applied in float32, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import DType, float32, int8, int32, uint8
from ...registry.library import Library
from ...registry.values import TensorSpec
from ..contraction.matmul import matmul_shape
from ..declare.declaration import Declaration
from ..declare.derivatives import NotDifferentiable
from ..declare.shape_rules import common_device, normalize_axis, spec_of

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, DTypeLike

LIBRARY = Library("quantized", "DEF")
LIMITS = {int8: (-128, 127), uint8: (0, 255)}
EXACT = 1 << 24  # float32 adds integers up to here without rounding
ROUNDS = NotDifferentiable("rounding is flat, so its derivative is zero almost everywhere")


def check_quantized_dtype(name: str, dtype: DType) -> None:
    """Check that a dtype is int8 or uint8."""
    if dtype not in LIMITS:
        raise DTypeError(f"{name}: quantized integers are int8 or uint8, not {dtype}")


def broadcast_along(xp: ArrayModule, values: Array, rank: int, axis: int | None) -> Array:
    """Scales or zero points in a shape that broadcasts along their axis."""
    values = xp.asarray(values)
    return values if axis is None else values.reshape([-1 if at == axis else 1 for at in range(rank)])


def _check_channels(name: str, spec: TensorSpec, scales: Any, zero_points: Any, axis: int | None) -> None:
    wanted = () if axis is None else (spec.shape[normalize_axis(name, axis, len(spec.shape))],)
    for what, given in (("scales", spec_of(scales)), ("zero_points", spec_of(zero_points))):
        if given.shape != wanted:
            raise ShapeError(
                f"{name}: {what} of {spec} along axis {axis} have shape {wanted}, not {given.shape}"
            )


def round_to_integers(xp: ArrayModule, values: Array, zero_points: Any, dtype: DType) -> Array:
    """Scaled numbers as integers: rounded, moved by the zero point and clamped; NaN becomes the zero point."""
    low, high = LIMITS[dtype]
    with xp.errstate(all="ignore"):
        whole = xp.nan_to_num(xp.rint(values), nan=0.0, posinf=xp.inf, neginf=-xp.inf)
        return xp.clip(whole + zero_points, low, high).astype(dtype.np)


# -- to integers and back ----------------------------------------------------------------------------------------------
def _quantize_shape_rule(
    self: TensorSpec, scales: Any, zero_points: Any, axis: int | None, dtype: DType
) -> TensorSpec:
    spec = spec_of(self)
    check_quantized_dtype("quantize", dtype)
    if not spec.dtype.is_floating:
        raise DTypeError(f"quantize: floating-point numbers are quantized, not {spec.dtype}")
    _check_channels("quantize", spec, scales, zero_points, axis)
    return TensorSpec(spec.shape, dtype, spec.device)


def _quantize_kernel(
    xp: ArrayModule, self: Array, scales: Any, zero_points: Any, axis: int, dtype: DType
) -> Array:
    with xp.errstate(all="ignore"):
        inverse = xp.float32(1) / broadcast_along(xp, scales, self.ndim, axis).astype(xp.float32)
        zeros = broadcast_along(xp, zero_points, self.ndim, axis).astype(xp.float32)
        # with one scale for all PyTorch has one rounding to float32 (a fused multiply-add), with several it has two
        wide = xp.float64 if axis is None else xp.float32
        moved = self.astype(xp.float32).astype(wide) * inverse.astype(wide) + zeros.astype(wide)
        whole = xp.rint(moved.astype(xp.float32))
        low, high = LIMITS[dtype]
        return xp.clip(xp.where(xp.isnan(whole), zeros, whole), low, high).astype(dtype.np)


def _dequantize_shape_rule(self: TensorSpec, scales: Any, zero_points: Any, axis: int | None) -> TensorSpec:
    spec = spec_of(self)
    check_quantized_dtype("dequantize", spec.dtype)
    _check_channels("dequantize", spec, scales, zero_points, axis)
    return TensorSpec(spec.shape, float32, spec.device)


def _dequantize_kernel(xp: ArrayModule, self: Array, scales: Any, zero_points: Any, axis: int) -> Array:
    zeros = broadcast_along(xp, zero_points, self.ndim, axis).astype(xp.float32)
    return (self.astype(xp.float32) - zeros) * broadcast_along(xp, scales, self.ndim, axis).astype(xp.float32)


# -- products ----------------------------------------------------------------------------------------------------------
def _int_mm_shape_rule(
    self: TensorSpec, other: TensorSpec, self_zero: int = 0, other_zeros: Any = None
) -> TensorSpec:
    one, two = spec_of(self), spec_of(other)
    for spec in (one, two):
        check_quantized_dtype("int_mm", spec.dtype)
    shape = matmul_shape(one.shape, two.shape)
    columns = () if other_zeros is None else spec_of(other_zeros).shape
    if columns not in ((), two.shape[-1:] if len(two.shape) > 1 else ()):
        raise ShapeError(
            f"int_mm: a zero point for each column of {two}, or one for all, not shape {columns}"
        )
    return TensorSpec(shape, int32, common_device("int_mm", (self, other)))


def _int_mm_kernel(xp: ArrayModule, self: Array, other: Array, self_zero: int, other_zeros: Any) -> Array:
    """float32 products of blocks so short that no sum is rounded, added up as int32."""
    zeros = xp.asarray(0 if other_zeros is None else other_zeros)
    one, two = self.astype(xp.float32), other.astype(xp.float32)
    if self_zero:
        one -= xp.float32(self_zero)
    ends = (int(zeros.min()), int(zeros.max())) if zeros.size else (0, 0)
    if any(ends):
        two -= zeros.astype(xp.float32)
    largest = _largest_distance(self.dtype, self_zero) * max(
        _largest_distance(other.dtype, zero) for zero in (0, *ends)
    )
    step, inner = max(1, EXACT // int(largest)), one.shape[-1]
    if inner <= step:
        return xp.asarray(xp.matmul(one, two)).astype(xp.int32)
    result = xp.zeros((), xp.int32)
    for start in range(0, inner, step):
        part = slice(start, start + step)
        rows = two[part] if two.ndim == 1 else two[..., part, :]
        result = result + xp.asarray(xp.matmul(one[..., part], rows)).astype(xp.int32)
    return result


def _largest_distance(dtype: DTypeLike | None, zero: Any) -> int:
    """The largest distance between an integer of a dtype and a zero point."""
    low, high = LIMITS[int8 if dtype == int8.np else uint8]
    return max(abs(low - int(zero)), abs(high - int(zero)))


def _requantize_shape_rule(
    self: TensorSpec, multipliers: Any, offsets: Any, zero_point: int, dtype: DType
) -> TensorSpec:
    spec = spec_of(self)
    check_quantized_dtype("requantize", dtype)
    for what, given in (("multipliers", spec_of(multipliers)), ("offsets", spec_of(offsets))):
        if given.shape not in ((), spec.shape[-1:]):
            raise ShapeError(
                f"requantize: {what} of {spec}: one for each column, or one, not shape {given.shape}"
            )
    return TensorSpec(spec.shape, dtype, spec.device)


def _requantize_kernel(
    xp: ArrayModule, self: Array, multipliers: Any, offsets: Any, zero_point: int, dtype: DType
) -> Array:
    scaled = (self.astype(xp.float32) + xp.asarray(offsets, xp.float32)) * xp.asarray(multipliers, xp.float32)
    return round_to_integers(xp, scaled, xp.float32(zero_point), dtype)


def check_scale(name: str, scale: float, zero_point: int, dtype: DType) -> None:
    """Check that a scale is positive and finite, and that a zero point is in the range of the dtype.

    Raises:
        ValueArgumentError: one of them is not.
        DTypeError: the dtype is not int8 or uint8.
    """
    check_quantized_dtype(name, dtype)
    if not 0 < scale < float("inf"):
        raise ValueArgumentError(f"{name}: a scale is positive and finite, not {scale}")
    low, high = LIMITS[dtype]
    if not low <= zero_point <= high:
        raise ValueArgumentError(
            f"{name}: the zero point {zero_point} is not in the range of {dtype}, {low} to {high}"
        )


# -- declarations ------------------------------------------------------------------------------------------------------
def _define(schema: str, doc: str, shape_rule: Callable[..., Any], kernel: Callable[..., Any]) -> None:
    LIBRARY.define(
        schema,
        Declaration(
            schema, "quantized", doc, shape_rule=shape_rule, kernel=kernel, derivative=ROUNDS, method=False
        ),
    )


_define(
    "quantize(Tensor self, Tensor scales, Tensor zero_points, int? axis, ScalarType dtype) -> Tensor",
    "Numbers as integers; with an axis, a scale and a zero point for each position along it.",
    _quantize_shape_rule,
    _quantize_kernel,
)
_define(
    "dequantize(Tensor self, Tensor scales, Tensor zero_points, int? axis) -> Tensor",
    "Integers as float32 numbers.",
    _dequantize_shape_rule,
    _dequantize_kernel,
)
_define(
    "int_mm(Tensor self, Tensor other, int self_zero=0, Tensor? other_zeros=None) -> Tensor",
    "The exact int32 product of 8-bit integers less their zero points; sums beyond int32 wrap around.",
    _int_mm_shape_rule,
    _int_mm_kernel,
)
_define(
    "requantize(Tensor self, Tensor multipliers, Tensor offsets, int zero_point, ScalarType dtype) -> Tensor",
    "Sums with offsets added, times multipliers, as 8-bit integers.",
    _requantize_shape_rule,
    _requantize_kernel,
)
# Operators on quantized tensors; their kernels are registered for the quantized dispatch keys.
for _schema in (
    "matmul(Tensor self, Tensor other, float scale, int zero_point) -> Tensor",
    "linear(Tensor self, Tensor weight, Tensor? bias, float scale, int zero_point) -> Tensor",
    "add(Tensor self, Tensor other, float scale, int zero_point) -> Tensor",
):
    LIBRARY.define(_schema)
