"""Calls of the inner loops of NumPy's ufuncs, for nodes on complex numbers that are not written out."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import UnsupportedError
from ....operators.scalar_ir.expr import Expr
from .text import Function, Module


def call_ufunc(f: Function, node: Expr, values: list[str]) -> str:
    """Return the vector of a node, whose loop is called on the elements of one vector in memory."""
    values_and_result = [*node.args, node]
    sizes = [f.lanes * x.dtype.itemsize for x in values_and_result]
    # subnormal numbers in lanes without an element would slow down what follows
    memory = [f.allocate(size, clear=size) for size in sizes]
    for x, value, pointer in zip(node.args, values, memory, strict=False):
        f.store_vector(x.dtype, value, pointer)
    _write_call(f, node, memory, [str(x.dtype.itemsize) for x in values_and_result], f.count or str(f.lanes))
    return f.load_vector(node.dtype, memory[-1])


def write_ufunc_rows(module: Module, name: str, node: Expr, arity: int) -> None:
    """Add the function of ``elementwise.write_loop`` for a node whose operands are ``arg(0)``, ... or constants."""
    f = Function(module, 1)
    count = f.load("i64", f.address("%dims", "8"))
    rows = f.op(f"select i1 {f.op(f'icmp eq i64 {count}, 0')}, i64 0, i64 {f.load('i64', '%dims')}")
    constants = {a: f.allocate(a.dtype.itemsize) for a in node.args if a.op == "const"}
    for a, memory in constants.items():
        f.store_vector(a.dtype, f.splat(a.payload, a.dtype), memory)
    with f.loop("0", rows, "1") as row:
        pointers, steps = [], []
        for x in (*node.args, node):
            if x in constants:
                pointers.append(constants[x])
                steps.append("0")
                continue
            position = arity if x is node else x.payload
            start = f.load("ptr", f.address("%ptrs", str(8 * position)))
            outer, inner = (f.load("i64", f.address("%strides", str(16 * position + k))) for k in (0, 8))
            pointers.append(f.address(start, f.op(f"mul i64 {row.index}, {outer}")))
            steps.append(inner)
        _write_call(f, node, pointers, steps, count)
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}(ptr %ptrs, ptr %dims, ptr %strides) #0"))


def _write_call(f: Function, node: Expr, pointers: Sequence[str], steps: Sequence[str], count: str) -> None:
    """Write a call of a node's loop for addresses and strides of its operands and its result."""
    symbol, data = _declare_ufunc(f.module, node)
    arguments, sizes, strides = (f.allocate(8 * n) for n in (len(pointers), 1, len(pointers)))
    f.do(f"store i64 {count}, ptr {sizes}")
    for k, (pointer, step) in enumerate(zip(pointers, steps, strict=True)):
        f.do(f"store ptr {pointer}, ptr {f.address(arguments, str(8 * k))}")
        f.do(f"store i64 {step}, ptr {f.address(strides, str(8 * k))}")
    f.do(f"call void @{symbol}(ptr {arguments}, ptr {sizes}, ptr {strides}, ptr {data})")


def _declare_ufunc(module: Module, node: Expr) -> tuple[str, str]:
    """Declare the inner loop of a node; return its name, and the address of its data."""
    dtype = node.args[0].dtype
    addresses = module.find_loop(node)
    if addresses is None:
        raise UnsupportedError(f"{node.op} of {dtype.name} is not emitted, and NumPy has no loop for it")
    name = f"ufunc_{node.op}_{dtype.name}"
    module.declare(name, "void", *["ptr"] * 4, pure=False)
    module.imports[name] = addresses[0]
    if not addresses[1]:
        return name, "null"
    module.helper(f"{name}_data", f"@{name}_data = external global i8")
    module.imports[f"{name}_data"] = addresses[1]
    return name, f"@{name}_data"
