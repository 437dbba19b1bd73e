"""Values that are computed again instead of being kept: a GPU has arithmetic to spare, and no memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ....lowering.loops import FusedKernel, Reduce, Stage, Store
from ....operators.expr import Expr, cast, order


def inlined(kernel: FusedKernel, names: Collection[str]) -> FusedKernel:
    """The kernel without some buffers: what was stored in them is computed where they are loaded.

    Args:
        kernel: of the loop IR.
        names: of buffers that are stored once, before they are loaded, and that nothing else reads.
    """
    values: dict[str, Expr] = {}
    stages: list[Stage] = []
    for stage in kernel.stages:
        known = _rewritten(stage, values)
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


def _rewritten(stage: Stage, values: dict[str, Expr]) -> dict[Expr, Expr]:
    """For each expression of a stage the same over what is known of buffers."""
    found: dict[Expr, Expr] = {}
    for e in order(*[s.value for s in stage.body]):
        if e.op == "load" and e.payload in values:
            found[e] = values[e.payload]
        elif any(found[a] is not a for a in e.args):
            found[e] = Expr(e.op, tuple(found[a] for a in e.args), e.dtype, e.payload)
        else:
            found[e] = e
    return found
