"""lerp, addcmul, addcdiv, rsub, frac, clamp_min and clamp_max, with PyTorch's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...registry.dtypes import COMPLEX, FLOATS, NUMERIC, REAL
from ...registry.values import SCALARS
from ..declare.derivatives import Partials
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite, unary
from ..declare.shape_rules import is_known
from ..scalar_ir import nodes as s
from .arithmetic import abs as magnitude
from .arithmetic import sub
from .comparison import lt
from .selection import clip_max, clip_min, where

if TYPE_CHECKING:
    from ...registry.types import Number, Tensor

_INEXACT = (*FLOATS, *COMPLEX)
_RETURNS = """

Returns:
    A tensor of the broadcast shape, of the promoted dtype.

Raises:
    DTypeError: the dtype is not supported, or the dtypes do not promote.
    ShapeError: the shapes do not broadcast."""


@composite(
    "lerp(Tensor self, Tensor end, Tensor weight) -> Tensor",
    doc=make_docstring(
        "The points between two tensors: `self + weight * (end - self)`.",
        """Args:
    self, end: tensors of floating-point or complex dtype.
    weight: 0 for `self`, 1 for `end`; a tensor or a number. The shapes broadcast."""
        + _RETURNS,
        "td.lerp(td.asarray([1.0, 2.0]), td.asarray([3.0, 6.0]), 0.5) -> [2.0, 4.0]",
    ),
    reference="references.torch_functions.lerp",
    samples="samples.weighted_sums.lerp_samples",
    errors="samples.weighted_sums.lerp_errors",
    dtypes=_INEXACT,
    autocast="promote",
    inplace=True,
)
def lerp(self: Tensor, end: Tensor, weight: Tensor) -> Tensor:
    difference = sub(end, self)
    near, far = self + weight * difference, end - difference * (1 - weight)
    if isinstance(weight, SCALARS):
        return near if abs(weight) < 0.5 else far
    return where(lt(magnitude(weight), 0.5), near, far)


@composite(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc=make_docstring(
        "`self + value * tensor1 * tensor2`.",
        """Args:
    self, tensor1, tensor2: tensors of numeric dtype; shapes that broadcast.
    value: a factor of the product."""
        + _RETURNS,
        "td.addcmul(td.asarray([1.0]), td.asarray([2.0]), td.asarray([3.0]), value=10) -> [61.0]",
    ),
    reference="references.torch_functions.addcmul",
    samples="samples.weighted_sums.product_samples",
    errors="samples.weighted_sums.product_errors",
    dtypes=NUMERIC,
    autocast="promote",
    inplace=True,
)
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number) -> Tensor:
    return self + (tensor1 if is_known(value, 1) else tensor1 * value) * tensor2


@composite(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    doc=make_docstring(
        "`self + value * tensor1 / tensor2`.",
        """Args:
    self, tensor1, tensor2: tensors of floating-point or complex dtype; shapes that broadcast.
    value: a factor of the quotient."""
        + _RETURNS,
        "td.addcdiv(td.asarray([1.0]), td.asarray([6.0]), td.asarray([3.0]), value=10) -> [21.0]",
    ),
    reference="references.torch_functions.addcdiv",
    samples="samples.weighted_sums.quotient_samples",
    errors="samples.weighted_sums.product_errors",
    dtypes=_INEXACT,
    autocast="promote",
    inplace=True,
)
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number) -> Tensor:
    return self + (tensor1 if is_known(value, 1) else tensor1 * value) / tensor2


@composite(
    "rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    doc=make_docstring(
        "`other - alpha * self`.",
        """Args:
    self, other: tensors of numeric dtype; shapes that broadcast.
    alpha: a factor of `self`."""
        + _RETURNS,
        "td.rsub(td.asarray([1.0]), 5.0, alpha=2) -> [3.0]",
    ),
    reference="references.torch_functions.rsub",
    samples="samples.weighted_sums.difference_samples",
    errors="samples.weighted_sums.difference_errors",
    dtypes=NUMERIC,
    method=False,
)
def rsub(self: Tensor, other: Tensor, *, alpha: Number) -> Tensor:
    return sub(other, self if is_known(alpha, 1) else self * alpha)


_BOUND = """Args:
    self: tensor of integer or real floating dtype.
    {name}: the bound: a tensor or a number."""


frac = unary(
    "frac",
    lambda x: x - s.trunc(x),
    doc="The fractional part of each element, with its sign; 0 for integers.",
    example="td.frac(td.asarray([1.5, -2.25])) -> [0.5, -0.25]",
    reference="references.torch_functions.frac",
    dtypes=REAL,
    derivative=Partials({"self": lambda g: g}),
)


@composite(
    "clamp_min(Tensor self, Tensor min) -> Tensor",
    doc=make_docstring(
        "The tensor with its elements raised to a lower bound, as `clip` with `min` only.",
        _BOUND.format(name="min") + _RETURNS,
        "td.clamp_min(td.asarray([1.0, 5.0]), 3.0) -> [3.0, 5.0]",
    ),
    reference="numpy.maximum",
    samples="samples.weighted_sums.bound_samples",
    errors="samples.weighted_sums.difference_errors",
    dtypes=REAL,
    inplace=True,
)
def clamp_min(self: Tensor, min: Tensor) -> Tensor:
    return clip_min(self, min)


@composite(
    "clamp_max(Tensor self, Tensor max) -> Tensor",
    doc=make_docstring(
        "The tensor with its elements lowered to an upper bound, as `clip` with `max` only.",
        _BOUND.format(name="max") + _RETURNS,
        "td.clamp_max(td.asarray([1.0, 5.0]), 3.0) -> [1.0, 3.0]",
    ),
    reference="numpy.minimum",
    samples="samples.weighted_sums.bound_samples",
    errors="samples.weighted_sums.difference_errors",
    dtypes=REAL,
    inplace=True,
)
def clamp_max(self: Tensor, max: Tensor) -> Tensor:
    return clip_max(self, max)
