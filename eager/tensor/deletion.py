"""Deleted tensors: a compiled call has taken over their memory (``donate_argnums``), or ``x.delete()`` has freed it."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ...errors import DeletedTensorError, UnsupportedError
from ...registry.values import describe
from .storage import Number
from .tensor import Tensor


class DeletedTensor(Tensor):
    """The class of a tensor after its memory is gone: every use raises :class:`tandem.errors.DeletedTensorError`."""

    __slots__ = ()

    @property
    def _array(self) -> NoReturn:
        self._host("this use")

    def _host(self, what: str) -> NoReturn:
        raise DeletedTensorError(
            f"{what}: the tensor was deleted, by delete() or because it was donated to a jitted function "
            "(donate_argnums); use the function's result instead"
        )

    def _without_history(self) -> NoReturn:
        self._host("detach()")

    def __repr__(self) -> str:
        return "<deleted tensor>"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._host("copying or pickling")


def is_deleted(self: Tensor) -> bool:
    """Whether the memory of a tensor is gone, as for JAX's arrays.

    >>> import tandem as td
    >>> x = td.ones(3)
    >>> x.is_deleted()
    False
    >>> x.delete()
    >>> x.is_deleted(), x
    (True, <deleted tensor>)
    """
    return type(self) is DeletedTensor


def delete(self: Tensor) -> None:
    """Release a tensor's memory, as ``jax.Array.delete`` does; its later use is an error. Views keep the memory alive.

    Raises:
        UnsupportedError: the tensor is not a plain tensor in the memory of the host, or requires a gradient.
    """
    if not can_delete(self):
        if type(self) is DeletedTensor:
            return
        raise UnsupportedError(f"delete: {describe(self)} is not a plain tensor on the CPU without gradients")
    release_memory(self)


def can_delete(tensor: object) -> bool:
    """Whether a tensor is plain, in the memory of the host, and not part of a recorded computation."""
    return type(tensor) is Tensor and tensor._meta is None and type(tensor._storage) is not Number


def release_memory(tensor: Tensor) -> None:
    """Make a plain tensor a deleted one."""
    tensor._array, tensor._storage = np.empty(0, np.int8), None
    tensor.__class__ = DeletedTensor
