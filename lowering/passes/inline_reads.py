"""Inline reads: a kernel that reads a computed value at other points computes the elements where it reads them.

The value may be one part (a slice, a flip, a transpose of something computed) or several (the halves of a roll, the
parts of a concatenation, the border and the inside of a pad). The reader then becomes a kernel for each region of its
space that reads from one part. The value itself is not stored.

Positions, such as the ``i + arange(5)`` of a window, are computed wherever kernels use them as indices, also in
reductions: printers recognize consecutive ones.

Source: producer fusion with recomputation in XLA, and the partition of iteration spaces in polyhedral compilers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from ...errors import UndecidedError
from ...operators.scalar_ir.cost import cost
from ...operators.scalar_ir.expr import Expr, order
from ...tracer.graph import Node, Value
from ..buffer_assignment import nbytes_of
from ..cost_model import (
    CACHE_BYTES,
    MAX_POSITION_COST,
    MAX_REGIONS,
    MIN_SPLIT_BYTES,
    is_cheap,
    recomputing_reads_pays,
)
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
from ..fusion.loop_ir import Buffer, FusedKernel, Store, Update, load, target_of
from ..loop_bodies import find_updates
from ..thunks import AliasCandidate, KernelThunk, Thunk, keep_buffers, reads_and_writes

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
        is_position = self._is_position(value, parts, readers)
        if (
            not is_position
            and nbytes_of(value) < CACHE_BYTES
            and any(len(part.kernel.stages[0].body) > 1 for part in parts if part.kernel.stages)
        ):
            return []  # the kernel would compute what other values share with this one as before
        sources = {one for part in parts for one in part.values if one is not value}
        if self._are_overwritten(sources, writers[0], readers) or not self._may_read_carries(
            value, sources, parts, readers
        ):
            return []
        reads: dict[int, list[Reads]] = {}
        takes_rows = is_position or len(parts) == 1
        for position in readers:
            by_step = [_find_reads(step, value, takes_rows) for step in self.steps[position]]
            reads[position] = [one for one in by_step if one is not None]
            if len(reads[position]) < len(by_step):
                return []
        if not is_position and not self._recomputing_pays(value, parts, reads):
            return []
        if any(part.has_gathers() for part in parts) and not all(
            _reads_all(step, one, value)
            for position, by_step in reads.items()
            for step, one in zip(self.steps[position], by_step, strict=True)
        ):
            return []  # an index that no kernel reads would not be checked
        merged = self._merge_readers(value, parts, reads)
        if merged is None:
            return []
        left = {n: [one for step in self.steps[n] if (one := _remove_store(step, value))] for n in writers}
        nodes = [node for n in writers for step in self.steps[n] for node in getattr(step, "nodes", ())]
        if any(left.values()):
            nodes = [node for node in nodes if value in node.outputs]
        merged = {
            n: [_add_nodes(step, self.steps[n], nodes) for step in steps] for n, steps in merged.items()
        }
        self._replace({**merged, **left})
        return [one for one in sources if one not in self.kept]

    def _is_position(self, value: Value, parts: list[Part], readers: list[int]) -> bool:
        """Whether the elements of a value are integers that cost little, and all readers use them as indices only."""
        if not value.spec.dtype.is_integer or len(parts) > 1 or cost(parts[0].expr) > MAX_POSITION_COST:
            return False
        return all(_uses_as_index(step, value) for position in readers for step in self.steps[position])

    def _recomputing_pays(self, value: Value, parts: list[Part], reads: dict[int, list[Reads]]) -> bool:
        """Whether computing a value where it is read is cheaper than storing it."""
        number = sum(
            _count_reads(step, one)
            for position, by_step in reads.items()
            for step, one in zip(self.steps[position], by_step, strict=True)
        )
        return recomputing_reads_pays((part.expr for part in parts), number, value.spec)

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

    def _may_read_carries(
        self, value: Value, sources: set[Value], parts: list[Part], readers: list[int]
    ) -> bool:
        """Whether reading donated values, such as the carries of a loop, costs no more than keeping them in place.

        A kernel that reads the neighbours of a point cannot write its result over the carry. That costs a copy, which
        the parts of a value cost too; but a kernel that reads the carry anyway does not read the value's memory then.
        And a result that is computed as a whole has memory of its own, where the value would have some.
        """
        carries = {one for one in sources.intersection(self.lowered.donated) if one.spec.size > 1}
        if not carries:
            return True
        is_update = any(getattr(step, "updated", None) is not None for n in readers for step in self.steps[n])
        if not is_update and all(value.spec.size >= carry.spec.size for carry in carries):
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
    if len(kernel.stages) != 1 or step.temporaries:
        return None
    if step.updated is not None and step.updated.out is not value:
        return None
    parts = [] if step.updated is None else [_base_part(step.updated)]
    own = _find_buffers(step, value)
    for statement in kernel.stages[0].body:
        if not isinstance(statement, Store):
            return None
        if statement.buffer not in own:
            continue
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


def _remove_store(step: Thunk, value: Value) -> Thunk | None:
    """A step without the stores of a value; None if it has no others."""
    if not isinstance(step, KernelThunk) or len(step.kernel.stages[0].body) == 1:
        return None
    kernel, (stage,) = step.kernel, step.kernel.stages
    own = _find_buffers(step, value)
    body = tuple(s for s in stage.body if target_of(s) not in own)
    if not body:
        return None
    changed = step._replace(kernel=kernel._replace(stages=(stage._replace(body=body),)))
    return keep_buffers(changed, set(changed.kernel.stages[0].buffers()))


# -- readers -----------------------------------------------------------------------------------------------------------
def _find_reads(step: Thunk, value: Value, takes_rows: bool) -> Reads | None:
    """Find the reads of a value in a step; None if the step is not a kernel that can compute the elements.

    Args:
        step: the step.
        value: the value.
        takes_rows: whether kernels with reductions can compute it too.
    """
    if value not in reads_and_writes(step)[0]:
        return []
    if not isinstance(step, KernelThunk):
        return None
    if not takes_rows and not _computes_elements(step):
        return None
    kernel, exprs = step.kernel, [e for stage in step.kernel.stages for e in stage.exprs()]
    own = _find_buffers(step, value)
    if any(e.op == "gather" and e.payload.buffer in own for e in exprs):
        return None
    sizes = (*kernel.outer, *kernel.inner)
    if any(update.source is value for update in find_updates(step)) or 0 in sizes:
        return None
    result: Reads = []
    for b in kernel.buffers:
        if b.param is not None and step.params[b.param] is value:
            axes = find_positions(value.shape, sizes, b.strides, b.offset)
            if axes is None or b.dtype is not value.spec.dtype:
                return None
            result.append((b, axes))
    return result


def _reads_all(step: Thunk, reads: Reads, value: Value) -> bool:
    """Whether each read of a value by a step is of all of its elements."""
    if not isinstance(step, KernelThunk):
        return not reads
    sizes = (*step.kernel.outer, *step.kernel.inner)
    return all(
        size == 1 or (axis.step in (1, -1) and sizes[axis.dim] == size)
        for _, axes in reads
        for size, axis in zip(value.shape, axes, strict=True)
    )


def _computes_elements(step: KernelThunk) -> bool:
    """Whether a kernel computes elements one by one, in one stage."""
    if step.temporaries or len(step.kernel.stages) != 1 or any(b.param is None for b in step.kernel.buffers):
        return False
    return all(isinstance(s, (Store, Update)) for s in step.kernel.stages[0].body)


def _find_buffers(step: KernelThunk, value: Value) -> set[str]:
    """The names of a kernel's buffers of a value."""
    return {b.name for b in step.kernel.buffers if b.param is not None and step.params[b.param] is value}


def _uses_as_index(step: Thunk, value: Value) -> bool:
    """Whether a step is a kernel that uses the elements of a value only in the indices of its reads and updates."""
    if not isinstance(step, KernelThunk):
        return False
    names, seen = _find_buffers(step, value), set[Expr]()
    others = [s.value for stage in step.kernel.stages for s in stage.body]
    while others:
        e = others.pop()
        if e.op == "load" and e.payload in names:
            return False
        if e not in seen and e.op != "gather":
            seen.add(e)
            others += e.args
    return True


def _count_reads(step: Thunk, reads: Reads) -> Dim:
    """Return the number of times that a kernel reads elements of a value."""
    if not isinstance(step, KernelThunk):
        return 0
    stages = [set(stage.buffers()) for stage in step.kernel.stages]
    return sum(b.name in names for b, _ in reads for names in stages) * math.prod(
        (*step.kernel.outer, *step.kernel.inner)
    )


def _split(step: Thunk, reads: Reads, value: Value, parts: list[Part]) -> list[Thunk] | None:
    """The kernels, one for each region of a reader's space, that compute the value's elements themselves."""
    if not isinstance(step, KernelThunk) or not reads:
        return [step]
    sizes = (*step.kernel.outer, *step.kernel.inner)
    has_maps = any(stage.has_index_maps() for stage in step.kernel.stages)
    if has_maps and any(not is_cheap(part.expr) for part in parts):
        return None  # elements at integer positions are computed one by one
    regions = list(split_space(sizes, parts, [axes for _, axes in reads]))
    is_whole = has_maps or step.updated is not None or not _computes_elements(step)
    if len(regions) > (1 if is_whole else MAX_REGIONS):
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
