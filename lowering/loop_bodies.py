"""Thunks of loops and branches: their lowered bodies, the sources of body results, and the memory that they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .. import lazy
from ..named_tuple import NamedTuple
from ..registry.dtypes import uint8
from ..registry.operator import find_operator
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Node, Value, bodies_of
from .buffer_assignment import nbytes_of
from .cost_model import CELL_BYTES
from .fusion.pieces import is_update
from .fusion.ranges import Range
from .layout import contiguous
from .passes.rewrite import has_effects, new_node
from .thunks import AliasCandidate, KernelThunk, NodeThunk, Thunk

if TYPE_CHECKING:
    from .lower import Lowered, Output

_moved_carries = lazy.Module(".lowering.moved_carries")

MAX_STEP = 64  # of a counter: 2**56 steps do not overflow

Lower = Callable[[Graph, Sequence[Value], Sequence[int]], Any]


class Source(NamedTuple):
    """The source of a result of a body: ``"computed"``, ``"input"`` or ``"constant"``, and the index among those."""

    kind: str
    number: int


class Body(NamedTuple):
    """A lowered body.

    Attributes:
        graph: the graph of the body.
        lowered: the lowered graph; None if all results are inputs.
        sources: the source of each result.
    """

    graph: Graph
    lowered: Any
    sources: tuple[Source, ...]

    @property
    def written(self) -> frozenset[int]:
        """The numbers of the inputs whose memory the body writes."""
        return frozenset() if self.lowered is None else frozenset(self.lowered.written)


class CarryMoves(NamedTuple):
    """The carries of a loop whose next values are in the memory of other carries.

    Attributes:
        sources: for each of them, the carry whose memory it takes over in the next iteration.
        pools: for each carry whose memory moves on and that is computed or copied, the buffers that it is written to in
            turn.
        starts: the memory in which carries begin, where the body writes what moves.
        in_place: for each operand that may begin in the memory of a result, the number of the result.
    """

    sources: Mapping[int, int]
    pools: Mapping[int, tuple[Value, ...]]
    starts: Mapping[int, Value]
    in_place: Mapping[int, int]


NO_MOVES = CarryMoves({}, {}, {}, {})


class LoopThunk(NodeThunk):
    """A loop or a branch with compiled bodies.

    Attributes:
        bodies: in the order of the node's arguments.
        workspace: memory for one call of a body.
        doubles: two buffers for each carry that is not stored in place and does not move: one is read while the other
            is written. One of them is the result's, but for small carries, which LLVM keeps in registers.
        flag: memory for the condition of a while loop.
        in_place: for each operand that a body writes, the result that is stored in its memory, or in a copy of it.
        owned: the carries that begin in memory of the loop, because the body writes it.
        moves: the carries that are in the memory of other ones in the next iteration.
        counted: the items of a scan that are integers at equal distances, by operand: the loop counts them.
        copies: the operands of a branch that a body writes and that are no common result, with memory for a copy.
    """

    def __init__(
        self,
        step: NodeThunk,
        bodies: tuple[Body, ...],
        *,
        doubles: Mapping[int, tuple[Value, Value]] = MappingProxyType({}),
        flag: Value | None = None,
        in_place: Mapping[int, int] = MappingProxyType({}),
        owned: frozenset[int] = frozenset(),
        moves: CarryMoves = NO_MOVES,
        counted: Mapping[int, Range] = MappingProxyType({}),
        copies: Mapping[int, Value] = MappingProxyType({}),
    ) -> None:
        super().__init__(step.kind, step.node, step.operands)
        nbytes = max(
            (body.lowered.memory.workspace for body in bodies if body.lowered is not None), default=0
        )
        self.workspace = Value(TensorSpec((nbytes,), uint8)) if nbytes else None
        self.bodies, self.doubles, self.flag = bodies, doubles, flag
        self.in_place, self.owned, self.moves = in_place, owned, moves
        self.counted, self.copies = counted, copies

    @property
    def reads(self) -> list[Value]:
        """The values whose buffers the loop reads."""
        return [root for number, (root, _) in enumerate(self.operands) if number not in self.counted]

    @property
    def temporaries(self) -> list[Value]:
        """Values whose buffers the loop needs only while it runs."""
        single = [value for value in (self.workspace, self.flag) if value is not None]
        turns = (*self.doubles.values(), *self.moves.pools.values(), self.moves.starts.values())
        buffers = dict.fromkeys(value for one in turns for value in one)
        return [*single, *self.copies.values(), *(v for v in buffers if v not in self.node.outputs)]


def find_updates(step: Thunk) -> Iterator[AliasCandidate]:
    """The values whose memory a step may take over, with the results that it stores there."""
    if isinstance(step, KernelThunk):
        if step.updated is not None:
            yield step.updated
    elif isinstance(step, LoopThunk):
        for operand, out in step.in_place.items():
            yield AliasCandidate(*step.operands[operand], step.node.outputs[out])


def make_loop_thunk(step: NodeThunk, lower: Lower, find_range: Callable[[Value], Range | None]) -> LoopThunk:
    """Make the thunk of a control node: lower its bodies and size its temporaries.

    Args:
        step: the call of the node.
        lower: lowers a graph; see :func:`lower_body`.
        find_range: returns the numbers that a value counts, if it is a range of integers.
    """
    name = step.node.op.schema.name
    if name == "switch":
        return _make_branch_thunk(step, lower)
    carried = len(step.node.args[1 if name == "scan" else 2])
    *conditions, graph = bodies_of(step.node)
    body = lower_body(graph, lower, graph.inputs[:carried], graph.outputs[carried:])
    bodies = (*(lower_body(condition, lower) for condition in conditions), body)
    outputs = step.node.outputs[:carried]
    moves: CarryMoves = _moved_carries.find_moves(
        body, outputs, step.node.kwargs["length"] if name == "scan" else None
    )
    owned = body.written.union(moves.starts)
    in_place = {j: j for j in body.written if body.sources[j] == Source("input", j)}
    in_place.update(moves.in_place)
    moved = {*in_place, *moves.sources, *moves.pools}
    doubles = {j: _make_doubles(out) for j, out in enumerate(outputs) if j not in moved}
    flag = Value(TensorSpec((1,), uint8)) if name == "while_loop" else None
    items = step.operands[carried : carried + len(step.node.args[2])] if name == "scan" else ()
    ranges = {
        number: find_range(root) if layout == contiguous(root.shape) else None
        for number, (root, layout) in enumerate(items, carried)
    }
    counted = {number: numbers for number, numbers in ranges.items() if numbers is not None}
    return LoopThunk(
        step, bodies, doubles=doubles, flag=flag, in_place=in_place, owned=owned, moves=moves, counted=counted
    )


def _make_branch_thunk(step: NodeThunk, lower: Lower) -> LoopThunk:
    """Make the thunk of a switch: a branch may write an input that is the same result of each branch."""
    graphs = bodies_of(step.node)
    donated = [number for number in range(len(graphs[0].inputs)) if _is_updated_result(number, graphs)]
    bodies = tuple(lower_body(graph, lower, [graph.inputs[n] for n in donated]) for graph in graphs)
    results = {number: _find_result(number, bodies) for number in _written_inputs(bodies)}
    in_place = {number + 1: out for number, out in results.items() if out is not None}
    copies = {
        number + 1: Value(graphs[0].inputs[number].spec) for number, out in results.items() if out is None
    }
    return LoopThunk(step, bodies, in_place=in_place, copies=copies)


def _is_updated_result(number: int, graphs: Sequence[Graph]) -> bool:
    """Whether one result of all branches is an input, or the input with written elements."""
    return any(
        all(_find_updated(graph.outputs[out]) is graph.inputs[number] for graph in graphs)
        for out in range(len(graphs[0].outputs))
    )


def _find_updated(value: object) -> object:
    """The value whose elements a chain of updates, loops and branches ends in `value` with."""
    while isinstance(value, Value) and value.node is not None:
        node = value.node
        decl = node.op.decl
        spec = getattr(decl, "index_spec", None)
        if getattr(decl, "kind", "") == "control":
            value = _find_carried(node, node.outputs.index(value))
        elif (spec is not None and spec.writes) or is_update(node):
            value = node.args[0]
        else:
            return value
    return value


def _find_carried(node: Node, out: int) -> object:
    """The first value of a loop's carry, or the operand of a branch that may become a result; None if there is none."""
    name = node.op.schema.name
    if name != "switch":
        carry = node.args[1 if name == "scan" else 2]
        return carry[out] if out < len(carry) else None
    graphs = bodies_of(node)
    numbers = {
        next((n for n, one in enumerate(graph.inputs) if _find_updated(graph.outputs[out]) is one), None)
        for graph in graphs
    }
    (number, *others) = numbers
    return None if others or number is None else node.inputs[number + 1]


def _written_inputs(bodies: tuple[Body, ...]) -> frozenset[int]:
    return frozenset().union(*(body.written for body in bodies))


def _find_result(number: int, bodies: tuple[Body, ...]) -> int | None:
    """The number of the result that is an input in each body, if no other result is."""
    source = Source("input", number)
    numbers = {tuple(n for n, one in enumerate(body.sources) if one == source) for body in bodies}
    (first, *others) = numbers
    return first[0] if not others and len(first) == 1 else None


def find_step(graph: Graph, carry: int) -> int | None:
    """The small integer that each iteration of a body adds to a carry; None if it changes in another way."""
    before, after = graph.inputs[carry], graph.outputs[carry]
    if not isinstance(after, Value) or after.node is None or not before.spec.dtype.is_integer:
        return None
    sign = {"td::add.Tensor": 1, "td::sub.Tensor": -1}.get(after.node.op.name)
    numbers = [one for one in after.node.args if one is not before]
    if sign is None or len(numbers) != 1 or type(numbers[0]) is not int or after.spec != before.spec:
        return None
    if sign < 0 and after.node.args[0] is not before:
        return None
    return sign * numbers[0] if abs(numbers[0]) <= MAX_STEP and not before.shape else None


def _make_doubles(out: Value) -> tuple[Value, Value]:
    is_small = nbytes_of(out) <= CELL_BYTES
    return (Value(out.spec) if is_small else out), Value(out.spec)


def lower_body(
    graph: Graph, lower: Lower, donated: Sequence[Value] = (), stacked: Sequence[object] = ()
) -> Body:
    """Lower a body so that each result that it computes has its own buffer.

    Args:
        graph: the body.
        lower: lowers a graph, given the inputs whose memory its steps may write, and the numbers of the results that
            have memory of their own.
        donated: inputs whose memory the body may write, unless they are results themselves.
        stacked: results that the loop stacks: computed in donated memory they would be copied into the stack.
    """
    inputs = {value: index for index, value in enumerate(graph.inputs)}
    computed = list(dict.fromkeys(o for o in graph.outputs if o not in inputs))
    if not computed and not any(map(has_effects, graph.nodes)):
        return Body(graph, None, tuple(Source("input", inputs[o]) for o in graph.outputs))
    part = Graph()
    part.inputs, part.nodes, part.outputs = graph.inputs, list(graph.nodes), list(computed)
    donated = [value for value in donated if value not in graph.outputs and value.weak is None]
    placed = [index for index, value in enumerate(computed) if value in stacked]
    lowered = lower(part, donated, placed)
    shared = [index for index in range(len(computed)) if not _is_own(lowered, index)]
    if shared:
        for index in shared:
            copy = new_node(find_operator("td::clone"), (computed[index],), {}, computed[index].spec, "")
            part.nodes.append(copy)
            part.outputs[index] = copy.outputs[0]
        lowered = lower(part, donated, placed)
    mapping = {value: _source(lowered.outputs[index]) for index, value in enumerate(computed)}
    return Body(
        graph,
        lowered,
        tuple(mapping[o] if o in mapping else Source("input", inputs[o]) for o in graph.outputs),
    )


def _source(output: Output) -> Source:
    kinds = {"storage": "computed", "parameter": "input"}
    return Source(kinds.get(output.kind, output.kind), output.index)


def _is_own(lowered: Lowered, index: int) -> bool:
    """Whether a result fills a storage that no other result shares, or is an unchanged constant."""
    output = lowered.outputs[index]
    if output.kind == "constant":
        return bool(output.same)
    alone = sum(o.kind == output.kind and o.index == output.index for o in lowered.outputs) == 1
    layout = output.layout
    is_written = output.kind == "parameter" and output.index in lowered.written
    if (output.kind != "storage" and not is_written) or layout is None or not alone:
        return False
    size = (lowered.graph.parameters if is_written else lowered.storages)[output.index].spec.size
    return bool(output.same or (layout.is_contiguous and layout.size == size))
