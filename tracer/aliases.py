"""Aliases: which traced values share memory, so that a write through one of them updates the others.

A write into a view is recorded as in functionalization: compute the root's new value from the view's new value, then
recompute the other views from the root.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..eager.autograd.view_writes import Step, put_part
from ..eager.tensor.storage import Storage
from ..operators.declare.view_spec import ViewLayout, row_major_strides
from ..registry.operator import Operator, operators
from .graph import Value

if TYPE_CHECKING:
    from ..registry.types import Tensor
    from .tensor import TracerTensor

Call = Callable[[Operator, tuple[Any, ...]], Value]


class Aliases:
    """The tensors of a trace that are views of one memory.

    Attributes:
        root: the Value of the whole memory.
        origin: the owner of memory that is external to the trace (``"an argument"``); empty otherwise.
        is_written_back: whether external memory may be written: the caller of the graph copies the root's last value
            back to it.
        is_contiguous: whether the memory is known to be in row-major order when the graph runs; then reshapes that
            copy eagerly are known too.
        views: weak references to the live tensors, by identity, and the views by which each follows from the root.
    """

    __slots__ = ("is_contiguous", "is_written_back", "origin", "root", "views")

    def __init__(
        self, root: Value, origin: str = "", is_written_back: bool = False, is_contiguous: bool = False
    ):
        self.root, self.origin, self.is_written_back = root, origin, is_written_back
        self.is_contiguous = is_contiguous or (
            root.node is not None and getattr(root.node.op.decl, "kind", "") == "creation"
        )
        self.views: dict[int, tuple[weakref.ref[TracerTensor], tuple[Step, ...]]] = {}

    def add(self, tensor: TracerTensor, path: tuple[Step, ...] = ()) -> None:
        """Add a tensor, which is removed when it is freed: a loop that writes rows makes thousands of views."""
        views, key = self.views, id(tensor)
        views[key] = weakref.ref(tensor, lambda _: views.pop(key, None)), path
        tensor._aliases = self

    def replace(self, tensor: TracerTensor, by: TracerTensor) -> None:
        """Replace a tensor by another object."""
        _, path = self.views.pop(id(tensor))
        tensor._aliases = None
        self.add(by, path)

    def path_of(self, tensor: TracerTensor) -> tuple[Step, ...]:
        """The views by which a tensor follows from the root."""
        known = self.views.get(id(tensor))
        return () if known is None else known[1]

    def others(self, tensor: TracerTensor) -> list[tuple[TracerTensor, tuple[Step, ...]]]:
        """The other live tensors of the memory, with their paths."""
        live = [(ref(), path) for ref, path in list(self.views.values())]
        return [(other, path) for other, path in live if other is not None and other is not tensor]


def register_view(
    source: Any, result: Any, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Register that a traced tensor is a view of another, made by a call on Values; ``source`` may be untraced."""
    aliases, is_traced = getattr(source, "_aliases", None), hasattr(source, "_aliases")
    if aliases is None:
        aliases = Aliases(args[0], "" if is_traced else "a tensor from outside of the jitted function")
        if is_traced:
            aliases.add(source)
    path = (*aliases.path_of(source), Step(op, args[1:], kwargs))
    if not (op.name == _RESHAPE and aliases.is_contiguous and copies_memory(aliases.root, path)):
        aliases.add(result, path)


def copies_memory(root: Value, path: Iterable[Step]) -> bool:
    """Whether an eager call along a path of views of contiguous memory has to copy, as a reshape may.

    A view whose operator declares no rule is taken for one.
    """
    itemsize = root.spec.dtype.itemsize
    layout: ViewLayout | None = ViewLayout(root.shape, row_major_strides(root.shape), 0, itemsize)
    for step in path:
        rule = getattr(step.op.decl, "view", None)
        if rule is None:
            return False
        layout = rule(layout, *step.args, **step.kwargs)
        if layout is None:
            return True
        itemsize = layout.itemsize or itemsize
        layout = layout._replace(itemsize=itemsize)
    return False


_RESHAPE = "td::reshape"  # of memory that is not known to be contiguous it may copy

# For each view operator: compute the base's new value from the view's new value.
_ROOT_UPDATES: dict[str, Callable[[Call, Value, Value, Step], Value]] = {
    "td::basic_index": lambda call, whole, new, step: call(
        operators["td::basic_put"], (whole, new, step.args[0])
    ),
    "td::permute": lambda call, whole, new, step: call(step.op, (new, _inverse_permutation(step.args[0]))),
    "td::bitcast": lambda call, whole, new, step: call(step.op, (new, whole.spec.dtype)),
    "td::view_part": lambda call, whole, new, step: put_part(call, whole, new, step.args[0]),
    _RESHAPE: lambda call, whole, new, step: call(step.op, (new, whole.shape)),
}


def _inverse_permutation(axes: tuple[int, ...]) -> tuple[int, ...]:
    rank = len(axes)
    indices = [axis % rank for axis in axes]
    return tuple(indices.index(axis) for axis in range(rank))


def can_write(tensor: TracerTensor) -> bool:
    """Whether a write into a tensor can be recorded so that every other view of its memory sees it."""
    aliases = tensor._aliases
    if aliases is None or not (aliases.origin or aliases.others(tensor)):
        return True
    paths = [aliases.path_of(tensor), *(path for _, path in aliases.others(tensor))]
    names = {step.op.name for path in paths for step in path}
    return names <= _ROOT_UPDATES.keys() and (aliases.is_contiguous or _RESHAPE not in names)


def write_value(tensor: TracerTensor, value: Value, call: Call) -> None:
    """Set the value of a tensor after a write, and update every view of the same memory.

    Args:
        tensor: the tensor that was written; :func:`can_write` holds.
        value: its new value.
        call: records a call on Values and returns the Value of the result.
    """
    tensor._value = value
    _bump_version(tensor)
    aliases = tensor._aliases
    if aliases is None:
        return
    path, others = aliases.path_of(tensor), aliases.others(tensor)
    if not (others or aliases.origin):
        aliases.root, aliases.views = value, {}
        aliases.add(tensor)
        return
    aliases.root = _update_root(aliases.root, path, value, call)
    for other, steps in others:
        other._value = _replay_views(aliases.root, steps, call)[-1]
        _bump_version(other)


def _bump_version(tensor: Tensor) -> None:
    """Increment the version of a tensor, so that a backward pass that needs its old value raises."""
    if tensor._storage is None:
        tensor._storage = Storage(None)
    tensor._storage.version += 1


def _replay_views(root: Value, path: tuple[Step, ...], call: Call) -> list[Value]:
    """The root's value and the value after each view of a path."""
    values = [root]
    for step in path:
        values.append(call(step.op, (values[-1], *step.args)))
    return values


def _update_root(root: Value, path: tuple[Step, ...], value: Value, call: Call) -> Value:
    """The root's value after a write into a view of it."""
    for whole, step in zip(_replay_views(root, path[:-1], call)[::-1], path[::-1]):
        value = _ROOT_UPDATES[step.op.name](call, whole, value, step)
    return value
