"""Record native calls in autograd's graph: a Python function, and a struct for machine code to do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .....eager.autograd import kernel
from .....eager.autograd.autograd_meta import AutogradMeta
from .....eager.autograd.derivative_rules import (
    ARGUMENT,
    ARGUMENT_SPEC,
    KEYWORD,
    RESULT,
    RESULT_SPEC,
    ActiveRules,
    OperatorDerivative,
    derivative_of,
)
from .....eager.autograd.node import Node
from .....eager.autograd.view_writes import track_view
from .....eager.tensor.storage import Hold, Storage
from .....registry.dispatch.keys import DispatchKey
from .....registry.operator import Operator
from ..compiler.structs import sizeof
from ..runtime import rt_record as rt
from ..runtime import rt_saved as saved
from . import layout
from .structs import Recorder, StructMemory

NODE_SLOTS = ("op", "active", "edges", "sequence", "residuals", "versions", "results", "reason")
META_SLOTS = ("requires_grad", "node", "index", "cut_by", "grad", "view", "alias_set")
# indices of the keyword-only arguments among the values that a kind of entry passes to the recorder
_KEYWORDS: dict[str, dict[str, int]] = {"reduction": {"keepdims": 2}}


def class_constants() -> dict[str, int]:
    """Return slot offsets of the objects that a recorded call creates.

    Raises:
        RuntimeError: a class has other slots than machine code fills.
    """
    result: dict[str, int] = {}
    hold = Hold(Storage(None))
    for cls, prefix, names, probe in (
        (Node, "NODE_", NODE_SLOTS, None),
        (AutogradMeta, "META_", META_SLOTS, None),
        (Hold, "HOLD_", ("storage", "version"), hold),
    ):
        unknown = {*cls.__slots__} - {*names, "__weakref__", "hooks"}
        if unknown:
            raise RuntimeError(f"native code does not know {cls.__name__}.{', '.join(sorted(unknown))}")
        result |= layout.slot_constants(cls, prefix, names, probe)
    return result


def make_elementwise_recorder(op: Operator) -> Callable[..., Any]:
    """Return a recorder that takes the operands and the result, which need no binding."""
    derivative, nothing = derivative_of(op), dict[str, Any]()

    def record_elementwise(*values: Any) -> Any:
        return kernel.record_call(derivative, values[:-1], nothing, values[-1])

    return record_elementwise


def make_bound_recorder(op: Operator) -> Callable[..., Any]:
    """Return a recorder that takes the arguments as given and the result."""
    derivative = derivative_of(op)

    def record_bound(*values: Any) -> Any:
        args, kwargs = op.binder.bind(values[:-1], {})
        return kernel.record_call(derivative, args, kwargs, values[-1])

    return record_bound


def make_reduction_recorder(op: Operator) -> Callable[..., Any]:
    """Return a recorder that takes the tensor, axis, keepdims and the result."""
    derivative = derivative_of(op)

    def record_reduction(self: Any, axis: Any, keepdims: bool, out: Any) -> Any:
        args, kwargs = op.binder.bind((self, axis), {"keepdims": keepdims})
        return kernel.record_call(derivative, args, kwargs, out)

    return record_reduction


_RECORDERS = {
    "elementwise": make_elementwise_recorder,
    "reduction": make_reduction_recorder,
    "bound": make_bound_recorder,
}
_recorders: dict[tuple[Operator, str], tuple[OperatorDerivative, Recorder]] = {}


def find_recorder(op: Operator, kind: str) -> Recorder | None:
    """Return the recorder of an operator; None if autograd does not record its calls as one node."""
    derivative = derivative_of(op)
    if not kind or op.table[DispatchKey.AutogradCPU].fn is not kernel.autograd:
        return None
    if derivative.decompose or derivative.written or derivative.isolate:
        return None
    known = _recorders.get((op, kind))
    if known is None or known[0] is not derivative:
        known = _recorders[op, kind] = (
            derivative,
            Recorder(_RECORDERS[kind](op), make_recording_struct(derivative, kind)),
        )
    return known[1]


# -- for machine code --------------------------------------------------------------------------------------------------
def make_recording_struct(derivative: OperatorDerivative, kind: str) -> StructMemory | None:
    """Return the struct by which machine code records an operator's calls; None if only Python can."""
    indices = [argument.position for argument in derivative.arguments]
    listed = any(argument.is_list for argument in derivative.arguments)
    if listed or None in indices or len(indices) > rt.MOST or (derivative.is_view and kind != "bound"):
        return None
    if (
        derivative.uncovered and derivative.op.schema.namespace != "td"
    ):  # tandem's own are integers and booleans
        return None
    result = StructMemory(sizeof(rt.Recording))
    result.refer(rt.Recording.op, derivative.op)
    result.set(rt.Recording.count, len(indices))
    for number, index in enumerate(indices):
        result.set(rt.Recording.indices + 8 * number, index or 0)
    if derivative.is_view:
        result.refer(rt.Recording.follow, make_view_listener(derivative))
    for tracked in range(1, 1 << len(indices)) if derivative.reason is None else ():
        rules = make_rules_struct(derivative, tracked, _KEYWORDS.get(kind, {}))
        if rules is not None:
            result.point(rt.Recording.rules + 8 * tracked, rules)
    return result


def make_view_listener(derivative: OperatorDerivative) -> Callable[..., Any]:
    """Return a function of the given arguments and the recorded result, which registers the result as a view."""
    binder = derivative.op.binder
    complete = len(binder.positional) if not binder.keyword else -1

    def follow(*values: Any) -> None:
        *given, out = values
        if len(given) == complete and (complete == 1 or type(given[1]) is tuple):
            track_view(derivative, tuple(given), {}, out)
        else:
            track_view(derivative, *binder.bind(tuple(given), {}), out)

    return follow


def make_rules_struct(
    derivative: OperatorDerivative, tracked: int, keywords: dict[str, int]
) -> StructMemory | None:
    """Return the rules for a set of tensors; None if a residual is of a kind that machine code does not support."""
    active = derivative.active(tracked)
    kept = [_find_residual(derivative, kind, where, keywords) for kind, where, _ in active.savers]
    if type(active) is not ActiveRules or None in kept or len(kept) > saved.MOST_SAVED:
        return None
    result = StructMemory(sizeof(saved.RuleSet))
    result.refer(saved.RuleSet.active, active)
    result.set(saved.RuleSet.count, len(active.rules))
    for number, rule in enumerate(active.rules):
        result.set(saved.RuleSet.indices + 8 * number, derivative.arguments[rule.bit].position or 0)
    result.set(saved.RuleSet.savers, len(kept))
    for number, word in enumerate(_residual_fields(kept)):
        result.set(saved.RuleSet.saver + 8 * number, word)
    return result


def _residual_fields(savers: list[tuple[int, int] | None]) -> Iterator[int]:
    for saver in savers:
        yield from saver or ()


def _find_residual(
    derivative: OperatorDerivative, kind: int, where: Any, keywords: dict[str, int]
) -> tuple[int, int] | None:
    """Return the kind of a residual, and the index of its value."""
    if kind == RESULT:
        return saved.SAVE_RESULT, 0
    if kind == RESULT_SPEC:
        return saved.SAVE_RESULT_SPEC, 0
    if kind == KEYWORD and where in keywords:
        return saved.SAVE_VALUE, keywords[where]
    if kind not in (ARGUMENT, ARGUMENT_SPEC):
        return None
    argument = derivative.op.schema.positional[where]
    if argument.type.core == "Tensor" and not argument.type.is_list:
        return (saved.SAVE_VALUE if kind == ARGUMENT else saved.SAVE_SPEC), where
    if kind == ARGUMENT and derivative.op.name == "td::basic_index":
        return saved.SAVE_TUPLE, where
    if kind == ARGUMENT and argument.type.core in ("int", "SymInt"):
        return (saved.SAVE_INTEGERS if argument.type.is_list else saved.SAVE_VALUE), where
    return None
