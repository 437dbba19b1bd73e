"""Buffers of memory that another library owns."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from .memory import Buffer
from .streams import Stream


class ExternalBuffer(Buffer):
    """Memory of another library; the owner is released when the work of tandem's streams on the memory is done.

    Args:
        ptr: the address.
        nbytes: the size.
        owner: the object that keeps the memory.
        stream: the owner's stream, which then waits for that work; None: it is not known, and the host waits. No wait
            is needed for work in the default stream: other libraries' streams normally wait for it.
    """

    __slots__ = ("stream",)

    def __init__(self, ptr: int, nbytes: int, owner: Any, stream: Stream | None = None):
        super().__init__(ptr, nbytes, block=owner)
        self.stream = stream

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not self.users or ending():
            return
        with contextlib.suppress(Exception):  # errors of the device are raised by the next call on it
            for stream in self.users:
                with stream.at.as_current():
                    if self.stream is not None:
                        self.stream.wait_stream(stream)
                    elif stream.handle is not None:
                        stream.record_event().synchronize()
