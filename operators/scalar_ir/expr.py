"""The node table of the scalar IR and its typed expressions; import both from :mod:`.nodes`."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError
from ...named_tuple import NamedTuple
from ...registry import dtypes as dt
from ...registry.dtypes import DType

Number = bool | int | float | complex
Operand = Any  # Expr | Number: an annotation that Python's operators can live with


class Node(NamedTuple):
    """One row of the node table.

    Attributes:
        name: the node's name.
        arity: the number of operands.
        kinds: the accepted kinds of dtype, as letters of ``DType.kind``.
        result: the dtype of the result: ``"same"``, ``"bool"``, ``"real"`` (the real type of a complex operand) or
            ``"complex"`` (the complex type of a real operand).
        numpy: the name of the ufunc; ``"-"``: defined in :mod:`.numpy_evaluation`.
        exact: the kinds of dtype for which the result is correctly rounded, so that all implementations agree on it.
    """

    name: str
    arity: int
    kinds: str
    result: str
    numpy: str
    exact: str


# name, arity, kinds, result, NumPy function, exactness: "=": correctly rounded; "~": the last bits (or those of a NaN)
# depend on the implementation; "r": they do so for complex numbers only
_ROWS = """
    add 2 biufc same add =                          sub 2 iufc same subtract =
    mul 2 biufc same multiply r                     truediv 2 fc same true_divide r
    floordiv 2 iuf same floor_divide ~              remainder 2 iuf same remainder ~
    fmod 2 iuf same fmod ~                          pow 2 iufc same - ~
    minimum 2 biuf same minimum =                   maximum 2 biuf same maximum =
    uniform_pow 2 iufc same - ~                     copysign 2 f same copysign =
    atan2 2 f same arctan2 ~                        hypot 2 f same hypot ~
    nextafter 2 f same nextafter =
    neg 1 iufc same negative =                      abs 1 iufc real absolute r
    eq 2 biufc bool equal =                         ne 2 biufc bool not_equal =
    lt 2 biuf bool less =                           le 2 biuf bool less_equal =
    gt 2 biuf bool greater =                        ge 2 biuf bool greater_equal =
    and 2 biu same bitwise_and =                    or 2 biu same bitwise_or =
    xor 2 biu same bitwise_xor =                    invert 1 biu same invert =
    lshift 2 iu same left_shift =                   rshift 2 iu same right_shift =
    exp 1 fc same exp ~                             exp2 1 f same exp2 ~
    expm1 1 fc same expm1 ~                         log 1 fc same log ~
    log2 1 fc same log2 ~                           log10 1 fc same log10 ~
    log1p 1 fc same log1p ~                         sqrt 1 fc same sqrt r
    sin 1 fc same sin ~                             cos 1 fc same cos ~
    tan 1 fc same tan ~                             asin 1 fc same arcsin ~
    acos 1 fc same arccos ~                         atan 1 fc same arctan ~
    sinh 1 fc same sinh ~                           cosh 1 fc same cosh ~
    tanh 1 fc same tanh ~                           asinh 1 fc same arcsinh ~
    acosh 1 fc same arccosh ~                       atanh 1 fc same arctanh ~
    erf 1 f same - ~                                erfc 1 f same - ~
    erfinv 1 f same - ~                             portable_erfc 1 f same - ~
    floor 1 f same floor =                          ceil 1 f same ceil =
    trunc 1 f same trunc =                          rint 1 fc same rint =
    isnan 1 fc bool isnan =                         isinf 1 fc bool isinf =
    isfinite 1 fc bool isfinite =                   signbit 1 f bool signbit =
    conj 1 c same conj =                            real 1 c real real =
    imag 1 c real imag =                            complex 2 f complex - =
"""


_EXACT = {"=": "biufc", "r": "biuf", "~": "biu"}


def _parse_table() -> dict[str, Node]:
    words = _ROWS.split()
    groups = [words[i : i + 6] for i in range(0, len(words), 6)]
    rows = [Node(g[0], int(g[1]), g[2], g[3], g[4], _EXACT[g[5]]) for g in groups]
    return {row.name: row for row in rows}


NODES = _parse_table()
"""The nodes by name."""
STRUCTURAL = ("arg", "const", "select", "cast")
"""The nodes with dtype rules of their own: the ``payload``-th operand, a constant, a selection, a conversion."""


class Expr:
    """A typed scalar expression.

    Attributes:
        op: the node's name: a row of ``NODES``, one of ``STRUCTURAL``, or a leaf that a lowering defines.
        args: the operands.
        dtype: the result's type.
        payload: the position of an ``arg``, the value of a ``const``, or the data of a lowering's leaf.

    Comparison operators build expressions, so expressions hash by identity.
    """

    __slots__ = ("args", "dtype", "op", "payload")

    def __init__(self, op: str, args: tuple[Expr, ...], dtype: DType, payload: Any = None):  # noqa: ANN401
        self.op = op
        self.args = args
        self.dtype = dtype
        self.payload = payload

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        inside = [repr(self.payload)] if self.payload is not None else []
        return f"{self.op}({', '.join(inside + [repr(a) for a in self.args])}):{self.dtype.name}"

    def __bool__(self) -> bool:
        raise TypeError(
            "a scalar body is traced once for all elements: use select(condition, a, b), not `if`"
        )

    def __add__(self, other: Operand) -> Expr:
        return apply("add", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return apply("add", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return apply("sub", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return apply("sub", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return apply("mul", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return apply("mul", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return apply("truediv", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return apply("truediv", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return apply("floordiv", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return apply("floordiv", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return apply("remainder", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return apply("remainder", other, self)

    def __pow__(self, other: Operand) -> Expr:
        return power(self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return apply("pow", other, self)

    def __neg__(self) -> Expr:
        return apply("neg", self)

    def __abs__(self) -> Expr:
        return apply("abs", self)

    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]
        return apply("eq", self, other)

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]
        return apply("ne", self, other)

    def __lt__(self, other: Operand) -> Expr:
        return apply("lt", self, other)

    def __le__(self, other: Operand) -> Expr:
        return apply("le", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return apply("gt", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return apply("ge", self, other)

    def __and__(self, other: Operand) -> Expr:
        return apply("and", self, other)

    def __rand__(self, other: Operand) -> Expr:
        return apply("and", other, self)

    def __or__(self, other: Operand) -> Expr:
        return apply("or", self, other)

    def __ror__(self, other: Operand) -> Expr:
        return apply("or", other, self)

    def __xor__(self, other: Operand) -> Expr:
        return apply("xor", self, other)

    def __rxor__(self, other: Operand) -> Expr:
        return apply("xor", other, self)

    def __invert__(self) -> Expr:
        return apply("invert", self)

    def __lshift__(self, other: Operand) -> Expr:
        return apply("lshift", self, other)

    def __rlshift__(self, other: Operand) -> Expr:
        return apply("lshift", other, self)

    def __rshift__(self, other: Operand) -> Expr:
        return apply("rshift", self, other)

    def __rrshift__(self, other: Operand) -> Expr:
        return apply("rshift", other, self)


def arg(position: int, dtype: DType) -> Expr:
    """The operand at ``position``."""
    return Expr("arg", (), dtype, position)


# the Python types of constants by kind of dtype; the value is converted to the last one
_ACCEPTS: dict[str, tuple[Any, ...]] = {
    "b": (bool,),
    "i": (bool, int),
    "u": (bool, int),
    "f": (bool, int, float),
    "c": (bool, int, float, complex),
}


def const(value: Number, dtype: DType) -> Expr:
    """A constant of type ``dtype``.

    Raises:
        DTypeError: the value is of a kind that the dtype cannot hold, such as a float for integers.
    """
    if not isinstance(value, _ACCEPTS[dtype.kind]):
        raise DTypeError(
            f"constant {value!r} in a scalar body is combined with an operand of {dtype.name}; cast the operand"
        )
    if dtype.is_integer:
        dt.check_range(dtype, value)
    return Expr("const", (), dtype, _ACCEPTS[dtype.kind][-1](value))


def _unify(name: str, operands: Sequence[Operand]) -> tuple[Expr, ...]:
    typed = [x for x in operands if isinstance(x, Expr)]
    if not typed:
        raise DTypeError(f"{name}: needs an operand that is not a Python constant, got {tuple(operands)!r}")
    dtype = typed[0].dtype
    if any(x.dtype is not dtype for x in typed):
        seen = ", ".join(x.dtype.name for x in typed)
        raise DTypeError(f"{name}: operands of a scalar node have one dtype, got {seen}; cast() them")
    return tuple(x if isinstance(x, Expr) else const(x, dtype) for x in operands)


_REAL = {dt.complex64: dt.float32, dt.complex128: dt.float64}
_COMPLEX = {real: whole for whole, real in _REAL.items()}


def apply(name: str, *operands: Operand) -> Expr:
    """Apply the node ``name`` of the table to operands of one dtype."""
    row = NODES[name]
    args = _unify(name, operands)
    dtype = args[0].dtype
    if len(args) != row.arity or dtype.kind not in row.kinds:
        raise DTypeError(
            f"{name}: takes {row.arity} operands of kinds {row.kinds!r}, got {len(args)} of {dtype.name}"
        )
    if row.result == "complex":
        return Expr(name, args, _COMPLEX[dtype])
    result = dt.bool_ if row.result == "bool" else _REAL.get(dtype, dtype) if row.result == "real" else dtype
    return Expr(name, args, result)


def is_exact(x: Expr) -> bool:
    """Whether all correct implementations of the node (not of its operands) agree on the bits of the result."""
    return x.op not in NODES or x.args[0].dtype.kind in NODES[x.op].exact


def power(a: Operand, b: Operand) -> Expr:
    """``a ** b``; a constant exponent of 1 or 2 needs no call of ``pow``."""
    if isinstance(a, Expr) and not isinstance(b, Expr) and b in (1, 2):
        return a if b == 1 else apply("mul", a, a)
    return apply("pow", a, b)


def uniform_power(a: Expr, b: Expr) -> Expr:
    """``a ** b`` for one exponent for all elements: a product, quotient or square root where it is one.

    Products are those of repeated squaring, as ``jax.lax.integer_pow`` has them. Those of float32 are products of
    float64 numbers, rounded once.
    """
    number = _constant_number(b)
    if number == 0:
        return const(1, a.dtype)
    if number == 1:
        return a
    if number == 2:
        return apply("mul", a, a)
    if number == -1 and a.dtype.kind in "fc":
        return apply("truediv", 1, a)
    if number == 0.5:
        return apply("sqrt", a)
    if number is None:
        return apply("uniform_pow", a, b)
    if isinstance(number, complex):
        return apply("pow", a, b)
    if number == 3 or (a.dtype in _WITH_PRODUCTS and is_product(number)):
        wide = cast(a, dt.float64) if a.dtype is dt.float32 else a
        product = multiply_repeatedly(wide, abs(int(number)))
        return cast(product if number > 0 else apply("truediv", 1, product), a.dtype)
    return apply("uniform_pow", a, b)


LARGEST_PRODUCT = 16
"""Powers of floats and complex numbers with a whole exponent up to this size are products."""
_WITH_PRODUCTS = (dt.float32, dt.float64, dt.complex64, dt.complex128)


def is_product(number: float) -> bool:
    """Whether a power is a product of few factors, or the inverse of one."""
    return math.isfinite(number) and number == int(number) and abs(number) <= LARGEST_PRODUCT


def multiply_repeatedly(x: Any, count: int) -> Any:  # noqa: ANN401
    """The product of ``count`` > 0 factors ``x``, an expression or an array: the lowest bits of ``count`` first."""
    product = None
    while count:
        if count & 1:
            product = x if product is None else product * x
        x, count = x * x, count >> 1
    return product


def _constant_number(x: Expr) -> Number | None:
    """The value of a constant, with or without casts; None for other expressions.

    A complex number without an imaginary part is a float.
    """
    while x.op == "cast" and x.dtype.kind in "iufc":
        x = x.args[0]
    number: Number | None = x.payload if x.op == "const" else None
    return number.real if isinstance(number, complex) and number.imag == 0 else number


def select(condition: Expr, a: Operand, b: Operand) -> Expr:
    """``a`` if the bool ``condition`` is true, else ``b``."""
    if condition.dtype is not dt.bool_:
        raise DTypeError(f"select: the condition is a bool, got {condition.dtype.name}; compare it with 0")
    one, two = _unify("select", (a, b))
    return Expr("select", (condition, one, two), one.dtype)


def cast(x: Expr, dtype: DType) -> Expr:
    """``x`` converted to ``dtype`` as by NumPy's ``astype`` (to bool: whether ``x`` is not zero)."""
    return x if x.dtype is dtype else Expr("cast", (x,), dtype)


def order(*roots: Expr, known: Container[Expr] = ()) -> list[Expr]:
    """All subexpressions of ``roots`` in topological order, operands first (without recursion: chains may be long).

    Those that are ``known``, and what only they need, are left out.
    """
    seen: set[Expr] = set()
    result: list[Expr] = []
    stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        expr, ready = stack.pop()
        if ready:
            result.append(expr)
        elif expr not in seen and expr not in known:
            seen.add(expr)
            stack.append((expr, True))
            stack.extend((a, False) for a in reversed(expr.args) if a not in seen)
    return result


def substitute(root: Expr, operands: Sequence[Expr]) -> Expr:
    """``root`` with each ``arg(i)`` replaced by ``operands[i]``: fusion composes bodies with it."""
    done: dict[Expr, Expr] = {}
    for expr in order(root):
        if expr.op == "arg":
            done[expr] = operands[expr.payload]
        elif expr.op == "uniform_pow":
            done[expr] = uniform_power(*(done[a] for a in expr.args))
        elif expr.args:
            done[expr] = Expr(expr.op, tuple(done[a] for a in expr.args), expr.dtype, expr.payload)
        else:
            done[expr] = expr
    return done[root]


def constant_value(x: Expr) -> np.generic:
    """The value of a ``const`` as a NumPy scalar of its dtype."""
    return np.asarray(x.payload).astype(x.dtype.np)[()]  # type: ignore[return-value]
