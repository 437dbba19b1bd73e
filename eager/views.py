"""Writing in place where tensors with a history share memory.

A view that is recorded knows its base and how it was made; base and views are a *family*. After a write through one of
them, the root of the family gets the history "as before, but with this part replaced", and every live member is a view
of the root again. What is not recorded (a view made before gradients were wanted, or inside ``no_grad``) cannot be
followed: then a write through which a gradient flows is refused.

Source: ``CopySlices`` and ``VariableHooks::rebase_history`` of PyTorch.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..registry.operator import Operator
from .dunders import by_name
from .meta import AutogradMeta
from .node import Node
from .plans import Active, Plan, Rule
from .storage import Storage
from .tensor import EAGER, Tensor, storage_of, wrap

Attach = Callable[[Any, AutogradMeta], Any]
Record = Callable[["View", Any], Node]
Part = Callable[[Any], Any]


class Step(NamedTuple):
    """One view operator on the way from a whole memory to a view, with the arguments after the first."""

    op: Operator
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class View:
    """How a view was made: the operator's plan and its arguments, the first of which is the base."""

    __slots__ = ("args", "kwargs", "plan")

    def __init__(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.plan, self.args, self.kwargs = plan, args, kwargs

    @property
    def base(self) -> Any:
        """The tensor that the view is a part of."""
        return self.args[0]

    def part(self) -> Part:
        """Which part it is, without the base (the base's history refers to it)."""
        return partial(_part, self.plan.op, self.args[1:], self.kwargs)


def _part(op: Operator, rest: tuple[Any, ...], kwargs: dict[str, Any], x: Any) -> Any:
    return op(x, *rest, **kwargs)


class Family:
    """A tensor and its recorded views, oldest first, as long as somebody holds them."""

    __slots__ = ("_crowded", "_members")

    def __init__(self, root: Any):
        self._members = [weakref.ref(root)]
        self._crowded = 8

    def add(self, view: Any) -> None:
        """Enter a view. Those that are gone are left out each time the number has doubled."""
        if len(self._members) >= self._crowded:
            self._members = [member for member in self._members if member() is not None]
            self._crowded = 2 * len(self._members) + 8
        self._members.append(weakref.ref(view))

    def live(self) -> list[Any]:
        """The members that are still there."""
        return [tensor for member in self._members if (tensor := member()) is not None]


def bottom(value: Any) -> Any:
    """The tensor that a value of a level wraps, through all levels."""
    while hasattr(value, "_payload"):
        value = value._payload
    return value


def raise_version(tensor: Any) -> None:
    """Count a write into a tensor's memory, so that a history that has saved it notices."""
    if type(tensor) in EAGER:
        storage_of(tensor).version += 1


def shares(one: Any, two: Any) -> bool:
    """Whether two tensors are known to lie in the same memory."""
    first, second = bottom(one), bottom(two)
    return first is second or (first._memory is not None and first._memory is second._memory)


def track(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
    """Note that a recorded result is a view of the first argument, if it is one."""
    base = args[0]
    if type(base) is type(out) is Tensor:
        if base._meta is None or base._storage is None or base._storage is not out._storage:
            return
    elif not isinstance(out, Tensor):
        return  # several views by one call: writing into one is refused
    elif hasattr(out, "_payload") != hasattr(base, "_payload") or base._meta is None or not shares(base, out):
        return
    if base._meta.family is None:
        base._meta.family = Family(base)
    out._meta.view, out._meta.family = View(plan, args, kwargs), base._meta.family
    out._meta.family.add(out)


def root_of(target: Any) -> Any:
    """The member of a tensor's family that is no view."""
    while target._meta is not None and target._meta.view is not None:
        target = target._meta.view.base
    return target


def references(tensor: Any) -> int:
    """The references to a tensor's storage, with those that looking at it makes."""
    storage = tensor._storage
    return sys.getrefcount(storage)


def _own_references() -> int:
    """How many of them looking makes; interpreters differ."""
    alone = wrap(np.zeros(1))
    alone._storage = Storage(alone._array)
    return references(alone) - 1


LOOKING = _own_references()


def is_alone(tensor: Any) -> bool:
    """Whether no other tensor, and no recorded history, is known to refer to the tensor's memory."""
    return tensor._storage is None or references(tensor) <= 1 + LOOKING


def rebase(target: Any, node: Node, attach: Attach, record: Record, index: int = 0) -> None:
    """Give a tensor that was written its new history, and with it all its family.

    Args:
        target: the tensor written.
        node: what its elements are now.
        attach: sets the meta of a tensor.
        record: the node of a view, to the present history of its base.
        index: which result of ``node``.
    """
    family = None if target._meta is None else target._meta.family
    root = root_of(target)
    whole = root is target
    meta = AutogradMeta(
        node if whole else _replace_part(root, target, node, index, record), index if whole else 0
    )
    meta.family = family
    attach(root, meta)
    for member in family.live() if family is not None else ():
        if member is not root:
            view = member._meta.view
            renewed = AutogradMeta(record(view, member))
            renewed.view, renewed.family = view, family
            attach(member, renewed)


def _replace_part(root: Any, target: Any, node: Node, index: int, record: Record) -> Node:
    """The history of the root after a part of it was replaced."""
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


_BOTH = Active((Rule(0, None, (), 0, False, False), Rule(1, None, (), 0, False, False)), ())
_PART = Active(_BOTH.rules[:1], ())


class PartNode(Node):
    """The history of a tensor of which a part was replaced: the rest as before, if that had one, and the part's."""

    __slots__ = ("_chain",)

    def __init__(self, op: Operator, active: Active, edges: list[Any], chain: list[tuple[Part, Node | None]]):
        super().__init__(op, active, edges)
        self._chain = chain

    def gradients(self, given: dict[int, Any]) -> list[Any]:
        part = g = given[0]
        for select, _ in self._chain:
            part = select(part)
        if self.active is _PART:
            return [part]
        mask = by_name("ones_like")(part)
        for _, node in reversed(self._chain):
            mask = node.gradients({0: mask})[0]  # type: ignore[union-attr]
        return [by_name("where")(mask == 0, g, 0), part]
