"""Cumulative sums, products and log-sum-exps along an axis.

float16 and bfloat16 are accumulated in float32 and rounded element by element.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...registry.dtypes import ALL, FLOATS
from ..creation.creation import arange
from ..declare.derivatives import Linear, Rule
from ..declare.kinds import scan
from ..elementwise.comparison import eq
from ..elementwise.exponential import exp
from ..elementwise.selection import where
from ..scalar_ir import nodes as s
from ..scalar_ir.fold import Fold
from ..shape.views import reshape
from .folds import PROD, SUM, sum_result_dtype

if TYPE_CHECKING:
    from ...registry.types import Tensor
    from ...registry.values import TensorSpec


def _flatten_if_none(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    """The tensor and the axis that a scan runs along; without an axis it runs over the flattened tensor."""
    return (reshape(x, (-1,)), 0) if axis is None else (x, axis % len(x.shape))


def _cumsum_transpose(g: Tensor, self_spec: TensorSpec, axis: int | None) -> Tensor:
    g, along = _flatten_if_none(g, axis)
    return reshape(cumsum(g.flip(along), along).flip(along), self_spec.shape)


cumsum = scan(
    "cumsum",
    SUM,
    doc="The sums of the elements up to and including each along an axis.",
    example="td.cumsum(td.asarray([1, 2, 3]), 0) -> [1, 3, 6]",
    reference="numpy.cumsum",
    dtypes=ALL,
    dtype_of=sum_result_dtype,
    derivative=Linear({"self": _cumsum_transpose}),
    autocast="float32",
    inplace=True,
)


# -- cumprod: derivatives without a division, so zeros are allowed ----------------------------------------------------
def _is_first(x: Tensor, axis: int) -> Tensor:
    """A bool tensor, true for the first index along an axis."""
    size = x.shape[axis]
    column = (size,) + (1,) * (len(x.shape) - axis - 1)
    return reshape(eq(arange(size, device=x.device), 0), column)


def _recurrence(factor: Tensor, term: Tensor, axis: int) -> Tensor:
    """``r[i] = term[i] + factor[i] * r[i-1]`` along an axis, by doubling the stride that a step spans."""
    factor, stride = where(_is_first(factor, axis), 0.0, factor), 1
    while stride < factor.shape[axis]:
        # elements that wrap around are multiplied by the first factor, which is 0
        term = term + factor * term.roll(stride, axis)
        factor, stride = factor * factor.roll(stride, axis), 2 * stride
    return term


def _product_before(out: Tensor, axis: int) -> Tensor:
    """The product of all elements before each."""
    return where(_is_first(out, axis), 1.0, out.roll(1, axis))


def _cumprod_vjp(g: Tensor, self: Tensor, out: Tensor, axis: int | None) -> Tensor:
    x, along = _flatten_if_none(self, axis)
    later = _recurrence(x.flip(along).roll(1, along), g.flip(along), along).flip(along)
    return reshape(later * _product_before(out, along), self.shape)


def _cumprod_jvp(t: Tensor, self: Tensor, out: Tensor, axis: int | None) -> Tensor:
    x, along = _flatten_if_none(self, axis)
    return _recurrence(x, _flatten_if_none(t, axis)[0] * _product_before(out, along), along)


cumprod = scan(
    "cumprod",
    PROD,
    doc="The products of the elements up to and including each along an axis.",
    example="td.cumprod(td.asarray([1, 2, 3]), 0) -> [1, 2, 6]",
    reference="numpy.cumprod",
    dtypes=ALL,
    dtype_of=sum_result_dtype,
    derivative=Rule(vjp={"self": _cumprod_vjp}, jvp={"self": _cumprod_jvp}),
    autocast="float32",
    inplace=True,
)


# -- logcumsumexp: the derivatives add exponentials of differences that are not positive ------------------------------
LOGSUMEXP = Fold("logsumexp", s.logaddexp, lambda dtype: -math.inf)


def _ratio(smaller: Tensor, larger: Tensor) -> Tensor:
    """``exp(smaller - larger)``; 1 for equal numbers, also for infinite ones."""
    return exp(where(eq(smaller, larger), 0.0, smaller - larger))


def _logcumsumexp_vjp(g: Tensor, self: Tensor, out: Tensor, axis: int | None) -> Tensor:
    (x, along), out = _flatten_if_none(self, axis), _flatten_if_none(out, axis)[0]
    steps = _ratio(out, out.roll(-1, along)).flip(along)
    later = _recurrence(steps, _flatten_if_none(g, axis)[0].flip(along), along).flip(along)
    return reshape(later * _ratio(x, out), self.shape)


def _logcumsumexp_jvp(t: Tensor, self: Tensor, out: Tensor, axis: int | None) -> Tensor:
    (x, along), steps = _flatten_if_none(self, axis), _flatten_if_none(t, axis)[0]
    out = _flatten_if_none(out, axis)[0]
    return _recurrence(_ratio(out.roll(1, along), out), steps * _ratio(x, out), along)


logcumsumexp = scan(
    "logcumsumexp",
    LOGSUMEXP,
    doc="The logarithms of the sums of exponentials of the elements up to and including each along an axis.",
    example="td.logcumsumexp(td.asarray([0.0, float('-inf')]), 0) -> [0.0, 0.0]",
    reference="references.torch_functions.logcumsumexp",
    dtypes=FLOATS,
    derivative=Rule(vjp={"self": _logcumsumexp_vjp}, jvp={"self": _logcumsumexp_jvp}),
    autocast="float32",
)
