"""Hooks: functions that see, and may replace, the gradient of a tensor when ``backward`` has computed it.

Source: ``torch.Tensor.register_hook`` and ``retain_grad``.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable

from ...errors import ArgumentError, AutogradError, UnsupportedError
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import state
from ...registry.values import describe
from ..tensor.tensor import EAGER, Tensor
from .accumulate import add_gradient
from .autograd_meta import AutogradMeta

Hook = Callable[[Tensor], Tensor | None]
# [whether any hook was ever registered]: the engine ignores hooks until then.
used = [False]
_numbers = itertools.count()


class HookHandle:
    """Handle of a registered hook; ``remove()`` or leaving a ``with`` block removes it."""

    __slots__ = ("_hooks", "_number")

    def __init__(self, hooks: dict[int, Hook], number: int):
        self._hooks, self._number = hooks, number

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *fault: object) -> None:
        self.remove()


def register_hook(self: Tensor, hook: Hook) -> HookHandle:
    """Call a function with the gradient of this tensor whenever ``backward`` has computed it.

    Args:
        hook: a function of the gradient; its result, unless None, replaces the gradient.

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
    meta = _recorded_meta("register_hook", self)
    owner = meta if meta.node is None else meta.node
    table: dict[int, dict[int, Hook]] | None = getattr(owner, "hooks", None)
    if table is None:
        table = owner.hooks = {}
    used[0], number = True, next(_numbers)
    hooks = table.setdefault(meta.index, {})
    hooks[number] = hook
    return HookHandle(hooks, number)


def retain_grad(self: Tensor) -> None:
    """Make ``backward`` fill ``grad`` of this tensor too, although it is not a leaf.

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
    meta = _recorded_meta("retain_grad", self)
    if meta.node is None:
        return
    owner = meta.node
    known: dict[int, dict[int, Hook]] = getattr(owner, "hooks", None) or {}
    if not any(type(hook) is _RetainGrad for hook in known.get(meta.index, {}).values()):
        register_hook(self, _RetainGrad(meta))


class _RetainGrad:
    """The hook of :func:`retain_grad`: it runs after all others and stores the gradient."""

    __slots__ = ("_meta",)

    def __init__(self, meta: AutogradMeta):
        self._meta = weakref.ref(meta)  # the node holds the hook, and the meta holds the node

    def __call__(self, gradient: Tensor) -> None:
        """Add a gradient to ``grad``."""
        result = self._meta()
        if result is not None:
            add_gradient(result, gradient, is_recorded=not state.exclude & AUTOGRAD)


def _recorded_meta(what: str, x: Tensor) -> AutogradMeta:
    if type(x) not in EAGER:
        raise UnsupportedError(f"{what} works on eager tensors; inside td.grad and jit gradients are results")
    meta: AutogradMeta | None = x._meta
    if meta is None or not meta.requires_grad:
        raise AutogradError(
            f"{what}: {describe(x)} does not require a gradient; call x.requires_grad_() first"
        )
    return meta


def run(owner: object, index: int, gradient: Tensor) -> Tensor:
    """Run the hooks of a node's result, or of a leaf, on a gradient and return the gradient."""
    table = getattr(owner, "hooks", None)
    hooks = list(table.get(index, {}).values()) if table else []
    for hook in sorted(hooks, key=lambda hook: type(hook) is _RetainGrad):
        result = hook(gradient)
        if result is None:
            continue
        if (
            not isinstance(result, Tensor)
            or result.shape != gradient.shape
            or result.dtype is not gradient.dtype
        ):
            raise AutogradError(
                f"a hook returned {describe(result)} for a gradient {describe(gradient)}; return None or a like tensor"
            )
        gradient = result
    return gradient
