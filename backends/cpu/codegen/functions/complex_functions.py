"""Functions of vectors of complex numbers.

Worst errors of each part in units in the last place: abs 1.2; exp 0.6 for complex64, 2 for complex128. The parts of
special values are those of C99's ``cabs`` and ``cexp``.
"""

from __future__ import annotations

import math

from .....registry import dtypes as dt
from .....registry.dtypes import DType
from .. import libm
from ..text import REGISTER, Function, Module
from . import exponential, trigonometry
from .pairs import Arithmetic
from .table import any_lane, narrow, widen
from .values import Value, fma, magnitude, square_root, where

# Squares of numbers in these limits neither overflow nor lose digits; others are scaled first: (upper limit, factor),
# (lower limit, factor).
_SCALES = {
    dt.float32: ((2.0**62, 2.0**-70), (2.0**-50, 2.0**100)),
    dt.float64: ((2.0**500, 2.0**-600), (2.0**-480, 2.0**600)),
}
_HALVED = 700.0  # |x| beyond which e**x is computed as the square of e**(x / 2), in float64


def absolute(f: Function, part: DType, z: str) -> str:
    """Return the magnitudes of complex numbers, without overflow; infinite if a part is."""
    a, b = (magnitude(Value(f, part, x)) for x in f.split_parts(REGISTER[part], z))
    (upper, shrink), (lower, grow) = _SCALES[part]
    size = where(b > a, b, a)
    is_large, is_small = size > upper, size < lower
    one = size.constant(1.0)
    factor = where(is_large, shrink, where(is_small, grow, one))
    inverse = where(is_large, 1 / shrink, where(is_small, 1 / grow, one))
    a, b = a * factor, b * factor
    root = square_root(fma(a, a, b * b)) * inverse
    return where(size.equals(math.inf) | b.equals(math.inf), size.constant(math.inf), root).register


def exponential_of(f: Function, part: DType, z: str) -> str:
    """Return e**z: a call of a function of one vector."""
    name = f"exp_complex_{REGISTER[part]}_{f.lanes}" + "_split" * f.is_split
    if name not in f.module.parts:
        f.module.helper(name, _exponential(f.module, name, part, f.lanes, f.is_split))
    pairs = f"<{2 * f.lanes} x {REGISTER[part]}>"
    return f.op(f"call {pairs} @{name}({pairs} {z})")


def _exponential(module: Module, name: str, part: DType, lanes: int, is_split: bool) -> str:
    """Return the text of the function: e**x * (cos(y) + i sin(y)); libm's sine and cosine for huge y."""
    f = Function(module, lanes)
    f.is_split = is_split
    element, arithmetic = REGISTER[part], Arithmetic(part is dt.float64)
    pairs = f"<{2 * lanes} x {element}>"
    x, y = (widen(f, part, register) for register in f.split_parts(element, "%z"))

    def write_return(sine: Value, cosine: Value) -> None:
        parts = [narrow(f, part, value) for value in _scale_circle(arithmetic, x, y, sine, cosine)]
        f.do(f"ret {pairs} {f.join_parts(element, *parts)}")

    sine, cosine = trigonometry.sin_and_cos(arithmetic, y)
    huge = magnitude(y) >= trigonometry.LARGEST
    with f.when(any_lane(huge)):
        exact = [Value(f, dt.float64, libm.call_lanes(f, n, dt.float64, y.register)) for n in ("sin", "cos")]
        write_return(where(huge, exact[0], sine), where(huge, exact[1], cosine))
        f.label(f.fresh("never"))
    write_return(sine, cosine)
    return f.text(f"internal {pairs} @{name}({pairs} %z) #0")


def _scale_circle(m: Arithmetic, x: Value, y: Value, sine: Value, cosine: Value) -> tuple[Value, Value]:
    """Return the parts of e**x * (cosine + i sine), also where x or y is zero, infinite or NaN."""
    if m.exact:  # e**x may overflow where the product does not
        is_far = magnitude(x) > _HALVED
        factor = exponential.exp_anywhere(m, where(is_far, x * 0.5, x))
        again = where(is_far, factor, factor.constant(1.0))
        real, imag = factor * cosine * again, factor * sine * again
    else:
        factor = exponential.exp_anywhere(m, x)
        real, imag = factor * cosine, factor * sine
    is_unknown = (y - y).is_nan()  # infinite or NaN
    real = where(x.equals(math.inf) & is_unknown, math.inf, real)
    vanishes = x.equals(-math.inf) & is_unknown
    imag = where(y.equals(0.0), y, imag)
    return where(vanishes, 0.0, real), where(vanishes, 0.0, imag)
