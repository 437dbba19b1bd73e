"""Emit the nodes of the scalar IR as LLVM instructions on vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from .... import lazy
from ....errors import UnsupportedError
from ....operators.scalar_ir.expr import LARGEST_PRODUCT, Expr, arg, const, order, uniform_power
from ....operators.scalar_ir.fold import EXTREMUM_IDENTITIES
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from . import integers
from .casts import emit_cast
from .complex_nodes import emit_complex
from .functions import table, values
from .text import REGISTER, Function, Module, literal

_lazy_operands = lazy.Module(".backends.cpu.codegen.lazy_operands")
_intervals = lazy.Functions(".backends.cpu.codegen.intervals")
libm = lazy.Module(".backends.cpu.codegen.libm")
remainders = lazy.Functions(".backends.cpu.codegen.remainders")
_user = lazy.Module(".backends.cpu.codegen.user")

COSTLY = frozenset(
    "exp expm1 log log1p sin cos tan erf erfc portable_erfc erfinv tanh sinh cosh pow uniform_pow atan atan2".split()
)
MAX_INLINED_FUNCTIONS = 16  # computations of one elementary function next to each other
Emit = Callable[
    ..., str
]  # (function, dtype of the operands, *registers of the operands) -> register of the result


def _arithmetic(name: str, on_bool: str = "") -> Emit:
    """Return the emitter of an instruction and its float form (``add``, ``fadd``); bools may have another one."""

    def emit(f: Function, dtype: DType, a: str, b: str) -> str:
        if on_bool and dtype is dt.bool_:
            return f.op(f"{on_bool} {f.vec('i1')} {a}, {b}")
        return f.op(f"{'f' if dtype.kind == 'f' else ''}{name} {f.vec(REGISTER[dtype])} {a}, {b}")

    return emit


def _bitwise(name: str) -> Emit:
    return lambda f, dtype, a, b: f.op(f"{name} {f.vec(REGISTER[dtype])} {a}, {b}")


def _compare(name: str) -> Emit:
    def emit(f: Function, dtype: DType, a: str, b: str) -> str:
        equality = name in ("eq", "ne")
        if dtype.kind == "f":
            predicate = "fcmp " + ("une" if name == "ne" else "o" + name)
        else:
            predicate = "icmp " + ("" if equality else "s" if dtype.kind == "i" else "u") + name
        return f.op(f"{predicate} {f.vec(REGISTER[dtype])} {a}, {b}")

    return emit


def _extremum(name: str, on_bool: str, compare: str) -> Emit:
    def emit(f: Function, dtype: DType, a: str, b: str) -> str:
        vec = f.vec(REGISTER[dtype])
        if dtype is dt.bool_:
            return f.op(f"{on_bool} {vec} {a}, {b}")
        if dtype.kind != "f":
            return f.intrinsic(("s" if dtype.kind == "i" else "u") + name, REGISTER[dtype], a, b)
        # like minps and maxps, the comparison selects b if either is NaN; the second select propagates a NaN of a
        ordered = f.op(f"select {f.vec('i1')} {f.op(f'fcmp {compare} {vec} {a}, {b}')}, {vec} {a}, {vec} {b}")
        # LLVM joins both selects if the test is "uno", and finds no minps
        isnumber = f.op(f"fcmp ord {vec} {a}, {a}")
        return f.mostly(isnumber, vec, ordered, a)

    return emit


def _intrinsic(name: str) -> Emit:
    return lambda f, dtype, *args: f.intrinsic(name, REGISTER[dtype], *args)


def _neg(f: Function, dtype: DType, x: str) -> str:
    vec = f.vec(REGISTER[dtype])
    if dtype.kind != "f":
        return f.op(f"sub {vec} zeroinitializer, {x}")
    if f.lanes == 1:  # LLVM vectorizes the loop around it, and no loop with a fence
        return f.op(f"fneg {vec} {x}")
    # in inline assembly: LLVM would negate a factor instead of the product, and a NaN then has the other sign
    return f.op(f"fneg {vec} {f.intrinsic('arithmetic.fence', REGISTER[dtype], x)}")


def _abs(f: Function, dtype: DType, x: str) -> str:
    vec, element = f.vec(REGISTER[dtype]), REGISTER[dtype]
    if dtype.kind == "f":
        return f.intrinsic("fabs", element, x)
    if dtype.kind == "u":
        return x
    symbol = f"llvm.abs.v{f.lanes}{element}"
    f.module.declare(symbol, vec, vec, "i1")
    return f.op(f"call {vec} @{symbol}({vec} {x}, i1 false)")


def _invert(f: Function, dtype: DType, x: str) -> str:
    ones = f.splat(dtype is dt.bool_ or (-1 if dtype.kind == "i" else 2**dtype.bits - 1), dtype)
    return f.op(f"xor {f.vec(REGISTER[dtype])} {x}, {ones}")


def _signbit(f: Function, dtype: DType, x: str) -> str:
    bits = f.vec(f"i{dtype.bits}")
    return f.op(f"icmp slt {bits} {f.op(f'bitcast {f.vec(REGISTER[dtype])} {x} to {bits}')}, zeroinitializer")


def _compare_with_infinity(predicate: str) -> Emit:
    def emit(f: Function, dtype: DType, x: str) -> str:
        magnitude = f.intrinsic("fabs", REGISTER[dtype], x)
        return f.op(f"fcmp {predicate} {f.vec(REGISTER[dtype])} {magnitude}, {f.splat(float('inf'), dtype)}")

    return emit


def _nextafter(f: Function, dtype: DType, a: str, b: str) -> str:
    """Emit a step of the bits of a float, away from 0 if that is where the other one is."""
    x, y = (values.Value(f, dtype, register) for register in (a, b))
    away = (x < y) ^ (x < 0.0)
    step = values.where(away, x.bits().constant(1), -1)
    smallest = values.with_sign(x.bits().constant(1).from_bits(), y)
    stepped = values.where(x.equals(0.0), smallest, (x.bits() + step).from_bits())
    result = values.where(x.equals(y), y, stepped)
    return values.where(x.is_nan() | y.is_nan(), x + y, result).register


def _by_kind(name: str, on_float: Emit) -> Emit:
    on_integer = integers.TABLE[name]
    return lambda f, dtype, *args: (on_float if dtype.kind == "f" else on_integer)(f, dtype, *args)


def _uniform_power(f: Function, dtype: DType, a: str, b: str) -> str:
    """Emit a power whose exponent is equal in all lanes: call a helper that branches on it.

    See ``expr.uniform_power``.
    """
    vec, name = f.vec(REGISTER[dtype]), f"uniform_pow_{REGISTER[dtype]}_{f.lanes}"
    f.module.helper(name, _uniform_power_helper(f.module, name, dtype, f.lanes))
    return f.op(f"call {vec} @{name}({vec} {a}, {vec} {b})")


def _uniform_power_helper(module: Module, name: str, dtype: DType, lanes: int) -> str:
    f = Function(module, lanes)
    vec = f.vec(REGISTER[dtype])
    exponent = f.op(f"extractelement {vec} %b, i64 0")
    operand = arg(0, dtype)
    for number in (2.0, 1.0, 3.0, 4.0, 0.5, -1.0, 0.0):
        special = uniform_power(operand, const(number, dtype))
        case, other = f.fresh("case"), f.fresh("other")
        f.branch(f.op(f"fcmp oeq {REGISTER[dtype]} {exponent}, {literal(number, dtype)}"), case, other)
        f.label(case)
        known = {operand: "%a"}
        emit_exprs(f, [special], known)
        f.do(f"ret {vec} {known[special]}")
        f.label(other)
    with f.when(is_product(f, dtype, exponent)):
        f.do(f"ret {vec} {_multiply(f, dtype, '%a', exponent)}")
        f.label(f.fresh("never"))
    f.do(f"ret {vec} {EMIT['pow'](f, dtype, '%a', '%b')}")
    return f.text(f"internal {vec} @{name}({vec} %a, {vec} %b) #0")


def is_product(f: Function, dtype: DType, exponent: str) -> str:
    """Return whether a scalar exponent is whole and small, as ``expr.is_product`` does."""
    element = REGISTER[dtype]
    with f.width(1):
        vector = f.op(f"insertelement <1 x {element}> poison, {element} {exponent}, i64 0")
        x = values.Value(f, dtype, vector)
        answer = values.truncate(x).equals(x) & (values.magnitude(x) <= float(LARGEST_PRODUCT))
        return f.op(f"extractelement <1 x i1> {answer.register}, i64 0")


def count_factors(f: Function, dtype: DType, exponent: str) -> tuple[str, str]:
    """Return whether a whole scalar exponent is negative, and its size as i64."""
    number = f.op(f"fptosi {REGISTER[dtype]} {exponent} to i64")
    negative = f.op(f"icmp slt i64 {number}, 0")
    return negative, f.op(f"select i1 {negative}, i64 {f.op(f'sub i64 0, {number}')}, i64 {number}")


def _multiply(f: Function, dtype: DType, x: str, exponent: str) -> str:
    """Return a power with a whole scalar exponent: the product of ``expr.uniform_power``, in a loop over its bits."""
    base, vec = table.widen(f, dtype, x), f.vec("double")
    negative, count = count_factors(f, dtype, exponent)
    one = f.splat(1.0, dt.float64)
    with f.loop("0", str(LARGEST_PRODUCT.bit_length()), "1", [(vec, one), (vec, base.register)]) as loop:
        product, square = loop.carried
        bit = f.op(f"trunc i64 {f.op(f'lshr i64 {count}, {loop.index}')} to i1")
        longer = f.op(f"fmul {vec} {product}, {square}")
        loop.next = [
            f.op(f"select i1 {bit}, {vec} {longer}, {vec} {product}"),
            f.op(f"fmul {vec} {square}, {square}"),
        ]
    product = loop.carried[0]
    result = f.op(f"select i1 {negative}, {vec} {f.op(f'fdiv {vec} {one}, {product}')}, {vec} {product}")
    return table.narrow(f, dtype, values.Value(f, dt.float64, result))


EMIT: dict[str, Emit] = {
    **table.TABLE,
    "add": _arithmetic("add", "or"),
    "sub": _arithmetic("sub"),
    "mul": _arithmetic("mul", "and"),
    "truediv": _arithmetic("div"),
    "floordiv": _by_kind("floordiv", remainders.floordiv),
    "remainder": _by_kind("remainder", remainders.remainder),
    "fmod": _by_kind("fmod", remainders.fmod),
    "pow": _by_kind("pow", table.TABLE["pow"]),
    "uniform_pow": _by_kind("pow", _uniform_power),
    "minimum": _extremum("min", "and", "olt"),
    "maximum": _extremum("max", "or", "ogt"),
    "copysign": _intrinsic("copysign"),
    "nextafter": _nextafter,
    "neg": _neg,
    "abs": _abs,
    **{name: _compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name: _bitwise(name) for name in ("and", "or", "xor")},
    "invert": _invert,
    "lshift": integers.lshift,
    "rshift": integers.rshift,
    **{name: _intrinsic(name) for name in ("sqrt", "floor", "ceil", "trunc", "rint")},
    "isnan": lambda f, dtype, x: f.op(f"fcmp uno {f.vec(REGISTER[dtype])} {x}, {x}"),
    "isinf": _compare_with_infinity("oeq"),
    "isfinite": _compare_with_infinity("olt"),
    "signbit": _signbit,
}
"""The emitter of each node on real operands; :mod:`.complex_nodes` emits nodes on complex ones."""


def _select(f: Function, expr: Expr, values: list[str]) -> str:
    late = f.late.get(values[0])
    if late is not None and expr.dtype is not dt.bool_:
        return _select_late(f, expr, late, *values)
    condition = f.each_part(values[0], expr.dtype)
    with f.parts(expr.dtype) as part:
        vec = f.vec(REGISTER[part])
        return f.op(f"select {f.vec('i1')} {condition}, {vec} {values[1]}, {vec} {values[2]}")


def _select_late(f: Function, expr: Expr, late: str, condition: str, first: str, second: str) -> str:
    """Select by one condition for all lanes, which is known late: LLVM makes a branch of it.

    The next step of a loop, which needs the selected numbers, then begins before the condition is known.
    """
    with f.parts(expr.dtype) as part:
        vec = f.vec(REGISTER[part])
        if f.lanes == 1:
            return f.mostly(condition, vec, first, second)
        return f.op(f"select i1 {late}, {vec} {first}, {vec} {second}")


def emit_node(f: Function, expr: Expr, values: list[str]) -> str:
    """Emit one node, given the registers of its operands; return the register of its result."""
    if expr.op == "const":
        return f.splat(expr.payload, expr.dtype)
    if expr.op == "cast":
        return emit_cast(f, values[0], expr.args[0].dtype, expr.dtype)
    if expr.op == "select":
        return _select(f, expr, values)
    if expr.op == "call":
        user_call: str = _user.call_user(f, expr.payload, values)
        return user_call
    if expr.op == "gather" and f.gather is not None:
        return f.gather(expr, values)
    operand = expr.args[0].dtype
    if operand in (dt.float16, dt.bfloat16):
        raise UnsupportedError(
            f"the node {expr.op!r} is not emitted for {operand.name}; cast its operands to float32 first"
        )
    if "c" in (operand.kind, expr.dtype.kind):
        return emit_complex(f, expr, values, EMIT.get(expr.op))
    if operand.kind == "f" and expr.op in ("floordiv", "remainder", "fmod"):
        return EMIT[expr.op](f, operand, *values, remainders.find_divisor(expr.args[1]))
    if operand.kind == "i" and operand.bits == 64 and f.lanes > 1 and expr.op in integers.DIVISIONS:
        interval = _intervals.find_interval(expr.args[0], sizes=f.sizes)
        return EMIT[expr.op](f, operand, *values, interval)
    if f.lanes == 1 and expr.op in EXTREMUM_IDENTITIES and operand.is_integer:
        values = [_freeze_choice(f, e, value, expr.op) for e, value in zip(expr.args, values, strict=True)]
    if expr.op in ("eq", "ne") and _is_zero(expr.args[1]):
        values = [f.rests.get(values[0], values[0]), values[1]]
    return EMIT[expr.op](f, operand, *values)


def _freeze_choice(f: Function, e: Expr, value: str, extremum: str) -> str:
    """Freeze a choice between a number and the identity of an extremum of integers.

    LLVM would choose between the extremum and its other operand instead, and does not vectorize a loop that does so.
    """
    identity = EXTREMUM_IDENTITIES[extremum](e.dtype)
    if e.op == "select" and any(arm.op == "const" and arm.payload == identity for arm in e.args[1:]):
        return f.op(f"freeze {f.vec(REGISTER[e.dtype])} {value}")
    return value


def _is_zero(e: Expr) -> bool:
    return e.op == "const" and e.payload == 0


def emit_expr(f: Function, root: Expr, *operands: str) -> str:
    """Emit a scalar expression over ``arg(0)``, ``arg(1)``, ...; return its register."""
    known: dict[Expr, str] = {e: operands[e.payload] for e in order(root) if e.op == "arg"}
    emit_exprs(f, [root], known)
    return known[root]


def emit_exprs(f: Function, roots: Iterable[Expr], known: dict[Expr, str]) -> None:
    """Emit the nodes that ``roots`` need and ``known`` lacks; add their registers to ``known``."""
    roots = list(roots)
    exprs = order(*roots, known=known)
    if f.lanes == 1 and has_costly(exprs):
        _lazy_operands.emit_lazily(f, roots, known)
        return
    for expr in exprs:
        known[expr] = emit_node(f, expr, [known[a] for a in expr.args])


def has_costly(exprs: Iterable[Expr]) -> bool:
    """Return whether one of some expressions is costly."""
    return any(e.op in COSTLY for e in exprs)


def find_shared_functions(exprs: Iterable[Expr]) -> frozenset[str]:
    """Return the elementary functions that are called and not inlined, since ``exprs`` compute them many times."""
    occurrences = Counter(e.op for e in exprs)
    return frozenset(op for op, count in occurrences.items() if count > MAX_INLINED_FUNCTIONS)


def load_scalar(f: Function, e: Expr) -> str:
    """Return a run-time scalar in every lane."""
    return f.load_splat(e.dtype, f.address("%scalars", str(8 * e.payload)))
