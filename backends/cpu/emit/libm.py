"""Calls of libm: glibc's vector variant where it has one, else one call per lane."""

from __future__ import annotations

from ....registry.dtypes import DType
from .host import vector_function
from .text import REGISTER, Function, Module


def call(f: Function, name: str, dtype: DType, *args: str) -> str:
    """The libm function ``name`` (its float64 name) of float32 or float64 vectors."""
    found = vector_function(name, dtype.itemsize, len(args), f.lanes)
    if found is None:
        return call_lanes(f, name, dtype, *args)
    symbol, lanes = found
    vec = f"<{lanes} x {REGISTER[dtype]}>"
    f.module.declare(symbol, vec, *[vec] * len(args))
    if lanes == f.lanes:
        return f.op(f"call {vec} @{symbol}({', '.join(f'{vec} {a}' for a in args)})")
    parts = []
    for start in range(0, f.lanes, lanes):
        pieces = [f.part(a, REGISTER[dtype], start, lanes) for a in args]
        parts.append(f.op(f"call {vec} @{symbol}({', '.join(f'{vec} {p}' for p in pieces)})"))
    return _join(f, REGISTER[dtype], parts, lanes)


def _join(f: Function, element: str, parts: list[str], lanes: int) -> str:
    """Vectors of ``lanes`` side by side (both powers of two), cut to the function's width."""
    while len(parts) > 1:
        vec, picks = f"<{lanes} x {element}>", ", ".join(f"i32 {i}" for i in range(2 * lanes))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [f.op(f"shufflevector {vec} {a}, {vec} {b}, <{2 * lanes} x i32> <{picks}>") for a, b in pairs]
        lanes *= 2
    if lanes == f.lanes:
        return parts[0]
    wanted = f.lanes
    with f.width(lanes):
        return f.part(parts[0], element, 0, wanted)


def call_lanes(f: Function, name: str, dtype: DType, *args: str) -> str:
    """One scalar call per lane, in a helper function."""
    vec, symbol = f.vec(REGISTER[dtype]), name + ("f" if dtype.itemsize == 4 else "")
    helper = f"each_{symbol}_{f.lanes}"
    f.module.declare(symbol, REGISTER[dtype], *[REGISTER[dtype]] * len(args))
    f.module.helper(helper, _each(f.module, helper, symbol, dtype, f.lanes, len(args)))
    return f.op(f"call {vec} @{helper}({', '.join(f'{vec} {a}' for a in args)})")


def _each(module: Module, helper: str, symbol: str, dtype: DType, lanes: int, arity: int) -> str:
    f = Function(module, lanes)
    vec, element = f.vec(REGISTER[dtype]), REGISTER[dtype]
    with f.loop("0", str(lanes), "1", [(vec, "poison")]) as loop:
        picked = [f.op(f"extractelement {vec} %a{k}, i64 {loop.index}") for k in range(arity)]
        value = f.op(f"call {element} @{symbol}({', '.join(f'{element} {p}' for p in picked)})")
        before = loop.carried[0]
        loop.next = [f.op(f"insertelement {vec} {before}, {element} {value}, i64 {loop.index}")]
    f.do(f"ret {vec} {loop.carried[0]}")
    params = ", ".join(f"{vec} %a{k}" for k in range(arity))
    return f.text(f"internal {vec} @{helper}({params}) #1")
