"""Ufuncs of emitted loops, for functions of the scalar IR whose last bits depend on the implementation.

NumPy's own functions differ from the emitted code in the last bits, and between elements if they have a vector loop and
a scalar one. Python kernels therefore call these: one object holds the loop of each such node for float32 and float64.
It is compiled once per machine and version, stored in the disk cache, and loaded at the first call that needs it.
Most nodes on complex numbers are such nodes, too. Without native code NumPy's ufuncs are used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ....operators.scalar_ir import expr
from ....operators.scalar_ir.expr import NODES, Expr, arg
from ....registry.dtypes import COMPLEX, DType, float32, float64
from .. import cache
from ..codegen.complex_nodes import INEXACT
from ..codegen.ufunc_loops import loop_symbol, ufunc_loops_ir
from ..fastpath.compiler import engine
from ..fastpath.glue import layout

DTYPES = (float32, float64)
# The dtypes of the loops of each node's ufunc; a node may have one ufunc for real and one for complex numbers.
UFUNCS = (
    *((name, DTYPES) for name, row in NODES.items() if "f" not in row.exact),
    *((name, COMPLEX) for name in INEXACT),
)
# Those that are compiled as one object; each of the others, which are rarer, is one of its own.
_TOGETHER = tuple(key for key in UFUNCS if key[1] is DTYPES or key[0] in ("mul", "truediv", "abs", "exp"))
_MAKE_UFUNC = 1  # PyUFunc_FromFuncAndData in the table of NumPy's C functions
_NO_IDENTITY, _ONE = -1, 1  # identity of a reduction with the ufunc
_kept: list[Any] = []  # objects that ufuncs point into; they live as long as the process


def find_ufunc(node: Expr) -> Callable[..., Any] | None:
    """Return the ufunc of an inexact node; None without emitted code for the node, or with native code off."""
    key = node.op, COMPLEX if node.args[0].dtype in COMPLEX else DTYPES
    if layout.check() or node.args[0].dtype not in key[1] or key not in UFUNCS:
        return None
    return _make_ufunc_of(*key)


@engine.KeepFirst
def _make_ufunc_of(name: str, dtypes: tuple[DType, ...]) -> Callable[..., Any] | None:
    """Return the ufunc of a node; None if its code cannot be built."""
    is_alone = cache.reason() or (name, dtypes) not in _TOGETHER
    code = _compile_loops(((name, dtypes),) if is_alone else _TOGETHER)
    if code is None:
        return None
    nodes = _nodes_of(name, dtypes)
    return _make_ufunc(name, nodes, [code[loop_symbol(node)] for node in nodes])


def _nodes_of(name: str, dtypes: tuple[DType, ...]) -> list[Expr]:
    """Return the nodes of a name, one for each dtype."""
    return [expr.apply(name, *[arg(k, dtype) for k in range(NODES[name].arity)]) for dtype in dtypes]


@engine.KeepFirst
def _compile_loops(ufuncs: tuple[tuple[str, tuple[DType, ...]], ...]) -> engine.Code | None:
    """Return the loops of some ufuncs."""
    nodes = [node for key in ufuncs for node in _nodes_of(*key)]
    symbols = [loop_symbol(node) for node in nodes]
    return engine.build_once(f"functions {' '.join(symbols)}", lambda: ufunc_loops_ir(nodes), symbols)


def _make_ufunc(name: str, nodes: list[Expr], loops: list[int]) -> Callable[..., Any]:
    """Return a NumPy ufunc over the loops of nodes."""
    arity, count = NODES[name].arity, len(loops)
    functions = (ctypes.c_void_p * count)(*loops)
    data = (ctypes.c_void_p * count)()
    numbers = bytes(x.dtype.np.num for node in nodes for x in (*node.args, node))
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
