"""The native entry of reverse mode, put in where passes ask for their nodes once there have been some."""

from __future__ import annotations

import heapq
import warnings
from typing import Any

from .... import config
from ....eager import engine
from ....eager.node import fit
from ....eager.plans import Active, Rule
from ....registry import native_type
from . import rt_backward as at
from .records import Record
from .rt_base import D_GLOBALS, D_SLOW
from .runtime import Runtime


def backward_record(process: Record) -> Record:
    """What the entry reads."""
    found = Record(at.B_SIZE)
    found.point(D_GLOBALS, process)
    for offset, value in {
        D_SLOW: engine.next_node,
        at.B_POP: heapq.heappop,
        at.B_PUSH: heapq.heappush,
        at.B_FIT: fit,
        at.B_ACTIVE: Active,
        at.B_RULE: Rule,
        at.B_MINUS: -1,
    }.items():
        found.refer(offset, value)
    return found


@native_type.accept_entries
class Advance(native_type.NativeCallable):  # type: ignore[misc]
    """Gives a pass the node to step; with the entry in, those that the entry does not step itself.

    Args:
        runtime: the entries of this process.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.record = runtime, backward_record(runtime.process)
        self.cold_steps, self.failure = 0, ""

    def __call__(self, *args: Any) -> Any:
        self.cold_steps += 1
        if self.cold_steps >= config.flags.hot_calls and not self.failure:
            self.put_in()
        return engine.next_node(*args)

    def put_in(self) -> None:
        """Load or compile the entry; if that fails, say so once, and let Python step all nodes from now on."""
        try:
            native_type.set_entry(self, self.runtime.entry("backward"), self.record.address)
        except (RuntimeError, OSError, SyntaxError, ImportError) as error:
            self.failure = f"{type(error).__name__}: {error}"
            warnings.warn(f"backward runs without native code: {self.failure}", RuntimeWarning, stacklevel=3)


def attach(runtime: Runtime) -> None:
    """Have passes ask machine code, once."""
    if not any(isinstance(one, Advance) for one in engine.advances):
        engine.advances.append(Advance(runtime))
