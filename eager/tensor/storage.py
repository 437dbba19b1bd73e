"""Storage: the memory that tensors share, and how often it has been written."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ...registry.types import Array, Tensor

# The result of `sys.getrefcount` for an object with a single reference, in a dict, a slot or another object.
_only = {0: object()}
SOLE = sys.getrefcount(_only[0])


class Storage:
    """A block of memory and its version.

    Views share one storage. It is created at first use: a tensor that was never viewed or written has none.

    Attributes:
        owner: the array that owns the memory.
        version: number of in-place writes through any tensor that shares it.
        hold_count: the number of graph nodes that refer to it (:class:`Hold`).
    """

    __slots__ = ("__weakref__", "hold_count", "owner", "version")

    def __init__(self, owner: Any):
        self.owner = owner
        self.version = 0
        self.hold_count = 0

    @property
    def data_ptr(self) -> int:
        """Address of the first byte."""
        return address_of(self.owner)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(self.owner.nbytes)

    def __reduce__(self) -> tuple[type[Storage], tuple[object]]:
        return Storage, (memory_copy(self.owner),)

    def __deepcopy__(self, memo: dict[int, object]) -> Storage:
        make, arguments = self.__reduce__()
        return make(*arguments)

    def __repr__(self) -> str:
        return f"<storage of {self.nbytes} bytes at {self.data_ptr:#x}, version {self.version}>"


class Number(Storage):
    """The storage of a weak scalar, which also holds its value in full precision.

    Attributes:
        value: a Python number.
    """

    __slots__ = ("value",)

    def __init__(self, owner: Array, value: Number):
        super().__init__(owner)
        self.value = value

    def array_for(self, what: str) -> Array:
        """An array of the value: of the dtype shown for NumPy, in full precision for conversions to Python numbers."""
        if what.endswith("()") and what != "numpy()":
            return np.asarray(self.value)
        copy: Array = self.owner.copy()
        return copy


class Hold:
    """A graph node's reference to a storage, with the version at that time; not counted as a tensor that shares it.

    Native twin: backends/cpu/fastpath/runtime/rt_saved.py:make_hold
    """

    __slots__ = ("storage", "version")

    def __init__(self, storage: Storage):
        self.storage, self.version = storage, storage.version
        storage.hold_count = count_holds(storage) + 1

    def __del__(self) -> None:
        self.storage.hold_count -= 1


def count_holds(storage: Storage | None) -> int:
    """The number of holds on a storage; native code creates storages without that field."""
    return getattr(storage, "hold_count", 0)


def address_of(array: Array) -> int:
    """The address of an array's first element."""
    return int(array.__array_interface__["data"][0])


def owner_of(array: Array) -> Array:
    """The array at the root of a chain of views."""
    while array.base is not None and type(array.base) is type(array):
        array = array.base
    return array


def is_sole_owner(tensor: Tensor) -> bool:
    """Whether a plain tensor is dense and writable, and is the only reference to its memory."""
    array, storage = tensor._array, tensor._storage
    root = owner_of(array)
    if not array.flags.writeable or not (array.flags.c_contiguous or array.flags.f_contiguous):
        return False
    if root is not array and (root is not array.base or root.nbytes != array.nbytes):
        return False
    if root.base is not None and not repr(root.base).startswith(OWN_BUFFER):
        return False
    by_storage = storage is not None and storage.owner is root
    is_view = root is not array
    del array, root
    if is_view and sys.getrefcount(tensor._array) > SOLE:
        return False
    return sys.getrefcount(owner_of(tensor._array)) <= SOLE + by_storage


# The start of the repr of the capsule that returns an array's memory to the pool; other bases share memory.
OWN_BUFFER = '<capsule object "tandem.buffer"'


def memory_copy(owner: Array) -> Array:
    """A contiguous copy of the memory of an array; gaps between its elements are filled with zeros."""
    if owner.flags.forc:
        return np.array(owner, order="K")
    low, high = np.lib.array_utils.byte_bounds(owner)
    memory = np.zeros(high - low, np.uint8)
    np.ndarray(owner.shape, owner.dtype, memory, address_of(owner) - low, owner.strides)[...] = owner
    return memory
