"""Printer of kernels whose rows are short: a vector holds one element of each of several rows.

A vector along a row of three elements would waste its other lanes. Here the loop over rows is that over vectors, and
the elements of a row are written out one after the other. Folds deal a row's elements to partial results and join them
as :mod:`.folds.order` describes, so the bits are those of any other row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from ....lowering.fusion.loop_ir import (
    Buffer,
    FusedKernel,
    Reduce,
    Stage,
    Store,
    collapse,
    roots_of,
    target_of,
)
from ....operators.scalar_ir.expr import Expr
from ..target import vector_target
from .casts import emit_cast
from .elementwise import lanes_for
from .folds.order import block_reducer, fold_row
from .interleaving import interleave
from .nodes import emit_exprs, find_shared_functions, load_scalar
from .text import PARTS, Function, part_size
from .vectors import Access, Use, VectorLoop, vector_loop

MOST_NODES = 512  # of all points together
LEAST_VECTORS = 2  # of rows

Element = tuple[str, int]  # a buffer, and the offset of an element from the first one of the row


def has_short_rows(kernel: FusedKernel) -> bool:
    """Whether the rows of a kernel, which have few elements, are to be computed side by side."""
    points, statements = math.prod(kernel.inner), [s for stage in kernel.stages for s in stage.body]
    exprs = [e for stage in kernel.stages for e in stage.exprs()]
    stored = {s.buffer for s in statements if isinstance(s, Store)}
    if points * len(exprs) > MOST_NODES:
        return False
    if not any(isinstance(s, Reduce) for s in statements) or not all(
        isinstance(s, (Store, Reduce)) for s in statements
    ):
        return False
    if any(e.op in ("gather", "index", "call") or e.dtype in PARTS for e in exprs):
        return False
    count = _rows_of(kernel)[0][-1]
    return (
        count >= LEAST_VECTORS * _lanes_of(kernel)
        and (vector_target().masks or count % _lanes_of(kernel) == 0)
        and not any(_keeps_dimensions(kernel, s) for s in statements if isinstance(s, Reduce))
        and not any(_is_overwritten(kernel, b, stored) for b in kernel.buffers)
    )


def _rows_of(kernel: FusedKernel) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The loops over rows, with adjacent ones joined, and the strides of the buffers along them."""
    return collapse(kernel.outer, [b.strides[: len(kernel.outer)] for b in kernel.buffers])


def _lanes_of(kernel: FusedKernel) -> int:
    widest = max(part_size(b.dtype) for b in kernel.buffers)
    return lanes_for([root for stage in kernel.stages for s in stage.body for root in roots_of(s)], widest)


def _keeps_dimensions(kernel: FusedKernel, reduce: Reduce) -> bool:
    target = kernel.buffer(reduce.into)
    return target is not None and any(target.strides[len(kernel.outer) :])


def _is_overwritten(kernel: FusedKernel, b: Buffer, stored: set[str]) -> bool:
    """Whether a buffer shares the memory of another one that is stored to, or all rows are stored to one element."""
    if b.name in stored and b.param is not None and not b.strides[len(kernel.outer) - 1]:
        return True
    return any(
        other.name in stored and other.param == b.param and other.name != b.name and b.param is not None
        for other in kernel.buffers
    )


class RowVectors:
    """Prints one kernel.

    Args:
        f: the function.
        kernel: the kernel.
        bases: the addresses of the buffers.
    """

    def __init__(self, f: Function, kernel: FusedKernel, bases: dict[str, str]):
        self.f, self.kernel = f, kernel
        self.values: dict[Element, str] = {}  # elements that are in registers
        self.rows: dict[str, str] = {}  # values of rows
        self.fixed: dict[Expr, str] = {}
        self.loads: dict[Element, Access] = {}
        self.stores: dict[Element, Access] = {}
        self.shape, strides = _rows_of(kernel)
        self.uses = {
            b.name: Use(b, bases[b.name], along)
            for b, along in zip(kernel.buffers, strides, strict=True)
            if b.param is not None
        }
        self.read = {e.payload for stage in kernel.stages for e in stage.exprs() if e.op == "load"}
        self.written = {target_of(s) for stage in kernel.stages for s in stage.body}
        f.lanes = _lanes_of(kernel)
        f.shared = find_shared_functions(
            e for stage in kernel.stages for e in stage.exprs() for _ in self._points(stage)
        )

    def write(self) -> None:
        self._write_loops(self.uses, range(len(self.shape) - 1))

    def _write_loops(self, uses: dict[str, Use], dims: Sequence[int]) -> None:
        if not dims:
            self._write_rows(uses)
            return
        with self.f.loop("0", str(self.shape[dims[0]]), "1") as loop:
            inside = {n: u.offset_along(self.f, dims[0], loop.index) for n, u in uses.items()}
            self._write_loops(inside, dims[1:])

    def _write_rows(self, uses: dict[str, Use]) -> None:
        """Write the loop over vectors of rows."""
        f, count = self.f, self.shape[-1]
        tail = count % f.lanes
        for e in [e for stage in self.kernel.stages for e in stage.exprs() if e.op == "scalar"]:
            self.fixed[e] = load_scalar(f, e)
        elements = self._find_elements(uses)
        for element, use in elements.items():
            if element[0] in self.written:
                self.stores[element] = Access(f, use.buffer.dtype, use.base, use.strides[-1], writes=True)
            if element[0] in self.read:
                self.loads[element] = Access(f, use.buffer.dtype, use.base, use.strides[-1])
        for accesses in (self.loads, self.stores):
            interleave([(elements[element], access) for element, access in accesses.items()], tail)
        fixed = dict(self.values)

        def body(loop: VectorLoop, carried: list[str]) -> list[str]:
            self.values, self.rows = dict(fixed), {}
            for stage in self.kernel.stages:
                self._write_stage(stage)
            return []

        vector_loop(f, str(count), tail, [*self.loads.values(), *self.stores.values()], [], body)

    def _find_elements(self, uses: dict[str, Use]) -> dict[Element, Use]:
        """The elements that vary along the rows; those that do not are loaded, and noted among the values."""
        elements: dict[Element, Use] = {}
        for stage in self.kernel.stages:
            for name, point in itertools.product(dict.fromkeys(stage.buffers()), self._points(stage)):
                if name in uses:
                    element = self._element(name, stage, point)
                    elements[element] = self._use_at(uses[name], element[1])
        for element, use in list(elements.items()):
            if not use.strides[-1] and element[0] not in self.written:
                self.values[element] = self.f.load_splat(use.buffer.dtype, use.base)
                del elements[element]
        return elements

    def _points(self, stage: Stage) -> Iterator[tuple[int, ...]]:
        """The points of a stage, in row-major order."""
        return itertools.product(*(range(self.kernel.inner[d]) for d in stage.dims))

    def _element(self, name: str, stage: Stage, point: tuple[int, ...]) -> Element:
        """The element of a buffer at a point of a stage."""
        b, skip = self.kernel.buffer(name), len(self.kernel.outer)
        strides = b.strides if b is not None else ()
        return name, sum(x * strides[skip + d] for x, d in zip(point, stage.dims))

    def _use_at(self, use: Use, offset: int) -> Use:
        b = use.buffer._replace(offset=use.buffer.offset + offset)
        return Use(b, self.f.address(use.base, str(offset * b.dtype.itemsize)), use.strides)

    # -- a vector of rows ------------------------------------------------------------------------------------------
    def _write_stage(self, stage: Stage) -> None:
        """Write the points of a stage one after the other, then its folds."""
        f, operands = self.f, {s: list[str]() for s in stage.body if isinstance(s, Reduce)}
        points = list(self._points(stage))
        for point in points:
            known = dict(self.fixed)
            for e in stage.exprs():
                if e.op == "load":
                    known[e] = self._load(self._element(e.payload, stage, point))
                elif e.op == "row":
                    known[e] = self.rows[e.payload]
            emit_exprs(f, [root for s in stage.body for root in roots_of(s)], known)
            for s in stage.body:
                if isinstance(s, Reduce):
                    operands[s].append(known[s.value])
                elif isinstance(s, Store):
                    self._store(self._element(s.buffer, stage, point), known[s.value], s.value)
        for reduce, values in operands.items():
            item = block_reducer(reduce.fold, reduce.value.dtype)
            self.rows[reduce.into] = item.finish(f, fold_row(f, item, values))
            element = reduce.into, 0
            if element in self.stores:
                target = self.stores[element]
                target.store(emit_cast(f, self.rows[reduce.into], item.result, target.dtype))

    def _load(self, element: Element) -> str:
        if element not in self.values:
            self.values[element] = self.loads[element].load()
        return self.values[element]

    def _store(self, element: Element, value: str, expr: Expr) -> None:
        b = self.kernel.buffer(element[0])
        if b is None:
            return
        value = emit_cast(self.f, value, expr.dtype, b.dtype)
        if element in self.stores:
            self.stores[element].store(value)
        self.values[element] = value
