"""Integers that each iteration of a loop changes by a constant, and loops that run until one of them reaches a bound.

A counter is stored as a function of the number of the iteration, of which LLVM knows a bound: so it proves that the
counter is not negative, or in range. A ``while_loop`` whose condition compares a counter with a number that does not
change has a known number of iterations, and does not evaluate the condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ... import lazy
from ...lowering.fusion.loop_ir import Update
from ...lowering.loop_bodies import MAX_STEP, LoopThunk, find_step
from ...lowering.thunks import KernelThunk, find_constant_number
from ...named_tuple import NamedTuple
from ...registry.dtypes import DType, int64
from ...tracer.graph import Graph, Value
from .codegen.intervals import Interval, integers_of

if TYPE_CHECKING:
    from .index_bounds import Bounds
    from .loop_writer import LoopWriter

_bounds = lazy.Module(".backends.cpu.index_bounds")

MOST_ITERATIONS = 2**56  # of any loop: at four in a nanosecond they take half a year
_IS_LESS = {
    "td::lt.Tensor": (0, 1),
    "td::gt.Tensor": (1, 0),
}  # positions of the smaller and of the larger operand


class Counter(NamedTuple):
    """An integer that each iteration changes by a constant: a carry, or an item of a scan over a range.

    Attributes:
        first: the register of its first value, or the value.
        dtype: its dtype.
        step: the constant.
        memory: the register of its address.
    """

    first: str
    dtype: DType
    step: int
    memory: str

    @property
    def kind(self) -> str:
        """The LLVM type."""
        return f"i{8 * self.dtype.itemsize}"

    @property
    def is_signed(self) -> bool:
        """Whether it may be negative."""
        return self.dtype.kind == "i"


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
            number = constant_number(loop, j)
            first = loop.new_register() if number is None else str(number)
            counter = Counter(first, loop.node.outputs[j].spec.dtype, step, loop.cells[j])
            if number is None:
                loop.emit(f"{first} = load {counter.kind}, ptr {counter.memory}")
            result[j] = counter
    return result


def count_items(loop: LoopWriter, length: int, *, reverse: bool) -> dict[int, Counter]:
    """Return the counters of the items that a scan counts, and reserve their memory."""
    result = {}
    for j, numbers in loop.step.counted.items():
        memory, first, step = f"%{loop.name}_n{j}", int(numbers.start), int(numbers.step)
        loop.reserve_slots(memory, 1)
        if reverse:
            first, step = first + (length - 1) * step, -step
        result[j] = Counter(str(first), loop.step.bodies[0].graph.inputs[j].spec.dtype, step, memory)
    return result


def load_fixed_numbers(loop: LoopWriter, first: int) -> dict[int, Counter]:
    """Load the captured integers on which positions in a loop depend: counters with step 0.

    Each iteration stores them, so that LLVM knows that no update changes them.

    Args:
        loop: the loop, whose operands become the memory of the numbers.
        first: the number of the first input of the body that is neither a carry nor an item.
    """
    inputs, operands = loop.step.bodies[-1].graph.inputs, loop.step.operands
    numbers = [
        j
        for j in range(first, len(operands))
        if not inputs[j].shape and inputs[j].spec.dtype.is_integer and operands[j][0].weak is None
    ]
    used = _bounds.find_bounds(loop.step.bodies, numbers).intervals if numbers else ()
    result = {}
    for j in used:
        memory, number = f"%{loop.name}_n{j}", loop.new_register()
        loop.reserve_slots(memory, 1)
        result[j] = Counter(number, inputs[j].spec.dtype, 0, memory)
        loop.emit(f"{number} = load {result[j].kind}, ptr {loop.operands[j]}, align 1")
        loop.emit(f"store {result[j].kind} {number}, ptr {memory}")  # a bound of the loop may be read from it
        loop.operands[j] = memory
    return result


def constant_number(loop: LoopWriter, carry: int) -> int | None:
    """Return the integer that a carry begins with, if it is a constant."""
    lowered, spec = loop.writer.lowered, loop.node.outputs[carry].spec
    if not spec.dtype.is_integer or spec.shape:
        return None
    number = find_constant_number(loop.step.operands[carry][0], lowered.resolution, lowered.folded)
    return number if type(number) is int else None


def store_counters(loop: LoopWriter, counters: Mapping[int, Counter], iteration: str) -> dict[int, str]:
    """Store counters as functions of the iteration; return their registers."""
    result = {}
    for j, counter in counters.items():
        result[j] = _emit_number(loop, counter, iteration)
        loop.emit(f"store {counter.kind} {result[j]}, ptr {counter.memory}")
    return result


def _emit_number(loop: LoopWriter, counter: Counter, iteration: str) -> str:
    """Return the register of a counter in an iteration."""
    distance, narrow, number = (loop.new_register() for _ in range(3))
    kind, flag, first = counter.kind, "nsw " if abs(counter.step) <= MAX_STEP else "", counter.first
    if not first.startswith("%"):
        bits = 8 * counter.dtype.itemsize
        first = str((int(first) + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1))
    loop.emit(f"{distance} = mul {flag}i64 {iteration}, {counter.step}")
    loop.emit(f"{narrow} = {'bitcast' if kind == 'i64' else 'trunc'} i64 {distance} to {kind}")
    loop.emit(f"{number} = add {kind} {first}, {narrow}")
    return number


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
        if spec.dtype.kind == "u" and number + 1 + bound.step < 0:
            return None  # the last step may pass 0
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
    loop.emit(f"{distance} = sub {kind} {high}, {low}")
    loop.emit(f"{wide} = {'bitcast' if kind == 'i64' else 'zext'} {kind} {distance} to i64")
    less = "slt" if counter.is_signed else "ult"
    loop.emit(f"{known} = icmp {less} {kind} {low}, {high}")
    loop.emit(f"{up} = add i64 {wide}, {step - 1}")
    loop.emit(f"{steps} = udiv i64 {up}, {step}")
    loop.emit(f"{count} = select i1 {known}, i64 {steps}, i64 0")
    if loop.ranges.most_iterations is not None:
        return count
    loop.writer.module.declare("llvm.umin.i64", "i64", "i64", "i64")
    loop.emit(f"{result} = call i64 @llvm.umin.i64(i64 {count}, i64 {MOST_ITERATIONS})")
    return result


def bound_iteration(loop: LoopWriter, iteration: str, stop: int | str) -> None:
    """Tell LLVM that the number of the iteration is below a bound."""
    for bound in (stop,) if isinstance(stop, int) else (stop, loop.ranges.most_iterations or MOST_ITERATIONS):
        _assume(loop, f"icmp ult i64 {iteration}, {bound}")


def _assume(loop: LoopWriter, condition: str) -> None:
    """Tell LLVM that a condition holds."""
    loop.writer.module.declare("llvm.assume", "void", "i1", pure=False)
    known = loop.new_register()
    loop.emit(f"{known} = {condition}")
    loop.emit(f"call void @llvm.assume(i1 {known})")


# -- iterations without bounds checks ----------------------------------------------------------------------------------
def find_limits(loop: LoopWriter, counters: Mapping[int, Counter]) -> Bounds:
    """Return the intervals in which counters are while positions need no checks, unless they are always in them."""
    limits: dict[int, Interval] = {}
    bounds: Bounds = _bounds.find_bounds(loop.step.bodies, counters)
    for j, interval in bounds.intervals.items():
        known = loop.ranges.inputs.get(j)
        inside = interval.intersect(integers_of(counters[j].dtype))
        inside = inside.intersect(integers_of(int64))
        if inside.low <= inside.high and not (known is not None and inside.contains(known)):
            limits[j] = inside
    return bounds._replace(intervals=limits)


def find_proved(loop: LoopWriter, counters: Mapping[int, Counter]) -> dict[int, Interval]:
    """Return the known intervals of counters that LLVM does not derive.

    It does for a constant first value and a constant number of iterations.
    """
    known = loop.ranges.inputs
    is_constant = isinstance(loop.length, int)
    return {
        j: known[j]
        for j, counter in counters.items()
        if j in known and not (is_constant and not counter.first.startswith("%"))
    }


def stores_at_distance(loop: LoopWriter, counters: Mapping[int, Counter]) -> bool:
    """Return whether a loop updates elements and a counter moves by more than one."""
    if all(abs(counter.step) < 2 for counter in counters.values()):
        return False
    steps = (step for body in loop.step.bodies if body.lowered is not None for step in body.lowered.steps)
    kernels = (step.kernel for step in steps if isinstance(step, KernelThunk))
    return any(isinstance(s, Update) for kernel in kernels for stage in kernel.stages for s in stage.body)


def stop_at_limits(
    loop: LoopWriter,
    counters: Mapping[int, Counter],
    limits: Mapping[int, Interval],
    iteration: str,
    stop: str,
) -> str:
    """Return the first iteration, at most ``stop``, in which a counter is beyond its limits; from ``iteration`` on."""
    loop.writer.module.declare("llvm.umin.i64", "i64", "i64", "i64")
    for j, (low, high) in limits.items():
        counter = counters[j]
        number = _emit_number(loop, counter, iteration)
        wide, above, below, inside, left, more, count, known, end, first = (
            loop.new_register() for _ in range(10)
        )
        extend = "bitcast" if counter.kind == "i64" else "sext" if counter.is_signed else "zext"
        loop.emit(f"{wide} = {extend} {counter.kind} {number} to i64")
        loop.emit(f"{above} = icmp sge i64 {wide}, {low}")
        loop.emit(f"{below} = icmp sle i64 {wide}, {high}")
        loop.emit(f"{inside} = and i1 {above}, {below}")
        loop.emit(f"{left} = sub i64 " + (f"{high}, {wide}" if counter.step > 0 else f"{wide}, {low}"))
        loop.emit(f"{more} = udiv i64 {left}, {abs(counter.step) or 1}")
        loop.emit(f"{count} = add i64 {more if counter.step else MOST_ITERATIONS}, 1")
        loop.emit(f"{known} = select i1 {inside}, i64 {count}, i64 0")
        loop.emit(f"{end} = add i64 {iteration}, {known}")
        loop.emit(f"{first} = call i64 @llvm.umin.i64(i64 {stop}, i64 {end})")
        stop = first
    return stop


def assume_limits(
    loop: LoopWriter,
    counters: Mapping[int, Counter],
    limits: Mapping[int, Interval],
    numbers: Mapping[int, str],
) -> None:
    """Tell LLVM that counters are within their limits."""
    for j, (low, high) in limits.items():
        sign = "s" if counters[j].is_signed else "u"
        _assume(loop, f"icmp {sign}ge {counters[j].kind} {numbers[j]}, {low}")
        _assume(loop, f"icmp {sign}le {counters[j].kind} {numbers[j]}, {high}")
