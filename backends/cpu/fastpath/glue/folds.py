"""Fold loops for one operator and dtype: the variants of the reduction and scan entries."""

from __future__ import annotations

import ctypes
from typing import Any

from .....errors import TandemError
from .....operators.scalar_ir.fold import Fold
from .....registry import dtypes as dt
from .....registry.dtype_functions import can_cast
from .....registry.dtypes import DType, as_dtype
from .....registry.operator import Operator
from .....registry.values import TensorSpec
from ...codegen.complex_nodes import calls_ufunc
from ...codegen.folds.eager import write_fold_loop
from ...codegen.folds.order import is_ordered
from ...codegen.folds.reducers import RowFold
from ...codegen.folds.scans import write_scan_loop
from ...codegen.text import Module
from ...target import vector_target
from ..compiler import engine
from ..entries.rt_reduce import FoldVariant
from ..runtime.rt_base import CODE_BITS
from .structs import CODES, StructMemory, make_variant


def find_fold(op: Operator, source: DType, to: DType | None = None) -> tuple[Fold, DType] | None:
    """Return the fold and the dtype of the result of a reduction or scan, `to` if given; None without native loop."""
    if to is not None:
        is_served = "dtype" in op.binder.names and {source.kind, to.kind} <= set("iuf")
        is_served = is_served and can_cast(source, to, "same_kind") and not {source, to} & {*dt.HALVES}
        return (op.decl.fold, to) if is_served and serves(op.decl.fold, source, to) else None
    try:
        out = op.decl.shape_rule(TensorSpec((), source)).dtype
    except TandemError:
        return None
    return (op.decl.fold, out) if serves(op.decl.fold, source, out) else None


def serves(fold: Fold, source: DType, out: DType) -> bool:
    """Return whether there is a loop; of complex numbers for tests of truth, and nodes that are written out."""
    if "c" not in (source.kind, out.kind):
        return source is not dt.float16 or vector_target().f16c
    if not fold.is_plain or fold.accumulation_dtype(source, out) is dt.bool_:
        return fold.is_plain
    return source is out and fold.node(out) != "" and not calls_ufunc(fold.combined(out))


@engine.KeepFirst
def compile_fold(fold: Fold, source: DType, out: DType) -> engine.Code | None:
    """Return the loop of a fold, exported as `loop`; None if it cannot be built."""

    def text() -> str:
        module = Module()
        write_fold_loop(module, "loop", fold, source, out)
        return str(module)

    # LLVM's level 3 unrolls loops over vectors, which takes long and makes only copies of short lines faster
    passes = engine.Passes.VECTORS if keeps_order(fold, source, out) else engine.Passes.FUNCTIONS
    return engine.build_once(fold.describe(source, out), text, ["loop"], passes=passes)


@engine.KeepFirst
def compile_scan(fold: Fold, source: DType, out: DType) -> engine.Code:
    """Return the loop of a scan, exported as `loop`."""
    module = Module()
    write_scan_loop(module, "loop", RowFold(fold, source, out))
    return engine.compile_ir(str(module), ["loop"])


def fold_array(fold: Fold, array: Any, axes: tuple[int, ...], out: Any) -> bool:
    """Fold an array with the emitted loop, which hot calls run.

    Args:
        fold: the fold.
        array: the array.
        axes: the folded axes.
        out: a C-contiguous array of the kept shape.

    Returns:
        Whether the loop could be built; if not, `out` is untouched.
    """
    source, result = as_dtype(array.dtype), as_dtype(out.dtype)
    code = compile_fold(fold, source, result)
    if code is None:
        return False
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    long = [axis for axis in range(array.ndim) if array.shape[axis] != 1]
    by_columns = bool(long) and long[-1] in kept
    if not out.size:
        return True
    count = array.size // out.size
    if by_columns:
        rows = array.transpose(*axes, *kept).reshape(count, out.size).T
    else:
        rows = array.transpose(*kept, *axes).reshape(out.size, count)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code["loop"])
    sizes = (ctypes.c_int64 * 4)(*rows.shape, int(by_columns), 1)
    strides = (ctypes.c_int64 * 4)(rows.strides[0], out.itemsize, rows.strides[1], 0)
    function(rows.ctypes.data, out.ctypes.data, ctypes.addressof(sizes), ctypes.addressof(strides))
    return True


def keeps_order(fold: Fold, source: DType, out: DType) -> bool:
    """Return whether the loop of a fold keeps the order that `codegen.folds.order` defines."""
    return out.kind == "c" or is_ordered(fold, fold.accumulation_dtype(source, out))


def has_own_order(fold: Fold, source: DType, out: DType) -> bool:
    """Return whether only the loop here has the bits of a fold; NumPy has those of folds in any order."""
    if "c" in (source.kind, out.kind):
        return source is out and fold.is_plain and fold.node(out) == "add"
    dtype = fold.accumulation_dtype(source, out)
    if fold.returns_index or (fold.is_plain and fold.node(dtype) and not fold.rounds(dtype)):
        return False
    return dt.float16 not in (source, out) or vector_target().f16c


def make_fold_variant(op: Operator, key: int) -> StructMemory:
    """Return the variant of a reduction or scan; without native code for its dtype, one that falls back to Python."""
    source, to = CODES[key & 31], key >> CODE_BITS
    known = find_fold(op, source, CODES[to - 1] if to else None)
    if known is None:
        return make_variant(key)
    fold, out = known
    if op.decl.kind == "scan":
        return make_variant(key, compile_scan(fold, source, out), out)
    return make_variant(
        key,
        compile_fold(fold, source, out),
        out,
        layout=FoldVariant,
        empty=int(not (fold.needs_elements or fold.returns_index)),
        ordered=int(keeps_order(fold, source, out)),
        index=int(fold.returns_index),
    )
