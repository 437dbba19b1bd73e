"""What kernels meet and the host learns later: indices out of bounds.

A kernel that meets one notes the number of its call, the index and its axis in three words of device memory, once; the
next wait for the device reads them and raises. The memory around stays as it was.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable

from ...errors import OutOfBoundsError
from ...registry.dtypes import int64
from . import toolkit as tools
from .arrays import DeviceArray, contiguous_layout, empty
from .devices import device_at
from .streams import Stream, stream_at, waited

WORDS = 3  # call, index, number of the index tensor
MOST = 1 << 12
Call = tuple[str, int, tuple[int, ...]]


class _Noted:
    """The calls of one device that nobody has looked after yet.

    Attributes:
        words: where kernels note what they meet.
        calls: name, first axis and sizes of each call, by number.
        streams: where each of them runs.
        lasting: the numbers of calls of compiled code, by the same.
    """

    def __init__(self, index: int):
        self.words = empty(contiguous_layout((WORDS,), int64, index))
        self.calls: dict[int, Call] = {}
        self.streams: dict[int, Stream] = {}
        self.lasting: dict[Call, int] = {}
        self.clear()
        stream_at(index).synchronize()  # kernels of other streams may note something next

    def clear(self) -> None:
        layout = self.words.layout
        at = device_at(layout.index)
        at.make_current()
        at.driver.cuMemsetD8Async(self.words.ptr, 0, layout.nbytes, stream_at(layout.index).handle)

    def done(self, stream: Stream | None) -> list[int]:
        """The calls that have run, where the host has waited for a stream; None: for all."""
        if stream is None:
            return list(self.calls)
        idle = {one: one is stream or one.query() for one in set(self.streams.values())}
        return [number for number, one in list(self.streams.items()) if idle.get(one)]

    def forget(self, numbers: Iterable[int]) -> None:
        """Nobody has to look after these calls any more."""
        for number in numbers:
            self.calls.pop(number, None)
            self.streams.pop(number, None)


_noted: dict[int, _Noted] = {}
_serial = itertools.count(1)


def place(index: int) -> DeviceArray:
    """Where kernels of a device note what they meet."""
    found = _noted.get(index)
    if found is None:
        found = _noted.setdefault(index, _Noted(index))
    return found.words


def number(index: int, name: str, axis: int, sizes: tuple[int, ...]) -> int:
    """A number for a call that may meet a fault.

    Args:
        index: the device's number.
        name: of the operator.
        axis: the first of the indexed axes.
        sizes: of these axes.
    """
    place(index)
    found, noted = next(_serial), _noted[index]
    noted.calls[found], noted.streams[found] = (name, axis, sizes), stream_at(index)
    if len(noted.calls) > MOST:
        noted.forget([next(iter(noted.calls))])
    return found


def lasting_number(index: int, name: str, axis: int, sizes: tuple[int, ...]) -> int:
    """A number for a call of compiled code, which may be made again and again; see :func:`number`.

    Calls with the same words have the same number.
    """
    place(index)
    lasting = _noted[index].lasting
    return lasting.setdefault((name, axis, sizes), -1 - len(lasting))


def check(index: int, waited_for: Stream | None = None) -> None:
    """Raise what kernels of a device have met; called where the host has waited for it.

    Args:
        index: the device's number.
        waited_for: the stream that the host has waited for; None: all.

    Raises:
        OutOfBoundsError: an index was out of bounds.
    """
    noted = _noted.get(index)
    if noted is None or not (noted.calls or noted.lasting):
        return
    known = noted.calls | {number: call for call, number in noted.lasting.items()}
    done = noted.done(waited_for)
    words = (ctypes.c_int64 * WORDS)()
    at, stream = device_at(index), stream_at(index)
    at.make_current()
    at.driver.cuMemcpyDtoHAsync_v2(
        ctypes.addressof(words), noted.words.ptr, ctypes.sizeof(words), stream.handle
    )
    at.driver.cuStreamSynchronize(stream.handle)
    call, value, which = words
    noted.forget(done)
    if call:
        noted.clear()
        name, axis, sizes = known.get(call, ("index", 0, ()))
        limit = f" with size {sizes[which]}" if which < len(sizes) else ""
        raise OutOfBoundsError(
            f"{name}: index {value} is out of bounds for axis {axis + which}{limit} (met on cuda:{index}; the call has "
            "returned since: elements read there are 0, and nothing was written there)"
        )


tools.changed.append(_noted.clear)
waited.append(check)
