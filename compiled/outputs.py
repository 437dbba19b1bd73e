"""The results of a jitted function: where each leaf comes from, and how the structure is built again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import pytree
from ..eager.levels import LevelTensor
from ..errors import UnsupportedError
from ..registry.operator import Operator
from ..registry.values import describe
from ..tracer.aliases import Aliases
from ..tracer.graph import Graph, Node, Value, values_in
from ..tracer.scalar import TracerScalar
from ..tracer.tensor import TracerTensor
from ..tracer.trace import check_alive
from .writes import final_values, write_back


class CapturedValueError(UnsupportedError):
    """A result depends on a value of a transform around the jitted function, which is no argument of it."""


class ViewCall(NamedTuple):
    """One step from an argument to a returned view of it: called eagerly, so that the view shares the storage."""

    op: Operator
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """Where one leaf of the result comes from.

    Attributes:
        kind: ``"result"`` (of the executable), ``"parameter"`` (what was passed for the graph's parameter, or the
            captured tensor itself) or ``"constant"``.
        index: which result or parameter.
        views: for parameters: what is called on it, first to last.
        value: the constant.
    """

    kind: str
    index: int = 0
    views: tuple[ViewCall, ...] = ()
    value: Any = None


class OutputPlan(NamedTuple):
    """All leaves of the result, its containers, and the Values that the executable computes for it.

    ``writes`` says which parameters get new contents: ``(parameter, where the contents come from)``.
    """

    leaves: tuple[Output, ...]
    treedef: pytree.TreeDef
    computed: tuple[Value, ...]
    writes: tuple[tuple[int, Output], ...] = ()

    @property
    def written(self) -> tuple[int, ...]:
        """The parameters that are written."""
        return tuple(place for place, _ in self.writes)

    def build(self, parameters: Sequence[Any], results: Sequence[Any]) -> Any:
        """The result of a call.

        Args:
            parameters: tensors and numbers that were passed, in the order of ``graph.parameters``.
            results: tensors, in the order of ``computed``.
        """
        if self.writes:
            write_back(parameters, [(place, _source(out, parameters, results)) for place, out in self.writes])
        found = []
        for leaf in self.leaves:
            if leaf.kind == "result":
                found.append(results[leaf.index])
            elif leaf.kind == "constant":
                found.append(leaf.value)
            else:
                found.append(_viewed(parameters[leaf.index], leaf.views))
        return self.treedef.unflatten(found)


def _source(output: Output, parameters: Sequence[Any], results: Sequence[Any]) -> Any:
    """The contents that a parameter gets; copied where they are another parameter's, which may be written too."""
    if output.kind == "result":
        return results[output.index]
    return _viewed(parameters[output.index], output.views).clone()


def _viewed(tensor: Any, views: tuple[ViewCall, ...]) -> Any:
    for op, args, kwargs in views:
        tensor = op(tensor, *args, **kwargs)
    return tensor


def plan_outputs(graph: Graph, tree: Any, written: dict[Aliases, int]) -> OutputPlan:
    """Where the leaves of a traced function's result come from; sets ``graph.outputs``.

    Args:
        graph: the graph.
        tree: what the function has returned.
        written: the arguments that it has written, by their memory.

    Raises:
        AutogradError: a result belongs to a ``td.grad`` outside of the jitted function.
        LeakedTracerError: a result belongs to a trace that is over.
    """
    leaves, treedef = pytree.flatten(tree)
    parameters = {value: index for index, value in enumerate(graph.parameters)}
    computed: dict[Value, int] = {}
    plan = []
    for leaf in leaves:
        value = _value_of(leaf)
        graph.outputs.append(value)
        memory = leaf._aliases if type(leaf) is TracerTensor else None
        if memory in written:  # the argument itself, or a view of it: it is written before results are made
            steps = tuple(ViewCall(*step) for step in memory.path_of(leaf))
            plan.append(Output("parameter", written[memory], steps))
        else:
            plan.append(
                _output(value, parameters, computed)
                if type(value) is Value
                else Output("constant", value=leaf)
            )
    writes = tuple((place, _output(value, parameters, computed)) for place, value in final_values(written))
    return OutputPlan(tuple(plan), treedef, tuple(computed), writes)


def _value_of(leaf: Any) -> Any:
    """The Value of a leaf, or the leaf itself where it is a constant."""
    if type(leaf) in (TracerTensor, TracerScalar):
        check_alive(leaf)
        return leaf._value
    if isinstance(leaf, LevelTensor):
        raise CapturedValueError(
            f"a jitted function returned {describe(leaf)}, computed from a tensor of {leaf._level.name} that it "
            "reaches by a closure or a global; pass that tensor as an argument"
        )
    return leaf


def _output(value: Value, parameters: dict[Value, int], computed: dict[Value, int]) -> Output:
    root, views = _origin(value)
    if root in parameters:
        return Output("parameter", parameters[root], views)
    return Output("result", computed.setdefault(value, len(computed)))


def _origin(value: Value) -> tuple[Value, tuple[ViewCall, ...]]:
    """What a value is a view of, and the calls that lead from there to it."""
    views: list[ViewCall] = []
    while value.node is not None and _is_plain_view(value.node):
        node = value.node
        views.append(ViewCall(node.op, node.args[1:], node.kwargs))
        value = node.args[0]
    return value, tuple(reversed(views))


def _is_plain_view(node: Node) -> bool:
    """Whether a node is a view of its first argument whose other arguments are known."""
    single = len(node.outputs) == 1 and isinstance(node.args[0], Value) if node.args else False
    known = not any(values_in((node.args[1:], tuple(node.kwargs.values()))))
    return single and node.op.schema.is_view and known
