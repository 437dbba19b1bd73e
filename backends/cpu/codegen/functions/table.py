"""Elementary functions as nodes of the scalar IR: polynomials on vectors, in place of calls of libmvec or SVML."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..... import lazy
from .....registry import dtypes as dt
from .....registry.dtypes import DType
from ..text import REGISTER, Function, Module
from . import single
from .pairs import Arithmetic
from .values import Value, magnitude, where

Formula = Callable[..., Value]

# The formulas are imported when the first is written: a module mostly needs few of them, if any.
error_function = lazy.Functions(".backends.cpu.codegen.functions.error_function")
inverse_error = lazy.Functions(".backends.cpu.codegen.functions.inverse_error")
exponential = lazy.Functions(".backends.cpu.codegen.functions.exponential")
inverse = lazy.Functions(".backends.cpu.codegen.functions.inverse")
logarithm = lazy.Functions(".backends.cpu.codegen.functions.logarithm")
power = lazy.Functions(".backends.cpu.codegen.functions.power")
trigonometry = lazy.Functions(".backends.cpu.codegen.functions.trigonometry")
sampled_error_function = lazy.Functions(".backends.cpu.codegen.functions.sampled_error_function")
single_circular = lazy.Functions(".backends.cpu.codegen.functions.single_circular")
single_inverse = lazy.Functions(".backends.cpu.codegen.functions.single_inverse")
single_error = lazy.Functions(".backends.cpu.codegen.functions.single_error")
libm = lazy.Module(".backends.cpu.codegen.libm")
_trigonometry = lazy.Module(".backends.cpu.codegen.functions.trigonometry")
_single_circular = lazy.Module(".backends.cpu.codegen.functions.single_circular")

FORMULAS: dict[str, Formula] = {
    **{name: getattr(exponential, name) for name in ("exp", "exp2", "expm1", "sinh", "cosh", "tanh")},
    **{
        name: getattr(logarithm, name)
        for name in ("log", "log2", "log10", "log1p", "asinh", "acosh", "atanh")
    },
    **{name: getattr(trigonometry, name) for name in ("sin", "cos", "tan")},
    **{name: getattr(inverse, name) for name in ("asin", "acos", "atan", "atan2")},
    "erf": error_function.erf,
    "erfc": error_function.erfc,
    "portable_erfc": sampled_error_function.erfc,
    "erfinv": inverse_error.erfinv,
    "pow": power.pow_,
    "hypot": power.hypot,
}
"""The nodes that are computed by formulas of float64 registers."""
RARE: dict[str, tuple[Formula, Formula]] = {
    "exp": (exponential.is_beyond_exp, exponential.exp_anywhere),
    "exp2": (exponential.is_beyond_exp2, exponential.exp2_anywhere),
    **{
        name: (logarithm.is_not_normal, getattr(logarithm, f"{name}_anywhere"))
        for name in ("log", "log2", "log10")
    },
    "atan2": (inverse.is_beyond_atan2, inverse.atan2_anywhere),
    "pow": (power.is_beyond_pow, power.pow_anywhere),
}
"""Where a formula does not hold, and the formula for all lanes of such a vector."""
_PERIODIC = ("sin", "cos", "tan")
_SINGLE: dict[str, Callable[[Value], Value]] = {
    **single.TABLE,
    **{name: getattr(single_circular, name) for name in _PERIODIC},
    **{name: getattr(single_inverse, name) for name in ("asin", "acos", "atan", "atanh")},
    "erfc": single_error.erfc,
    "erfinv": single_error.erfinv,
}
"""The functions that are computed in float32."""
_SINGLE_RARE: dict[str, tuple[Callable[[Value], Value], Callable[[Value], Value]]] = {
    "exp": (single.is_beyond_exp, single.exp_anywhere),
    "exp2": (single.is_beyond_exp2, single.exp2_anywhere),
    **{
        name: (single.is_not_normal, partial(single.logarithm_anywhere, name))
        for name in ("log", "log2", "log10")
    },
}
"""Like ``RARE``, for functions that are computed in float32."""


def emit(name: str, f: Function, dtype: DType, *registers: str) -> str:
    """Return a call of a function on vectors of float32 or float64."""
    is_shared = name in f.shared
    if (
        dtype is dt.float32
        and name in _SINGLE
        and not (is_shared or name in _PERIODIC or name in _SINGLE_RARE)
    ):
        return _SINGLE[name](*[Value(f, dtype, register) for register in registers]).register
    vec = f.vec(REGISTER[dtype])
    helper = f"{name}_{REGISTER[dtype]}_{f.lanes}{'_shared' if is_shared else ''}"
    if helper not in f.module.parts:
        f.module.helper(helper, _helper(f.module, helper, name, dtype, f.lanes, len(registers), is_shared))
    return f.op(f"call {vec} @{helper}({', '.join(f'{vec} {r}' for r in registers)})")


def _helper(
    module: Module, helper: str, name: str, dtype: DType, lanes: int, arity: int, is_shared: bool
) -> str:
    f = Function(module, lanes)
    vec, registers = f.vec(REGISTER[dtype]), [f"%a{k}" for k in range(arity)]
    if dtype is dt.float32 and name in _SINGLE:
        value = _write_single(f, name, *[Value(f, dtype, register) for register in registers])
    else:
        value = _write_double(f, name, dtype, [widen(f, dtype, register) for register in registers])
    f.do(f"ret {vec} {value}")
    params = ", ".join(f"{vec} {register}" for register in registers)
    return f.text(f"internal {vec} @{helper}({params}) {'#1' if is_shared else '#0'}")


def _write_double(f: Function, name: str, dtype: DType, operands: list[Value]) -> str:
    """Write a function of float64 registers; return the result in the dtype."""
    arithmetic = Arithmetic(dtype is dt.float64)
    if name in _PERIODIC and f.lanes == 1:
        near = partial(_trigonometry.NEAR_ZERO[name], arithmetic)
        _return_early(f, name, dtype, operands[0], _trigonometry, near)
    result = FORMULAS[name](arithmetic, *operands)
    if name in _PERIODIC:
        huge = magnitude(operands[0]) >= _trigonometry.LARGEST
        _return_where(f, huge, dtype, lambda: where(huge, _call_libm(f, name, operands[0]), result))
    if name in RARE:
        is_rare, anywhere = (partial(formula, arithmetic) for formula in RARE[name])
        key = f"{name}_anywhere_{f.lanes}{'' if arithmetic.exact else '_short'}"
        _return_where(f, is_rare(*operands), dtype, lambda: _call_seldom(f, key, anywhere, operands))
    return narrow(f, dtype, result)


def _return_early(f: Function, name: str, dtype: DType, x: Value, formulas: Any, near: Formula) -> None:
    """Return a periodic function of a small number: the next step of a loop does not wait for a reduction then.

    Args:
        f: the function.
        name: of the periodic function.
        dtype: of its result.
        x: the argument.
        formulas: the module that has the limits of small and of tiny arguments.
        near: the formula for small arguments.
    """
    size = magnitude(x)
    if name != "cos":
        _return_where(f, size < formulas.TINY, dtype, lambda: x)
    _return_where(f, size < formulas.SMALL, dtype, lambda: near(x))


def _write_single(f: Function, name: str, x: Value) -> str:
    """Write a function of float32 registers; large arguments of periodic functions are computed in float64."""
    if name in _PERIODIC and f.lanes == 1:
        _return_early(f, name, x.dtype, x, _single_circular, _single_circular.NEAR_ZERO[name])
    result = _SINGLE[name](x)

    def compute_widely(x: Value) -> Value:
        return Value(x.f, x.dtype, _write_double(x.f, name, x.dtype, [widen(x.f, x.dtype, x.register)]))

    if name in _SINGLE_RARE:
        is_rare, anywhere = _SINGLE_RARE[name]
        key = f"{name}_anywhere_{f.lanes}_float"
        _return_where(f, is_rare(x), x.dtype, lambda: _call_seldom(f, key, anywhere, [x]))
    if name in _PERIODIC:
        large, key = single_circular.is_large(x), f"{name}_large_{f.lanes}"
        _return_where(
            f, large, x.dtype, lambda: where(large, _call_seldom(f, key, compute_widely, [x]), result)
        )
    return result.register


def _return_where(f: Function, mask: Value, dtype: DType, evaluate: Callable[[], Value]) -> None:
    """Return other results if a mask is set in any lane; they are written inside of the branch."""
    with f.when(any_lane(mask)):
        value = evaluate()
        register = value.register if value.dtype is dtype else narrow(f, dtype, value)
        f.do(f"ret {f.vec(REGISTER[dtype])} {register}")
        f.label(f.fresh("never"))


def widen(f: Function, dtype: DType, register: str) -> Value:
    """Return a vector of float32 or float64 as float64."""
    if dtype is dt.float64:
        return Value(f, dtype, register)
    return Value(f, dt.float64, f.op(f"fpext {f.vec('float')} {register} to {f.vec('double')}"))


def narrow(f: Function, dtype: DType, x: Value) -> str:
    """Return a vector of float64 as one of a dtype."""
    if dtype is dt.float64:
        return x.register
    return f.op(f"fptrunc {x.vec} {x.register} to {f.vec('float')}")


def _call_libm(f: Function, name: str, x: Value) -> Value:
    return Value(f, dt.float64, libm.call_lanes(f, name, dt.float64, x.register))


def _call_seldom(f: Function, name: str, formula: Formula, operands: list[Value]) -> Value:
    """Call a function that evaluates a formula; it is not inlined, as it is called for few vectors."""
    vec, dtype = operands[0].vec, operands[0].dtype
    if name not in f.module.parts:
        inner, names = Function(f.module, f.lanes), [f"%a{k}" for k in range(len(operands))]
        value = formula(*[Value(inner, dtype, register) for register in names])
        inner.do(f"ret {vec} {value.register}")
        parameters = ", ".join(f"{vec} {register}" for register in names)
        f.module.helper(name, inner.text(f"internal {vec} @{name}({parameters}) #1"))
    arguments = ", ".join(f"{vec} {x.register}" for x in operands)
    return Value(f, dtype, f.op(f"call {vec} @{name}({arguments})"))


def any_lane(mask: Value) -> str:
    """Return the bit that says whether a mask is set in any lane."""
    f, i1 = mask.f, mask.f.vec("i1")
    reduce = f"llvm.vector.reduce.or.v{f.lanes}i1"
    f.module.declare(reduce, "i1", i1)
    return f.op(f"call i1 @{reduce}({i1} {mask.register})")


TABLE: dict[str, Callable[..., str]] = {name: partial(emit, name) for name in FORMULAS}
"""How each function is emitted."""
