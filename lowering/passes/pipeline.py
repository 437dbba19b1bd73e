"""The pass pipeline: functions from a graph to a graph that computes the same values, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import config, lazy
from ...eager.tensor.tensor import Tensor
from ...errors import TandemError
from ...registry.operator import find_operator
from ...tracer.graph import Graph, Node, Value, call_key, map_values
from ..interpreter import call_kernel
from ..kernel_selection import uniform_constant
from ..layout import contiguous, is_view, proves_equal, view_layout
from .rewrite import Replacement, empty_like, has_effects, new_node, replace_arguments, rewrite
from .simplify import simplify_node

_verifier = lazy.Module(".tracer.verify")
carry_rows = lazy.Functions(".lowering.passes.carry_rows").carry_rows
hoist_scatters = lazy.Functions(".lowering.passes.hoist_scatter_add").hoist_scatters
hoist_invariants = lazy.Functions(".lowering.passes.licm").hoist_invariants
prune_control = lazy.Functions(".lowering.passes.loop_dce").prune_control
hoist_products = lazy.Functions(".lowering.passes.loop_passes").hoist_products
inline_calls = lazy.Functions(".lowering.passes.loop_passes").inline_calls
put_into_joins = lazy.Functions(".lowering.passes.put_into_joins").put_into_joins
compute_parts = lazy.Functions(".lowering.passes.complex_parts").compute_parts
write_short_dots = lazy.Functions(".lowering.passes.short_dots").write_short_dots
write_short_sorts = lazy.Functions(".lowering.passes.short_sorts").write_short_sorts
sink_updates = lazy.Functions(".lowering.passes.sink_updates").sink_updates
sink_permutes = lazy.Functions(".lowering.passes.sink_permutes").sink_permutes
sink_ranges = lazy.Functions(".lowering.passes.sink_ranges").sink_ranges
sink_selects = lazy.Functions(".lowering.passes.sink_selects").sink_selects
tile_loops = lazy.Functions(".lowering.passes.tile_loops").tile_loops
tile_rows = lazy.Functions(".lowering.passes.tile_rows").tile_rows
split_stacks = lazy.Functions(".lowering.passes.split_stacks").split_stacks
SORTS = frozenset(("td::argsort", "td::argtopk", "td::sort_values"))
"""The operators that sort."""
MAX_FOLDED_SIZE = 1024  # elements; storing larger constants costs more than computing them


def remove_dead_code(graph: Graph) -> Graph:
    """Remove nodes whose results are unused; nodes with effects stay."""
    live = {o for o in graph.outputs if isinstance(o, Value)}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if has_effects(node) or any(o in live for o in node.outputs):
            kept.append(node)
            live.update(node.inputs)
    out = empty_like(graph)
    out.nodes, out.outputs = kept[::-1], list(graph.outputs)
    return out


def merge_common_subexpressions(graph: Graph) -> Graph:
    """Compute the same operator on the same arguments once: common subexpression elimination (CSE)."""
    seen: dict[object, tuple[Value, ...]] = {}

    def visit(node: Node) -> Replacement:
        if has_effects(node):
            return None
        result = seen.setdefault(call_key(node), node.outputs)
        return None if result is node.outputs else result

    return rewrite(graph, visit)


def fold_constants(graph: Graph) -> Graph:
    """Evaluate small nodes that depend on no input; their results are appended to the captured tensors."""
    folded: dict[Value, Any] = {}
    extra: list[Value] = []

    def visit(node: Node) -> Replacement:
        if has_effects(node) or not all(value in folded for value in node.inputs) or not _is_foldable(node):
            return None
        try:
            results = call_kernel(
                node, map_values(folded.__getitem__, node.args), _substitute_kwargs(node, folded)
            )
        except TandemError:
            return None  # the error is raised at run time
        values = tuple(Value(o.spec) for o in node.outputs)
        folded.update(zip(values, results, strict=True))
        extra.extend(values)
        return values

    out = rewrite(graph, visit)
    used = {value for node in out.nodes for value in node.inputs} | {
        o for o in out.outputs if isinstance(o, Value)
    }
    for value in extra:
        if value in used:
            value.index = len(out.captured)
            out.captured.append(value)
            out.constants.append(folded[value])
    return out


def _substitute_kwargs(node: Node, folded: dict[Value, object]) -> dict[str, object]:
    return {name: map_values(folded.__getitem__, arg) for name, arg in node.kwargs.items()}


def _is_foldable(node: Node) -> bool:
    """Whether a node can be folded: small CPU results of known sizes, not weak, random or filled with one number."""
    decl = node.op.decl
    return (
        decl is not None
        and decl.kind not in ("random", "custom", "control")
        and uniform_constant(node) is None
        and all(
            isinstance(o.spec.size, int)
            and o.spec.size <= MAX_FOLDED_SIZE
            and o.weak is None
            and o.spec.device == "cpu"
            for o in node.outputs
        )
    )


def simplify(graph: Graph) -> Graph:
    """Apply algebraic rules that are exact in IEEE arithmetic (see :mod:`.simplify`)."""
    return rewrite(graph, simplify_node)


def canonicalize_views(graph: Graph) -> Graph:
    """Remove chains of views that are the identity: double transposes, reshapes there and back."""
    bases: dict[Value, tuple[Value, Any]] = {}

    def visit(node: Node) -> Replacement:
        if not is_view(node) or not isinstance(node.args[0], Value) or node.args[0].weak is not None:
            return None
        source, out = node.args[0], node.outputs[0]
        base, layout = bases.get(source, (source, contiguous(source.shape)))
        result = view_layout(node, layout)
        if result is None:
            return None
        bases[out] = base, result
        whole = contiguous(base.shape).canonical()
        same = proves_equal(result.canonical(), whole) and proves_equal(base.spec, out.spec)
        return (base,) if same else None

    return rewrite(graph, visit)


def _view_base(value: Value) -> Value:
    """The base of a chain of views; a value that is not a view is its own base."""
    while value.node is not None and is_view(value.node) and isinstance(value.node.args[0], Value):
        value = value.node.args[0]
    return value


def copy_aliased_outputs(graph: Graph, original: Graph) -> Graph:
    """Copy outputs that share memory only because of the passes: a caller must not see ``x * 1`` alias ``x``."""
    out = rewrite(graph, lambda node: None)
    shown: dict[Value, Value] = {}
    for index, (now, before) in enumerate(zip(graph.outputs, original.outputs, strict=True)):
        if isinstance(now, Value) and now.weak is None:
            own, owner = _view_base(before), _view_base(now)
            if (owner if owner.node is None else shown.setdefault(owner, own)) is not own:
                copy = new_node(find_operator("td::clone"), (now,), {}, now.spec, "")
                out.nodes.append(copy)
                out.outputs[index] = copy.outputs[0]
    return out


def optimize_bodies(graph: Graph) -> Graph:
    """Run the passes on the bodies of loops and branches, except those of ``_OF_WHOLE_GRAPHS``."""
    if not _has_control(graph):
        return graph
    out = empty_like(graph)
    env: dict[Value, Value] = {}
    for node in graph.nodes:
        kwargs = {name: map_values(lambda v: env.get(v, v), arg) for name, arg in node.kwargs.items()}
        args = map_values(lambda v: env.get(v, v), node.args)
        if _kind(node) == "control":
            args = tuple(optimize_body(arg) for arg in args)
        made = replace_arguments(node, args, kwargs)
        env.update(zip(node.outputs, made.outputs))
        out.nodes.append(made)
    out.outputs = [env.get(o, o) if isinstance(o, Value) else o for o in graph.outputs]
    return out


def _has_control(graph: Graph) -> bool:
    return any(_kind(node) == "control" for node in graph.nodes)


def _is_needed(run: Pass, graph: Graph) -> bool:
    """Whether a pass may change a graph; the modules of those that may not are not loaded."""
    if run in NATIVE_PASSES:
        return config.flags.native and any(node.op.name in NATIVE_PASSES[run] for node in graph.nodes)
    if run is sink_updates:
        operators = {node.op.name for node in graph.nodes}
        return "td::where" in operators and not operators.isdisjoint(("td::index_put", "td::basic_put"))
    if run is compute_parts:
        return any(node.op.name == "td::view_part" for node in graph.nodes)
    if run is put_into_joins:
        operators = {node.op.name for node in graph.nodes}
        return operators.issuperset(("td::concat", "td::basic_put"))
    if run is sink_selects:
        return any(node.op.name == "td::where" and node.outputs[0].spec.size == 1 for node in graph.nodes)
    if run is sink_permutes:
        return any(node.op.name == "td::permute" for node in graph.nodes)
    return run not in CONTROL_PASSES or _has_control(graph)


def _kind(node: Node) -> str:
    return str(getattr(node.op.decl, "kind", ""))


def optimize_body(arg: object) -> object:
    """Run the passes on an argument of a loop or a branch that is a body, or several; others are returned unchanged."""
    if type(arg) is tuple and arg and type(arg[0]) is Graph:
        return tuple(map(optimize_body, arg))
    if type(arg) is not Graph:
        return arg
    for run in PASSES:
        if run not in _OF_WHOLE_GRAPHS and _is_needed(run, arg):
            arg = run(arg)
    return arg


Pass = Callable[[Graph], Graph]
PASSES: tuple[Pass, ...] = (
    inline_calls,
    compute_parts,
    remove_dead_code,
    sink_ranges,
    fold_constants,
    simplify,
    canonicalize_views,
    sink_permutes,
    merge_common_subexpressions,
    put_into_joins,
    write_short_dots,
    write_short_sorts,
    sink_updates,
    sink_selects,
    split_stacks,
    remove_dead_code,
    optimize_bodies,
    prune_control,
    hoist_products,
    hoist_scatters,
    prune_control,
    hoist_invariants,
    carry_rows,
    tile_loops,
    tile_rows,
    remove_dead_code,
)
"""The passes of lowering, in order."""
_OF_WHOLE_GRAPHS = (fold_constants, tile_rows)
"""The passes that do not run on bodies: one would add captured tensors there, and one tiles the outer loops first."""
NATIVE_PASSES: dict[Pass, frozenset[str]] = {
    write_short_dots: frozenset(("td::matmul",)),
    write_short_sorts: SORTS,
    split_stacks: frozenset(("td::concat",)),
    tile_rows: frozenset(("control::scan", "control::while_loop", "control::switch")),
}
"""The passes for native code, and the operators of which a graph needs one."""
CONTROL_PASSES = frozenset(
    (
        inline_calls,
        sink_ranges,
        prune_control,
        hoist_products,
        hoist_scatters,
        carry_rows,
        hoist_invariants,
        tile_loops,
    )
)
"""The passes that change loops, branches and calls only."""


def optimize(graph: Graph) -> Graph:
    """Run all passes; with ``config.verify`` the graph is verified after each.

    Args:
        graph: the traced graph, which is not changed.

    Returns:
        A graph with the same inputs and outputs. Its captured tensors are those of ``graph``, then folded constants.
    """
    original = graph
    for run in PASSES:
        if _is_needed(run, graph):
            graph = _verify(run(graph), run.__name__)
    return _verify(copy_aliased_outputs(graph, original), copy_aliased_outputs.__name__)


def _verify(graph: Graph, after: str) -> Graph:
    if config.flags.verify:
        _verifier.verify(graph, after)
    return graph


def folded_constants(graph: Graph, original: Graph) -> list[tuple[Value, Tensor]]:
    """The constants that :func:`fold_constants` added to the captured tensors of ``original``."""
    start = len(original.captured)
    return list(zip(graph.captured[start:], graph.constants[start:], strict=True))
