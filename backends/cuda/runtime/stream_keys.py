"""The current stream of each thread for native code: a pthread key for each device.

:mod:`.streams` is the authority, and updates these values.
"""

from __future__ import annotations

import ctypes
import functools

from ....registry.lock import lock
from ....registry.native_type import fault

_keys: dict[int, int] = {}


@functools.cache
def _libc() -> ctypes.CDLL:
    result = ctypes.CDLL(None)
    result.pthread_setspecific.argtypes = (ctypes.c_uint, ctypes.c_void_p)
    return result


def new_key() -> int:
    """Create a pthread key, whose value is NULL in each thread at first."""
    key = ctypes.c_uint()
    if _libc().pthread_key_create(ctypes.byref(key), None):
        raise RuntimeError("pthread_key_create: no key is left for the current streams")
    return key.value


def key_of(index: int) -> int:
    """The key of a device's current streams; its values are addresses of stream structs, NULL for the default."""
    result = _keys.get(index)
    if result is None:
        with lock:
            result = _keys[index] = _keys.get(index) or new_key()
    return result


def set_current(index: int, address: int) -> None:
    """Set this thread's current stream of a device.

    Args:
        index: the device's number.
        address: of the stream's native struct; 0 for the default stream.
    """
    if not fault:
        _libc().pthread_setspecific(key_of(index), address)


def forget() -> None:
    """Delete all keys."""
    with lock:
        while _keys:
            _libc().pthread_key_delete(_keys.popitem()[1])
