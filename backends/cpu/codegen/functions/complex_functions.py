"""Functions of vectors of complex numbers, as formulas of their real and imaginary parts in float64 registers.

Worst errors of each part in units in the last place: abs 1.2; exp 0.6 for complex64, 2 for complex128; the others 1 and
4, but 8 of tan, tanh and the inverse functions for complex128, and more where the terms of expm1 and log1p cancel. The
parts of special values are those of C99, Annex G.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..... import lazy
from .....registry import dtypes as dt
from .....registry.dtypes import DType
from .. import libm
from ..text import REGISTER, Function, Module
from . import trigonometry
from .pairs import Arithmetic
from .table import any_lane, narrow, widen
from .values import Parts, Value, fma, magnitude, square_root, where

_circular = lazy.Functions(".backends.cpu.codegen.functions.complex_circular")
_inverse = lazy.Functions(".backends.cpu.codegen.functions.complex_inverse")
_logarithm = lazy.Functions(".backends.cpu.codegen.functions.complex_logarithm")

# Squares of numbers in these limits neither overflow nor lose digits; others are scaled first: (upper limit, factor),
# (lower limit, factor).
_SCALES = {
    dt.float32: ((2.0**62, 2.0**-70), (2.0**-50, 2.0**100)),
    dt.float64: ((2.0**500, 2.0**-600), (2.0**-480, 2.0**600)),
}


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


# -- functions that are called -----------------------------------------------------------------------------------------
_PERIODIC: dict[str, tuple[Callable[..., Parts], bool]] = {
    **{name: (getattr(_circular, name), False) for name in ("exp", "expm1", "sinh", "cosh", "tanh")},
    **{name: (getattr(_circular, name), True) for name in ("sin", "cos", "tan")},
}
"""Formulas of the parts, and the sine and cosine of one of them: of the real part, or of the imaginary one."""
_PLAIN: dict[str, Callable[..., Parts]] = {
    **{name: getattr(_logarithm, name) for name in ("sqrt", "log", "log2", "log10", "log1p")},
    **{name: getattr(_inverse, name) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
}
"""Formulas of the parts."""


def emit(name: str, f: Function, part: DType, z: str) -> str:
    """Return a call of a function of one vector."""
    helper = f"{name}_complex_{REGISTER[part]}_{f.lanes}" + "_split" * f.is_split
    if helper not in f.module.parts:
        f.module.helper(helper, _write_helper(f.module, helper, name, part, f.lanes, f.is_split))
    pairs = f"<{2 * f.lanes} x {REGISTER[part]}>"
    return f.op(f"call {pairs} @{helper}({pairs} {z})")


def _write_helper(module: Module, helper: str, name: str, part: DType, lanes: int, is_split: bool) -> str:
    f = Function(module, lanes)
    f.is_split = is_split
    element, m = REGISTER[part], Arithmetic(part is dt.float64)
    pairs = f"<{2 * lanes} x {element}>"
    x, y = (widen(f, part, register) for register in f.split_parts(element, "%z"))

    def write_return(parts: Parts) -> None:
        f.do(f"ret {pairs} {f.join_parts(element, *[narrow(f, part, value) for value in parts])}")

    if name in _PERIODIC:
        _write_periodic(f, m, name, x, y, write_return)
    else:
        write_return(_PLAIN[name](m, x, y))
    return f.text(f"internal {pairs} @{helper}({pairs} %z) #0")


def _write_periodic(
    f: Function, m: Arithmetic, name: str, x: Value, y: Value, write_return: Callable[[Parts], None]
) -> None:
    """Write a function of a sine and a cosine; those of huge angles are libm's."""
    formula, of_real = _PERIODIC[name]
    angle = x if of_real else y
    sine, cosine = trigonometry.sin_and_cos(m, angle)
    huge = magnitude(angle) >= trigonometry.LARGEST
    with f.when(any_lane(huge)):
        exact = [
            Value(f, dt.float64, libm.call_lanes(f, n, dt.float64, angle.register)) for n in ("sin", "cos")
        ]
        write_return(formula(m, x, y, where(huge, exact[0], sine), where(huge, exact[1], cosine)))
        f.label(f.fresh("never"))
    write_return(formula(m, x, y, sine, cosine))
