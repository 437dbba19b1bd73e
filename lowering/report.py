"""The table of kernel choices of a lowered graph: how each node is computed, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..named_tuple import NamedTuple
from .thunks import KernelThunk, Thunk


class Row(NamedTuple):
    """The kernel choice of one node.

    Attributes:
        value: dtype and shape of the node's result.
        op: the operator's full name.
        choice: ``"fused"``, ``"reduction"``, ``"view"``, ``"copy"``, ``"constant"``, ``"pieces"``, ``"range"``,
            ``"blas"``, ``"callback"``, ``"interpreted"``.
        why: the reason for the choice.
        group: number of the fusion group that computes the node; None for views and interpreted graphs.
        source: ``file:line`` of the user's code.
    """

    value: str
    op: str
    choice: str
    why: str
    group: int | None
    source: str


class KernelTable:
    """A printable table: one row for each node, then one line for each step.

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
        return "\n".join([*_align_columns([head, *cells]), "", *self.steps])


def _align_columns(rows: list[tuple[str, ...]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def describe_thunk(step: Thunk) -> str:
    """Describe a step in one line."""
    if not isinstance(step, KernelThunk):
        return f"{step.kind}: {step.node.op.name}"
    kernel = step.kernel
    names = ", ".join(node.op.schema.name for node in step.nodes) or "copy"
    space = f"rows {kernel.outer}, inner {kernel.inner}" if kernel.outer else f"inner {kernel.inner}"
    return f"{kernel.name}: {space}, {len(kernel.stages)} stages: {names}"
