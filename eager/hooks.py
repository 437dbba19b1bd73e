"""Hooks: functions that see, and may replace, the gradient of a tensor when ``backward`` has computed it.

Source: ``torch.Tensor.register_hook`` and ``retain_grad``.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, AutogradError, UnsupportedError
from ..registry.values import describe
from .meta import AutogradMeta
from .tensor import EAGER, Tensor

Hook = Callable[[Any], Any]
# [whether any hook was ever registered]: the engine looks for them from then on only.
used = [False]
_numbers = itertools.count()


class HookHandle:
    """What :func:`register_hook` returns: ``remove()`` takes the hook away; usable in ``with``."""

    __slots__ = ("_hooks", "_number")

    def __init__(self, hooks: dict[int, Hook], number: int):
        self._hooks, self._number = hooks, number

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *fault: object) -> None:
        self.remove()


def register_hook(self: Tensor, hook: Any) -> Any:
    """Have a function called with the gradient of this tensor, each time that ``backward`` has computed it.

    Args:
        hook: takes the gradient; what it returns, unless None, takes the gradient's place.

    Returns:
        A handle with ``remove()``.

    Raises:
        AutogradError: the tensor requires no gradient.
        ArgumentError: the hook is not callable.
        UnsupportedError: the tensor belongs to a transform or a trace.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> y = x * 3.0
    >>> _ = y.register_hook(lambda g: g * 10.0)
    >>> y.sum().backward()
    >>> x.grad
    tensor([30., 30.])
    """
    if not callable(hook):
        raise ArgumentError(f"register_hook takes a function of the gradient, not {describe(hook)}")
    meta = _recorded("register_hook", self)
    owner = meta if meta.node is None else meta.node
    table: dict[int, dict[int, Hook]] | None = getattr(owner, "hooks", None)
    if table is None:
        table = owner.hooks = {}
    used[0], number = True, next(_numbers)
    hooks = table.setdefault(meta.index, {})
    hooks[number] = hook
    return HookHandle(hooks, number)


def retain_grad(self: Tensor) -> None:
    """Have ``backward`` fill ``grad`` of this tensor too, though it is the result of an operation.

    Raises:
        AutogradError: the tensor requires no gradient.
        UnsupportedError: the tensor belongs to a transform or a trace.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> y = x * 3.0
    >>> y.retain_grad()
    >>> (y * y).sum().backward()
    >>> y.grad
    tensor([ 6., 12.])
    """
    meta = _recorded("retain_grad", self)
    if meta.node is None:
        return
    owner = meta.node
    known: dict[int, dict[int, Hook]] = getattr(owner, "hooks", None) or {}
    if not any(type(hook) is _Keep for hook in known.get(meta.index, {}).values()):
        register_hook(self, _Keep(meta))


class _Keep:
    """The hook of :func:`retain_grad`: it comes after all others, and keeps what they have made of the gradient."""

    __slots__ = ("_meta",)

    def __init__(self, meta: AutogradMeta):
        self._meta = weakref.ref(meta)  # the node holds the hook, and the meta holds the node

    def __call__(self, gradient: Any) -> None:
        """Add a gradient to those so far."""
        found = self._meta()
        if found is not None:
            found.grad = gradient.clone() if found.grad is None else found.grad + gradient


def _recorded(what: str, x: Tensor) -> AutogradMeta:
    if type(x) not in EAGER:
        raise UnsupportedError(f"{what} works on eager tensors; inside td.grad and jit gradients are results")
    meta: AutogradMeta | None = x._meta
    if meta is None or not meta.requires_grad:
        raise AutogradError(f"{what}: {describe(x)} requires no gradient, so none is computed for it")
    return meta


def run(owner: Any, index: int, gradient: Any) -> Any:
    """A gradient after the hooks of a node's result, or of a leaf."""
    table = getattr(owner, "hooks", None)
    hooks = list(table.get(index, {}).values()) if table else []
    for hook in sorted(hooks, key=lambda hook: type(hook) is _Keep):
        found = hook(gradient)
        if found is None:
            continue
        if (
            not isinstance(found, Tensor)
            or found.shape != gradient.shape
            or found.dtype is not gradient.dtype
        ):
            raise AutogradError(
                f"a hook gave {describe(found)} for a gradient {describe(gradient)}; it gives None or a tensor like it"
            )
        gradient = found
    return gradient
