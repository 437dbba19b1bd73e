"""Which threads share the work of a reduction, and what they keep in registers meanwhile."""

from __future__ import annotations

from typing import NamedTuple

from ....lowering.loops import Buffer, FusedKernel, Stage
from .elementwise import vector_lanes
from .space import INT_MAX, Space, reduced_dims, reductions, stores

COLUMNS = 32
"""Neighbouring kept points that a block takes where the threads of a warp run along them."""
ROW_THREADS = 128
"""Threads of a block whose rows each take a warp or less."""
ENOUGH_BLOCKS = 264
"""Blocks that keep a large GPU busy: two for each multiprocessor."""
FULL_BLOCKS = 4 * ENOUGH_BLOCKS
"""Blocks of 256 threads that a large GPU holds at once."""
RESIDENT = 1024
"""Threads that a multiprocessor has to hold, which leaves each of them 64 registers."""
LONG_ROW = 4096
"""Elements of a part of a row that is worth a block of its own."""
BATCH = 8
"""Elements that a thread takes in a turn where it takes them one by one, so that it waits for all of them at once."""
LONG_COLUMN = 16
"""Elements of a column that are worth a thread of their own."""


class Plan(NamedTuple):
    """How the work is shared.

    Attributes:
        columns: whether the threads of a warp run along kept points, not along what is reduced.
        group: threads that share a kept point, a power of two.
        per_block: kept points of a block.
        lanes: elements that a thread takes at a time.
        vectors: the buffers that are accessed that many elements at a time.
        cached: the buffers whose elements stay in registers from stage to stage.
        steps: times that a thread takes elements of its kept point, if that loop is unrolled; else 0.
        splits: blocks that share a kept point.
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
        """Of a block."""
        return self.group * self.per_block

    @property
    def together(self) -> int:
        """Blocks that a multiprocessor has to hold: while one waits for its elements others compute. Left to itself
        the compiler leaves each thread too few registers for many elements, or takes too many for large blocks."""
        many = bool(self.cached) and self.steps * self.lanes > 16
        return max(1, RESIDENT // self.threads) if many or (self.threads > 256 and not self.cached) else 1


def full_stages(kernel: FusedKernel) -> list[Stage]:
    """The stages that run over the reduced dimensions too."""
    over = reduced_dims(kernel)
    return [s for s in kernel.stages if all(d in s.dims for d in over) and (over or reductions(s))]


def among(stage: Stage, stages: list[Stage]) -> bool:
    """Whether a stage is one of some; stages hold expressions, which do not compare."""
    return any(stage is other for other in stages)


def make_plan(kernel: FusedKernel, space: Space, unaligned: frozenset[int]) -> Plan:
    """The plan of a kernel that reduces."""
    full = full_stages(kernel)
    names = {n for stage in full for n in stage.buffers()}
    kept = {s.buffer for stage in full for s in stores(stage)}
    private = [b for b in kernel.buffers if b.param is None and b.name in kept]
    varying = [b for b in kernel.buffers if b.name in names and any(space.places[b.name].reduced)]
    buffers = [*varying, *(b for b in private if b not in varying)]
    columns = _along_kept(space, [b for b in buffers if b.param is not None])
    lanes, vectors = 1, frozenset[str]()
    if not columns:
        lanes, vectors = _row_vectors(space, buffers, unaligned)
    shared = [b for b in buffers if b in private or sum(b.name in set(f.buffers()) for f in full) > 1]
    nbytes = _kept_bytes(full, shared)
    group, per_block = _columns(space, nbytes) if columns else _rows(space, lanes, nbytes)
    steps = -(-space.length // (group * lanes))
    registers = steps * lanes * nbytes // 4
    whole = space.length > 0 and space.length % lanes == 0
    fits = whole and steps <= 32 and steps * lanes <= 64 and registers <= _most(group * per_block)
    splits = 1 if (shared and fits) or not space.length else _splits(space, columns, group, per_block)
    if splits > 1 and not columns:
        group = 256
    if splits > 1 or not fits:
        return Plan(columns, group, per_block, lanes, vectors, (), 0, splits)
    cached = tuple(b.name for b in shared)
    return Plan(columns, group, per_block, lanes, vectors, cached, steps, 1)


def _kept_bytes(full: list[Stage], shared: list[Buffer]) -> int:
    """The most bytes of one point that wait in registers for a later stage: what is needed no more makes room, and
    what is narrower than a register does not stay packed."""
    uses = {b.name: [n for n, stage in enumerate(full) if b.name in set(stage.buffers())] for b in shared}
    between = [
        sum(max(b.dtype.itemsize, 4) for b in shared if uses[b.name][0] <= n < uses[b.name][-1])
        for n in range(len(full) - 1)
    ]
    return max(between, default=0)


def _along_kept(space: Space, buffers: list[Buffer]) -> bool:
    """Whether more bytes lie one after the other along the kept points than along the reduced ones."""
    if space.rows < COLUMNS // 2 or not space.reduced:
        return False
    kept = sum(b.dtype.itemsize for b in buffers if space.places[b.name].kept[-1:] == (1,))
    reduced = sum(b.dtype.itemsize for b in buffers if space.places[b.name].reduced[-1:] == (1,))
    return kept > reduced


def _row_vectors(
    space: Space, buffers: list[Buffer], unaligned: frozenset[int]
) -> tuple[int, frozenset[str]]:
    if not space.reduced:
        return 1, frozenset()
    steps = {b.name: (*space.places[b.name].kept, *space.places[b.name].reduced) for b in buffers}
    # a private buffer is laid out as the threads like it
    dense = [b for b in buffers if b.param is not None]
    lanes, vectors = vector_lanes(dense, steps, (*space.kept, *space.reduced), unaligned)
    whole = space.length % lanes == 0 or (
        space.rows == 1 and space.reduced == (space.length,) and space.length >= LONG_ROW
    )
    return (lanes, frozenset(vectors)) if whole else (1, frozenset())


def _most(threads: int) -> int:
    """Registers that each of so many threads of a block may hold elements in, if two blocks are to find room."""
    return 18 if threads > 512 else 36 if threads > 256 else 48


def _columns(space: Space, nbytes: int) -> tuple[int, int]:
    """(threads of a column, columns of a block): 256 threads; more if registers would not do for what is kept."""
    group = min(_power_of_two(max(space.length / 16, min(space.length, 4))), 8)
    while group < 32 and nbytes and -(-space.length // group) * nbytes // 4 > 32:
        group *= 2
    return group, COLUMNS


def _rows(space: Space, lanes: int, nbytes: int) -> tuple[int, int]:
    """(threads of a row, rows of a block): some 4 vectors for each thread, more threads if registers would not do."""
    group = min(_power_of_two(space.length / (4 * lanes)), 512)
    while group < 512 and -(-space.length // (group * lanes)) * lanes * nbytes // 4 > 40:
        group *= 2
    if not nbytes and group > 256:
        group = 256
    if space.rows > INT_MAX:  # more blocks than there are: each takes several rows
        group = min(group, 32)
    return group, max(1, ROW_THREADS // group) if group <= 32 else 1


def _splits(space: Space, columns: bool, group: int, per_block: int) -> int:
    blocks = -(-space.rows // per_block)
    longest = space.length // (group * LONG_COLUMN if columns else LONG_ROW)
    return max(1, min(FULL_BLOCKS // blocks, longest)) if blocks < ENOUGH_BLOCKS else 1


def _power_of_two(count: float) -> int:
    """The least power of two that is not below ``count``."""
    found = 1
    while found < count:
        found *= 2
    return found
