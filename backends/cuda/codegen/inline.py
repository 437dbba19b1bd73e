"""Rematerialization within a kernel: recompute values instead of storing them, since memory is the bottleneck."""

from __future__ import annotations

from collections.abc import Collection

from ....lowering.fusion.loop_ir import FusedKernel, Stage, Statement, Store
from ....lowering.passes.inline_producers import substitute_loads
from ....operators.scalar_ir.expr import Expr, cast


def inline_buffers(kernel: FusedKernel, names: Collection[str]) -> FusedKernel:
    """Remove buffers from a kernel: recompute their values where they are loaded.

    Args:
        kernel: of the loop IR.
        names: of buffers that are stored once, before they are loaded, and that nothing else reads.
    """
    values: dict[str, Expr] = {}
    stages: list[Stage] = []
    for stage in kernel.stages:
        known = substitute_loads(stage, values)
        body: list[Statement] = []
        for s in stage.body:
            s = s._replace(value=known[s.value])
            if isinstance(s, Store) and s.buffer in names:
                buffer = kernel.buffer(s.buffer)
                values[s.buffer] = s.value if buffer is None else cast(s.value, buffer.dtype)
            else:
                body.append(s)
        if body:
            stages.append(Stage(stage.dims, tuple(body)))
    kept = tuple(b for b in kernel.buffers if b.name not in names)
    return kernel._replace(buffers=kept, stages=tuple(stages))
