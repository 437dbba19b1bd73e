"""Accumulate gradients into the ``grad`` of leaves, also when several threads do so at once.

Source: ``torch::autograd::AccumulateGrad`` of PyTorch.

A first gradient becomes ``grad`` itself if nothing else refers to it or its memory, otherwise a copy does. A later one
is added in place, so that other references to ``grad`` see the sum. It is added out of place if the pass is recorded
(``create_graph``) or ``grad`` cannot be written (another layout, a subclass, read-only memory).

A lock is held only to compare ``grad`` with its former value and to write. User code (modes, kernels, subclasses) runs
without the lock, and runs again if another thread has changed ``grad`` meanwhile.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

import numpy as np

from ... import locks
from ...errors import NoKernelError
from ...operators.declare.quiet import call_quietly
from ...registry import native_type
from ...registry.dispatch import trace
from ...registry.dispatch.keys import BACKENDS, DispatchKey
from ...registry.dispatch.state import state
from ...registry.operator import Operator, change_listeners, find_operator
from ..tensor.storage import SOLE, owner_of
from ..tensor.tensor import EAGER, Tensor, storage_of
from ..tensor.transfer import copy_tensor
from .autograd_meta import AutogradMeta
from .view_writes import bump_version, is_alone

_PYTHON = 1 << DispatchKey.Python
_locks: list[AbstractContextManager[object]] = locks.make_locks("gradients", 64)


def accumulate(gradients: dict[AutogradMeta, Tensor], is_recorded: bool) -> None:
    """Add a gradient to the ``grad`` of each leaf, after a backward pass.

    Both passes, :meth:`.engine.Pass.run` and the native one (``rt_backward.py:add_to_table``), sum the gradients of a
    leaf in a dict; this function adds the sums to ``grad``.

    Args:
        gradients: the gradients by leaf; empty afterwards.
        is_recorded: whether the sums are recorded, for gradients of gradients.
    """
    for leaf in gradients:
        if leaf.grad is None and not is_sole(gradients, leaf):
            gradients[leaf] = _copy_gradient(gradients[leaf])
    is_plain = not is_recorded and not _runs_user_code()
    while gradients:
        leaf, gradient = gradients.popitem()
        there = leaf.grad
        if there is None:
            with _locks[id(leaf) >> 4 & 63]:
                if leaf.grad is None:
                    leaf.grad = gradient
                    continue
        elif not (is_plain and type(there) is type(gradient) is Tensor and there._array.flags.carray):
            pass
        elif _add_in_place(leaf, there, gradient):
            continue
        add_gradient(leaf, gradient, is_recorded)


def is_sole(gradients: dict[AutogradMeta, Tensor], leaf: AutogradMeta) -> bool:
    """Whether a gradient is writable and the dict is the only reference to it and its memory."""
    if sys.getrefcount(gradients[leaf]) > SOLE:
        return False
    gradient = gradients[leaf]
    if type(gradient) is Tensor and gradient._storage is None and gradient._array.base is None:
        return sys.getrefcount(gradient._array) <= SOLE and bool(gradient._array.flags.carray)
    return type(gradient) in EAGER and is_alone(gradient) and gradient._is_sole_owner()


def _copy_gradient(gradient: Tensor) -> Tensor:
    """A copy of a gradient.

    Raises:
        NoKernelError: the device is a registered one that cannot copy.
    """
    try:
        return copy_tensor(gradient)
    except NoKernelError as fault:
        raise NoKernelError(f"backward copies a gradient whose memory others may share: {fault}") from None


def add_gradient(leaf: AutogradMeta, gradient: Tensor, is_recorded: bool) -> None:
    """Add a gradient to the ``grad`` of one leaf, or store a copy if ``grad`` is None.

    Args:
        leaf: the leaf.
        gradient: a tensor.
        is_recorded: whether the sum is recorded.
    """
    done = False
    while not done:
        there = leaf.grad
        if there is None:
            done = _replace(leaf, None, _copy_gradient(gradient))
        elif is_recorded or not _is_writable(there, gradient):
            version = _version(there)
            done = _replace(leaf, there, there + gradient, version)
        elif _runs_user_code():
            version = _version(there)
            done = _add_observed(leaf, there, there + gradient, version)
        else:
            done = _add_in_place(leaf, there, gradient)


# -- what the existing gradient allows ---------------------------------------------------------------------------------
def _is_writable(there: Tensor, gradient: Tensor) -> bool:
    """Whether a gradient can be added to another one in place."""
    if type(there) is not type(gradient) or type(there) not in EAGER:
        return False
    if type(there) is Tensor:
        into, array = there._array, gradient._array
        if into.shape != array.shape or into.dtype != array.dtype or not into.flags.writeable:
            return False
        return into.flags.c_contiguous or into.flags.f_contiguous or not _overlaps_itself(there)
    return there.spec == gradient.spec and not there._keys & _PYTHON and not _overlaps_itself(there)


def _overlaps_itself(x: Tensor) -> bool:
    """Whether elements of a tensor may share an address: each stride must step over all that smaller ones reach."""
    reach = 1
    for step, size in sorted((abs(step), size) for step, size in zip(x._strides, x.shape) if size != 1):
        if step < reach:
            return True
        reach = step * size
    return False


def _version(x: Tensor) -> int:
    """The version of a tensor's memory; 0 for classes without versions."""
    return storage_of(x).version if type(x) in EAGER else 0


def _has_user_kernels() -> bool:
    """Whether an addition would run user kernels, or a mode that intercepts addition."""
    return any(
        op.extra_keys or not all(one.site.own for held in op.kernels.values() for one in held)
        for op in map(find_operator, ADDITIONS)
    )


ADDITIONS = ("td::add.Tensor", "td::add_.Tensor")
_adds_as_declared: list[bool] = []  # cache of `_has_user_kernels`, empty after kernels change


def _clear_answer(op: Operator) -> None:
    if op.name in ADDITIONS:
        _adds_as_declared.clear()


change_listeners.append(_clear_answer)


def _runs_user_code() -> bool:
    """Whether an addition would run user code (kernels, modes, an active trace)."""
    if state.include or trace.active:
        return True
    if not _adds_as_declared:
        _adds_as_declared.append(not _has_user_kernels())
    return not _adds_as_declared[-1]


# -- under the lock ----------------------------------------------------------------------------------------------------
def _lock_of(leaf: AutogradMeta, there: Tensor | None) -> AbstractContextManager[object]:
    """The lock of a gradient's memory, which two leaves may share; the leaf's lock if ``grad`` is None."""
    if there is None:
        return _locks[id(leaf) >> 4 & 63]
    if type(there) is Tensor:
        array = there._array
        return _locks[id(array if array.base is None else owner_of(array)) >> 4 & 63]
    return _locks[id(there._memory or there) >> 4 & 63]


def _replace(leaf: AutogradMeta, there: Tensor | None, total: Tensor, version: int = 0) -> bool:
    """Set ``grad`` if it is still the value that the total was computed from; return whether it was."""
    with _lock_of(leaf, there):
        if leaf.grad is not there or (there is not None and _version(there) != version):
            return False
        leaf.grad = total
    return True


def _add_in_place(leaf: AutogradMeta, there: Tensor, gradient: Tensor) -> bool:
    """Add to ``grad`` in place without running user code; return False if ``grad`` has changed."""
    with _lock_of(leaf, there):
        if leaf.grad is not there:
            return False
        if type(there) is not Tensor:
            find_operator("td::add_.Tensor").dispatch(there._keys & BACKENDS, (there, gradient), {})
        elif native_type.fault:
            call_quietly(np.add, there._array, gradient._array, there._array)
        else:
            there.add_(gradient)
            _drop_history(leaf, there)
            return True
        bump_version(there)
        _drop_history(leaf, there)
    return True


def _add_observed(leaf: AutogradMeta, there: Tensor, total: Tensor, version: int) -> bool:
    """Write a sum that user code has computed into ``grad``, or replace ``grad`` if it is not writable."""
    if type(there) is not Tensor or not _is_writable(there, total):
        return _replace(leaf, there, total, version)
    with _lock_of(leaf, there):
        if leaf.grad is not there or _version(there) != version:
            return False
        np.copyto(there._array, total._array)
        bump_version(there)
        _drop_history(leaf, there)
    return True


def _drop_history(leaf: AutogradMeta, there: Tensor) -> None:
    """Detach ``grad`` if the in-place addition has given it a graph node."""
    if there._meta is not None and there._meta.node is not None:
        leaf.grad = there._alias()
