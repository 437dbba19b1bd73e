"""Loops with the signature of a ufunc's loops, for nodes whose bits NumPy's own loops do not define."""

from __future__ import annotations

from collections.abc import Iterable

from ....operators.scalar_ir.expr import Expr
from ....registry.dtypes import COMPLEX
from .elementwise import write_loop
from .nodes import emit_exprs
from .text import REGISTER, Function, Module


def ufunc_loops_ir(nodes: Iterable[Expr]) -> str:
    """Return LLVM IR of the loops of nodes, each exported as its `loop_symbol`."""
    module = Module()
    for node in nodes:
        write_ufunc_loop(module, loop_symbol(node), node, folds=node.dtype in COMPLEX and len(node.args) > 1)
    return str(module)


def loop_symbol(node: Expr) -> str:
    """Return the symbol of a node's loop."""
    return f"{node.op}_{node.args[0].dtype.name}"


def write_ufunc_loop(module: Module, name: str, node: Expr, folds: bool = False) -> None:
    """Add ``void name(char **ptrs, int64_t *dims, int64_t *steps, void *data)``.

    Args:
        module: the module.
        name: the function's name.
        node: a node of operands ``arg(0)``, ``arg(1)``, ...
        folds: whether the first operand may be the result for the element before, as in ``reduce`` and ``accumulate``.
    """
    operands = [*node.args, node]
    write_loop(module, f"strided_{name}", node, [a.dtype for a in node.args], node.dtype)
    f = Function(module, 1)
    size = f.load("i64", "%dims")
    pointers = [f.load("ptr", f.address("%ptrs", str(8 * k))) for k in range(len(operands))]
    steps = [f.load("i64", f.address("%steps", str(8 * k))) for k in range(len(operands))]
    if folds:
        is_next = f.op(f"icmp eq ptr {f.address(pointers[0], steps[0])}, {pointers[-1]}")
        is_fold = f.op(f"and i1 {is_next}, {f.op(f'icmp sgt i64 {size}, 1')}")
        with f.when_returning(is_fold):
            _write_fold(f, node, size, pointers[1:], steps[1:], f.load_vector(node.dtype, pointers[0]))
    sizes, strides = f.allocate(16), f.allocate(16 * len(operands), clear=16 * len(operands))
    for k, number in enumerate(("1", size)):
        f.do(f"store i64 {number}, ptr {f.address(sizes, str(8 * k))}")
    for k, step in enumerate(steps):
        f.do(f"store i64 {step}, ptr {f.address(strides, str(16 * k + 8))}")
    f.do(f"call void @strided_{name}(ptr %ptrs, ptr {sizes}, ptr {strides})")
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}(ptr %ptrs, ptr %dims, ptr %steps, ptr %data) #0"))


def _write_fold(
    f: Function, node: Expr, size: str, pointers: list[str], steps: list[str], first: str
) -> None:
    """Write a loop that computes element by element, each result being the first operand of the next."""
    with f.parts(node.dtype) as part:
        carried = [(f.vec(REGISTER[part]), first), *(("ptr", pointer) for pointer in pointers)]
    with f.loop("0", size, "1", carried) as at:
        value, *addresses = at.carried
        known = {node.args[0]: value}
        known |= {a: f.load_vector(a.dtype, p) for a, p in zip(node.args[1:], addresses, strict=False)}
        emit_exprs(f, [node], known)
        f.store_vector(node.dtype, known[node], addresses[-1])
        at.next = [known[node], *(f.address(p, step) for p, step in zip(addresses, steps, strict=True))]
