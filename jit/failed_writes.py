"""Failed calls of jitted functions that write into arguments: leave the memory as eager code would.

Compiled code writes arguments back at its end, and may reorder nodes. So a call that fails is run once more by the
interpreter in program order, up to the node that raises; the writes before that node are applied to the arguments, and
its exception is raised. Callbacks with effects do not run again: their results are collected while the compiled code
runs. After a loop or a branch that contains such callbacks, only the writes before it are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..lowering.interpreter import CHECK_OP, call_kernel, effects, is_control, to_argument, to_payload
from ..lowering.passes.rewrite import has_effects
from ..named_tuple import NamedTuple
from ..tracer.aliases import Aliases
from ..tracer.graph import Graph, Node, Value, bodies_of, map_values
from ..tracer.trace import Trace
from .writes import write_back

Environment = dict[Value, Any]


class Write(NamedTuple):
    """A write of the traced program into an argument.

    Attributes:
        position: the number of nodes before the write.
        number: the index of the parameter.
        value: the new contents of its memory.
    """

    position: int
    number: int
    value: Value


def collect_writes(trace: Trace, written: dict[Aliases, int]) -> tuple[Write, ...]:
    """Collect the writes of a trace into arguments and generator states, in order."""
    return tuple(
        Write(position, written[memory], value)
        for position, memory, value in trace.written
        if memory in written
    )


def run_with_write_recovery(
    run: Callable[[], object], graph: Graph, parameters: Sequence[object], writes: Sequence[Write]
) -> object:
    """Run compiled code; if it raises, first apply the writes that preceded the failure.

    Args:
        run: runs the compiled code.
        graph: the traced program.
        parameters: a tensor or a Python scalar for each of the graph's parameters.
        writes: its writes.
    """
    before = effects.results
    done: list[Any] = []
    effects.results = done
    try:
        return run()
    except Exception as fault:
        effects.results = None
        first = _replay_writes(graph, parameters, writes, iter(done))
        raise (fault if first is None else first) from None
    finally:
        effects.results = before


def _replay_writes(
    graph: Graph, parameters: Sequence[object], writes: Sequence[Write], done: Iterator[object]
) -> Exception | None:
    """Apply the writes before the first node that raises; returns its exception, or None if a callback raised."""
    env: Environment = {
        value: to_argument(value, to_payload(item))
        for value, item in zip(graph.parameters, parameters, strict=True)
    }
    for position, node in enumerate(graph.nodes):
        try:
            results = _rerun_node(node, env, done)
        except Exception as fault:
            _apply_writes(parameters, writes, position, env)
            return fault
        if results is None:
            _apply_writes(parameters, writes, position, env)
            return None
        env.update(zip(node.outputs, results, strict=True))
    return None  # the second run did not fail, so the position of the failure is unknown


def _rerun_node(node: Node, env: Environment, done: Iterator[object]) -> Any:
    """Run a node again; None if that is not possible: a callback that raised, or callbacks inside a loop."""
    if has_effects(node) and not only_checks(node):
        return None if is_control(node) else next(done, None)
    args = map_values(env.__getitem__, node.args)
    return call_kernel(
        node, args, {name: map_values(env.__getitem__, arg) for name, arg in node.kwargs.items()}
    )


def only_checks(node: Node) -> bool:
    """Whether the only effect of a node, or of its bodies, is to raise."""
    if is_control(node):
        inside = (inner for body in bodies_of(node) for inner in body.nodes)
        return all(only_checks(inner) for inner in inside if has_effects(inner))
    return node.op.name == CHECK_OP


def _apply_writes(
    parameters: Sequence[object], writes: Sequence[Write], position: int, env: Environment
) -> None:
    values = {write.number: write.value for write in writes if write.position <= position}
    write_back(parameters, [(index, env[value].clone()) for index, value in values.items()])
