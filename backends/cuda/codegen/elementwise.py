"""Fused kernels without reductions; threads access 16 bytes at a time if the arrays are aligned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ....lowering.fusion.loop_ir import Buffer, FusedKernel, Stage, roots_of
from ....named_tuple import NamedTuple
from ....operators.scalar_ir.expr import Expr
from .kernel import CudaKernel
from .parameters import Parameters, decompose, linear, scalar_text, shift_pointer
from .row_reads import find_row_reads, with_indexed_axes
from .space import INT_MAX, Space, buffers_along, extent, stores
from .text import Scope, Text, unify
from .types import CTYPE

THREADS = 256
REPEATS = 4
"""The maximum number of iterations of a thread."""
MANY = 1 << 18
"""The number of elements that occupies all threads of a large GPU."""
VECTOR_BYTES = 16
IN_FLIGHT = 32
"""Bytes that a thread loads before it uses the first; fewer do not saturate the memory bandwidth."""


def write_elementwise(
    kernel: FusedKernel, space: Space, comments: Sequence[str], unaligned: Iterable[int] = ()
) -> CudaKernel:
    """The kernel of a loop without reductions.

    Args:
        kernel: the loop.
        space: its dimensions; none is reduced.
        comments: lines that describe it.
        unaligned: the parameters whose data need not be aligned to 16 bytes.
    """
    return Elementwise(kernel, space, frozenset(unaligned)).write(comments)


class Point(NamedTuple):
    """The place of a thread in the space.

    Attributes:
        indices: the index along each dimension; along the last one in vectors.
        addresses: the pointer to the first element of each buffer.
        vectors: the buffers that are accessed in vectors.
        lanes: the number of elements of a vector.
    """

    indices: list[str]
    addresses: dict[str, str]
    vectors: set[str]
    lanes: int


class Elementwise:
    """The state of writing one kernel."""

    def __init__(self, kernel: FusedKernel, space: Space, unaligned: frozenset[int]):
        self.kernel, self.space, self.text = kernel, space, Text()
        self.sizes = space.kept
        self.steps = {name: addresses.kept for name, addresses in space.strides.items()}
        self.exprs = [e for stage in kernel.stages for e in stage.exprs()]
        self.same = unify([root for stage in kernel.stages for s in stage.body for root in roots_of(s)])
        self.rows = find_row_reads(dict.fromkeys(self.same.values()), self._varies)
        self.lanes, self.vectors = self._vector_lanes(unaligned)
        far = max((extent(b, (*kernel.outer, *kernel.inner)) for b in kernel.buffers), default=0)
        self.index = "int" if max(space.rows, far) + THREADS * REPEATS <= INT_MAX else "long long"

    def write(self, comments: Sequence[str]) -> CudaKernel:
        """The kernel."""
        text, lanes, rows = self.text, self.lanes, self.space.rows
        parameters = self._parameters()
        count, repeats = rows // lanes, self._repeats()
        blocks = -(-count // (THREADS * repeats))
        cast = "(long long)" if self.index == "long long" else ""
        block = f"{cast}blockIdx.x * {THREADS * repeats} + " if blocks > 1 else ""
        text.line(f"const {self.index} first = {block}threadIdx.x;")
        if repeats > 1:
            text.unroll()
        with text.block(f"for (int u = 0; u < {repeats}; ++u)" if repeats > 1 else ""):
            text.line(f"const {self.index} i = first{f' + u * {THREADS}' if repeats > 1 else ''};")
            with text.block("" if count % (THREADS * repeats) == 0 else f"if (i < {count})"):
                self._points("i", lanes)
        if count * lanes < rows:
            with text.block(f"if (const {self.index} i = {count * lanes} + first; i < {rows})"):
                self._points("i", 1)
        source = text.function(self.kernel.name, parameters.text(), THREADS, comments)
        return CudaKernel(
            self.kernel.name,
            source,
            tuple(text.helpers),
            (blocks, 1, 1),
            (THREADS, 1, 1),
            params=tuple(parameters.indices),
            scalars=parameters.scalars,
            checks=tuple(text.checks),
        )

    def _parameters(self) -> Parameters:
        return Parameters(self.kernel, [b.name for b in self.kernel.buffers], self.exprs)

    def _repeats(self) -> int:
        """The number of iterations of a thread in a large kernel.

        A thread processes as many bytes as a vector has; more if few bytes would be in flight and all threads have the
        same number of iterations, so that no bounds check separates their loads.
        """
        if self.space.rows <= MANY:
            return 1
        widest = max((b.dtype.itemsize for b in self.kernel.buffers), default=VECTOR_BYTES)
        result = max(1, min(VECTOR_BYTES // (widest * self.lanes), REPEATS))
        awaited = self._bytes_read() * self.lanes
        while 0 < awaited * result < IN_FLIGHT and result < REPEATS and self._come_out_even(2 * result):
            result *= 2
        return result

    def _bytes_read(self) -> int:
        """The bytes that each element reads from memory; broadcast operands are in the cache."""
        read = {e.payload for e in self.exprs if e.op == "load"}
        loads = [b for b in self.kernel.buffers if b.name in read and all(self.steps[b.name])]
        gathered = {e.payload: e.dtype.itemsize for e in self.exprs if e.op == "gather"}
        return sum(b.dtype.itemsize for b in loads) + sum(gathered.values())

    def _come_out_even(self, repeats: int) -> bool:
        return self.lanes > 1 and self.space.rows % (self.lanes * THREADS * repeats) == 0

    # -- reads at integer positions --------------------------------------------------------------------------------
    def _varies(self, e: Expr) -> bool:
        """Whether a leaf varies along the last dimension."""
        if e.op == "index":
            return self.space.indices[e.payload][1] == len(self.sizes) - 1
        return any(self.steps[e.payload.buffer if e.op == "gather" else e.payload][-1:])

    def _vector_lanes(self, unaligned: frozenset[int]) -> tuple[int, set[str]]:
        """The number of elements that a thread processes at a time, and the buffers that it accesses in vectors."""
        names = {name for stage in self.kernel.stages for name in buffers_along(stage)}
        names |= {e.payload.buffer for e in self.rows}
        steps = with_indexed_axes(self.steps, self.rows)
        return vector_lanes([b for b in self.kernel.buffers if b.name in names], steps, self.sizes, unaligned)

    def _load_rows(self, stage: Stage, at_point: Point) -> dict[Expr, str]:
        """Load vectors of consecutive elements at integer positions; returns the text of one element of each."""
        text, lanes, known = self.text, at_point.lanes, dict[Expr, str]()
        for e in dict.fromkeys(self.same[e] for e in stage.exprs()):
            if e not in self.rows or e.payload.buffer not in at_point.vectors:
                continue
            scope = Scope(text, lambda leaf: self._leaf(leaf, at_point, "0"))
            scope.write(e.args)
            inside, pointer, _ = scope.locate(e.payload, e.args, self._leaf(e, at_point, "0"))
            name = text.fresh("row")
            text.line(f"Vec<{CTYPE[e.dtype]}, {lanes}> {name} = {{}};")
            text.line(f"if ({inside}) {name} = load<{lanes}>({pointer});")
            known[e] = f"{name}.at[v]"
        return known

    # -- the points of one thread ----------------------------------------------------------------------------------
    def _points(self, index: str, lanes: int) -> None:
        """The stages at the ``lanes`` points from ``lanes * index`` on."""
        sizes = (*self.sizes[:-1], self.sizes[-1] // lanes) if lanes > 1 else self.sizes
        indices = decompose(self.text, self.index, index, sizes, "i")
        offsets: dict[tuple[int, ...], str] = {}
        for stage in self.kernel.stages:
            self._stage(stage, indices, offsets, lanes)

    def _offset(self, name: str, indices: list[str], offsets: dict[tuple[int, ...], str], lanes: int) -> str:
        steps = self.steps[name]
        result = offsets.get(steps)
        if result is None:
            scaled = (*steps[:-1], steps[-1] * lanes) if steps else steps
            result = linear(indices, scaled)
            if result.count("+") or result.count("*"):
                result = self.text.fresh("at")
                self.text.line(f"const {self.index} {result} = {linear(indices, scaled)};")
            offsets[steps] = result
        return result

    def _stage(
        self, stage: Stage, indices: list[str], offsets: dict[tuple[int, ...], str], lanes: int
    ) -> None:
        """Load vectors, compute each of their elements, store vectors."""
        text = self.text
        names = [n for n in dict.fromkeys(stage.buffers()) if self.kernel.buffer(n)]
        for name in names:
            self._offset(name, indices, offsets, lanes)
        loaded = [e.payload for e in stage.exprs() if e.op == "load"]
        stored = [s.buffer for s in stores(stage)]
        addresses = {n: self._address(n, offsets[self.steps[n]]) for n in names}
        whole = {n for n in names if lanes > 1 and n in self.vectors}
        for name in dict.fromkeys(loaded):
            b = self._buffer(name)
            if name in whole:
                text.line(f"const auto {name} = load<{lanes}>({addresses[name]});")
            elif lanes == 1 or not self.steps[name][-1]:
                text.line(f"const {CTYPE[b.dtype]} {name} = {at(addresses[name], '0')};")
        point = Point(indices, addresses, whole, lanes)
        rows = self._load_rows(stage, point)
        for name in stored:
            if name in whole:
                text.line(f"Vec<{CTYPE[self._buffer(name).dtype]}, {lanes}> {name}_out;")
        if lanes > 1:
            text.unroll()
        with text.block(f"for (int v = 0; v < {lanes}; ++v)" if lanes > 1 else ""):
            self._values(stage, point, rows)
        for name in stored:
            if name in whole:
                text.line(f"store({addresses[name]}, {name}_out);")
        self._finish(point)

    def _finish(self, point: Point) -> None:
        """Write what follows the elements of a vector."""

    def _leaf(self, e: Expr, point: Point, along: str = "v") -> str:
        """The text of a leaf; ``along``: the number of the element in its vector."""
        lanes = point.lanes
        if e.op == "scalar":
            return scalar_text(e)
        if e.op == "index":
            dim = self.space.indices[e.payload][1]
            index = point.indices[dim]
            last = lanes > 1 and dim == len(point.indices) - 1
            return f"(long long)({index} * {lanes} + {along})" if last else f"(long long){index}"
        name = e.payload.buffer if e.op == "gather" else e.payload
        step = self.steps[name][-1] if self.steps[name] and lanes > 1 else 0
        if e.op == "gather":
            return shift_pointer(point.addresses[name], times(along, step))
        if name in point.vectors:
            return f"{name}.at[{along}]"
        return at(point.addresses[name], times(along, step)) if step else str(name)

    def _values(self, stage: Stage, point: Point, rows: dict[Expr, str]) -> None:
        scope = Scope(self.text, lambda leaf: self._leaf(leaf, point))
        scope.known.update(rows)
        statements = stores(stage)
        values = scope.write([self.same[s.value] for s in statements], names=len(statements) > 1)
        for s, value in zip(statements, values, strict=True):
            if s.buffer in point.vectors:
                self.text.line(f"{s.buffer}_out.at[v] = {value};")
            else:
                step = self.steps[s.buffer][-1] if self.steps[s.buffer] else 0
                index = times("v", step) if point.lanes > 1 else "0"
                self.text.line(f"{at(point.addresses[s.buffer], index)} = {value};")

    def _buffer(self, name: str) -> Buffer:
        return next(b for b in self.kernel.buffers if b.name == name)

    def _address(self, name: str, offset: str) -> str:
        b = self._buffer(name)
        return shift_pointer(shift_pointer(f"p{b.param}", b.offset), offset)


def times(index: str, step: int) -> str:
    return "0" if step == 0 else index if step == 1 else f"{index} * {step}"


def at(pointer: str, index: str) -> str:
    """An element from a pointer on."""
    base, _, rest = pointer.partition(" + ")
    if index == "0":
        return f"{base}[{rest or '0'}]"
    return f"{base}[{rest} + {index}]" if rest else f"{base}[{index}]"


def vector_lanes(
    buffers: Sequence[Buffer],
    steps: dict[str, tuple[int, ...]],
    sizes: tuple[int, ...],
    unaligned: frozenset[int],
) -> tuple[int, set[str]]:
    """The number of elements that a thread processes at a time, and the buffers with vector accesses of that length.

    Args:
        buffers: of the kernel.
        steps: their strides along ``sizes``.
        sizes: of the dimensions; vectors lie along the last.
        unaligned: parameters whose data need not be aligned.
    """
    if not sizes:
        return 1, set()
    dense = [b for b in buffers if steps[b.name][-1] == 1 and b.param not in unaligned]
    lanes = VECTOR_BYTES // max((b.dtype.itemsize for b in dense), default=VECTOR_BYTES)
    while lanes > 1:
        fit = {b.name for b in dense if _is_aligned(b, steps[b.name], lanes)}
        if fit and (len(sizes) == 1 or sizes[-1] % lanes == 0) and math.prod(sizes) >= lanes:
            return lanes, fit
        lanes //= 2
    return 1, set()


def _is_aligned(b: Buffer, steps: tuple[int, ...], lanes: int) -> bool:
    return b.offset % lanes == 0 and all(step % lanes == 0 for step in steps[:-1])
