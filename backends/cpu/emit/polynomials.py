"""float32 functions written out, where a call would cost more than the arithmetic.

Worst errors over all float32 arguments, against float64, in units in the last place: exp 1.1, erf 1.1, tanh 1.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....registry import dtypes as dt
from ....registry.dtypes import DType
from . import libm
from .text import Function

F = dt.float32
_MAGIC = 12582912.0  # 1.5 * 2**23: adding it leaves a small number's nearest integer in the low bits
_MAGIC_BITS = 0x4B400000


def _fma(f: Function, a: str, b: str, c: str) -> str:
    return f.intrinsic("fma", "float", a, b, c)


def _horner(f: Function, x: str, coefficients: Sequence[float]) -> str:
    """The polynomial of ``x``, highest power first."""
    value = f.splat(coefficients[0], F)
    for c in coefficients[1:]:
        value = _fma(f, value, x, f.splat(c, F))
    return value


def _choose(f: Function, predicate: str, a: str, b: str, yes: str, no: str) -> str:
    vec = f.vec("float")
    return f.op(f"select {f.vec('i1')} {f.op(f'fcmp {predicate} {vec} {a}, {b}')}, {vec} {yes}, {vec} {no}")


_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4


def _reduced_exp(f: Function, x: str) -> tuple[str, str]:
    """(e**r, n) with x = n * log(2) + r; NaN stays in the first, whatever n is then."""
    vec, ints = f.vec("float"), f.vec("i32")
    shifted = _fma(f, x, f.splat(1.44269504088896341, F), f.splat(_MAGIC, F))
    n = f.op(f"fsub {vec} {shifted}, {f.splat(_MAGIC, F)}")
    r = _fma(f, n, f.splat(-_LN2_LOW, F), _fma(f, n, f.splat(-_LN2_HIGH, F), x))
    tail = _fma(f, _horner(f, r, _EXP), f.op(f"fmul {vec} {r}, {r}"), r)
    whole = f.op(f"sub {ints} {f.op(f'bitcast {vec} {shifted} to {ints}')}, splat (i32 {_MAGIC_BITS})")
    return f.op(f"fadd {vec} {tail}, {f.splat(1.0, F)}"), whole


def _power_of_two(f: Function, n: str) -> str:
    ints = f.vec("i32")
    biased = f.op(f"shl {ints} {f.op(f'add {ints} {n}, splat (i32 127)')}, splat (i32 23)")
    return f.op(f"bitcast {ints} {biased} to {f.vec('float')}")


def exp(f: Function, x: str) -> str:
    """e**x; in two factors of 2**n, so that it overflows and goes through the subnormals as it should."""
    vec, ints = f.vec("float"), f.vec("i32")
    x = _choose(f, "ogt", x, f.splat(89.0, F), f.splat(89.0, F), x)
    x = _choose(f, "olt", x, f.splat(-104.0, F), f.splat(-104.0, F), x)
    y, n = _reduced_exp(f, x)
    half = f.op(f"ashr {ints} {n}, splat (i32 1)")
    rest = f.op(f"sub {ints} {n}, {half}")
    return f.op(f"fmul {vec} {f.op(f'fmul {vec} {y}, {_power_of_two(f, half)}')}, {_power_of_two(f, rest)}")


def _normal_exp(f: Function, x: str) -> str:
    """e**x for what only meets a sum with 1: x up to 88, and nothing below 2**-126."""
    x = _choose(f, "olt", x, f.splat(-87.0, F), f.splat(-87.0, F), x)
    y, n = _reduced_exp(f, x)
    return f.op(f"fmul {f.vec('float')} {y}, {_power_of_two(f, n)}")


_ERF_SMALL = (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
_ERF_LARGE = ((-1.72853470e-5, 3.83197126e-4), (-3.88396438e-3, 2.42546219e-2))
_ERF_TAIL = (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1)


def erf(f: Function, x: str) -> str:
    """The error function: x + x * P(x**2) near 0, 1 - exp(Q(|x|)) further out."""
    vec = f.vec("float")
    size, square = f.intrinsic("fabs", "float", x), f.op(f"fmul {vec} {x}, {x}")
    near = _fma(f, _horner(f, square, _ERF_SMALL), x, x)
    high, low = (_horner(f, size, pair) for pair in _ERF_LARGE)
    q = _fma(f, high, square, low)
    for c in _ERF_TAIL:
        q = _fma(f, q, size, f.splat(c, F))
    q = _fma(f, q, size, f.op(f"fneg {vec} {size}"))
    far = f.op(f"fsub {vec} {f.splat(1.0, F)}, {_normal_exp(f, q)}")
    far = f.intrinsic("copysign", "float", far, x)
    return _choose(f, "ogt", size, f.splat(0.927734375, F), far, near)


_TANH_SMALL = (1.57394409e-2, -5.23025580e-2, 1.33152470e-1, -3.33327681e-1)


def tanh(f: Function, x: str) -> str:
    """Hyperbolic tangent: x + x * P(x**2) near 0, 1 - 2 / (exp(2 * |x|) + 1) further out."""
    vec = f.vec("float")
    size, square = f.intrinsic("fabs", "float", x), f.op(f"fmul {vec} {x}, {x}")
    small = f.op(f"fmul {vec} {_horner(f, square, _TANH_SMALL)}, {square}")
    near = _fma(f, small, x, x)
    capped = _choose(f, "ogt", size, f.splat(10.0, F), f.splat(10.0, F), size)
    e = _normal_exp(f, f.op(f"fadd {vec} {capped}, {capped}"))
    ratio = f.op(f"fdiv {vec} {f.splat(2.0, F)}, {f.op(f'fadd {vec} {e}, {f.splat(1.0, F)}')}")
    far = f.op(f"fsub {vec} {f.splat(1.0, F)}, {ratio}")
    picked = _choose(f, "ogt", size, f.splat(0.55, F), far, near)
    return f.intrinsic("copysign", "float", picked, x)


def _float32(name: str, emit: Callable[[Function, str], str]) -> Callable[[Function, DType, str], str]:
    def choose(f: Function, dtype: DType, x: str) -> str:
        return emit(f, x) if dtype is F else libm.call(f, name, dtype, x)

    return choose


TABLE = {"exp": _float32("exp", exp), "erf": _float32("erf", erf), "tanh": _float32("tanh", tanh)}
"""The nodes that are written out for float32; float64 calls libm."""
