"""The profiler: time and memory of each operator call. The package is imported at the first use.

- averages.py: sums of events by name, and their table
- chrome.py: export as a Chrome trace
- events.py: Event, one call or span
- memory.py: the memory that results hold
- session.py: profile, record_function and the Profiler key's kernel

>>> import tandem as td
>>> with td.profiler.profile() as prof:
...     _ = td.exp(td.asarray([1.0, 2.0]))
>>> prof.key_averages()[0].name, prof.key_averages()[0].count
('td::exp', 1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import lazy

if TYPE_CHECKING:
    from .events import Event as Event
    from .session import profile as profile
    from .session import record_function as record_function
else:
    __getattr__, __dir__ = lazy.attach(
        __name__, {".profiler.events": "Event", ".profiler.session": "profile record_function"}
    )

__all__ = ["Event", "profile", "record_function"]
