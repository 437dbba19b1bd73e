"""The steps of a graph by position, with the positions that read, write and may take over each value."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ..tracer.graph import Value
from .loop_bodies import find_updates
from .thunks import Thunk, reads_and_writes

if TYPE_CHECKING:
    from .lower import Lowered


class StepTables:
    """The steps of a graph, which keep their positions: a step that has been merged into another leaves None behind.

    Attributes:
        steps: the steps.
        kept: the values that are read by others than the steps.
        readers, writers: the positions of the steps that read and write each value.
        updaters: the positions of the steps that may take over the memory of each value.
    """

    def __init__(self, lowered: Lowered):
        self.lowered = lowered
        self.steps: list[Thunk | None] = list(lowered.steps)
        self.kept = {*lowered.storages, *lowered.graph.parameters, *(value for value, _ in lowered.folded)}
        self.readers: dict[Value, list[int]] = defaultdict(list)
        self.writers: dict[Value, list[int]] = defaultdict(list)
        self.updaters: dict[Value, list[int]] = defaultdict(list)
        for position, step in enumerate(lowered.steps):
            reads, writes = reads_and_writes(step)
            for values, table in ((reads, self.readers), (writes, self.writers)):
                for value in values:
                    table[value].append(position)
            for update in find_updates(step):
                self.updaters[update.source].append(position)
