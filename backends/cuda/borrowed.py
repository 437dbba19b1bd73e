"""Memory that another library owns, and that tandem's streams work on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from .memory import Buffer
from .streams import Stream


class Borrowed(Buffer):
    """A block of another library's; its owner gets it back when what tandem's streams do with it is done.

    Args:
        ptr: the address.
        nbytes: the size.
        owner: what keeps the memory.
        stream: the stream in which the owner uses the memory from then on, which waits; None: it is not known, and the
            host waits. The default stream needs no waiting: other libraries' streams wait for it, as a rule.
    """

    __slots__ = ("stream",)

    def __init__(self, ptr: int, nbytes: int, owner: Any, stream: Stream | None = None):
        super().__init__(ptr, nbytes, block=owner)
        self.stream = stream

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not self.users or ending():
            return
        with contextlib.suppress(
            Exception
        ):  # what the device has met is raised by the next call that asks it
            for stream in self.users:
                with stream.at.briefly():
                    if self.stream is not None:
                        self.stream.wait_stream(stream)
                    elif stream.handle is not None:
                        stream.record_event().synchronize()
