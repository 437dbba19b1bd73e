"""Find the C, CUDA or LLVM function that implements a node's kernel."""

from __future__ import annotations

from ..eager.meta.tensor import meta_tensor
from ..operators.foreign.functions import BufferFunction, ScalarFunction, UserKernel
from ..registry.dispatch.keys import BACKEND_OF_DEVICE
from ..registry.dispatch.precedence import choose_entry
from ..tracer.graph import Node, Value, map_values


def find_foreign_function(node: Node) -> ScalarFunction | BufferFunction | None:
    """Return the foreign function that a node's kernel calls; None if the kernel is a Python function."""
    if node.op.decl is None or node.op.decl.kind != "custom" or not node.outputs:
        return None
    entry = node.op.table[BACKEND_OF_DEVICE[node.outputs[0].spec.device.partition(":")[0]]]
    if entry.dtypes:
        kwargs = {name: map_values(_to_example, arg) for name, arg in node.kwargs.items()}
        entry = choose_entry(entry, node.op, map_values(_to_example, node.args), kwargs)
    return entry.fn.function if isinstance(entry.fn, UserKernel) else None


def _to_example(value: Value) -> object:
    """Convert a Value to an example for kernel choice by dtype: a meta tensor or a number."""
    return meta_tensor(value.spec) if value.weak is None else value.weak()
