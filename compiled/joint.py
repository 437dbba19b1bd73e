"""Tracing a function together with its gradient, and the specialization that is made of both.

The function is traced once, on values of a level that records what happens to the leaves that need gradients; from the
gradients of its results, which are inputs of the same trace, the ordinary backward pass follows them back. So custom
derivatives, ``detach``, ``no_grad`` and writes inside the function mean what they mean eagerly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from .. import pytree
from ..eager.captured import entrances
from ..eager.dunders import by_name
from ..eager.engine import Pass
from ..eager.levels import Level, LevelTensor, open_level, wrap_level
from ..eager.meta import AutogradMeta
from ..eager.node import Node
from ..lowering.passes import remove_dead_code
from ..registry.keys import DispatchKey
from ..registry.source import source_line
from ..registry.state import adjusted
from ..tracer.graph import Graph, Value
from ..tracer.lifting import value_of
from ..tracer.tensor import TracerTensor, make_tracer
from ..tracer.trace import Trace, current_trace
from .arguments import Arguments, Bound
from .build import MOVING, containers, specialization_of, traced, with_outputs
from .derivative import Derivative
from .outputs import Output, OutputPlan, ViewCall, plan_outputs
from .partition import partition
from .specialization import Specialization
from .writes import written

AUTOCAST = 1 << DispatchKey.Autocast


class Recording(NamedTuple):
    """A level in which a function is being run, and the captured tensors that have become values of it."""

    level: Level
    captured: dict[int, tuple[Any, LevelTensor]]

    def value(self, tensor: Any) -> LevelTensor:
        """The value of the level for a captured tensor that requires a gradient."""
        found = self.captured.get(id(tensor))
        if found is None:
            value = wrap_level(self.level, _below(tensor, self.level), AutogradMeta())
            found = self.captured[id(tensor)] = tensor, value
        return found[1]


def _below(tensor: Any, level: Level) -> Any:
    """What a captured tensor is below a level: a value of a level around it that takes such tensors, or traced."""
    around = entrances.stack[:-1]
    if around:
        with _entering(around):
            return around[-1](tensor)
    trace = current_trace()
    return tensor if trace is None else make_tracer(trace, trace.capture(tensor))


@contextmanager
def _entering(stack: list[Any]) -> Iterator[None]:
    before = entrances.stack
    entrances.stack = stack
    try:
        yield
    finally:
        entrances.stack = before


@contextmanager
def recording(name: str) -> Iterator[Recording]:
    """Open a level that records; recorded tensors from outside become values of it where an operator meets them."""
    with open_level(f"backward of {name}", source_line()) as level:
        found = Recording(level, {})
        with _entering([*entrances.stack, found.value]):
            yield found


def pulled(roots: list[tuple[Any, int, Any]]) -> dict[AutogradMeta, Any]:
    """The gradients of the leaves of a level; casts are made as they would be outside of ``autocast``."""
    with adjusted(exclude=AUTOCAST):
        return Pass(keep=False).run(roots)


def specialize_joint(
    fn: Callable[..., Any],
    arguments: Arguments,
    bound: Bound,
    keys: Sequence[tuple[Any, ...]],
    wanted: Sequence[int],
) -> Specialization:
    """Trace a call whose leaves ``wanted`` need gradients, and split the graph; nothing is lowered yet.

    Args:
        fn: the function.
        arguments: how it is called.
        bound: the call.
        keys: the key of each leaf.
        wanted: numbers of the leaves that need gradients.
    """
    with traced(arguments, bound, keys) as call:
        trace, leaves = call.trace, call.leaves
        trace.writes_states = True
        with recording(arguments.name) as found:
            inputs = {place: wrap_level(found.level, leaves[place], AutogradMeta()) for place in wanted}
            given = [inputs.get(place, leaf) for place, leaf in enumerate(leaves)]
            result = arguments.call(fn, containers(bound.treedef, given), bound.statics)
            tree, metas = taken_out(found.level, result)
        plan = plan_outputs(trace.graph, tree, written(trace, call.memories))
        plan, roots = _rooted(plan, metas, trace.graph)
        sources = [*((place, inputs[place]) for place in wanted), *found.captured.values()]
        count = len(trace.graph.inputs)
        gradients = _gradients(trace, plan, roots, [value for _, value in sources])
    graph = trace.graph
    flowing = [number for number, gradient in enumerate(gradients) if gradient is not None]
    wanted_gradients = [gradient for gradient in gradients if gradient is not None]
    joint = with_outputs(graph, [*plan.computed, *wanted_gradients])
    split = partition(joint, len(plan.computed), len(graph.inputs) - count)
    needed = _parameters_behind(graph.parameters, wanted_gradients)
    forward = _only_results(graph, plan, count)
    made = specialization_of(fn, bound, call, forward, split.forward, plan)
    cut = frozenset(n for n, o in enumerate(plan.leaves) if o.views and metas[n] is None)
    if not (roots or cut):
        return made  # no gradient flows through it
    made.derivative = Derivative(
        name=arguments.name,
        split=split,
        roots={
            number: [o.index if o.kind == "result" else -1 for o in plan.leaves].index(number)
            for number in roots
        },
        targets=[sources[number][0] for number in flowing],
        computed=len(plan.computed),
        needed=needed,
        fixed=tuple(place for place, guard in enumerate(call.guards) if guard.kind not in MOVING),
        moving=made.moving,
        cut=cut,
    )
    return made


def _parameters_behind(parameters: list[Value], gradients: list[Value]) -> set[int]:
    """The numbers of the parameters that gradients depend on."""
    seen, waiting = set[Value](), list(gradients)
    while waiting:
        value = waiting.pop()
        if value not in seen:
            seen.add(value)
            waiting.extend(() if value.node is None else value.node.inputs)
    return {number for number, value in enumerate(parameters) if value in seen}


def _only_results(graph: Graph, plan: OutputPlan, given: int) -> Graph:
    """The graph without what only the gradients need, as it is shown to people."""
    made = with_outputs(graph, [*graph.outputs, *plan.computed])
    made.inputs = graph.inputs[:given]
    made = remove_dead_code(made)
    made.outputs = list(graph.outputs)
    return made


def taken_out(level: Level, result: Any) -> tuple[Any, list[AutogradMeta | None]]:
    """The result with what the level's values wrap, and for each leaf its record where it has one."""
    leaves, treedef = pytree.flatten(result)
    metas: list[AutogradMeta | None] = []
    seen: dict[Any, AutogradMeta | None] = {}
    for number, leaf in enumerate(leaves):
        meta = None
        if isinstance(leaf, LevelTensor) and leaf._level is level:
            meta, leaf = leaf._meta, leaf._payload
            if meta is not None and not meta.requires_grad:
                meta = None
            if type(leaf) is TracerTensor and seen.setdefault(leaf._value, meta) is not meta:
                leaf = by_name("clone")(leaf)  # the same elements with another history
            leaves[number] = leaf
        metas.append(meta)
    return treedef.unflatten(leaves), metas


def _rooted(
    plan: OutputPlan, metas: list[AutogradMeta | None], graph: Graph
) -> tuple[OutputPlan, dict[int, AutogradMeta]]:
    """The results that the graph computes and a gradient flows from, by their number among the computed ones.

    An argument that is returned, or a view of one, is given its history by the call that makes the view.
    """
    leaves, computed = list(plan.leaves), list(plan.computed)
    roots: dict[int, AutogradMeta] = {}
    for place, (leaf, meta) in enumerate(zip(plan.leaves, metas)):
        if meta is None or meta.node is None:
            continue
        if leaf.kind == "parameter":
            if _is_view_chain(meta, leaf.views):
                continue
            leaf = leaves[place] = Output("result", len(computed))
            computed.append(graph.outputs[place])
        roots[leaf.index] = meta
    return plan._replace(leaves=tuple(leaves), computed=tuple(computed)), roots


def _is_view_chain(meta: AutogradMeta, views: tuple[ViewCall, ...]) -> bool:
    """Whether a history is that of these views of a leaf, and nothing else."""
    at: Any = meta.node
    for view in reversed(views):
        if type(at) is not Node or at.op is not view.op or len(at.edges) != 1:
            return False
        at = at.edges[0][0]
    return type(at) is AutogradMeta


def _gradients(
    trace: Trace, plan: OutputPlan, roots: dict[int, AutogradMeta], values: list[LevelTensor]
) -> list[Value | None]:
    """The gradient of each value; None where none flows. The gradients of the roots join the graph's inputs."""
    starts = []
    for number, meta in roots.items():
        gradient = make_tracer(trace, trace.graph.add_input(plan.computed[number].spec))
        starts.append((meta.node, meta.index, gradient))
    found = pulled(starts)
    gradients = [found.get(value._meta) for value in values]
    return [None if g is None else value_of(trace, g) for g in gradients]
