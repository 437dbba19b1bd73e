"""Prepare nodes for inner loops: operands are converted to the dtypes that a loop has, results back.

The conversions are nodes, so they fuse with what computes an operand or reads a result.
"""

from __future__ import annotations

from typing import Any

from ....lowering.passes.rewrite import copy_node, empty_like, new_node
from ....operators.declare.shape_rules import promoted_dtype
from ....registry.dispatch.keys import DispatchKey
from ....registry.dispatch.precedence import find_external_kernel
from ....registry.dtypes import DType
from ....registry.operator import find_operator
from ....registry.values import TensorSpec
from ....tracer.graph import Graph, Node, Value, map_values
from ....tracer.infer import to_example
from .calls import find_loop_call


def expand_native_calls(graph: Graph) -> Graph:
    """Convert the operands and results of nodes whose loops lack their dtypes; return a new graph."""
    out = empty_like(graph)
    env: dict[Value, Value] = {}

    def read(value: Value) -> Value:
        return env.get(value, value)

    for node in graph.nodes:
        now = copy_node(node, read) if any(value in env for value in node.inputs) else node
        made = _widen(now)
        if made is None:
            out.nodes.append(now)
            results = now.outputs
        else:
            out.nodes += made[0]
            results = made[1]
        env.update((old, new) for old, new in zip(node.outputs, results, strict=True) if old is not new)
    out.outputs = [read(o) if isinstance(o, Value) else o for o in graph.outputs]
    return out


def _widen(node: Node) -> tuple[list[Node], tuple[Value, ...]] | None:
    """Return the nodes that compute a node in other dtypes, and the results; None to leave it as it is."""
    kernel = getattr(node.op.decl, "native", None)
    if (
        kernel is None
        or not (kernel.widen or kernel.promotes)
        or find_external_kernel(node.op, DispatchKey.CPU) is not None
    ):
        return None
    if find_loop_call(node) is not None:
        return None
    nodes: list[Node] = []
    is_tensor = [str(argument.type) == "Tensor" for argument in node.op.schema.arguments]
    operands = [value for value, is_operand in zip(node.args, is_tensor) if is_operand]
    widen = _promotions(node, operands) if kernel.promotes else kernel.widen
    args = tuple(
        _convert(value, widen, node, nodes) if is_operand else value
        for value, is_operand in zip(node.args, is_tensor)
    )
    kwargs = {name: map_values(lambda value: value.spec, arg) for name, arg in node.kwargs.items()}
    specs = node.op.decl.shape_rule(*map_values(lambda value: value.spec, args), **kwargs)
    wide = Node(node.op, args, node.kwargs, node.source)
    items = specs if isinstance(specs, tuple) and not isinstance(specs, TensorSpec) else (specs,)
    wide.outputs = tuple(Value(spec, wide, index) for index, spec in enumerate(items))
    if not nodes or find_loop_call(wide) is None:
        return None
    nodes.append(wide)
    results = tuple(
        _cast(value, old.spec.dtype, node, nodes) for value, old in zip(wide.outputs, node.outputs)
    )
    return nodes, results


def _promotions(node: Node, operands: list[Any]) -> dict[DType, DType]:
    """Return the promoted dtype of the operands, by the dtype of each tensor."""
    examples = [to_example(value) if isinstance(value, Value) else value for value in operands]
    promoted = promoted_dtype(node.op.schema.name, examples)
    return {v.spec.dtype: promoted for v in operands if isinstance(v, Value) and v.weak is None} | {
        promoted: promoted
    }


def _convert(value: Any, widen: Any, node: Node, nodes: list[Node]) -> Any:
    """Return an operand in the dtype that it is computed in; a Python number becomes a tensor of the widest."""
    if isinstance(value, Value) and value.weak is None:
        return _cast(value, widen.get(value.spec.dtype, value.spec.dtype), node, nodes)
    dtype = next(iter(widen.values()))
    spec = TensorSpec((), dtype, node.outputs[0].spec.device)
    nodes.append(new_node(find_operator("td::cast"), (value, dtype), {}, spec, node.source))
    return nodes[-1].outputs[0]


def _cast(value: Value, dtype: DType, node: Node, nodes: list[Node]) -> Value:
    if value.spec.dtype is dtype:
        return value
    spec = value.spec._replace(dtype=dtype)
    nodes.append(new_node(find_operator("td::cast"), (value, dtype), {}, spec, node.source))
    return nodes[-1].outputs[0]
