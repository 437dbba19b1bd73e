"""Elementwise kernels that read some arrays across the grain: tiles are turned in shared memory.

Threads of a warp write neighbouring elements. What lies the other way round is read along its own grain first, a tile
at a time, and picked up from shared memory in the order of the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....lowering.loops import Buffer, FusedKernel, Stage
from ....operators.expr import Expr
from .elementwise import at
from .kernel import CudaKernel
from .pointers import Parameters, decompose, linear, scalar_text, shifted
from .space import INT_MAX, Space, extent, stores, uses_index
from .text import Scope, Text, unified
from .types import CTYPE

TILE = 32
THREADS_Y = 8


def tiled_dims(kernel: FusedKernel, space: Space) -> tuple[int, int] | None:
    """(the dimension along which results lie, the one along which something that is read lies), if a kernel gains."""
    if len(kernel.stages) != 1 or uses_index(kernel) or len(space.kept) < 2:
        return None
    steps = {name: place.kept for name, place in space.places.items()}
    written = [s.buffer for s in stores(kernel.stages[0])]
    read = [e.payload for e in kernel.stages[0].exprs() if e.op == "load"]
    along = next((d for d, s in enumerate(steps[written[0]]) if s == 1), None)
    if along is None or any(steps[name][along] != 1 for name in written):
        return None
    for name in read:
        across = next((d for d, s in enumerate(steps[name]) if abs(s) == 1), None)
        large = across is not None and min(space.kept[along], space.kept[across]) >= TILE // 2
        if large and across != along and abs(steps[name][along]) > 1 and name not in written:
            return along, across or 0
    return None


def write_tiled(
    kernel: FusedKernel, space: Space, dims: tuple[int, int], comments: Sequence[str]
) -> CudaKernel:
    """The kernel of a loop without reductions that turns tiles.

    Args:
        kernel: the loop.
        space: what it runs over.
        dims: as ``tiled_dims`` gives them.
        comments: lines that say what it computes.
    """
    return _Tiled(kernel, space, dims).write(comments)


class _Tiled:
    """The state of writing one kernel."""

    def __init__(self, kernel: FusedKernel, space: Space, dims: tuple[int, int]):
        self.kernel, self.space, self.text = kernel, space, Text()
        self.stage: Stage = kernel.stages[0]
        self.along, self.across = dims
        self.steps = {name: place.kept for name, place in space.places.items()}
        self.rest = [d for d in range(len(space.kept)) if d not in dims]
        far = max(extent(b, (*kernel.outer, *kernel.inner)) for b in kernel.buffers)
        self.index = "int" if max(far, space.rows) + TILE * TILE <= INT_MAX else "long long"
        self.same = unified([s.value for s in self.stage.body])
        names = dict.fromkeys(e.payload for e in self.stage.exprs() if e.op == "load")
        self.turned = [
            n for n in names if abs(self.steps[n][self.across]) == 1 and abs(self.steps[n][self.along]) > 1
        ]

    def write(self, comments: Sequence[str]) -> CudaKernel:
        """The kernel."""
        text, sizes = self.text, self.space.kept
        names = [b.name for b in self.kernel.buffers]
        parameters = Parameters(self.kernel, names, self.stage.exprs())
        tiles = [*(sizes[d] for d in self.rest), *(-(-sizes[d] // TILE) for d in (self.across, self.along))]
        text.line(f"const {self.index} tile = blockIdx.x;")
        places = decompose(text, self.index, "tile", tiles, "tile")
        self.indices = dict(zip(self.rest, places, strict=False))
        for d, place, stem in ((self.across, places[-2], "across"), (self.along, places[-1], "along")):
            text.line(f"const {self.index} {stem} = {place} * {TILE};")
            self.indices[d] = stem
        self._read_tiles()
        text.line("__syncthreads();")
        text.unrolled()
        with text.block(f"for (int y = threadIdx.y; y < {TILE}; y += {THREADS_Y})"):
            self._points()
        source = text.function(self.kernel.name, parameters.text(), TILE * THREADS_Y, comments)
        return CudaKernel(
            self.kernel.name,
            source,
            tuple(text.helpers),
            (math.prod(tiles), 1, 1),
            (TILE, THREADS_Y, 1),
            params=tuple(parameters.places),
            scalars=parameters.scalars,
        )

    def _buffer(self, name: str) -> Buffer:
        return next(b for b in self.kernel.buffers if b.name == name)

    def _inside(self, across: str, along: str) -> str:
        """The condition that a point of the tile exists; empty if tiles fill the space."""
        sizes = self.space.kept
        found = [
            f"{stem} + {shift} < {sizes[d]}"
            for stem, shift, d in (("across", across, self.across), ("along", along, self.along))
            if sizes[d] % TILE
        ]
        return " && ".join(found)

    def _place(self, name: str, across: str, along: str) -> str:
        """An element of a buffer at a point of the tile."""
        b = self._buffer(name)
        dims = range(len(self.space.kept))
        shift = {self.across: across, self.along: along}
        indices = [f"({self.indices[d]} + {shift[d]})" if d in shift else self.indices[d] for d in dims]
        pointer = shifted(f"p{b.param}", b.offset)
        return at(shifted(pointer, linear(indices, self.steps[name])), "0")

    def _read_tiles(self) -> None:
        """Read what lies across, a tile of each buffer, along its own grain."""
        text = self.text
        for name in self.turned:
            text.line(f"__shared__ {CTYPE[self._buffer(name).dtype]} {name}_tile[{TILE}][{TILE + 1}];")
        text.unrolled()
        with text.block(f"for (int y = threadIdx.y; y < {TILE}; y += {THREADS_Y})"):
            inside = self._inside("(int)threadIdx.x", "y")
            with text.block(f"if ({inside})" if inside else ""):
                for name in self.turned:
                    text.line(f"{name}_tile[y][threadIdx.x] = {self._place(name, '(int)threadIdx.x', 'y')};")

    def _points(self) -> None:
        """The expressions at the points of the tile, in the order of the results."""
        text = self.text

        def leaf(e: Expr) -> str:
            if e.op == "scalar":
                return scalar_text(e)
            if e.payload in self.turned:
                return f"{e.payload}_tile[threadIdx.x][y]"
            return self._place(e.payload, "y", "(int)threadIdx.x")

        found = stores(self.stage)
        inside = self._inside("y", "(int)threadIdx.x")
        with text.block(f"if ({inside})" if inside else ""):
            values = Scope(text, leaf).write([self.same[s.value] for s in found], names=len(found) > 1)
            for s, value in zip(found, values, strict=True):
                text.line(f"{self._place(s.buffer, 'y', '(int)threadIdx.x')} = {value};")
