"""Results of ``tandem overhead`` as data classes, for JSON, tables and the plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .measure import Timing


@dataclass(frozen=True)
class Comparison:
    """One workload, run by every contender side by side.

    Attributes:
        workload: what ran, for people.
        ops: operations in one call.
        elements: elements of each array.
        times: the time of one call, by contender.
        first_call: nanoseconds of the first call of those that compile.
    """

    workload: str
    ops: int
    elements: int
    times: Mapping[str, Timing]
    first_call: Mapping[str, float]

    def break_even(self, eager: str = "tandem eager", compiled: str = "tandem jit") -> float | None:
        """The number of calls after which compiling has paid; None where it never does."""
        saved = self.times[eager].median - self.times[compiled].median
        paid = self.first_call[compiled] - self.times[compiled].median
        return max(1.0, paid / saved) if saved > 0 else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "ops": self.ops,
            "elements": self.elements,
            "times": {name: timing.as_dict() for name, timing in self.times.items()},
            "first_call_ns": dict(self.first_call),
            "break_even_calls": self.break_even(),
        }


@dataclass(frozen=True)
class Split:
    """One path's time taken apart.

    Where layers are taken away one after another, the parts sum to the whole by construction. Only the sum of parts
    that are measured each by itself is a check.

    Attributes:
        path: which path was measured: never one path's time under another's name.
        call: what was called.
        whole: the time of the complete call.
        parts: nanoseconds by layer.
        note: how the path was reached, or why there is nothing to show.
        attempts: how often it was measured until the parts summed to the whole.
        checked: whether the parts were measured independently of the whole.
    """

    path: str
    call: str
    whole: Timing | None
    parts: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    attempts: int = 1
    checked: bool = False

    @property
    def closure(self) -> float | None:
        """The sum of the parts as a share of the whole; None where it is 1 by construction."""
        return sum(self.parts.values()) / self.whole.median if self.whole and self.checked else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "call": self.call,
            "whole": self.whole.as_dict() if self.whole else None,
            "parts_ns": dict(self.parts),
            "sum_over_whole": self.closure,
            "note": self.note,
            "attempts": self.attempts,
        }


@dataclass(frozen=True)
class Report:
    """Everything of one run, with what a reader needs to judge it."""

    machine: Mapping[str, object]
    versions: Mapping[str, str]
    native: Mapping[str, Any]
    chains: list[Comparison]
    step: Comparison
    splits: list[Split]
    seconds: float

    def chain(self, ops: int, elements: int) -> Comparison:
        """The comparison of one chain."""
        return next(c for c in self.chains if (c.ops, c.elements) == (ops, elements))

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": dict(self.machine),
            "versions": dict(self.versions),
            "native": dict(self.native),
            "chains": [c.as_dict() for c in self.chains],
            "step": self.step.as_dict(),
            "splits": [s.as_dict() for s in self.splits],
            "seconds": self.seconds,
        }
