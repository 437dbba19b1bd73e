"""Install the native entry of reverse mode where passes ask for their next node, once it is hot."""

from __future__ import annotations

import heapq
from typing import Any

from ..... import lazy
from .....eager.autograd.derivative_rules import ActiveRules, Rule
from .....eager.autograd.node import fit
from .....eager.autograd.node_sources import next_node, node_sources
from .....registry import native_type
from .patch_points import TargetCallable
from .runtime import Runtime
from .structs import EntryStruct, StructMemory
from .stubs import ColdCallable

at: Any = lazy.Module(".backends.cpu.fastpath.runtime.rt_backward")


def make_backward_struct(process: StructMemory) -> StructMemory:
    """Return the struct that the entry reads."""
    objects = {"pop": heapq.heappop, "push": heapq.heappush, "fit": fit, "active": ActiveRules, "rule": Rule}
    result = EntryStruct(at.BackwardEntry, process, next_node, **objects)
    result.refer(at.BackwardEntry.minus, -1)
    return result


@native_type.accept_entries
class Advance(TargetCallable):
    """Returns to a pass its next node; once the entry is installed, only nodes that the entry does not step itself."""


class AdvanceStub(ColdCallable):
    """The native entry of reverse mode."""

    record: StructMemory | None = None

    def _install(self) -> None:
        if self.record is None:  # several threads may find it hot, and some of them run the entry already
            self.record = make_backward_struct(self.runtime.process)
        native_type.set_entry(self.function, self.runtime.entry("backward"), self.record.address)


def attach(runtime: Runtime) -> None:
    """Make passes use the native entry; later calls do nothing."""
    if not any(isinstance(one, Advance) for one in node_sources):
        advance = Advance()
        advance.stub = AdvanceStub(runtime, advance, next_node, "backward")
        node_sources.append(advance)
