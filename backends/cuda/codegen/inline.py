"""Rematerialization within a kernel: recompute values instead of storing them, since memory is the bottleneck."""

from __future__ import annotations

from collections.abc import Collection

from ....lowering.fusion.loop_ir import FusedKernel, Stage, Statement, Store, substitute_leaves
from ....operators.scalar_ir.expr import Expr, cast


def inline_buffers(kernel: FusedKernel, names: Collection[str]) -> FusedKernel:
    """Remove buffers from a kernel: recompute their values where they are loaded.

    Args:
        kernel: the fused kernel.
        names: the buffers to remove. Each is stored once, before its loads, and only this kernel reads it.

    Returns:
        The kernel without the buffers, their stores and the stages that would be empty.
    """
    values: dict[str, Expr] = {}
    stages: list[Stage] = []
    for stage in kernel.stages:
        inlined = substitute_leaves(stage, values)
        body: list[Statement] = []
        for statement in stage.body:
            statement = statement._replace(value=inlined[statement.value])
            if isinstance(statement, Store) and statement.buffer in names:
                buffer, value = kernel.buffer(statement.buffer), statement.value
                values[statement.buffer] = value if buffer is None else cast(value, buffer.dtype)
            else:
                body.append(statement)
        if body:
            stages.append(Stage(stage.dims, tuple(body)))
    buffers = tuple(buffer for buffer in kernel.buffers if buffer.name not in names)
    return kernel._replace(buffers=buffers, stages=tuple(stages))
