"""Making a specialization: trace the function, plan its results, lower its graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from .. import config
from ..eager.autocast import context_key
from ..eager.tensor import Tensor
from ..pytree import TreeDef
from ..registry.dtypes import as_dtype
from ..registry.state import state
from ..registry.values import TensorSpec
from ..tracer import generators as _generators  # noqa: F401 - lets generators draw in a trace
from ..tracer.aliases import Aliases
from ..tracer.graph import Graph, Value, scalar_spec
from ..tracer.scalar import TracerScalar
from ..tracer.tensor import make_tracer
from ..tracer.trace import Trace, tracing
from ..tracer.verify import verify
from .arguments import Arguments, Bound
from .externals import externals_of
from .leaves import LeafGuard, device_key, guard_of
from .outputs import OutputPlan, plan_outputs
from .ranges import ranges_of
from .specialization import Specialization
from .versions import moment, versions_of
from .writes import written

MOVING = ("tensor", "array", "scalar")
"""The kinds of leaves whose values are given at each call."""


def _tracer_of(trace: Trace, guard: LeafGuard, leaf: Any) -> Any:
    """What stands for a leaf while tracing."""
    if guard.kind == "scalar":
        return TracerScalar(trace, trace.graph.add_input(scalar_spec(guard.type), guard.type), leaf)
    if guard.kind not in MOVING:
        return leaf
    value = trace.graph.add_input(TensorSpec(tuple(guard.shape), as_dtype(guard.dtype), guard.device))
    tensor = make_tracer(trace, value)
    Aliases(value, "an argument", is_written_back=True).add(tensor)
    return tensor


def specialize(
    fn: Callable[..., Any], arguments: Arguments, bound: Bound, keys: Sequence[tuple[Any, ...]]
) -> Specialization:
    """Trace a call and plan how such calls are answered; nothing is lowered yet.

    Args:
        fn: the function.
        arguments: how it is called.
        bound: the call.
        keys: the key of each leaf.
    """
    with traced(arguments, bound, keys) as call:
        trace = call.trace
        trace.writes_states = True
        result = arguments.call(fn, containers(bound.treedef, call.leaves), bound.statics)
        plan = plan_outputs(trace.graph, result, written(trace, call.memories))
    graph = trace.graph
    return specialization_of(fn, bound, call, graph, with_outputs(graph, plan.computed), plan)


class TracedCall(NamedTuple):
    """A call that is being traced.

    Attributes:
        trace: the trace.
        guards, paths: of the call's leaves.
        before: what the registry's clock showed when it began.
        leaves: what the function is traced with for each leaf.
        memories: the memory of each of the graph's inputs.
    """

    trace: Trace
    guards: tuple[LeafGuard, ...]
    paths: tuple[str, ...]
    before: int
    leaves: list[Any]
    memories: list[Aliases | None]


@contextmanager
def traced(arguments: Arguments, bound: Bound, keys: Sequence[tuple[Any, ...]]) -> Iterator[TracedCall]:
    """Trace a call whose leaves have these keys; the graph is verified at the end."""
    guards, paths, before = tuple(map(guard_of, keys)), tuple(arguments.paths(bound.treedef)), moment()
    with tracing(arguments.name) as trace:
        trace.names = [path for path, guard in zip(paths, guards) if guard.kind in MOVING]
        leaves = [_tracer_of(trace, guard, leaf) for guard, leaf in zip(guards, bound.leaves)]
        moving = [leaf for leaf, guard in zip(leaves, guards) if guard.kind in MOVING]
        memories = [getattr(leaf, "_aliases", None) for leaf in moving]
        yield TracedCall(trace, guards, paths, before, leaves, memories)
    if config.flags.verify:
        verify(trace.graph, after="tracing")


def specialization_of(
    fn: Callable[..., Any], bound: Bound, call: TracedCall, graph: Graph, program: Graph, plan: OutputPlan
) -> Specialization:
    """A specialization for calls like one that was traced.

    Args:
        fn, bound: the function and the call.
        call: its trace.
        graph: what was traced, or the part that gives results.
        program: what is lowered.
        plan: its results.
    """
    guards = call.guards
    return Specialization(
        treedef=bound.treedef,
        guards=guards,
        paths=call.paths,
        statics=bound.static_keys,
        static_values=bound.statics,
        include=state.include,
        exclude=state.exclude,
        context=context_key(),
        externals=externals_of(fn),
        captured=tuple(guard_of(_captured_key(tensor)) for tensor in graph.constants),
        versions=versions_of(call.trace.graph, call.before),
        scalar_types=tuple(item.value.weak for item in graph.derived),  # type: ignore[misc]
        graph=graph,
        program=program,
        moving=tuple(index for index, guard in enumerate(guards) if guard.kind in MOVING),
        outputs=plan,
        ranges=ranges_of(graph),
    )


def containers(treedef: TreeDef, leaves: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments that are not static, built again of leaves."""
    built: tuple[Any, ...] = treedef.unflatten(leaves)
    return built


def _captured_key(tensor: Any) -> tuple[Any, ...]:
    if type(tensor) is not Tensor:
        return device_key(tensor, tensor.device)
    array = tensor._array
    return (Tensor, array.dtype, array.shape, array.flags.c_contiguous, tensor._keys)


def with_outputs(graph: Graph, outputs: Sequence[Value]) -> Graph:
    """The same graph, nodes shared, with other outputs."""
    made = Graph()
    made.inputs, made.derived, made.captured, made.constants = (
        graph.inputs,
        graph.derived,
        graph.captured,
        graph.constants,
    )
    made.nodes, made.outputs = list(graph.nodes), list(outputs)
    return made
