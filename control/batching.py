"""Batching rules of loops and branches: their bodies are traced again on batched values.

A carry is batched if its first value is, or if some step makes it so (a fixpoint). A ``while_loop`` with a batched
condition runs as long as any example continues, and masks the others; a ``switch`` with a batched index computes all
branches and selects the result of each example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeGuard, cast

from ..eager.layers.levels import ALL_RUN, LevelTensor
from ..eager.layers.vmap.kernel import open_batch
from ..eager.layers.vmap.tensor import BatchedTensor, wrap_batched
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..errors import UnsupportedError
from ..operators.declare.batching import BatchInfo, move_to_front
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Value, bodies_of
from .subgraph import retrace, run_graph

if TYPE_CHECKING:
    from ..registry.types import Function
    from .subgraph import BodyInput

    # For each tensor of a list: its batch axis, None if it is not batched.
    Dims = tuple[int | None, ...]
    Results = tuple[tuple[Tensor, ...], Dims]

Flags = list[bool]


def _to_batch_value(value: Value, size: int, is_batched: bool) -> Value:
    """Convert a Value to one with the spec of a whole batch, if it is batched."""
    if not is_batched:
        return value
    return Value(TensorSpec((size, *value.shape), value.spec.dtype, value.spec.device))


def run_on_batch(
    graph: Graph,
    info: BatchInfo,
    flags: Sequence[bool],
    inputs: Sequence[BodyInput],
    must_batch: Sequence[bool],
) -> tuple[list[Tensor], Flags]:
    """Run a graph on inputs of which some are batched; returns the results and their batched flags.

    Args:
        graph: the graph.
        info: the batch.
        flags: for each input, whether it is batched.
        inputs: the inputs.
        must_batch: for each result, whether it must be batched, even if it is equal for all examples.
    """
    size = info.batch_size
    with open_batch("the body of a loop", size, {}, info.axis_name) as level:
        wrapped = [
            wrap_batched(level, cast("Tensor", x)) if flag else x
            for x, flag in zip(inputs, flags, strict=True)
        ]
        outputs = run_graph(graph, wrapped)
    results, batched = [], []
    for x, must in zip(outputs, must_batch, strict=True):
        if isinstance(x, BatchedTensor) and x._level is level:
            batched.append(True)
            results.append(x._payload)
        else:
            batched.append(must)
            results.append(broadcast_to_batch(x, size) if must else x)
    return results, batched


def broadcast_to_batch(x: Tensor, size: int) -> Tensor:
    """Broadcast an unbatched value along a new batch axis."""
    return by_name("broadcast_to")(x, (size, *x.shape))


def batch_graph(
    graph: Graph, info: BatchInfo, flags: Sequence[bool], must_batch: Sequence[bool]
) -> tuple[Graph, Flags]:
    """Trace a graph on batches; returns the new graph and the batched flags of its results."""
    batched: Flags = []

    def run(*inputs: BodyInput) -> list[Tensor]:
        results, result_flags = run_on_batch(graph, info, flags, inputs, must_batch)
        batched.extend(result_flags)
        return results

    values = [
        _to_batch_value(value, info.batch_size, flag) for value, flag in zip(graph.inputs, flags, strict=True)
    ]
    return retrace("the body of a loop", values, run).graph, batched


def find_batched_carries(count: int, flags: Flags, body: Callable[[Flags], Flags]) -> Flags:
    """Find the batched carries, by fixpoint iteration: until a step makes no other carry batched."""
    while True:
        result = body(flags)
        union = [old or new for old, new in zip(flags, result[:count])]
        if union == flags:
            return flags
        flags = union


def _to_flags(dims: Dims) -> Flags:
    return [dim is not None for dim in dims]


def _broadcast_unbatched(values: Sequence[Tensor], flags: Flags, dims: Dims, size: int) -> list[Tensor]:
    return [
        broadcast_to_batch(x, size) if flag and dim is None else x
        for x, flag, dim in zip(values, flags, dims)
    ]


def scan_rule(
    info: BatchInfo,
    in_dims: tuple[None, Dims, Dims, Dims],
    body: Graph,
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    consts: Sequence[BodyInput],
    **options: object,
) -> Results:
    """Batching rule of ``scan``."""
    size, count = info.batch_size, len(carry)
    rest = [*_to_flags(in_dims[2]), *_to_flags(in_dims[3])]
    ys_must_batch = [False] * (len(body.outputs) - count)
    carry_flags = find_batched_carries(
        count,
        _to_flags(in_dims[1]),
        lambda carry_flags: batch_graph(body, info, [*carry_flags, *rest], [*carry_flags, *ys_must_batch])[1],
    )
    graph, batched = batch_graph(body, info, [*carry_flags, *rest], [*carry_flags, *ys_must_batch])
    batched_xs = [_move_steps_first(x) if dim is not None else x for x, dim in zip(xs, in_dims[2])]
    out = info.call(
        graph, _broadcast_unbatched(carry, carry_flags, in_dims[1], size), batched_xs, consts, **options
    )
    dims = [(0 if index < count else 1) if flag else None for index, flag in enumerate(batched)]
    return tuple(out), tuple(dims)


def _move_steps_first(x: Tensor) -> Tensor:
    """Move the axis of steps in front of the batch axis."""
    return move_to_front(x, 1)


def while_rule(
    info: BatchInfo,
    in_dims: tuple[None, None, Dims, Dims],
    condition: Graph,
    body: Graph,
    carry: Sequence[Tensor],
    consts: Sequence[BodyInput],
) -> Results:
    """Batching rule of ``while_loop``."""
    size, count = info.batch_size, len(carry)
    rest = _to_flags(in_dims[3])
    carry_flags = find_batched_carries(
        count,
        _to_flags(in_dims[2]),
        lambda carry_flags: batch_graph(body, info, [*carry_flags, *rest], carry_flags)[1],
    )
    batched_condition, condition_flags = batch_graph(condition, info, [*carry_flags, *rest], [False])
    if condition_flags[0]:
        _reject_io_callbacks(info, "a while_loop whose condition", (condition, body))
        # An unbatched carry stays unbatched only if the body returns it unchanged.
        carry_flags = [
            flag or value is not out for flag, value, out in zip(carry_flags, body.inputs, body.outputs)
        ]
        condition, body = _make_masked_loop(condition, body, info, [*carry_flags, *rest])
    else:
        condition, body = batched_condition, batch_graph(body, info, [*carry_flags, *rest], carry_flags)[0]
    out = info.call(condition, body, _broadcast_unbatched(carry, carry_flags, in_dims[2], size), consts)
    return tuple(out), tuple(0 if flag else None for flag in carry_flags)


def _make_masked_loop(condition: Graph, body: Graph, info: BatchInfo, flags: Flags) -> tuple[Graph, Graph]:
    """Make the condition and the body of a loop that runs while any example continues and masks the others."""
    must_batch = flags[: len(body.outputs)]
    values = [
        _to_batch_value(value, info.batch_size, flag) for value, flag in zip(body.inputs, flags, strict=True)
    ]

    def any_continues(*inputs: Tensor) -> list[Tensor]:
        return [by_name("any")(run_on_batch(condition, info, flags, inputs, [True])[0][0])]

    def step(*inputs: Tensor) -> list[Tensor]:
        continues = run_on_batch(condition, info, flags, inputs, [True])[0][0]
        carry, _ = run_on_batch(body, info, flags, inputs, must_batch)
        return [
            select_examples(continues, x, old) if flag else x
            for x, old, flag in zip(carry, inputs, must_batch)
        ]

    name = "while_loop"
    return retrace(name, values, any_continues).graph, retrace(name, values, step).graph


def select_examples(condition: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Select ``one`` or ``other`` for each example."""
    wide = by_name("reshape")(condition, (condition.shape[0],) + (1,) * (len(one.shape) - 1))
    return by_name("where")(wide, one, other)


def switch_rule(
    info: BatchInfo,
    in_dims: tuple[None, int | None, Dims],
    branches: Sequence[Graph],
    index: Tensor,
    operands: Sequence[BodyInput],
) -> Results:
    """Batching rule of ``switch``."""
    flags, count = _to_flags(in_dims[2]), len(branches[0].outputs)
    if in_dims[1] is not None:
        _reject_io_callbacks(info, "a cond or switch whose index", branches)
        return _run_all_branches(info, branches, index, operands, flags)
    flags_by_branch = [batch_graph(branch, info, flags, [False] * count)[1] for branch in branches]
    must_batch = [any(column) for column in zip(*flags_by_branch)]
    graphs = [batch_graph(branch, info, flags, must_batch)[0] for branch in branches]
    return tuple(info.call(graphs, index, operands)), tuple(0 if flag else None for flag in must_batch)


def _run_all_branches(
    info: BatchInfo, branches: Sequence[Graph], index: Tensor, operands: Sequence[BodyInput], flags: Flags
) -> Results:
    """Run all branches, and select for each example the results of its branch."""
    must_batch = [True] * len(branches[0].outputs)
    common_operands = [
        _find_common_operand(column, branches, operands, flags)
        for column in zip(*(b.outputs for b in branches))
    ]
    branch_index = by_name("astype")(index, by_name("arange")(1).dtype, copy=False)
    branch_index = by_name("clip")(branch_index, 0, len(branches) - 1)
    results = []
    for i, branch in enumerate(branches):
        inputs, input_flags = _mask_gradients(branch_index == i, operands, flags)
        results.append(run_on_batch(branch, info, input_flags, inputs, must_batch)[0])
    selected = results[-1]
    for i in reversed(range(len(branches) - 1)):
        selected = [
            select_examples(branch_index <= i, one, other) for one, other in zip(results[i], selected)
        ]
    dims = tuple(0 if x is None else None for x in common_operands)
    return tuple(y if x is None else x for x, y in zip(common_operands, selected)), dims


def _find_common_operand(
    outputs: Sequence[Value], branches: Sequence[Graph], operands: Sequence[BodyInput], flags: Flags
) -> Tensor | None:
    """The unbatched operand that every branch returns unchanged as this result; else None."""
    first: BodyInput | None = None
    for value, branch in zip(outputs, branches):
        index = branch.inputs.index(value) if value in branch.inputs else None
        if index is None or flags[index] or (first is not None and operands[index] is not first):
            return None
        first = operands[index]
    return cast("Tensor | None", first)


def _mask_gradients(
    is_taken: Tensor, operands: Sequence[BodyInput], flags: Flags
) -> tuple[list[BodyInput], Flags]:
    """Block the gradients of a branch's operands for examples that do not take it.

    Zero times an infinite derivative would be NaN. Returns the operands and their batched flags.
    """
    size, stop = is_taken.shape[0], by_name("stop_gradient")
    masked: list[BodyInput] = []
    masked_flags: Flags = []
    for x, flag in zip(operands, flags):
        if may_need_gradient(x):
            batch = x if flag else broadcast_to_batch(x, size)
            masked.append(select_examples(is_taken, batch, stop(batch)))
            masked_flags.append(True)
        else:
            masked.append(x)
            masked_flags.append(flag)
    return masked, masked_flags


def may_need_gradient(x: object) -> TypeGuard[Tensor]:
    """Whether a value may require a gradient."""
    return isinstance(x, Tensor) and x.dtype.is_inexact and (isinstance(x, LevelTensor) or x.requires_grad)


def _reject_io_callbacks(info: BatchInfo, what: str, graphs: Sequence[Graph]) -> None:
    """Raise UnsupportedError if bodies contain ``io_callback``: it would run for examples that do not take them."""
    worklist = list(graphs)
    while worklist:
        for node in worklist.pop().nodes:
            worklist += bodies_of(node)
            if node.op.name == "debug::io_callback":
                raise UnsupportedError(f"{what} differs from example to example of {info.name} {ALL_RUN}")


BATCHING: dict[str, Function] = {
    "scan": scan_rule,
    "while_loop": while_rule,
    "switch": switch_rule,
}
