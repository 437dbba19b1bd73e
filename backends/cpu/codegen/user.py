"""Calls of users' scalar functions in emitted loops: one call per lane, inlined if the function is LLVM IR."""

from __future__ import annotations

from ....operators.foreign.functions import ScalarFunction
from ....registry.dtypes import DType
from .text import REGISTER, Function, Module


def call_user(f: Function, function: ScalarFunction, args: list[str]) -> str:
    """Return the results of a function, lane by lane; the module records what must be linked with it."""
    module, result = f.module, REGISTER[function.result]
    params = [_parameter_type(function, dtype) for dtype in function.params]
    module.declare(function.symbol, _result_type(function), *params, pure=not function.ir)
    if function.ir:
        module.linked[function.symbol] = function.ir
    else:
        module.imports[function.symbol] = function.address
    helper = f"each_{function.symbol}_{f.lanes}"
    module.helper(helper, _write_lane_calls(module, helper, function, f.lanes))
    types = [f.vec(REGISTER[dtype]) for dtype in function.params]
    given = ", ".join(f"{kind} {value}" for kind, value in zip(types, args, strict=True))
    return f.op(f"call {f.vec(result)} @{helper}({given})")


def _extension(function: ScalarFunction, dtype: DType) -> str:
    """Return how the C calling convention widens small integers."""
    if function.ir or dtype.kind not in "biu" or dtype.itemsize >= 4:
        return ""
    return "signext" if dtype.kind == "i" else "zeroext"


def _parameter_type(function: ScalarFunction, dtype: DType) -> str:
    return f"{REGISTER[dtype]} {_extension(function, dtype)}".rstrip()


def _result_type(function: ScalarFunction) -> str:
    return f"{_extension(function, function.result)} {REGISTER[function.result]}".lstrip()


def _write_lane_calls(module: Module, helper: str, function: ScalarFunction, lanes: int) -> str:
    f = Function(module, lanes)
    result = f.vec(REGISTER[function.result])
    vectors = [f.vec(REGISTER[dtype]) for dtype in function.params]
    with f.loop("0", str(lanes), "1", [(result, "poison")]) as loop:
        picked = [
            f.op(f"extractelement {vector} %a{k}, i64 {loop.index}") for k, vector in enumerate(vectors)
        ]
        given = ", ".join(
            f"{_parameter_type(function, dtype)} {value}"
            for dtype, value in zip(function.params, picked, strict=True)
        )
        value = f.op(f"call {_result_type(function)} @{function.symbol}({given})")
        element = f"{REGISTER[function.result]} {value}"
        loop.next = [f.op(f"insertelement {result} {loop.carried[0]}, {element}, i64 {loop.index}")]
    f.do(f"ret {result} {loop.carried[0]}")
    params = ", ".join(f"{vector} %a{k}" for k, vector in enumerate(vectors))
    return f.text(f"internal {result} @{helper}({params}) #0")
