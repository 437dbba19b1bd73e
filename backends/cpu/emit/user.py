"""Calls of users' scalar functions from within emitted loops: one call per lane, inlined where the code is LLVM's."""

from __future__ import annotations

from ....operators.user_functions import ScalarFunction
from ....registry.dtypes import DType
from .text import REGISTER, Function, Module


def call_user(f: Function, function: ScalarFunction, args: list[str]) -> str:
    """The function of vectors, lane by lane. The module takes note of what has to be linked with it."""
    module, result = f.module, REGISTER[function.result]
    params = [_passed(function, dtype) for dtype in function.params]
    module.declare(function.symbol, _returned(function), *params, pure=not function.ir)
    if function.ir:
        module.linked[function.symbol] = function.ir
    else:
        module.imports[function.symbol] = function.address
    helper = f"each_{function.symbol}_{f.lanes}"
    module.helper(helper, _each(module, helper, function, f.lanes))
    types = [f.vec(REGISTER[dtype]) for dtype in function.params]
    given = ", ".join(f"{kind} {value}" for kind, value in zip(types, args, strict=True))
    return f.op(f"call {f.vec(result)} @{helper}({given})")


def _extension(function: ScalarFunction, dtype: DType) -> str:
    """How the C calling convention widens small integers."""
    if function.ir or dtype.kind not in "biu" or dtype.itemsize >= 4:
        return ""
    return "signext" if dtype.kind == "i" else "zeroext"


def _passed(function: ScalarFunction, dtype: DType) -> str:
    return f"{REGISTER[dtype]} {_extension(function, dtype)}".rstrip()


def _returned(function: ScalarFunction) -> str:
    return f"{_extension(function, function.result)} {REGISTER[function.result]}".lstrip()


def _each(module: Module, helper: str, function: ScalarFunction, lanes: int) -> str:
    f = Function(module, lanes)
    result = f.vec(REGISTER[function.result])
    vectors = [f.vec(REGISTER[dtype]) for dtype in function.params]
    with f.loop("0", str(lanes), "1", [(result, "poison")]) as loop:
        picked = [
            f.op(f"extractelement {vector} %a{k}, i64 {loop.index}") for k, vector in enumerate(vectors)
        ]
        given = ", ".join(
            f"{_passed(function, dtype)} {value}"
            for dtype, value in zip(function.params, picked, strict=True)
        )
        value = f.op(f"call {_returned(function)} @{function.symbol}({given})")
        element = f"{REGISTER[function.result]} {value}"
        loop.next = [f.op(f"insertelement {result} {loop.carried[0]}, {element}, i64 {loop.index}")]
    f.do(f"ret {result} {loop.carried[0]}")
    params = ", ".join(f"{vector} %a{k}" for k, vector in enumerate(vectors))
    return f.text(f"internal {result} @{helper}({params}) #0")
