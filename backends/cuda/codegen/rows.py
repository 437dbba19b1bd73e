"""Fused kernels with reductions: softmax, layer_norm, sums over any axes.

For each kept point the stages run in order. A group of threads shares its elements, and each thread has the same
elements in each stage, so intermediate values stay in registers and device memory is read once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....lowering.fusion.loop_ir import FusedKernel, Reduce, Stage
from ....named_tuple import NamedTuple
from .inline import inline_buffers
from .kernel import WORKSPACE, CudaKernel
from .reducers import Reducer, reducer
from .row_part import Pending, RowPart
from .schedule import Schedule, full_stages, is_among, make_schedule
from .space import Space, reductions, stores

ALIGNMENT = 256


class Part(NamedTuple):
    """The stages of one launch, and the reductions of earlier launches that it finishes first."""

    stages: list[Stage]
    merged: list[Pending]
    leaves_partials: bool


def write_rows(
    kernel: FusedKernel,
    space: Space,
    comments: Sequence[str],
    unaligned: frozenset[int],
    private: frozenset[int] = frozenset(),
) -> list[CudaKernel]:
    """The kernels of a loop with reductions.

    Args:
        kernel: the loop.
        space: its dimensions.
        comments: lines that describe it.
        unaligned: the parameters whose data need not be aligned to 16 bytes.
        private: the parameters that nothing reads after the kernel.
    """
    kernel, schedule = _schedule_stages(kernel, space, unaligned, private)
    full = full_stages(kernel)
    reducers = {
        r.into: reducer(r, _chain_length(space, schedule)) for stage in full for r in reductions(stage)
    }
    parts, used = _parts(kernel, space, schedule, full, reducers)
    items = []
    for number, part in enumerate(parts):
        name = kernel.name if len(parts) == 1 else f"{kernel.name}_{number}"
        notes = [*comments, f"pass {number + 1} of {len(parts)}"] if len(parts) > 1 else comments
        writer = RowPart(name, kernel, space, schedule, full, reducers)
        items.append(writer.write(part.stages, part.merged, part.leaves_partials, notes))
    return [k._replace(temporaries=used if WORKSPACE in k.params else 0) for k in items]


def _schedule_stages(
    kernel: FusedKernel, space: Space, unaligned: frozenset[int], private: frozenset[int]
) -> tuple[FusedKernel, Schedule]:
    """Make the schedule; private buffers stay in registers, and are recomputed if there are too few."""
    buffers = tuple(b._replace(param=None, offset=0) if b.param in private else b for b in kernel.buffers)
    kernel = kernel._replace(buffers=buffers)
    schedule = make_schedule(kernel, space, unaligned)
    stored = {s.buffer for stage in full_stages(kernel) for s in stores(stage)}
    left = [b.name for b in buffers if b.param is None and b.name in stored and b.name not in schedule.cached]
    if not left:
        return kernel, schedule
    kernel = inline_buffers(kernel, left)
    return kernel, make_schedule(kernel, space, unaligned)


def _chain_length(space: Space, schedule: Schedule) -> int:
    """The maximum number of elements of one kept point for each thread."""
    return -(-space.length // (schedule.group * schedule.splits))


def _parts(
    kernel: FusedKernel, space: Space, schedule: Schedule, full: list[Stage], reducers: dict[str, Reducer]
) -> tuple[list[Part], int]:
    """The launches, and the bytes of the partial results between them."""
    if schedule.splits == 1:
        return [Part(list(kernel.stages), [], False)], 0
    known: dict[str, Pending] = {}
    parts: list[Part] = []
    stages: list[Stage] = []
    unstored: list[str] = []
    at = 0
    for stage in kernel.stages:
        stages.append(stage)
        if is_among(stage, full) and reductions(stage):
            parts.append(Part(stages, _find_pending(kernel, stages, known, unstored), True))
            stages, unstored = [], []
            for r in reductions(stage):
                known[r.into] = Pending(r, at, stores=_is_stored(kernel, r))
                unstored += [r.into] if _is_stored(kernel, r) else []
                at += -(-schedule.splits * space.rows * reducers[r.into].nbytes // ALIGNMENT) * ALIGNMENT
    if stages or unstored:
        parts.append(Part(stages, _find_pending(kernel, stages, known, unstored), False))
    return parts, at


def _is_stored(kernel: FusedKernel, r: Reduce) -> bool:
    into = kernel.buffer(r.into)
    return into is not None and into.param is not None


def _find_pending(
    kernel: FusedKernel, stages: list[Stage], known: dict[str, Pending], unstored: list[str]
) -> list[Pending]:
    """The results of earlier launches that some stages read or that are still to be stored."""
    read = {e.payload for stage in stages for e in stage.exprs() if e.op in ("row", "load")}
    return [
        pending._replace(stores=name in unstored)
        for name, pending in known.items()
        if name in read or name in unstored
    ]
