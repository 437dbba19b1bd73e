"""The results of a jitted function: the source of each leaf, and rebuilding of the result tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..eager.autograd.view_writes import Step
from ..eager.layers.levels import LevelTensor
from ..eager.tensor.weak_scalars import weak_scalar
from ..errors import UnsupportedError
from ..named_tuple import NamedTuple
from ..operators.indexing.masks import MaskedElements
from ..registry.values import describe
from ..tracer.aliases import Aliases, copies_memory
from ..tracer.graph import Graph, Node, Value, values_in
from ..tracer.mutation import find_contents
from ..tracer.scalar import TracerScalar
from ..tracer.tensor import TracerTensor
from ..tracer.trace import check_alive
from ..tracer.weak import WeakTracer
from .writes import final_values, write_back

if TYPE_CHECKING:
    from ..registry.types import Tensor


class CapturedValueError(UnsupportedError):
    """A result depends on a captured value of a surrounding transform, which is not an argument."""


class Output(NamedTuple):
    """The source of one leaf of the result.

    Attributes:
        kind: ``"result"`` (of the executable), ``"parameter"`` (what was passed for the graph's parameter, or the
            captured tensor itself) or ``"constant"``.
        number: of the result or parameter.
        views: for parameters, the view operators to call eagerly, in order, so that storage is shared.
        value: the constant.
        weak: whether to return a weak scalar of the computed number.
    """

    kind: str
    number: int = 0
    views: tuple[Step, ...] = ()
    value: Any = None
    weak: bool = False


class Parameters(NamedTuple):
    """The parameters of a graph: the index of each, and those that are contiguous in memory when the graph runs."""

    indices: dict[Value, int]
    contiguous: set[Value]


class OutputTree(NamedTuple):
    """The sources of the leaves of a result, its treedef, and the Values that the executable computes.

    ``writes`` lists the parameters that are written: ``(parameter, source of the contents)``.
    """

    leaves: tuple[Output, ...]
    treedef: pytree.TreeDef
    computed: tuple[Value, ...]
    writes: tuple[tuple[int, Output], ...] = ()

    @property
    def written(self) -> tuple[int, ...]:
        """The parameters that are written."""
        return tuple(index for index, _ in self.writes)

    def build(self, parameters: Sequence[Any], results: Sequence[Any]) -> Any:
        """Build the result of a call.

        Args:
            parameters: the tensors and numbers of ``graph.parameters``.
            results: the tensors of ``computed``.

        Native twin: backends/cpu/fastpath/entries/rt_jit.py:build
        """
        if self.writes:
            write_back(
                parameters, [(index, _read_contents(out, parameters, results)) for index, out in self.writes]
            )
        items = []
        for leaf in self.leaves:
            if leaf.weak:
                items.append(weak_scalar(results[leaf.number].item()))
            elif leaf.kind == "result":
                items.append(results[leaf.number])
            elif leaf.kind == "constant":
                items.append(leaf.value)
            else:
                items.append(_apply_views(parameters[leaf.number], leaf.views))
        return self.treedef.unflatten(items)


def _read_contents(output: Output, parameters: Sequence[Any], results: Sequence[object]) -> object:
    """Read the new contents of a parameter; copied if another parameter, which may be written too, has them."""
    if output.kind == "result":
        return results[output.number]
    return _apply_views(parameters[output.number], output.views).clone()


def _apply_views(tensor: Tensor, views: tuple[Step, ...]) -> Any:
    for op, args, kwargs in views:
        tensor = op(tensor, *args, **kwargs)
    return tensor


def make_output_tree(
    graph: Graph, tree: object, memories: Sequence[Aliases | None], written: dict[Aliases, int]
) -> OutputTree:
    """Find the sources of the leaves of a traced function's result; sets ``graph.outputs``.

    Args:
        graph: the graph.
        tree: the returned value of the function.
        memories: the memory of each of the graph's inputs; None for numbers.
        written: the arguments that it wrote, by their memory.

    Raises:
        AutogradError: a result belongs to a ``td.grad`` outside of the jitted function.
        LeakedTracerError: a result belongs to a trace that has ended.
    """
    leaves, treedef = pytree.flatten(tree)
    contiguous = {value for memory, value in zip(memories, graph.inputs) if memory and memory.is_contiguous}
    parameters = Parameters({value: index for index, value in enumerate(graph.parameters)}, contiguous)
    computed: dict[Value, int] = {}
    leaf_outputs = []
    for given in leaves:
        leaf = find_contents(given)
        value = _to_value(leaf)
        graph.outputs.append(value)
        memory = leaf._aliases if type(leaf) is TracerTensor else None
        if memory in written:  # the argument itself, or a view of it: it is written before results are made
            leaf_outputs.append(Output("parameter", written[memory], memory.path_of(leaf)))
        else:
            leaf_outputs.append(_make_leaf_output(leaf, value, parameters, computed))
    writes = tuple(
        (position, _make_output(value, parameters, computed)) for position, value in final_values(written)
    )
    return OutputTree(tuple(leaf_outputs), treedef, tuple(computed), writes)


def _make_leaf_output(
    leaf: object, value: object, parameters: Parameters, computed: dict[Value, int]
) -> Output:
    """Find the source of a leaf that is not a written argument."""
    if type(value) is not Value:
        return Output("constant", value=leaf)
    if type(leaf) is WeakTracer:
        return Output("result", computed.setdefault(value, len(computed)), weak=True)
    return _make_output(value, parameters, computed)


def _to_value(leaf: Any) -> object:
    """The Value of a traced leaf; a constant leaf is returned as it is."""
    if type(leaf) in (TracerTensor, TracerScalar, WeakTracer):
        check_alive(leaf)
        return leaf._value
    if isinstance(leaf, LevelTensor):
        raise CapturedValueError(
            f"a jitted function returned {describe(leaf)}, computed from a tensor of {leaf._level.name} that it "
            "reaches by a closure or a global; pass that tensor as an argument"
        )
    if type(leaf) is MaskedElements:
        leaf.refuse()
    return leaf


def _make_output(value: Value, parameters: Parameters, computed: dict[Value, int]) -> Output:
    root, views = _find_view_base(value)
    index = parameters.indices.get(root)
    is_copy = root in parameters.contiguous and copies_memory(root, views)
    if index is not None and not is_copy:
        return Output("parameter", index, views)
    return Output("result", computed.setdefault(value, len(computed)))


def _find_view_base(value: Value) -> tuple[Value, tuple[Step, ...]]:
    """The base of a chain of views, and the view calls that lead from it to the value."""
    views: list[Step] = []
    while value.node is not None and _is_plain_view(value.node):
        node = value.node
        views.append(Step(node.op, node.args[1:], node.kwargs))
        value = node.args[0]
    return value, tuple(reversed(views))


def _is_plain_view(node: Node) -> bool:
    """Whether a node is a view of its first argument with constant other arguments."""
    single = len(node.outputs) == 1 and isinstance(node.args[0], Value) if node.args else False
    known = not any(values_in((node.args[1:], tuple(node.kwargs.values()))))
    return single and node.op.is_view and known
