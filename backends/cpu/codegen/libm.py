"""Scalar calls of libm, one per lane: fmod, and sin, cos and tan of huge arguments."""

from __future__ import annotations

from ....registry.dtypes import DType
from .text import REGISTER, Function, Module


def call_lanes(f: Function, name: str, dtype: DType, *args: str) -> str:
    """Return the results of one scalar call per lane, in a helper function."""
    vec, symbol = f.vec(REGISTER[dtype]), name + ("f" if dtype.itemsize == 4 else "")
    helper = f"each_{symbol}_{f.lanes}"
    f.module.declare(symbol, REGISTER[dtype], *[REGISTER[dtype]] * len(args))
    f.module.helper(helper, _write_lane_calls(f.module, helper, symbol, dtype, f.lanes, len(args)))
    return f.op(f"call {vec} @{helper}({', '.join(f'{vec} {a}' for a in args)})")


def _write_lane_calls(module: Module, helper: str, symbol: str, dtype: DType, lanes: int, arity: int) -> str:
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
