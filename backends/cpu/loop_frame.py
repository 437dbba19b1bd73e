"""The blocks of one loop: iterations between two polls for signals, and the poll.

The iterations between two polls call nothing but the body, so LLVM keeps an element that a step stores in a register
for the next step. Where positions follow from counters, iterations are written twice. The first copy runs while the
counters are within limits, from which LLVM proves that positions are in bounds and not negative; the second checks
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from . import loop_counters
from .loop_cost import RELEASE_NS

if TYPE_CHECKING:
    from .codegen.intervals import Interval
    from .loop_counters import Counter
    from .loop_writer import LoopWriter

FIRST_POLL_NS = 5000.0  # estimated time after which a loop polls for the first time
UNPOLLED_NS = RELEASE_NS  # estimated time of the longest loop that never polls
MAX_FIRST_POLL = 256  # iterations
SCALAR_LOOP = """
!9000 = distinct !{!9000, !9001}
!9001 = !{!"llvm.loop.vectorize.enable", i1 false}
"""
UNROLLED = 4  # iterations of a loop that LLVM does not unroll, because it may end in the middle of each

Iteration: TypeAlias = "Callable[[LoopFrame, list[str]], Sequence[str]]"
"""Writes an iteration: takes the pointers to the carries, and returns those to the next ones."""


class LoopFrame:
    """Writes the blocks of one loop.

    Args:
        loop: the loop.
        firsts: the pointers to the first values of the carries.
        body_time: the estimated time of an iteration, in nanoseconds, until a loop in it polls for the first time.

    Attributes:
        block: the prefix of the labels of the iterations that are being written.
        iteration: the register of the number of the iteration.
        copies: the iterations that are written one after the other, with one test whether to stop.
        counters: the integers that the loop counts, by the number of the body's input.
        polls: whether the loop may run beyond the first poll.
    """

    def __init__(self, loop: LoopWriter, firsts: Sequence[str], body_time: float):
        self.loop, self.firsts, self.iteration_time = loop, firsts, 2.0 + body_time
        self.block, self.iteration, self.copies = loop.name, "", 1
        self.counters: dict[int, Counter] = {}
        self.changing = [j for j in range(len(firsts)) if j not in loop.cells and j not in loop.fixed]
        self.first_poll = self._find_first_poll()
        self.polls = True

    def _emit(self, text: str) -> None:
        self.loop.emit(text)

    def _label(self, name: str) -> None:
        self.loop.writer.lines.append(f"{self.block}_{name}:")

    def _find_first_poll(self) -> int:
        """Return the iteration of the first poll."""
        return max(1, min(MAX_FIRST_POLL, int(FIRST_POLL_NS / self.iteration_time)))

    def _find_polls(self) -> bool:
        """Return whether the loop polls, and tell the writer how long it runs until it does, or ends."""
        loop = self.loop
        most = loop.length if isinstance(loop.length, int) else loop.ranges.most_iterations
        if loop.length is None or most is None or most * self.iteration_time > UNPOLLED_NS:
            loop.writer.loop_times[loop.number] = self.first_poll * self.iteration_time
            return True
        loop.writer.loop_times[loop.number] = most * self.iteration_time
        return False

    def _start_timer(self) -> None:
        """Initialize the loop's state for `rt_gil.gil_poll`."""
        loop = self.loop
        loop.allocate_scratch(f"%{loop.name}_timer", 16)
        self._emit(f"store [2 x i64] [ i64 0, i64 {self.first_poll} ], ptr %{loop.name}_timer")

    def write(self, counters: dict[int, Counter], write_iteration: Iteration) -> list[str]:
        """Write the loop; return the pointers to the final carries."""
        loop, name, self.counters = self.loop, self.block, counters
        limits, has_others = loop_counters.find_limits(loop, counters)
        if self.changing:
            limits, has_others = {}, False
        self.polls = self._find_polls()
        if self.polls:
            self._start_timer()
        first_stop = self._first_stop()
        loop.jump("pre")
        self._label("pre")
        loop.jump("turn")
        self._label("turn")
        for j in self.changing:
            self._emit_turn("ptr", f"t{j}", self.firsts[j], f"c{j}")
        self._emit_turn("i64", "it", "0", "i")
        self._emit_turn("i64", "stop", str(first_stop), "later")
        before, start = f"{name}_turn", f"%{name}_it"
        if limits or has_others:
            self.copies = UNROLLED if has_others or loop.length is None else 1  # LLVM unrolls others
            stop = loop_counters.stop_at_limits(loop, counters, limits, start, f"%{name}_stop")
            self.block = f"{name}_u"
            self._write_iterations(write_iteration, (before, start), (stop, f"{name}_rest"), limits)
            before, start, self.block = f"{name}_rest", f"%{name}_u_i", name
            self._label("rest")
        self.block, self.copies = name, 1
        state = self._write_iterations(
            write_iteration, (before, start), (f"%{name}_stop", f"{name}_pause"), {}
        )
        self._poll()
        self._label("done")
        return state

    def _emit_turn(self, type_: str, result: str, first: str, after_poll: str) -> None:
        """Select a value before the first iterations, or after a poll."""
        name = self.block
        polled = f", [ %{name}_{after_poll}, %{name}_polled ]" if self.polls else ""
        self._emit(f"%{name}_{result} = phi {type_} [ {first}, %{name}_pre ]{polled}")

    def _write_iterations(
        self,
        write_iteration: Iteration,
        before: tuple[str, str],
        after: tuple[str, str],
        limits: Mapping[int, Interval],
    ) -> list[str]:
        """Write the blocks of the iterations; return the pointers to the carries.

        Args:
            write_iteration: writes an iteration.
            before: the label of the block before, and the register of the first iteration.
            after: the iteration that is not run any more, and the label of the block that follows.
            limits: the intervals in which counters are.
        """
        loop, block, first = self.loop, self.block, f"%{self.block}_i"
        self._emit(f"br label %{block}_head")
        self._label("head")
        state = []
        for j, carry in enumerate(self.firsts):
            state.append(loop.cells.get(j, carry if j in loop.fixed else f"%{block}_c{j}"))
        for j in self.changing:
            turn, next_ = f"[ %{block}_t{j}, %{before[0]} ]", f"[ %{block}_d{j}, %{block}_next ]"
            self._emit(f"{state[j]} = phi ptr {turn}, {next_}")
        self._emit(f"{first} = phi i64 [ {before[1]}, %{before[0]} ], [ %{block}_in, %{block}_next ]")
        self._emit(f"%{block}_last = add i64 {first}, {self.copies - 1}")
        self._emit(f"%{block}_m = icmp ult i64 %{block}_last, {after[0]}")
        self._emit(f"br i1 %{block}_m, label %{block}_go, label %{after[1]}")
        self._label("go")
        bound = loop_counters.MOST_ITERATIONS if loop.length is None else loop.length
        proved = loop_counters.find_proved(loop, self.counters)
        for copy in range(self.copies):
            self.iteration = f"%{block}_i{copy}" if copy else first
            if copy:
                self._emit(f"{self.iteration} = add nuw nsw i64 {first}, {copy}")
            loop_counters.bound_iteration(loop, self.iteration, bound)
            numbers = loop_counters.store_counters(loop, self.counters, self.iteration)
            loop_counters.assume_limits(loop, self.counters, {**proved, **limits}, numbers)
            following = write_iteration(self, state)
        self._emit(f"br label %{block}_next")
        self._label("next")
        for j in self.changing:
            self._emit(f"%{block}_d{j} = getelementptr i8, ptr {following[j]}, i64 0")
        self._emit(f"%{block}_in = add nuw nsw i64 {first}, {self.copies}")
        self._emit(f"br label %{block}_head{self._loop_metadata()}")
        return state

    def _loop_metadata(self) -> str:
        """Keep LLVM from vectorizing a loop that stores at a distance: it takes the vector apart for each store."""
        if not loop_counters.stores_at_distance(self.loop, self.counters):
            return ""
        self.loop.writer.extra.append(SCALAR_LOOP)
        return ", !llvm.loop !9000"

    def _first_stop(self) -> int | str:
        """Return the iteration at which the first run of the iterations ends."""
        length = self.loop.length
        if length is None or not self.polls:
            return self.first_poll if length is None else length
        if isinstance(length, int):
            return min(self.first_poll, length)
        stop = self.loop.new_register()
        self._emit(f"{stop} = call i64 @llvm.umin.i64(i64 {self.first_poll}, i64 {length})")
        return stop

    def _poll(self) -> None:
        """Write the poll: other threads run and Python handles signals, so that an endless loop can be interrupted.

        A loop that always ends before its first poll has none: LLVM unrolls it.
        """
        loop, name = self.loop, self.block
        self._label("pause")
        if not self.polls:
            loop.jump("done")
            return
        is_failed, failed = loop.new_register(), loop.new_register()
        if loop.length is not None:
            self._emit(f"%{name}_all = icmp uge i64 %{name}_i, {loop.length}")
            self._emit(f"br i1 %{name}_all, label %{name}_done, label %{name}_poll")
            self._label("poll")
        loop.restore_mode()  # signal handlers must see denormal numbers as usual
        last = loop_counters.MOST_ITERATIONS if loop.length is None else loop.length
        arguments = f"ptr %state, ptr %{name}_timer, i64 %{name}_i, i64 {last}"
        self._emit(f"%{name}_later = call i64 @gil_poll({arguments})")
        self._emit(f"{is_failed} = icmp eq i64 %{name}_later, 0")
        self._emit(f"{failed} = zext i1 {is_failed} to i32")
        loop.return_if_failed(failed)
        loop.resume_flush()
        loop.jump("polled")
        self._label("polled")
        loop.jump("turn")
