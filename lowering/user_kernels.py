"""Which function in another language is behind the kernel that a node would run."""

from __future__ import annotations

from typing import Any

from ..eager.meta_tensor import meta_tensor
from ..operators.user_functions import BufferFunction, ScalarFunction, UserKernel
from ..registry.keys import BACKEND_OF_DEVICE
from ..registry.precedence import chosen
from ..tracer.graph import Node, Value, map_values


def user_function(node: Node) -> ScalarFunction | BufferFunction | None:
    """The function behind the kernel that a node would run, if it is no Python function."""
    if node.op.decl is None or node.op.decl.kind != "custom" or not node.outputs:
        return None
    entry = node.op.table[BACKEND_OF_DEVICE[node.outputs[0].spec.device.partition(":")[0]]]
    if entry.dtypes:
        kwargs = {name: map_values(_stand_in, arg) for name, arg in node.kwargs.items()}
        entry = chosen(entry, node.op, map_values(_stand_in, node.args), kwargs)
    return entry.fn.function if isinstance(entry.fn, UserKernel) else None


def _stand_in(value: Value) -> Any:
    """What a choice by dtype sees of a Value: a tensor without data, or a number."""
    return meta_tensor(value.spec) if value.weak is None else value.weak()
