"""Joint tracing: trace a function together with its gradient, and make a specialization of both.

The function is traced once, on values of a level that records operators on the leaves that need gradients. Then the
ordinary backward pass runs in the same trace, from cotangents of the results that are further inputs. So custom
derivatives, ``detach``, ``no_grad`` and writes inside the function behave as in eager code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ... import pytree
from ...eager.autograd.autograd_meta import AutogradMeta
from ...eager.autograd.engine import Pass
from ...eager.autograd.lifted_captures import capture_lifters
from ...eager.autograd.node import Node
from ...eager.autograd.view_writes import Step
from ...eager.layers.levels import Level, LevelTensor, open_level, wrap_level
from ...eager.tensor.dunders import by_name
from ...lowering.passes.pipeline import remove_dead_code
from ...named_tuple import NamedTuple
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOCAST, AUTOGRAD
from ...registry.source import source_line
from ...tracer.graph import Graph, Value
from ...tracer.lifting import value_of
from ...tracer.tensor import TracerTensor, make_tracer
from ...tracer.trace import Trace, current_trace
from ..arguments import Arguments, BoundArguments
from ..failed_writes import collect_writes
from ..outputs import Output, OutputTree, make_output_tree
from ..specialization import Specialization
from ..specialize import DYNAMIC, copy_with_outputs, make_specialization, open_trace, unflatten_arguments
from ..writes import find_written
from .autograd_call import Derivative
from .partition import partition

if TYPE_CHECKING:
    from ...registry.types import Function


class RecordingLevel(NamedTuple):
    """The level that records a function, and the captured tensors that were wrapped as its values."""

    level: Level
    captured: dict[int, tuple[Any, LevelTensor]]

    def value(self, tensor: Any) -> LevelTensor:
        """Wrap a captured tensor that requires a gradient as a value of the level."""
        cached = self.captured.get(id(tensor))
        if cached is None:
            value = wrap_level(self.level, _lift_captured(tensor, self.level), AutogradMeta())
            cached = self.captured[id(tensor)] = tensor, value
        return cached[1]


def _lift_captured(tensor: object, level: Level) -> Any:
    """Lift a captured tensor into the levels and the trace around a level."""
    enclosing = capture_lifters.stack[:-1]
    if enclosing:
        with _set_capture_lifters(enclosing):
            return enclosing[-1](tensor)
    trace = current_trace()
    return tensor if trace is None else make_tracer(trace, trace.capture(tensor))


@contextmanager
def _set_capture_lifters(stack: list[Any]) -> Iterator[None]:
    before = capture_lifters.stack
    capture_lifters.stack = stack
    try:
        yield
    finally:
        capture_lifters.stack = before


@contextmanager
def open_recording_level(name: str) -> Iterator[RecordingLevel]:
    """Open a recording level; captured tensors that require gradients become its values when operators use them."""
    with open_level(f"backward of {name}", source_line()) as level:
        result = RecordingLevel(level, {})
        with _set_capture_lifters([*capture_lifters.stack, result.value]):
            yield result


def compute_gradients(roots: list[tuple[Any, int, Any]]) -> dict[AutogradMeta, Any]:
    """Run the backward pass from cotangents of a level's results; autocast is off."""
    with adjust_keys(exclude=AUTOCAST):
        return Pass(keep=False).run(roots)


def specialize_joint(
    fn: Function,
    arguments: Arguments,
    bound: BoundArguments,
    keys: Sequence[tuple[object, ...]],
    wanted: Sequence[int],
    as_recorded: bool = False,
) -> Specialization:
    """Trace a call with its gradient, and split the graph into a forward and a backward pass, without lowering.

    Args:
        fn: the function.
        arguments: how it is called.
        bound: the call.
        keys: the key of each leaf.
        wanted: indices of the leaves that need gradients.
        as_recorded: see :func:`.partition.partition`.
    """
    with open_trace(arguments, bound, keys, fn) as call:
        trace, leaves = call.trace, call.leaves
        trace.writes_states = True
        with open_recording_level(arguments.name) as recording:
            inputs = {index: wrap_level(recording.level, leaves[index], AutogradMeta()) for index in wanted}
            args = [inputs.get(index, leaf) for index, leaf in enumerate(leaves)]
            result = arguments.call(fn, unflatten_arguments(bound.treedef, args), bound.statics)
            tree, metas = unwrap_result(recording.level, result)
        memories = find_written(trace, call.memories)
        output_tree = make_output_tree(trace.graph, tree, call.memories, memories)
        output_tree, roots = _find_gradient_roots(output_tree, metas, trace.graph)
        sources = [*((index, inputs[index]) for index in wanted), *recording.captured.values()]
        count, steps = len(trace.graph.inputs), len(trace.graph.nodes)
        gradients = _trace_gradients(trace, output_tree, roots, [value for _, value in sources])
    graph = trace.graph
    nonzero = [number for number, gradient in enumerate(gradients) if gradient is not None]
    nonzero_gradients = [gradient for gradient in gradients if gradient is not None]
    joint = copy_with_outputs(graph, [*output_tree.computed, *nonzero_gradients])
    split = partition(joint, len(output_tree.computed), len(graph.inputs) - count, as_recorded)
    needed = _find_needed_parameters(split.forward.parameters, joint.outputs[len(output_tree.computed) :])
    forward = _make_forward_program(graph, output_tree, count)
    specialization = make_specialization(fn, bound, call, forward, split.forward, output_tree)
    specialization.writes = collect_writes(trace, memories)
    if specialization.writes:
        specialization.traced = _make_traced_program(graph, steps, forward)
    detached = _find_detached(specialization, metas, wanted)
    if not (roots or detached):
        return specialization  # no gradient flows
    specialization.derivative = Derivative(
        name=arguments.name,
        split=split,
        roots=_find_root_positions(output_tree, roots),
        targets=[sources[number][0] for number in nonzero],
        computed=len(output_tree.computed),
        needed=needed,
        fixed=tuple(index for index, guard in enumerate(call.guards) if guard.kind not in DYNAMIC),
        dynamic=specialization.dynamic,
        detached=detached,
        strided=specialization.strided,
    )
    return specialization


def _find_detached(
    specialization: Specialization, metas: Sequence[AutogradMeta | None], wanted: Sequence[int]
) -> frozenset[int]:
    """The positions in the flat result of views without recording, and of detached arguments that need gradients."""
    graph, dynamic = specialization.graph, specialization.dynamic
    first = len(graph.inputs) + len(graph.derived)

    def needs_gradient(number: int) -> bool:
        if number < len(graph.inputs):
            return dynamic[number] in wanted
        return number >= first and bool(graph.constants[number - first]._keys & AUTOGRAD)

    return frozenset(
        position
        for position, (leaf, meta) in enumerate(zip(specialization.outputs.leaves, metas, strict=True))
        if meta is None and leaf.kind == "parameter" and (leaf.views or needs_gradient(leaf.number))
    )


def _find_root_positions(output_tree: OutputTree, roots: dict[int, AutogradMeta]) -> dict[int, int]:
    """The index in the flat result of each computed result through which a gradient flows."""
    numbers = [leaf.number if leaf.kind == "result" else -1 for leaf in output_tree.leaves]
    return {number: numbers.index(number) for number in roots}


def _find_needed_parameters(parameters: list[Value], gradients: list[Value]) -> set[int]:
    """The indices of the parameters that gradients depend on."""
    seen, worklist = set[Value](), list(gradients)
    while worklist:
        value = worklist.pop()
        if value not in seen:
            seen.add(value)
            worklist.extend(() if value.node is None else value.node.inputs)
    return {number for number, value in enumerate(parameters) if value in seen}


def _make_traced_program(graph: Graph, steps: int, forward: Graph) -> Graph:
    """The traced program without its gradient: the first ``steps`` nodes, with the forward pass's parameters."""
    program = copy_with_outputs(forward, forward.outputs)
    program.nodes = graph.nodes[:steps]
    return program


def _make_forward_program(graph: Graph, output_tree: OutputTree, input_count: int) -> Graph:
    """The graph without the nodes that only gradients need, for display."""
    program = copy_with_outputs(graph, [*graph.outputs, *output_tree.computed])
    program.inputs = graph.inputs[:input_count]
    program = remove_dead_code(program)
    program.outputs = list(graph.outputs)
    return program


def unwrap_result(level: Level, result: object) -> tuple[object, list[AutogradMeta | None]]:
    """Unwrap the level's values in a result; returns the result and the autograd metadata of each leaf, or None."""
    leaves, treedef = pytree.flatten(result)
    metas: list[AutogradMeta | None] = []
    seen: dict[object, AutogradMeta | None] = {}
    for number, leaf in enumerate(leaves):
        meta = None
        if isinstance(leaf, LevelTensor) and leaf._level is level:
            meta, leaf = leaf._meta, leaf._payload
            if meta is not None and not meta.requires_grad:
                meta = None
            if type(leaf) is TracerTensor and seen.setdefault(leaf._value, meta) is not meta:
                leaf = by_name("clone")(leaf)  # the same value with another autograd graph
            leaves[number] = leaf
        metas.append(meta)
    return treedef.unflatten(leaves), metas


def _find_gradient_roots(
    output_tree: OutputTree, metas: list[AutogradMeta | None], graph: Graph
) -> tuple[OutputTree, dict[int, AutogradMeta]]:
    """Find the computed results through which gradients flow, by their index among the computed ones.

    An argument that is returned, or a view of one, gets its autograd graph from the call that makes the view.
    """
    leaves, computed = list(output_tree.leaves), list(output_tree.computed)
    roots: dict[int, AutogradMeta] = {}
    for index, (leaf, meta) in enumerate(zip(output_tree.leaves, metas)):
        if meta is None or meta.node is None:
            continue
        if leaf.kind == "parameter":
            if _is_view_chain(meta, leaf.views):
                continue
            leaf = leaves[index] = Output("result", len(computed))
            computed.append(graph.outputs[index])
        roots[leaf.number] = meta
    return output_tree._replace(leaves=tuple(leaves), computed=tuple(computed)), roots


def _is_view_chain(meta: AutogradMeta, views: tuple[Step, ...]) -> bool:
    """Whether an autograd graph consists of exactly these views of a leaf."""
    node: Any = meta.node
    for view in reversed(views):
        if type(node) is not Node or node.op is not view.op or len(node.edges) != 1:
            return False
        node = node.edges[0][0]
    return type(node) is AutogradMeta


def _trace_gradients(
    trace: Trace, output_tree: OutputTree, roots: dict[int, AutogradMeta], values: list[LevelTensor]
) -> list[Value | None]:
    """Trace the gradient of each value (None if there is none); the cotangents of the roots become graph inputs."""
    cotangents = []
    for number, meta in roots.items():
        gradient = make_tracer(trace, trace.graph.add_input(output_tree.computed[number].spec))
        cotangents.append((meta.node, meta.index, gradient))
    result = compute_gradients(cotangents)
    gradients = [result.get(value._meta) for value in values]  # type: ignore[arg-type]
    return [None if g is None else value_of(trace, g) for g in gradients]
