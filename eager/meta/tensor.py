"""MetaTensor: a tensor with shape, dtype, strides and a storage, but no data.

A tensor on the device ``"meta"`` runs through every layer as any other does; its operators give what the shape rules
of the declarations say (:mod:`.kernel`). Whole models run so, in no memory, to see shapes, dtypes and sizes.
"""

from __future__ import annotations

import copy as copying
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NoReturn, SupportsIndex

from ...errors import UnsupportedError
from ...operators.declare.view_spec import row_major_strides
from ...registry.dispatch.keys import DispatchKey
from ...registry.dtypes import DType
from ...registry.values import Device, TensorSpec, as_device
from ..autograd.autograd_meta import make_leaf
from ..tensor.storage import SOLE, Storage
from ..tensor.tensor import EAGER, Tensor

if TYPE_CHECKING:
    from ...registry.types import Args, Function

META_KEYS = 1 << DispatchKey.Meta


class MetaStorage(Storage):
    """The memory that a meta tensor would have: a size in bytes and a version.

    Attributes:
        on_release: told the size when the last tensor on the storage has gone (:mod:`.memory`).
    """

    __slots__ = ("_nbytes", "on_release")

    # Called with each new storage while a MetaMemory is open.
    creation_listeners: ClassVar[list[Callable[[MetaStorage], None]]] = []

    def __init__(self, nbytes: int):
        super().__init__(None)
        self._nbytes = nbytes
        self.on_release: list[Callable[[int], None]] = []
        for listener in self.creation_listeners:
            listener(self)

    @property
    def data_ptr(self) -> int:
        """Always 0: a meta tensor has no memory."""
        return 0

    @property
    def nbytes(self) -> int:
        """Size that the memory would have, in bytes."""
        return self._nbytes

    def __del__(self) -> None:
        for listener in self.on_release:
            listener(self._nbytes)

    def __reduce__(self) -> tuple[type[MetaStorage], tuple[int]]:
        return MetaStorage, (self._nbytes,)

    def __repr__(self) -> str:
        return f"<storage of {self._nbytes} bytes on meta, version {self.version}>"


class MetaTensor(Tensor):
    """A tensor that has a shape, a dtype and strides, and no elements."""

    __slots__ = ("_offset", "_spec", "_strides")
    _offset: int
    _spec: TensorSpec
    _strides: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._spec.shape

    @property
    def dtype(self) -> DType:
        return self._spec.dtype

    @property
    def device(self) -> Device:
        return as_device("meta")

    @property
    def spec(self) -> TensorSpec:
        return self._spec

    @property
    def storage_offset(self) -> int:
        return self._offset

    def is_contiguous(self) -> bool:
        return is_row_major(self._spec.shape, self._strides)

    @property
    def _array(self) -> NoReturn:
        self._host("reading its elements or memory")

    def _host(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"{what}: a tensor on the device 'meta' has a shape and a dtype but no elements, {self!r}; make it on "
            "'cpu' to have values"
        )

    def __dlpack_device__(self) -> NoReturn:
        self._host("DLPack export")

    def _alias(self) -> MetaTensor:
        return meta_view(self, self._spec.dtype, self._spec.shape, self._strides, self._offset)

    def _without_history(self) -> MetaTensor:
        return self._alias()

    def _is_sole_owner(self) -> bool:
        shape, strides = self._spec.shape, self._strides
        size = math.prod(shape) * self._spec.dtype.itemsize
        is_whole = self._storage is not None and self._storage.nbytes == size
        is_dense = is_row_major(shape, strides) or is_row_major(shape[::-1], strides[::-1])
        return is_whole and is_dense and sys.getrefcount(self._storage) <= SOLE

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Function, Args]:
        if not self.is_leaf:
            self._host("pickling or copying a result with a history (use x.detach())")
        return _rebuild, (self._storage, self._spec, self._strides, self._offset, self.requires_grad)

    def __copy__(self) -> MetaTensor:
        return copying.deepcopy(self)

    def __repr__(self) -> str:
        notes = ["...", "device='meta'", f"shape={self.shape}", f"dtype={self.dtype}"]
        meta = self._meta
        if meta is not None and meta.requires_grad:
            notes.append("requires_grad=True" if meta.node is None else f"grad_fn={meta.node.name}")
        return f"tensor({', '.join(notes)})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def _rebuild(
    storage: MetaStorage, spec: TensorSpec, strides: tuple[int, ...], offset: int, requires_grad: bool
) -> Tensor:
    tensor = _new_meta_tensor(spec, strides, offset, storage)
    return make_leaf(tensor) if requires_grad else tensor


def is_row_major(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether a shape with these strides is in row-major order without gaps."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size == 0:
            return True
        if size != 1:
            if stride != expected:
                return 0 in shape
            expected *= size
    return True


def meta_tensor(spec: TensorSpec) -> MetaTensor:
    """A contiguous tensor without data, on a new storage.

    Args:
        spec: its shape and dtype; its device does not matter.
    """
    storage = MetaStorage(math.prod(spec.shape) * spec.dtype.itemsize)
    return _new_meta_tensor(
        TensorSpec(spec.shape, spec.dtype, "meta"), row_major_strides(spec.shape), 0, storage
    )


def meta_like(x: Tensor) -> MetaTensor:
    """A meta tensor like another tensor, with the same order of axes in memory and no gaps."""
    tensor = meta_tensor(x.spec)
    order = sorted(range(len(x.shape)), key=lambda axis: -abs(x._strides[axis]))
    strides = dict(zip(order, row_major_strides(tuple(x.shape[axis] for axis in order))))
    tensor._strides = tuple(strides[axis] for axis in range(len(x.shape)))
    return tensor


def meta_view(
    of: MetaTensor, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> MetaTensor:
    """A view of another meta tensor, in elements of ``dtype``; both share one storage."""
    return _new_meta_tensor(TensorSpec(shape, dtype, "meta"), strides, offset, of._storage)


def _new_meta_tensor(
    spec: TensorSpec, strides: tuple[int, ...], offset: int, storage: Storage | None
) -> MetaTensor:
    tensor = MetaTensor.__new__(MetaTensor)
    tensor._spec, tensor._strides, tensor._offset = spec, strides, offset
    tensor._keys, tensor._meta, tensor._storage = META_KEYS, None, storage
    return tensor


EAGER.add(MetaTensor)
