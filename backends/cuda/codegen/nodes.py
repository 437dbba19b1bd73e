"""CUDA C of the scalar IR's nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....errors import UnsupportedError
from ....named_tuple import NamedTuple
from ....operators.scalar_ir.expr import NODES, Expr
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from . import complex_nodes
from .types import CTYPE, bare, literal


class Code(NamedTuple):
    """The text of a node, and the helpers that it needs."""

    text: str
    helpers: tuple[str, ...] = ()


Emit = Callable[..., Code]  # (dtype of the operands, *operands) -> code


def _infix(sign: str) -> Emit:
    return lambda dtype, a, b: Code(f"({a} {sign} {b})")


def _arithmetic(sign: str, name: str, on_bool: str = "") -> Emit:
    """An operator on floats; integers wrap around."""

    def emit(dtype: DType, a: str, b: str) -> Code:
        if dtype is dt.bool_:
            return Code(f"({a} {on_bool} {b})")
        if dtype.kind == "f":
            return Code(f"({a} {sign} {b})")
        return Code(f"{name}<{CTYPE[dtype]}>({bare(a)}, {bare(b)})", ("wrapping",))

    return emit


def _math(name: str) -> Emit:
    """A function of the math library: ``expf`` of floats, ``exp`` of doubles."""
    return lambda dtype, *args: Code(
        f"{name}{'f' if dtype is dt.float32 else ''}({', '.join(map(bare, args))})"
    )


def _by_sign(name: str, helper: str, on_float: Emit | None = None) -> Emit:
    """A helper for signed and one for unsigned integers."""

    def emit(dtype: DType, a: str, b: str) -> Code:
        if dtype.kind == "f" and on_float is not None:
            return on_float(dtype, a, b)
        suffix = "signed" if dtype.kind == "i" else "unsigned"
        return Code(f"{name}_{suffix}<{CTYPE[dtype]}>({bare(a)}, {bare(b)})", (helper,))

    return emit


def _remainder(name: str) -> Emit:
    return lambda dtype, a, b: Code(
        f"{name}_{CTYPE[dtype]}({bare(a)}, {bare(b)})", (f"remainder_{CTYPE[dtype]}",)
    )


def _uniform_pow(dtype: DType, a: str, b: str) -> Code:
    return Code(f"uniform_power_{CTYPE[dtype]}({bare(a)}, {bare(b)})", (f"uniform_power_{CTYPE[dtype]}",))


def _fmod(dtype: DType, a: str, b: str) -> Code:
    if dtype.kind == "f":
        return _math("fmod")(dtype, a, b)
    name = "fmod_signed" if dtype.kind == "i" else "remainder_unsigned"
    return Code(f"{name}<{CTYPE[dtype]}>({bare(a)}, {bare(b)})", ("division",))


def _extremum(name: str, on_bool: str) -> Emit:
    def emit(dtype: DType, a: str, b: str) -> Code:
        if dtype is dt.bool_:
            return Code(f"({a} {on_bool} {b})")
        return Code(f"{name}<{CTYPE[dtype]}>({bare(a)}, {bare(b)})", ("extrema",))

    return emit


def _bits(sign: str) -> Emit:
    return lambda dtype, a, b: _narrow(dtype, f"({a} {sign} {b})")


def _narrow(dtype: DType, text: str) -> Code:
    """Cast the result of C's integer promotion back to a narrow dtype."""
    return Code(text if dtype.bits >= 32 else f"({CTYPE[dtype]}){text}")


def _neg(dtype: DType, x: str) -> Code:
    return Code(f"(-{x})") if dtype.kind == "f" else Code(f"wrapping_neg<{CTYPE[dtype]}>({x})", ("wrapping",))


def _abs(dtype: DType, x: str) -> Code:
    if dtype.kind == "f":
        return _math("fabs")(dtype, x)
    if dtype.kind == "u":
        return Code(x)
    return Code(f"({x} < 0 ? wrapping_neg<{CTYPE[dtype]}>({x}) : {x})", ("wrapping",))


def _invert(dtype: DType, x: str) -> Code:
    return Code(f"(!{x})") if dtype is dt.bool_ else _narrow(dtype, f"(~{x})")


def _compare_with_infinity(sign: str) -> Emit:
    def emit(dtype: DType, x: str) -> Code:
        return Code(f"({_math('fabs')(dtype, x).text} {sign} {literal(float('inf'), dtype)})")

    return emit


def _signbit(dtype: DType, x: str) -> Code:
    return Code(f"(__float_as_int({x}) < 0)" if dtype is dt.float32 else f"(__double_as_longlong({x}) < 0)")


EMIT: dict[str, Emit] = {
    # exp, tanh, sqrt, ...: the C function of the same name
    **{name: _math(name) for name, row in NODES.items() if row.kinds in ("f", "fc") and row.result == "same"},
    "portable_erfc": _math("erfc"),
    "add": _arithmetic("+", "wrapping_add", "|"),
    "sub": _arithmetic("-", "wrapping_sub"),
    "mul": _arithmetic("*", "wrapping_mul", "&"),
    "truediv": _infix("/"),
    "floordiv": _by_sign("floor_divide", "division", _remainder("floor_divide")),
    "remainder": _by_sign("remainder", "division", _remainder("remainder")),
    "fmod": _fmod,
    "pow": _by_sign("power", "power", _math("pow")),
    "uniform_pow": _by_sign("power", "power", _uniform_pow),
    "minimum": _extremum("smaller", "&"),
    "maximum": _extremum("larger", "|"),
    "neg": _neg,
    "abs": _abs,
    "eq": _infix("=="),
    "ne": _infix("!="),
    "lt": _infix("<"),
    "le": _infix("<="),
    "gt": _infix(">"),
    "ge": _infix(">="),
    "and": _bits("&"),
    "or": _bits("|"),
    "xor": _bits("^"),
    "invert": _invert,
    "lshift": lambda dtype, a, b: Code(f"shift_left<{CTYPE[dtype]}>({bare(a)}, {bare(b)})", ("shifts",)),
    "rshift": _by_sign("shift_right", "shifts"),
    "isnan": lambda dtype, x: Code(f"({x} != {x})"),
    "isinf": _compare_with_infinity("=="),
    "isfinite": _compare_with_infinity("<"),
    "signbit": _signbit,
}
"""Node -> function that writes it; nodes on complex numbers are in :mod:`.complex_nodes`."""
NAMED = frozenset({"abs", "isnan"})
"""The nodes that use an operand twice, which therefore needs a name."""


_NEVER_BELOW = ("lt", "ge")


def _compares_with_zero(expr: Expr) -> bool:
    """Whether an unsigned number is compared with 0, which compilers warn of."""
    one, two = expr.args
    return one.dtype.kind in "bu" and two.op == "const" and not two.payload


_KNOWN = frozenset(
    (*EMIT, *complex_nodes.EMIT, "const", "cast", "select", "arg", "load", "gather", "row", "scalar", "index")
)


def write_node(expr: Expr, operands: Sequence[str]) -> Code:
    """Write one node over the text of its operands.

    Raises:
        UnsupportedError: the node has no CUDA C.
    """
    if expr.op == "const":
        return Code(literal(expr.payload, expr.dtype), ("half",) if expr.dtype in dt.HALVES else ())
    if expr.op == "cast":
        return write_cast(operands[0], expr.args[0].dtype, expr.dtype)
    if expr.op == "select":
        return Code(f"({operands[0]} ? {operands[1]} : {operands[2]})")
    if expr.op in _NEVER_BELOW and _compares_with_zero(expr):
        return Code("false" if expr.op == "lt" else "true")
    why = explain_unsupported(expr)
    if why is not None:
        raise UnsupportedError(f"{expr!r} has no CUDA C: {why}")
    return write_op(expr.op, expr.args[0].dtype, *operands)


def write_op(op: str, dtype: DType, *operands: str) -> Code:
    """Write the node ``op`` on operands of a computation dtype."""
    if dtype.kind == "c" or op == "complex":
        return Code(*complex_nodes.EMIT[op](dtype, *operands))
    return EMIT[op](dtype, *operands)


def explain_unsupported(expr: Expr) -> str | None:
    """The reason why an expression, without its operands, has no CUDA C; None if it has."""
    if expr.dtype not in CTYPE:
        return f"{expr.dtype.name} is not emitted"
    if expr.op == "call":
        return "a function compiled for the CPU cannot be called from the GPU"
    if expr.op in EMIT and expr.args[0].dtype in dt.HALVES:
        dtype = expr.args[0].dtype
        return f"the node {expr.op!r} is not emitted for {dtype.name}; cast its operands to float32 first"
    return None if expr.op in _KNOWN else f"the node {expr.op!r} is not emitted"


def write_cast(x: str, source: DType, target: DType) -> Code:
    """Convert ``x`` from ``source`` to ``target``, defined for every value (see ``operators/scalar_ir/nodes.py``)."""
    if source is target:
        return Code(x)
    if source.kind == "c" or (target.kind == "c" and source not in dt.HALVES):
        text, value = complex_nodes.write_complex_cast(x, source, target)
        rest = write_cast(text, value, target)
        return Code(rest.text, ("complex", *rest.helpers))
    if source in dt.HALVES:
        inner = write_cast(f"to_float({bare(x)})", dt.float32, target)
        return Code(inner.text, ("half", *inner.helpers))
    if target is dt.bool_:
        return Code(f"({x} != 0)")
    if target is dt.float16:
        wide = x if source.kind == "f" else f"(float){x}"
        return Code(f"to_float16({bare(wide)})", ("half",))
    if target is dt.bfloat16:
        return Code(f"to_bfloat16({x if source is dt.float32 else f'(float){x}'})", ("half",))
    if source.kind == "f" and target.kind != "f":
        return _truncate(x, target)
    return Code(f"({CTYPE[target]}){x}")


def _truncate(x: str, target: DType) -> Code:
    middle = "uint64" if target is dt.uint64 else "int64" if target in (dt.int64, dt.uint32) else "int32"
    text = f"to_{middle}({bare(x)})"
    return Code(text if middle == target.name else f"({CTYPE[target]}){text}", ("truncation",))
