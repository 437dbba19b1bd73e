"""Fold loops for one operator and dtype: the variants of the reduction and scan entries."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .....errors import TandemError
from .....operators.scalar_ir.expr import apply, arg
from .....registry import dtypes as dt
from .....registry.dtypes import DType, as_dtype
from .....registry.operator import Operator
from .....registry.values import TensorSpec
from ...codegen.eager_folds import write_complex_sum, write_fold_loop
from ...codegen.folds import is_ordered
from ...codegen.host import host
from ...codegen.text import Module
from ...kernels.elementwise import find_function
from ..compiler import engine, lang
from ..compiler.objects import build_once
from ..entries import rt_folds, rt_programs, rt_reduce, rt_scans
from ..entries.rt_elementwise import V_PROGRAM
from . import structs
from .operands import operand_code
from .structs import CODES, Struct
from .ufuncs import find_inner_loop

FOLDS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "any": 4, "all": 5, "argmax": 2, "argmin": 3}
_INDEX = ("argmax", "argmin")
_TYPE_NAMES = {
    dt.bool_: "u8",
    dt.float16: "f16",
    dt.float32: "f32",
    dt.float64: "f64",
    dt.bfloat16: "u16",  # its bits
}
_PARTS = {dt.complex64: "f32", dt.complex128: "f64"}
_REAL_PARTS = {dt.complex64: dt.float32, dt.complex128: dt.float64}
_UFUNCS = {"sum": ("add", 0), "prod": ("mul", 1)}  # for complex dtypes: the node and its neutral element


def machine_type(dtype: DType) -> str | None:
    """Return the native language's name of a dtype, or None if there is none."""
    return _TYPE_NAMES.get(dtype) or (f"{dtype.kind}{dtype.bits}" if dtype.is_integer else None)


def accumulator_dtype(fold: str, source: DType, out: DType) -> DType:
    """Return the dtype that a fold computes in."""
    wide = out if fold in ("sum", "prod", "any", "all") else source
    return dt.float32 if wide in (dt.float16, dt.bfloat16) else wide


def loop_ir(function: Any, fold: str, source: DType, out: DType) -> str:
    """Return LLVM IR of a loop over the elements of one array, exported as `loop`."""
    inner = accumulator_dtype(fold, source, out)
    types = {
        "I": _PARTS.get(source) or machine_type(source),
        "A": machine_type(inner),
        "O": machine_type(out),
    }
    constants: dict[str, Any] = {
        "FOLD": FOLDS[fold],
        "FLOATING": int(inner.is_floating),
        "ISIZE": source.itemsize,
        "OSIZE": out.itemsize,
        "O_IS_A": int(inner is out),
        "I_BITS": int(source is dt.bfloat16),
        "O_BITS": int(out is dt.bfloat16),
        "I_PAIR": int(source in _PARTS),
    }
    return lang.emit({"loop": function}, constants, {k: v for k, v in types.items() if v})


def fold_ir(fold: str, source: DType, out: DType) -> str:
    """Return LLVM IR of a fold loop, exported as `loop`."""
    return loop_ir(rt_folds.index_loop if fold in _INDEX else rt_folds.fold_loop, fold, source, out)


def find_fold(op: Operator, source: DType) -> tuple[str, DType] | None:
    """Return the fold and the result's dtype of a reduction over a dtype; None if there is no native fold."""
    try:
        out = op.decl.shape_rule(TensorSpec((), source)).dtype
    except TandemError:
        return None
    if source in _PARTS:
        return (op.decl.reduce, out) if op.decl.reduce in ("sum", "prod", "any", "all") else None
    known = machine_type(source) is not None and machine_type(out) is not None
    return (op.decl.reduce, out) if known and (source is not dt.float16 or host().f16c) else None


@engine.KeepFirst
def compile_ordered_fold(fold: str, source: DType, out: DType) -> engine.Code | None:
    """Return the loop of a sum or product of floats, exported as `loop`; None if the dtypes have no fixed order."""

    def text() -> str:
        module = Module()
        if source.kind == "c":
            write_complex_sum(module, "loop", _REAL_PARTS[source])
        else:
            write_fold_loop(module, "loop", fold, source, out)
        return str(module)

    return build_once(f"{fold} of {source.name} as {out.name}", text, ["loop"])


def fold_array(fold: str, array: Any, axes: tuple[int, ...], out: Any) -> bool:
    """Fold an array of floats with the loop that hot calls run.

    Args:
        fold: "sum" or "prod".
        array: the array.
        axes: the folded axes.
        out: a C-contiguous array of the kept shape.

    Returns:
        Whether there is a loop for the dtypes; if not, `out` is untouched.
    """
    source, result = as_dtype(array.dtype), as_dtype(out.dtype)
    if ordered_fold(fold, source, result) is None:
        return False
    code = compile_ordered_fold(fold, source, result)
    if code is None:
        return False
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    long = [axis for axis in range(array.ndim) if array.shape[axis] != 1]
    by_columns = bool(long) and long[-1] in kept
    if not out.size:
        return True
    rows = array.transpose(*axes, *kept) if by_columns else array.transpose(*kept, *axes)
    rows = (
        rows.reshape((-1, out.size) if by_columns else (out.size, -1))
        if array.size
        else rows.reshape((0, out.size) if by_columns else (out.size, 0))
    )
    if by_columns:
        rows = rows.T
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code["loop"])
    sizes = (ctypes.c_int64 * 4)(*rows.shape, int(by_columns), 1)
    strides = (ctypes.c_int64 * 4)(rows.strides[0], out.itemsize, rows.strides[1], 0)
    function(rows.ctypes.data, out.ctypes.data, ctypes.addressof(sizes), ctypes.addressof(strides))
    return True


def ordered_fold(fold: str, source: DType, out: DType) -> str | None:
    """Return the fold if its order is fixed for these dtypes, else None."""
    if source in _PARTS:
        return fold if fold == "sum" and out is source else None
    emitted = all(dtype is not dt.float16 or host().f16c for dtype in (source, out))
    ordered = source.is_floating and is_ordered(fold, accumulator_dtype(fold, source, out))
    return fold if emitted and ordered else None


def make_reduction_variant(op: Operator, key: int) -> Struct:
    """Return the variant of a key; without a native fold for its dtype, one that falls back to Python."""
    source = CODES[key]
    known = find_fold(op, source)
    if known is None:
        return structs.make_variant(key, 0, None, ())
    fold, out = known
    if out in _PARTS and ordered_fold(fold, source, out) is None:
        result = make_ufunc_variant(key, rt_programs.fold_by_ufunc, fold, out)
        result.set(rt_reduce.V_EMPTY, 1)
        return result
    inner = accumulator_dtype(fold, source, out)
    is_fixed = ordered_fold(fold, source, out) is not None
    if is_fixed:
        ordered = compile_ordered_fold(fold, source, out)
        if ordered is None:
            return structs.make_variant(key, 0, None, ())
        code = ordered
    else:
        code = engine.compile_ir(fold_ir(fold, source, out), ["loop"])
    result = structs.make_variant(key, code["loop"], out, (), code)
    result.set(rt_reduce.V_EMPTY, int(fold in ("sum", "prod", "any", "all")))
    result.set(rt_reduce.V_SINGLE, int(fold in _INDEX or inner is not out))
    result.set(rt_reduce.V_ORDERED, int(is_fixed))
    result.set(rt_reduce.V_INDEX, int(fold in _INDEX))
    return result


def make_ufunc_variant(key: int, function: Any, fold: str, dtype: DType) -> Struct:
    """Return the variant of a fold or scan of complex numbers, using the inner loop of NumPy's ufunc."""
    node, neutral = _UFUNCS[fold]
    ufunc: Any = find_function(apply(node, arg(0, dtype), arg(1, dtype)))
    loop = find_inner_loop(ufunc, [dtype] * 3)
    if loop is None:
        return structs.make_variant(key, 0, None, ())
    constants = {"BYTES": dtype.itemsize // 2}
    code = engine.compile_ir(lang.emit({"loop": function}, constants, {"T": _PARTS[dtype]}), ["loop"])
    step = Struct(rt_programs.STEP_BYTES)
    step.set(rt_programs.S_LOOP, loop[0])
    step.set(rt_programs.S_DATA, loop[1])
    memory = np.array(neutral, dtype.np)
    ctypes.memmove(step.address + rt_programs.S_VALUE, memory.ctypes.data, dtype.itemsize)
    result = structs.make_variant(key, code["loop"], dtype, (), code)
    result.point(V_PROGRAM, step)
    return result


def find_reduction_key(*args: Any, **kwargs: Any) -> int | None:
    """Return the key of a reduction's call: the dtype of its tensor."""
    code = operand_code(args[0]) if args else None
    return code if code is not None and code < len(CODES) else None


def make_scan_variant(op: Operator, key: int) -> Struct:
    """Return the variant of a key; without a native scan for its dtype, one that falls back to Python."""
    source = CODES[key]
    known = find_fold(op, source)
    if known is None:
        return structs.make_variant(key, 0, None, ())
    fold, out = known
    if out in _PARTS:
        return make_ufunc_variant(key, rt_programs.scan_by_ufunc, fold, out)
    code = engine.compile_ir(loop_ir(rt_scans.scan_loop, fold, source, out), ["loop"])
    return structs.make_variant(key, code["loop"], out, (), code)
