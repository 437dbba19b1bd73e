"""Methods of NumPy's arrays that PyTorch's tensors lack: fill, put, compress, argpartition, tobytes, tofile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.tensor.construct import asarray
from ..operators.indexing.positions import compress as _compress
from ..operators.reductions.partitions import argpartition as _argpartition
from ..registry.native_type import accept_entry
from .writing import put as _put

if TYPE_CHECKING:
    from ..registry.types import Tensor, TensorLike


def fill(self: Tensor, value: object) -> None:
    """Write one value into all elements.

    >>> import tandem as td
    >>> x = td.zeros(2)
    >>> x.fill(3)
    >>> x.tolist()
    [3.0, 3.0]
    """
    self.fill_(value)


def put(self: Tensor, indices: TensorLike, values: TensorLike, mode: str = "raise") -> None:
    """Write values at positions of the flattened tensor."""
    _put(self, indices, values, mode)


def compress(self: Tensor, condition: TensorLike, axis: int | None = None) -> Tensor:
    """The slices along an axis where a condition is true; None: of the flattened tensor."""
    return _compress(asarray(condition), self, axis)


def argpartition(self: Tensor, kth: int, axis: int = -1) -> Tensor:
    """The indices that put the k-th smallest element at its sorted position, smaller ones before it."""
    return _argpartition(self, kth, axis=axis)


@accept_entry("to_bytes")
def tobytes(self: Tensor, order: str = "C") -> bytes:
    r"""The elements as bytes, in the order of the last axis first; ``"F"``: of the first.

    >>> import tandem as td
    >>> td.asarray([1, 2], dtype=td.int16).tobytes()
    b'\x01\x00\x02\x00'
    """
    return bytes(self.numpy().tobytes(order))  # type: ignore[arg-type]  # NumPy checks it


def tofile(self: Tensor, fid: object, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file, as bytes, or as text with a separator."""
    self.numpy().tofile(fid, sep, format)  # type: ignore[arg-type]  # NumPy checks it
