"""The disk cache of machine code: one directory per user, entries named by their key and sealed by a keyed hash.

An entry is read only when the directory, the key file and the entry are the user's own regular files and nobody else
can write them, and its seal matches. Anything else is a miss: the code is built again, never run. Where the directory
cannot be used, code still works and `reason()` says why it is not kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from pathlib import Path

import platformdirs

from .... import config

FORMAT = "tandem object 1"
_MAGIC = FORMAT.encode()
_SEAL = hashlib.sha256().digest_size
_state: dict[str, object] = {}  # directory, key, reason: found once per directory setting


def directory() -> Path:
    """Where entries are kept."""
    chosen = config.flags.cache_dir
    return Path(chosen or platformdirs.user_cache_dir("tandem")) / "native"


def _private(path: Path, kind: int, forbidden: int) -> bool:
    """Whether path is the user's own file of this kind, not a link, with none of the forbidden mode bits."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_IFMT(info.st_mode) == kind and info.st_uid == os.getuid() and not info.st_mode & forbidden


def _read_private(path: Path) -> bytes | None:
    """The bytes of the user's own regular file; None when it is missing, a link, or another's."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(file.fileno())
        mine = stat.S_ISREG(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o077
        return file.read() if mine else None


def _write_private(path: Path, data: bytes) -> None:
    """Write a file of mode 0600 in one step: readers see the old one or the new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _open(where: Path) -> tuple[bytes | None, str]:
    """The key of the directory, made if needed; or None and why the directory is not used."""
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(where, stat.S_IFDIR, 0o077):
            return None, f"{where} is not a directory of mode 0700 owned by this user"
        key = _read_private(where / "key")
        if key is None or len(key) != 32:
            if os.path.lexists(where / "key"):
                os.unlink(where / "key")
            _write_private(where / "key", secrets.token_bytes(32))
            key = _read_private(where / "key")
        return key, "" if key else "the key file cannot be read back"
    except OSError as error:
        return None, f"{where}: {error.strerror or error}"


def _key() -> bytes | None:
    if not config.flags.cache:
        _state.update(directory=None, key=None, reason="TANDEM_CACHE=0")
        return None
    where = directory()
    if _state.get("directory") != where:
        key, reason = _open(where)
        _state.update(directory=where, key=key, reason=reason)
    found = _state["key"]
    return found if isinstance(found, bytes) else None


def reason() -> str:
    """Why code is not kept on disk; empty when it is."""
    _key()
    return str(_state["reason"])


def _seal(key: bytes, name: str, data: bytes) -> bytes:
    return hmac.digest(key, name.encode() + b"\0" + data, "sha256")


def read(name: str) -> bytes | None:
    """The entry's bytes, or None when it is absent, damaged or not this user's."""
    key = _key()
    raw = _read_private(directory() / name) if key is not None else None
    if key is None or raw is None or not raw.startswith(_MAGIC):
        return None
    seal, data = raw[len(_MAGIC) : len(_MAGIC) + _SEAL], raw[len(_MAGIC) + _SEAL :]
    return data if hmac.compare_digest(seal, _seal(key, name, data)) else None


def write(name: str, data: bytes) -> None:
    """Store an entry; a full disk or lost permission only means that it is not kept."""
    key = _key()
    if key is None:
        return
    try:
        _write_private(directory() / name, _MAGIC + _seal(key, name, data) + data)
    except OSError as error:
        _state["reason"] = f"{directory()}: {error.strerror or error}"


def remove(name: str) -> None:
    """Forget an entry."""
    with contextlib.suppress(OSError):
        os.unlink(directory() / name)
