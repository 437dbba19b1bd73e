"""Rows of the speed table: each is a ratio to a peer, measured interleaved in one process.

A row measures and says how it compares with its bounds; where a peer is missing it says so.  ``must_show.py``
prints all rows; ``test_bounds.py`` runs them under pytest-benchmark.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tandem import lazy
from tandem.cli.overhead.measure import Case, interleave
from tandem.cli.overhead.peers import LOADERS, Contender

NAMES = {"torch": "PyTorch", "jax": "jax.jit", "numba": "numba"}


class BrokenBoundError(Exception):
    """A bound is not met."""


@dataclass(frozen=True)
class Finding:
    """One comparison: with whom, the ratio measured (None: could not be), the bound, and what else to know."""

    beside: str
    ratio: float | None
    bound: float
    note: str = ""

    @property
    def kept(self) -> bool | None:
        """Whether the bound is met; None if nothing could be measured."""
        return None if self.ratio is None else self.ratio <= self.bound


@dataclass(frozen=True)
class Row:
    """One promise: its name and the function that measures it for about so many seconds."""

    name: str
    measure: Callable[[float], list[Finding]]


def peer(name: str) -> Contender | None:
    """A peer, or None if it is not is_installed."""
    return LOADERS[name]() if lazy.is_installed(name) else None


def missing(name: str, bound: float) -> Finding:
    return Finding(NAMES[name], None, bound, f"{name} is not installed")


def beside(
    ours: Case, theirs: dict[str, Case | None], bounds: dict[str, float], seconds: float
) -> list[Finding]:
    """tandem's time as a multiple of each peer's."""
    present = {name: case for name, case in theirs.items() if case is not None}
    times = interleave({"tandem": ours, **present}, seconds=seconds)
    result = []
    for name, bound in bounds.items():
        if name in present:
            note = f"{times['tandem'].median:.0f} ns beside {times[name].median:.0f} ns"
            ratio = times["tandem"].median / times[name].median
            result.append(Finding(NAMES.get(name, name), ratio, bound, note))
        else:
            result.append(missing(name, bound))
    return result


def beside_best(ours: Case, theirs: dict[str, Case | None], bound: float, seconds: float) -> list[Finding]:
    """tandem's time as a multiple of the fastest peer's."""
    present = {name: case for name, case in theirs.items() if case is not None}
    absent = [name for name in theirs if name not in present]
    note = f"without {', '.join(absent)}, not installed" if absent else ""
    if not present:
        return [Finding("the best", None, bound, note)]
    times = interleave({"tandem": ours, **present}, seconds=seconds)
    best = min(present, key=lambda name: times[name].median)
    described = ", ".join(f"{name} {timing.median / 1e6:.2f} ms" for name, timing in times.items())
    ratio = times["tandem"].median / times[best].median
    return [Finding(f"the best ({NAMES.get(best, best)})", ratio, bound, f"{described} {note}".strip())]


def warmed(case: Case, runs: int = 100) -> Case:
    """The case after enough runs that everything in it is compiled."""
    case.timer().timeit(runs)
    return case


def check(findings: Iterable[Finding], info: dict[str, Any]) -> None:
    """For the tests: record every ratio, then check every bound."""
    findings = list(findings)
    for value in findings:
        info[f"beside {value.beside}"] = {"ratio": value.ratio, "bound": value.bound, "note": value.note}
    broken = [f"{f.ratio:.3f} x {f.beside}, bound {f.bound} ({f.note})" for f in findings if f.kept is False]
    if broken:
        raise BrokenBoundError("; ".join(broken))
