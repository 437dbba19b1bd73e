"""Timing that survives a noisy machine: interleaved rounds, calibrated inner loops, medians with their spread.

Everything to be compared runs in the same process, one block of calls each per round, so a slow spell of the
machine falls on all of them alike:

>>> from tandem.cli.overhead.measure import Case, interleave
>>> times = interleave({"sum": Case("sum(values)", {"values": range(100)}), "pass": Case("pass")}, seconds=0.05)
>>> times["sum"].median > times["pass"].median
True
"""

import gc
import statistics
import time
import timeit
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

BLOCK_NS = 1_000_000  # the shortest block worth timing
# Runs before each timed block. CPython specializes shared bytecode again for each case, after some 70 runs.
WARM_UP = 200
MIN_ROUNDS, MAX_ROUNDS = 5, 201


@dataclass(frozen=True)
class Case:
    """One thing to time: a statement, run in a loop without a call around it, and the names that it uses."""

    statement: str
    names: Mapping[str, Any] = field(default_factory=dict)

    def timer(self) -> timeit.Timer:
        return timeit.Timer(self.statement, globals=dict(self.names), timer=time.perf_counter_ns)


@dataclass(frozen=True)
class Timing:
    """Nanoseconds of one run of a statement: the median over the rounds and the quartiles around it."""

    median: float
    q1: float
    q3: float
    rounds: int
    samples: tuple[float, ...] = field(default=(), repr=False)

    @property
    def spread(self) -> float:
        """The distance between the quartiles as a share of the median."""
        return (self.q3 - self.q1) / self.median if self.median else 0.0

    def saved_by(self, other: "Timing") -> float:
        """Return the time that the other saves: the median difference over the rounds that ran both."""
        return statistics.median(a - b for a, b in zip(self.samples, other.samples, strict=True))

    def as_dict(self) -> dict[str, float]:
        return {"median_ns": self.median, "q1_ns": self.q1, "q3_ns": self.q3, "rounds": self.rounds}


@contextmanager
def quiet_gc() -> Iterator[None]:
    """Collect now, then not again inside the block."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def calibrate(timer: timeit.Timer, block_ns: int = BLOCK_NS) -> tuple[int, float]:
    """Choose the number of runs in a block; returns it and the nanoseconds that such a block took."""
    loops = 1
    while True:
        taken = timer.timeit(loops)
        if taken >= block_ns:
            return loops, float(taken)
        loops = max(2 * loops, int(1.2 * loops * block_ns / max(taken, 1)))


def interleave(
    cases: Mapping[str, Case],
    *,
    seconds: float = 0.5,
    rounds: int | None = None,
    tick: Callable[[], None] = lambda: None,
) -> dict[str, Timing]:
    """Time every case side by side.

    Args:
        cases: what to time, by name.
        seconds: about how long all rounds together may take; at least ``MIN_ROUNDS`` are run.
        rounds: a fixed number of rounds instead.
        tick: called after each round.

    Returns:
        The timing of one run of each statement, by name.
    """
    timers = {name: case.timer() for name, case in cases.items()}
    with quiet_gc():
        blocks = {name: calibrate(timer) for name, timer in timers.items()}
        if rounds is None:
            per_round = 2 * sum(taken for _, taken in blocks.values()) * 1e-9
            rounds = int(min(MAX_ROUNDS, max(MIN_ROUNDS, seconds / max(per_round, 1e-9))))
        samples = _rounds(timers, {name: loops for name, (loops, _) in blocks.items()}, rounds, tick)
    return {name: _timing(values) for name, values in samples.items()}


def _rounds(
    timers: Mapping[str, timeit.Timer], loops: Mapping[str, int], rounds: int, tick: Callable[[], None]
) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in timers}
    order = list(timers)
    for _ in range(rounds):
        for name in order:
            timers[name].timeit(min(WARM_UP, loops[name]))
            samples[name].append(timers[name].timeit(loops[name]) / loops[name])
        order.append(order.pop(0))  # nobody always runs behind the same neighbour
        tick()
    return samples


def _timing(values: list[float]) -> Timing:
    q1, median, q3 = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return Timing(median, q1, q3, len(values), tuple(values))


def ratio(
    cases: Mapping[str, Case], of: str, to: str, *, seconds: float = 0.5, rounds: int | None = None
) -> float:
    """The median over the rounds of one case's time as a multiple of another's."""
    times = interleave({of: cases[of], to: cases[to]}, seconds=seconds, rounds=rounds)
    return times[of].median / times[to].median
