"""Fold loops for one operator and dtype: the variants of the reduction entry."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ....errors import TandemError
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from ....registry.operator import Operator
from ....registry.values import TensorSpec
from ..emit.host import host
from . import engine, lang, records, rt_folds, rt_programs, rt_reduce, rt_scans
from .operands import code_of
from .records import CODES, Record
from .rt_elementwise import V_PROGRAM
from .ufuncs import inner_loop

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
_UFUNCS = {
    "sum": (np.add, 0),
    "prod": (np.multiply, 1),
}  # for complex dtypes: the ufunc and its neutral element


def machine_type(dtype: DType) -> str | None:
    """The native language's name of a dtype, or None if it has none."""
    return _TYPE_NAMES.get(dtype) or (f"{dtype.kind}{dtype.bits}" if dtype.is_integer else None)


def accumulator(fold: str, source: DType, out: DType) -> DType:
    """The dtype that a fold computes in."""
    wide = out if fold in ("sum", "prod", "any", "all") else source
    return dt.float32 if wide in (dt.float16, dt.bfloat16) else wide


def loop_ir(function: Any, fold: str, source: DType, out: DType) -> str:
    """LLVM IR of a loop over the elements of one array, exported as `loop`."""
    inner = accumulator(fold, source, out)
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
    """LLVM IR of a fold loop, exported as `loop`."""
    return loop_ir(rt_folds.index_loop if fold in _INDEX else rt_folds.fold_loop, fold, source, out)


def fold_of(op: Operator, source: DType) -> tuple[str, DType] | None:
    """The fold and the result's dtype of a reduction over a dtype; None where there is no native one."""
    try:
        out = op.decl.meta(TensorSpec((), source)).dtype
    except TandemError:
        return None
    if source in _PARTS:
        return (op.decl.reduce, out) if op.decl.reduce in ("sum", "prod", "any", "all") else None
    known = machine_type(source) is not None and machine_type(out) is not None
    return (op.decl.reduce, out) if known and (source is not dt.float16 or host().f16c) else None


def reduction_variant(op: Operator, key: int) -> Record:
    """The variant of a key; one that leaves the dtype to Python if there is no native fold for it."""
    source = CODES[key]
    known = fold_of(op, source)
    if known is None:
        return records.variant_record(key, 0, None, ())
    fold, out = known
    if out in _PARTS:
        found = ufunc_variant(key, rt_programs.fold_by_ufunc, fold, out)
        found.set(rt_reduce.V_EMPTY, 1)
        return found
    code = engine.compile_ir(fold_ir(fold, source, out), ["loop"])
    found = records.variant_record(key, code["loop"], out, (), code)
    found.set(rt_reduce.V_EMPTY, int(fold in ("sum", "prod", "any", "all")))
    found.set(rt_reduce.V_SINGLE, int(fold in _INDEX or accumulator(fold, source, out) is not out))
    found.set(rt_reduce.V_INDEX, int(fold in _INDEX))
    return found


def ufunc_variant(key: int, function: Any, fold: str, dtype: DType) -> Record:
    """The variant of a fold or scan of complex numbers, by the inner loop of NumPy's ufunc."""
    ufunc, neutral = _UFUNCS[fold]
    loop = inner_loop(ufunc, [dtype] * 3)
    if loop is None:
        return records.variant_record(key, 0, None, ())
    constants = {"BYTES": dtype.itemsize // 2}
    code = engine.compile_ir(lang.emit({"loop": function}, constants, {"T": _PARTS[dtype]}), ["loop"])
    step = Record(rt_programs.STEP_BYTES)
    step.set(rt_programs.S_LOOP, loop[0])
    step.set(rt_programs.S_DATA, loop[1])
    memory = np.array(neutral, dtype.np)
    ctypes.memmove(step.address + rt_programs.S_VALUE, memory.ctypes.data, dtype.itemsize)
    found = records.variant_record(key, code["loop"], dtype, (), code)
    found.point(V_PROGRAM, step)
    return found


def reduction_key(*args: Any, **kwargs: Any) -> int | None:
    """The key of a reduction's call: the dtype of its tensor."""
    code = code_of(args[0]) if args else None
    return code if code is not None and code < len(CODES) else None


def scan_variant(op: Operator, key: int) -> Record:
    """The variant of a key; one that leaves the dtype to Python if there is no native scan for it."""
    source = CODES[key]
    known = fold_of(op, source)
    if known is None:
        return records.variant_record(key, 0, None, ())
    fold, out = known
    if out in _PARTS:
        return ufunc_variant(key, rt_programs.scan_by_ufunc, fold, out)
    code = engine.compile_ir(loop_ir(rt_scans.scan_loop, fold, source, out), ["loop"])
    return records.variant_record(key, code["loop"], out, (), code)
