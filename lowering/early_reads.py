"""Read parts of a value before an update takes over its memory, as an exchange does.

``x = a[0]; a = a.at[0].set(a[i]).at[i].set(x)`` reads one element of the old value after the first update. A kernel or
loop that reads the value but does not need the update runs before it, with all that it needs; for the others, small
parts are copied before the update. Then the updates write in place; otherwise the result would begin as a copy of the
whole value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ..tracer.graph import Value
from .fusion.loop_ir import Buffer
from .layout import Layout, contiguous
from .loop_bodies import find_updates
from .passes.rewrite import has_effects
from .point_accesses import find_indexed
from .thunks import KernelThunk, Thunk, copy_thunk, keep_buffers, reads_and_writes

MOST_READERS = 8
MOST_STEPS = 256  # from an update to the last step that reads its source


def move_readers_up(steps: list[Thunk | None], index: int, readers: Sequence[int]) -> list[Thunk]:
    """Find the steps that can run before an update, so that no later step reads what it overwrites.

    Args:
        steps: all steps; None is left in the place of those that are moved.
        index: the position of the update.
        readers: the positions of the steps that read the value, in order.

    Returns:
        The readers that need no result of the update, and the steps that they need, in order.
    """
    moved: list[Thunk] = []
    for position in _find_later(index, readers):
        needed = _find_needed(steps, index, position)
        moved += [step for n in needed if (step := steps[n]) is not None]
        for n in needed:
            steps[n] = None
    return moved


def _find_later(index: int, readers: Sequence[int]) -> Sequence[int]:
    """The positions of the steps that read a value after an update; none if these are many or far away."""
    later = readers[bisect_right(readers, index) :]
    return later if later and len(later) <= MOST_READERS and later[-1] - index <= MOST_STEPS else ()


def _find_needed(steps: list[Thunk | None], index: int, position: int) -> list[int]:
    """The steps that have to run so that the one at a position can run before another; empty if it cannot.

    No step moves before a callback, which may do more than compute: it has to run before an error of a later step.
    """
    needed: list[int] = []
    reads, writes = set[Value](), set[Value]()
    for at in range(position, index - 1, -1):
        step = steps[at]
        if step is None:
            continue
        if at != index and not _may_move(step):
            return []
        its_reads, its_writes = map(set, reads_and_writes(step))
        is_needed = not (reads | writes).isdisjoint(its_writes) or not writes.isdisjoint(its_reads)
        if at == position or is_needed:
            if at == index:
                return []
            needed.append(at)
            reads |= its_reads
            writes |= {*its_writes, *(update.source for update in find_updates(step))}
    return needed[::-1]


def _may_move(step: Thunk) -> bool:
    """Whether a step computes its results and does nothing else."""
    return isinstance(step, KernelThunk) or (step.kind != "callback" and not has_effects(step.node))


def save_parts(
    steps: list[Thunk], index: int, source: Value, readers: Sequence[int], name: str
) -> list[KernelThunk]:
    """Make copies of the parts of a value that steps after its update read, if these are small.

    Args:
        steps: all steps; those that read copies instead are replaced.
        index: the position of the update.
        source: the value that it updates.
        readers: the positions of the steps that read the value, in order.
        name: the start of the names of the new kernels, which no other update has.

    Returns:
        The kernels that make the copies; none if the parts are large, or are not known.
    """
    later = _find_later(index, readers)
    parts = [_find_parts(steps[n], source) for n in later]
    layouts = list(dict.fromkeys(layout for part in parts for layout in (part or {}).values()))
    if not parts or not all(parts) or sum(layout.size for layout in layouts) * 2 > source.spec.size:
        return []
    copies = {layout: copy_thunk(f"{name}_{number}", source, layout) for number, layout in enumerate(layouts)}
    for n, part in zip(later, parts):
        step = steps[n]
        if isinstance(step, KernelThunk) and part is not None:
            steps[n] = _read_copies(step, part, copies)
    return list(copies.values())


def _find_parts(step: Thunk, source: Value) -> dict[str, Layout] | None:
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
