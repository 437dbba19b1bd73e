"""The cost model: limits and costs that decide fusion, inlining, rematerialization and partition.

Arithmetic is counted in cheap instructions per element (:func:`..operators.scalar_ir.cost.cost`), traffic in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..operators.scalar_ir.cost import cost, is_light
from ..operators.scalar_ir.expr import Expr
from ..tracer.graph import Node, Value
from .fusion.scalarize import node_expr, operand_types
from .kernel_selection import body_dtype, uniform_constant
from .layout import is_view
from .passes.rewrite import has_effects

if TYPE_CHECKING:
    from ..registry.dims import Dim
    from ..registry.values import TensorSpec

MAX_INLINED_COST = 12
"""Instructions per element: a value that costs at most this is recomputed instead of stored."""
MAX_POSITION_COST = 8
"""Instructions of an integer that kernels compute where they use it as an index, as that of a window at a start."""
GATHER_COST = 8
"""Instructions per element of a read at integer positions."""
MAX_GROUP_NODES = 256
"""Nodes of a fusion group: the time to compile a kernel grows faster than its nodes."""
CELL_BYTES = 128
"""An intermediate of at most this size is stored on the stack, where LLVM replaces it by a register."""
MAX_ROW_BUFFER_BYTES = 64 * 1024
"""A row buffer beyond this is an intermediate of its own, not scratch memory of the kernel."""
MIN_SPLIT_BYTES = 128 * 1024
"""A value of several parts is computed where it is read if it is larger; each part takes a kernel."""
MAX_REGIONS = 32
"""The most kernels that a kernel which reads such values is split into."""
CACHE_BYTES = 1024 * 1024
"""A larger value is loaded from memory when it is read."""
MAX_EXTRA_COST = 12
"""Instructions per element that not storing such a value may cost."""
MAX_LIGHT_COST = 24
"""The same, if each of them takes about a cycle: the store and the loads of an element from memory take as long."""

# Costs of the partition of a joint graph, in picoseconds on one core; only the ratios matter.
STORE_OVERHEAD = 100_000  # another result of the forward pass
BYTE_COST = 100  # a byte that the forward pass writes and the backward pass reads
INSTRUCTION_COST = 12  # an instruction on each byte of the result
RESIDENT_COST = 1  # a value that is in memory anyway: an argument or a result


def is_cheap(expr: Expr) -> bool:
    """Whether each kernel that reads a value recomputes it instead of loading it."""
    return cost(expr) <= MAX_INLINED_COST


def recomputing_reads_pays(exprs: Iterable[Expr], reads: Dim, spec: TensorSpec) -> bool:
    """Whether computing a value at each read is cheaper than storing it once and loading it.

    Args:
        exprs: what computes an element, one of several expressions.
        reads: the number of reads of elements.
        spec: the shape and dtype of the value.

    Raises:
        UndecidedError: that depends on symbolic sizes.
    """
    computed = list(exprs)
    instructions = max(map(cost, computed))
    extra = (reads - spec.size) * instructions - reads - 2 * spec.size  # a load each, and the stores
    if extra <= 0:
        return True
    most = max(MAX_EXTRA_COST, MAX_LIGHT_COST if all(map(is_light, computed)) else 0)
    return extra <= most * spec.size and spec.size * spec.dtype.itemsize >= CACHE_BYTES


def store_cost(value: Value, is_resident: bool) -> int:
    """The cost of storing a residual for the backward pass; ``is_resident``: it is an argument or a result."""
    nbytes = int(value.spec.size) * value.spec.dtype.itemsize
    return RESIDENT_COST if is_resident else STORE_OVERHEAD + BYTE_COST * nbytes


def recompute_cost(node: Node) -> int | None:
    """The cost of recomputing a node in the backward pass; None if it must not be recomputed."""
    if has_effects(node) or not node.outputs:
        return None
    if is_view(node) or uniform_constant(node) is not None:
        return 0
    out = node.outputs[0].spec
    instructions = count_instructions(node)
    return None if instructions is None else INSTRUCTION_COST * instructions * out.size * out.dtype.itemsize


def count_instructions(node: Node) -> int | None:
    """The instructions per element of a node that fuses into a loop; None for others."""
    decl = node.op.decl
    if decl is None or decl.kind in ("random", "custom"):
        return None
    if decl.is_elementwise:
        if node.kwargs or body_dtype(node).kind == "c":
            return None
    elif decl.kind not in ("cast", "copy") and (decl.kind != "creation" or node.op.schema.name != "full"):
        return None
    operands = [Expr("load", (), dtype, index) for index, dtype in enumerate(operand_types(node))]
    return cost(node_expr(node, operands))
