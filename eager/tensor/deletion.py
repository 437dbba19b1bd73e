"""Deleted tensors: a compiled call has taken over their memory (``donate_argnums``), or ``x.delete()`` has freed it."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import DeletedTensorError, UnsupportedError
from ...registry.values import describe
from .storage import Number
from .tensor import Tensor

_ARRAY: Any = vars(Tensor)["_array"]  # the slot, which DeletedTensor hides


class DeletedTensor(Tensor):
    """The class of a tensor after its memory is gone: every use raises :class:`tandem.errors.DeletedTensorError`."""

    __slots__ = ()

    @property
    def _array(self) -> NoReturn:
        self._host("this use")

    @_array.setter
    def _array(self, array: object) -> NoReturn:
        self._host("this use")

    def _host(self, what: str) -> NoReturn:
        raise DeletedTensorError(_message(what))

    def _without_history(self) -> NoReturn:
        self._host("detach()")

    def __repr__(self) -> str:
        return "<deleted tensor>"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._host("copying or pickling")


def _message(what: str) -> str:
    return (
        f"{what}: the tensor was deleted, by delete() or because it was donated to a jitted function "
        "(donate_argnums); use the function's result instead"
    )


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
    move_memory(self)


def can_delete(tensor: object) -> bool:
    """Whether a tensor is plain, in the memory of the host, and not part of a recorded computation."""
    return type(tensor) is Tensor and tensor._meta is None and type(tensor._storage) is not Number


def move_memory(tensor: Tensor) -> Tensor:
    """Make a plain tensor a deleted one, and return another tensor that has taken over its array and storage.

    No other thread can find the array through the tensor from then on. Of several threads that move the memory of one
    tensor at once, one succeeds.

    Raises:
        DeletedTensorError: another thread has deleted the tensor meanwhile.
    """
    tensor.__class__ = DeletedTensor  # before its array is read: what reads it now has its own reference
    moved = Tensor.__new__(Tensor)
    try:
        moved._array = _ARRAY.__get__(tensor)
        _ARRAY.__delete__(tensor)  # only one thread can
    except AttributeError:
        raise DeletedTensorError(_message("this use")) from None
    moved._keys, moved._meta, moved._storage = tensor._keys, None, tensor._storage
    tensor._storage = None
    return moved
