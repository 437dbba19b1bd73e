"""``td.autograd.graph``: hooks of saved tensors, which pack the residuals of recorded calls and unpack them again.

Inside :class:`saved_tensors_hooks` each recorded call passes its residuals to ``pack`` and stores the results; before
its derivative runs, ``unpack`` returns the tensors. Meanwhile the node's residuals are a
:class:`.node.DroppedResiduals`, as those of a checkpointed function. Native entries record nothing inside, because
the Mode key is included.

Source: ``torch.autograd.graph.saved_tensors_hooks`` and ``save_on_cpu``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any

from ...errors import AutogradError, UnsupportedError
from ...locks import ThreadLocal
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOGRAD, DispatchKey
from ...registry.values import describe
from ..tensor.storage import Hold
from ..tensor.tensor import EAGER, Tensor, require_grad, storage_of
from ..tensor.weak_scalars import is_weak
from .graph_functions import GraphFunction as Node
from .hooks import register_multi_grad_hook
from .node import DroppedResiduals, packings, untracked_alias, version_of
from .node import Node as _Node

__all__ = [
    "Node",
    "disable_saved_tensors_hooks",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

_MODE = 1 << DispatchKey.Mode
Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]


class _Hooks(ThreadLocal):
    """The hooks of this thread, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[saved_tensors_hooks] = []
        self.refusals: list[str] = []


_hooks = _Hooks()


class saved_tensors_hooks:  # PyTorch's name
    """Context manager: calls recorded inside store ``pack(x)`` for each tensor that their derivative needs.

    Args:
        pack: a function of a tensor; its result may be anything, such as a file name or a tensor on another device.
        unpack: a function of that result, which returns a tensor of the same shape and dtype.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> with td.autograd.graph.saved_tensors_hooks(lambda x: x.numpy().copy(), td.asarray):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack: Pack, unpack: Unpack):
        self.pack, self.unpack = pack, unpack
        self._guards: list[AbstractContextManager[object]] = []

    def __enter__(self) -> None:
        if _hooks.refusals:
            raise UnsupportedError(_hooks.refusals[-1])
        guard = adjust_keys(include=_MODE)
        guard.__enter__()
        self._guards.append(guard)
        _hooks.stack.append(self)
        packings[0] += 1

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        packings[0] -= 1
        _hooks.stack.remove(self)
        self._guards.pop().__exit__(kind, fault, at)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context manager: to enter :class:`saved_tensors_hooks` inside raises an UnsupportedError with this message."""
    _hooks.refusals.append(error_message)
    try:
        yield
    finally:
        _hooks.refusals.remove(error_message)


class save_on_cpu(saved_tensors_hooks):  # PyTorch's name
    """Context manager: tensors that derivatives need are stored on the host, and moved back for ``backward``.

    Args:
        pin_memory: whether to store them in page-locked memory.
        device_type: as in PyTorch; tensors of every device are moved.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def pack(x: Tensor) -> tuple[str, Tensor]:
            host = x.cpu()
            return x.device, host.pin_memory() if pin_memory else host

        super().__init__(pack, lambda packed: packed[1].to(packed[0]))


class _Packed:
    """A packed residual: the result of ``pack``, and the spec and the graph of the residual."""

    __slots__ = ("meta", "spec", "value")

    def __init__(self, value: Any, x: Tensor):
        self.value, self.spec, self.meta = value, x.spec, x._meta


class PackedResiduals:
    """The packed residuals of a node, which :meth:`take` unpacks.

    Args:
        state: the node's state: residuals, versions, and the rest.
        hooks: the hooks.
    """

    def __init__(self, state: tuple[Any, ...], hooks: saved_tensors_hooks):
        residuals, self._versions, *self._rest = state
        self._unpack = hooks.unpack
        with adjust_keys(exclude=AUTOGRAD | _MODE):
            self._residuals = [_pack(hooks.pack, x, known) for x, known in zip(residuals, self._versions)]

    def take(self, index: int) -> tuple[Any, ...]:
        """The state with the residuals unpacked."""
        with adjust_keys(exclude=AUTOGRAD):
            values = [_unpack(self._unpack, x) for x in self._residuals]
        versions = [_renew(x, known) for x, known in zip(values, self._versions)]
        return (tuple(values), tuple(versions), *self._rest)


def pack_residuals(node: _Node) -> None:
    """Pack the residuals of a node that this thread has just recorded."""
    if _hooks.stack and node.residuals:
        state = node.state()
        node.drop(DroppedResiduals(PackedResiduals(state, _hooks.stack[-1]), 0))


def _pack(pack: Pack, value: Any, version: Any) -> Any:
    if type(version) is list:
        return tuple(_pack(pack, item, known) for item, known in zip(value, version))
    if version is None or type(value) not in EAGER or is_weak(value):  # of a trace or a transform
        return value
    return _Packed(pack(value), value)


def _unpack(unpack: Unpack, packed: Any) -> Any:
    if type(packed) is tuple:
        return tuple(_unpack(unpack, item) for item in packed)
    if type(packed) is not _Packed:
        return packed
    result = unpack(packed.value)
    if not isinstance(result, Tensor) or result.spec != packed.spec:
        raise AutogradError(
            f"saved_tensors_hooks: unpack returned {describe(result)} for a tensor {packed.spec}; return a tensor of "
            "the same shape, dtype and device"
        )
    meta = packed.meta
    if meta is None or result._meta is meta:
        return result
    return require_grad(untracked_alias(result), meta)


def _renew(value: Any, version: Any) -> Any:
    """The version of an unpacked residual now, in the form of the version when it was saved."""
    if type(version) is list:
        return [_renew(item, known) for item, known in zip(value, version)]
    if type(version) is Hold:
        return Hold(storage_of(value))
    if type(version) is tuple:
        return (Hold(storage_of(value)), *version[1:])
    return version if version is None else version_of(value)
