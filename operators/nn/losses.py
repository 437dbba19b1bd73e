"""cross_entropy, mse_loss and one_hot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import FLOATS, INTEGERS, DType, default_float, float32, int64
from ..creation.creation import arange
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
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
    """Check the name of a reduction."""
    if reduction not in REDUCTIONS:
        raise ValueArgumentError(f"{name}: reduction must be 'mean', 'sum' or 'none', not {reduction!r}")


def reduce_losses(losses: Tensor, reduction: str) -> Tensor:
    """The losses, or their mean or sum over all axes."""
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


# -- one_hot -----------------------------------------------------------------------------------------------------------
def is_class(target: Tensor, count: int, axis: int) -> Tensor:
    """A mask with a new axis of ``count`` classes: whether the target is that class."""
    rank = len(spec_of(target).shape) + 1
    classes = reshape(
        arange(count, device=spec_of(target).device), [count if at == axis else 1 for at in range(rank)]
    )
    return eq(expand_dims(astype(target, int64, copy=False), axis), classes)


@composite(
    "one_hot(Tensor self, int num_classes, *, int axis=-1, ScalarType? dtype=None) -> Tensor",
    doc="""One-hot encoding: one at the index of the class, zero elsewhere.

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
        raise DTypeError(f"one_hot: classes are integers, not {spec}")
    if num_classes < 0:
        raise ValueArgumentError(f"one_hot: num_classes must be non-negative, not {num_classes}")
    index = normalize_axis("one_hot", axis, len(spec.shape) + 1)
    return astype(is_class(self, num_classes, index), dtype or default_float())


# -- cross_entropy -----------------------------------------------------------------------------------------------------


@composite(
    "cross_entropy(Tensor self, Tensor target, *, int axis=-1, str reduction='mean', float label_smoothing=0.0)"
    " -> Tensor",
    doc="""The cross-entropy of softmax probabilities and a target.

    Args:
        self: the logits, of a real floating dtype, with an axis of classes.
        target: integers, the classes, of the shape without that axis; or probabilities, floats of the same shape.
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
    spec, wanted = spec_of(self), spec_of(target)
    along = _check_cross_entropy(spec, wanted, axis, reduction, label_smoothing)
    count, dtype = spec.shape[along], float_result_dtype("cross_entropy", self)
    logits = subtract_max(widen(self, dtype), along)[0]
    total = log(sum(exp(logits), along))
    if wanted.dtype.is_integer:
        losses = total - sum(where(is_class(target, count, along), logits, 0.0), along)
    else:
        share = widen(target, dtype)
        losses = sum(where(eq(share, 0.0), 0.0, share * (expand_dims(total, along) - logits)), along)
    if label_smoothing:
        losses = losses * (1 - label_smoothing) + (total - mean(logits, along)) * label_smoothing
    if wanted.dtype.is_integer:
        losses = where(ge(target, 0), where(lt(target, count), losses, float("nan")), float("nan"))
    return narrow(reduce_losses(losses, reduction), dtype)


def _check_cross_entropy(
    spec: TensorSpec, target: TensorOrSpec, axis: int, reduction: str, label_smoothing: float
) -> int:
    check_reduction("cross_entropy", reduction)
    if not 0 <= label_smoothing <= 1:
        raise ValueArgumentError(
            f"cross_entropy: label_smoothing must be between 0 and 1, not {label_smoothing}"
        )
    if not spec.dtype.is_floating:
        raise DTypeError(f"cross_entropy: logits are real floats, not {spec}")
    along = normalize_axis("cross_entropy", axis, len(spec.shape))
    if not spec.shape[along]:
        raise ShapeError(f"cross_entropy: there are no classes along axis {axis} of {spec}")
    classes = spec.shape[:along] + spec.shape[along + 1 :]
    if target.dtype.is_integer and target.shape != classes:
        raise ShapeError(f"cross_entropy: logits {spec} need classes of shape {classes}, not {target}")
    if not target.dtype.is_integer and (target.shape != spec.shape or not target.dtype.is_floating):
        raise ShapeError(
            f"cross_entropy: logits {spec} need probabilities of shape {spec.shape}, not {target}"
        )
    return along


# -- mse_loss ----------------------------------------------------------------------------------------------------------
@composite(
    "mse_loss(Tensor self, Tensor target, *, str reduction='mean') -> Tensor",
    doc="""The squared differences of two tensors of one shape.

    Args:
        self, target: tensors of real floating dtype.
        reduction: ``"mean"`` or ``"sum"`` over all axes, or ``"none"``.

    Returns:
        A 0-d tensor, or one of the shape of ``self``, of the promoted dtype.

    Raises:
        ShapeError: the shapes differ; they do not broadcast, which is rarely intended here.
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
        ErrorInput((TensorSample((3, 1)), TensorSample((3,))), ValueError, "differ"),
        ErrorInput((TensorSample((3,)), TensorSample((3,))), ValueError, "reduction", {"reduction": "max"}),
    ],
    dtypes=FLOATS,
    tolerance={"float32": 4e-6, "float64": 4e-14},
    method=False,
    autocast="float32",
)
def mse_loss(self: Tensor, target: Tensor, *, reduction: str) -> Tensor:
    check_reduction("mse_loss", reduction)
    if spec_of(self).shape != spec_of(target).shape:
        raise ShapeError(f"mse_loss: the shapes of {spec_of(self)} and {spec_of(target)} differ")
    dtype = float_result_dtype("mse_loss", self, target)
    difference = widen(self, dtype) - widen(target, dtype)
    return narrow(reduce_losses(difference * difference, reduction), dtype)
