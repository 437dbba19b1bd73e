"""Conversions between dtypes, each defined for every value (see ``operators/scalar_ir/nodes.py``)."""

from __future__ import annotations

from ....errors import UnsupportedError
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .text import PARTS, REGISTER, Function


def emit_cast(f: Function, x: str, source: DType, target: DType) -> str:
    """Return ``x`` of type ``source`` converted to ``target``."""
    if source is target:
        return x
    if "c" in (source.kind, target.kind):
        return _cast_complex(f, x, source, target)
    if source in (dt.float16, dt.bfloat16):
        return emit_cast(f, _widen_half(f, x, source), dt.float32, target)
    if target is dt.bool_:
        return _truth(f, x, source)
    if target in (dt.float16, dt.bfloat16):
        return _narrow_half(f, x, source, target)
    if source.kind == "f" and target.kind == "f":
        return _convert(f, "fpext" if target is dt.float64 else "fptrunc", x, source, target)
    if target.kind == "f":
        return _convert(f, "sitofp" if source.kind == "i" else "uitofp", x, source, target)
    if source.kind == "f":
        return float_to_integer(f, x, source, target)
    return _resize(f, x, source, target)


def _cast_complex(f: Function, x: str, source: DType, target: DType) -> str:
    """Convert to or from complex numbers; a real number is the real part, and a complex one true if either part is."""
    if source not in PARTS:
        part = PARTS[target]
        return f.join_parts(REGISTER[part], emit_cast(f, x, source, part), "zeroinitializer")
    if target is not dt.bool_ and target not in PARTS:
        return emit_cast(f, f.split_parts(REGISTER[PARTS[source]], x)[0], PARTS[source], target)
    with f.parts(source) as part:
        result = emit_cast(f, x, part, PARTS.get(target, target))
    if target in PARTS:
        return result
    return f.op(f"or {f.vec('i1')} {', '.join(f.split_parts('i1', result))}")


def _convert(f: Function, instruction: str, x: str, source: DType, target: DType) -> str:
    return f.op(f"{instruction} {f.vec(REGISTER[source])} {x} to {f.vec(REGISTER[target])}")


def _truth(f: Function, x: str, source: DType) -> str:
    compare = "fcmp une" if source.kind == "f" else "icmp ne"
    return f.op(f"{compare} {f.vec(REGISTER[source])} {x}, zeroinitializer")


def _resize(f: Function, x: str, source: DType, target: DType) -> str:
    if source.bits == target.bits:
        return x
    widen = "sext" if source.kind == "i" else "zext"
    return _convert(f, "trunc" if source.bits > target.bits else widen, x, source, target)


def _widen_half(f: Function, x: str, source: DType) -> str:
    if source is dt.float16:
        return _convert(f, "fpext", x, source, dt.float32)
    bits = f.op(f"zext {f.vec('i16')} {x} to {f.vec('i32')}")
    high = f.op(f"shl {f.vec('i32')} {bits}, splat (i32 16)")
    return f.op(f"bitcast {f.vec('i32')} {high} to {f.vec('float')}")


def _narrow_half(f: Function, x: str, source: DType, target: DType) -> str:
    if source is dt.float64 and target is dt.float16:
        x = _to_odd(f, x)
    x = emit_cast(f, x, source, dt.float32)
    if target is dt.float16:
        return _convert(f, "fptrunc", x, dt.float32, target)
    return _round_bfloat16(f, x)


def _to_odd(f: Function, x: str) -> str:
    """Return a float64 rounded to odd in float32 precision, so that a conversion to float16 rounds once."""
    v = f.vec("i64")
    bits = f.op(f"bitcast {f.vec('double')} {x} to {v}")
    lost = f.op(f"and {v} {bits}, splat (i64 {2**29 - 1})")
    sticky = f.op(f"zext {f.vec('i1')} {f.op(f'icmp ne {v} {lost}, zeroinitializer')} to {v}")
    kept = f.op(f"and {v} {bits}, splat (i64 {-(2**29)})")
    odd = f.op(f"or {v} {kept}, {f.op(f'shl {v} {sticky}, splat (i64 29)')}")
    return f.op(f"bitcast {v} {odd} to {f.vec('double')}")


def _round_bfloat16(f: Function, x: str) -> str:
    """Return the upper half of a float32, rounded to nearest even; NaN becomes the quiet NaN of its sign."""
    v = f.vec("i32")
    bits = f.op(f"bitcast {f.vec('float')} {x} to {v}")
    last = f.op(f"and {v} {f.op(f'lshr {v} {bits}, splat (i32 16)')}, splat (i32 1)")
    rounded = f.op(f"add {v} {f.op(f'add {v} {bits}, splat (i32 32767)')}, {last}")
    sign = f.op(f"and {v} {bits}, splat (i32 -2147483648)")
    quiet = f.op(f"or {v} {sign}, splat (i32 {0x7FC00000})")
    isnan = f.op(f"fcmp uno {f.vec('float')} {x}, {x}")
    picked = f.op(f"select {f.vec('i1')} {isnan}, {v} {quiet}, {v} {rounded}")
    return f.op(f"trunc {v} {f.op(f'lshr {v} {picked}, splat (i32 16)')} to {f.vec('i16')}")


def float_to_integer(f: Function, x: str, source: DType, target: DType) -> str:
    """Truncate; out-of-range values convert as in NumPy on x86-64."""
    if target is dt.uint64:
        return _to_uint64(f, x, source)
    middle = dt.int64 if target in (dt.int64, dt.uint32) else dt.int32
    return _resize(f, _fit(f, x, source, middle), middle, target)


def _fit(f: Function, x: str, source: DType, target: DType) -> str:
    """Convert to int32 or int64; NaN and out-of-range values become the most negative value."""
    bound, out = 2.0 ** (target.bits - 1), f.vec(REGISTER[target])
    # the values from -bound down to where truncation does not fit become the most negative one, tested or not
    magnitude = f.intrinsic("fabs", REGISTER[source], x)
    fits = f.op(f"fcmp olt {f.vec(REGISTER[source])} {magnitude}, {f.splat(bound, source)}")
    whole = _convert(f, "fptosi", x, source, target)  # poison for values that do not fit; it is not selected
    return f.mostly(fits, out, whole, f.splat(-int(bound), target))


def _to_uint64(f: Function, x: str, source: DType) -> str:
    vec, v = f.vec(REGISTER[source]), f.vec("i64")
    large = f.op(f"fcmp oge {vec} {x}, {f.splat(2.0**63, source)}")
    less = f.op(f"fsub {vec} {x}, {f.splat(2.0**63, source)}")
    low = _fit(f, f.op(f"select {f.vec('i1')} {large}, {vec} {less}, {vec} {x}"), source, dt.int64)
    high = f.op(f"xor {v} {low}, splat (i64 {-(2**63)})")
    return f.op(f"select {f.vec('i1')} {large}, {v} {high}, {v} {low}")


def check_emittable(*dtypes: DType, f16c: bool) -> None:
    """Raise UnsupportedError for dtypes without emitted code on this machine."""
    for dtype in dtypes:
        if dtype is dt.float16 and not f16c:
            raise UnsupportedError("float16 kernels are emitted only for processors with F16C instructions")
