"""AutogradMeta: autograd's data of one tensor (whether it requires a gradient, its graph node, its ``grad``)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import DTypeError, UnsupportedError
from ...registry.dispatch.keys import CPU_KEYS, DispatchKey, without_autograd_keys
from ...registry.dispatch.state import state
from ..tensor.storage import Number
from ..tensor.tensor import EAGER, Tensor, require_grad

if TYPE_CHECKING:
    from .view_writes import AliasSet, View

leaf_count = [0]  # how many tensors users have made leaves; while there are none, no graph leads to one
TRACING = 1 << DispatchKey.Tracer


class AutogradMeta:
    """Autograd's data of a tensor; of a leaf, also the object in which its gradient is accumulated.

    Attributes:
        requires_grad: whether operations on the tensor are recorded.
        grad: the gradient accumulated by ``backward``, or None.
        node: the graph node that computed the tensor; None for a leaf.
        index: which result of ``node`` it is.
        view: for a recorded view, how it was made (:class:`.view_writes.View`).
        alias_set: the recorded tensors in the same memory (:class:`.view_writes.AliasSet`), if there are several.
        hooks: the hooks of a leaf's gradient (:mod:`.hooks`); not set if there are none.
        leaf: a weak reference to a tensor that was made a leaf; not set for others.
        cut_by: the name of the operator whose integer result the tensor is, for ``backward``'s message; else empty.
    """

    __slots__ = (
        "__weakref__",
        "alias_set",
        "cut_by",
        "grad",
        "hooks",
        "index",
        "leaf",
        "node",
        "requires_grad",
        "view",
    )

    OPTIONAL: ClassVar = (
        "hooks",
        "leaf",
    )  # slots that are not set in new objects, which native code creates, too
    grad: Tensor | None
    view: View | None
    alias_set: AliasSet | None
    hooks: Any
    leaf: weakref.ref[Tensor]

    def __init__(self, node: Any = None, index: int = 0, requires_grad: bool = True, cut_by: str = ""):
        self.requires_grad, self.node, self.index, self.cut_by = requires_grad, node, index, cut_by
        self.grad = self.view = self.alias_set = None


class DetachedMeta(AutogradMeta):
    """Autograd's data of a result of ``detach``: the tensor shares memory with its source, but not the graph."""

    __slots__ = ()


def mark_detached(view: Tensor) -> Tensor:
    """Mark a new plain view as detached from the graph of its base; return the view."""
    if type(view) is Tensor and view._meta is None:
        view._meta = DetachedMeta(None, 0, False)
    return view


def is_detached(tensor: Tensor) -> bool:
    """Whether a tensor was detached: tensors in the same memory do not belong to its graph."""
    return isinstance(tensor._meta, DetachedMeta)


def make_leaf(tensor: Tensor) -> Tensor:
    """Make a tensor a leaf that requires a gradient.

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
    if type(tensor._storage) is Number:  # a weak scalar becomes an ordinary tensor
        tensor._array, tensor._storage = tensor._array.copy(), None
    meta = AutogradMeta()
    meta.leaf = weakref.ref(tensor)
    leaf_count[0] += 1
    return require_grad(tensor, meta)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Record operations on this tensor from now on, or stop recording; return the tensor.

    Raises:
        DTypeError: integers and booleans have no gradient.
        UnsupportedError: the tensor is not a leaf (use ``detach``).
    """
    if requires_grad:
        return self if self.requires_grad else make_leaf(self)
    if not self.is_leaf:
        raise UnsupportedError(
            "requires_grad_(False) works on leaves; for the result of an operation use x.detach()"
        )
    if self._meta is not None:
        self._meta.requires_grad = False
        self._keys = CPU_KEYS if type(self) is Tensor else without_autograd_keys(self._keys)
        if self._meta.grad is None:
            self._meta = None
    return self
