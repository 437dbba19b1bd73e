"""Integers that each iteration of a loop changes by a constant, and loops that run until one of them reaches a bound.

A counter is stored as a function of the number of the iteration, of which LLVM knows a bound: so it proves that the
counter is not negative, or in range. A ``while_loop`` whose condition compares a counter with a number that does not
change has a known number of iterations, and does not evaluate the condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lowering.loop_bodies import LoopThunk, find_step
from ...lowering.thunks import find_constant_number
from ...named_tuple import NamedTuple
from ...tracer.graph import Graph, Value

if TYPE_CHECKING:
    from .loop_writer import LoopWriter

MOST_ITERATIONS = 2**56  # of any loop: at four in a nanosecond they take half a year
_IS_LESS = {
    "td::lt.Tensor": (0, 1),
    "td::gt.Tensor": (1, 0),
}  # positions of the smaller and of the larger operand


class Counter(NamedTuple):
    """An integer carry that each iteration changes by a constant.

    Attributes:
        first: the register of its first value, or the value.
        kind: its LLVM type.
        step: the constant.
        is_signed: whether it may be negative.
    """

    first: str
    kind: str
    step: int
    is_signed: bool


class Bound(NamedTuple):
    """The condition of a loop: a counter that grows is less than a number that does not change, or the reverse.

    Attributes:
        counter: the index of the counter among the carries.
        step: what an iteration adds to it.
        number: the number, or the index of the input that holds it.
        is_input: whether it is an input.
    """

    counter: int
    step: int
    number: int
    is_input: bool


def load_counters(loop: LoopWriter, carried: int) -> dict[int, Counter]:
    """Load the first values of the counters among the small carries."""
    result = {}
    for j in range(carried):
        step = find_step(loop.step.bodies[-1].graph, j) if j in loop.cells else None
        if step is not None:
            dtype = loop.node.outputs[j].spec.dtype
            kind, number = f"i{8 * dtype.itemsize}", constant_number(loop, j)
            first = loop.new_register() if number is None else str(number)
            if number is None:
                loop.emit(f"{first} = load {kind}, ptr {loop.cells[j]}")
            result[j] = Counter(first, kind, step, dtype.kind == "i")
    return result


def constant_number(loop: LoopWriter, carry: int) -> int | None:
    """Return the integer that a carry begins with, if it is a constant."""
    lowered, spec = loop.writer.lowered, loop.node.outputs[carry].spec
    if not spec.dtype.is_integer or spec.shape:
        return None
    number = find_constant_number(loop.step.operands[carry][0], lowered.resolution, lowered.folded)
    return number if type(number) is int else None


def store_counters(loop: LoopWriter, counters: dict[int, Counter]) -> None:
    """Store counters as functions of the iteration."""
    for j, counter in counters.items():
        distance, narrow, number = (loop.new_register() for _ in range(3))
        kind = counter.kind
        loop.emit(f"{distance} = mul nsw i64 %{loop.name}_i, {counter.step}")
        loop.emit(f"{narrow} = {'bitcast' if kind == 'i64' else 'trunc'} i64 {distance} to {kind}")
        loop.emit(f"{number} = add {kind} {counter.first}, {narrow}")
        loop.emit(f"store {kind} {number}, ptr {loop.cells[j]}")


# -- loops with a known number of iterations ---------------------------------------------------------------------------
def find_bound(step: LoopThunk, carried: int) -> Bound | None:
    """Return the condition of a ``while_loop`` as a bound of a counter; None if it is another one."""
    condition, body = step.bodies
    (holds,) = condition.graph.outputs
    if not isinstance(holds, Value) or holds.node is None or len(condition.graph.nodes) != 1:
        return None
    positions = _IS_LESS.get(holds.node.op.name)
    if positions is None:
        return None
    small, large = (holds.node.args[position] for position in positions)
    inputs = condition.graph.inputs
    for one, other, sign in ((small, large, 1), (large, small, -1)):
        counter = inputs.index(one) if isinstance(one, Value) and one in inputs else carried
        distance = find_step(body.graph, counter) if counter < carried else None
        if distance is not None and distance * sign > 0:
            return _find_bound(
                condition.graph, body.graph, Bound(counter, distance, 0, False), other, carried
            )
    return None


def _find_bound(condition: Graph, body: Graph, bound: Bound, number: object, carried: int) -> Bound | None:
    """Return the bound with its number, if that does not change and the counter does not overflow."""
    spec = condition.inputs[bound.counter].spec
    if type(number) is int:
        most = 2 ** (8 * spec.dtype.itemsize - 1) - 1 - abs(bound.step)
        return bound._replace(number=number) if abs(number) <= most else None
    if not isinstance(number, Value) or number not in condition.inputs or abs(bound.step) > 1:
        return None
    index = condition.inputs.index(number)
    is_fixed = index >= carried or body.outputs[index] is body.inputs[index]
    if not is_fixed or number.weak is not None or number.spec != spec:
        return None
    return bound._replace(number=index, is_input=True)


def count_iterations(loop: LoopWriter, counter: Counter, bound: Bound, pointers: list[str]) -> int | str:
    """Return the number of iterations, or its register.

    Args:
        loop: the loop.
        counter: the counter.
        bound: its bound.
        pointers: the pointers to the inputs of the body.
    """
    kind, limit, step = counter.kind, str(bound.number), abs(bound.step)
    if bound.is_input:
        limit = loop.new_register()
        loop.emit(f"{limit} = load {kind}, ptr {pointers[bound.number]}")
    elif not counter.first.startswith("%"):
        return min(max(-((int(counter.first) - bound.number) // bound.step), 0), MOST_ITERATIONS)
    low, high = (counter.first, limit) if bound.step > 0 else (limit, counter.first)
    distance, wide, known, up, steps, count, result = (loop.new_register() for _ in range(7))
    loop.writer.module.declare("llvm.umin.i64", "i64", "i64", "i64")
    loop.emit(f"{distance} = sub {kind} {high}, {low}")
    loop.emit(f"{wide} = {'bitcast' if kind == 'i64' else 'zext'} {kind} {distance} to i64")
    less = "slt" if counter.is_signed else "ult"
    loop.emit(f"{known} = icmp {less} {kind} {low}, {high}")
    loop.emit(f"{up} = add i64 {wide}, {step - 1}")
    loop.emit(f"{steps} = udiv i64 {up}, {step}")
    loop.emit(f"{count} = select i1 {known}, i64 {steps}, i64 0")
    loop.emit(f"{result} = call i64 @llvm.umin.i64(i64 {count}, i64 {MOST_ITERATIONS})")
    return result


def bound_iteration(loop: LoopWriter, stop: int | str) -> None:
    """Tell LLVM that the number of the iteration is below a bound."""
    loop.writer.module.declare("llvm.assume", "void", "i1", pure=False)
    for bound in (stop,) if isinstance(stop, int) else (stop, MOST_ITERATIONS):
        known = loop.new_register()
        loop.emit(f"{known} = icmp ult i64 %{loop.name}_i, {bound}")
        loop.emit(f"call void @llvm.assume(i1 {known})")
