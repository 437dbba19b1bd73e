"""Choosing between values: where, minimum and maximum, clip.

Where two candidates are equal, `maximum` and `minimum` give half of the cotangent to each, and `clip` all of it to the
tensor (the conventions of JAX and PyTorch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import ArgumentError, DTypeError
from ..registry.dtypes import ALL, REAL, DType, bool_, int64
from ..registry.values import TensorSpec
from . import scalar as s
from .comparison import eq, ge, gt, le, lt
from .declare import Bad, Draw, Sample
from .derivatives import Partials
from .documents import documented
from .kinds import binary, composite, elementwise, elementwise_meta
from .rules import spec_of
from .samples import LAYOUTS

_ORDERED = (bool_, *REAL)
_where_meta = elementwise_meta("where", "same", ALL)


def _checked_where_meta(condition: Any, self: Any, other: Any) -> TensorSpec:
    seen = spec_of(condition).dtype
    if seen is not bool_:
        raise DTypeError(f"where: the condition is a bool tensor, not {seen.name}; compare it, as in x != 0")
    return _where_meta(condition, self, other)


def _where_body(condition: s.Expr, self: s.Expr, other: s.Expr) -> s.Expr:
    return s.select(condition if condition.dtype is bool_ else s.ne(condition, 0), self, other)


def _where_samples(dtype: DType) -> Iterable[Sample]:
    for condition, self, other in (((), (), ()), ((5,), (5,), (5,)), ((3, 1), (4,), ()), ((0,), (1,), (0,))):
        yield Sample((Draw(condition, dtype=bool_), Draw(self), Draw(other)))
    for layout in LAYOUTS:
        yield Sample((Draw((3, 4), dtype=bool_, layout=layout), Draw((3, 4)), Draw((4,), layout=layout)))
    weak: Any = True if dtype.kind == "b" else 2
    yield Sample((Draw((4,), dtype=bool_), Draw((4,)), weak))
    yield Sample((Draw((4,), dtype=bool_), weak, Draw((4,))))


def _where_errors() -> Iterable[Bad]:
    yield Bad((Draw((2,), dtype=int64), 1, 0), TypeError, "condition is a bool")
    yield Bad((Draw((2,), dtype=bool_), Draw((3,)), 0), ValueError, "do not broadcast")
    yield Bad((Draw((2,), dtype=bool_), "x", 0), TypeError, "must be a Tensor")


where: Any = elementwise(
    "ternary",
    "where(Tensor condition, Tensor self, Tensor other) -> Tensor",
    _where_body,
    doc="Elements of `self` where the condition holds, elsewhere those of `other`.",
    text="""Args:
    condition: bool tensor.
    self, other: tensors of any dtype or Python scalars; all three shapes broadcast.

Returns:
    A tensor of the broadcast shape, of the promoted dtype of `self` and `other`.

Raises:
    DTypeError: the condition is not bool, or the dtypes do not promote.
    ShapeError: the shapes do not broadcast.""",
    example="td.where(td.asarray([True, False]), td.asarray([1.0, 2.0]), 0.0) -> [1.0, 0.0]",
    reference="numpy.where",
    dtypes=ALL,
    conditions=("condition",),
    meta=_checked_where_meta,
    samples=_where_samples,
    errors=_where_errors,
    derivative=Partials(
        {
            "self": lambda g, condition: where(condition, g, 0.0),
            "other": lambda g, condition: where(condition, 0.0, g),
        }
    ),
    method=False,
)


def _share(one: Any, two: Any, out: Any) -> Any:
    """The partial of a choice by one of its candidates: 1 where it was chosen, one half where both are equal."""
    return where(eq(one, two), 0.5, where(eq(one, out), 1.0, 0.0))


_BY_SHARE = Partials(
    {
        "self": lambda self, other, out: _share(self, other, out),
        "other": lambda self, other, out: _share(other, self, out),
    }
)

maximum = binary(
    "maximum",
    s.maximum,
    doc="The larger of two elements; NaN if either is NaN.",
    example="td.maximum(td.asarray([1.0, 5.0]), 3.0) -> [3.0, 5.0]",
    reference="numpy.maximum",
    dtypes=_ORDERED,
    derivative=_BY_SHARE,
)
minimum = binary(
    "minimum",
    s.minimum,
    doc="The smaller of two elements; NaN if either is NaN.",
    example="td.minimum(td.asarray([1.0, 5.0]), 3.0) -> [1.0, 3.0]",
    reference="numpy.minimum",
    dtypes=_ORDERED,
    derivative=_BY_SHARE,
)


def _ignoring_nan(choose: Callable[..., s.Expr]) -> Callable[[s.Expr, s.Expr], s.Expr]:
    return lambda a, b: s.select(s.isnan(a), b, s.select(s.isnan(b), a, choose(a, b)))


fmax = binary(
    "fmax",
    _ignoring_nan(s.maximum),
    doc="The larger of two elements, the other one if one is NaN.",
    example="td.fmax(td.asarray([1.0, float('nan')]), 3.0) -> [3.0, 3.0]",
    reference="numpy.fmax",
    dtypes=_ORDERED,
    derivative=_BY_SHARE,
)
fmin = binary(
    "fmin",
    _ignoring_nan(s.minimum),
    doc="The smaller of two elements, the other one if one is NaN.",
    example="td.fmin(td.asarray([1.0, float('nan')]), 3.0) -> [1.0, 3.0]",
    reference="numpy.fmin",
    dtypes=_ORDERED,
    derivative=_BY_SHARE,
)

clip_min = binary(
    "clip_min",
    s.maximum,
    doc="The tensor with its elements raised to a lower bound; as `maximum`, but its derivative at the bound is 1.",
    example="td.ops.td.clip_min(td.asarray([1.0, 5.0]), 3.0) -> [3.0, 5.0]",
    reference="numpy.maximum",
    dtypes=_ORDERED,
    derivative=Partials(
        {
            "self": lambda g, self, other: where(ge(self, other), g, 0.0),
            "other": lambda g, self, other: where(lt(self, other), g, 0.0),
        }
    ),
    method=False,
)
clip_max = binary(
    "clip_max",
    s.minimum,
    doc="The tensor with its elements lowered to an upper bound; as `minimum`, but its derivative at the bound is 1.",
    example="td.ops.td.clip_max(td.asarray([1.0, 5.0]), 3.0) -> [1.0, 3.0]",
    reference="numpy.minimum",
    dtypes=_ORDERED,
    derivative=Partials(
        {
            "self": lambda g, self, other: where(le(self, other), g, 0.0),
            "other": lambda g, self, other: where(gt(self, other), g, 0.0),
        }
    ),
    method=False,
)


def _clip_samples(dtype: DType) -> Iterable[Sample]:
    low, high = Draw((4,), low=-2, high=0), Draw((3, 1), low=0, high=2)
    yield Sample((Draw((3, 4)), low, high))
    yield Sample((Draw((3, 4)),), {"min": low})
    yield Sample((Draw((3, 4), layout="transposed"),), {"max": high})
    weak = (False, True) if dtype.kind == "b" else (1, 2)
    yield Sample((Draw((33,)), *weak))
    yield Sample((Draw(()), *weak))


@composite(
    "clip(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    doc=documented(
        "The tensor with its elements limited to an interval.",
        """Args:
    self: tensor of bool, integer or real floating dtype.
    min, max: the bounds: tensors, Python scalars, or None; shapes broadcast. Where min > max the result is max.

Returns:
    A tensor of the broadcast shape, of the promoted dtype. Its derivative at a bound is 1.

Raises:
    ArgumentError: both bounds are None.
    ShapeError: the shapes do not broadcast.""",
        "td.clip(td.asarray([1.0, 5.0]), 2.0, 4.0) -> [2.0, 4.0]",
    ),
    reference="numpy.clip",
    dtypes=_ORDERED,
    samples=_clip_samples,
    errors=lambda: [Bad((Draw((2,)),), TypeError, "at least one of min and max")],
)
def clip(self: Any, min: Any, max: Any) -> Any:
    if min is None and max is None:
        raise ArgumentError("clip: give at least one of min and max")
    raised = self if min is None else clip_min(self, min)
    return raised if max is None else clip_max(raised, max)
