"""Join traced tensors that share memory into one alias set of autograd, so that a level wraps them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..eager.autograd.alias_sets import add_member
from ..eager.autograd.autograd_meta import AutogradMeta
from ..eager.autograd.derivative_rules import derivative_of
from ..eager.autograd.view_writes import AliasSet, Step, View
from ..eager.layers.levels import ALIAS_FINDERS
from ..registry.operator import Operator
from .graph import Value
from .lifting import add_node
from .tensor import TracerTensor, make_tracer

if TYPE_CHECKING:
    from ..registry.types import Tensor


def gather_traced(target: TracerTensor) -> list[Any] | None:
    """A traced tensor and the views that share its memory; None if the memory is external to the trace."""
    aliases = target._aliases
    others = [] if aliases is None else aliases.others(target)
    if aliases is None or not others:
        return [target]
    members = [(target, aliases.path_of(target)), *others]
    root = next((tensor for tensor, path in members if not path), None)
    if aliases.origin or root is None:
        return None
    root._meta = AutogradMeta(None, 0, False)
    alias_set = root._meta.alias_set = AliasSet(root)
    between: list[object] = []
    for tensor, path in members:
        if tensor is not root:
            _add_view(alias_set, root, tensor, path, between)
    return [root, *between, *(tensor for tensor, _ in members if tensor is not root)]


def _add_view(
    alias_set: AliasSet, root: Any, tensor: Tensor, path: tuple[Step, ...], between: list[object]
) -> None:
    base = root
    for step in path[:-1]:
        value = _add_view_node(root, step.op, base._value, step)
        view = View(derivative_of(step.op), (base, *step.args), step.kwargs)
        base = make_tracer(root._trace, value)
        between.append(base)
        add_member(alias_set, base, view)
    last = path[-1]
    add_member(alias_set, tensor, View(derivative_of(last.op), (base, *last.args), last.kwargs))


def _add_view_node(root: Any, op: Operator, value: Value, step: Step) -> Value:
    return add_node(root._trace, op, (value, *step.args), step.kwargs)[0].outputs[0]


ALIAS_FINDERS[TracerTensor] = gather_traced
