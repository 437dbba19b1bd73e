"""Tensors in device memory: the same Tensor, around an array of the device."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

import numpy as np

from ...eager.batched.adopt import ADOPTED_BATCHED
from ...eager.batched.tensor import BatchedTensor
from ...eager.levels import ADOPTED, GATHERERS, LevelTensor
from ...eager.made import note, watching
from ...eager.meta import leaf
from ...eager.storage import Storage
from ...eager.tensor import EAGER, Tensor, storage_of
from ...eager.views import is_alone
from ...errors import ArgumentError
from ...registry.dtypes import DType
from ...registry.keys import AUTOGRAD, CUDA_KEYS
from ...registry.state import state
from ...registry.values import TensorSpec, describe
from . import interop
from .arrays import DeviceArray
from .copies import to_device, to_host


class DeviceStorage(Storage):
    """The device memory that tensors share.

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


class _Place(Protocol):
    """The slot that holds a tensor's array."""

    def __get__(self, tensor: Any, owner: Any) -> DeviceArray: ...

    def __set__(self, tensor: Any, array: DeviceArray) -> None: ...


class CudaTensor(Tensor):
    """A tensor whose elements lie in the memory of a CUDA device.

    Calls put their work into the device's current stream and return; what needs the elements on the host (printing,
    ``item()``, ``bool()``) waits for them. NumPy never gets them by itself: ask with ``.to("cpu")``.
    """

    # No slots beside a Tensor's, so that a tensor made inside a transform can become a value of it.
    __slots__ = ()
    _data: _Place = Tensor.__dict__["_array"]

    # -- what it is ------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.layout.shape

    @property
    def dtype(self) -> DType:
        return self._data.layout.dtype

    @property
    def device(self) -> str:
        return self._data.layout.spec.device

    @property
    def spec(self) -> TensorSpec:
        return self._data.layout.spec

    @property
    def size(self) -> int:
        return self._data.layout.size

    @property
    def strides(self) -> tuple[int, ...]:
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

    def _twin(self) -> CudaTensor:
        twin = CudaTensor.__new__(CudaTensor)
        twin._data, twin._keys, twin._meta, twin._storage = self._data, self._keys, self._meta, self._storage
        return twin

    # -- its elements on the host ----------------------------------------------------------------------------------
    @property
    def _array(self) -> Any:
        self._refuse("NumPy code")

    def _refuse(self, what: str) -> NoReturn:
        raise ArgumentError(
            f"{what}: {describe(self)} lies on {self.device}, and NumPy reads the host's memory only; copy it there "
            'with x.to("cpu")'
        )

    def _host(self, what: str) -> Any:
        return to_host(self._data)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Refused: the elements lie on the device.

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
                f"{what} passes no gradients on, and this tensor requires them; use x.detach()"
            )

    # -- pickle and copies -----------------------------------------------------------------------------------------
    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self.is_leaf:
            raise ArgumentError(
                "only leaves can be pickled or copied, not a tensor with a history; use x.detach()"
            )
        return rebuild, (np.array(to_host(self._data)), self._data.layout.index, self.requires_grad)


def rebuild(array: Any, index: int, requires_grad: bool) -> Tensor:
    """A tensor from its pickle, on the device that it came from."""
    made = cuda_tensor(to_device(array, index))
    return leaf(made) if requires_grad else made


def cuda_tensor(data: DeviceArray) -> CudaTensor:
    """A plain tensor around an array of its own."""
    tensor = CudaTensor.__new__(CudaTensor)
    tensor._data = data
    tensor._keys = CUDA_KEYS
    tensor._meta = tensor._storage = None
    if watching[0]:
        note(tensor)
    return tensor


def cuda_view(data: DeviceArray, of: Tensor) -> CudaTensor:
    """A plain tensor around a part of another one's memory; both share one storage from here on."""
    tensor = CudaTensor.__new__(CudaTensor)
    tensor._data = data
    tensor._keys = CUDA_KEYS
    tensor._meta = None
    tensor._storage = storage_of(of)
    return tensor


def _gathered(tensor: Any) -> list[Any] | None:
    """The tensor, if nobody else lies in its memory; else who does is not known."""
    data = tensor._data
    is_whole = data.buffer.pool is not None and data.layout.nbytes == data.buffer.nbytes
    return [tensor] if is_whole and is_alone(tensor) else None


EAGER.add(CudaTensor)
ADOPTED[CudaTensor], ADOPTED_BATCHED[CudaTensor] = LevelTensor, BatchedTensor
GATHERERS[CudaTensor] = _gathered
