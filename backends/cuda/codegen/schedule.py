"""Schedule of a reduction kernel: the threads that share the work, and the buffers that stay in registers."""

from __future__ import annotations

from collections.abc import Iterable

from ....lowering.fusion.loop_ir import Buffer, FusedKernel, Stage
from ....named_tuple import NamedTuple
from ....operators.scalar_ir.expr import Expr
from .elementwise import vector_lanes
from .row_reads import find_row_reads, with_indexed_axes
from .space import INT_MAX, Space, buffers_along, reduced_dims, reductions, stores

COLUMNS = 32
"""Neighbouring kept points of a block, if the threads of a warp run along them."""
ROW_THREADS = 128
"""Threads of a block if a row has a warp or less."""
ENOUGH_BLOCKS = 264
"""The number of blocks that occupies a large GPU: two for each multiprocessor."""
FULL_BLOCKS = 4 * ENOUGH_BLOCKS
"""The number of blocks of 256 threads that are resident on a large GPU at once."""
RESIDENT = 1024
"""Threads that have to be resident on a multiprocessor, which leaves each of them 64 registers."""
LONG_ROW = 4096
"""The minimum number of elements of a row for each block that shares it."""
BATCH = 8
"""Elements that a thread without vector accesses loads in an iteration, so that all loads are in flight together."""
LONG_COLUMN = 16
"""The minimum number of elements of a column for each thread that shares it."""


class Schedule(NamedTuple):
    """The assignment of a reduction's work to threads.

    Attributes:
        columns: whether the threads of a warp run along kept points instead of reduced ones.
        group: the number of threads that share a kept point, a power of two.
        per_block: kept points of a block.
        lanes: elements that a thread processes at a time.
        vectors: the buffers with vector accesses of ``lanes`` elements.
        cached: the buffers whose elements stay in registers between stages.
        steps: the iterations of a thread over its kept point, if that loop is unrolled; else 0.
        splits: the number of blocks that share a kept point.
    """

    columns: bool
    group: int
    per_block: int
    lanes: int
    vectors: frozenset[str]
    cached: tuple[str, ...]
    steps: int
    splits: int

    @property
    def threads(self) -> int:
        """The number of threads of a block."""
        return self.group * self.per_block

    @property
    def min_blocks(self) -> int:
        """The number of blocks that have to be resident on a multiprocessor, for ``__launch_bounds__``.

        While one block waits for memory others compute. Without a bound the compiler assigns too few registers for many
        elements, or too many for large blocks.
        """
        many = bool(self.cached) and self.steps * self.lanes > 16
        return max(1, RESIDENT // self.threads) if many or (self.threads > 256 and not self.cached) else 1


def full_stages(kernel: FusedKernel) -> list[Stage]:
    """The stages that run over the reduced dimensions."""
    over = reduced_dims(kernel)
    return [s for s in kernel.stages if all(d in s.dims for d in over) and (over or reductions(s))]


def is_among(stage: Stage, stages: list[Stage]) -> bool:
    """Whether a stage is one of ``stages``, by identity: stages contain expressions, which do not compare."""
    return any(stage is other for other in stages)


def make_schedule(kernel: FusedKernel, space: Space, unaligned: frozenset[int]) -> Schedule:
    """Schedule a kernel that reduces."""
    full = full_stages(kernel)
    names = {n for stage in full for n in buffers_along(stage)}
    kept = {s.buffer for stage in full for s in stores(stage)}
    private = [b for b in kernel.buffers if b.param is None and b.name in kept]
    varying = [b for b in kernel.buffers if b.name in names and any(space.strides[b.name].reduced)]
    buffers = [*varying, *(b for b in private if b not in varying)]
    columns = _along_kept(space, [b for b in buffers if b.param is not None], _gathered(kernel, full))
    lanes, vectors = 1, frozenset[str]()
    if not columns:
        rows = _row_reads(space, full)
        names = {e.payload.buffer for e in rows}
        dense = [*buffers, *(b for b in kernel.buffers if b.name in names and b not in buffers)]
        lanes, vectors = _row_vectors(space, dense, unaligned, rows)
    shared = [b for b in buffers if b in private or sum(b.name in buffers_along(f) for f in full) > 1]
    nbytes = _register_bytes(full, shared)
    group, per_block = _columns(space, nbytes) if columns else _rows(space, lanes, nbytes)
    steps = -(-space.length // (group * lanes))
    registers = steps * lanes * nbytes // 4
    whole = space.length > 0 and space.length % lanes == 0
    fits = whole and steps <= 32 and steps * lanes <= 64 and registers <= _max_registers(group * per_block)
    splits = 1 if (shared and fits) or not space.length else _splits(space, columns, group, per_block)
    if splits > 1 and not columns:
        group = 256
    if splits > 1 or not fits:
        return Schedule(columns, group, per_block, lanes, vectors, (), 0, splits)
    cached = tuple(b.name for b in shared)
    return Schedule(columns, group, per_block, lanes, vectors, cached, steps, 1)


def _register_bytes(full: list[Stage], shared: list[Buffer]) -> int:
    """The maximum number of bytes of one point that are live in registers between stages.

    A dead buffer frees its registers, and a value narrower than a register occupies a whole one.
    """
    uses = {b.name: [n for n, stage in enumerate(full) if b.name in buffers_along(stage)] for b in shared}
    between = [
        sum(max(b.dtype.itemsize, 4) for b in shared if uses[b.name][0] <= n < uses[b.name][-1])
        for n in range(len(full) - 1)
    ]
    return max(between, default=0)


def _row_reads(space: Space, stages: list[Stage]) -> dict[Expr, None]:
    """The reads of rows at positions that do not vary along the reduced dimensions."""

    def varies(e: Expr) -> bool:
        if e.op == "index":
            return space.indices[e.payload][0] == "reduced"
        return any(space.strides[e.payload.buffer if e.op == "gather" else e.payload].reduced)

    return find_row_reads([e for stage in stages for e in stage.exprs()], varies)


def _gathered(kernel: FusedKernel, stages: list[Stage]) -> list[Buffer]:
    """The buffers that stages read at integer positions."""
    names = {e.payload.buffer for stage in stages for e in stage.exprs() if e.op == "gather"}
    return [b for b in kernel.buffers if b.name in names]


def _along_kept(space: Space, buffers: list[Buffer], gathered: list[Buffer]) -> bool:
    """Whether more bytes are contiguous along the kept points than along the reduced ones.

    Where elements are ``gathered``, those count whose neighbours are neighbours in memory: the other buffers may be
    positions, which neighbours share.
    """
    if space.rows < COLUMNS // 2 or not space.reduced:
        return False
    dense = {1} & {
        s for b in gathered for s in (*space.strides[b.name].kept[-1:], *space.strides[b.name].reduced[-1:])
    }
    buffers = gathered if dense else buffers
    kept = sum(b.dtype.itemsize for b in buffers if space.strides[b.name].kept[-1:] == (1,))
    reduced = sum(b.dtype.itemsize for b in buffers if space.strides[b.name].reduced[-1:] == (1,))
    return kept > reduced


def _row_vectors(
    space: Space, buffers: list[Buffer], unaligned: frozenset[int], rows: Iterable[Expr]
) -> tuple[int, frozenset[str]]:
    if not space.reduced:
        return 1, frozenset()
    steps = {b.name: (*space.strides[b.name].kept, *space.strides[b.name].reduced) for b in buffers}
    steps = with_indexed_axes(steps, rows)
    # a private buffer has no layout of its own
    dense = [b for b in buffers if b.param is not None]
    lanes, vectors = vector_lanes(dense, steps, (*space.kept, *space.reduced), unaligned)
    whole = space.length % lanes == 0 or (
        space.rows == 1 and space.reduced == (space.length,) and space.length >= LONG_ROW
    )
    return (lanes, frozenset(vectors)) if whole else (1, frozenset())


def _max_registers(threads: int) -> int:
    """The registers for elements of each thread of a block, so that two blocks are resident at once."""
    return 18 if threads > 512 else 36 if threads > 256 else 48


def _columns(space: Space, nbytes: int) -> tuple[int, int]:
    """(threads of a column, columns of a block): 256 threads; more if the registers do not suffice."""
    group = min(_power_of_two(max(space.length / 16, min(space.length, 4))), 8)
    while group < 32 and nbytes and -(-space.length // group) * nbytes // 4 > 32:
        group *= 2
    return group, COLUMNS


def _rows(space: Space, lanes: int, nbytes: int) -> tuple[int, int]:
    """(threads of a row, rows of a block): about 4 vectors for each thread; more if the registers do not suffice."""
    group = min(_power_of_two(space.length / (4 * lanes)), 512)
    while group < 512 and -(-space.length // (group * lanes)) * lanes * nbytes // 4 > 40:
        group *= 2
    if not nbytes and group > 256:
        group = 256
    if space.rows > INT_MAX:  # more rows than the largest grid: each block has several rows
        group = min(group, 32)
    return group, max(1, ROW_THREADS // group) if group <= 32 else 1


def _splits(space: Space, columns: bool, group: int, per_block: int) -> int:
    blocks = -(-space.rows // per_block)
    longest = space.length // (group * LONG_COLUMN if columns else LONG_ROW)
    return max(1, min(FULL_BLOCKS // blocks, longest)) if blocks < ENOUGH_BLOCKS else 1


def _power_of_two(count: float) -> int:
    """The smallest power of two that is at least ``count``."""
    result = 1
    while result < count:
        result *= 2
    return result
