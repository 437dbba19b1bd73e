"""Asynchronous errors of kernels: indices out of bounds.

A kernel that finds such an index writes the number of its call, the index and its axis into three words of device
memory, and does not access memory there. The host raises the error when it next waits for the device.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable

from ....errors import OutOfBoundsError
from ....registry.dtypes import int64
from . import toolkit as tools
from .api import TO_HOST
from .arrays import DeviceArray, contiguous_layout, empty
from .streams import Stream, stream_at, wait_listeners

FAULT_WORDS = 3  # number of the call, index, number of the index tensor
MAX_CALLS = 1 << 12
Call = tuple[str, int, tuple[int, ...]]


class _DeviceFaults:
    """The calls of one device that have not been checked yet.

    Attributes:
        words: the array that kernels write an error into.
        calls: name, first axis and sizes of each call, by number.
        streams: the stream of each call, by number.
        compiled: the numbers of calls of compiled code, by name, axis and sizes.
    """

    def __init__(self, index: int):
        self.words = empty(contiguous_layout((FAULT_WORDS,), int64, index))
        self.calls: dict[int, Call] = {}
        self.streams: dict[int, Stream] = {}
        self.compiled: dict[Call, int] = {}
        self.clear()
        stream_at(index).synchronize()  # kernels of other streams may write to the words next

    def clear(self) -> None:
        layout = self.words.layout
        stream_at(layout.index).fill(self.words.ptr, 0, layout.nbytes)

    def done(self, stream: Stream | None) -> list[int]:
        """The numbers of the calls that have run, after the host has waited for a stream (None: for all)."""
        if stream is None:
            return list(self.calls)
        idle = {one: one is stream or one.query() for one in set(self.streams.values())}
        return [number for number, one in list(self.streams.items()) if idle.get(one)]

    def forget(self, numbers: Iterable[int]) -> None:
        """Drop calls that need no more checks."""
        for number in numbers:
            self.calls.pop(number, None)
            self.streams.pop(number, None)


_by_device: dict[int, _DeviceFaults] = {}
_serial = itertools.count(1)


def fault_words(index: int) -> DeviceArray:
    """The array that kernels of a device write an error into."""
    faults = _by_device.get(index)
    if faults is None:
        faults = _by_device.setdefault(index, _DeviceFaults(index))
    return faults.words


def register_call(index: int, name: str, axis: int, sizes: tuple[int, ...]) -> int:
    """Register an eager call that may find an index out of bounds, and return its number.

    Args:
        index: the device's number.
        name: of the operator.
        axis: the first of the indexed axes.
        sizes: of the indexed axes.
    """
    fault_words(index)
    result, faults = next(_serial), _by_device[index]
    faults.calls[result], faults.streams[result] = (name, axis, sizes), stream_at(index)
    if len(faults.calls) > MAX_CALLS:
        faults.forget([next(iter(faults.calls))])
    return result


def register_compiled_call(index: int, name: str, axis: int, sizes: tuple[int, ...]) -> int:
    """Register a call in compiled code, which runs repeatedly, and return its number; see :func:`register_call`.

    Calls with equal arguments have the same number.
    """
    fault_words(index)
    compiled = _by_device[index].compiled
    return compiled.setdefault((name, axis, sizes), -1 - len(compiled))


def check(index: int, waited_for: Stream | None = None) -> None:
    """Raise the error that a kernel of a device has written; called after the host has waited for the device.

    Args:
        index: the device's number.
        waited_for: the stream that the host has waited for; None: all.

    Raises:
        OutOfBoundsError: an index was out of bounds.
    """
    faults = _by_device.get(index)
    if faults is None or not (faults.calls or faults.compiled):
        return
    known = faults.calls | {number: call for call, number in faults.compiled.items()}
    done = faults.done(waited_for)
    words = (ctypes.c_int64 * FAULT_WORDS)()
    stream = stream_at(index)
    stream.copy(ctypes.addressof(words), faults.words.ptr, ctypes.sizeof(words), TO_HOST)
    stream.wait()
    call, value, which = words
    faults.forget(done)
    if call:
        faults.clear()
        name, axis, sizes = known.get(call, ("index", 0, ()))
        limit = f" with size {sizes[which]}" if which < len(sizes) else ""
        raise OutOfBoundsError(
            f"{name}: index {value} is out of bounds for axis {axis + which}{limit} (found on cuda:{index} after the "
            "call had returned: elements read there are 0, and nothing was written there)"
        )


tools.change_listeners.append(_by_device.clear)
wait_listeners.append(check)
