"""The whole measurement behind ``tandem overhead``."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from . import machine
from .compare import compare_chain, compare_step
from .layers import python_split, recording_split
from .native import NATIVE_SPLITS, native_state
from .peers import contenders
from .results import Report, Split
from .workloads import LENGTHS, SIZES

Advance = Callable[[str], None]
ATTEMPTS, CLOSE_ENOUGH = 4, 0.1


@dataclass(frozen=True)
class Settings:
    """Settings of the measurement: workloads, sizes and durations.

    Attributes:
        lengths, sizes: operations of the chains, elements of the arrays.
        seconds: for each comparison, about.
        peers: names of other libraries to compare.
    """

    lengths: tuple[int, ...] = LENGTHS
    sizes: tuple[int, ...] = SIZES
    seconds: float = 0.4
    peers: tuple[str, ...] = ()

    @property
    def comparisons(self) -> int:
        """Number of calls of `advance`."""
        return len(self.lengths) * len(self.sizes) + 2


QUICK = Settings(lengths=(1, 10, 30), sizes=(16, 1_000), seconds=0.1)


def measure_consistently(split_of: Callable[..., Split], seconds: float) -> Split:
    """Measure a split until its parts sum to the whole within a tenth; return the best of some attempts otherwise."""
    items: list[Split] = []
    for attempt in range(ATTEMPTS):
        items.append(split_of(seconds=seconds))
        if closure_gap(items[-1]) <= CLOSE_ENOUGH:
            return replace(items[-1], attempts=attempt + 1)
    return replace(min(items, key=closure_gap), attempts=ATTEMPTS)


def closure_gap(split: Split) -> float:
    """Relative difference between the sum of the parts and the whole; 0 for a split without that check."""
    return 0.0 if split.closure is None else abs(split.closure - 1)


def run(settings: Settings, advance: Advance = lambda done: None) -> Report:
    """Measure everything.

    Args:
        settings: what and for how long.
        advance: called with a description after each comparison.

    Returns:
        The report.
    """
    began = time.perf_counter()
    runners = contenders(settings.peers)
    chains = []
    for size in settings.sizes:
        for length in settings.lengths:
            chains.append(compare_chain(length, size, runners, settings.seconds))
            advance(chains[-1].workload)
    step = compare_step(runners, settings.seconds)
    advance(step.workload)
    splits = [
        measure_consistently(split_of, 2 * settings.seconds)
        for split_of in (python_split, recording_split, *NATIVE_SPLITS)
    ]
    advance("layers")
    return Report(
        machine.describe(),
        machine.versions(),
        native_state(),
        chains,
        step,
        splits,
        time.perf_counter() - began,
    )
