"""Estimated run times of the steps of compiled graphs, in nanoseconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...lowering.fusion.loop_ir import Stage
from ...lowering.loop_bodies import LoopThunk
from ...lowering.thunks import KernelThunk, NodeThunk
from ...operators.scalar_ir.cost import cost
from ...tracer.graph import Value
from .loop_cost import NS_PER_INSTRUCTION

NS_PER_MULTIPLY = 0.03  # one multiplication in BLAS
NS_PER_BYTE = 0.2  # one byte read or written by any other node


def estimate_step(step: Any) -> float:
    """Return the time of a step of a lowered graph; unknown loop lengths count as 1, callbacks as 0."""
    if isinstance(step, KernelThunk):
        rows = math.prod(step.kernel.outer)
        return rows * sum(_estimate_stage(stage, step.kernel.inner) for stage in step.kernel.stages)
    if isinstance(step, LoopThunk):
        return _estimate_loop(step)
    return _estimate_node(step)


def _estimate_stage(stage: Stage, inner: tuple[int, ...]) -> float:
    """Return the time of one run through a stage of a kernel."""
    points = math.prod(inner[d] for d in stage.dims)
    return points * NS_PER_INSTRUCTION * sum(max(1, cost(statement.value)) for statement in stage.body)


def estimate_body(lowered: Any, known: Mapping[int, float] = MappingProxyType({})) -> float:
    """Return the time of all steps of a lowered graph; 0 for None.

    Args:
        lowered: the graph.
        known: the times of some steps, by number.
    """
    steps = enumerate(lowered.steps if lowered is not None else ())
    return sum(known[number] if number in known else estimate_step(step) for number, step in steps)


def _estimate_loop(step: LoopThunk) -> float:
    times = [estimate_body(body.lowered) for body in step.bodies]
    if step.node.op.schema.name == "switch":
        return max(times)
    return sum(times) * float(step.node.kwargs.get("length") or 1)


def _estimate_node(step: NodeThunk) -> float:
    if step.kind == "callback":
        return 0.0
    if step.kind == "blas":
        depth = step.operands[0][1].shape[-1]
        steps = math.prod(step.operands[0][1].shape[:1]) if step.node.op.name != "td::matmul" else 1
        return NS_PER_MULTIPLY * depth * steps * sum(out.spec.size for out in step.node.outputs)
    values: list[Value] = [*step.node.inputs, *step.node.outputs]
    return NS_PER_BYTE * sum(
        value.spec.size * value.spec.dtype.itemsize for value in values if value.weak is None
    )


def has_callback(step: Any) -> bool:
    """Return whether a step may run Python code."""
    if isinstance(step, LoopThunk):
        bodies = [body.lowered for body in step.bodies if body.lowered is not None]
        return any(has_callback(inner) for lowered in bodies for inner in lowered.steps)
    return getattr(step, "kind", "") == "callback"
