"""Selection: where, minimum and maximum, clip.

Where two candidates are equal, `maximum` and `minimum` pass half of the cotangent to each, and `clip` passes all of it
to the tensor (the conventions of JAX and PyTorch).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import DTypeError
from ...registry.dtypes import ALL, REAL, bool_
from ...registry.values import TensorSpec
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.derivatives import Partials
from ..declare.docstrings import make_docstring
from ..declare.kinds import binary, composite, elementwise, elementwise_shape_rule
from ..declare.shape_rules import compute_dtype, spec_of
from ..scalar_ir import nodes as s
from .comparison import eq, ge, gt, le, lt

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

_ORDERED = (bool_, *REAL)
_promoting_shape_rule = elementwise_shape_rule("where", "same", ALL)


def _where_shape_rule(condition: TensorSpec, self: TensorSpec, other: TensorSpec) -> TensorSpec:
    dtype = spec_of(condition).dtype
    if dtype is not bool_:
        raise DTypeError(f"where: the condition is a bool tensor, not {dtype.name}; compare it, as in x != 0")
    return _promoting_shape_rule(condition, self, other)


def _where_body(condition: s.Expr, self: s.Expr, other: s.Expr) -> s.Expr:
    return s.select(condition if condition.dtype is bool_ else s.ne(condition, 0), self, other)


where: OperatorFunction[Tensor] = elementwise(
    "ternary",
    "where(Tensor condition, Tensor self, Tensor other) -> Tensor",
    _where_body,
    doc="Elements of `self` where the condition is true, of `other` where it is false.",
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
    shape_rule=_where_shape_rule,
    samples="samples.elementwise.where_samples",
    errors="samples.elementwise.where_errors",
    derivative=Partials(
        {
            "self": lambda g, condition: where(condition, g, 0.0),
            "other": lambda g, condition: where(condition, 0.0, g),
        }
    ),
    method=False,
)


def _tie_share(one: Tensor, two: Tensor, out: Tensor) -> Tensor:
    """The partial derivative of a choice by the candidate ``one``: 1 if it was chosen, 1/2 if both are equal."""
    return where(eq(one, two), 0.5, where(eq(one, out), 1.0, 0.0))


_TIE_PARTIALS = Partials(
    {
        "self": lambda self, other, out: _tie_share(self, other, out),
        "other": lambda self, other, out: _tie_share(other, self, out),
    }
)

maximum = binary(
    "maximum",
    s.maximum,
    doc="The larger of two elements; NaN if either is NaN.",
    example="td.maximum(td.asarray([1.0, 5.0]), 3.0) -> [3.0, 5.0]",
    reference="numpy.maximum",
    dtypes=_ORDERED,
    derivative=_TIE_PARTIALS,
)
minimum = binary(
    "minimum",
    s.minimum,
    doc="The smaller of two elements; NaN if either is NaN.",
    example="td.minimum(td.asarray([1.0, 5.0]), 3.0) -> [1.0, 3.0]",
    reference="numpy.minimum",
    dtypes=_ORDERED,
    derivative=_TIE_PARTIALS,
)


def _ignore_nan(choose: Callable[..., s.Expr]) -> Callable[[s.Expr, s.Expr], s.Expr]:
    return lambda a, b: s.select(s.isnan(a), b, s.select(s.isnan(b), a, choose(a, b)))


fmax = binary(
    "fmax",
    _ignore_nan(s.maximum),
    doc="The larger of two elements; if one is NaN, the other.",
    example="td.fmax(td.asarray([1.0, float('nan')]), 3.0) -> [3.0, 3.0]",
    reference="numpy.fmax",
    dtypes=_ORDERED,
    derivative=_TIE_PARTIALS,
)
fmin = binary(
    "fmin",
    _ignore_nan(s.minimum),
    doc="The smaller of two elements; if one is NaN, the other.",
    example="td.fmin(td.asarray([1.0, float('nan')]), 3.0) -> [1.0, 3.0]",
    reference="numpy.fmin",
    dtypes=_ORDERED,
    derivative=_TIE_PARTIALS,
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


@composite(
    "clip(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    doc=make_docstring(
        "The tensor with its elements limited to an interval.",
        """Args:
    self: tensor of bool, integer or real floating dtype.
    min, max: the bounds: tensors, Python scalars, or None for no bound; shapes broadcast. Where min > max the result
        is max.

Returns:
    A tensor of the broadcast shape, of the promoted dtype. Its derivative at a bound is 1.

Raises:
    ShapeError: the shapes do not broadcast.""",
        "td.clip(td.asarray([1.0, 5.0]), 2.0, 4.0) -> [2.0, 4.0]",
    ),
    reference="numpy.clip",
    dtypes=_ORDERED,
    samples="samples.elementwise.clip_samples",
    errors=lambda: [ErrorInput((TensorSample((2,)), TensorSample((3,))), ValueError, "broadcast")],
    aliases=("clamp",),
    inplace=True,
)
def clip(self: Tensor, min: Tensor | None, max: Tensor | None) -> Tensor:
    compute_dtype("clip", "same", _ORDERED, (self,))
    raised = self if min is None else clip_min(self, min)
    return raised if max is None else clip_max(raised, max)
