"""Elementwise functions of ``jax.lax`` whose arguments or meaning are not those of tandem's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ArgumentError, ShapeError
from ...numpy.shapes import to_condition
from ...operators.declare.shape_rules import promoted_dtype, spec_of
from ...operators.elementwise import arithmetic
from ...operators.elementwise.activation import sigmoid as logistic
from ...operators.elementwise.bitwise import bitwise_right_shift
from ...operators.elementwise.casting import astype, clone
from ...operators.elementwise.comparison import eq
from ...operators.elementwise.selection import clip, where
from ...operators.shape.bitcast import bitcast
from ...operators.shape.rearrange import squeeze
from ...operators.shape.views import reshape
from ...registry.dtypes import SIGNED, UNSIGNED, as_dtype

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, Tensor

__all__ = [
    "bitcast_convert_type",
    "clamp",
    "convert_element_type",
    "div",
    "integer_pow",
    "logistic",
    "select",
    "select_n",
    "shift_right_logical",
]


def div(x: Tensor, y: Tensor) -> Tensor:
    """Quotients; of integers rounded towards zero.

    >>> import tandem as td
    >>> td.jax.lax.div(td.asarray([-7, 7]), 2).tolist()
    [-3, 3]
    """
    if promoted_dtype("div", (x, y)).is_inexact:
        return arithmetic.div(x, y)
    return arithmetic.floor_divide(arithmetic.sub(x, arithmetic.fmod(x, y)), y)


def clamp(min: Tensor, x: Tensor, max: Tensor) -> Tensor:
    """``x`` between two bounds, which come first and last."""
    return clip(x, min, max)


def select(pred: Tensor, on_true: Tensor, on_false: Tensor) -> Tensor:
    """Elements of the second argument where ``pred`` holds, or is not 0, else of the third."""
    return where(to_condition(pred), on_true, on_false)


def select_n(which: Tensor, *cases: Tensor) -> Tensor:
    """Elements of the case whose number ``which`` has; of a bool, the second case where it holds.

    Raises:
        ArgumentError: there is no case.
    """
    if not cases:
        raise ArgumentError("select_n takes at least one case")
    result = cases[0]
    for number, case in enumerate(cases[1:], 1):
        result = where(eq(which, number), case, result)
    return result


def integer_pow(x: Tensor, y: int) -> Tensor:
    """``x`` to the power of a Python integer."""
    return arithmetic.pow(x, y)


def convert_element_type(operand: Tensor, new_dtype: DTypeLike) -> Tensor:
    """The elements in another dtype."""
    return astype(operand, new_dtype)


def bitcast_convert_type(operand: Tensor, new_dtype: DTypeLike) -> Tensor:
    """The bits of the elements as another dtype, in memory of its own.

    Smaller elements are along a new last axis; for larger ones, the last axis has the parts of one.

    Raises:
        ShapeError: the last axis does not have the parts of one element.

    >>> import tandem as td
    >>> td.jax.lax.bitcast_convert_type(td.ones(2), td.uint16).shape
    (2, 2)
    """
    spec, dtype = spec_of(operand), as_dtype(new_dtype)
    old, new = spec.dtype.itemsize, dtype.itemsize
    if new < old:
        operand = reshape(operand, (*spec.shape, 1))
    elif new > old and (not spec.shape or spec.shape[-1] != new // old):
        raise ShapeError(
            f"bitcast_convert_type: {new // old} elements of {spec.dtype} make one of {dtype}, not {spec.shape}"
        )
    bits = bitcast(operand, dtype)
    return clone(squeeze(bits, -1) if new > old else bits)


def shift_right_logical(x: Tensor, y: Tensor) -> Tensor:
    """``x`` shifted right by ``y`` bits; zeros come in, for negative numbers too.

    >>> import tandem as td
    >>> td.jax.lax.shift_right_logical(td.asarray([-1], dtype=td.int8), 4).tolist()
    [15]
    """
    dtype = promoted_dtype("shift_right_logical", (x, y))
    if dtype.kind != "i":
        return bitwise_right_shift(x, y)
    unsigned = UNSIGNED[SIGNED.index(dtype)]
    return astype(bitwise_right_shift(astype(x, unsigned), astype(y, unsigned)), dtype)
