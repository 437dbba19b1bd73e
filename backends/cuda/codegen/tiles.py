"""Fused elementwise kernels with transposed operands: tiles are transposed in shared memory.

Threads of a warp write neighbouring elements. A transposed operand is read along its own contiguous dimension, a tile
at a time, and then read from shared memory in the order of the result. Threads access two neighbouring elements at once
if the arrays allow it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from ....lowering.fusion.loop_ir import Buffer, FusedKernel, Stage
from ....operators.scalar_ir.expr import Expr
from .elementwise import at, times
from .kernel import STATIC_SHARED, CudaKernel
from .parameters import Parameters, decompose, linear, scalar_text, shift_pointer
from .space import INT_MAX, Space, extent, has_gathers, stores, uses_index
from .text import Scope, Text, unify
from .types import CTYPE

THREADS_X, THREADS_Y = 32, 8
ENOUGH_TILES = 264
"""The number of large tiles that occupies a large GPU: two for each multiprocessor."""


def tiled_dims(kernel: FusedKernel, space: Space) -> tuple[int, int] | None:
    """(contiguous dimension of the results, contiguous dimension of a transposed operand); None if there is none."""
    if len(kernel.stages) != 1 or uses_index(kernel) or has_gathers(kernel) or len(space.kept) < 2:
        return None
    steps = {name: coordinate.kept for name, coordinate in space.strides.items()}
    written = [s.buffer for s in stores(kernel.stages[0])]
    read = [e.payload for e in kernel.stages[0].exprs() if e.op == "load"]
    along = next((d for d, s in enumerate(steps[written[0]]) if s == 1), None)
    if along is None or any(steps[name][along] != 1 for name in written):
        return None
    for name in read:
        across = next((d for d, s in enumerate(steps[name]) if abs(s) == 1), None)
        large = across is not None and min(space.kept[along], space.kept[across]) >= THREADS_X // 2
        if large and across != along and abs(steps[name][along]) > 1 and name not in written:
            return along, across or 0
    return None


def write_tiled(
    kernel: FusedKernel,
    space: Space,
    dims: tuple[int, int],
    comments: Sequence[str],
    unaligned: Iterable[int] = (),
) -> CudaKernel:
    """The kernel of a loop without reductions that transposes tiles.

    Args:
        kernel: the loop.
        space: its dimensions.
        dims: the result of ``tiled_dims``.
        comments: lines that describe it.
        unaligned: the parameters whose data need not be aligned to 16 bytes.
    """
    return _Tiled(kernel, space, dims, frozenset(unaligned)).write(comments)


class _Tiled:
    """The state of writing one kernel.

    Attributes:
        turned: the transposed operands.
        lanes: elements that a thread reads or writes at a time.
        tile: points of a tile in either direction.
    """

    def __init__(self, kernel: FusedKernel, space: Space, dims: tuple[int, int], unaligned: frozenset[int]):
        self.kernel, self.space, self.text = kernel, space, Text()
        self.stage: Stage = kernel.stages[0]
        self.along, self.across = dims
        self.steps = {name: coordinate.kept for name, coordinate in space.strides.items()}
        self.rest = [d for d in range(len(space.kept)) if d not in dims]
        self.same = unify([s.value for s in self.stage.body])
        self.read = list(dict.fromkeys(e.payload for e in self.stage.exprs() if e.op == "load"))
        self.turned = [
            n
            for n in self.read
            if abs(self.steps[n][self.across]) == 1 and abs(self.steps[n][self.along]) > 1
        ]
        self.lanes = 2 if self._in_pairs(unaligned) else 1
        self.tile = THREADS_X * self.lanes
        self.turned = self._fitting(THREADS_X)
        far = max(extent(b, (*kernel.outer, *kernel.inner)) for b in kernel.buffers)
        self.index = "int" if max(far, space.rows) + self.tile * self.tile <= INT_MAX else "long long"

    def _in_pairs(self, unaligned: frozenset[int]) -> bool:
        """Whether all buffers can be accessed two elements at a time, and there are enough tiles of twice the side."""
        side = 2 * THREADS_X
        whole = min(self.space.kept[d] for d in (self.along, self.across)) >= side
        return (
            whole
            and self._fitting(side) == self.turned
            and self.space.rows >= ENOUGH_TILES * side * side
            and all(self._is_paired(b, unaligned) for b in self.kernel.buffers)
        )

    def _fitting(self, side: int) -> list[str]:
        """The transposed operands whose tiles fit in shared memory; the others are read with a stride."""
        result, left = [], STATIC_SHARED
        for name in self.turned:
            left -= side * (side + 1) * self._buffer(name).dtype.itemsize
            result += [name] if left >= 0 else []
        return result

    def _is_paired(self, b: Buffer, unaligned: frozenset[int]) -> bool:
        grain = self._grain(b.name)
        steps = self.steps[b.name]
        return (
            b.dtype.itemsize <= 4
            and b.param not in unaligned
            and steps[grain] == 1
            and self.space.kept[grain] % 2 == 0
            and b.offset % 2 == 0
            and all(step % 2 == 0 for d, step in enumerate(steps) if d != grain)
        )

    def _grain(self, name: str) -> int:
        """The dimension along which the elements of a buffer are read or written."""
        return self.across if name in self.turned else self.along

    def write(self, comments: Sequence[str]) -> CudaKernel:
        """The kernel."""
        text, sizes = self.text, self.space.kept
        names = [b.name for b in self.kernel.buffers]
        parameters = Parameters(self.kernel, names, self.stage.exprs())
        tiles = [
            *(sizes[d] for d in self.rest),
            *(-(-sizes[d] // self.tile) for d in (self.across, self.along)),
        ]
        text.line(f"const {self.index} tile = blockIdx.x;")
        coordinates = decompose(text, self.index, "tile", tiles, "tile")
        self.indices = dict(zip(self.rest, coordinates, strict=False))
        for d, coordinate, stem in (
            (self.across, coordinates[-2], "across"),
            (self.along, coordinates[-1], "along"),
        ):
            text.line(f"const {self.index} {stem} = {coordinate} * {self.tile};")
            self.indices[d] = stem
        text.line(f"const int x = {times('threadIdx.x', self.lanes)};")
        for name in self.turned:
            text.line(
                f"__shared__ {CTYPE[self._buffer(name).dtype]} {name}_tile[{self.tile}][{self.tile + 1}];"
            )
        self._for_each_row("x", "y", self._read_tiles)
        text.line("__syncthreads();")
        self._for_each_row("y", "x", self._points)
        source = text.function(self.kernel.name, parameters.text(), THREADS_X * THREADS_Y, comments)
        return CudaKernel(
            self.kernel.name,
            source,
            tuple(text.helpers),
            (math.prod(tiles), 1, 1),
            (THREADS_X, THREADS_Y, 1),
            params=tuple(parameters.indices),
            scalars=parameters.scalars,
        )

    def _for_each_row(self, across: str, along: str, body: Callable[[], None]) -> None:
        """Write the loop over a thread's rows of the tile, restricted to existing points."""
        text = self.text
        text.unroll()
        with text.block(f"for (int k = 0; k < {self.tile // THREADS_Y}; ++k)"):
            text.line(f"const int y = k * {THREADS_Y} + threadIdx.y;")
            inside = self._inside(across, along)
            with text.block(f"if ({inside})" if inside else ""):
                body()

    def _buffer(self, name: str) -> Buffer:
        return next(b for b in self.kernel.buffers if b.name == name)

    def _inside(self, across: str, along: str) -> str:
        """The condition that a point of the tile exists; empty if the tiles cover the space exactly."""
        sizes = self.space.kept
        items = [
            f"{stem} + {shift} < {sizes[d]}"
            for stem, shift, d in (("across", across, self.across), ("along", along, self.along))
            if sizes[d] % self.tile
        ]
        return " && ".join(items)

    def _address(self, name: str, across: str, along: str) -> str:
        """The pointer to a buffer's element at a point of the tile."""
        b = self._buffer(name)
        dims = range(len(self.space.kept))
        shift = {self.across: across, self.along: along}
        indices = [f"({self.indices[d]} + {shift[d]})" if d in shift else self.indices[d] for d in dims]
        return shift_pointer(shift_pointer(f"p{b.param}", b.offset), linear(indices, self.steps[name]))

    def _read_tiles(self) -> None:
        """Load the tiles of the transposed operands."""
        for name in self.turned:
            address = self._address(name, "x", "y")
            if self.lanes == 1:
                self.text.line(f"{name}_tile[y][x] = {at(address, '0')};")
                continue
            self.text.line(f"const auto {name} = load<2>({address});")
            for v in range(2):
                self.text.line(f"{name}_tile[y][{shift_pointer('x', v)}] = {name}.at[{v}];")

    def _points(self) -> None:
        """The expressions at the points of the tile, in the order of the results."""
        text, lanes, current = self.text, self.lanes, stores(self.stage)
        for name in self.read:
            if name not in self.turned and lanes > 1:
                text.line(f"const auto {name} = load<2>({self._address(name, 'y', 'x')});")
        for s in current:
            if lanes > 1:
                text.line(f"Vec<{CTYPE[self._buffer(s.buffer).dtype]}, 2> {s.buffer}_out;")
        if lanes > 1:
            text.unroll()
        with text.block("for (int v = 0; v < 2; ++v)" if lanes > 1 else ""):
            values = Scope(text, self._leaf).write(
                [self.same[s.value] for s in current], names=len(current) > 1
            )
            for s, value in zip(current, values, strict=True):
                coordinate = at(self._address(s.buffer, "y", "x"), "0")
                text.line(f"{coordinate if lanes == 1 else f'{s.buffer}_out.at[v]'} = {value};")
        for s in current:
            if lanes > 1:
                text.line(f"store({self._address(s.buffer, 'y', 'x')}, {s.buffer}_out);")

    def _leaf(self, e: Expr) -> str:
        if e.op == "scalar":
            return scalar_text(e)
        if e.payload in self.turned:
            return f"{e.payload}_tile[{'x' if self.lanes == 1 else 'x + v'}][y]"
        return f"{e.payload}.at[v]" if self.lanes > 1 else at(self._address(e.payload, "y", "x"), "0")
