"""cross_entropy, mse_loss and one_hot."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from ...errors import DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import FLOATS, INTEGERS, DType, default_float, float32, int64
from ..creation.creation import arange
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import broadcast_shapes, normalize_axis, spec_of
from ..elementwise.casting import astype
from ..elementwise.comparison import eq, ge, lt
from ..elementwise.exponential import exp, log
from ..elementwise.selection import where
from ..reductions.folds import sum
from ..reductions.statistics import mean
from ..shape.rearrange import expand_dims
from ..shape.views import reshape
from .normalization import float_result_dtype, narrow, subtract_max, widen

if TYPE_CHECKING:
    from ...registry.types import Tensor, TensorOrSpec
    from ...registry.values import TensorSpec

REDUCTIONS = ("mean", "sum", "none")


def check_reduction(name: str, reduction: str) -> None:
    """Raise ValueArgumentError unless ``reduction`` is one of ``REDUCTIONS``."""
    if reduction not in REDUCTIONS:
        raise ValueArgumentError(f"{name}: reduction must be 'mean', 'sum' or 'none', not {reduction!r}")


def check_pair(name: str, input: Tensor, target: Tensor) -> None:
    """Warn if the shapes of an input and its target differ, as they broadcast.

    Raises:
        ShapeError: they do not broadcast.
    """
    one, two = spec_of(input).shape, spec_of(target).shape
    if one != two:
        broadcast = broadcast_shapes(name, one, two)
        warnings.warn(
            f"{name}: the shapes {one} of the input and {two} of the target broadcast to {broadcast}, which is rarely "
            "intended; reshape one of them",
            UserWarning,
            stacklevel=3,
        )


def reduce_losses(losses: Tensor, reduction: str) -> Tensor:
    """Apply a reduction: return the losses, or their mean or sum over all axes."""
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


# -- one_hot -----------------------------------------------------------------------------------------------------------
def one_hot_mask(target: Tensor, num_classes: int, axis: int) -> Tensor:
    """Compare a target with each class along a new axis; return a bool tensor."""
    rank = len(spec_of(target).shape) + 1
    classes = reshape(
        arange(num_classes, device=spec_of(target).device),
        [num_classes if index == axis else 1 for index in range(rank)],
    )
    return eq(expand_dims(astype(target, int64, copy=False), axis), classes)


@composite(
    "one_hot(Tensor self, int num_classes, *, int axis=-1, ScalarType? dtype=None) -> Tensor",
    doc="""Encode integers as one-hot vectors: one at the index of the class, zero elsewhere.

    Args:
        self: a tensor of integers.
        num_classes: the number of classes; an integer that is not a class is encoded as zeros.
        axis: the axis of the classes in the result.
        dtype: the dtype of the result; None: float32.

    Returns:
        A tensor with one axis more, of length ``num_classes``.

    Raises:
        DTypeError: ``self`` does not have an integer dtype.
        ValueArgumentError: ``num_classes`` is negative.
        OutOfBoundsError: the result has no such axis.

    >>> td.one_hot(td.asarray([1, 0]), 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """,
    reference="references.nn.one_hot",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), 0, 5, layout=layout), 5)) for layout in LAYOUTS),
        SampleInput((TensorSample((3,), 0, 5), 3), {"axis": 0}),
        SampleInput((TensorSample((2, 2), 0, 3), 4), {"axis": 1, "dtype": int64}),
        SampleInput((TensorSample(()), 2)),
        SampleInput((TensorSample((0,)), 3)),
        SampleInput((TensorSample((2,)), 0)),
        *([SampleInput((TensorSample((2,), values=(-1, 1)), 2))] if dtype.kind == "i" else []),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((2,), dtype=float32), 3), TypeError, "integers"),
        ErrorInput((TensorSample((2,), dtype=int64), -1), ValueError, "negative"),
        ErrorInput((TensorSample((2,), dtype=int64), 3), IndexError, "out of bounds", {"axis": 2}),
    ],
    dtypes=INTEGERS,
)
def one_hot(self: Tensor, num_classes: int, *, axis: int, dtype: DType | None) -> Tensor:
    spec = spec_of(self)
    if not spec.dtype.is_integer:
        raise DTypeError(
            f"one_hot: the classes must be integers, not {spec}; cast them with astype(td.int64)"
        )
    if num_classes < 0:
        raise ValueArgumentError(f"one_hot: num_classes must be non-negative, not {num_classes}")
    index = normalize_axis("one_hot", axis, len(spec.shape) + 1)
    return astype(one_hot_mask(self, num_classes, index), dtype or default_float())


# -- cross_entropy -----------------------------------------------------------------------------------------------------


@composite(
    "cross_entropy(Tensor self, Tensor target, *, int axis=-1, str reduction='mean', float label_smoothing=0.0)"
    " -> Tensor",
    doc="""Compute the cross-entropy of logits and target classes or probabilities.

    Args:
        self: the logits, of a real floating dtype, with an axis of classes.
        target: classes, as integers of the shape without that axis; or probabilities, as floats of the same shape.
        axis: the axis of the classes.
        reduction: ``"mean"`` or ``"sum"`` over all other axes, or ``"none"``.
        label_smoothing: the share of the target that is distributed evenly over all classes.

    Returns:
        A 0-d tensor, or one of the shape without the axis. NaN for an integer that is not a class.

    Raises:
        ShapeError: the shapes do not fit, or there are no classes.
        DTypeError: the logits are not floats.
        ValueArgumentError: an unknown reduction, or ``label_smoothing`` is not in [0, 1].
        OutOfBoundsError: there is no such axis.

    >>> td.cross_entropy(td.asarray([[100.0, 0.0], [0.0, 100.0]]), td.asarray([0, 0])).item()
    50.0
    """,
    reference="references.nn.cross_entropy",
    samples="samples.nn.cross_entropy_samples",
    errors="samples.nn.cross_entropy_errors",
    dtypes=FLOATS,
    tolerance={"float32": 1e-5, "float64": 1e-13},
    method=False,
    autocast="float32",
)
def cross_entropy(
    self: Tensor, target: Tensor, *, axis: int, reduction: str, label_smoothing: float
) -> Tensor:
    spec, target_spec = spec_of(self), spec_of(target)
    axis = _check_cross_entropy(spec, target_spec, axis, reduction, label_smoothing)
    num_classes, dtype = spec.shape[axis], float_result_dtype("cross_entropy", self)
    logits = subtract_max(widen(self, dtype), axis)[0]
    log_sum_exp = log(sum(exp(logits), axis))
    if target_spec.dtype.is_integer:
        losses = log_sum_exp - sum(where(one_hot_mask(target, num_classes, axis), logits, 0.0), axis)
    else:
        probabilities = widen(target, dtype)
        negative_log = expand_dims(log_sum_exp, axis) - logits
        losses = sum(where(eq(probabilities, 0.0), 0.0, probabilities * negative_log), axis)
    if label_smoothing:
        losses = losses * (1 - label_smoothing) + (log_sum_exp - mean(logits, axis)) * label_smoothing
    if target_spec.dtype.is_integer:
        losses = where(ge(target, 0), where(lt(target, num_classes), losses, float("nan")), float("nan"))
    return narrow(reduce_losses(losses, reduction), dtype)


def _check_cross_entropy(
    spec: TensorSpec, target: TensorOrSpec, axis: int, reduction: str, label_smoothing: float
) -> int:
    """Check the arguments of ``cross_entropy``, and return the normalized axis."""
    check_reduction("cross_entropy", reduction)
    if not 0 <= label_smoothing <= 1:
        raise ValueArgumentError(
            f"cross_entropy: label_smoothing must be between 0 and 1, not {label_smoothing}"
        )
    if not spec.dtype.is_floating:
        raise DTypeError(f"cross_entropy: the logits must be real floats, not {spec}")
    index = normalize_axis("cross_entropy", axis, len(spec.shape))
    if not spec.shape[index]:
        raise ShapeError(f"cross_entropy: there are no classes along axis {axis} of {spec}")
    classes = spec.shape[:index] + spec.shape[index + 1 :]
    if target.dtype.is_integer and target.shape != classes:
        raise ShapeError(f"cross_entropy: logits {spec} need classes of shape {classes}, not {target}")
    if not target.dtype.is_integer and (target.shape != spec.shape or not target.dtype.is_floating):
        raise ShapeError(
            f"cross_entropy: logits {spec} need probabilities of shape {spec.shape}, not {target}"
        )
    return index


# -- mse_loss ----------------------------------------------------------------------------------------------------------
@composite(
    "mse_loss(Tensor self, Tensor target, *, str reduction='mean') -> Tensor",
    doc="""Compute the mean squared error of two tensors.

    Args:
        self, target: tensors of real floating dtype; shapes that differ broadcast with a warning, as that is rarely
            intended here.
        reduction: ``"mean"`` or ``"sum"`` over all axes, or ``"none"`` for the squared differences.

    Returns:
        A 0-d tensor, or one of the broadcast shape, of the promoted dtype.

    Raises:
        ShapeError: the shapes do not broadcast.
        ValueArgumentError: an unknown reduction.
        DTypeError: bool or complex.

    >>> td.mse_loss(td.asarray([1.0, 2.0]), td.asarray([1.0, 4.0])).item()
    2.0
    """,
    reference="references.nn.mse_loss",
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout), TensorSample((3, 4)))) for layout in LAYOUTS),
        *(
            SampleInput((TensorSample((5,)), TensorSample((5,))), {"reduction": reduction})
            for reduction in REDUCTIONS
        ),
        SampleInput((TensorSample(()), TensorSample(()))),
    ],
    errors=lambda: [
        ErrorInput(
            (TensorSample((3, 2)), TensorSample((3,))),
            ValueError,
            "mse_loss: shapes (3, 2) and (3,) do not broadcast",
        ),
        ErrorInput((TensorSample((3,)), TensorSample((3,))), ValueError, "reduction", {"reduction": "max"}),
    ],
    dtypes=FLOATS,
    tolerance={"float32": 4e-6, "float64": 4e-14},
    method=False,
    autocast="float32",
)
def mse_loss(self: Tensor, target: Tensor, *, reduction: str) -> Tensor:
    check_reduction("mse_loss", reduction)
    check_pair("mse_loss", self, target)
    dtype = float_result_dtype("mse_loss", self, target)
    difference = widen(self, dtype) - widen(target, dtype)
    return narrow(reduce_losses(difference * difference, reduction), dtype)
