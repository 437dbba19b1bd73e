"""Tensors on the device ``toy``, which stores negated elements, so that direct reads of the buffer are wrong."""

from typing import Final, NoReturn

import numpy as np
import tandem as td
from tandem.eager.tensor.storage import Storage
from tandem.eager.tensor.tensor import dtype_of
from tandem.registry.dtypes import DType
from tandem.registry.values import Device, TensorSpec, as_device

DEVICE: Final = as_device("toy")
KEYS = 1 << td.DispatchKey.PrivateUse1
log: list[tuple[str, str]] = []  # (operator, "kernel" or "fallback") of each call on the device


def negated(array: np.ndarray) -> np.ndarray:
    """Convert elements to the buffer's, or back."""
    result: np.ndarray = np.invert(array) if array.dtype == bool else np.negative(array)
    return result


class ToyTensor(td.Tensor):
    """A tensor on the device ``toy``. It has no ndarray, and NumPy functions on it raise an error."""

    __slots__ = ("buffer",)
    buffer: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        return dtype_of(self.buffer)

    @property
    def device(self) -> Device:
        return DEVICE

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.shape, self.dtype, DEVICE)

    @property
    def _strides(self) -> tuple[int, ...]:
        return tuple(step // self.buffer.itemsize for step in self.buffer.strides)

    @property
    def storage_offset(self) -> int:
        return 0

    def is_contiguous(self) -> bool:
        return True

    @property
    def _array(self) -> NoReturn:
        self._host("NumPy")

    def _host(self, what: str) -> NoReturn:
        raise td.errors.UnsupportedError(f"{what}: the elements lie on the device 'toy'; take x.to('cpu')")

    def _alias(self) -> "ToyTensor":
        result = toy_tensor(self.buffer)
        result._storage = self._storage
        return result

    def _without_history(self) -> "ToyTensor":
        return self._alias()

    def __repr__(self) -> str:
        notes = ", requires_grad=True" if self.requires_grad else ""
        return f"tensor({negated(self.buffer).tolist()}, dtype={self.dtype}, device='toy'{notes})"

    __str__ = __repr__


def toy_tensor(buffer: np.ndarray) -> ToyTensor:
    """A tensor around a buffer."""
    tensor = ToyTensor.__new__(ToyTensor)
    tensor.buffer = np.ascontiguousarray(buffer).reshape(np.shape(buffer))
    tensor._keys, tensor._meta, tensor._storage = KEYS, None, Storage(tensor.buffer)
    return tensor


def from_cpu(tensor: td.Tensor, device: str) -> ToyTensor:
    """A tensor on the device with the elements of one on the CPU."""
    return toy_tensor(negated(tensor.detach().numpy()))


def to_cpu(tensor: ToyTensor) -> td.Tensor:
    """The elements as a tensor on the CPU."""
    return td.asarray(negated(tensor.buffer))
