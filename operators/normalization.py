"""Softmax and its relatives, and layer normalisation: stable, and a few loops each when compiled.

float16 and bfloat16 are computed in float32 and rounded once; integers become the default float.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from .. import lazy
from ..errors import DTypeError, ShapeError
from ..registry.dtypes import DEFAULT_FLOAT, REAL, DType, bfloat16, bool_, float16, float32
from .casting import astype, stop_gradient
from .comparison import isfinite
from .declare import Bad, Draw, Sample
from .exponential import exp, log, rsqrt
from .kinds import LAYOUTS, composite
from .reductions import max, sum
from .rules import is_tensor, normalize_axes, promoted_dtype, spec_of
from .selection import where

references = lazy.Functions("operators.references_nn")


# -- dtypes ------------------------------------------------------------------------------------------------------------
def float_result(name: str, *args: Any) -> DType:
    """The floating dtype of a result: the promoted one, or the default float.

    Raises:
        DTypeError: it is bool or complex.
    """
    found = args[0].dtype if len(args) == 1 and is_tensor(args[0]) else promoted_dtype(name, args)
    if found not in REAL:
        raise DTypeError(f"{name} takes real numbers, not {found}")
    return found if found.is_floating else DEFAULT_FLOAT


def widened(x: Any, dtype: DType) -> Any:
    """``x`` in the dtype that a result of ``dtype`` is computed in."""
    return astype(x, float32 if dtype in (float16, bfloat16) else dtype, copy=False)


def narrowed(x: Any, dtype: DType) -> Any:
    """A computed result in its dtype."""
    return astype(x, dtype, copy=False)


def _checked_axis(name: str, x: Any, axis: Any) -> None:
    shape = x.shape if is_tensor(x) else ()
    if type(axis) is int and -len(shape) <= axis < len(shape) and 0 not in shape:
        return  # as nearly always
    spec = spec_of(x)
    axes = normalize_axes(name, axis if axis is None or isinstance(axis, tuple) else (axis,), len(spec.shape))
    if (
        any(spec.shape[at] == 0 for at in axes)
        and spec.size == 0
        and math.prod(spec.shape[a] for a in axes) == 0
    ):
        raise ShapeError(f"{name}: there is nothing to take the largest of in {spec} over axes {axes}")


def shifted(x: Any, axis: Any) -> tuple[Any, Any]:
    """``x`` less its largest element along axes, and that element, which counts as a constant in derivatives."""
    top = stop_gradient(max(x, axis, keepdims=True))
    return x - top, top


def _finite(top: Any) -> Any:
    """The largest element, or 0 where it is infinite: then nothing has to be shifted."""
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


def _softmax_samples(dtype: DType) -> Iterable[Sample]:
    for layout in LAYOUTS:
        yield Sample((Draw((3, 4), layout=layout),))
    for axis in (0, 1, -1):
        yield Sample((Draw((2, 3, 4)), axis))
    yield Sample((Draw((33,), -100.0, 100.0),))
    yield Sample((Draw((0, 3)),))
    if dtype.is_floating:
        yield Sample((Draw((2, 3), values=(-INF, 1.0, 2.0, -INF, -INF, -INF)),))
        yield Sample((Draw((2, 2), values=(float("nan"), 1.0, 1000.0, 999.0)),))


def _softmax_errors() -> Iterable[Bad]:
    yield Bad((Draw((2, 3)), 2), IndexError, "out of bounds")
    yield Bad((Draw((2, 0)),), ValueError, "nothing")
    yield Bad((Draw((2,), dtype=bool_),), TypeError, "real numbers")
    yield Bad((Draw(()),), IndexError, "out of bounds")


_TOLERANCE = {"float32": 4e-6, "float64": 4e-14}


@composite(
    "softmax(Tensor self, int axis=-1) -> Tensor",
    doc="Exponentials scaled to sum to one along an axis."
    + _AXIS_DOC
    + "\n    >>> td.softmax(td.zeros(2)).tolist()\n    [0.5, 0.5]\n",
    reference=references.softmax,
    samples=_softmax_samples,
    errors=_softmax_errors,
    dtypes=REAL,
    tolerance=_TOLERANCE,
    autocast="float32",
)
def softmax(self: Any, axis: int) -> Any:
    dtype = float_result("softmax", self)
    _checked_axis("softmax", self, axis)
    powers = exp(shifted(widened(self, dtype), axis)[0])
    return narrowed(powers / sum(powers, axis, keepdims=True), dtype)


@composite(
    "log_softmax(Tensor self, int axis=-1) -> Tensor",
    doc="The logarithm of softmax, exact also where softmax rounds to 0."
    + _AXIS_DOC
    + "\n    >>> td.log_softmax(td.asarray([0.0, -1000.0])).tolist()\n    [0.0, -1000.0]\n",
    reference=references.log_softmax,
    samples=_softmax_samples,
    errors=_softmax_errors,
    dtypes=REAL,
    tolerance=_TOLERANCE,
    autocast="float32",
)
def log_softmax(self: Any, axis: int) -> Any:
    dtype = float_result("log_softmax", self)
    _checked_axis("log_softmax", self, axis)
    wide = widened(self, dtype)
    wide = wide - _finite(shifted(wide, axis)[1])
    return narrowed(wide - log(sum(exp(wide), axis, keepdims=True)), dtype)


@composite(
    "logsumexp(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor",
    doc="""The logarithm of the sum of exponentials over axes, without overflow on the way.

    Args:
        self: a tensor of integer or real floating dtype.
        axis: an axis, several, or None for all.
        keepdims: whether reduced axes stay with length 1.

    Returns:
        A tensor of the reduced shape and the same dtype, or the default float for integers; -inf where all are -inf.

    Raises:
        OutOfBoundsError: there is no such axis.
        ShapeError: there is no element to reduce, or an axis is named twice.
        DTypeError: bool or complex.

    >>> td.logsumexp(td.asarray([1000.0, -1000.0])).item()
    1000.0
    """,
    reference=references.logsumexp,
    samples=lambda dtype: [
        *(Sample((Draw((3, 4), layout=layout), 1)) for layout in LAYOUTS),
        *(Sample((Draw((2, 3, 4)),), {"axis": axis}) for axis in (None, 0, (0, 2))),
        Sample((Draw((3, 4)), -1), {"keepdims": True}),
        Sample((Draw(()),)),
        *([Sample((Draw((2, 2), values=(-INF, -INF, INF, 1.0)), 1))] if dtype.is_floating else []),
    ],
    errors=lambda: [
        Bad((Draw((2, 3)), 2), IndexError, "out of bounds"),
        Bad((Draw((2, 3)), (0, 0)), ValueError, "twice"),
        Bad((Draw((2, 0)), 1), ValueError, "nothing"),
        Bad((Draw((2,), dtype=bool_),), TypeError, "real numbers"),
    ],
    dtypes=REAL,
    tolerance=_TOLERANCE,
    autocast="float32",
)
def logsumexp(self: Any, axis: tuple[int, ...] | None, *, keepdims: bool) -> Any:
    dtype = float_result("logsumexp", self)
    _checked_axis("logsumexp", self, axis)
    wide = widened(self, dtype)
    top = _finite(shifted(wide, axis)[1])
    found = log(sum(exp(wide - top), axis, keepdims=True)) + top
    return narrowed(found if keepdims else found.reshape(max(self, axis).shape), dtype)


# -- layer_norm --------------------------------------------------------------------------------------------------------
def _check_normalized(self: Any, sizes: tuple[int, ...], parameters: Sequence[Any]) -> None:
    shape = spec_of(self).shape
    if not sizes or shape[-len(sizes) :] != sizes:
        raise ShapeError(f"layer_norm: normalized_shape {sizes} is not how shape {shape} ends")
    for name, parameter in zip(("weight", "bias"), parameters):
        if parameter is not None and spec_of(parameter).shape != sizes:
            raise ShapeError(
                f"layer_norm: {name} has shape {spec_of(parameter).shape}, not normalized_shape {sizes}"
            )


@composite(
    "layer_norm(Tensor self, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5)"
    " -> Tensor",
    doc="""The tensor shifted and scaled to mean 0 and variance 1 over its last axes.

    Args:
        self: a tensor of integer or real floating dtype.
        normalized_shape: the sizes of these axes; an int means one.
        weight, bias: tensors of that shape to multiply with and to add afterwards.
        eps: added to the variance, which is the mean square deviation.

    Returns:
        A tensor of the same shape and the promoted dtype, or the default float for integers.

    Raises:
        ShapeError: the tensor's shape does not end so, or a parameter has another shape.
        DTypeError: bool or complex.

    >>> [round(x, 3) for x in td.layer_norm(td.asarray([1.0, 2.0, 3.0]), 3).tolist()]
    [-1.225, 0.0, 1.225]
    """,
    reference=references.layer_norm,
    samples=lambda dtype: [
        *(Sample((Draw((3, 4), layout=layout, distinct=True), 4)) for layout in LAYOUTS),
        Sample((Draw((2, 3, 4), distinct=True), (3, 4))),
        Sample((Draw((3, 4), distinct=True), 4, Draw((4,)), Draw((4,)))),
        Sample((Draw((3, 4), distinct=True), (4,), None, Draw((4,)), 1e-3)),
        Sample((Draw((0, 4)), 4)),
    ],
    errors=lambda: [
        Bad((Draw((2, 3)), 2), ValueError, "ends"),
        Bad((Draw((2, 3)), ()), ValueError, "ends"),
        Bad((Draw((2, 3)), 3, Draw((2,))), ValueError, "weight"),
        Bad((Draw((2,), dtype=bool_), 2), TypeError, "real numbers"),
    ],
    dtypes=REAL,
    tolerance={"float32": 1e-5, "float64": 1e-13},
    autocast="float32",
)
def layer_norm(self: Any, normalized_shape: tuple[int, ...], weight: Any, bias: Any, eps: float) -> Any:
    parameters = [one for one in (weight, bias) if one is not None]
    dtype = float_result("layer_norm", self, *parameters)
    _check_normalized(self, normalized_shape, (weight, bias))
    wide = widened(self, dtype)
    axes, share = tuple(range(-len(normalized_shape), 0)), 1.0 / (math.prod(normalized_shape) or math.nan)
    deviation = wide - sum(wide, axes, keepdims=True) * share
    scale = rsqrt(sum(deviation * deviation, axes, keepdims=True) * share + eps)
    found = deviation * scale
    found = found if weight is None else found * widened(weight, dtype)
    found = found if bias is None else found + widened(bias, dtype)
    return narrowed(found, dtype)
