"""softmax, log_softmax, logsumexp and layer_norm: numerically stable, and a few fused loops each when compiled.

float16 and bfloat16 are computed in float32 and rounded once; integers are cast to the default float.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import DTypeError, ShapeError
from ...registry.dtypes import REAL, DType, bfloat16, bool_, default_float, float16, float32
from ..declare.batching import Batched, BatchInfo, Dims
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import is_tensor, normalize_axes, normalize_axis, promoted_dtype, spec_of
from ..elementwise.casting import astype, stop_gradient
from ..elementwise.comparison import isfinite
from ..elementwise.exponential import exp, log, rsqrt
from ..elementwise.selection import where
from ..reductions.folds import max, sum

if TYPE_CHECKING:
    from ...registry.types import Axes, Operand, Tensor


# -- dtypes ------------------------------------------------------------------------------------------------------------
def float_result_dtype(name: str, *args: Operand) -> DType:
    """The floating dtype of a result: the promoted one, or the default float.

    Raises:
        DTypeError: the dtype is bool or complex.
    """
    value = args[0].dtype if len(args) == 1 and is_tensor(args[0]) else promoted_dtype(name, args)
    if value not in REAL:
        raise DTypeError(f"{name} takes real numbers, not {value}")
    return value if value.is_floating else default_float()


def widen(x: Tensor, dtype: DType) -> Tensor:
    """``x`` in the dtype in which a result of ``dtype`` is computed: at least float32."""
    return astype(x, float32 if dtype in (float16, bfloat16) else dtype, copy=False)


def narrow(x: Tensor, dtype: DType) -> Tensor:
    """Cast a computed result to its dtype."""
    return astype(x, dtype, copy=False)


def _check_axis(name: str, x: Tensor, axis: Axes) -> None:
    shape = x.shape if is_tensor(x) else ()
    if type(axis) is int and -len(shape) <= axis < len(shape) and 0 not in shape:
        return  # fast path
    spec = spec_of(x)
    axes = normalize_axes(name, axis if axis is None or isinstance(axis, tuple) else (axis,), len(spec.shape))
    if (
        any(spec.shape[at] == 0 for at in axes)
        and spec.size == 0
        and math.prod(spec.shape[a] for a in axes) == 0
    ):
        raise ShapeError(f"{name}: there is nothing to reduce in {spec} over axes {axes}")


def subtract_max(x: Tensor, axis: Axes) -> tuple[Tensor, Tensor]:
    """``x`` minus its maximum along axes, and the maximum, which is a constant in derivatives."""
    top = stop_gradient(max(x, axis, keepdims=True))
    return x - top, top


def _finite_or_zero(top: Tensor) -> Tensor:
    """The maximum, or 0 where it is infinite, so that nothing is shifted there."""
    return where(isfinite(top), top, 0.0)


# -- softmax -----------------------------------------------------------------------------------------------------------
_AXIS_DOC = """

    Args:
        self: a tensor of integer or real floating dtype.
        axis: the axis.

    Returns:
        A tensor of the same shape and dtype, or the default float for integers.

    Raises:
        OutOfBoundsError: there is no such axis.
        ShapeError: the axis has no elements.
        DTypeError: bool or complex.
"""
INF = float("inf")


_TOLERANCE = {"float32": 4e-6, "float64": 4e-14}


def _shift_axis(name: str, info: BatchInfo, in_dims: Dims, x: Tensor, axis: int) -> Batched:
    """Batching rule of operators along an axis: shift it past the batch axis."""
    return info.call(x, normalize_axis(name, axis, len(x.shape) - 1) + 1), 0


@composite(
    "softmax(Tensor self, int axis=-1) -> Tensor",
    doc="Softmax: exponentials normalized to sum to one along an axis."
    + _AXIS_DOC
    + "\n    >>> td.softmax(td.zeros(2)).tolist()\n    [0.5, 0.5]\n",
    reference="references.nn.softmax",
    samples="samples.nn.softmax_samples",
    errors="samples.nn.softmax_errors",
    dtypes=REAL,
    batching=partial(_shift_axis, "softmax"),
    tolerance=_TOLERANCE,
    autocast="float32",
)
def softmax(self: Tensor, axis: int) -> Tensor:
    dtype = float_result_dtype("softmax", self)
    _check_axis("softmax", self, axis)
    powers = exp(subtract_max(widen(self, dtype), axis)[0])
    return narrow(powers / sum(powers, axis, keepdims=True), dtype)


@composite(
    "log_softmax(Tensor self, int axis=-1) -> Tensor",
    doc="The logarithm of softmax, accurate where softmax rounds to 0 too."
    + _AXIS_DOC
    + "\n    >>> td.log_softmax(td.asarray([0.0, -1000.0])).tolist()\n    [0.0, -1000.0]\n",
    reference="references.nn.log_softmax",
    samples="samples.nn.softmax_samples",
    errors="samples.nn.softmax_errors",
    dtypes=REAL,
    batching=partial(_shift_axis, "log_softmax"),
    tolerance=_TOLERANCE,
    autocast="float32",
)
def log_softmax(self: Tensor, axis: int) -> Tensor:
    dtype = float_result_dtype("log_softmax", self)
    _check_axis("log_softmax", self, axis)
    wide = widen(self, dtype)
    wide = wide - _finite_or_zero(subtract_max(wide, axis)[1])
    return narrow(wide - log(sum(exp(wide), axis, keepdims=True)), dtype)


@composite(
    "logsumexp(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor",
    doc="""The logarithm of the sum of exponentials over axes, without intermediate overflow.

    Args:
        self: a tensor of integer or real floating dtype.
        axis: an axis, several, or None for all.
        keepdims: whether reduced axes remain, with length 1.

    Returns:
        A tensor of the reduced shape and the same dtype, or the default float for integers; -inf where all are -inf.

    Raises:
        OutOfBoundsError: there is no such axis.
        ShapeError: there are no elements to reduce, or an axis occurs twice.
        DTypeError: bool or complex.

    >>> td.logsumexp(td.asarray([1000.0, -1000.0])).item()
    1000.0
    """,
    reference="references.nn.logsumexp",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout), 1)) for layout in LAYOUTS),
        *(SampleInput((TensorSample((2, 3, 4)),), {"axis": axis}) for axis in (None, 0, (0, 2))),
        SampleInput((TensorSample((3, 4)), -1), {"keepdims": True}),
        SampleInput((TensorSample(()),)),
        *(
            [SampleInput((TensorSample((2, 2), values=(-INF, -INF, INF, 1.0)), 1))]
            if dtype.is_floating
            else []
        ),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), 2), IndexError, "out of bounds"),
        ErrorInput((TensorSample((2, 3)), (0, 0)), ValueError, "twice"),
        ErrorInput((TensorSample((2, 0)), 1), ValueError, "nothing"),
        ErrorInput((TensorSample((2,), dtype=bool_),), TypeError, "real numbers"),
    ],
    dtypes=REAL,
    tolerance=_TOLERANCE,
    autocast="float32",
)
def logsumexp(self: Tensor, axis: tuple[int, ...] | None, *, keepdims: bool) -> Tensor:
    dtype = float_result_dtype("logsumexp", self)
    _check_axis("logsumexp", self, axis)
    wide = widen(self, dtype)
    top = _finite_or_zero(subtract_max(wide, axis)[1])
    value = log(sum(exp(wide - top), axis, keepdims=True)) + top
    return narrow(value if keepdims else value.reshape(max(self, axis).shape), dtype)


# -- layer_norm --------------------------------------------------------------------------------------------------------
def _check_normalized(self: Tensor, sizes: tuple[int, ...], parameters: Sequence[Any]) -> None:
    shape = spec_of(self).shape
    if not sizes or shape[-len(sizes) :] != sizes:
        raise ShapeError(f"layer_norm: shape {shape} ends differently from normalized_shape {sizes}")
    for name, parameter in zip(("weight", "bias"), parameters):
        if parameter is not None and spec_of(parameter).shape != sizes:
            raise ShapeError(
                f"layer_norm: {name} has shape {spec_of(parameter).shape}, not normalized_shape {sizes}"
            )


@composite(
    "layer_norm(Tensor self, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5)"
    " -> Tensor",
    doc="""Layer normalization: shift and scale to mean 0 and variance 1 over the last axes.

    Args:
        self: a tensor of integer or real floating dtype.
        normalized_shape: the sizes of these axes; an int means one axis.
        weight, bias: tensors of that shape; the result is multiplied by ``weight``, then ``bias`` is added.
        eps: a number added to the variance, which is the mean squared deviation.

    Returns:
        A tensor of the same shape and the promoted dtype, or the default float for integers.

    Raises:
        ShapeError: the tensor's shape does not end with it, or a parameter has another shape.
        DTypeError: bool or complex.

    >>> [round(x, 3) for x in td.layer_norm(td.asarray([1.0, 2.0, 3.0]), 3).tolist()]
    [-1.225, 0.0, 1.225]
    """,
    reference="references.nn.layer_norm",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout, distinct=True), 4)) for layout in LAYOUTS),
        SampleInput((TensorSample((2, 3, 4), distinct=True), (3, 4))),
        SampleInput((TensorSample((3, 4), distinct=True), 4, TensorSample((4,)), TensorSample((4,)))),
        SampleInput((TensorSample((3, 4), distinct=True), (4,), None, TensorSample((4,)), 1e-3)),
        SampleInput((TensorSample((0, 4)), 4)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((2, 3)), 2), ValueError, "ends"),
        ErrorInput((TensorSample((2, 3)), ()), ValueError, "ends"),
        ErrorInput((TensorSample((2, 3)), 3, TensorSample((2,))), ValueError, "weight"),
        ErrorInput((TensorSample((2,), dtype=bool_), 2), TypeError, "real numbers"),
    ],
    dtypes=REAL,
    tolerance={"float32": 1e-5, "float64": 1e-13},
    autocast="float32",
)
def layer_norm(
    self: Tensor, normalized_shape: tuple[int, ...], weight: Tensor, bias: Tensor, eps: float
) -> Tensor:
    parameters = [one for one in (weight, bias) if one is not None]
    dtype = float_result_dtype("layer_norm", self, *parameters)
    _check_normalized(self, normalized_shape, (weight, bias))
    wide = widen(self, dtype)
    axes, share = tuple(range(-len(normalized_shape), 0)), 1.0 / (math.prod(normalized_shape) or math.nan)
    deviation = wide - sum(wide, axes, keepdims=True) * share
    scale = rsqrt(sum(deviation * deviation, axes, keepdims=True) * share + eps)
    value = deviation * scale
    value = value if weight is None else value * widen(weight, dtype)
    value = value if bias is None else value + widen(bias, dtype)
    return narrow(value, dtype)
