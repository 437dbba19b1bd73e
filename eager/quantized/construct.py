"""Quantize dense tensors, with checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DTypeError, NotDifferentiableError, ShapeError
from ...operators.declare.shape_rules import normalize_axis
from ...operators.sparse_quantized.quantized import check_scale
from ...registry.dtypes import DType, as_dtype
from ...registry.operator import operators
from ..tensor.construct import asarray
from ..tensor.tensor import EAGER, Tensor
from .tensor import QuantizedTensor, Scheme, quantized_tensor, to_device_of

if TYPE_CHECKING:
    from ...registry.types import DTypeLike


def per_tensor(x: object, scale: object, zero_point: object, dtype: DTypeLike) -> QuantizedTensor:
    """Implement :func:`tandem.quantize_per_tensor`."""
    name = "quantize_per_tensor"
    wanted = as_dtype(dtype)
    scale, zero_point = _number(name, "scale", scale), _integer(name, "zero_point", zero_point)
    check_scale(name, scale, zero_point, wanted)
    return _quantize(name, asarray(x), Scheme(scale, zero_point), wanted)


def per_channel(
    x: object, scales: object, zero_points: object, axis: int, dtype: DTypeLike
) -> QuantizedTensor:
    """Implement :func:`tandem.quantize_per_channel`."""
    name = "quantize_per_channel"
    x, wanted = asarray(x), as_dtype(dtype)
    along = normalize_axis(name, axis, len(x.shape))
    given = [
        np.asarray(part._host(name) if isinstance(part, Tensor) else part) for part in (scales, zero_points)
    ]
    for what, array in zip(("scales", "zero_points"), given):
        if array.shape != (x.shape[along],):
            raise ShapeError(
                f"{name}: axis {along} of {x.shape} takes {x.shape[along]} {what}, not shape {array.shape}"
            )
    if given[1].size and given[1].dtype.kind not in "iu":
        raise DTypeError(f"{name}: zero points are integers, not {given[1].dtype}")
    for scale, zero_point in zip(*given):
        check_scale(name, float(scale), int(zero_point), wanted)
    return _quantize(name, x, Scheme(given[0], given[1], along), wanted)


def _quantize(name: str, x: Tensor, scheme: Scheme, dtype: DType) -> QuantizedTensor:
    needs_grad = x.requires_grad
    if needs_grad and type(x) not in EAGER:
        raise NotDifferentiableError(
            f"{name}: the tensor is being differentiated, and rounding has no useful derivative; quantize "
            "td.stop_gradient(x)"
        )
    scales, zero_points = to_device_of(x, scheme.scales), to_device_of(x, scheme.zero_points)
    ints = operators["quantized::quantize"](
        x.detach() if needs_grad else x, scales, zero_points, scheme.axis, dtype
    )
    cut = Scheme(scheme.scales, scheme.zero_points, scheme.axis, True) if needs_grad else scheme
    return quantized_tensor(ints, cut)


def _number(name: str, what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DTypeError(f"{name}: {what} is a number, not {value!r}") from None


def _integer(name: str, what: str, value: Any) -> int:
    number = _number(name, what, value)
    if number != int(number):
        raise DTypeError(f"{name}: {what} is an integer, not {value!r}")
    return int(number)
