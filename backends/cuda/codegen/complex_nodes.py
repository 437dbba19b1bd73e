"""CUDA C of the scalar IR's nodes on complex numbers: the text of each node, and the helpers that it needs."""

from __future__ import annotations

from collections.abc import Callable

from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .types import CTYPE, bare

Written = tuple[str, tuple[str, ...]]
Emit = Callable[..., Written]  # (dtype of the operands, *operands) -> the text, the helpers
WHOLE = {dt.float32: dt.complex64, dt.float64: dt.complex128}


def _infix(sign: str, helper: str = "complex") -> Emit:
    return lambda dtype, a, b: (f"({a} {sign} {b})", (helper,))


def _called(name: str, helper: str, typed: bool = True) -> Emit:
    """A call of a helper function; ``typed`` helpers have a variant for each dtype."""

    def emit(dtype: DType, *args: str) -> Written:
        return f"{name}({', '.join(map(bare, args))})", (f"{helper}_{dtype.name}" if typed else helper,)

    return emit


def _part(name: str) -> Emit:
    return lambda dtype, x: (f"{x}.{name}", ("complex",))


def _of_parts(dtype: DType, re: str, im: str) -> Written:
    return f"{CTYPE[WHOLE[dtype]]}{{{bare(re)}, {bare(im)}}}", ("complex",)


EMIT: dict[str, Emit] = {
    **{name: _called(f"complex_{name}", "complex_parts") for name in ("abs", "rint")},
    **{name: _called(f"complex_{name}", "complex_exp") for name in ("exp", "expm1")},
    **{name: _called(f"complex_{name}", "complex_log") for name in ("log", "log2", "log10", "log1p")},
    **{
        name: _called(f"complex_{name}", "complex_hyperbolic")
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    **{
        name: _called(f"complex_{name}", "complex_inverse", typed=False)
        for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
    },
    **{
        name: _called(f"is_{what}", "complex_classes", typed=False)
        for name, what in (("isnan", "nan"), ("isinf", "infinite"), ("isfinite", "finite"))
    },
    "sqrt": _called("complex_sqrt", "complex_sqrt"),
    **{name: _called("complex_pow", "complex_power", typed=False) for name in ("pow", "uniform_pow")},
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "truediv": _infix("/", "complex_quotient"),
    "eq": _infix("=="),
    "ne": _infix("!="),
    "neg": lambda dtype, x: (f"(-{x})", ("complex",)),
    "conj": _called("conjugate", "complex", typed=False),
    "real": _part("re"),
    "imag": _part("im"),
    "complex": _of_parts,
}
"""Node -> function that writes it."""


def write_complex_cast(x: str, source: DType, target: DType) -> tuple[str, DType]:
    """A conversion from or to complex numbers, and the dtype of its result; the rest is a cast of real numbers."""
    if target.kind == "c":
        return f"to_{target.name}({bare(x)})", target
    if target is dt.bool_:
        return f"is_true({bare(x)})", target
    return f"{x}.re", dt.float32 if source is dt.complex64 else dt.float64
