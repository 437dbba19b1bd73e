"""Fold loops for one operator and dtype: the variants of the reduction entry."""

from __future__ import annotations

from typing import Any

from ....errors import TandemError
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from ....registry.operator import Operator
from ....registry.values import TensorSpec
from ..emit.host import host
from . import engine, lang, records, rt_folds, rt_reduce
from .operands import code_of
from .records import CODES, Record

FOLDS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "any": 4, "all": 5, "argmax": 2, "argmin": 3}
_INDEX = ("argmax", "argmin")
_TYPE_NAMES = {dt.bool_: "u8", dt.float16: "f16", dt.float32: "f32", dt.float64: "f64"}


def machine_type(dtype: DType) -> str | None:
    """The native language's name of a dtype, or None if it has none."""
    return _TYPE_NAMES.get(dtype) or (f"{dtype.kind}{dtype.bits}" if dtype.is_integer else None)


def accumulator(fold: str, source: DType, out: DType) -> DType:
    """The dtype that a fold computes in."""
    wide = out if fold in ("sum", "prod", "any", "all") else source
    return dt.float32 if wide is dt.float16 else wide


def fold_ir(fold: str, source: DType, out: DType) -> str:
    """LLVM IR of a fold loop, exported as `loop`."""
    inner = accumulator(fold, source, out)
    types = {"I": machine_type(source), "A": machine_type(inner), "O": machine_type(out)}
    constants: dict[str, Any] = {
        "FOLD": FOLDS[fold],
        "FLOATING": int(inner.is_floating),
        "ISIZE": source.itemsize,
        "OSIZE": out.itemsize,
        "O_IS_A": int(inner is out),
    }
    function = rt_folds.index_loop if fold in _INDEX else rt_folds.fold_loop
    return lang.emit({"loop": function}, constants, {k: v for k, v in types.items() if v})


def fold_of(op: Operator, source: DType) -> tuple[str, DType] | None:
    """The fold and the result's dtype of a reduction over a dtype; None where there is no native one."""
    try:
        out = op.decl.meta(TensorSpec((), source)).dtype
    except TandemError:
        return None
    known = machine_type(source) is not None and machine_type(out) is not None
    return (op.decl.reduce, out) if known and (source is not dt.float16 or host().f16c) else None


def reduction_variant(op: Operator, key: int) -> Record:
    """The variant of a key; one that leaves the dtype to Python if there is no native fold for it."""
    source = CODES[key]
    known = fold_of(op, source)
    if known is None:
        return records.variant_record(key, 0, None, ())
    fold, out = known
    code = engine.compile_ir(fold_ir(fold, source, out), ["loop"])
    found = records.variant_record(key, code["loop"], out, (), code)
    found.set(rt_reduce.V_EMPTY, int(fold in ("sum", "prod", "any", "all")))
    found.set(rt_reduce.V_SINGLE, int(fold in _INDEX or accumulator(fold, source, out) is not out))
    found.set(rt_reduce.V_INDEX, int(fold in _INDEX))
    return found


def reduction_key(*args: Any, **kwargs: Any) -> int | None:
    """The key of a reduction's call: the dtype of its tensor."""
    code = code_of(args[0]) if args else None
    return code if code is not None and code < len(CODES) else None
