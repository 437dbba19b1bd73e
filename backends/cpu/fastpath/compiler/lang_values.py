"""Typed values of native code: literals, conversions, pointers to structs."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

from .....errors import TandemError
from .dsl import TYPES, Ty
from .structs import StructMeta


class LangError(TandemError, SyntaxError):
    """A native function uses a construct outside the subset, or mixes types."""


@dataclass(frozen=True)
class Val:
    """A value: type, LLVM spelling, and the Python constant behind a literal (which adapts its type)."""

    ty: Ty
    text: str
    const: int | float | None = None


I64, F64, BOOL, PTR, VOID = (TYPES[n] for n in ("i64", "f64", "bool", "ptr", "None"))


def float_text(value: float, ty: Ty) -> str:
    """Return the exact LLVM spelling of a float constant (LLVM expects the bits of the double)."""
    if ty.bits == 32:
        value = struct.unpack("f", struct.pack("f", value))[0]
    if ty.bits == 16:
        return "0xH" + struct.pack(">e", value).hex().upper()
    return "0x" + struct.pack(">d", value).hex().upper()


def const(value: int | float | bool, ty: Ty | None = None) -> Val:
    """Return a literal of the given type, or of the default one for its Python type."""
    ty = ty or (BOOL if isinstance(value, bool) else I64 if isinstance(value, int) else F64)
    if ty.kind == "f":
        return Val(ty, float_text(float(value), ty), float(value))
    if ty.kind == "p":
        return Val(ty, "null" if value == 0 else f"inttoptr (i64 {int(value)} to ptr)", int(value))
    return Val(ty, str(int(value)), int(value))


@functools.cache
def pointer_to(owner: StructMeta) -> Ty:
    """Return the type of pointers to a struct."""
    return Ty(owner.__name__, "ptr", "p", 64, owner)


def conversion(src: Ty, to: Ty) -> str:
    """Return the LLVM conversion instruction between two machine types."""
    if src.kind in "iub" and to.kind in "iu":
        widen = "sext" if src.kind == "i" else "zext"
        return "bitcast" if src.bits == to.bits else "trunc" if to.bits < src.bits else widen
    if src.kind == "f" and to.kind == "f":
        return "fptrunc" if to.bits < src.bits else "fpext"
    if to.kind == "f" and src.kind in "iub":
        return "sitofp" if src.kind == "i" else "uitofp"
    if src.kind == "f" and to.kind in "iu":
        return "fptosi" if to.kind == "i" else "fptoui"
    if src.kind == "p" and to.kind in "iu" and to.bits == 64:
        return "ptrtoint"
    if src.kind in "iu" and src.bits == 64 and to.kind == "p":
        return "inttoptr"
    raise LangError(f"no conversion from {src.name} to {to.name}")
