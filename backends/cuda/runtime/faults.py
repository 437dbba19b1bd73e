"""Asynchronous errors of kernels: indices out of bounds.

A kernel that finds such an index writes the number of its call, the index and its axis into three words of device
memory, and does not access memory there. The host raises the error when it next waits for the device.
"""

from __future__ import annotations

import ctypes
import itertools

from ....errors import OutOfBoundsError
from ....registry.dtypes import int64
from . import toolkit as tools
from .api import TO_HOST
from .arrays import DeviceArray, contiguous_layout, empty
from .launching import fill_bytes
from .streams import Stream, stream_at, wait_listeners

FAULT_WORDS = 3  # number of the call, index, number of the index tensor
MAX_CALLS = 1 << 12
Call = tuple[str, int, tuple[int, ...]]


class _DeviceFaults:
    """The calls of one device that have not been checked yet.

    Attributes:
        words: the array that kernels write an error into.
        calls: the stream, and name, first axis and sizes of each eager call, by number.
        compiled: the numbers of calls of compiled code, by name, axis and sizes.
    """

    def __init__(self, index: int):
        self.words = empty(contiguous_layout((FAULT_WORDS,), int64, index))
        self.calls: dict[int, tuple[Stream, Call]] = {}
        self.compiled: dict[Call, int] = {}
        fill_bytes(self.words, 0)
        stream_at(index).synchronize()  # kernels of other streams may write to the words next

    def numbers_done(self, stream: Stream | None) -> list[int]:
        """The numbers of the calls that have run, after the host has waited for a stream (None: for all)."""
        calls = list(self.calls.items())
        idle = {one: stream in (None, one) or one.query() for one in {one for _, (one, _) in calls}}
        return [number for number, (one, _) in calls if idle[one]]


_by_device: dict[int, _DeviceFaults] = {}
_serial = itertools.count(1)


def _faults_at(index: int) -> _DeviceFaults:
    return _by_device.get(index) or _by_device.setdefault(index, _DeviceFaults(index))


def fault_words(index: int) -> DeviceArray:
    """The array that kernels of a device write an error into."""
    return _faults_at(index).words


def register_call(index: int, name: str, axis: int, sizes: tuple[int, ...]) -> int:
    """Register an eager call that may find an index out of bounds, and return its number.

    Args:
        index: the device's number.
        name: of the operator.
        axis: the first of the indexed axes.
        sizes: of the indexed axes.
    """
    calls, result = _faults_at(index).calls, next(_serial)
    calls[result] = stream_at(index), (name, axis, sizes)
    if len(calls) > MAX_CALLS:
        calls.pop(next(iter(calls)), None)
    return result


def register_compiled_call(index: int, name: str, axis: int, sizes: tuple[int, ...]) -> int:
    """Register a call in compiled code, which runs repeatedly, and return its number; see :func:`register_call`.

    Calls with equal arguments have the same number.
    """
    compiled = _faults_at(index).compiled
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
    known = {number: call for number, (_, call) in faults.calls.items()}
    known |= {number: call for call, number in faults.compiled.items()}
    done = faults.numbers_done(waited_for)
    words = (ctypes.c_int64 * FAULT_WORDS)()
    stream = stream_at(index)
    stream.copy(ctypes.addressof(words), faults.words.ptr, ctypes.sizeof(words), TO_HOST)
    stream.wait()
    call, value, which = words
    for number in done:
        faults.calls.pop(number, None)
    if call:
        fill_bytes(faults.words, 0)
        name, axis, sizes = known.get(call, ("index", 0, ()))
        limit = f" with size {sizes[which]}" if which < len(sizes) else ""
        raise OutOfBoundsError(
            f"{name}: index {value} is out of bounds for axis {axis + which}{limit} (found on cuda:{index} after the "
            "call had returned: elements read there are 0, and nothing was written there)"
        )


tools.change_listeners.append(_by_device.clear)
wait_listeners.append(check)
