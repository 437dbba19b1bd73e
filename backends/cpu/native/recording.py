"""What puts a call that was answered natively into autograd's graph: a function, and how machine code does the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ....eager import record
from ....eager.meta import AutogradMeta
from ....eager.node import Node
from ....eager.plans import (
    ARGUMENT,
    ARGUMENT_SPEC,
    KEYWORD,
    RESULT,
    RESULT_SPEC,
    Active,
    Plan,
    plan_of,
)
from ....eager.storage import Hold, Storage
from ....eager.views import track
from ....registry.keys import DispatchKey
from ....registry.operator import Operator
from . import layout
from . import rt_record as rt
from . import rt_saved as saved
from .records import Record, Recorder

NODE_SLOTS = ("op", "active", "edges", "sequence", "saved", "versions", "results", "reason")
META_SLOTS = ("requires_grad", "node", "index", "cut_by", "grad", "view", "family")
# where the keyword-only arguments of a kind of entry are among the values that it hands on
_KEYWORDS: dict[str, dict[str, int]] = {"reduction": {"keepdims": 2}}


def class_constants() -> dict[str, int]:
    """Slot offsets of what a recorded call makes.

    Raises:
        RuntimeError: a class has other slots than machine code fills.
    """
    found: dict[str, int] = {}
    hold = Hold(Storage(None))
    for cls, prefix, names, probe in (
        (Node, "NODE_", NODE_SLOTS, None),
        (AutogradMeta, "META_", META_SLOTS, None),
        (Hold, "HOLD_", ("storage", "version"), hold),
    ):
        unknown = {*cls.__slots__} - {*names, "__weakref__", "hooks"}
        if unknown:
            raise RuntimeError(f"native code does not know {cls.__name__}.{', '.join(sorted(unknown))}")
        found |= layout.slot_constants(cls, prefix, names, probe)
    return found


def elementwise_recorder(op: Operator) -> Callable[..., Any]:
    """Takes the operands and the result; tensors and Python scalars are already what a bound call has."""
    plan, nothing = plan_of(op), dict[str, Any]()

    def record_elementwise(*values: Any) -> Any:
        return record.record_call(plan, values[:-1], nothing, values[-1])

    return record_elementwise


def bound_recorder(op: Operator) -> Callable[..., Any]:
    """Takes the arguments as they were given and the result."""
    plan = plan_of(op)

    def record_bound(*values: Any) -> Any:
        args, kwargs = op.binder.bind(values[:-1], {})
        return record.record_call(plan, args, kwargs, values[-1])

    return record_bound


def reduction_recorder(op: Operator) -> Callable[..., Any]:
    """Takes the tensor, axis, keepdims and the result."""
    plan = plan_of(op)

    def record_reduction(self: Any, axis: Any, keepdims: bool, out: Any) -> Any:
        args, kwargs = op.binder.bind((self, axis), {"keepdims": keepdims})
        return record.record_call(plan, args, kwargs, out)

    return record_reduction


_RECORDERS = {"elementwise": elementwise_recorder, "reduction": reduction_recorder, "bound": bound_recorder}
_made: dict[tuple[Operator, str], tuple[Plan, Recorder]] = {}


def recorder(op: Operator, kind: str) -> Recorder | None:
    """The recorder of an operator; None where autograd does something else than to record the call as one node."""
    plan = plan_of(op)
    if not kind or op.table[DispatchKey.AutogradCPU].fn is not record.autograd:
        return None
    if plan.decompose or plan.written or plan.isolate:
        return None
    known = _made.get((op, kind))
    if known is None or known[0] is not plan:
        known = _made[op, kind] = plan, Recorder(_RECORDERS[kind](op), plan_record(plan, kind))
    return known[1]


# -- for machine code --------------------------------------------------------------------------------------------------
def plan_record(plan: Plan, kind: str) -> Record | None:
    """How machine code records the calls of an operator; None where only Python can."""
    places = [argument.position for argument in plan.arguments]
    listed = any(argument.is_list for argument in plan.arguments)
    if listed or None in places or len(places) > rt.MOST or (plan.is_view and kind != "bound"):
        return None
    if plan.uncovered and plan.op.schema.namespace != "td":  # tandem's own are integers and booleans
        return None
    found = Record(rt.R_SIZE)
    found.refer(rt.R_OP, plan.op)
    found.set(rt.R_COUNT, len(places))
    for number, place in enumerate(places):
        found.set(rt.R_PLACES + 8 * number, place or 0)
    if plan.is_view:
        found.refer(rt.R_FOLLOW, view_follower(plan))
    for tracked in range(1, 1 << len(places)) if plan.reason is None else ():
        rules = rules_record(plan, tracked, _KEYWORDS.get(kind, {}))
        if rules is not None:
            found.point(rt.R_RULES + 8 * tracked, rules)
    return found


def view_follower(plan: Plan) -> Callable[..., Any]:
    """Takes the arguments as they were given and the recorded result, which may be a view of the first."""
    binder = plan.op.binder
    complete = len(binder.positional) if not binder.keyword else -1

    def follow(*values: Any) -> None:
        *given, out = values
        if len(given) == complete and (complete == 1 or type(given[1]) is tuple):
            track(plan, tuple(given), {}, out)
        else:
            track(plan, *binder.bind(tuple(given), {}), out)

    return follow


def rules_record(plan: Plan, tracked: int, keywords: dict[str, int]) -> Record | None:
    """The rules for a set of tensors; None where something is saved that machine code does not know."""
    active = plan.active(tracked)
    kept = [_saver(plan, kind, where, keywords) for kind, where, _ in active.savers]
    if type(active) is not Active or None in kept or len(kept) > saved.MOST_SAVED:
        return None
    found = Record(saved.A_SIZE)
    found.refer(saved.A_ACTIVE, active)
    found.set(saved.A_COUNT, len(active.rules))
    for number, rule in enumerate(active.rules):
        found.set(saved.A_PLACES + 8 * number, plan.arguments[rule.bit].position or 0)
    found.set(saved.A_SAVERS, len(kept))
    for number, word in enumerate(_words(kept)):
        found.set(saved.A_SAVER + 8 * number, word)
    return found


def _words(savers: list[tuple[int, int] | None]) -> Iterator[int]:
    for saver in savers:
        yield from saver or ()


def _saver(plan: Plan, kind: int, where: Any, keywords: dict[str, int]) -> tuple[int, int] | None:
    """What is saved, and of which value."""
    if kind == RESULT:
        return saved.SAVE_RESULT, 0
    if kind == RESULT_SPEC:
        return saved.SAVE_RESULT_SPEC, 0
    if kind == KEYWORD and where in keywords:
        return saved.SAVE_VALUE, keywords[where]
    if kind not in (ARGUMENT, ARGUMENT_SPEC):
        return None
    argument = plan.op.schema.positional[where]
    if argument.type.core == "Tensor" and not argument.type.is_list:
        return (saved.SAVE_VALUE if kind == ARGUMENT else saved.SAVE_SPEC), where
    if kind == ARGUMENT and plan.op.name == "td::basic_index":
        return saved.SAVE_TUPLE, where
    if kind == ARGUMENT and argument.type.core in ("int", "SymInt"):
        return (saved.SAVE_INTEGERS if argument.type.is_list else saved.SAVE_VALUE), where
    return None
