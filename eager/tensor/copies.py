"""Pickle and copy tensors; tensors that share memory share it in the copy too.

A tensor that shares memory is reduced to its storage and its offset and strides there; pickle and deepcopy process each
storage once. Other tensors are reduced to their elements.

Source: ``torch.Tensor.__reduce_ex__`` and ``__deepcopy__``.
"""

from __future__ import annotations

import copy as copying
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from ... import lazy
from ...errors import ArgumentError
from ...named_tuple import NamedTuple
from ...registry.dispatch.keys import CPU_KEYS
from ...registry.native_type import accept_entry
from ..autograd.autograd_meta import is_detached, mark_detached, requires_grad_
from .storage import Storage, address_of
from .tensor import Tensor, storage_of, wrap
from .weak_scalars import is_weak, number_of, weak_scalar

if TYPE_CHECKING:
    from ...registry.types import Args, Array, Function


_view_writes = lazy.Module(".eager.autograd.view_writes")
level_stack = lazy.Module(".eager.layers.level_stack")


class StorageView(NamedTuple):
    """The offset, shape, strides and dtype of a tensor in the memory of its storage; offset and strides in bytes."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


def check_leaf(tensor: Tensor) -> None:
    """Check that a tensor is a leaf.

    Raises:
        ArgumentError: it is not.
    """
    if tensor.requires_grad and level_stack.stack.recording is not None:
        level_stack.stack.recording.refuse(tensor, "copy or pickle")
    if not tensor.is_leaf:
        raise ArgumentError(
            "only leaves can be pickled or copied, not a tensor with a grad_fn; use x.detach()"
        )


def reduce_ex(self: Tensor, protocol: SupportsIndex) -> tuple[Function, Args]:
    """Reduce a leaf to its elements, or its storage if memory is shared, and its autograd flags."""
    check_leaf(self)
    if is_weak(self):
        return weak_scalar, (number_of(self),)
    array = self._host("pickling")
    if not shares_memory(self):
        return rebuild, (np.array(array), self.requires_grad)
    storage = storage_of(self)
    return rebuild_shared, (storage, view_in_storage(array, storage), *autograd_flags(self))


def shares_memory(tensor: Tensor) -> bool:
    """Whether another tensor, or a graph node, may refer to a tensor's memory."""
    return tensor._storage is not None and not _view_writes.is_alone(tensor)


def rebuild(array: Array, requires_grad: bool) -> Tensor:
    """Rebuild a tensor that does not share memory; the inverse of :func:`reduce_ex`."""
    tensor = wrap(array)
    return requires_grad_(tensor) if requires_grad else tensor


def rebuild_shared(storage: Storage, view: StorageView, requires_grad: bool, is_detached: bool) -> Tensor:
    """Rebuild a tensor on a shared storage; the inverse of :func:`reduce_ex`."""
    tensor = wrap(array_at(storage.owner, view))
    tensor._storage = storage
    return restore_autograd(tensor, requires_grad, is_detached)


def autograd_flags(tensor: Tensor) -> tuple[bool, bool]:
    """Whether a leaf requires a gradient, and whether it was detached from another tensor in its memory."""
    return tensor.requires_grad, is_detached(tensor)


def restore_autograd(tensor: Tensor, requires_grad: bool, is_detached: bool) -> Tensor:
    """Apply the result of :func:`autograd_flags` to a new tensor."""
    if requires_grad:
        return requires_grad_(tensor)
    return mark_detached(tensor) if is_detached else tensor


@accept_entry("copy_with_memo")
def deepcopy(self: Tensor, memo: dict[int, object]) -> Tensor:
    """A copy in new memory, which copies of its views share; a leaf stays a leaf, with a copy of its gradient.

    Native twin: backends/cpu/fastpath/entries/rt_copies.py:copy_with_memo
    """
    if _is_plain(self) and self._storage is None:
        plain = memo[id(self)] = shallow_copy(self)
        return plain
    make, (first, *rest) = self.__reduce_ex__(4)
    arguments = (copying.deepcopy(first, memo) if first is self._storage else first, *rest)
    copy: Tensor = make(*arguments)  # type: ignore[assignment]
    memo[id(self)] = copy
    if self.grad is not None:
        set_gradient(copy, copying.deepcopy(self.grad, memo))
    return copy


def set_gradient(tensor: Tensor, gradient: Tensor) -> None:
    """Set the gradient of a leaf, which need not require one: ``requires_grad_(False)`` keeps the gradient too."""
    is_frozen = not tensor.requires_grad
    requires_grad_(tensor).grad = gradient
    if is_frozen:
        requires_grad_(tensor, False)


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has elements in NumPy's memory only, and no history, gradient or mark."""
    return type(tensor) is Tensor and tensor._keys is CPU_KEYS and tensor._meta is None


@accept_entry("copy_elements")
def shallow_copy(self: Tensor) -> Tensor:
    """A copy in new memory (as NumPy's), of the elements alone.

    Native twin: backends/cpu/fastpath/entries/rt_copies.py:copy_elements
    """
    if _is_plain(self):
        return wrap(np.array(self._host("copying")))
    check_leaf(self)
    if is_weak(self):
        return self
    copy = rebuild(np.array(self._host("copying")), self.requires_grad)
    if self.grad is not None:
        set_gradient(copy, copying.deepcopy(self.grad))
    return copy


# -- views of a storage ------------------------------------------------------------------------------------------------
def view_in_storage(array: Array, storage: Storage) -> StorageView:
    """The position of an array in the memory that :func:`.storage.memory_copy` copies."""
    low = np.lib.array_utils.byte_bounds(storage.owner)[0]
    return StorageView(address_of(array) - low if array.size else 0, array.shape, array.strides, array.dtype)


def array_at(memory: Array, view: StorageView) -> Array:
    """The array at a position in a contiguous memory; read-only if several of its elements share an address."""
    whole = memory if memory.flags.c_contiguous else memory.T
    words = whole.reshape(-1).view(np.uint8)
    if not all(view.shape):
        empty: Array = words[:0].view(view.dtype).reshape(view.shape)
        return empty
    array: Array = np.ndarray(view.shape, view.dtype, words, view.offset, view.strides)
    if any(size > 1 and not step for size, step in zip(view.shape, view.strides)):
        array.flags.writeable = False
    return array
