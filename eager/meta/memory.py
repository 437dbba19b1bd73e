"""``meta_memory``: count the bytes of meta tensors to estimate the memory that a program needs."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...pytree import leaves
from .tensor import MetaStorage, MetaTensor

if TYPE_CHECKING:
    from ...registry.types import Pytree


class MetaMemory:
    """Counts the bytes of meta tensors; made by :func:`meta_memory`.

    Attributes:
        live: bytes of the storages that are in use now.
        peak: the most that were in use at once.
        allocated: bytes of all storages that were made.
    """

    __slots__ = ("allocated", "live", "peak")

    def __init__(self, held: Pytree):
        self.live = self.peak = self.allocated = 0
        storages: dict[int, Any] = {
            id(x._storage): x._storage for x in leaves(held) if isinstance(x, MetaTensor)
        }
        for storage in storages.values():
            self._count_storage(storage)

    def _count_storage(self, storage: MetaStorage) -> None:
        storage.on_release.append(self._subtract)
        self.live += storage.nbytes
        self.allocated += storage.nbytes
        self.peak = max(self.peak, self.live)

    def _subtract(self, nbytes: int) -> None:
        self.live -= nbytes

    def __enter__(self) -> MetaMemory:
        MetaStorage.creation_listeners.append(self._count_storage)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        MetaStorage.creation_listeners.remove(self._count_storage)

    def __repr__(self) -> str:
        return f"MetaMemory(live={self.live}, peak={self.peak}, allocated={self.allocated})"


def meta_memory(held: Pytree = ()) -> MetaMemory:
    """Context manager that counts the memory which a program on the device ``"meta"`` would need.

    Views share one storage and count once. Kernels' scratch memory is not counted, nor what a compiler would save.

    Args:
        held: a pytree whose meta tensors count from the start, such as a model's parameters.

    Returns:
        An object for ``with``; its ``peak``, ``live`` and ``allocated`` are numbers of bytes.

    >>> import tandem as td
    >>> weights = td.zeros((1000, 1000), device="meta")
    >>> with td.meta_memory(weights) as memory:
    ...     y = td.relu(td.ones((10, 1000), device="meta") @ weights)
    >>> memory.peak, memory.live
    (4080000, 4040000)
    """
    return MetaMemory(held)
