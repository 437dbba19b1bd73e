"""Elements of a computed value that are read at integer positions are computed where they are read.

The kernel that computes the value stores none of it then, only what it knows about each row: an element of
``log_softmax(x)`` is an element of ``x`` and two numbers of its row. The index maps of the two kernels are composed, so
that the arguments of the value are read at its positions, whose bounds are checked as before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import UndecidedError
from ...named_tuple import NamedTuple
from ...operators.scalar_ir.expr import Expr, order
from ...registry.values import TensorSpec
from ...tracer.graph import Value
from ..cost_model import recomputing_reads_pays
from ..fusion.affine_reads import AffineAxis, Part, find_positions, make_part
from ..fusion.loop_ir import Buffer, IndexedAxis, IndexMap, Stage, Store, gather, load
from ..layout import contiguous
from ..thunks import KernelThunk, Thunk, keep_buffers, reads_and_writes
from .affine_gathers import affine_reader
from .rematerialize import remove_store

if TYPE_CHECKING:
    from ...registry.dims import Dim

SCATTERED_COST = 8
"""The time of a load of a single element anywhere in memory, in those of elements that follow each other."""


def inline_gathers(
    steps: Sequence[Thunk],
    constants: Iterable[tuple[Value, Any]],
    results: Collection[Value],
    inlines_producers: bool,
) -> list[Thunk]:
    """Compute elements at integer positions in the kernels that read them, where no other step reads the value.

    Args:
        steps: in order.
        constants: the constants, with their tensors on the CPU.
        results: the values that are read after the last step.
        inlines_producers: whether a launch costs more than recomputing; else a value is stored that is read often.
    """
    result, constants = list(steps), list(constants)
    for value in _find_gathered(steps):
        makers = [s for s in result if value in reads_and_writes(s)[1]]
        if value not in results and len(makers) == 1 and isinstance(makers[0], KernelThunk):
            result = _inline(result, constants, makers[0], value, inlines_producers) or result
    return result


def _find_gathered(steps: Iterable[Thunk]) -> list[Value]:
    """The values that kernels read at integer positions."""
    result: dict[Value, None] = {}
    for step in steps:
        if isinstance(step, KernelThunk):
            exprs = (e for stage in step.kernel.stages for e in stage.exprs() if e.op == "gather")
            buffers = [step.kernel.buffer(e.payload.buffer) for e in exprs]
            result.update(
                (step.params[b.param], None) for b in buffers if b is not None and b.param is not None
            )
    return list(result)


def _inline(
    steps: list[Thunk],
    constants: list[tuple[Value, Any]],
    maker: KernelThunk,
    value: Value,
    inlines_producers: bool,
) -> list[Thunk] | None:
    """The steps without a value; None if it is worth storing."""
    every = [s for s in steps if value in reads_and_writes(s)[0]]
    readers = [s for s in every if isinstance(s, KernelThunk) and _only_gathers(s, value)]
    source = _find_source(maker, value) if len(readers) == len(every) else None
    if source is None:
        return None
    made: dict[int, Thunk | None] = {id(maker): source.step}
    try:
        reads = sum(math.prod((*s.kernel.outer, *s.kernel.inner)) for s in readers)
        if not inlines_producers and _count_loads(readers, source.part.expr, value) > value.spec.size // 2:
            return None
        if not recomputing_reads_pays([source.part.expr], reads, value.spec):
            return None
        for reader in readers:
            merged = _Reads(reader, source, value, affine_reader(steps, constants, reader)).merge()
            if merged is None:
                return None
            made[id(reader)] = merged
    except UndecidedError:  # that depends on symbolic sizes
        return None
    changed = [made.get(id(s), s) for s in steps]
    return [s for s in changed if s is not None]


def _count_loads(readers: Iterable[KernelThunk], expr: Expr, value: Value) -> Dim:
    """The number of elements that readers load to compute a value; a scattered one counts as several."""
    loads, total = sum(e.op == "load" for e in order(expr)), 0
    for step in readers:
        own = {b.name for b in step.kernel.buffers if b.param is not None and step.params[b.param] is value}
        gathers = (e for stage in step.kernel.stages for e in stage.exprs() if e.op == "gather")
        indexed = [axis.stride for e in gathers if e.payload.buffer in own for axis in e.payload.axes]
        cost = SCATTERED_COST if 1 in indexed else 1
        total += loads * cost * math.prod((*step.kernel.outer, *step.kernel.inner))
    return total


def _only_gathers(step: KernelThunk, value: Value) -> bool:
    """Whether all reads of a value by a kernel are at integer positions."""
    own = {b.name for b in step.kernel.buffers if b.param is not None and step.params[b.param] is value}
    exprs = [e for stage in step.kernel.stages for e in stage.exprs()]
    is_source = step.updated is not None and step.updated.source is value
    return not is_source and not any(e.op == "load" and e.payload in own for e in exprs)


# -- the value ---------------------------------------------------------------------------------------------------------
class Source(NamedTuple):
    """A value that its readers compute.

    Attributes:
        part: the whole value: the expression of an element, over loads.
        step: the kernel that computed it, without its store; None if nothing else is left.
    """

    part: Part
    step: KernelThunk | None


def _find_source(step: KernelThunk, value: Value) -> Source | None:
    """Find the expression of a value in the kernel that stores it; None if there is not one for all elements."""
    number = step.params.index(value)
    own = {b.name: b for b in step.kernel.buffers if b.param == number}
    stores = [
        (n, s)
        for n, stage in enumerate(step.kernel.stages)
        for s in stage.body
        if isinstance(s, Store) and s.buffer in own
    ]
    if step.updated is not None or value in step.temporaries or len(stores) != 1 or _reads(step, set(own)):
        return None
    stage, statement = stores[0]
    target = own[statement.buffer]
    expr = _resolve(step, stage, statement.value)
    if expr is None or expr.dtype is not target.dtype:
        return None
    with_rows, expr = _store_rows(step, expr)
    part = make_part(value.shape, with_rows.kernel, with_rows.params, target, expr)
    if part is None or tuple(part.sizes) != tuple(value.shape):
        return None
    return Source(part, remove_store(with_rows, target.name))


def _reads(step: KernelThunk, names: set[str]) -> bool:
    """Whether a kernel reads one of some buffers."""
    exprs = [e for stage in step.kernel.stages for e in stage.exprs()]
    loads = {e.payload for e in exprs if e.op == "load"}
    gathers = {e.payload.buffer for e in exprs if e.op == "gather"}
    return not names.isdisjoint(loads | gathers)


def _resolve(step: KernelThunk, stage: int, expr: Expr) -> Expr | None:
    """The expression over loads of other kernels' values, and rows; None if another kernel cannot compute it."""
    known: dict[Expr, Expr] = {}
    for e in order(expr):
        if e.op == "gather":
            return None
        stored = _find_store(step, stage, e.payload) if e.op == "load" else None
        if stored is not None:
            inner = _resolve(step, *stored)
            if inner is None or inner.dtype is not e.dtype:
                return None
            known[e] = inner
        elif e.op == "load" and _is_written(step, e.payload):
            return None
        else:
            known[e] = Expr(e.op, tuple(known[a] for a in e.args), e.dtype, e.payload)
    return known[expr]


def _find_store(step: KernelThunk, stage: int, name: str) -> tuple[int, Expr] | None:
    """The stage before one that stores a buffer, and what it stores; None if no stage does."""
    stores = [
        (n, s.value)
        for n, one in enumerate(step.kernel.stages[:stage])
        for s in one.body
        if isinstance(s, Store) and s.buffer == name
    ]
    return stores[0] if len(stores) == 1 else None


def _is_written(step: KernelThunk, name: str) -> bool:
    buffer = step.kernel.buffer(name)
    if buffer is None or buffer.param is None:
        return True
    return step.params[buffer.param] in reads_and_writes(step)[1]


def _store_rows(step: KernelThunk, expr: Expr) -> tuple[KernelThunk, Expr]:
    """Store what an expression uses of each row; returns the kernel, and the expression over loads of these."""
    kernel = step.kernel
    alone: dict[Expr, bool] = {}
    for e in order(expr):
        alone[e] = e.op in ("row", "const", "scalar") or (bool(e.args) and all(alone[a] for a in e.args))
    outer = contiguous(kernel.outer)
    strides = (*outer.strides, *[0] * len(kernel.inner))
    buffers, params, body = list(kernel.buffers), list(step.params), list[Store]()
    known: dict[Expr, Expr] = {}

    def replace(e: Expr) -> Expr:
        if e not in known and alone[e] and any(x.op == "row" for x in order(e)):
            names = {b.name for b in buffers}
            number = next(n for n in range(len(names) + 1) if f"row{n}" not in names)
            buffer = Buffer(f"row{number}", e.dtype, strides, len(params))
            params.append(Value(TensorSpec(tuple(kernel.outer), e.dtype, step.params[0].spec.device)))
            buffers.append(buffer)
            body.append(Store(buffer.name, e))
            known[e] = load(buffer)
        elif e not in known:
            known[e] = Expr(e.op, tuple(replace(a) for a in e.args), e.dtype, e.payload)
        return known[e]

    result = replace(expr)
    stages = (*kernel.stages, *([Stage((), tuple(body))] if body else []))
    kernel = kernel._replace(buffers=tuple(buffers), stages=stages)
    rows = (*step.rows, *params[len(step.params) :])
    return step._replace(kernel=kernel, params=tuple(params), rows=rows), result


# -- a reader ----------------------------------------------------------------------------------------------------------
Position = AffineAxis | tuple[IndexedAxis, Expr]
"""The position along an axis of the value: an affine function of the point, or an expression that is checked."""


class _Reads:
    """The state of merging a value into one kernel that reads it."""

    def __init__(
        self,
        step: KernelThunk,
        source: Source,
        value: Value,
        affine: Callable[[Expr], AffineAxis | None],
    ):
        self.step, self.part, self.value, self.affine = step, source.part, value, affine
        self.buffers, self.params = list(step.kernel.buffers), list(step.params)
        self.sizes = (*step.kernel.outer, *step.kernel.inner)

    def merge(self) -> KernelThunk | None:
        """The kernel that computes the elements itself; None if it cannot."""
        number = self.step.params.index(self.value)
        own = {b.name: b for b in self.step.kernel.buffers if b.param == number}
        stages = []
        for stage in self.step.kernel.stages:
            known: dict[Expr, Expr] = {}
            for e in stage.exprs():
                after = Expr(e.op, tuple(known[a] for a in e.args), e.dtype, e.payload)
                if e.op == "gather" and e.payload.buffer in own:
                    element = self._element(own[e.payload.buffer], after)
                    if element is None:
                        return None
                    after = element
                known[e] = after
            stages.append(stage.with_expressions(known))
        kernel = self.step.kernel._replace(buffers=tuple(self.buffers), stages=tuple(stages))
        names = {name for stage in stages for name in stage.buffers()}
        return keep_buffers(self.step._replace(kernel=kernel, params=tuple(self.params)), names)

    def _element(self, buffer: Buffer, read: Expr) -> Expr | None:
        """The expression of the element that a gather reads."""
        positions = self._find_positions(buffer, read)
        if positions is None:
            return None
        known: dict[Expr, Expr] = {}
        checks = False
        for e in order(self.part.expr):
            if e.op == "index":
                return None
            if e.op == "load":
                known[e] = self._read(e.payload, positions, read.payload)
                checks = checks or known[e].op == "gather"
            else:
                known[e] = Expr(e.op, tuple(known[a] for a in e.args), e.dtype, e.payload)
        return known[self.part.expr] if checks else None

    def _find_positions(self, buffer: Buffer, read: Expr) -> list[Position] | None:
        axes = find_positions(self.value.shape, self.sizes, buffer.strides, buffer.offset)
        if axes is None:
            return None
        result: list[Position] = list(axes)
        own_positions = [
            self._find_position(*pair) for pair in zip(read.payload.axes, read.args, strict=True)
        ]
        checked = [n for n, one in enumerate(own_positions) if not isinstance(one, AffineAxis)]
        for n, (axis, index) in enumerate(zip(read.payload.axes, read.args, strict=True)):
            own = self._own_axis(axis)
            if own is None or axes[own] != AffineAxis(0):
                return None
            between = checked and checked[0] < n < checked[-1]  # a report numbers consecutive axes
            result[own] = (axis, index) if between else own_positions[n]
        return result

    def _find_position(self, axis: IndexedAxis, index: Expr) -> Position:
        known = self.affine(index)
        if known is None or min(self._span(known)) < 0 or max(self._span(known)) >= axis.size:
            return axis, index
        return known

    def _own_axis(self, axis: IndexedAxis) -> int | None:
        """The axis of the value that is indexed; None if the read is of a view with other axes."""
        layout = contiguous(self.value.shape)
        pairs = enumerate(zip(layout.shape, layout.strides, strict=True))
        return next((n for n, pair in pairs if pair == (axis.size, axis.stride)), None)

    def _span(self, axis: AffineAxis) -> tuple[int, int]:
        last = axis.step * (self.sizes[axis.dim] - 1) if axis.step else 0
        return int(axis.start), int(axis.start + last)

    def _read(self, name: str, positions: Sequence[Position], index_map: IndexMap) -> Expr:
        """The element of a buffer of the value's kernel."""
        buffer = next(b for b in self.part.kernel.buffers if b.name == name)
        strides, offset = [0] * len(self.sizes), buffer.offset
        axes, indices, varies = list[IndexedAxis](), list[Expr](), False
        for position, dim in zip(positions, self.part.dims, strict=True):
            step = 0 if dim is None else buffer.strides[dim]
            if isinstance(position, AffineAxis):
                offset += position.start * step
                if position.step:
                    strides[position.dim] += position.step * step
            else:
                axis, index = position
                axes.append(axis._replace(stride=step))
                indices.append(index)
                varies = varies or step != 0
        made = self._add_buffer(buffer, tuple(strides), offset)
        if not varies:
            return load(made)
        return gather(index_map._replace(buffer=made.name, axes=tuple(axes)), tuple(indices), made.dtype)

    def _add_buffer(self, buffer: Buffer, strides: tuple[int, ...], offset: int) -> Buffer:
        value = self.part.values[buffer.param or 0]
        if not any(value is one for one in self.params):
            self.params.append(value)
        param = next(n for n, one in enumerate(self.params) if one is value)
        names: Mapping[str, Buffer] = {b.name: b for b in self.buffers}
        number = next(n for n in range(len(names) + 1) if f"g{n}" not in names)
        made = Buffer(f"g{number}", buffer.dtype, strides, param, offset)
        known = next((b for b in self.buffers if b._replace(name=made.name) == made), None)
        if known is None:
            self.buffers.append(made)
        return known or made
