"""The table that says how each node of a lowered graph is computed, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .steps import KernelStep, Step


class Row(NamedTuple):
    """One node.

    Attributes:
        value: dtype and shape of its result.
        op: the operator's full name.
        choice: ``"fused"``, ``"reduction"``, ``"view"``, ``"copy"``, ``"constant"``, ``"pieces"``, ``"range"``,
            ``"blas"``, ``"callback"``, ``"interpreted"``.
        why: the reason.
        group: number of the group that computes it; None for views and where nothing is compiled.
        source: the user's line.
    """

    value: str
    op: str
    choice: str
    why: str
    group: int | None
    source: str


class KernelTable:
    """The rows, and a line for each step that runs; iterates over the rows and prints as a table.

    Attributes:
        rows: one :class:`Row` per node, in order.
        steps: one line per step, in order.
    """

    def __init__(self, rows: list[Row], steps: list[str]):
        self.rows, self.steps = rows, steps

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        head = ("value", "operator", "choice", "group", "why")
        cells = [
            (r.value, r.op, r.choice, "-" if r.group is None else str(r.group), r.why) for r in self.rows
        ]
        return "\n".join([*_aligned([head, *cells]), "", *self.steps])


def _aligned(rows: list[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def describe_group(step: Step) -> str:
    """One line about a step."""
    if not isinstance(step, KernelStep):
        return f"{step.kind}: {step.node.op.name}"
    kernel = step.kernel
    names = ", ".join(node.op.schema.name for node in step.nodes) or "copy"
    space = f"rows {kernel.outer}, inner {kernel.inner}" if kernel.outer else f"inner {kernel.inner}"
    return f"{kernel.name}: {space}, {len(kernel.stages)} stages: {names}"
