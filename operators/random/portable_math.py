"""Elementary functions for random numbers that return the same bits on every backend.

Libraries differ in the last bits of log and cos. These functions use only operations that IEEE 754 rounds exactly
(sums, products, quotients, square roots), in a fixed order, so that the same random bits become the same numbers in
eager mode, compiled and on every backend. They support only the ranges that random numbers need.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...registry.dtypes import float32, float64
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.derivatives import NotDifferentiable, Partials
from ..declare.kinds import elementwise
from ..scalar_ir import nodes as s

if TYPE_CHECKING:
    from ...registry.types import Array

WIDE = (float32, float64)
_LN2 = {
    float32: (0.693359375, math.log(2) - 0.693359375),
    float64: (0.6931471803691238, 1.9082149292705877e-10),
}


def _poly(x: s.Expr, coefficients: list[float]) -> s.Operand:
    """A polynomial by Horner's rule; the constant is the last coefficient."""
    result: s.Operand = coefficients[0]
    for one in coefficients[1:]:
        result = result * x + one
    return result


def log(x: s.Expr) -> s.Expr:
    """The natural logarithm of a number from ``2**-72`` to ``2**8``: scaled into [0.7, 1.4], then a series."""
    m, exponent = x * 2.0**-8, s.const(8.0, x.dtype)
    for step in (64, 32, 16, 8, 4, 2, 1):
        small = s.lt(m, 2.0**-step)
        m = s.select(small, m * 2.0**step, m)
        exponent = s.select(small, exponent - float(step), exponent)
    small = s.lt(m, math.sqrt(0.5))
    m = s.select(small, m * 2.0, m)
    exponent = s.select(small, exponent - 1.0, exponent)
    ratio = (m - 1.0) / (m + 1.0)
    square = ratio * ratio
    terms = 5 if x.dtype is float32 else 11
    series: s.Expr = _poly(square, [2.0 / (2 * k + 1) for k in range(terms - 1, 0, -1)]) * square
    high, low = _LN2[x.dtype]
    return exponent * high + ((ratio * series + exponent * low) + 2.0 * ratio)


def turns(x: s.Expr) -> tuple[s.Expr, s.Expr]:
    """``sin(2 pi x)`` and ``cos(2 pi x)`` for x from 0 to 1: the nearest quarter turn, then a series for the rest."""
    quarters = s.floor(x * 4.0 + 0.5)
    angle = (x * 4.0 - quarters) * (math.pi / 2)
    square = angle * angle
    last = 5 if x.dtype is float32 else 8
    even = _poly(square, [(-1) ** k / math.factorial(2 * k) for k in range(last, -1, -1)])
    odd = _poly(square, [(-1) ** k / math.factorial(2 * k + 1) for k in range(last, -1, -1)]) * angle
    is_odd = s.logical_or(s.eq(quarters, 1.0), s.eq(quarters, 3.0))
    sine, cosine = s.select(is_odd, even, odd), s.select(is_odd, odd, even)
    back = s.logical_or(s.eq(quarters, 2.0), s.eq(quarters, 3.0))
    left = s.logical_or(s.eq(quarters, 1.0), s.eq(quarters, 2.0))
    return s.select(back, -sine, sine), s.select(left, -cosine, cosine)


def _polar(one: s.Expr, two: s.Expr) -> s.Expr:
    return s.sqrt(-2.0 * log(one)) * turns(two)[1]


def _cotangent(x: s.Expr) -> s.Expr:
    upper = s.gt(x, 0.5)
    sine, cosine = turns(s.select(upper, 1.0 - x, x) * 0.5)
    value = cosine / sine
    return s.select(upper, value, -value)


def polar_reference(one: Array, two: Array) -> Array:
    """The Box-Muller transform."""
    wide = np.float64
    value = np.sqrt(-2 * np.log(one.astype(wide))) * np.cos(2 * np.pi * two.astype(wide))
    result: Array = value.astype(np.result_type(one, two))
    return result


def cotangent_reference(x: Array) -> Array:
    """From the nearer end, where no digits are lost."""
    near = np.minimum(x, 1 - x).astype(np.float64)
    result: Array = (np.where(x > 0.5, 1, -1) / np.tan(np.pi * near)).astype(x.dtype)
    return result


TEXT = """Args:
    every argument: a float32 or float64 tensor; shapes broadcast.

Returns:
    A tensor of that dtype.

Raises:
    DTypeError: another dtype.
    ShapeError: the shapes do not broadcast."""
CONSTANT = NotDifferentiable("it is for random bits only, which have no derivative")

polar = elementwise(
    "binary",
    "random_polar(Tensor one, Tensor two) -> Tensor",
    _polar,
    doc="The Box-Muller transform `sqrt(-2 log(one)) cos(2 pi two)`, the same bits everywhere.",
    example="td.ops.td.random_polar(td.asarray(1.0), td.asarray(0.0)) -> -0.0",
    text=TEXT,
    dtypes=WIDE,
    derivative=CONSTANT,
    reference=polar_reference,
    tolerance={"float32": 1e-5, "float64": 1e-13},
    samples="samples.random.polar_samples",
    errors=lambda: [ErrorInput((TensorSample((2,)), "x"), TypeError, "Tensor")],
    method=False,
)

log_of = elementwise(
    "unary",
    "random_log(Tensor self) -> Tensor",
    log,
    doc="The natural logarithm of a number from `2**-72` to `2**8`, the same bits everywhere.",
    example="td.ops.td.random_log(td.asarray(1.0)) -> 0.0",
    text=TEXT,
    dtypes=WIDE,
    derivative=Partials({"self": lambda self: 1 / self}),
    reference="numpy.log",
    tolerance={"float32": 1e-5, "float64": 1e-13},
    samples=lambda dtype: [
        *(SampleInput((TensorSample(shape, 0.1, 0.6),)) for shape in ((), (7,), (3, 5), (0,))),
        SampleInput((TensorSample((6,), 1.5, 200.0),)),
        SampleInput((TensorSample((5,), values=(2.0**-64, 2.0**-25, 1e-3, 0.5, 1.0)),)),
    ],
    errors=lambda: [ErrorInput(("x",), TypeError, "Tensor")],
    method=False,
)


cotangent = elementwise(
    "unary",
    "random_cotangent(Tensor self) -> Tensor",
    _cotangent,
    doc="`-1 / tan(pi self)` of a number between 0 and 1, the same bits everywhere.",
    example="td.ops.td.random_cotangent(td.asarray(0.5)) -> 0.0",
    text=TEXT,
    dtypes=WIDE,
    derivative=CONSTANT,
    reference=cotangent_reference,
    tolerance={"float32": 1e-5, "float64": 1e-13},
    samples=lambda dtype: [
        *(SampleInput((TensorSample(shape, 0.05, 0.4),)) for shape in ((), (7,), (3, 5), (0,))),
        SampleInput((TensorSample((5,), values=(2.0**-24, 1e-3, 0.25, 0.75, 1 - 2.0**-24)),)),
    ],
    errors=lambda: [ErrorInput(("x",), TypeError, "Tensor")],
    method=False,
)


erfc = elementwise(
    "unary",
    "random_erfc(Tensor self) -> Tensor",
    s.portable_erfc,
    doc="`1 - erf(self)`, with the bits that samples of a seed keep.",
    example="td.ops.td.random_erfc(td.asarray(0.0)) -> 1.0",
    text=TEXT,
    dtypes=WIDE,
    derivative=Partials({"self": lambda self: (self * self).neg().exp() * (-2 / math.sqrt(math.pi))}),
    reference="scipy.special.erfc",
    tolerance={"float32": 1e-5, "float64": 1e-13},
    samples=lambda dtype: [
        *(SampleInput((TensorSample(shape, -2.0, 2.0),)) for shape in ((), (7,), (3, 5), (0,))),
        SampleInput((TensorSample((5,), values=(-6.0, 0.0, 0.5, 3.0, 8.0)),)),
    ],
    errors=lambda: [ErrorInput(("x",), TypeError, "Tensor")],
    method=False,
)


# -- the inverse of the normal distribution ----------------------------------------------------------------------------
_GUESS = ([0.010328, 0.802853, 2.515517], [0.001308, 0.189269, 1.432788, 1.0])


def _upper(q: s.Expr) -> s.Expr:
    """The upper quantile x of the normal distribution for a probability q <= 1/2: a guess, then Halley's method.

    Source of the guess: Abramowitz and Stegun, 26.2.23.
    """
    t = s.sqrt(-2.0 * s.log(q))
    x: s.Expr = t - _poly(t, _GUESS[0]) / _poly(t, _GUESS[1])
    for _ in range(1 if q.dtype is float32 else 2):
        density = s.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
        ratio = (0.5 * s.portable_erfc(x * math.sqrt(0.5)) - q) / density
        better = x + 2.0 * ratio / (2.0 - ratio * x)
        x = s.select(s.gt(density, 1e-37 if q.dtype is float32 else 1e-300), better, x)
    return x


def _ndtri(p: s.Expr) -> s.Expr:
    lower = s.lt(p, 0.5)
    x = _upper(s.select(lower, p, 1.0 - p))
    x = s.select(lower, -x, x)
    x = s.select(s.eq(p, 0.5), 0.0 * p, x)
    return s.select(
        s.eq(p, 0.0), s.const(-math.inf, p.dtype), s.select(s.eq(p, 1.0), s.const(math.inf, p.dtype), x)
    )


ndtri = elementwise(
    "unary",
    "random_ndtri(Tensor self) -> Tensor",
    _ndtri,
    doc="The inverse of the normal distribution's function: the x with probability `self` below it.",
    example="td.ops.td.random_ndtri(td.asarray(0.5)) -> 0.0",
    text=TEXT,
    dtypes=WIDE,
    derivative=Partials({"self": lambda out: (out * out * 0.5).exp() * math.sqrt(2 * math.pi)}),
    reference="scipy.special.ndtri",
    tolerance={"float32": 2e-5, "float64": 1e-12},
    samples=lambda dtype: [
        *(SampleInput((TensorSample(shape, 0.55, 0.95),)) for shape in ((), (7,), (3, 5), (0,))),
        SampleInput((TensorSample((9,), 0.01, 0.45),)),
        SampleInput((TensorSample((8,), values=(0.0, 1e-30, 1e-12, 1e-4, 0.3, 0.5, 0.99, 1.0)),)),
        SampleInput((TensorSample((3,), values=(-1.0, 2.0, math.nan)),)),
    ],
    errors=lambda: [ErrorInput(("x",), TypeError, "Tensor")],
    method=False,
)
