"""Ufuncs of emitted loops, for functions of the scalar IR whose last bits depend on the implementation.

NumPy's own functions differ from the emitted code in the last bits, and between elements if they have a vector loop and
a scalar one. Python kernels therefore call these: one object holds the loop of each such node for float32 and float64.
It is compiled once per machine and version, stored in the disk cache, and loaded at the first call that needs it.
Products of complex numbers have their own loop. Without native code NumPy's ufuncs are used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

from .....operators.scalar_ir import expr
from .....operators.scalar_ir.expr import NODES, Expr, arg
from .....registry.dtypes import COMPLEX, DType, float32, float64
from ... import cache
from ...codegen.elementwise import write_loop
from ...codegen.text import Module
from ..compiler import engine, lang, objects
from ..runtime import rt_programs
from . import layout

DTYPES = (float32, float64)
COMPLEX_LOOPS = {"mul": rt_programs.complex_product}
NAMES = tuple(name for name, row in NODES.items() if "f" not in row.exact)
_MAKE_UFUNC = 1  # PyUFunc_FromFuncAndData in the table of NumPy's C functions
_NO_IDENTITY, _ONE = -1, 1  # identity of a reduction with the ufunc
_kept: list[Any] = []  # objects that ufuncs point into; they live as long as the process


def find_ufunc(node: Expr) -> Callable[..., Any] | None:
    """Return the ufunc of an inexact node; None without emitted code for the node, or with native code off."""
    dtype = node.args[0].dtype
    if layout.check() or not (dtype in DTYPES or (dtype in COMPLEX and node.op in COMPLEX_LOOPS)):
        return None
    return _make_ufunc_of(node.op, dtype in COMPLEX)


@engine.KeepFirst
def _make_ufunc_of(name: str, is_complex: bool) -> Callable[..., Any] | None:
    """Return the ufunc of a node; None if its code cannot be built."""
    if is_complex:
        code, dtypes = _complex_code(name), COMPLEX
    else:
        code, dtypes = _compile_loops(NAMES if not cache.reason() else (name,)), DTYPES
    return (
        None if code is None else _make_ufunc(name, dtypes, [code[_symbol(name, dtype)] for dtype in dtypes])
    )


def _complex_code(name: str) -> dict[str, int] | None:
    result: dict[str, int] = {}
    for dtype in COMPLEX:
        half, symbol = dtype.itemsize // 2, _symbol(name, dtype)
        constants, types = {"BYTES": half}, {"T": f"f{8 * half}"}
        ir = partial(lang.emit, {symbol: COMPLEX_LOOPS[name]}, constants, types)
        code = objects.build_once(symbol, ir, [symbol])
        if code is None:
            return None
        _kept.append(code)
        result.update(code)
    return result


def _symbol(name: str, dtype: DType) -> str:
    return f"{name}_{dtype.name}"


@engine.KeepFirst
def _compile_loops(names: tuple[str, ...]) -> engine.Code | None:
    """Return the loops of some nodes; of all nodes if the disk cache is on."""
    symbols = [_symbol(name, dtype) for name in names for dtype in DTYPES]
    return objects.build_once(f"functions {' '.join(names)}", lambda: functions_ir(names), symbols)


def functions_ir(names: tuple[str, ...]) -> str:
    """Return LLVM IR of the loops of nodes, with the signature of a ufunc's loops."""
    module = Module()
    for name in names:
        for dtype in DTYPES:
            arity = NODES[name].arity
            inner, operands = f"strided_{_symbol(name, dtype)}", [arg(k, dtype) for k in range(arity)]
            write_loop(module, inner, expr.apply(name, *operands), [dtype] * arity, dtype)
            module.helper(_symbol(name, dtype), _ufunc_loop(_symbol(name, dtype), inner, arity + 1))
    return str(module)


def _ufunc_loop(name: str, inner: str, count: int) -> str:
    """Return a loop with a ufunc's signature, which has one dimension, around one that has two."""
    lines = ["%size = load i64, ptr %dimensions", "store i64 1, ptr %sizes"]
    lines += ["%second = getelementptr i64, ptr %sizes, i64 1", "store i64 %size, ptr %second"]
    for k in range(count):
        lines += [
            f"%from{k} = getelementptr i64, ptr %steps, i64 {k}",
            f"%step{k} = load i64, ptr %from{k}",
            f"%outer{k} = getelementptr i64, ptr %strides, i64 {2 * k}",
            f"store i64 0, ptr %outer{k}",
            f"%inner{k} = getelementptr i64, ptr %strides, i64 {2 * k + 1}",
            f"store i64 %step{k}, ptr %inner{k}",
        ]
    lines.append(f"call void @{inner}(ptr %pointers, ptr %sizes, ptr %strides)")
    stack = ["%sizes = alloca [2 x i64]", f"%strides = alloca [{2 * count} x i64]"]
    body = "\n  ".join([*stack, *lines, "ret void"])
    return f"define void @{name}(ptr %pointers, ptr %dimensions, ptr %steps, ptr %data) #0 {{\n  {body}\n}}\n"


def _make_ufunc(name: str, dtypes: tuple[DType, ...], loops: list[int]) -> Callable[..., Any]:
    """Return a NumPy ufunc over loops for dtypes."""
    arity, count = NODES[name].arity, len(loops)
    functions = (ctypes.c_void_p * count)(*loops)
    data = (ctypes.c_void_p * count)()
    numbers = bytes(dtype.np.num for dtype in dtypes for _ in range(arity + 1))
    types, title = ctypes.create_string_buffer(numbers), ctypes.create_string_buffer(name.encode())
    _kept.extend([functions, data, types, title])
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        *[ctypes.c_void_p] * 3,
        *[ctypes.c_int] * 4,
        *[ctypes.c_void_p] * 2,
        ctypes.c_int,
    )(layout.ufunc_table()[_MAKE_UFUNC])
    result: Callable[..., Any] = make(
        *(ctypes.addressof(table) for table in (functions, data, types)),
        *(count, arity, 1, _ONE if name == "mul" else _NO_IDENTITY),
        *(ctypes.addressof(title), None, 0),
    )
    return result
