"""Reductions that are folds: sums and products, extrema, any and all.

Sums and products of float16 and bfloat16 are accumulated in float32. Where several elements are the maximum, each gets
an equal share of the cotangent (the convention of JAX).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...registry.dtypes import ALL, DEFAULT_INT, REAL, DType, bool_, uint64
from ..creation.creation import full
from ..declare.derivatives import Linear, NotDifferentiable, Rule
from ..declare.kinds import reduction, reduction_shape_rule
from ..declare.shape_rules import normalize_axes
from ..elementwise.comparison import eq
from ..elementwise.selection import where
from ..scalar_ir import nodes as s
from ..scalar_ir.fold import Fold, accumulate_as_result, highest, lowest
from ..shape.views import broadcast_to, expand_reduced, reshape
from .complex_folds import complex_fold_decomposition, complex_fold_kernel

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

ORDERED = (bool_, *REAL)

SUM = Fold("sum", lambda a, b: a + b, lambda dtype: 0, accumulate_as_result, compensated=True)
PROD = Fold("prod", lambda a, b: a * b, lambda dtype: 1, accumulate_as_result)
MAX = Fold("max", s.maximum, lowest, needs_elements=True)
MIN = Fold("min", s.minimum, highest, needs_elements=True)
ANY = Fold("any", lambda a, b: a | b, lambda dtype: False, accumulate_as_result)
ALL_TRUE = Fold("all", lambda a, b: a & b, lambda dtype: True, accumulate_as_result)
ARGMAX = Fold("argmax", s.maximum, lowest, returns_index=True, needs_elements=True)
ARGMIN = Fold("argmin", s.minimum, highest, returns_index=True, needs_elements=True)


def sum_result_dtype(dtype: DType) -> DType:
    """The dtype of the result of a sum or product: the default integer for integers, ``uint64`` for unsigned ones.

    The dtype that elements are added in is :meth:`..scalar_ir.fold.Fold.accumulation_dtype`.
    """
    return dtype if dtype.is_inexact else uint64 if dtype.kind == "u" else DEFAULT_INT


sum: OperatorFunction[Tensor] = reduction(
    "sum",
    SUM,
    schema="sum(Tensor self, int[]? axis=None, *, ScalarType? dtype=None, bool keepdims=False) -> Tensor",
    shape_rule=reduction_shape_rule("sum", sum_result_dtype, ALL),
    doc="The sum of the elements over axes; 0 if there are none.",
    example="td.sum(td.asarray([[1, 2], [3, 4]]), 0) -> [4, 6]",
    reference="numpy.sum",
    dtypes=ALL,
    derivative=Linear(
        {"self": lambda g, self_spec, axis, keepdims: expand_reduced(g, self_spec.shape, axis, keepdims)}
    ),
    autocast="float32",
    native=complex_fold_kernel("sum"),
    decomposition=complex_fold_decomposition("sum", lambda: sum, 0),
)


def _expand_cotangent(g: Tensor, self: Tensor, axis: tuple[int, ...] | None, keepdims: bool) -> Tensor:
    return expand_reduced(g, self.shape, axis, keepdims)


# -- prod --------------------------------------------------------------------------------------------------------------
def _roll_last(x: Tensor, shift: int) -> Tensor:
    """The last axis rolled backwards by ``shift``."""
    return x.roll(-shift, -1)


def product_of_others(x: Tensor) -> Tensor:
    """For each element the product of the others along the last axis, without a division, so zeros are allowed.

    Binary powering: ``block[i]`` is the product of the ``width`` elements after ``i``, counted round the axis.
    """
    remaining = x.shape[-1] - 1
    block, width, value, covered = _roll_last(x, 1), 1, None, 0
    while remaining > 0:
        if remaining & 1:
            value = block if value is None else value * _roll_last(block, covered)
            covered += width
        block, width, remaining = block * _roll_last(block, width), 2 * width, remaining >> 1
    return broadcast_to(full((), 1.0, device=x.device), x.shape) if value is None else value


def _prod_partial(self: Tensor, axis: Sequence[int] | None) -> Tensor:
    """The partial derivative of a product with respect to each of its factors."""
    rank = len(self.shape)
    axes = normalize_axes("prod", axis, rank)
    kept = tuple(a for a in range(rank) if a not in axes)
    order = kept + axes
    front = self.permute(order)
    count = math.prod(self.shape[a] for a in axes)
    others = product_of_others(reshape(front, (*[self.shape[a] for a in kept], count)))
    back = tuple(order.index(a) for a in range(rank))
    return reshape(others, front.shape).permute(back)


prod: OperatorFunction[Tensor] = reduction(
    "prod",
    PROD,
    schema="prod(Tensor self, int[]? axis=None, *, ScalarType? dtype=None, bool keepdims=False) -> Tensor",
    shape_rule=reduction_shape_rule("prod", sum_result_dtype, ALL),
    doc="The product of the elements over axes; 1 if there are none.",
    example="td.prod(td.asarray([[1, 2], [3, 4]]), 0) -> [3, 8]",
    reference="numpy.prod",
    dtypes=ALL,
    derivative=Rule(
        vjp={
            "self": lambda g, self, axis, keepdims: (
                _expand_cotangent(g, self, axis, keepdims) * _prod_partial(self, axis)
            )
        },
        jvp={
            "self": lambda t, self, axis, keepdims: sum(
                t * _prod_partial(self, axis), axis, keepdims=keepdims
            )
        },
    ),
    autocast="float32",
    native=complex_fold_kernel("prod"),
    decomposition=complex_fold_decomposition("prod", lambda: prod, 1),
)


# -- extrema -----------------------------------------------------------------------------------------------------------
def _tie_shares(self: Tensor, out: Tensor, axis: tuple[int, ...] | None, keepdims: bool) -> Tensor:
    """Each element's share in the extremum: 1/n for each of n ties, else 0."""
    chosen = where(eq(self, expand_reduced(out, self.shape, axis, keepdims)), 1.0, 0.0)
    return chosen / sum(chosen, axis, keepdims=True)


TIE_RULE = Rule(
    vjp={
        "self": lambda g, self, out, axis, keepdims: (
            _expand_cotangent(g, self, axis, keepdims) * _tie_shares(self, out, axis, keepdims)
        )
    },
    jvp={
        "self": lambda t, self, out, axis, keepdims: sum(
            t * _tie_shares(self, out, axis, keepdims), axis, keepdims=keepdims
        )
    },
)

max = reduction(
    "max",
    MAX,
    doc="The largest element over axes; NaN if there is one.",
    example="td.max(td.asarray([[1, 2], [3, 4]]), 0) -> [3, 4]",
    reference="numpy.max",
    dtypes=ORDERED,
    derivative=TIE_RULE,
)
min = reduction(
    "min",
    MIN,
    doc="The smallest element over axes; NaN if there is one.",
    example="td.min(td.asarray([[1, 2], [3, 4]]), 0) -> [1, 2]",
    reference="numpy.min",
    dtypes=ORDERED,
    derivative=TIE_RULE,
)
any = reduction(
    "any",
    ANY,
    doc="Whether an element over axes is true (not zero); False if there are none.",
    example="td.any(td.asarray([[0, 0], [0, 4]]), 0) -> [False, True]",
    reference="numpy.any",
    dtypes=ALL,
    dtype_of=lambda dtype: bool_,
    derivative=NotDifferentiable("any returns bools"),
)
all = reduction(
    "all",
    ALL_TRUE,
    doc="Whether all elements over axes are true (not zero); True if there are none.",
    example="td.all(td.asarray([[0, 2], [3, 4]]), 0) -> [False, True]",
    reference="numpy.all",
    dtypes=ALL,
    dtype_of=lambda dtype: bool_,
    derivative=NotDifferentiable("all returns bools"),
)
argmax = reduction(
    "argmax",
    ARGMAX,
    schema="argmax(Tensor self, int? axis=None, *, bool keepdims=False) -> Tensor",
    doc="The index of the largest element along an axis or of all; the first of several; NaN if there is one.",
    example="td.argmax(td.asarray([[1, 2], [3, 4]]), 0) -> [1, 1]",
    reference="numpy.argmax",
    dtypes=ORDERED,
    dtype_of=lambda dtype: DEFAULT_INT,
    samples="samples.kinds.index_reduction_samples",
    derivative=NotDifferentiable("argmax returns integers"),
)
argmin = reduction(
    "argmin",
    ARGMIN,
    schema="argmin(Tensor self, int? axis=None, *, bool keepdims=False) -> Tensor",
    doc="The index of the smallest element along an axis or of all; the first of several; NaN if there is one.",
    example="td.argmin(td.asarray([[1, 2], [3, 4]]), 0) -> [0, 0]",
    reference="numpy.argmin",
    dtypes=ORDERED,
    dtype_of=lambda dtype: DEFAULT_INT,
    samples="samples.kinds.index_reduction_samples",
    derivative=NotDifferentiable("argmin returns integers"),
)
