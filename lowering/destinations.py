"""Destinations: a kernel stores its result in the part of a buffer that another kernel would copy it to.

The parts of a concatenation, and the values that slices are set to, are intermediates that a kernel copies. Where that
copy is the only reader of the intermediate, the kernel that computes it takes the place of the copy.

Source: destination-passing style in MLIR's bufferization; ``ConcatKernel`` in PyTorch's Inductor.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..named_tuple import NamedTuple
from ..operators.scalar_ir.expr import Expr
from ..tracer.graph import Value
from .fusion.loop_ir import Buffer, FusedKernel, Stage, Store, substitute_leaves
from .fusion.pieces import is_update
from .layout import contiguous
from .loop_bodies import find_updates
from .point_accesses import reads_what_it_writes
from .step_tables import StepTables
from .thunks import KernelThunk, Thunk, reads_and_writes

if TYPE_CHECKING:
    from .lower import Lowered


class Copy(NamedTuple):
    """A kernel that copies an intermediate into a part of a result, or adds it to that part.

    Attributes:
        step: the kernel.
        source: the intermediate.
        out: the result.
        read: the buffer of the intermediate.
        part: the buffer of the part.
        value: what is stored there.
        strides: for each axis of the part that has more than one element, by its size and its stride in the
            intermediate: its stride in the result.
    """

    step: KernelThunk
    source: Value
    out: Value
    read: Buffer
    part: Buffer
    value: Expr
    strides: dict[tuple[int, int], int]

    @property
    def is_aligned(self) -> bool:
        """Whether each element is at the same position in the intermediate and in the result."""
        return not self.part.offset and all(stride == target for (_, stride), target in self.strides.items())

    @property
    def is_whole(self) -> bool:
        """Whether the result is the intermediate, element by element."""
        plain = self.value.op == "load" and self.part.dtype is self.read.dtype
        return self.is_aligned and plain and self.out.spec.size == self.source.spec.size


def store_into_destinations(lowered: Lowered) -> None:
    """Replace copies of intermediates by the kernels that compute these, which then store to the copies' results."""
    lowered.steps = _Steps(lowered).run()


class _Steps(StepTables):
    """The steps of a graph: a step that has moved leaves None behind."""

    def run(self) -> list[Thunk]:
        """Replace each copy that can be replaced, in order."""
        for position, step in enumerate(self.steps):
            copy = _match_copy(step)
            producer = None if copy is None else self._find_producer(copy, position)
            merged = None if copy is None or producer is None else _merge(producer[1], copy)
            if producer is not None and merged is not None and self._keeps_updates(merged, position):
                self._replace(*producer, position, merged)
        return [step for step in self.steps if step is not None]

    def _find_producer(self, copy: Copy, position: int) -> tuple[int, KernelThunk] | None:
        """The kernel that computes a copied intermediate, and its position, if it may run at the copy's position."""
        writers = self.writers[copy.source]
        if copy.source in self.kept or self.readers[copy.source] != [position] or len(writers) != 1:
            return None
        (start,) = writers
        producer = self.steps[start]
        if not isinstance(producer, KernelThunk):
            return None
        if producer.updated and (copy.step.updated or not copy.is_whole):
            return None  # the other elements of the intermediate have no place in the result
        reads, writes = reads_and_writes(producer)
        is_read = any(
            start < n <= position for value in writes if value is not copy.source for n in self.readers[value]
        )
        is_overwritten = any(start < n < position for value in reads for n in self.updaters[value])
        is_updated = any(
            start < n <= position and _updates(self.steps[n], value)
            for value in writes
            for n in self.writers[value]
        )
        return None if is_read or is_overwritten or is_updated else (start, producer)

    def _keeps_updates(self, merged: KernelThunk, position: int) -> bool:
        """Whether the updates of a kernel that takes the place of a copy are in place if those of the copy are."""
        update = merged.updated
        if update is None or update.source not in merged.params:
            return True
        owned = update.source not in self.kept or update.source in self.lowered.donated
        is_dead = owned and self.readers[update.source][-1] <= position
        return not is_dead or reads_what_it_writes(merged, update.source, update.out, self.lowered.device)

    def _replace(self, start: int, producer: KernelThunk, position: int, merged: KernelThunk) -> None:
        """Put a kernel in the place of a copy, and remove the kernel that computed the copied intermediate."""
        reads, writes = reads_and_writes(producer)
        for values, table in ((reads, self.readers), (writes, self.writers)):
            for value in values:
                table[value] = sorted({*table[value], position} - {start})
        for update in find_updates(producer):
            self.updaters[update.source] = sorted({*self.updaters[update.source], position} - {start})
        self.steps[start], self.steps[position] = None, merged


def _updates(step: Thunk | None, value: Value) -> bool:
    """Whether a step writes elements of a value that an earlier step has written; parts of a concatenation differ."""
    nodes = step.nodes if isinstance(step, KernelThunk) else ()
    return any(is_update(node) and value in node.outputs for node in nodes)


def _match_copy(step: Thunk | None) -> Copy | None:
    """The copy that a step does; None if it does something else."""
    if not isinstance(step, KernelThunk) or len(step.kernel.buffers) != 2 or len(step.params) != 2:
        return None
    kernel, stages = step.kernel, step.kernel.stages
    statement = stages[0].body[0]
    if kernel.outer or len(stages) != 1 or len(stages[0].body) != 1 or not isinstance(statement, Store):
        return None
    part, read = sorted(kernel.buffers, key=lambda b: b.name != statement.buffer)
    if part.param is None or read.param is None or read.offset or stages[0].has_index_maps():
        return None
    source = step.params[read.param]
    long = [axis for axis in zip(kernel.inner, read.strides, part.strides, strict=True) if axis[0] != 1]
    is_whole = Counter(axis[:2] for axis in long) == Counter(_long_axes(source.shape))
    if not is_whole or read.dtype is not source.spec.dtype:
        return None
    strides = {(size, stride): target for size, stride, target in long}
    return Copy(step, source, step.params[part.param], read, part, statement.value, strides)


def _long_axes(shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """The axes of a contiguous tensor that have more than one element: size and stride."""
    return [axis for axis in zip(shape, contiguous(shape).strides, strict=True) if axis[0] != 1]


def _merge(producer: KernelThunk, copy: Copy) -> KernelThunk | None:
    """The kernel that computes the intermediate of a copy, and stores it to the copy's result; None if it cannot."""
    kernel = producer.kernel
    number = producer.params.index(copy.source)
    names = {b.name for b in kernel.buffers if b.param == number}
    params = [value for value in producer.params if value is not copy.source]
    if copy.out not in params:
        params.append(copy.out)
    buffers = []
    for b in kernel.buffers:
        moved = _move_buffer(kernel, b, copy) if b.name in names else b
        if moved is None:
            return None
        value = copy.out if b.name in names else None if b.param is None else producer.params[b.param]
        buffers.append(moved._replace(param=None if value is None else params.index(value)))
    stages = _merge_stores(kernel, names, copy)
    if stages is None:
        return None
    updated = copy.step.updated
    if producer.updated is not None:  # its result, or that of the copy, begins as a copy of what it updates
        is_moved = producer.updated.out is copy.source
        updated = producer.updated._replace(out=copy.out) if is_moved else producer.updated
    return producer._replace(
        kernel=kernel._replace(buffers=tuple(buffers), stages=stages),
        params=tuple(params),
        temporaries=tuple(
            value for value in (*producer.temporaries, *copy.step.temporaries) if value is not copy.source
        ),
        nodes=(*producer.nodes, *copy.step.nodes),
        updated=updated,
    )


def _move_buffer(kernel: FusedKernel, b: Buffer, copy: Copy) -> Buffer | None:
    """The buffer of the intermediate, moved to the part of the result; None if its dimensions do not map."""
    if copy.is_aligned and b.param is not None:
        return b._replace(dtype=copy.part.dtype)
    strides: list[int] = []
    left = dict(copy.strides)
    for size, stride in zip((*kernel.outer, *kernel.inner), b.strides, strict=True):
        moves = stride != 0 and size != 1
        if moves and (size, stride) not in left:
            return None
        strides.append(left.pop((size, stride)) if moves else 0)
    if left or b.offset:
        return None
    return b._replace(dtype=copy.part.dtype, strides=tuple(strides), offset=copy.part.offset)


def _merge_stores(kernel: FusedKernel, names: set[str], copy: Copy) -> tuple[Stage, ...] | None:
    """The stages with the copied value in place of the intermediate; None if something else uses the intermediate."""
    if copy.value.op == "load":
        return kernel.stages
    uses = [name for stage in kernel.stages for name in stage.buffers() if name in names]
    stores = [one.buffer for stage in kernel.stages for one in stage.body if isinstance(one, Store)]
    if len(uses) != len(names) or not names.issubset(stores):
        return None
    return tuple(_convert_stores(stage, names, copy) for stage in kernel.stages)


def _convert_stores(stage: Stage, names: set[str], copy: Copy) -> Stage:
    """A stage whose stores to some buffers store what the copy makes of the values instead."""
    body = []
    for statement in stage.body:
        if isinstance(statement, Store) and statement.buffer in names:
            old = Expr("load", (), copy.part.dtype, statement.buffer)
            values = {copy.read.name: statement.value, copy.part.name: old}
            value = substitute_leaves(copy.step.kernel.stages[0], values)[copy.value]
            statement = statement._replace(value=value)
        body.append(statement)
    return stage._replace(body=tuple(body))
