"""Prepare nodes for inner loops: operands are converted to the dtypes that a loop has, results back.

The conversions are nodes, so they fuse with what computes an operand or reads a result.
"""

from __future__ import annotations

from typing import Any

from ....lowering.passes.rewrite import new_node, replace_each
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
    return replace_each(graph, _widen)


def _widen(node: Node, out: Graph) -> tuple[Value, ...] | None:
    """Append the nodes that compute a node in other dtypes; return their results, or None to leave it as it is."""
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
    out.nodes += nodes
    return results


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
    spec = TensorSpec((), next(iter(widen.values())), node.outputs[0].spec.device)
    return _append_cast(value, spec, node, nodes)


def _cast(value: Value, dtype: DType, node: Node, nodes: list[Node]) -> Value:
    if value.spec.dtype is dtype:
        return value
    return _append_cast(value, value.spec._replace(dtype=dtype), node, nodes)


def _append_cast(value: Any, spec: TensorSpec, node: Node, nodes: list[Node]) -> Value:
    nodes.append(new_node(find_operator("td::cast"), (value, spec.dtype), {}, spec, node.source))
    return nodes[-1].outputs[0]
