"""Tensor hooks: functions that see, and may replace, the gradient of a tensor when ``backward`` has computed it.

Source: ``torch.Tensor.register_hook`` and ``retain_grad``.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...errors import ArgumentError, AutogradError, UnsupportedError
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import state
from ...registry.values import describe
from ..layers.level_stack import stack
from ..tensor.tensor import EAGER, Tensor
from .accumulate import add_gradient
from .autograd_meta import AutogradMeta

Hook = Callable[[Tensor], Tensor | None]
# [whether any hook was ever registered]: the engine ignores hooks until then.
used = [False]
_ids = itertools.count()


class RemovableHandle:
    """A handle of a registered hook: ``remove()``, or leaving a ``with`` block, removes the hook."""

    __slots__ = ("_hooks", "_id")

    def __init__(self, hooks: dict[int, Hook], id_: int):
        self._hooks, self._id = hooks, id_

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self._id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *fault: object) -> None:
        self.remove()


def register_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Register a backward hook, a function of the gradient of this tensor.

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
    meta = _get_recorded_meta("register_hook", self)
    target = meta if meta.node is None else meta.node
    hooks_by_index: dict[int, dict[int, Hook]] | None = getattr(target, "hooks", None)
    if hooks_by_index is None:
        hooks_by_index = target.hooks = {}
    used[0], id_ = True, next(_ids)
    hooks = hooks_by_index.setdefault(meta.index, {})
    hooks[id_] = hook
    return RemovableHandle(hooks, id_)


NodeHook = Callable[..., object]
AFTER, BEFORE = "after", "before"  # further keys of a node's hooks


def register_node_hook(target: object, when: str, hook: NodeHook) -> RemovableHandle:
    """Register a function that ``backward`` calls when it evaluates a node.

    Args:
        target: the node.
        when: ``BEFORE``: ``hook(grad_outputs)``; ``AFTER``: ``hook(grad_inputs, grad_outputs)``.
        hook: the function; its result, unless None, replaces its first argument.

    Raises:
        ArgumentError: the hook is not callable, or the node is a leaf.
    """
    if not callable(hook):
        raise ArgumentError(f"register_hook takes a function of gradients, not {describe(hook)}")
    if isinstance(target, AutogradMeta):
        raise ArgumentError("register_hook: AccumulateGrad computes nothing; use a hook of the leaf")
    if getattr(target, "hooks", None) is None:
        target.hooks = {}  # type: ignore[attr-defined]  # a node
    used[0], id_ = True, next(_ids)
    hooks = target.hooks.setdefault(when, {})  # type: ignore[attr-defined]
    hooks[id_] = hook
    return RemovableHandle(hooks, id_)


def run_before(node: object, cotangents: dict[int, Tensor]) -> dict[int, Tensor]:
    """Run the hooks of a node before its derivative; returns the gradients of its results."""
    hooks = (getattr(node, "hooks", None) or {}).get(BEFORE, {})
    for hook in list(hooks.values()):
        count = max(cotangents) + 1
        result = hook(tuple(cotangents.get(index) for index in range(count)))
        if result is not None:
            cotangents = {index: gradient for index, gradient in enumerate(result) if gradient is not None}
    return cotangents


def run_after(node: object, gradients: list[object], cotangents: dict[int, Tensor]) -> list[object]:
    """Run the hooks of a node after its derivative; returns the gradients of its arguments."""
    hooks = (getattr(node, "hooks", None) or {}).get(AFTER, {})
    for hook in list(hooks.values()):
        results = tuple(cotangents.get(index) for index in range(max(cotangents) + 1))
        result = hook(tuple(gradients), results)
        if result is not None:
            gradients = list(result)
    return gradients


def retain_grad(self: Tensor) -> None:
    """Store the gradient in ``grad`` during ``backward``, although the tensor is not a leaf.

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
    meta = _get_recorded_meta("retain_grad", self)
    if meta.node is None:
        return
    if not retains_gradient(self):
        register_hook(self, _RetainGrad(meta))


def retains_gradient(x: Tensor) -> bool:
    """Whether :func:`retain_grad` was called for a tensor that is not a leaf."""
    return x._meta is not None and is_retained(x._meta)


def is_retained(meta: AutogradMeta) -> bool:
    """Whether :func:`retain_grad` was called for the tensor of this metadata, which is not a leaf."""
    if meta.node is None:
        return False
    hooks_by_index: dict[int, dict[int, Hook]] = getattr(meta.node, "hooks", None) or {}
    return any(type(hook) is _RetainGrad for hook in hooks_by_index.get(meta.index, {}).values())


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Any], object], *, mode: str = "all"
) -> MultiHandle:
    """Call a function with the gradients of several tensors, once ``backward`` has computed all of them.

    Args:
        tensors: tensors that require gradients.
        fn: a function of a list with the gradient of each tensor; with ``mode="any"``, of the first gradient.
        mode: ``"all"`` or ``"any"``. If a pass reaches only some of the tensors, ``"all"`` calls ``fn`` at the end of
            the pass, with None for the others.

    Returns:
        A handle with ``remove()``.

    Raises:
        ArgumentError: ``mode`` is another word.

    >>> import tandem as td
    >>> x, y = td.asarray(2.0, requires_grad=True), td.asarray(3.0, requires_grad=True)
    >>> hook = td.autograd.graph.register_multi_grad_hook([x, y], lambda grads: print([g.item() for g in grads]))
    >>> (x * y).backward()
    [3.0, 2.0]
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"register_multi_grad_hook: mode is 'all' or 'any', not {mode!r}")
    hook = _MultiGradHook(len(tensors), fn, mode == "any")
    return MultiHandle([register_hook(x, functools.partial(hook.add, at)) for at, x in enumerate(tensors)])


class _OpenPasses(threading.local):
    """The gradients that the hooks of several tensors have seen, for each backward pass that this thread runs."""

    def __init__(self) -> None:
        self.stack: list[dict[_MultiGradHook, dict[int, Tensor]]] = []


_open_passes = _OpenPasses()


class _MultiGradHook:
    """A hook of several tensors: it collects their gradients for each backward pass on its own."""

    __slots__ = ("_any", "_count", "_fn")

    def __init__(self, count: int, fn: Callable[[Any], object], calls_for_any: bool):
        self._count, self._fn, self._any = count, fn, calls_for_any

    def add(self, at: int, gradient: Tensor) -> None:
        """Add the gradient of one tensor, and call the function if it is the one that it waits for."""
        if not _open_passes.stack:
            return  # registered while the pass was running
        seen = _open_passes.stack[-1].setdefault(self, {})
        seen[at] = gradient
        if len(seen) == (1 if self._any else self._count):
            self._fn(gradient if self._any else [seen[position] for position in range(self._count)])

    def finish(self, seen: dict[int, Tensor]) -> None:
        """Call the function for a pass that has reached only some of the tensors."""
        if not self._any and len(seen) < self._count:
            self._fn([seen.get(position) for position in range(self._count)])


@contextlib.contextmanager
def collect_multi_grads() -> Iterator[None]:
    """Collect the gradients of :func:`register_multi_grad_hook` for one backward pass."""
    _open_passes.stack.append({})
    try:
        yield
        for hook, seen in _open_passes.stack[-1].items():
            hook.finish(seen)
    finally:
        _open_passes.stack.pop()


class MultiHandle(tuple[RemovableHandle, ...]):
    """The handles of the hooks of several tensors."""

    __slots__ = ()

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self:
            handle.remove()


# Leaf -> the tensor, and its hooks by id; of leaves that have any.
_accumulated: weakref.WeakKeyDictionary[AutogradMeta, tuple[weakref.ref[Tensor], dict[int, Hook]]] = (
    weakref.WeakKeyDictionary()
)


def register_post_accumulate_grad_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Register a function of this leaf that ``backward`` calls when it has added to ``grad``.

    Args:
        hook: a function of the tensor; its result is ignored.

    Returns:
        A handle with ``remove()``.

    Raises:
        AutogradError: the tensor requires no gradient, or is not a leaf.
        ArgumentError: the hook is not callable.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> _ = x.register_post_accumulate_grad_hook(lambda x: print(x.grad.tolist()))
    >>> (x * 3.0).sum().backward()
    [3.0, 3.0]
    """
    name = "register_post_accumulate_grad_hook"
    if not callable(hook):
        raise ArgumentError(f"{name} takes a function of the tensor, not {describe(hook)}")
    meta = _get_recorded_meta(name, self)
    if meta.node is not None:
        raise AutogradError(f"{name}: {describe(self)} is not a leaf; use register_hook")
    id_ = next(_ids)
    _, hooks = _accumulated.setdefault(meta, (weakref.ref(self), {}))
    hooks[id_] = hook
    return RemovableHandle(hooks, id_)


def find_accumulated(leaves: Iterable[AutogradMeta]) -> list[AutogradMeta]:
    """The leaves that have hooks of their accumulated gradient."""
    return [leaf for leaf in leaves if leaf in _accumulated] if _accumulated else []


def run_accumulated(leaves: Iterable[AutogradMeta]) -> None:
    """Run the hooks of leaves whose gradient was accumulated."""
    for leaf in leaves:
        tensor, hooks = _accumulated[leaf]
        x = tensor()
        for hook in list(hooks.values()) if x is not None else ():
            hook(x)  # type: ignore[arg-type]  # not None


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


def _get_recorded_meta(what: str, x: Tensor) -> AutogradMeta:
    """The autograd metadata of a tensor that requires a gradient."""
    if type(x) not in EAGER:
        raise UnsupportedError(f"{what} works on eager tensors; inside td.grad and jit gradients are results")
    if stack.recording is not None:
        stack.recording.refuse(x, what)
    meta: AutogradMeta | None = x._meta
    if meta is None or not meta.requires_grad:
        raise AutogradError(
            f"{what}: {describe(x)} does not require a gradient; call x.requires_grad_() first"
        )
    return meta


def run(target: object, index: int, gradient: Tensor) -> Tensor:
    """Run the hooks of a node's result, or of a leaf, on a gradient and return the gradient."""
    hooks_by_index = getattr(target, "hooks", None)
    hooks = list(hooks_by_index.get(index, {}).values()) if hooks_by_index else []
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
                f"a hook returned {describe(result)} for a gradient {describe(gradient)}; return None, or a tensor of "
                "the same shape and dtype"
            )
        gradient = result
    return gradient
