"""The scalar IR: expressions for one element of an elementwise operator.

An operator's body is a Python function over expressions::

    from tandem.operators.scalar_ir import nodes as s
    body = lambda x: 0.5 * x * (1 + s.erf(x * SQRT_HALF))

``instantiate(body, dtypes)`` traces the body into a typed ``Expr``, from which the NumPy kernel, LLVM IR and CUDA C are
generated. The set of nodes is small and closed (``NODES``); all other functions here are compositions of nodes. Every
node is total and has NumPy's result: ``x // 0`` on integers is 0, ``INT_MIN // -1`` is INT_MIN, a shift by at least the
width (or by a negative number) shifts all bits out, minimum and maximum propagate NaN. A negative exponent of an
integer power, an error in NumPy, returns the truncated quotient (0, or 1 and -1 for those bases); the operator ``pow``
raises the error.

Casts of floats to integers truncate. Values out of range have NumPy's result on x86-64: ``int64`` and ``int32`` return
the most negative value; the narrower types, and ``uint32``, the low bits of the ``int32`` (``int64``) result;
``uint64`` returns 2**63 for NaN and below -2**63, and 0 from 2**64 on.

The operands of a node have one dtype. Python constants are weak: they take the dtype of the other operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...registry import dtypes as dt
from ...registry.dtypes import DType
from .expr import (
    NODES,
    STRUCTURAL,
    Expr,
    Node,
    Number,
    Operand,
    apply,
    arg,
    cast,
    const,
    constant_value,
    is_exact,
    order,
    power,
    select,
    substitute,
    uniform_power,
)

__all__ = [
    "NODES",
    "STRUCTURAL",
    "Expr",
    "Node",
    "Operand",
    "abs",
    "acos",
    "acosh",
    "add",
    "apply",
    "arg",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "cast",
    "ceil",
    "complex_",
    "conj",
    "const",
    "constant_value",
    "copysign",
    "cos",
    "cosh",
    "eq",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floordiv",
    "fmod",
    "ge",
    "gt",
    "hypot",
    "imag",
    "instantiate",
    "invert",
    "is_exact",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lshift",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "nextafter",
    "order",
    "portable_erfc",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "rint",
    "rshift",
    "select",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "substitute",
    "tan",
    "tanh",
    "truediv",
    "trunc",
    "uniform_power",
]


def _node(name: str, doc: str) -> Callable[..., Expr]:
    def build(*operands: Operand) -> Expr:
        return apply(name, *operands)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = doc
    return build


add = _node("add", "a + b; `or` on bools.")
sub = _node("sub", "a - b.")
mul = _node("mul", "a * b; `and` on bools.")
truediv = _node("truediv", "a / b of floats.")
floordiv = _node("floordiv", "Python's a // b; 0 for an integer b of 0.")
remainder = _node("remainder", "Python's a % b (the sign of b); 0 for an integer b of 0.")
fmod = _node("fmod", "C's remainder (the sign of a); 0 for an integer b of 0.")
minimum = _node("minimum", "The smaller operand; NaN if either is NaN.")
maximum = _node("maximum", "The larger operand; NaN if either is NaN.")
copysign = _node("copysign", "The magnitude of a with the sign of b.")
nextafter = _node("nextafter", "The next float32 or float64 after a towards b.")
neg = _node("neg", "-a.")
abs = _node("abs", "|a|; INT_MIN is unchanged.")
eq, ne = _node("eq", "a == b."), _node("ne", "a != b.")
lt, le = _node("lt", "a < b."), _node("le", "a <= b.")
gt, ge = _node("gt", "a > b."), _node("ge", "a >= b.")
bitwise_and, bitwise_or = (
    _node("and", "a & b of integers or bools."),
    _node("or", "a | b of integers or bools."),
)
bitwise_xor, invert = (
    _node("xor", "a ^ b of integers or bools."),
    _node("invert", "~a of an integer or bool."),
)
pow = power
lshift, rshift = (
    _node("lshift", "a << b, bits shifted out are lost."),
    _node("rshift", "a >> b, keeps the sign."),
)
exp, exp2, expm1 = _node("exp", "e**x."), _node("exp2", "2**x."), _node("expm1", "e**x - 1.")
log, log2 = _node("log", "Natural logarithm."), _node("log2", "Base-2 logarithm.")
log10, log1p = _node("log10", "Base-10 logarithm."), _node("log1p", "log(1 + x).")
sqrt = _node("sqrt", "Square root.")
sin, cos, tan = _node("sin", "Sine."), _node("cos", "Cosine."), _node("tan", "Tangent.")
asin, acos, atan = _node("asin", "Arcsine."), _node("acos", "Arccosine."), _node("atan", "Arctangent.")
sinh, cosh, tanh = (
    _node("sinh", "Hyperbolic sine."),
    _node("cosh", "Hyperbolic cosine."),
    _node("tanh", "Hyperbolic tangent."),
)
asinh, acosh, atanh = (
    _node("asinh", "Inverse hyperbolic sine."),
    _node("acosh", "Inverse hyperbolic cosine."),
    _node("atanh", "Inverse hyperbolic tangent."),
)
atan2 = _node("atan2", "Arctangent of a / b in the quadrant of the point (b, a).")
hypot = _node("hypot", "sqrt(a*a + b*b) without overflow.")
erf, erfc = _node("erf", "The error function."), _node("erfc", "1 - erf(x).")
portable_erfc = _node("portable_erfc", "1 - erf(x), with the bits that random numbers keep.")
erfinv = _node("erfinv", "The inverse of the error function.")
conj, real, imag = _node("conj", "Conjugate."), _node("real", "Real part."), _node("imag", "Imaginary part.")
complex_ = _node("complex", "Complex number of a real and an imaginary part, float32 or float64.")


def _rounding(name: str, doc: str) -> Callable[[Expr], Expr]:
    def build(x: Expr) -> Expr:
        return x if x.dtype.kind in "biu" else apply(name, x)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = doc
    return build


floor, ceil = (
    _rounding("floor", "Round down; integers are unchanged."),
    _rounding("ceil", "Round up; integers are unchanged."),
)
trunc, rint = (
    _rounding("trunc", "Round toward zero; integers are unchanged."),
    _rounding("rint", "Round half to even."),
)


def _classifier(name: str, on_integer: Callable[[Expr], Expr], doc: str) -> Callable[[Expr], Expr]:
    def build(x: Expr) -> Expr:
        return on_integer(x) if x.dtype.kind in "biu" else apply(name, x)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = doc
    return build


isnan = _classifier("isnan", lambda x: ne(x, x), "Whether x is NaN.")
isinf = _classifier("isinf", lambda x: ne(x, x), "Whether x is infinite.")
isfinite = _classifier("isfinite", lambda x: eq(x, x), "Whether x is neither infinite nor NaN.")
signbit = _classifier(
    "signbit", lambda x: lt(x, False), "Whether the sign bit is set, including -0.0 and NaN."
)


# ---- compositions ---------------------------------------------------------------------------------------------------


def square(x: Expr) -> Expr:
    """x * x."""
    return mul(x, x)


def reciprocal(x: Expr) -> Expr:
    """1 / x; on integers the truncated quotient, 0 for 0."""
    if x.dtype.is_inexact:
        return truediv(1, x)
    return select(eq(square(x), 1), x, 0)


def sign(x: Expr) -> Expr:
    """-1, 0 or 1; NaN stays NaN, and -0 becomes 0."""
    if x.dtype.kind == "u":
        return minimum(x, 1)
    one = const(1, x.dtype)
    zero_or_nan = select(eq(x, 0), 0, x) if x.dtype.is_inexact else x
    return select(gt(x, 0), one, select(lt(x, 0), const(-1, x.dtype), zero_or_nan))


def logical_not(x: Expr) -> Expr:
    """Whether x is zero."""
    return invert(x) if x.dtype is dt.bool_ else eq(x, 0)


def _to_bool(x: Expr) -> Expr:
    return cast(x, dt.bool_)


def logical_and(a: Expr, b: Expr) -> Expr:
    """Whether both are not zero."""
    return bitwise_and(_to_bool(a), _to_bool(b))


def logical_or(a: Expr, b: Expr) -> Expr:
    """Whether either is not zero."""
    return bitwise_or(_to_bool(a), _to_bool(b))


def logical_xor(a: Expr, b: Expr) -> Expr:
    """Whether exactly one is not zero."""
    return bitwise_xor(_to_bool(a), _to_bool(b))


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), without overflow and accurate for large negative x."""
    positive = ge(x, 0)
    exponential = exp(select(positive, neg(x), x))  # exp(-abs(x)), where a NaN keeps its sign
    return truediv(select(positive, const(1, x.dtype), exponential), add(1, exponential))


def logaddexp(a: Expr, b: Expr) -> Expr:
    """log(exp(a) + exp(b)) without overflow."""
    larger, difference = maximum(a, b), sub(a, b)
    negative = select(gt(difference, 0), neg(difference), difference)
    # the difference of equal infinities is NaN; a + log(2) is not
    return select(eq(a, b), add(a, math.log(2)), add(larger, log1p(exp(negative))))


# ---- tracing --------------------------------------------------------------------------------------------------------


def instantiate(
    body: Callable[..., Expr | Number], dtypes: Sequence[DType], out: DType | None = None
) -> Expr:
    """Trace ``body`` for operands of ``dtypes``.

    float16 and bfloat16 operands are cast to float32, so that a body rounds once, at its end.

    Args:
        body: a function of one expression per dtype.
        dtypes: the operands' types.
        out: the result's type; None: the type of the body's result, or the operands' 16-bit type.

    >>> from tandem.registry import dtypes as dt
    >>> instantiate(lambda x: 2 * x + 1, [dt.float32])
    add(mul(const(2.0):float32, arg(0):float32):float32, const(1.0):float32):float32
    """
    args = [arg(i, dtype) for i, dtype in enumerate(dtypes)]
    widened = [cast(a, dt.float32) if dt.is_half(a.dtype) else a for a in args]
    result = body(*widened)
    if not isinstance(result, Expr):
        result = const(result, out or dt.scalar_dtype(result))
    halves = {dtype for dtype in dtypes if dt.is_half(dtype)}
    if out is None and len(halves) == 1 and result.dtype is dt.float32:
        out = next(iter(halves))
    return result if out is None else cast(result, out)
