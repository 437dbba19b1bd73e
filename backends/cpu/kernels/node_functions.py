"""Ufuncs of emitted loops, for functions of the scalar IR whose last bits depend on the implementation.

NumPy's own functions differ from the emitted code in the last bits, and between elements if they have a vector loop and
a scalar one. Python kernels therefore call these: one object holds the loop of each such node for float32 and float64.
It is compiled once per machine and version, stored in the disk cache, and loaded at the first call that needs it.
The product and the quotient of complex numbers are such nodes. Without native code NumPy's ufuncs are used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ....operators.scalar_ir import expr
from ....operators.scalar_ir.expr import NODES, Expr, arg
from ....registry.dtypes import COMPLEX, DType, float32, float64
from .. import cache
from ..codegen.ufunc_loops import loop_symbol, ufunc_loops_ir
from ..fastpath.compiler import engine
from ..fastpath.glue import layout

DTYPES = (float32, float64)
NAMES = tuple(name for name, row in NODES.items() if "f" not in row.exact)
COMPLEX_NAMES = tuple(name for name, row in NODES.items() if "c" in row.kinds and row.exact == "biuf")
_MAKE_UFUNC = 1  # PyUFunc_FromFuncAndData in the table of NumPy's C functions
_NO_IDENTITY, _ONE = -1, 1  # identity of a reduction with the ufunc
_kept: list[Any] = []  # objects that ufuncs point into; they live as long as the process


def find_ufunc(node: Expr) -> Callable[..., Any] | None:
    """Return the ufunc of an inexact node; None without emitted code for the node, or with native code off."""
    is_complex = node.args[0].dtype in COMPLEX
    dtypes, names = (COMPLEX, COMPLEX_NAMES) if is_complex else (DTYPES, NAMES)
    if layout.check() or node.args[0].dtype not in dtypes or node.op not in names:
        return None
    return _make_ufunc_of(node.op, dtypes)


@engine.KeepFirst
def _make_ufunc_of(name: str, dtypes: tuple[DType, ...]) -> Callable[..., Any] | None:
    """Return the ufunc of a node; None if its code cannot be built."""
    code = _compile_loops(NAMES + COMPLEX_NAMES if not cache.reason() else (name,))
    if code is None:
        return None
    return _make_ufunc(name, dtypes, [code[loop_symbol(node)] for node in _nodes_of(name)])


def _nodes_of(name: str) -> list[Expr]:
    """Return the nodes of a name, one for each dtype that it has a loop for."""
    dtypes = COMPLEX if name in COMPLEX_NAMES else DTYPES
    return [expr.apply(name, *[arg(k, dtype) for k in range(NODES[name].arity)]) for dtype in dtypes]


@engine.KeepFirst
def _compile_loops(names: tuple[str, ...]) -> engine.Code | None:
    """Return the loops of some nodes; of all nodes if the disk cache is on."""
    nodes = [node for name in names for node in _nodes_of(name)]
    symbols = [loop_symbol(node) for node in nodes]
    return engine.build_once(f"functions {' '.join(names)}", lambda: ufunc_loops_ir(nodes), symbols)


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
