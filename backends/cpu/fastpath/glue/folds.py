"""Fold loops for one operator and dtype: the variants of the reduction and scan entries."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from .....errors import TandemError
from .....operators.scalar_ir.fold import Fold
from .....registry import dtypes as dt
from .....registry.dtypes import DType, as_dtype
from .....registry.operator import Operator
from .....registry.values import TensorSpec
from ...codegen.eager_folds import write_complex_sum, write_fold_loop
from ...codegen.eager_scans import write_scan_loop
from ...codegen.reducers import RowFold
from ...codegen.text import Module
from ...kernels.elementwise import find_function
from ...target import vector_target
from ..compiler import engine, lang
from ..compiler.objects import build_once
from ..entries import rt_reduce
from ..runtime import rt_folds, rt_programs
from ..runtime.rt_base import Variant
from . import structs
from .operands import operand_code
from .structs import CODES, StructMemory
from .ufuncs import find_inner_loop

_PREWRITTEN = {
    "add": rt_folds.SUM,
    "mul": rt_folds.PROD,
    "maximum": rt_folds.MAX,
    "minimum": rt_folds.MIN,
    "or": rt_folds.ANY,
    "and": rt_folds.ALL,
}
_TYPE_NAMES = {
    dt.bool_: "u8",
    dt.float16: "f16",
    dt.float32: "f32",
    dt.float64: "f64",
    dt.bfloat16: "u16",  # its bits
}
_PARTS = {dt.complex64: "f32", dt.complex128: "f64"}
_REAL_PARTS = {dt.complex64: dt.float32, dt.complex128: dt.float64}


def machine_type(dtype: DType) -> str | None:
    """Return the native language's name of a dtype, or None if there is none."""
    return _TYPE_NAMES.get(dtype) or (f"{dtype.kind}{dtype.bits}" if dtype.is_integer else None)


@functools.cache
def find_prewritten(fold: Fold, source: DType, out: DType) -> int | None:
    """Return the code of a fold whose loop is written in `rt_folds`: one in which the order does not matter.

    Its elements are combined as they are by one node; bools by ``or`` and ``and``, other dtypes by the other nodes.
    """
    dtype = fold.compute_dtype(source, out)
    code = _PREWRITTEN.get(fold.node(dtype))
    if code is None or not fold.is_plain or fold.rounds(dtype):
        return None
    if code in (rt_folds.ANY, rt_folds.ALL):
        return code if dtype is dt.bool_ else None
    return code if fold.needs_elements == (code in (rt_folds.MAX, rt_folds.MIN)) else None


def fold_ir(fold: Fold, source: DType, out: DType) -> str:
    """Return LLVM IR of the loop in `rt_folds` of a prewritten fold, exported as `loop`."""
    function = rt_folds.index_loop if fold.returns_index else rt_folds.fold_loop
    inner = fold.compute_dtype(source, out)
    types = {
        "I": _PARTS.get(source) or machine_type(source),
        "A": machine_type(inner),
        "O": machine_type(out),
    }
    constants: dict[str, Any] = {
        "FOLD": find_prewritten(fold, source, out),
        "FLOATING": int(inner.is_floating),
        "ISIZE": source.itemsize,
        "OSIZE": out.itemsize,
        "O_IS_A": int(inner is out),
        "I_BITS": int(source is dt.bfloat16),
        "O_BITS": int(out is dt.bfloat16),
        "I_PAIR": int(source in _PARTS),
    }
    return lang.emit({"loop": function}, constants, {k: v for k, v in types.items() if v})


def find_fold(op: Operator, source: DType) -> tuple[Fold, DType] | None:
    """Return the fold and the result's dtype of a reduction or scan; None without a native loop."""
    try:
        out = op.decl.shape_rule(TensorSpec((), source)).dtype
    except TandemError:
        return None
    fold: Fold = op.decl.fold
    if source in _PARTS or out in _PARTS:
        served = _is_complex_served(fold, source, out)
    else:
        served = machine_type(source) is not None and machine_type(out) is not None
        served = served and (source is not dt.float16 or vector_target().f16c)
    if fold.returns_index:
        served = served and find_prewritten(fold, source, out) is not None
    return (fold, out) if served else None


def _is_complex_served(fold: Fold, source: DType, out: DType) -> bool:
    """Return whether complex numbers are tested for truth, or combined by the inner loop of a ufunc."""
    return fold.is_plain and (
        fold.compute_dtype(source, out) is dt.bool_ or (source is out and fold.node(out) != "")
    )


@engine.KeepFirst
def compile_emitted_fold(fold: Fold, source: DType, out: DType) -> engine.Code | None:
    """Return the loop of a fold in the order of `codegen.folds`, exported as `loop`."""

    def text() -> str:
        module = Module()
        if source.kind == "c":
            write_complex_sum(module, "loop", fold, _REAL_PARTS[source])
        else:
            write_fold_loop(module, "loop", fold, source, out)
        return str(module)

    return build_once(fold.describe(source, out), text, ["loop"])


@engine.KeepFirst
def compile_scan(fold: Fold, source: DType, out: DType) -> engine.Code:
    """Return the loop of a scan, exported as `loop`."""
    module = Module()
    write_scan_loop(module, "loop", RowFold(fold, source, out))
    return engine.compile_ir(str(module), ["loop"])


def fold_array(fold: Fold, array: Any, axes: tuple[int, ...], out: Any) -> bool:
    """Fold an array with the loop that hot calls run.

    Args:
        fold: the fold.
        array: the array.
        axes: the folded axes.
        out: a C-contiguous array of the kept shape.

    Returns:
        Whether there is a loop for the dtypes; if not, `out` is untouched.
    """
    source, result = as_dtype(array.dtype), as_dtype(out.dtype)
    if not is_emitted(fold, source, result):
        return False
    code = compile_emitted_fold(fold, source, result)
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


def is_emitted(fold: Fold, source: DType, out: DType) -> bool:
    """Return whether the loop of a fold follows `codegen.folds`; only prewritten folds and an index do not."""
    if fold.returns_index:
        return False
    if source in _PARTS or out in _PARTS:
        return source is out and fold.is_plain and fold.node(out) == "add"
    emitted = all(dtype is not dt.float16 or vector_target().f16c for dtype in (source, out))
    return emitted and find_prewritten(fold, source, out) is None


def make_reduction_variant(op: Operator, key: int) -> StructMemory:
    """Return the variant of a key; without a native fold for its dtype, one that falls back to Python."""
    source = CODES[key]
    known = find_fold(op, source)
    if known is None:
        return structs.make_variant(key, 0, None, ())
    fold, out = known
    emitted = is_emitted(fold, source, out)
    if out in _PARTS and not emitted:
        result = make_ufunc_variant(key, rt_programs.fold_by_ufunc, fold, out)
        result.set(rt_reduce.FoldVariant.empty, 1)
        return result
    inner = fold.compute_dtype(source, out)
    code = (
        compile_emitted_fold(fold, source, out)
        if emitted
        else engine.compile_ir(fold_ir(fold, source, out), ["loop"])
    )
    if code is None:
        return structs.make_variant(key, 0, None, ())
    result = structs.make_variant(key, code["loop"], out, (), code)
    result.set(rt_reduce.FoldVariant.empty, int(not fold.needs_elements))
    result.set(rt_reduce.FoldVariant.single, int(fold.returns_index or inner is not out))
    result.set(rt_reduce.FoldVariant.ordered, int(emitted))
    result.set(rt_reduce.FoldVariant.index, int(fold.returns_index))
    return result


def make_ufunc_variant(key: int, function: Any, fold: Fold, dtype: DType) -> StructMemory:
    """Return the variant of a fold or scan of complex numbers, using the inner loop of NumPy's ufunc."""
    ufunc: Any = find_function(fold.combined(dtype))
    loop = find_inner_loop(ufunc, [dtype] * 3)
    if loop is None:
        return structs.make_variant(key, 0, None, ())
    constants = {"BYTES": dtype.itemsize // 2}
    code = engine.compile_ir(lang.emit({"loop": function}, constants, {"T": _PARTS[dtype]}), ["loop"])
    step = StructMemory(rt_programs.STEP_BYTES)
    step.set(rt_programs.LoopStep.loop, loop[0])
    step.set(rt_programs.LoopStep.data, loop[1])
    memory = np.array(fold.identity(dtype), dtype.np)
    ctypes.memmove(step.address + rt_programs.LoopStep.value, memory.ctypes.data, dtype.itemsize)
    result = structs.make_variant(key, code["loop"], dtype, (), code)
    result.point(Variant.program, step)
    return result


def find_reduction_key(*args: Any, **kwargs: Any) -> int | None:
    """Return the key of a reduction's call: the dtype of its tensor."""
    code = operand_code(args[0]) if args else None
    return code if code is not None and code < len(CODES) else None


def make_scan_variant(op: Operator, key: int) -> StructMemory:
    """Return the variant of a key; without a native scan for its dtype, one that falls back to Python."""
    source = CODES[key]
    known = find_fold(op, source)
    if known is None:
        return structs.make_variant(key, 0, None, ())
    fold, out = known
    if out in _PARTS:
        return make_ufunc_variant(key, rt_programs.scan_by_ufunc, fold, out)
    code = compile_scan(fold, source, out)
    return structs.make_variant(key, code["loop"], out, (), code)
