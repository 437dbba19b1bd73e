"""CudaTensor: a Tensor whose array is in device memory."""

from __future__ import annotations

import copy as copying
import sys
from typing import Any, NoReturn, Protocol

import numpy as np

from ....eager.autograd.autograd_meta import make_leaf
from ....eager.autograd.view_writes import is_alone
from ....eager.layers.level_allocations import note_allocation, open_level_count
from ....eager.layers.levels import ADOPTED, ALIAS_FINDERS, LevelTensor
from ....eager.layers.vmap.adopt import ADOPTED_BATCHED
from ....eager.layers.vmap.tensor import BatchedTensor
from ....eager.tensor.copies import autograd_flags, restore_autograd, shares_memory
from ....eager.tensor.storage import SOLE, Storage
from ....eager.tensor.tensor import EAGER, Tensor, storage_of
from ....errors import ArgumentError
from ....registry.dispatch.keys import AUTOGRAD, CUDA_KEYS
from ....registry.dispatch.state import state
from ....registry.dtypes import DType, uint8
from ....registry.values import Device, TensorSpec, as_device, describe
from ..runtime import interop
from ..runtime.arrays import DeviceArray, contiguous_layout, layout_of
from ..runtime.copies import to_device, to_host


class DeviceStorage(Storage):
    """The storage of CUDA tensors: a device buffer that tensors share.

    Attributes:
        owner: the buffer.
    """

    __slots__ = ()

    @property
    def data_ptr(self) -> int:
        return int(self.owner.ptr)

    @property
    def nbytes(self) -> int:
        return int(self.owner.nbytes)

    def __reduce__(self) -> Any:
        index = self.owner.pool.at.index
        layout = contiguous_layout((self.nbytes,), uint8, index)
        return _rebuild_storage, (to_host(DeviceArray(self.owner.ptr, layout, self.owner)), index)


class _ArraySlot(Protocol):
    """The slot that holds a tensor's array."""

    def __get__(self, tensor: Any, owner: Any) -> DeviceArray: ...

    def __set__(self, tensor: Any, array: DeviceArray) -> None: ...


class CudaTensor(Tensor):
    """A tensor whose elements are in the memory of a CUDA device.

    Calls launch their work in the device's current stream and return; operations that need the elements on the host
    (printing, ``item()``, ``bool()``) wait for it. There is no implicit conversion to NumPy: use ``.to("cpu")``.
    """

    # No slots besides Tensor's, so that a tensor created inside a transform can become a value of it.
    __slots__ = ()
    _data: _ArraySlot = Tensor.__dict__["_array"]

    # -- attributes ------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.layout.shape

    @property
    def dtype(self) -> DType:
        return self._data.layout.dtype

    @property
    def device(self) -> Device:
        return as_device(self._data.layout.spec.device)

    @property
    def spec(self) -> TensorSpec:
        return self._data.layout.spec

    @property
    def _strides(self) -> tuple[int, ...]:
        return self._data.layout.strides

    @property
    def storage_offset(self) -> int:
        return self._data.offset

    def is_contiguous(self) -> bool:
        return self._data.layout.contiguous

    def _new_storage(self) -> Storage:
        return DeviceStorage(self._data.buffer)

    def _alias(self) -> CudaTensor:
        return cuda_view(self._data, self)

    def _without_history(self) -> CudaTensor:
        return self._alias()

    def _is_sole_owner(self) -> bool:
        is_whole = self._data.layout.contiguous and self._data.layout.nbytes == self._data.buffer.nbytes
        by_storage = self._storage is not None and self._storage.owner is self._data.buffer
        if not is_whole or self._data.buffer.pool is None or sys.getrefcount(self._data) > SOLE:
            return False
        return sys.getrefcount(self._data.buffer) <= SOLE + by_storage

    def _copy_object(self) -> CudaTensor:
        twin = CudaTensor.__new__(CudaTensor)
        twin._data, twin._keys, twin._meta, twin._storage = self._data, self._keys, self._meta, self._storage
        return twin

    # -- elements on the host --------------------------------------------------------------------------------------
    @property
    def _array(self) -> Any:
        self._refuse("NumPy code")

    def _refuse(self, what: str) -> NoReturn:
        raise ArgumentError(
            f"{what}: {describe(self)} is on {self.device}, and NumPy reads the host's memory only; copy it there "
            'with x.to("cpu")'
        )

    def _host(self, what: str) -> Any:
        return to_host(self._data)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Not supported: the elements are on the device.

        Raises:
            ArgumentError: always; ``x.to("cpu").numpy()`` copies them.
        """
        self._refuse("numpy()")

    # -- other libraries -------------------------------------------------------------------------------------------
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self._check_shared("__cuda_array_interface__")
        return self._data.__cuda_array_interface__

    def __dlpack__(self, **options: Any) -> Any:
        self._check_shared("DLPack")
        return interop.export(self._data, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._data.layout.index)  # kDLCUDA

    def _check_shared(self, what: str) -> None:
        if self.requires_grad and AUTOGRAD & ~state.exclude:
            raise ArgumentError(
                f"{what} does not propagate gradients, and this tensor requires them; use x.detach()"
            )

    # -- pickle and copies -----------------------------------------------------------------------------------------
    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self.is_leaf:
            raise ArgumentError(
                "only leaf tensors can be pickled or copied, not the result of a recorded operation; use x.detach()"
            )
        data, storage = self._data, self._storage
        if data.buffer.pool is None or not shares_memory(
            self
        ):  # another library's memory is not copied whole
            return rebuild, (np.array(to_host(data)), data.layout.index, self.requires_grad)
        view = data.ptr - data.buffer.ptr, data.shape, data.strides, data.dtype
        return rebuild_shared, (storage, *view, *autograd_flags(self))

    def __copy__(self) -> Any:
        return copying.deepcopy(self)


def rebuild(array: Any, index: int, requires_grad: bool) -> Tensor:
    """A tensor from its pickle, on its original device."""
    result = cuda_tensor(to_device(array, index))
    return make_leaf(result) if requires_grad else result


def _rebuild_storage(words: Any, index: int) -> DeviceStorage:
    """A storage from its pickle."""
    return DeviceStorage(to_device(words, index).buffer)


def rebuild_shared(
    storage: DeviceStorage,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    requires_grad: bool,
    is_detached: bool,
) -> Tensor:
    """A tensor at an offset of a storage, from its pickle."""
    buffer = storage.owner
    result = cuda_tensor(
        DeviceArray(buffer.ptr + offset, layout_of(shape, strides, dtype, buffer.pool.at.index), buffer)
    )
    result._storage = storage
    return restore_autograd(result, requires_grad, is_detached)


def cuda_tensor(data: DeviceArray) -> CudaTensor:
    """A plain tensor on an array that it does not share."""
    tensor = CudaTensor.__new__(CudaTensor)
    tensor._data = data
    tensor._keys = CUDA_KEYS
    tensor._meta = tensor._storage = None
    if open_level_count[0]:
        note_allocation(tensor)
    return tensor


def cuda_view(data: DeviceArray, of: Tensor) -> CudaTensor:
    """A plain tensor on a part of another tensor's memory; both share one storage from then on."""
    tensor = CudaTensor.__new__(CudaTensor)
    tensor._data = data
    tensor._keys = CUDA_KEYS
    tensor._meta = None
    tensor._storage = storage_of(of)
    return tensor


def _find_aliases(tensor: Any) -> list[Any] | None:
    """The tensors that alias a tensor's memory: only itself, or None if they are not known."""
    data = tensor._data
    is_whole = data.buffer.pool is not None and data.layout.nbytes == data.buffer.nbytes
    return [tensor] if is_whole and is_alone(tensor) else None


EAGER.add(CudaTensor)
ADOPTED[CudaTensor], ADOPTED_BATCHED[CudaTensor] = LevelTensor, BatchedTensor
ALIAS_FINDERS[CudaTensor] = _find_aliases
