"""In-place updates: an update takes over the memory of the value that it updates if that value is dead afterwards.

The value is dead if no later step reads it and it is no result of the graph. Its memory must be an intermediate of the
graph, or a parameter that the caller donates. Otherwise the result begins as a copy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..tracer.graph import Value
from .early_reads import move_readers_up, save_parts
from .fusion.loop_ir import FusedKernel, Reduce
from .loop_bodies import find_updates
from .point_accesses import reads_what_it_writes
from .thunks import (
    AliasCandidate,
    KernelThunk,
    NodeThunk,
    Thunk,
    copy_into,
    reads_and_writes,
)

if TYPE_CHECKING:
    from .lower import Lowered


def update_steps(lowered: Lowered) -> None:
    """Decide for each update, in order, whether it is done in place; insert the copies for the others."""
    kept = {*_result_values(lowered), *(value for value, _ in lowered.folded)}
    given = _run_readers_first(lowered, kept)
    steps: list[Thunk] = []
    updated = list[Value]()
    readers = _find_readers(given)
    for index in range(len(given)):
        step = given[index]
        for update in find_updates(step):
            may_take_over = update.source not in kept and _may_take_over(lowered, update, step)
            if may_take_over and readers[update.source][-1] > index:
                saved = save_parts(given, index, update.source, readers[update.source], f"saved{len(steps)}")
                steps += saved
                if saved:
                    readers[update.source] = [index]
            if may_take_over and readers[update.source][-1] == index:
                _take_over(lowered, update)
                updated.append(update.out)
            elif isinstance(step, KernelThunk):
                steps.append(copy_into(f"{step.kernel.name}_copy", update.source, update.layout, update.out))
                step = step._replace(updated=None)
        steps.append(step)
    lowered.steps = _mark_updated(lowered, steps, updated)
    _remove_aliased_storages(lowered)


def _mark_updated(lowered: Lowered, steps: Sequence[Thunk], updated: Sequence[Value]) -> list[Thunk]:
    """Mark the buffers of reductions that read the memory of values that are updated in place."""
    owner, result = lowered.aliases.owner, list[Thunk]()
    memory = {owner(value) for value in updated}
    for step in steps:
        if isinstance(step, KernelThunk) and _reduces(step.kernel):
            buffers = tuple(
                b._replace(is_updated=b.param is not None and owner(step.params[b.param]) in memory)
                for b in step.kernel.buffers
            )
            step = step._replace(kernel=step.kernel._replace(buffers=buffers))
        result.append(step)
    return result


def _reduces(kernel: FusedKernel) -> bool:
    return any(isinstance(statement, Reduce) for stage in kernel.stages for statement in stage.body)


def _run_readers_first(lowered: Lowered, kept: set[Value]) -> list[Thunk]:
    """Order the steps so that what reads a value runs before the update that may take over its memory."""
    given: list[Thunk | None] = list(lowered.steps)
    readers = _find_readers(lowered.steps)
    steps: list[Thunk] = []
    for index in range(len(given)):
        step = given[index]
        if step is None:
            continue
        for update in find_updates(step):
            is_read_later = readers[update.source][-1] > index and update.source not in kept
            if is_read_later and _may_take_over(lowered, update, step):
                steps += move_readers_up(given, index, readers[update.source])
        steps.append(step)
    return steps


def _find_readers(steps: Sequence[Thunk]) -> dict[Value, list[int]]:
    """The positions of the steps that read each value, in order."""
    result: dict[Value, list[int]] = defaultdict(list)
    for index, step in enumerate(steps):
        for value in dict.fromkeys(reads_and_writes(step)[0]):
            result[value].append(index)
    return result


def _may_take_over(lowered: Lowered, update: AliasCandidate, step: Thunk) -> bool:
    """Whether the memory of a dead value may be written, and the update itself reads no element after writing it."""
    source, layout = update.source, update.layout
    if not layout.is_contiguous or layout.size != source.spec.size or source.weak is not None:
        return False
    owner = lowered.aliases.owner(source)
    is_lent = owner in lowered.graph.parameters and owner not in lowered.donated
    if is_lent:
        return False
    if isinstance(step, NodeThunk):
        return step.reads.count(source) == 1
    return source not in step.params or reads_what_it_writes(step, source, update.out, lowered.device)


def _result_values(lowered: Lowered) -> list[Value]:
    """The values whose memory results of the graph are stored in."""
    parameters = lowered.graph.parameters
    values = {"storage": lowered.storages, "parameter": parameters}
    return [values[output.kind][output.index] for output in lowered.outputs if output.kind in values]


def _take_over(lowered: Lowered, update: AliasCandidate) -> None:
    owner = lowered.aliases.owner(update.source)
    if owner in lowered.graph.parameters or update.out not in lowered.storages:
        lowered.aliases.add(update.out, owner)
    else:
        lowered.aliases.add(owner, update.out)


def _remove_aliased_storages(lowered: Lowered) -> None:
    """Describe results that are stored in donated parameters; their storages are not needed."""
    parameters, storages = lowered.graph.parameters, lowered.storages
    owners = [lowered.aliases.owner(value) for value in storages]
    lowered.storages = [value for value, owner in zip(storages, owners) if owner not in parameters]
    for number, output in enumerate(lowered.outputs):
        if output.kind != "storage":
            continue
        value, owner = storages[output.index], owners[output.index]
        if owner in parameters:
            now = output._replace(kind="parameter", index=parameters.index(owner))
        else:
            now = output._replace(index=lowered.storages.index(value))
        lowered.outputs[number] = now
    lowered.written |= {
        parameters.index(owner)
        for owner in map(lowered.aliases.owner, _all_written(lowered))
        if owner in parameters
    }


def store_results_in_donated(lowered: Lowered) -> None:
    """Store results in the memory of donated parameters of their size that are dead when the result is written."""
    kept = set(_result_values(lowered))
    placed = {
        lowered.outputs[number].index
        for number in lowered.placed
        if lowered.outputs[number].kind == "storage"
    }
    reads, writers = _find_accesses(lowered)
    free = [
        value
        for value in lowered.donated
        if value not in kept and lowered.graph.parameters.index(value) not in lowered.written
    ]
    for out in [value for index, value in enumerate(lowered.storages) if index not in placed]:
        donor = next((value for value in free if _is_dead_before(lowered, value, out, reads, writers)), None)
        if donor is not None:
            free.remove(donor)
            lowered.aliases.add(out, donor)
    _remove_aliased_storages(lowered)


def _find_accesses(lowered: Lowered) -> tuple[dict[Value, int], dict[Value, int]]:
    """For each memory the last step that reads it and the first that writes it."""
    owner = lowered.aliases.owner
    last_reads: dict[Value, int] = {}
    first_writes: dict[Value, int] = {}
    for index, step in enumerate(lowered.steps):
        reads, writes = reads_and_writes(step)
        last_reads.update(dict.fromkeys(map(owner, reads), index))
        for value in map(owner, writes):
            first_writes.setdefault(value, index)
    return last_reads, first_writes


def _is_dead_before(
    lowered: Lowered, source: Value, out: Value, reads: dict[Value, int], writers: dict[Value, int]
) -> bool:
    """Whether nothing reads ``source`` after ``out`` is first written, which has the same size and layout."""
    if source.spec != out.spec or out not in writers:
        return False
    step, last_read = lowered.steps[writers[out]], reads.get(source, -1)
    if not isinstance(step, KernelThunk):
        return False
    return last_read < writers[out] or (
        last_read == writers[out]
        and out in step.params
        and reads_what_it_writes(step, source, out, lowered.device)
    )


def _all_written(lowered: Lowered) -> Iterator[Value]:
    for step in lowered.steps:
        yield from reads_and_writes(step)[1]
