"""What puts a call that was answered natively into autograd's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....eager import record
from ....eager.plans import plan_of
from ....registry.keys import DispatchKey
from ....registry.operator import Operator

Recorder = Callable[..., Any]


def elementwise_recorder(op: Operator) -> Recorder:
    """Takes the operands and the result; tensors and Python scalars are already what a bound call has."""
    plan, nothing = plan_of(op), dict[str, Any]()

    def record_elementwise(*values: Any) -> Any:
        return record.record_call(plan, values[:-1], nothing, values[-1])

    return record_elementwise


def bound_recorder(op: Operator) -> Recorder:
    """Takes the arguments as they were given and the result."""
    plan = plan_of(op)

    def record_bound(*values: Any) -> Any:
        args, kwargs = op.binder.bind(values[:-1], {})
        return record.record_call(plan, args, kwargs, values[-1])

    return record_bound


def reduction_recorder(op: Operator) -> Recorder:
    """Takes the tensor, axis, keepdims and the result."""
    plan = plan_of(op)

    def record_reduction(self: Any, axis: Any, keepdims: bool, out: Any) -> Any:
        args, kwargs = op.binder.bind((self, axis), {"keepdims": keepdims})
        return record.record_call(plan, args, kwargs, out)

    return record_reduction


_RECORDERS = {"elementwise": elementwise_recorder, "reduction": reduction_recorder, "bound": bound_recorder}


def recorder(op: Operator, kind: str) -> Recorder | None:
    """The recorder of an operator; None where autograd does something else than to record the call as one node."""
    plan = plan_of(op)
    if not kind or op.table[DispatchKey.AutogradCPU].fn is not record.autograd:
        return None
    return None if plan.decompose or plan.written or plan.isolate else _RECORDERS[kind](op)
