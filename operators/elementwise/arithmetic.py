"""Arithmetic operators of two tensors, and of one: negation, sign, magnitude, square and reciprocal.

The derivative of `abs` at 0 is 0. Integers wrap around. Division of integers by zero returns 0, and INT_MIN // -1 is
INT_MIN, as in NumPy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ValueArgumentError
from ...registry.dtypes import ALL, NUMERIC, REAL, bool_
from ...registry.values import TensorSpec
from ..declare.derivatives import Partials
from ..declare.kinds import binary, elementwise_shape_rule, unary
from ..scalar_ir import nodes as s
from .comparison import eq, logical_and
from .exponential import exp, log
from .rounding import floor, trunc
from .selection import where

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, Number, Operand, Tensor

add = binary(
    "add",
    s.add,
    doc="Sum of two tensors, elementwise; `or` on bools.",
    example="td.add(td.asarray([1.0, 2.0]), 3.0) -> [4.0, 5.0]",
    reference="numpy.add",
    dtypes=ALL,
    derivative=Partials({"self": 1, "other": 1}),
)
sub = binary(
    "sub",
    s.sub,
    doc="Difference of two tensors, elementwise.",
    example="td.sub(td.asarray([1.0, 2.0]), 3.0) -> [-2.0, -1.0]",
    reference="numpy.subtract",
    dtypes=NUMERIC,
    derivative=Partials({"self": 1, "other": -1}),
    aliases=("subtract",),
)
mul = binary(
    "mul",
    s.mul,
    doc="Product of two tensors, elementwise; `and` on bools.",
    example="td.mul(td.asarray([1.0, 2.0]), 3.0) -> [3.0, 6.0]",
    reference="numpy.multiply",
    dtypes=ALL,
    derivative=Partials({"self": lambda other: other, "other": lambda self: self}),
    aliases=("multiply",),
)


def _reciprocal(other: Tensor | Number) -> Tensor | Number:
    """``1 / other``; infinity for the number 0, which Python does not divide by."""
    if isinstance(other, (int, float, complex)) and not other:
        return math.copysign(math.inf, other.real)
    return 1 / other


div = binary(
    "div",
    s.truediv,
    doc="Quotient of two tensors, elementwise.",
    example="td.div(td.asarray([1, 2]), 4) -> [0.25, 0.5]",
    reference="numpy.divide",
    dtypes=ALL,
    result="float",
    derivative=Partials({"self": _reciprocal, "other": lambda other, out: -out / other}),
    aliases=("divide", "true_divide"),
)
floor_divide = binary(
    "floor_divide",
    s.floordiv,
    doc="The quotient rounded down, elementwise; 0 for an integer divided by zero.",
    example="td.floor_divide(td.asarray([7, -7]), 2) -> [3, -4]",
    reference="numpy.floor_divide",
    dtypes=REAL,
    derivative=Partials({"self": 0, "other": 0}),
)
remainder = binary(
    "remainder",
    s.remainder,
    doc="The remainder of `floor_divide`, with the sign of the divisor; 0 for an integer divided by zero.",
    example="td.remainder(td.asarray([7, -7]), 3) -> [1, 2]",
    reference="numpy.remainder",
    dtypes=REAL,
    derivative=Partials({"self": 1, "other": lambda self, other: -floor(self / other)}),
    aliases=("mod",),
)
fmod = binary(
    "fmod",
    s.fmod,
    doc="The remainder of division rounded towards zero, with the sign of the dividend; 0 for integers over zero.",
    example="td.fmod(td.asarray([7, -7]), 3) -> [1, -1]",
    reference="numpy.fmod",
    dtypes=REAL,
    derivative=Partials({"self": 1, "other": lambda self, other: -trunc(self / other)}),
)

_promoting_shape_rule = elementwise_shape_rule("pow", "same", NUMERIC)


def _pow_shape_rule(self: Operand, other: Operand) -> TensorSpec:
    spec = _promoting_shape_rule(self, other)
    if type(other) is int and other < 0 and spec.dtype.is_integer:
        raise ValueArgumentError(
            f"pow: an integer to the negative power {other} is not an integer; use {float(other)}"
        )
    return spec


def _pow_partial_self(self: Tensor, other: Tensor | Number) -> Tensor | Number:
    if isinstance(other, (int, float, complex)):
        return _power_derivative(self, other)
    # at 0 ** 0 the derivatives of all orders are 0, not 0 * 0 ** -1
    base = where(logical_and(eq(self, 0), eq(other, 0)), 1.0, self)
    return other * pow(base, other - 1)


def _power_derivative(x: Tensor, number: Number) -> Tensor | Number:
    """The derivative of ``x ** number``, as a product, quotient or root where the power is computed so."""
    if number == 2:
        return number * x
    if number == -1:
        inverse = pow(x, number)
        return -(inverse * inverse)
    if number == 0.5:
        return number / pow(x, number)
    return number * pow(x, number - 1) if number else 0.0


def _pow_partial_other(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    # x ** y * log(x) tends to 0 at x = 0, y >= 0
    return out * log(where(eq(self, 0), 1.0, self))


def _pow_reference(a: Array, b: Array) -> Array:
    """NumPy's power; for negative powers of integers the truncated quotient 1 / a**-b (0 for a = 0)."""
    if a.dtype.kind not in "iu":
        return np.power(a, b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)).astype(a.dtype)
    return np.where(b < 0, inverse, np.power(a, np.where(b < 0, 0, b)))


pow = binary(
    "pow",
    s.pow,
    number_body=s.uniform_power,
    doc="`self` to the power `other`; integers to a tensor of negative integers return truncated quotients.",
    example="td.pow(td.asarray([2.0, 3.0]), 2) -> [4.0, 9.0]",
    reference=_pow_reference,
    dtypes=NUMERIC,
    domain=(0.25, 3.0),
    shape_rule=_pow_shape_rule,
    value_checked=True,
    errors="samples.elementwise.pow_errors",
    derivative=Partials({"self": _pow_partial_self, "other": _pow_partial_other}),
    autocast="float32",
    aliases=("power",),
)

hypot = binary(
    "hypot",
    s.hypot,
    doc="The length of the hypotenuse, sqrt(self**2 + other**2), without intermediate overflow.",
    example="td.hypot(td.asarray([3.0, 5.0]), td.asarray([4.0, 12.0])) -> [5.0, 13.0]",
    reference="numpy.hypot",
    dtypes=REAL,
    result="float",
    domain=(0.5, 3.0),
    derivative=Partials({"self": lambda self, out: self / out, "other": lambda other, out: other / out}),
)
copysign = binary(
    "copysign",
    s.copysign,
    doc="The magnitude of `self` with the sign of `other`, including -0.0.",
    example="td.copysign(td.asarray([1.0, 2.0]), -0.0) -> [-1.0, -2.0]",
    reference="numpy.copysign",
    dtypes=REAL,
    result="float",
    derivative=Partials({"self": lambda self, out: sign(self) * sign(out), "other": 0}),
)
logaddexp = binary(
    "logaddexp",
    s.logaddexp,
    doc="log(exp(self) + exp(other)), without intermediate overflow.",
    example="td.logaddexp(td.asarray([0.0]), float('-inf')) -> [0.0]",
    reference="numpy.logaddexp",
    dtypes=REAL,
    result="float",
    domain=(0.1, 3.0),  # sums near 0 lose digits
    derivative=Partials(
        {"self": lambda self, out: exp(self - out), "other": lambda other, out: exp(other - out)}
    ),
)

# -- one operand -------------------------------------------------------------------------------------------------------
positive = unary(
    "positive",
    lambda x: x,
    doc="A copy of the tensor.",
    example="td.positive(td.asarray([1, -2])) -> [1, -2]",
    reference="numpy.positive",
    dtypes=NUMERIC,
    derivative=Partials({"self": 1}),
)
neg = unary(
    "neg",
    s.neg,
    doc="The negative of each element; unsigned integers and the most negative integer wrap around.",
    example="td.neg(td.asarray([1, -2])) -> [-1, 2]",
    reference="numpy.negative",
    dtypes=NUMERIC,
    derivative=Partials({"self": -1}),
    aliases=("negative",),
)


def _sign(x: s.Expr) -> s.Expr:
    """-1, 0 or 1; for complex numbers x / abs(x), and 0 for 0."""
    if x.dtype.kind != "c":
        return s.sign(x)
    parts, size = (s.real(x), s.imag(x)), s.abs(x)
    infinite = [s.isinf(part) for part in parts]
    size = s.select(
        infinite[0] & infinite[1], math.nan, s.select(s.isinf(size), s.const(1.0, size.dtype), size)
    )
    # an infinite part outweighs a finite one
    shares = [
        s.select(own, s.copysign(s.const(1.0, size.dtype), part), s.select(other, 0.0, part))
        for part, own, other in zip(parts, infinite, reversed(infinite))
    ]
    return s.select(s.eq(x, 0), 0.0, s.complex_(shares[0] / size, shares[1] / size))


sign: OperatorFunction[Tensor] = unary(
    "sign",
    _sign,
    doc="-1, 0 or 1 by the sign of each element, NaN for NaN; for complex numbers self / abs(self).",
    example="td.sign(td.asarray([3.0, 0.0, -2.0])) -> [1.0, 0.0, -1.0]",
    reference="numpy.sign",
    dtypes=NUMERIC,
    derivative=Partials({"self": 0}),
    aliases=("sgn",),
)


def _abs_derivative(self: Tensor) -> Tensor:
    """The sign; for complex numbers its conjugate, written with operators that have derivatives."""
    if self.dtype.kind != "c":
        return sign(self)
    size = abs(self)
    return self.conj() / where(eq(size, 0), 1.0, size)


abs = unary(
    "abs",
    lambda x: x if x.dtype is bool_ else s.abs(x),
    doc="The magnitude of each element; the most negative integer and bools are unchanged.",
    example="td.abs(td.asarray([1, -2])) -> [1, 2]",
    reference="numpy.absolute",
    dtypes=ALL,
    result="real",
    derivative=Partials({"self": _abs_derivative}),
    aliases=("absolute",),
)
square = unary(
    "square",
    s.square,
    doc="The square of each element.",
    example="td.square(td.asarray([1.0, -2.0])) -> [1.0, 4.0]",
    reference="numpy.square",
    dtypes=NUMERIC,
    derivative=Partials({"self": lambda self: 2 * self}),
)
reciprocal = unary(
    "reciprocal",
    s.reciprocal,
    doc="One over each element.",
    example="td.reciprocal(td.asarray([2.0, -4.0])) -> [0.5, -0.25]",
    reference="numpy.reciprocal",
    dtypes=ALL,
    result="float",
    domain=(0.3, 3.0),
    derivative=Partials({"self": lambda out: -(out * out)}),
    autocast="float32",
)
