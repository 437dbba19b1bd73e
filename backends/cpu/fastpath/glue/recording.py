"""Record native calls in autograd's graph: a Python function, and a struct for machine code to do the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .....eager.autograd import kernel
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
from .....eager.autograd.view_writes import track_view
from .....registry.dispatch.keys import DispatchKey
from .....registry.operator import Operator
from ..runtime import rt_record as rt
from ..runtime import rt_saved as saved
from .structs import Recorder, StructMemory

# indices of the keyword-only arguments among the values that a kind of entry passes to the recorder
_KEYWORDS: dict[str, dict[str, int]] = {"reduction": {"keepdims": 2}}


def make_recorder(op: Operator, kind: str) -> Callable[..., Any]:
    """Return a recorder that takes the arguments and the result.

    Those of a reduction are the tensor, axis and keepdims; those of an elementwise operator need no binding.
    """
    derivative, binder, nothing = derivative_of(op), op.binder, dict[str, Any]()

    def record_elementwise(*values: Any) -> Any:
        return kernel.record_call(derivative, values[:-1], nothing, values[-1])

    def record_bound(*values: Any) -> Any:
        named = {"keepdims": values[2]} if kind == "reduction" else {}
        args, kwargs = binder.bind(values[: -1 - len(named)], named)
        return kernel.record_call(derivative, args, kwargs, values[-1])

    return record_elementwise if kind == "elementwise" else record_bound


_recorders: dict[tuple[Operator, str], tuple[OperatorDerivative, Recorder]] = {}


_BY_STEPS = Recorder(None, None)  # of composites: the entry calls views, which record themselves


def find_recorder(op: Operator, kind: str) -> Recorder | None:
    """Return the recorder of an operator; None if autograd does not record its calls as one node."""
    if kind == "steps":
        table = op.table
        return _BY_STEPS if table[DispatchKey.AutogradCPU].fn is table[DispatchKey.CPU].fn else None
    derivative = derivative_of(op)
    if not kind or op.table[DispatchKey.AutogradCPU].fn is not kernel.autograd:
        return None
    if derivative.decompose or derivative.written or derivative.isolate:
        return None
    known = _recorders.get((op, kind))
    if known is None or known[0] is not derivative:
        known = _recorders[op, kind] = (
            derivative,
            Recorder(make_recorder(op, kind), make_recording_struct(derivative, kind)),
        )
    return known[1]


# -- for machine code --------------------------------------------------------------------------------------------------
def make_recording_struct(derivative: OperatorDerivative, kind: str) -> StructMemory | None:
    """Return the struct by which machine code records an operator's calls; None if only Python can."""
    indices = [argument.position for argument in derivative.arguments]
    if None in indices or len(indices) > rt.MOST or (derivative.is_view and kind != "bound"):
        return None
    if (
        derivative.uncovered and derivative.op.schema.namespace != "td"
    ):  # tandem's own are integers and booleans
        return None
    listed = sum(1 << k for k, argument in enumerate(derivative.arguments) if argument.is_list)
    result = StructMemory(rt.Recording, op=derivative.op, count=len(indices), listed=listed)
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
    result = StructMemory(saved.RuleSet, active=active, count=len(active.rules), savers=len(kept))
    for number, rule in enumerate(active.rules):
        result.set(saved.RuleSet.indices + 8 * number, derivative.arguments[rule.bit].position or 0)
    for number, saver in enumerate(kept):
        for part, word in enumerate(saver or ()):
            result.set(saved.RuleSet.saver + 16 * number + 8 * part, word)
    return result


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
    if argument.type.core == "Tensor" and argument.type.is_list:
        return (saved.SAVE_SPECS, where) if kind == ARGUMENT_SPEC else None
    if argument.type.core == "Tensor":
        return (saved.SAVE_VALUE if kind == ARGUMENT else saved.SAVE_SPEC), where
    if kind == ARGUMENT and derivative.op.name == "td::basic_index":
        return saved.SAVE_TUPLE, where
    if kind == ARGUMENT and argument.type.core in ("int", "SymInt"):
        return (saved.SAVE_INTEGERS if argument.type.is_list else saved.SAVE_VALUE), where
    return None
