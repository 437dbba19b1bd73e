"""Tensors without data: shape, dtype, strides and a storage that holds nothing.

A tensor on the device ``"meta"`` runs through every layer as any other does; its operators give what the shape rules
of the declarations say (:mod:`.meta_kernel`). Whole models run so, in no memory, to see shapes, dtypes and sizes.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NoReturn

from ..errors import UnsupportedError
from ..registry.dtypes import DType
from ..registry.keys import DispatchKey
from ..registry.values import TensorSpec
from .meta import leaf
from .storage import Storage
from .tensor import EAGER, Tensor

META_KEYS = 1 << DispatchKey.Meta


class MetaStorage(Storage):
    """The memory that a meta tensor would have: a size in bytes and a version.

    Attributes:
        on_release: told the size when the last tensor on the storage has gone (:mod:`.meta_memory`).
    """

    __slots__ = ("_nbytes", "on_release")

    # Told of each storage that is made, as long as somebody counts.
    made: ClassVar[list[Any]] = []

    def __init__(self, nbytes: int):
        super().__init__(None)
        self._nbytes = nbytes
        self.on_release: list[Any] = []
        for listener in self.made:
            listener(self)

    @property
    def data_ptr(self) -> int:
        """0: there is no memory."""
        return 0

    @property
    def nbytes(self) -> int:
        """Size that the memory would have, in bytes."""
        return self._nbytes

    def __del__(self) -> None:
        for listener in self.on_release:
            listener(self._nbytes)

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
    def device(self) -> str:
        return "meta"

    @property
    def spec(self) -> TensorSpec:
        return self._spec

    @property
    def strides(self) -> tuple[int, ...]:
        return self._strides

    @property
    def storage_offset(self) -> int:
        return self._offset

    def is_contiguous(self) -> bool:
        return lies_in_order(self._spec.shape, self._strides)

    @property
    def _array(self) -> Any:
        self._host("reading its elements or memory")

    def _host(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"{what}: a tensor on the device 'meta' has a shape and a dtype but no elements, {self!r}; make it on "
            "'cpu' to have values"
        )

    def __dlpack_device__(self) -> NoReturn:
        self._host("DLPack export")

    def _alias(self) -> MetaTensor:
        return meta_view(self, self._spec.shape, self._strides, self._offset)

    def _without_history(self) -> MetaTensor:
        return self._alias()

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self.is_leaf:
            self._host("pickling or copying a result with a history (use x.detach())")
        return _rebuild, (self._spec, self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        make, arguments = self.__reduce_ex__(4)
        memo[id(self)] = made = make(*arguments)
        return made

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __repr__(self) -> str:
        notes = ["...", "device='meta'", f"shape={self.shape}", f"dtype={self.dtype}"]
        if self.requires_grad:
            notes.append("requires_grad=True" if self.is_leaf else f"grad_fn={self._meta.node.name}")
        return f"tensor({', '.join(notes)})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def _rebuild(spec: TensorSpec, requires_grad: bool) -> Tensor:
    made = meta_tensor(spec)
    return leaf(made) if requires_grad else made


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def lies_in_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements of these strides lie in row-major order without gaps."""
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
    """A tensor without data, contiguous, on a storage of its own.

    Args:
        spec: its shape and dtype; its device does not matter.
    """
    storage = MetaStorage(math.prod(spec.shape) * spec.dtype.itemsize)
    return _made(TensorSpec(spec.shape, spec.dtype, "meta"), row_major(spec.shape), 0, storage)


def without_data(x: Any) -> MetaTensor:
    """A tensor like another, without its elements: its axes lie in memory in the same order, without gaps."""
    made = meta_tensor(x.spec)
    order = sorted(range(len(x.shape)), key=lambda axis: -abs(x.strides[axis]))
    strides = dict(zip(order, row_major(tuple(x.shape[axis] for axis in order))))
    made._strides = tuple(strides[axis] for axis in range(len(x.shape)))
    return made


def meta_view(of: MetaTensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> MetaTensor:
    """A view of another meta tensor; both share one storage."""
    return _made(TensorSpec(shape, of._spec.dtype, "meta"), strides, offset, of._storage)


def _made(spec: TensorSpec, strides: tuple[int, ...], offset: int, storage: Any) -> MetaTensor:
    tensor = MetaTensor.__new__(MetaTensor)
    tensor._spec, tensor._strides, tensor._offset = spec, strides, offset
    tensor._keys, tensor._meta, tensor._storage = META_KEYS, None, storage
    return tensor


EAGER.add(MetaTensor)
