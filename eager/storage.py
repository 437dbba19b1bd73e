"""Storage: the memory that tensors share, and how often it has been written."""

from __future__ import annotations

from typing import Any


class Storage:
    """A block of memory and its version.

    Views share one storage. It is made when it is first needed: a tensor that nobody views or writes has none.

    Attributes:
        owner: the array that owns the memory.
        version: number of in-place writes through any tensor that shares it.
        saved: how often a recorded history refers to it (:class:`Hold`).
    """

    __slots__ = ("__weakref__", "owner", "saved", "version")

    def __init__(self, owner: Any):
        self.owner = owner
        self.version = 0
        self.saved = 0

    @property
    def data_ptr(self) -> int:
        """Address of the first byte."""
        return int(self.owner.__array_interface__["data"][0])

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(self.owner.nbytes)

    def __repr__(self) -> str:
        return f"<storage of {self.nbytes} bytes at {self.data_ptr:#x}, version {self.version}>"


class Hold:
    """Keeps a storage for a recorded history and knows the version it had; not counted as a tensor that shares it."""

    __slots__ = ("storage", "version")

    def __init__(self, storage: Storage):
        self.storage, self.version = storage, storage.version
        storage.saved = saved_count(storage) + 1

    def __del__(self) -> None:
        self.storage.saved -= 1


def saved_count(storage: Storage) -> int:
    """The number of holds; native code makes storages without that field."""
    return getattr(storage, "saved", 0)


def owner_of(array: Any) -> Any:
    """The array at the root of a chain of views."""
    while array.base is not None and type(array.base) is type(array):
        array = array.base
    return array
