"""Elementwise functions of ``jax.lax`` whose arguments or meaning are not those of tandem's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ArgumentError
from ...operators.declare.shape_rules import promoted_dtype
from ...operators.elementwise import arithmetic
from ...operators.elementwise.activation import sigmoid as logistic
from ...operators.elementwise.casting import astype
from ...operators.elementwise.comparison import eq
from ...operators.elementwise.selection import clip, where

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, Tensor

__all__ = ["clamp", "convert_element_type", "div", "integer_pow", "logistic", "select", "select_n"]


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
    """Elements of the second argument where ``pred`` holds, else of the third."""
    return where(pred, on_true, on_false)


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
