"""Make a specialization: trace the function and describe its results.

The function runs on tracers: the Tracer key's kernel (tracer/kernel.py:trace_call) appends each call to the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import config, lazy
from ..eager.layers.autocast import context_key
from ..eager.tensor.weak_scalars import number_of
from ..named_tuple import NamedTuple
from ..pytree import TreeDef
from ..registry.dispatch.state import state
from ..registry.dtypes import as_dtype, default_float
from ..registry.values import TensorSpec
from ..tracer import generators as _generators  # noqa: F401 - lets generators draw in a trace
from ..tracer.aliases import Aliases
from ..tracer.graph import Graph, Value, scalar_spec
from ..tracer.scalar import TracerScalar
from ..tracer.tensor import make_tracer
from ..tracer.trace import Trace, tracing
from ..tracer.weak import make_weak_tracer
from .arguments import Arguments, BoundArguments
from .failed_writes import collect_writes
from .guards.captured import MaskGuard, guard_captured
from .guards.externals import Reachable, find_attributes, find_externals
from .guards.integer_ranges import find_ranges
from .guards.leaves import DefaultValue, LeafGuard, make_guard
from .guards.versions import read_registry_time, read_versions
from .outputs import OutputTree, make_output_tree
from .specialization import Specialization
from .writes import find_written

if TYPE_CHECKING:
    from ..registry.types import Function

_complex_numbers = lazy.Module(".jit.complex_numbers")
_strided_parameters = lazy.Module(".jit.strided_parameters")
_verifier = lazy.Module(".tracer.verify")
DYNAMIC = ("tensor", "array", "scalar", "weak")
"""The kinds of dynamic leaves, whose values are inputs of the graph."""


def _make_tracer(trace: Trace, guard: LeafGuard, leaf: object) -> object:
    """Make the tracer of a leaf; a static leaf is returned as it is."""
    if guard.kind in ("scalar", "weak"):
        number = TracerScalar(
            trace, trace.graph.add_input(scalar_spec(guard.type), guard.type), number_of(leaf)
        )
        return number if guard.kind == "scalar" else make_weak_tracer(number)
    if guard.kind not in DYNAMIC:
        return leaf
    value = trace.graph.add_input(TensorSpec(tuple(guard.shape), as_dtype(guard.dtype), guard.device))
    tensor = make_tracer(trace, value)
    Aliases(value, "an argument", is_written_back=True, is_contiguous=guard.strides is None).add(tensor)
    return tensor


def specialize(
    fn: Function, arguments: Arguments, bound: BoundArguments, keys: Sequence[tuple[object, ...]]
) -> Specialization:
    """Trace a call and make a specialization for calls like it, without lowering.

    Args:
        fn: the function.
        arguments: how it is called.
        bound: the call.
        keys: the key of each leaf.
    """
    with open_trace(arguments, bound, keys, fn) as call:
        trace = call.trace
        trace.writes_states = True
        result = arguments.call(fn, unflatten_arguments(bound.treedef, call.leaves), bound.statics)
        memories = find_written(trace, call.memories)
        output_tree = make_output_tree(trace.graph, result, call.memories, memories)
    graph = trace.graph
    program = copy_with_outputs(graph, output_tree.computed)
    if any(guard.type is complex for guard in call.guards):
        program = _complex_numbers.pass_as_arrays(program)
    program.keeps_layout = False
    made = make_specialization(fn, bound, call, graph, program, output_tree)
    made.writes = collect_writes(trace, memories)
    return made


class TracedCall(NamedTuple):
    """A call that is being traced.

    Attributes:
        trace: the trace.
        guards, paths: of the call's leaves.
        before: the registry time before tracing began.
        leaves: the tracers of the leaves.
        memories: the memory of each of the graph's inputs.
        reachable: the tensors that the function reached through guarded variables and attributes.
    """

    trace: Trace
    guards: tuple[LeafGuard, ...]
    paths: tuple[str, ...]
    before: int
    leaves: list[Any]
    memories: list[Aliases | None]
    reachable: Reachable


@contextmanager
def open_trace(
    arguments: Arguments, bound: BoundArguments, keys: Sequence[tuple[object, ...]], fn: Function
) -> Iterator[TracedCall]:
    """Open a trace for a call whose leaves have these keys; with ``config.verify`` the graph is verified at the end.

    The captured tensors that the function reaches through guarded variables and attributes may be written.
    """
    guards, paths, before = (
        tuple(map(make_guard, keys)),
        tuple(arguments.paths(bound.treedef)),
        read_registry_time(),
    )
    externals = find_externals(fn)
    externals = (*externals, *find_attributes(fn, externals))
    fixed = (leaf for leaf, guard in zip(bound.leaves, guards) if guard.kind not in DYNAMIC)
    objects = (leaf.value if type(leaf) is DefaultValue else leaf for leaf in fixed)
    reachable = Reachable(fn, externals, (*bound.statics, *objects))
    with tracing(arguments.name) as trace:
        trace.writable = reachable.tensors
        trace.names = [path for path, guard in zip(paths, guards) if guard.kind in DYNAMIC]
        leaves = [_make_tracer(trace, guard, leaf) for guard, leaf in zip(guards, bound.leaves)]
        dynamic = [leaf for leaf, guard in zip(leaves, guards) if guard.kind in DYNAMIC]
        memories = [getattr(leaf, "_aliases", None) for leaf in dynamic]
        yield TracedCall(trace, guards, paths, before, leaves, memories, reachable)
    if config.flags.verify:
        _verifier.verify(trace.graph, after="tracing")


def make_specialization(
    fn: Callable[..., Any],
    bound: BoundArguments,
    call: TracedCall,
    graph: Graph,
    program: Graph,
    output_tree: OutputTree,
) -> Specialization:
    """Make a specialization for calls like one that was traced.

    Args:
        fn, bound: the function and the call.
        call: its trace.
        graph: the traced graph, or its part that computes the results.
        program: the graph to lower.
        output_tree: the sources of the results.
    """
    guards, first = call.guards, len(graph.inputs) + len(graph.derived)
    written = [graph.constants[index - first] for index in output_tree.written if index >= first]
    attributes = call.reachable.find_guards(graph.constants, written)
    externals = find_externals(fn)
    dynamic = tuple(index for index, guard in enumerate(guards) if guard.kind in DYNAMIC)
    captured = tuple(guard_captured(tensor, first + n) for n, tensor in enumerate(graph.constants))
    layouts = [
        *enumerate(guards[index].strides for index in dynamic),
        *((c.parameter, c.leaf.strides) for c in captured),
    ]
    strided = tuple((parameter, strides) for parameter, strides in layouts if strides and program.nodes)
    return Specialization(
        treedef=bound.treedef,
        guards=guards,
        paths=call.paths,
        statics=bound.static_keys,
        static_values=bound.statics,
        include=state.include,
        exclude=state.exclude,
        context=context_key(),
        default_dtype=default_float(),
        externals=(*externals, *find_attributes(fn, externals), *attributes),
        captured=captured,
        masks=tuple({id(mask): MaskGuard(mask, known) for mask, known in call.trace.masks}.values()),
        versions=read_versions(call.trace.graph, call.before),
        scalar_types=tuple(item.value.weak for item in graph.derived),  # type: ignore[misc]
        graph=graph,
        program=_strided_parameters.read_by_strides(program, strided) if strided else program,
        strided=strided,
        dynamic=dynamic,
        outputs=output_tree,
        ranges=find_ranges(graph),
    )


def unflatten_arguments(treedef: TreeDef, leaves: Sequence[object]) -> tuple[object, ...]:
    """Rebuild the dynamic arguments from their leaves."""
    built: tuple[object, ...] = treedef.unflatten(leaves)
    return built


def copy_with_outputs(graph: Graph, outputs: Sequence[Value]) -> Graph:
    """Copy a graph with other outputs; the nodes are shared."""
    made = Graph()
    made.inputs, made.derived, made.captured, made.constants = (
        graph.inputs,
        graph.derived,
        graph.captured,
        graph.constants,
    )
    made.nodes, made.outputs = list(graph.nodes), list(outputs)
    return made
