"""Read parts of a value before an update takes over its memory, as an exchange does.

``x = a[0]; a = a.at[0].set(a[i]).at[i].set(x)`` reads one element of the old value after the first update. A kernel
that reads the value but needs no later one runs before the update; for the others, small parts are copied before it.
Then the updates write in place; otherwise the result would begin as a copy of the whole value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ..tracer.graph import Value
from .fusion.loop_ir import Buffer
from .layout import Layout, contiguous
from .point_accesses import find_indexed
from .thunks import KernelThunk, Thunk, copy_thunk, keep_buffers, reads_and_writes

MOST_READERS = 8
MOST_STEPS = 256  # from an update to the last step that reads its source

Steps = list[Thunk | None]
"""Steps, with None in the place of those that are moved."""


def read_before_update(
    steps: Steps, index: int, source: Value, readers: Sequence[int], name: str
) -> tuple[list[Thunk], list[int]]:
    """Find the steps that can run before an update, so that no later step reads its source.

    Args:
        steps: all steps; None is left in the place of those that are moved, and those that read copies are replaced.
        index: the position of the update.
        source: the value that it updates.
        readers: the positions of the steps that read the source, in order.
        name: the start of the names of new kernels, which no other update has.

    Returns:
        The steps to be run before the update, and the positions of the later steps that still read the source.
    """
    later = list(readers[bisect_right(readers, index) :])
    if len(later) > MOST_READERS or later[-1] - index > MOST_STEPS:
        return [], later
    moved: list[Thunk] = []
    left: list[int] = []
    for position in later:
        step = steps[position]
        if step is not None and _may_move_up(steps, index, position):
            moved.append(step)
            steps[position] = None
        elif step is not None:
            left.append(position)
    saved = _save_parts(steps, source, left, name)
    return [*moved, *saved], [] if saved else left


def _may_move_up(steps: Steps, index: int, position: int) -> bool:
    """Whether a step is a kernel that needs no step from an index on to its position, and that none of these needs."""
    step = steps[position]
    if not isinstance(step, KernelThunk) or step.updated is not None:
        return False
    reads, writes = map(set, reads_and_writes(step))
    for between in steps[index:position]:
        if between is not None:
            reads_between, writes_between = reads_and_writes(between)
            if not (reads | writes).isdisjoint(writes_between) or not writes.isdisjoint(reads_between):
                return False
    return True


def _save_parts(steps: Steps, source: Value, readers: Sequence[int], name: str) -> list[KernelThunk]:
    """Make copies of the parts that steps after an update read, if these are small, and let the steps read them."""
    parts = [_find_parts(steps[n], source) for n in readers]
    layouts = list(dict.fromkeys(layout for part in parts for layout in (part or {}).values()))
    if not all(parts) or sum(layout.size for layout in layouts) * 2 > source.spec.size:
        return []
    copies = {layout: copy_thunk(f"{name}_{number}", source, layout) for number, layout in enumerate(layouts)}
    for n, part in zip(readers, parts):
        step = steps[n]
        if isinstance(step, KernelThunk) and part is not None:
            steps[n] = _read_copies(step, part, copies)
    return list(copies.values())


def _find_parts(step: Thunk | None, source: Value) -> dict[str, Layout] | None:
    """The layout of what a kernel reads by each buffer of a value; None if it is not of known sizes."""
    if not isinstance(step, KernelThunk) or (step.updated is not None and step.updated.source is source):
        return None
    indexed = {name for stage in step.kernel.stages for name, _ in find_indexed(stage)}
    parts: dict[str, Layout] = {}
    for buffer in step.kernel.buffers:
        if buffer.param is not None and step.params[buffer.param] is source:
            layout = _read_layout(step, buffer)
            if buffer.name in indexed or type(layout.size) is not int:
                return None
            parts[buffer.name] = layout
    return parts


def _read_layout(step: KernelThunk, buffer: Buffer) -> Layout:
    """The elements that a kernel reads by a buffer, without the dimensions along which they repeat."""
    sizes = (*step.kernel.outer, *step.kernel.inner)
    axes = [(size, stride) for size, stride in zip(sizes, buffer.strides, strict=True) if stride]
    return Layout(tuple(size for size, _ in axes), tuple(stride for _, stride in axes), buffer.offset)


def _read_copies(
    step: KernelThunk, parts: dict[str, Layout], copies: dict[Layout, KernelThunk]
) -> KernelThunk:
    """A kernel that reads copies in place of the parts of a value."""
    params, buffers = list(step.params), list[Buffer]()
    for buffer in step.kernel.buffers:
        layout = parts.get(buffer.name)
        if layout is not None:
            target = copies[layout].params[1]
            if target not in params:
                params.append(target)
            steps = iter(contiguous(layout.shape).strides)
            strides = tuple(next(steps) if stride else 0 for stride in buffer.strides)
            buffer = buffer._replace(strides=strides, param=params.index(target), offset=0)
        buffers.append(buffer)
    changed = step._replace(kernel=step.kernel._replace(buffers=tuple(buffers)), params=tuple(params))
    return keep_buffers(changed, {b.name for b in buffers})
