"""Inline reads: a kernel that reads a computed value at other points computes the elements where it reads them.

The value may be one part (a slice, a flip, a transpose of something computed) or several (the halves of a roll, the
parts of a concatenation, the border and the inside of a pad). The reader then becomes a kernel for each region of its
space that reads from one part. The value itself is not stored.

Source: producer fusion with recomputation in XLA, and the partition of iteration spaces in polyhedral compilers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from ...errors import UndecidedError
from ...operators.scalar_ir.cost import cost
from ...operators.scalar_ir.expr import order
from ...tracer.graph import Node, Value
from ..buffer_assignment import nbytes_of
from ..cost_model import MAX_REGIONS, MIN_SPLIT_BYTES, is_cheap, recomputing_reads_pays
from ..fusion.affine_reads import (
    AffineAxis,
    Composition,
    Part,
    Region,
    find_positions,
    make_part,
    restrict,
    select_part,
    split_space,
)
from ..fusion.loop_ir import Buffer, FusedKernel, Store, Update, load
from ..in_place import find_updates
from ..thunks import AliasCandidate, KernelThunk, Thunk, reads_and_writes

if TYPE_CHECKING:
    from ...registry.dims import Dim
    from ..lower import Lowered

Reads = list[tuple[Buffer, tuple[AffineAxis, ...]]]
"""The buffers through which a kernel reads a value, and the positions of the reads."""


def inline_reads(lowered: Lowered) -> None:
    """Compute values where kernels read them, if that moves fewer bytes and costs little."""
    lowered.steps = _Steps(lowered).run()


class _Steps:
    """The steps of a graph by position; a position holds the kernels that have replaced one step.

    Attributes:
        steps: the steps at each position.
        kept: the values that are read by others than the steps.
        readers, writers: the positions of the steps that read and write each value.
        updaters: the positions of the steps that may take over the memory of each value.
    """

    def __init__(self, lowered: Lowered):
        self.lowered = lowered
        self.steps: list[list[Thunk]] = [[step] for step in lowered.steps]
        self.kept = {
            *lowered.storages,
            *lowered.optimized.parameters,
            *(value for value, _ in lowered.folded),
        }
        self.readers: dict[Value, set[int]] = defaultdict(set)
        self.writers: dict[Value, set[int]] = defaultdict(set)
        self.updaters: dict[Value, set[int]] = defaultdict(set)
        for position, step in enumerate(lowered.steps):
            self._register(position, step)

    def _register(self, position: int, step: Thunk) -> None:
        reads, writes = reads_and_writes(step)
        for values, table in ((reads, self.readers), (writes, self.writers)):
            for value in values:
                table[value].add(position)
        for update in find_updates(step):
            self.updaters[update.source].add(position)

    def _unregister(self, position: int, step: Thunk) -> None:
        reads, writes = reads_and_writes(step)
        for values, table in ((reads, self.readers), (writes, self.writers)):
            for value in values:
                table[value].discard(position)
        for update in find_updates(step):
            self.updaters[update.source].discard(position)

    def run(self) -> list[Thunk]:
        """Inline each value that can be inlined; then those that the new readers read."""
        waiting = [value for value in self.writers if value not in self.kept]
        for value in waiting:
            try:
                waiting += self._inline(value)
            except UndecidedError:
                continue  # whether that pays depends on symbolic sizes
        return [step for steps in self.steps for step in _number_kernels(steps)]

    def _inline(self, value: Value) -> list[Value]:
        """Inline a value into all of its readers; returns the values that these read now, or nothing."""
        writers, readers = sorted(self.writers[value]), sorted(self.readers[value])
        if not writers or not readers or writers[-1] >= readers[0] or not value.spec.size:
            return []
        parts = self._find_parts(value, [step for position in writers for step in self.steps[position]])
        if not parts or (len(parts) > 1 and nbytes_of(value) < MIN_SPLIT_BYTES):
            return []
        sources = {one for part in parts for one in part.values if one is not value}
        if self._are_overwritten(sources, writers[0], readers) or not self._may_read_carries(
            sources, parts, readers
        ):
            return []
        reads: dict[int, list[Reads]] = {}
        for position in readers:
            by_step = [_find_reads(step, value) for step in self.steps[position]]
            reads[position] = [one for one in by_step if one is not None]
            if len(reads[position]) < len(by_step):
                return []
        number = sum(
            _count_reads(step, one)
            for position, by_step in reads.items()
            for step, one in zip(self.steps[position], by_step, strict=True)
        )
        if not recomputing_reads_pays(max(cost(part.expr) for part in parts), number, value.spec):
            return []
        merged = self._merge_readers(value, parts, reads)
        if merged is None:
            return []
        nodes = [node for n in writers for step in self.steps[n] for node in getattr(step, "nodes", ())]
        merged = {
            n: [_add_nodes(step, self.steps[n], nodes) for step in steps] for n, steps in merged.items()
        }
        self._replace({**merged, **{position: [] for position in writers}})
        return [one for one in sources if one not in self.kept]

    def _merge_readers(
        self, value: Value, parts: list[Part], reads: dict[int, list[Reads]]
    ) -> dict[int, list[Thunk]] | None:
        """The kernels that replace the readers, by position; None if one of them cannot compute the value."""
        result: dict[int, list[Thunk]] = {}
        for position, by_step in reads.items():
            split = [
                _split(step, one, value, parts)
                for step, one in zip(self.steps[position], by_step, strict=True)
            ]
            kernels = [kernel for one in split for kernel in one or ()]
            if not all(split) or len(kernels) > MAX_REGIONS:
                return None
            result[position] = kernels
        return result

    def _replace(self, made: dict[int, list[Thunk]]) -> None:
        """Put other steps at some positions."""
        for position, steps in made.items():
            for step in self.steps[position]:
                self._unregister(position, step)
            self.steps[position] = steps
            for step in steps:
                self._register(position, step)

    def _are_overwritten(self, sources: set[Value], first: int, readers: list[int]) -> bool:
        """Whether reading values later keeps a step from taking over their memory."""
        not_owned = {*self.lowered.optimized.parameters, *(value for value, _ in self.lowered.folded)}
        not_owned.difference_update(self.lowered.donated)  # steps take over copies of these
        owned = sources - not_owned
        return any(first < position <= readers[-1] for value in owned for position in self.updaters[value])

    def _may_read_carries(self, sources: set[Value], parts: list[Part], readers: list[int]) -> bool:
        """Whether reading donated values, such as the carries of a loop, costs no more than keeping them in place.

        A kernel that reads the neighbours of a point cannot write its result over the carry. That costs a copy, which
        the parts of a value cost too; but a kernel that reads the carry anyway does not read the value's memory then.
        """
        carries = sources.intersection(self.lowered.donated)
        if not carries:
            return True
        read_anyway = all(
            readers_of >= set(readers) for readers_of in (self.readers[value] for value in carries)
        )
        return len(parts) > 1 and read_anyway

    # -- parts -----------------------------------------------------------------------------------------------------
    def _find_parts(self, value: Value, steps: list[Thunk]) -> list[Part] | None:
        """The parts of a value in the order in which they are stored; None if it is computed in another way."""
        parts: list[Part] = []
        for step in steps:
            made = _parts_of_step(step, value) if isinstance(step, KernelThunk) else None
            if made is None or (parts and isinstance(step, KernelThunk) and step.updated is not None):
                return None
            parts += made
        return parts


def _parts_of_step(step: KernelThunk, value: Value) -> list[Part] | None:
    kernel = step.kernel
    if len(kernel.stages) != 1 or kernel.stages[0].has_index_maps() or step.temporaries:
        return None
    parts = [] if step.updated is None else [_base_part(step.updated)]
    own = {b.name for b in kernel.buffers if b.param is not None and step.params[b.param] is value}
    for statement in kernel.stages[0].body:
        if not isinstance(statement, Store) or statement.buffer not in own:
            return None
        target = next(b for b in kernel.buffers if b.name == statement.buffer)
        if statement.value.dtype is not target.dtype or target.dtype is not value.spec.dtype:
            return None
        if any(e.op == "row" or (e.op == "load" and e.payload in own) for e in order(statement.value)):
            return None
        part = make_part(value.shape, kernel, step.params, target, statement.value)
        if part is None:
            return None
        parts.append(part)
    return parts


def _base_part(update: AliasCandidate) -> Part:
    """The elements that an update does not write."""
    value = update.out
    source = Buffer("b0", value.spec.dtype, update.layout.strides, 0, update.layout.offset)
    kernel = FusedKernel("", (), tuple(value.shape), (source,), ())
    zeros, dims = (0,) * len(value.shape), tuple(range(len(value.shape)))
    return Part(zeros, tuple(value.shape), dims, kernel, (update.source,), load(source))


# -- readers -----------------------------------------------------------------------------------------------------------
def _find_reads(step: Thunk, value: Value) -> Reads | None:
    """Find the reads of a value in a step; None if the step is not a kernel that computes elements one by one."""
    if value not in reads_and_writes(step)[0]:
        return []
    if not isinstance(step, KernelThunk) or len(step.kernel.stages) != 1:
        return None
    kernel, (stage,) = step.kernel, step.kernel.stages
    if step.temporaries or not all(isinstance(s, (Store, Update)) for s in stage.body):
        return None
    own = {b.name for b in kernel.buffers if b.param is not None and step.params[b.param] is value}
    if any(e.op == "gather" and e.payload.buffer in own for e in stage.exprs()):
        return None
    sizes = (*kernel.outer, *kernel.inner)
    if any(update.source is value for update in find_updates(step)) or 0 in sizes:
        return None
    result: Reads = []
    for b in kernel.buffers:
        if b.param is None:
            return None
        if step.params[b.param] is value:
            axes = find_positions(value.shape, sizes, b.strides, b.offset)
            if axes is None or b.dtype is not value.spec.dtype:
                return None
            result.append((b, axes))
    return result


def _count_reads(step: Thunk, reads: Reads) -> Dim:
    """Return the number of times that a kernel reads elements of a value."""
    if not isinstance(step, KernelThunk):
        return 0
    return len(reads) * math.prod((*step.kernel.outer, *step.kernel.inner))


def _split(step: Thunk, reads: Reads, value: Value, parts: list[Part]) -> list[Thunk] | None:
    """The kernels, one for each region of a reader's space, that compute the value's elements themselves."""
    if not isinstance(step, KernelThunk) or not reads:
        return [step]
    sizes = (*step.kernel.outer, *step.kernel.inner)
    has_maps = step.kernel.stages[0].has_index_maps()
    if has_maps and any(not is_cheap(part.expr) for part in parts):
        return None  # elements at integer positions are computed one by one
    regions = list(split_space(sizes, parts, [axes for _, axes in reads]))
    if len(regions) > (1 if has_maps or step.updated is not None else MAX_REGIONS):
        return None
    made = [_merge(step, reads, value, parts, region) for region in regions]
    return None if any(one is None for one in made) else [one for one in made if one is not None]


def _merge(
    step: KernelThunk, reads: Reads, value: Value, parts: list[Part], region: Region
) -> KernelThunk | None:
    """The kernel for one region; None if it reads elements of several parts or cannot compute them."""
    kernel = restrict(step.kernel, region)
    composed = Composition(kernel, step.params, value)
    for b, axes in reads:
        part = select_part(parts, axes, region)
        moved = tuple(axis._replace(start=axis.at(region.starts)) for axis in axes)
        if part is None or not composed.replace(b, moved, part):
            return None
    if (
        step.updated is not None
        and step.updated.source in composed.values
        and step.updated.source not in step.params
    ):
        return None
    return step._replace(kernel=composed.finish(), params=tuple(composed.values))


def _add_nodes(step: Thunk, before: list[Thunk], nodes: list[Node]) -> Thunk:
    """Add the nodes that a kernel computes now to its nodes, unless it was there before."""
    if not isinstance(step, KernelThunk) or any(step is one for one in before):
        return step
    return step._replace(nodes=tuple(dict.fromkeys((*nodes, *step.nodes))))


def _number_kernels(steps: list[Thunk]) -> list[Thunk]:
    """The steps at one position, with a name of its own for each kernel."""
    if len(steps) == 1:
        return steps
    return [
        step._replace(kernel=step.kernel._replace(name=f"{step.kernel.name}_{number}"))
        if isinstance(step, KernelThunk)
        else step
        for number, step in enumerate(steps)
    ]
