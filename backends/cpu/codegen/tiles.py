"""Tiling of stages that read transposed arrays: each tile is transposed into scratch memory first.

Along the last dimension the stride of such an array is a whole row, and a cache line fetched for one element is evicted
before its other elements are needed. A tile reads each cache line once, completely. :class:`TilePrinter` writes stages
without reductions; reductions transpose some of their lines at a time with a :class:`Transposer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ....lowering.fusion.loop_ir import Store
from ....named_tuple import NamedTuple
from ....registry.dtypes import DType, int8, int16, int32, int64
from ..target import vector_target
from .small_product import transpose_vectors
from .stage_printer import CACHED_BYTES
from .text import REGISTER, Function, Module, memory_block

if TYPE_CHECKING:
    from .blocks import Loop
    from .stage_printer import StagePrinter
    from .vectors import Pairs, Use

    Uses = dict[str, Use]

ROWS, COLUMNS = 64, 64
"""Elements of a tile along the dimension where transposed arrays are contiguous, and along the last one."""
LINES = (64, 32, 16)
"""How many lines of a reduction are transposed at a time: as many as fit the memory."""
MOST_SCRATCH = 1 << 18
"""The most bytes of lines that are transposed at a time; they fit the second cache."""
MIN_HEIGHT = 4
"""The least lines of a transposed copy; elements of fewer, at small strides, are shuffled within vectors."""
INTEGERS = {1: int8, 2: int16, 4: int32, 8: int64}
"""By size, the dtype of elements that are moved."""


class TilePrinter:
    """Prints a stage without reductions, in tiles of the dimension ``across`` and the last one."""

    def __init__(self, stage: StagePrinter, across: int):
        self.stage, self.f, self.across = stage, stage.f, across
        self.last = len(stage.shape) - 1

    def write(self) -> None:
        """Write the loops of the stage."""
        self._write_outer_loops([d for d in range(self.last) if d != self.across], self.stage.uses)

    def _write_outer_loops(self, dims: Sequence[int], uses: Uses) -> None:
        """Write a nest of loops over ``dims``, and the loops over tiles inside it."""
        if not dims:
            self._write_tile_loops(uses)
            return
        with self._loop_over(dims[0], str(self.stage.shape[dims[0]]), uses) as offset_uses:
            self._write_outer_loops(dims[1:], offset_uses)

    def _write_tile_loops(self, uses: Uses) -> None:
        with (
            self._loop_over_blocks(self.across, ROWS, uses) as (row_block, height, first_row),
            self._loop_over_blocks(self.last, COLUMNS, row_block) as (tile, width, first_column),
        ):
            transposed = {n: self._transpose_tile(u, height, width) for n, u in tile.items()}
            with self._loop_over(self.across, height, transposed, first_row) as row:
                self.stage.write_vector_loop(row, first_column, width, [], lambda *_: [])

    @contextmanager
    def _loop_over(self, dim: int, size: str, uses: Uses, first: str = "0") -> Iterator[Uses]:
        """Loop over ``size`` positions of ``dim`` from ``first`` on; yield the uses at each position."""
        f, stage = self.f, self.stage
        with f.loop("0", size, "1") as loop:
            stage.indices[stage.dims[dim]] = f.op(f"add i64 {first}, {loop.index}")
            yield {n: u.offset_along(f, dim, loop.index) for n, u in uses.items()}

    @contextmanager
    def _loop_over_blocks(self, dim: int, size: int, uses: Uses) -> Iterator[tuple[Uses, str, str]]:
        """Loop over blocks of ``dim``; yield (uses at the start of the block, size, first position)."""
        f, extent = self.f, self.stage.shape[dim]
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        with f.loop("0", str(extent), str(size)) as loop:
            offset_uses = {n: u.offset_along(f, dim, loop.index) for n, u in uses.items()}
            remaining = f.op(f"sub i64 {extent}, {loop.index}")
            yield offset_uses, f.op(f"call i64 @llvm.smin.i64(i64 {remaining}, i64 {size})"), loop.index

    def _transpose_tile(self, use: Use, height: str, width: str) -> Use:
        """Copy a tile of a transposed array to scratch memory, contiguous along the last dimension; keep other uses."""
        if not use.is_transposed(self.across) or use.buffer.name not in self.stage.readable_uses():
            return use
        pitch = find_pitch(COLUMNS, use.buffer.dtype.itemsize)
        rows = min(ROWS, self.stage.shape[self.across])
        memory = self.f.allocate_scratch(rows * pitch)
        return copy_transposed(self.f, use, self.across, memory, pitch, (rows, height), width)


# -- copies ------------------------------------------------------------------------------------------------------------
class TransposedCopy(NamedTuple):
    """A stage that only copies a transposed array, of which one side is short or all is cached.

    Attributes:
        source, target: the uses.
        across: the dimension along which the source is contiguous.
        along: the dimension along which the target is contiguous.
    """

    source: Use
    target: Use
    across: int
    along: int


def find_transposed_copy(stage: StagePrinter) -> TransposedCopy | None:
    """Return the copy that a stage is; None for other stages, and for large ones, which are copied by tiles."""
    store, *others = stage.stage.body
    if others or not isinstance(store, Store) or store.value.op != "load" or len(stage.uses) != 2:
        return None
    source, target = stage.uses[store.value.payload], stage.uses[store.buffer]
    size = target.buffer.dtype.itemsize
    if source.buffer.dtype is not target.buffer.dtype or size not in INTEGERS or 0 in source.strides:
        return None
    sides = [
        next((d for d, (s, n) in enumerate(zip(use.strides, stage.shape)) if s == 1 and n > 1), -1)
        for use in (source, target)
    ]
    across, along = sides
    if across == along or min(sides) < 0 or stage.shape[across] < MIN_HEIGHT:
        return None
    is_small = stage.count * size <= CACHED_BYTES or min(stage.shape[d] for d in sides) <= COLUMNS // 4
    return TransposedCopy(source, target, across, along) if is_small else None


def write_transposed_copy(stage: StagePrinter, copy: TransposedCopy) -> None:
    """Write the loops of a stage that is a transposed copy."""
    f, size = stage.f, copy.target.buffer.dtype.itemsize
    height, width = stage.shape[copy.across], stage.shape[copy.along]
    helper = transpose_helper(f.module, size, _choose_lanes(size, height, width))
    step, pitch = copy.source.strides[copy.along] * size, copy.target.strides[copy.across] * size
    with ExitStack() as loops:
        source, target = copy.source, copy.target
        for dim, extent in enumerate(stage.shape):
            if dim not in (copy.across, copy.along):
                index = loops.enter_context(f.loop("0", str(extent), "1")).index
                source, target = (use.offset_along(f, dim, index) for use in (source, target))
        sizes = f"i64 {step}, i64 {pitch}, i64 {height}, i64 {width}"
        f.do(f"call void @{helper}(ptr {target.base}, ptr {source.base}, {sizes})")


def _choose_lanes(size: int, *sides: int) -> int:
    """Return the side of the squares that are transposed in registers."""
    most = vector_target().vector_bytes // size
    return next(lanes for lanes in (16, 8, 4, 2) if lanes <= min(most, *sides))


# -- lines of reductions -----------------------------------------------------------------------------------------------
class Transposer:
    """Copies lines of transposed arrays, which are adjacent in memory, one after the other to scratch memory.

    Args:
        f: the function.
        uses: arrays that are only read, by name.
        across: the dimension along which lines are adjacent.
        extent: the number of lines.
        width: the most elements of a line that are copied at a time.

    Attributes:
        count: how many lines are copied at a time; 0 if none is.
    """

    def __init__(self, f: Function, uses: Uses, across: int, extent: int, width: int):
        self.f, self.across, self.extent = f, across, extent
        sizes = {n: use.buffer.dtype.itemsize for n, use in uses.items() if use.is_transposed(across)}
        self.pitches = {n: find_pitch(width, size) for n, size in sizes.items()}
        most = MOST_SCRATCH // max(sum(self.pitches.values()), 1)
        fits = [n for n in LINES if n <= min(extent, most)]
        self.count = fits[0] if fits and sizes and width >= LINES[-1] else 0
        self.memory = {n: f.allocate_scratch(self.count * p) for n, p in self.pitches.items() if self.count}

    @contextmanager
    def loop(self, uses: Uses, width: str, carried: Pairs) -> Iterator[tuple[Loop, Uses, str]]:
        """Loop over blocks of lines, and over the lines of a block; yields the inner loop, its uses and the line."""
        f, across = self.f, self.across
        f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
        with f.loop("0", str(self.extent), str(self.count), carried) as block:
            left = f.op(f"sub i64 {self.extent}, {block.index}")
            height = f.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {self.count})")
            here = {n: use.offset_along(f, across, block.index) for n, use in uses.items()}
            here |= {n: self._copy(here[n], height, width) for n in self.memory}
            begun = [(kind, value) for (kind, _), value in zip(carried, block.carried, strict=True)]
            with f.loop("0", height, "1", begun) as line:
                index = f.op(f"add i64 {block.index}, {line.index}")
                yield line, {n: use.offset_along(f, across, line.index) for n, use in here.items()}, index
            block.next = list(line.carried)
        line.carried[:] = block.carried  # what is carried out of both loops

    def _copy(self, use: Use, height: str, width: str) -> Use:
        memory, pitch = self.memory[use.buffer.name], self.pitches[use.buffer.name]
        return copy_transposed(self.f, use, self.across, memory, pitch, (self.count, height), width)


def find_pitch(width: int, size: int) -> int:
    """Return the bytes between lines of scratch memory: an odd number of cache lines, so that few share a cache set."""
    return (-(-width * size // 64) | 1) * 64


def copy_transposed(
    f: Function, use: Use, across: int, memory: str, pitch: int, lines: tuple[int, str], width: str
) -> Use:
    """Copy adjacent lines of a use to memory, ``pitch`` bytes apart; returns the use of the copy.

    ``lines`` are the most lines that there are, and how many are copied.
    """
    size, (most, height) = use.buffer.dtype.itemsize, lines
    helper, step = transpose_helper(f.module, size, most), use.strides[-1] * size
    f.do(
        f"call void @{helper}(ptr {memory}, ptr {use.base}, i64 {step}, i64 {pitch}, i64 {height}, i64 {width})"
    )
    strides = list(use.strides)
    strides[across], strides[-1] = pitch // size, 1
    return use._replace(base=memory, strides=tuple(strides))


def transpose_helper(module: Module, size: int, most: int) -> str:
    """Define a function that transposes a tile of at most so many lines, and return its name.

    The function stores ``to[r * pitch + c] = from[c * step + r]``, with ``step`` and ``pitch`` in bytes: squares of
    vectors in registers, the last ones of which overlap others, or the elements of a narrow tile one by one.
    """
    lanes = min(vector_target().vector_bytes // size, 16) if size in INTEGERS else 1
    while lanes > most:
        lanes //= 2
    name = f"transpose{size}_{lanes}"
    if name in module.parts:
        return name
    f = Function(module, lanes)
    wide = "0"
    if lanes > 1:
        is_tall, is_wide = (f.op(f"icmp sge i64 %{extent}, {lanes}") for extent in ("height", "width"))
        wide = f.op(f"select i1 {f.op(f'and i1 {is_tall}, {is_wide}')}, i64 %width, i64 0")
        _write_squares(f, INTEGERS[size], wide)
    _write_elements(f, size, (wide, "%width"))
    f.do("ret void")
    parameters = "ptr %to, ptr %from, i64 %step, i64 %pitch, i64 %height, i64 %width"
    module.helper(name, f.text(f"internal void @{name}({parameters}) #1"))
    return name


def _write_squares(f: Function, dtype: DType, wide: str) -> None:
    """Write the loops over the squares of vectors in the first columns, which are none or all."""
    size, lanes = dtype.itemsize, range(f.lanes)
    f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
    last_column, last_row = (f.op(f"sub i64 %{extent}, {f.lanes}") for extent in ("width", "height"))
    with f.loop("0", wide, str(f.lanes)) as column:
        first = f.op(f"call i64 @llvm.smin.i64(i64 {column.index}, i64 {last_column})")
        columns = [f.address("%from", f.op(f"mul i64 {f.op(f'add i64 {first}, {k}')}, %step")) for k in lanes]
        to = f.address("%to", f.op(f"mul i64 {first}, {size}"))
        with f.loop("0", "%height", str(f.lanes)) as row:
            top = f.op(f"call i64 @llvm.smin.i64(i64 {row.index}, i64 {last_row})")
            along = f.op(f"mul i64 {top}, {size}")
            vectors = [f.load_vector(dtype, f.address(one, along)) for one in columns]
            for k, vector in enumerate(transpose_vectors(f, REGISTER[dtype], vectors)):
                down = f.op(f"mul i64 {f.op(f'add i64 {top}, {k}')}, %pitch")
                f.store_vector(dtype, vector, f.address(to, down))


def _write_elements(f: Function, size: int, columns: tuple[str, str]) -> None:
    """Write the loops over the single elements of columns."""
    element = memory_block(size)
    with f.loop(*columns, "1") as column:
        source = f.address("%from", f.op(f"mul i64 {column.index}, %step"))
        target = f.address("%to", f.op(f"mul i64 {column.index}, {size}"))
        with f.loop("0", "%height", "1") as row:
            value = f.load(element, f.address(source, f.op(f"mul i64 {row.index}, {size}")))
            address = f.address(target, f.op(f"mul i64 {row.index}, %pitch"))
            f.do(f"store {element} {value}, ptr {address}, align 1")
