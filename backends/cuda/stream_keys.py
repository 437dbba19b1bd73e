"""The current stream of each thread as machine code sees it: a thread-specific value of the system for each device.

What :mod:`.streams` says counts; this follows it.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from ...registry.lock import lock
from ...registry.native_type import fault

_keys: dict[int, int] = {}


@functools.cache
def _system() -> Any:
    found = ctypes.CDLL(None)
    found.pthread_setspecific.argtypes = (ctypes.c_uint, ctypes.c_void_p)
    return found


def new_key() -> int:
    """A key under which each thread has a value of its own, which is NULL at first."""
    key = ctypes.c_uint()
    if _system().pthread_key_create(ctypes.byref(key), None):
        raise RuntimeError("no pthread key is left for the current streams")
    return key.value


def key_of(index: int) -> int:
    """The key of a device's current streams; its values are addresses of records of streams, NULL for the default."""
    found = _keys.get(index)
    if found is None:
        with lock:
            found = _keys[index] = _keys.get(index) or new_key()
    return found


def put(index: int, address: int) -> None:
    """Let a stream be this thread's current one of a device.

    Args:
        index: the device's number.
        address: of the stream's record; 0 for the default stream.
    """
    if not fault:
        _system().pthread_setspecific(key_of(index), address)


def forget() -> None:
    """No thread has a current stream any more."""
    with lock:
        while _keys:
            _system().pthread_key_delete(_keys.popitem()[1])
