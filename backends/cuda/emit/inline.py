"""Values that are computed again instead of being kept: a GPU has arithmetic to spare, and no memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ....lowering.absorb import with_loads
from ....lowering.loops import FusedKernel, Reduce, Stage, Store
from ....operators.expr import Expr, cast


def inlined(kernel: FusedKernel, names: Collection[str]) -> FusedKernel:
    """The kernel without some buffers: what was stored in them is computed where they are loaded.

    Args:
        kernel: of the loop IR.
        names: of buffers that are stored once, before they are loaded, and that nothing else reads.
    """
    values: dict[str, Expr] = {}
    stages: list[Stage] = []
    for stage in kernel.stages:
        known = with_loads(stage, values)
        body: list[Store | Reduce] = []
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
    return replace(kernel, buffers=kept, stages=tuple(stages))
