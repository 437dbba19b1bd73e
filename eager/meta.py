"""What autograd knows about one tensor: whether it needs a gradient, and where it comes from."""

from __future__ import annotations

from typing import Any

from ..errors import DTypeError, UnsupportedError
from ..registry.keys import CPU_KEYS, DispatchKey, unrecorded
from ..registry.state import state
from .tensor import EAGER, Tensor, require_grad

TRACING = 1 << DispatchKey.Tracer


class AutogradMeta:
    """Autograd's record of a tensor; for a leaf it is also where the gradient arrives.

    Attributes:
        requires_grad: whether operations on the tensor are recorded.
        grad: the gradient accumulated by ``backward``, or None.
        node: what made the tensor; None for a leaf.
        index: which result of ``node`` it is.
        view: for a recorded view: how it was made (:class:`.views.View`).
        family: the recorded tensors in the same memory (:class:`.views.Family`), if there are several.
        hooks: of a leaf, what sees its gradient (:mod:`.hooks`); not set where there is none.
        cut_by: the operator whose integer result the tensor is, for the message of ``backward``; else empty.
    """

    __slots__ = ("__weakref__", "cut_by", "family", "grad", "hooks", "index", "node", "requires_grad", "view")

    grad: Any
    view: Any
    family: Any
    hooks: Any

    def __init__(self, node: Any = None, index: int = 0, requires_grad: bool = True, cut_by: str = ""):
        self.requires_grad, self.node, self.index, self.cut_by = requires_grad, node, index, cut_by
        self.grad = self.view = self.family = None


class Detached(AutogradMeta):
    """The record of what ``detach`` gives: it shares memory, and no history, with the tensor that it was made of."""

    __slots__ = ()


def detached(view: Any) -> Any:
    """Note of a new view, if it is a plain tensor, that it shares memory and no history; returns the view."""
    if type(view) is Tensor and view._meta is None:
        view._meta = Detached(None, 0, False)
    return view


def is_detached(tensor: Any) -> bool:
    """Whether a tensor's history is its own, whoever else lies in its memory."""
    return isinstance(tensor._meta, Detached)


def leaf(tensor: Tensor) -> Tensor:
    """Make a tensor the start of a history.

    Raises:
        DTypeError: integers and booleans have no gradient.
        UnsupportedError: the tensor is traced, or belongs to a transform.
    """
    if not tensor.dtype.is_inexact:
        raise DTypeError(
            f"only floating-point and complex tensors have gradients; this one is {tensor.dtype}"
        )
    if type(tensor) not in EAGER or state.include & TRACING:
        raise UnsupportedError(
            "requires_grad works on eager tensors; inside jit and inside td.grad use td.grad or td.value_and_grad of a "
            "function that takes the tensor as an argument"
        )
    return require_grad(tensor, AutogradMeta())


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Record operations on this tensor from now on, or stop recording; returns the tensor.

    Raises:
        DTypeError: integers and booleans have no gradient.
        UnsupportedError: recording cannot stop in the middle of a history (use ``detach``).
    """
    if requires_grad:
        return self if self.requires_grad else leaf(self)
    if not self.is_leaf:
        raise UnsupportedError(
            "requires_grad_(False) works on leaves; for the result of an operation use x.detach()"
        )
    if self._meta is not None:
        self._meta.requires_grad = False
        self._keys = CPU_KEYS if type(self) is Tensor else unrecorded(self._keys)
        if self._meta.grad is None:
            self._meta = None
    return self
