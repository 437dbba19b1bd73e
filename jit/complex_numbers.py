"""Complex numbers among the arguments of a jitted function: compiled code gets them as arrays without axes.

Other numbers are passed in 8 bytes each. An elementwise operator casts the array to the dtype that its tensors and the
number are promoted to, so that the number stays weak.
"""

from __future__ import annotations

from ..lowering.passes.rewrite import copy_node, new_node, replace_each
from ..operators.declare.shape_rules import promoted_dtype
from ..registry.dtypes import complex128
from ..registry.operator import find_operator
from ..registry.values import TensorSpec
from ..tracer.graph import Derived, Graph, Node, Value
from ..tracer.infer import to_example


def pass_as_arrays(program: Graph) -> Graph:
    """Replace the complex numbers among a graph's parameters by arrays of complex128.

    Args:
        program: the graph to lower.

    Returns:
        The new graph; the graph itself where it has none, or where other than elementwise operators use one.
    """
    numbers = [value for value in program.parameters if value.weak is complex]
    users = [node for node in program.nodes if any(value.weak is complex for value in node.inputs)]
    if not numbers or not all(map(_is_elementwise, users)):
        return program
    arrays = {value: Value(TensorSpec((), complex128), None, value.index) for value in numbers}

    def visit(node: Node, out: Graph) -> tuple[Value, ...] | None:
        used = {value for value in node.inputs if value in arrays}
        if not used:
            return None
        examples = [to_example(a) if isinstance(a, Value) else a for a in node.args]
        dtype = promoted_dtype(node.op.schema.name, examples)
        casts = {
            value: new_node(
                find_operator("td::cast"), (arrays[value], dtype), {}, TensorSpec((), dtype), node.source
            )
            for value in used
        }
        made = copy_node(node, lambda value: casts[value].outputs[0] if value in casts else value)
        out.nodes += [*casts.values(), made]
        return made.outputs

    result = replace_each(program, visit)
    result.inputs = [arrays.get(value, value) for value in program.inputs]
    result.derived = [
        Derived(arrays.get(value, value), function, operands) for value, function, operands in program.derived
    ]
    return result


def _is_elementwise(node: Node) -> bool:
    has_rule = node.op.decl is not None and node.op.decl.is_elementwise
    return has_rule and not node.kwargs and all(value.weak is None for value in node.outputs)
