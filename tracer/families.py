"""Traced tensors in one memory as a family, so that they can become values of a level together."""

from __future__ import annotations

from typing import Any

from ..eager.aliases import enter
from ..eager.levels import GATHERERS
from ..eager.meta import AutogradMeta
from ..eager.plans import plan_of
from ..eager.views import Family, Step, View
from ..registry.operator import Operator
from .graph import Value
from .lifting import add_node
from .tensor import TracerTensor, make_tracer


def gather_traced(target: TracerTensor) -> list[Any] | None:
    """A traced tensor and the views of the same memory; None if the memory is not the trace's own."""
    aliases = target._aliases
    others = [] if aliases is None else aliases.others(target)
    if aliases is None or not others:
        return [target]
    members = [(target, aliases.path_of(target)), *others]
    root = next((tensor for tensor, path in members if not path), None)
    if aliases.origin or root is None:
        return None
    root._meta = AutogradMeta(None, 0, False)
    family = root._meta.family = Family(root)
    between: list[Any] = []
    for tensor, path in members:
        if tensor is not root:
            _enter(family, root, tensor, path, between)
    return [root, *between, *(tensor for tensor, _ in members if tensor is not root)]


def _enter(family: Family, root: Any, tensor: Any, path: tuple[Step, ...], between: list[Any]) -> None:
    base = root
    for step in path[:-1]:
        value = _view_value(root, step.op, base._value, step)
        view = View(plan_of(step.op), (base, *step.args), step.kwargs)
        base = make_tracer(root._trace, value)
        between.append(base)
        enter(family, base, view)
    last = path[-1]
    enter(family, tensor, View(plan_of(last.op), (base, *last.args), last.kwargs))


def _view_value(root: Any, op: Operator, value: Value, step: Step) -> Value:
    return add_node(root._trace, op, (value, *step.args), step.kwargs)[0].outputs[0]


GATHERERS[TracerTensor] = gather_traced
