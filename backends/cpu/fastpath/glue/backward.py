"""Install the native entry of reverse mode where passes ask for their next node, once it is hot."""

from __future__ import annotations

import heapq
import warnings
from typing import Any

from ..... import config
from .....eager.autograd import engine
from .....eager.autograd.derivative_rules import ActiveRules, Rule
from .....eager.autograd.node import fit
from .....registry import native_type
from ..compiler.structs import sizeof
from ..runtime import rt_backward as at
from ..runtime.rt_base import OperatorEntry
from .runtime import Runtime
from .structs import StructMemory


def make_backward_struct(process: StructMemory) -> StructMemory:
    """Return the struct that the entry reads."""
    result = StructMemory(sizeof(at.BackwardEntry))
    result.point(OperatorEntry.globals_, process)
    for offset, value in {
        OperatorEntry.fall_back: engine.next_node,
        at.BackwardEntry.pop: heapq.heappop,
        at.BackwardEntry.push: heapq.heappush,
        at.BackwardEntry.fit: fit,
        at.BackwardEntry.active: ActiveRules,
        at.BackwardEntry.rule: Rule,
        at.BackwardEntry.minus: -1,
    }.items():
        result.refer(offset, value)
    return result


@native_type.accept_entries
class Advance(native_type.NativeCallable):  # type: ignore[misc]
    """Returns to a pass the node to step; once the entry is installed, only nodes that the entry does not step itself.

    Args:
        runtime: the entries of this process.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.record = runtime, make_backward_struct(runtime.process)
        self.cold_steps, self.failure = 0, ""

    def __call__(self, *args: Any) -> Any:
        self.cold_steps += 1
        if self.cold_steps >= config.flags.hot_calls and not self.failure:
            self.install()
        return engine.next_node(*args)

    def install(self) -> None:
        """Load or compile the entry; on failure warn once, and let Python step all nodes from now on."""
        try:
            native_type.set_entry(self, self.runtime.entry("backward"), self.record.address)
        except (RuntimeError, OSError, SyntaxError, ImportError) as error:
            self.failure = f"{type(error).__name__}: {error}"
            warnings.warn(f"backward runs without native code: {self.failure}", RuntimeWarning, stacklevel=3)


def attach(runtime: Runtime) -> None:
    """Make passes use the native entry; later calls do nothing."""
    if not any(isinstance(one, Advance) for one in engine.node_sources):
        engine.node_sources.append(Advance(runtime))
