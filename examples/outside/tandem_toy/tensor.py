"""Tensors on the device ``toy``, which stores negated elements, so that direct reads of the buffer are wrong."""

import numpy as np
import tandem as td
from tandem.eager.tensor.storage import Storage
from tandem.eager.tensor.tensor import dtype_of
from tandem.registry.values import TensorSpec

DEVICE = "toy"
KEYS = 1 << td.DispatchKey.PrivateUse1
log = []  # (operator, "kernel" or "fallback") of each call on the device


def negated(array):
    """Convert elements to the buffer's, or back."""
    return np.invert(array) if array.dtype == bool else np.negative(array)


class ToyTensor(td.Tensor):
    """A tensor on the device ``toy``. It has no ndarray, and NumPy functions on it raise an error."""

    __slots__ = ("buffer",)

    @property
    def shape(self):
        return self.buffer.shape

    @property
    def dtype(self):
        return dtype_of(self.buffer)

    @property
    def device(self):
        return DEVICE

    @property
    def spec(self):
        return TensorSpec(self.shape, self.dtype, DEVICE)

    @property
    def strides(self):
        return tuple(step // self.buffer.itemsize for step in self.buffer.strides)

    @property
    def storage_offset(self):
        return 0

    def is_contiguous(self):
        return True

    @property
    def _array(self):
        return self._host("NumPy")

    def _host(self, what):
        raise td.errors.UnsupportedError(f"{what}: the elements lie on the device 'toy'; take x.to('cpu')")

    def _alias(self):
        result = toy_tensor(self.buffer)
        result._storage = self._storage
        return result

    def _without_history(self):
        return self._alias()

    def __repr__(self):
        notes = ", requires_grad=True" if self.requires_grad else ""
        return f"tensor({negated(self.buffer).tolist()}, dtype={self.dtype}, device='toy'{notes})"

    __str__ = __repr__


def toy_tensor(buffer):
    """A tensor around a buffer."""
    tensor = ToyTensor.__new__(ToyTensor)
    tensor.buffer = np.ascontiguousarray(buffer).reshape(np.shape(buffer))
    tensor._keys, tensor._meta, tensor._storage = KEYS, None, Storage(tensor.buffer)
    return tensor


def from_cpu(tensor, device):
    """A tensor on the device with the elements of one on the CPU."""
    return toy_tensor(negated(tensor.detach().numpy()))


def to_cpu(tensor):
    """The elements as a tensor on the CPU."""
    return td.asarray(negated(tensor.buffer))
