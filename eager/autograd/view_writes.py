"""In-place writes into tensors that share memory and have an autograd graph.

A recorded view knows its base and the operator that made it; base and views are an *alias set*. After a write through
one of them, the root of the set gets a node "as before, with this part replaced", and every live member becomes a view
of the root again. Views that were not recorded (made before ``requires_grad_`` or inside ``no_grad``) cannot be
updated: a write with a gradient through memory that they share is refused.

Source: ``CopySlices`` and ``VariableHooks::rebase_history`` of PyTorch.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...named_tuple import NamedTuple
from ...operators.declare.ownership import shares_memory
from ...registry.operator import Operator
from ..tensor.dunders import by_name
from ..tensor.storage import Storage
from ..tensor.tensor import EAGER, Tensor, storage_of, wrap
from .autograd_meta import AutogradMeta
from .derivative_rules import ActiveRules, OperatorDerivative, Rule
from .node import Change, Node

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs

Attach = Callable[[Tensor, AutogradMeta], object]
Record = Callable[["View", Any], Node]
Part = Callable[[Tensor], Tensor]
T = TypeVar("T")


class Step(NamedTuple):
    """One view operator in the chain from the root to a view, with the arguments after the first."""

    op: Operator
    args: tuple[Any, ...]
    kwargs: Kwargs


def put_part(call: Callable[[Operator, tuple[Any, ...]], T], whole: T, new: T, imaginary: bool) -> T:
    """Complex numbers with other real or imaginary parts: the base of a view of these from its new value.

    Args:
        call: runs or records a call of an operator.
        whole: the complex numbers.
        new: the parts.
        imaginary: whether they are the imaginary ones.
    """
    kept = call(by_name("real" if imaginary else "imag").operator, (whole,))
    return call(by_name("complex").operator, (kept, new) if imaginary else (new, kept))


class View:
    """The call that made a view: the operator's derivative and its arguments, the first of which is the base."""

    __slots__ = ("args", "derivative", "kwargs")

    def __init__(self, derivative: OperatorDerivative, args: tuple[Any, ...], kwargs: Kwargs):
        self.derivative, self.args, self.kwargs = derivative, args, kwargs

    @property
    def base(self) -> Any:
        """The tensor that this is a view of."""
        return self.args[0]

    def part(self) -> Part:
        """A function that takes the view of any tensor; it does not refer to the base."""
        return partial(_part, self.derivative.op, self.args[1:], self.kwargs)


def _part(op: Operator, rest: Args, kwargs: Kwargs, x: Tensor) -> Any:
    return op(x, *rest, **kwargs)


class AliasSet:
    """A tensor and its recorded views, oldest first, as weak references."""

    __slots__ = ("_crowded", "_members")

    def __init__(self, root: Tensor):
        self._members = [weakref.ref(root)]
        self._crowded = 8

    def add(self, view: Tensor) -> None:
        """Add a view. Dead references are removed each time their number has doubled."""
        if len(self._members) >= self._crowded:
            self._members = [member for member in self._members if member() is not None]
            self._crowded = 2 * len(self._members) + 8
        self._members.append(weakref.ref(view))

    def live(self) -> list[Any]:
        """The members that are still alive."""
        return [tensor for member in self._members if (tensor := member()) is not None]


def bump_version(tensor: Tensor) -> None:
    """Increment the version of a tensor's memory, so that nodes that have saved it detect the write."""
    if type(tensor) in EAGER:
        storage_of(tensor).version += 1


def track_view(derivative: OperatorDerivative, args: tuple[Any, ...], kwargs: Kwargs, out: Any) -> None:
    """If a recorded result is a view of the first argument, add it to the alias set."""
    base = args[0]
    if type(base) is type(out) is Tensor:
        if base._meta is None or base._storage is None or base._storage is not out._storage:
            return
    elif not isinstance(out, Tensor):
        return  # several views from one call: writing into one raises
    elif (
        hasattr(out, "_payload") != hasattr(base, "_payload")
        or base._meta is None
        or not shares_memory(base, out)
    ):
        return
    if base._meta.alias_set is None:
        base._meta.alias_set = AliasSet(base)
    meta: Any = out._meta
    alias_set: AliasSet = base._meta.alias_set
    meta.view, meta.alias_set = View(derivative, args, kwargs), alias_set
    alias_set.add(out)


def root_of(target: Tensor) -> Any:
    """The root of a tensor's alias set: the member that is not a view."""
    while target._meta is not None and target._meta.view is not None:
        target = target._meta.view.base
    return target


def count_references(tensor: Tensor) -> int:
    """The reference count of a tensor's storage, including `PROBE_REFERENCES` from counting."""
    storage = tensor._storage
    return sys.getrefcount(storage)


def _count_probe_references() -> int:
    """The references that counting itself adds; interpreters differ."""
    alone = wrap(np.zeros(1))
    alone._storage = Storage(alone._array)
    return count_references(alone) - 1


PROBE_REFERENCES = _count_probe_references()


def is_alone(tensor: Tensor) -> bool:
    """Whether no other tensor and no graph node is known to refer to the tensor's memory."""
    return tensor._storage is None or count_references(tensor) <= 1 + PROBE_REFERENCES


def rebase(target: Tensor, node: Node, attach: Attach, record: Record, index: int = 0) -> None:
    """Assign a new graph node to a written tensor and update all members of its alias set.

    Args:
        target: the tensor written.
        node: the node that computed the new elements.
        attach: sets the meta of a tensor.
        record: creates the node of a view, with an edge to the current node of its base.
        index: which result of ``node``.
    """
    alias_set = None if target._meta is None else target._meta.alias_set
    root = root_of(target)
    whole = root is target
    meta = AutogradMeta(
        node if whole else _replace_part(root, target, node, index, record), index if whole else 0
    )
    meta.alias_set = alias_set
    attach(root, meta)
    for member in alias_set.live() if alias_set is not None else ():
        if member is not root:
            view = member._meta.view
            renewed = AutogradMeta(record(view, member))
            renewed.view, renewed.alias_set = view, alias_set
            attach(member, renewed)


def _replace_part(root: Any, target: Any, node: Node, index: int, record: Record) -> Node:
    """The node of the root after a part of it was replaced."""
    before = root._meta
    chain: list[tuple[Part, Node | None]] = []
    part = target
    while part is not root:
        view = part._meta.view
        chain.insert(0, (view.part(), record(view, part) if before.requires_grad else None))
        part = view.base
    edge = (node, index, target.shape, target.dtype)
    if not before.requires_grad:
        return PartNode(node.op, _PART, [edge], chain)
    return PartNode(
        node.op, _BOTH, [(before.node or before, before.index, root.shape, root.dtype), edge], chain
    )


_BOTH = ActiveRules((Rule(0, None, (), 0, False, False), Rule(1, None, (), 0, False, False)), ())
_PART = ActiveRules(_BOTH.rules[:1], ())


class PartNode(Node):
    """The node of a tensor of which a part was replaced: edges to the former node, if any, and to the part's."""

    __slots__ = ("_chain",)

    def __init__(
        self, op: Operator, active: ActiveRules, edges: list[Any], chain: list[tuple[Part, Node | None]]
    ):
        super().__init__(op, active, edges)
        self._chain = chain

    def copy(self) -> PartNode:
        twin: PartNode = super().copy()
        twin._chain = [(part, None if node is None else node.copy()) for part, node in self._chain]
        return twin

    def change_residuals(self, change: Change) -> bool:
        wholes = [node.change_residuals(change) for _, node in self._chain if node is not None]
        return all(wholes)

    def gradients(self, given: dict[int, Tensor]) -> list[Any]:
        part = g = given[0]
        for select, _ in self._chain:
            part = _select_cotangent(select, part)
        if self.active is _PART:
            return [part]
        mask = by_name("full_like")(part, 1 + 1j if part.dtype.kind == "c" else 1)
        for _, node in reversed(self._chain):
            mask = node.gradients({0: mask})[0]  # type: ignore[union-attr]
        return [_mask_out(g, mask), part]


def _select_cotangent(select: Part, g: Tensor) -> Tensor:
    """The cotangent of a view from that of its base.

    A view of the parts of complex numbers reads conjugates, since cotangents are transposed, and not conjugated.
    """
    selected = select(g)
    is_part = g.dtype.kind == "c" and selected.dtype.kind != "c"
    return select(by_name("conj")(g)) if is_part else selected


def _mask_out(g: Tensor, mask: Tensor) -> Tensor:
    """A gradient with zeros where a mask is not 0, the real and the imaginary parts each by itself."""
    where, real, imag = by_name("where"), by_name("real"), by_name("imag")
    if g.dtype.kind != "c":
        return where(mask == 0, g, 0)
    return by_name("complex")(where(real(mask) == 0, real(g), 0), where(imag(mask) == 0, imag(g), 0))
