"""The disk cache of machine code: one directory per user; entries are named by their key and sealed by a keyed hash.

An entry is read only when the directory, the key file and the entry are the user's own regular files, nobody else can
write them, and the seal matches. Anything else is a miss: the code is built again, never run. If the directory cannot
be used, code still works and `reason()` says why it is not stored.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable

from ... import config, lazy

try:  # the class of hashlib, which would load OpenSSL: that takes longer than to find and link a kernel
    from _blake2 import blake2b
    from _operator import _compare_digest
except ImportError:  # on other implementations of Python
    from hashlib import blake2b
    from hmac import compare_digest as _compare_digest  # type: ignore[no-redef]

FORMAT = "tandem object 2"
_MAGIC = FORMAT.encode()
_MAX_BYTES = 1 << 28  # bytes of an entry; larger files are ignored
_DIGEST_BYTES = 32
_state: dict[str, object] = {}  # directory, key, reason: determined once per directory setting


def digest(*parts: bytes) -> bytes:
    """Return the BLAKE2b digest (RFC 7693) of some bytes in turn."""
    result = blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        result.update(part)
    return result.digest()


def directory() -> str:
    """Return the path of the directory that holds the entries.

    Paths are plain strings here: the first call of a process needs this module, and pathlib loads urllib.
    """
    return os.path.join(config.flags.cache_dir or _user_cache_directory(), "native")


def _entry_path(name: str) -> str:
    return os.path.join(directory(), name)


def _user_cache_directory() -> str:
    """Return the user's directory for caches. platformdirs knows it on every system; Linux does not need it."""
    if sys.platform != "linux" and lazy.is_installed("platformdirs"):
        result: str = lazy.module("platformdirs").user_cache_dir("tandem")
        return result
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tandem")


def _is_private(path: str, kind: int, forbidden: int) -> bool:
    """Return whether path is the user's own file of this kind, not a link, with none of the forbidden mode bits."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_IFMT(info.st_mode) == kind and info.st_uid == os.getuid() and not info.st_mode & forbidden


def _read_private(path: str, begins: bytes = b"") -> bytes | None:
    """Return the bytes of a regular file that the user owns; None for any other path, or without the prefix `begins`.

    Only regular files are opened: opening a FIFO would block the caller.
    """
    try:
        if not _is_private(path, stat.S_IFREG, 0o077) or os.lstat(path).st_size > _MAX_BYTES:
            return None
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            info = os.fstat(handle)  # the file may have been replaced
            is_own = stat.S_ISREG(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o077
            if not is_own or info.st_size > _MAX_BYTES or file.read(len(begins)) != begins:
                return None
            return begins + file.read(_MAX_BYTES)
    except (OSError, ValueError):
        return None


def _write_private(path: str, data: bytes) -> None:
    """Write a file of mode 0600 in one step: readers see the old content or the new one."""
    temporary = os.path.join(os.path.dirname(path), f".new-{os.getpid()}-{os.urandom(8).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _open_directory(where: str) -> tuple[bytes | None, str]:
    """Return the key of the directory, which is created if needed; or None and why the directory is not used."""
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        if not _is_private(where, stat.S_IFDIR, 0o077):
            return None, f"{where} is not a directory of mode 0700 owned by this user"
        path = os.path.join(where, "key")
        key = _read_private(path)
        if key is None or len(key) != 32:
            if os.path.lexists(path):
                os.unlink(path)
            _write_private(path, os.urandom(32))
            key = _read_private(path)
        return key, "" if key else "the key file cannot be read back"
    except (OSError, ValueError) as error:
        return None, f"{where}: {getattr(error, 'strerror', None) or error}"


def _load_key() -> bytes | None:
    if not config.flags.cache:
        _state.update(directory=None, key=None, reason="TANDEM_CACHE=0")
        return None
    where = directory()
    if _state.get("directory") != where:
        key, reason = _open_directory(where)
        _state.update(directory=where, key=key, reason=reason)
    value = _state["key"]
    return value if isinstance(value, bytes) else None


def reason() -> str:
    """Return why code is not stored on disk; empty when it is."""
    _load_key()
    return str(_state["reason"])


def _seal(key: bytes, name: str, data: bytes) -> bytes:
    return blake2b(name.encode() + b"\0" + data, digest_size=_DIGEST_BYTES, key=key).digest()


def read(name: str) -> bytes | None:
    """Return the bytes of an entry; None if it is absent, damaged or not this user's."""
    key = _load_key()
    raw = _read_private(_entry_path(name), _MAGIC) if key is not None else None
    if key is None or raw is None:
        return None
    seal, data = raw[len(_MAGIC) : len(_MAGIC) + _DIGEST_BYTES], raw[len(_MAGIC) + _DIGEST_BYTES :]
    return data if _compare_digest(seal, _seal(key, name, data)) else None


def write(name: str, data: bytes) -> None:
    """Store an entry. A full disk or missing permission only means that it is not stored."""
    key = _load_key()
    if key is None or len(data) >= _MAX_BYTES:
        return
    try:
        _write_private(_entry_path(name), _MAGIC + _seal(key, name, data) + data)
    except OSError as error:
        _state["reason"] = f"{directory()}: {error.strerror or error}"


def read_file(name: str) -> str | None:
    """Return the path of an entry that another library opens; None if it is absent, damaged or not this user's."""
    seal = read(f"{name}.seal")
    path = _entry_path(name)
    data = _read_private(path) if seal is not None else None
    return path if data is not None and digest(data) == seal else None


def write_file(name: str, data: bytes, elsewhere: Callable[[], str]) -> str:
    """Store an entry that another library opens by its path.

    Args:
        name: of the entry.
        data: the file's content, without a seal.
        elsewhere: returns a directory that only this user can read, for entries that cannot be cached.
    """
    write(f"{name}.seal", digest(data))
    if not reason():
        try:
            _write_private(_entry_path(name), data)
            return _entry_path(name)
        except OSError as error:
            _state["reason"] = f"{directory()}: {error.strerror or error}"
    path = os.path.join(elsewhere(), name)
    _write_private(path, data)
    return path


def remove(name: str) -> None:
    """Delete an entry."""
    with contextlib.suppress(OSError):
        os.unlink(_entry_path(name))


class SourceText:
    """The text of a module; only its digest remains after the module is compiled."""

    __slots__ = ("digest", "text")

    def __init__(self, text: str):
        self.text, self.digest = text, digest(text.encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceText) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)
