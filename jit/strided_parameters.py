"""Parameters that are read by their strides: compiled code copies no argument that is not C-contiguous.

The executable gets the memory of such a parameter from its first to its last element; its program begins with a view
of that: a permuted one of a dense array, or one with given strides of an array of one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..backends.cpu.kernels.views import address_memory
from ..eager.tensor.tensor import wrap
from ..lowering.interpreter import to_payload
from ..lowering.passes.rewrite import new_node, replace_each
from ..operators.declare.view_spec import ViewLayout, extent, row_major_strides
from ..operators.shape.views import inverse_permutation
from ..registry.operator import find_operator
from ..tracer.graph import Graph, Node, Value

if TYPE_CHECKING:
    from ..registry.types import Array
    from .guards.leaves import Strides


def find_extent(shape: Sequence[int], strides: Strides) -> tuple[int, int]:
    """The lowest offset of an element in bytes, and the distance from there to the highest one."""
    low, high = extent(ViewLayout(tuple(shape), strides))
    return int(low), int(high - low)


def take_bases(
    parameters: Sequence[Any], strided: tuple[tuple[int, Strides], ...], program: Graph
) -> list[Any]:
    """Replace the tensors or arrays at some indices by tensors on their memory, as a program takes them."""
    given = list(parameters)
    for index, _ in strided:
        given[index] = wrap(_to_base(to_payload(given[index]), program.parameters[index].shape))
    return given


def _to_base(array: Any, shape: tuple[int, ...]) -> Array:
    low, _ = find_extent(array.shape, array.strides)
    strides = tuple(step * array.itemsize for step in row_major_strides(shape))
    return address_memory(array, ViewLayout(shape, strides, low))


def read_by_strides(program: Graph, strided: tuple[tuple[int, Strides], ...]) -> Graph:
    """Make a program take the memory of some parameters, and read these by their strides.

    Args:
        program: the graph to lower.
        strided: indices of parameters, and the strides of each in bytes.
    """
    parameters = program.parameters
    views = {parameters[index]: _make_view(parameters[index], strides) for index, strides in strided}
    result = replace_each(
        program, lambda node, out: None, {value: view.outputs[0] for value, view in views.items()}
    )
    result.nodes[:0] = views.values()
    bases = {value: view.args[0] for value, view in views.items()}
    result.inputs = [bases.get(value, value) for value in program.inputs]
    result.captured = [bases.get(value, value) for value in program.captured]
    return result


def _make_view(value: Value, strides: Strides) -> Node:
    """The node that takes a parameter as a view of its memory, which is the node's argument."""
    spec = value.spec
    size = spec.dtype.itemsize
    steps = tuple(step // size for step in strides)
    order = sorted(range(len(steps)), key=lambda axis: -steps[axis])
    dense = tuple(spec.shape[axis] for axis in order)
    if row_major_strides(dense) == tuple(steps[axis] for axis in order):
        base = Value(spec._replace(shape=dense), None, value.index)
        return new_node(find_operator("td::permute"), (base, inverse_permutation(tuple(order))), {}, spec, "")
    low, reach = find_extent(spec.shape, strides)
    base = Value(spec._replace(shape=(reach // size + 1,)), None, value.index)
    return new_node(find_operator("td::as_strided"), (base, spec.shape, steps, -low // size), {}, spec, "")
