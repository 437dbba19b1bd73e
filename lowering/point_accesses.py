"""Whether a kernel may write a result over the memory of a value that it reads.

Each point of a kernel reads before it writes. So the result may take over the memory if no point reads an element that
another point writes; or, where the points run in order, that an earlier point writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..tracer.graph import Value
from .fusion.loop_ir import (
    Buffer,
    FusedKernel,
    IndexedAxis,
    Stage,
    Store,
    Update,
    read_buffers,
    roots_of,
    target_of,
)
from .layout import contiguous
from .thunks import KernelThunk


def reads_what_it_writes(step: KernelThunk, source: Value, out: Value, device: str) -> bool:
    """Whether no point of a kernel reads an element of ``source`` that another point writes in ``out`` before.

    Args:
        step: the kernel.
        source: a value that it reads.
        out: the result that would be stored in the memory of ``source``.
        device: where it runs; on the CPU the points along one dimension run one after another.
    """
    if len(step.kernel.stages) != 1:
        return False
    (stage,), kernel = step.kernel.stages, step.kernel
    own = [b for b in kernel.buffers if b.param is not None and step.params[b.param] in (source, out)]
    if _are_same_elements(kernel, stage, own) or (device == "cpu" and _reads_ahead(kernel, stage, own)):
        return True
    is_one_point = all(size == 1 for size in (*kernel.outer, *kernel.inner))
    return _reads_before_writing(stage, {b.name for b in own}) and (
        is_one_point or _differ_between_points(kernel, stage, own, source)
    )


def _reads_before_writing(stage: Stage, names: set[str]) -> bool:
    """Whether no statement reads one of some buffers after another statement has written one."""
    is_written = False
    for statement in stage.body:
        if is_written and any(names & read_buffers(root) for root in roots_of(statement)):
            return False
        is_written = is_written or target_of(statement) in names
    return True


def _are_same_elements(kernel: FusedKernel, stage: Stage, own: Sequence[Buffer]) -> bool:
    """Whether all accesses of a point are to one element, or to elements with the same indexed axes.

    Two points do not meet in an element if their positions differ along an axis that no index selects.
    """
    if len({(b.strides, b.offset) for b in own}) != 1:
        return False
    names = {b.name for b in own}
    axes = {axes for name, axes in find_indexed(stage) if name in names}
    if not axes:
        return True
    sizes = zip((*kernel.outer, *kernel.inner), own[0].strides, strict=True)
    is_distinct = all(size == 1 or stride for size, stride in sizes)
    return len(axes) == 1 and is_distinct and not names & _find_plain(stage)


def _reads_ahead(kernel: FusedKernel, stage: Stage, own: Sequence[Buffer]) -> bool:
    """Whether the points are in a row, and each reads only elements that it or a later point writes.

    So do those of ``a.at[:-1].set(a[1:] + a[:-1])``: a vector of points reads its elements before it writes them.
    """
    names = {b.name for b in own}
    is_row = kernel.inner != () and all(size == 1 for size in (*kernel.outer, *kernel.inner[:-1]))
    if not is_row or any(name in names for name, _ in find_indexed(stage)):
        return False
    written = {statement.buffer for statement in stage.body if isinstance(statement, Store)}
    writes = [b.offset for b in own if b.name in written]
    reads = [b.offset for b in own if b.name not in written]
    strides = {b.strides[-1] for b in own}
    if len(strides) != 1 or not all(type(n) is int for n in (*strides, *reads, *writes)):
        return False
    is_ahead = bool(writes and reads) and min(reads) >= max(writes) and min(strides) > 0
    return is_ahead and _reads_before_writing(stage, names)


def find_indexed(stage: Stage) -> Iterator[tuple[str, tuple[IndexedAxis, ...]]]:
    """The names of the buffers that a stage accesses at integer positions, with the indexed axes."""
    for e in stage.exprs():
        if e.op == "gather":
            yield e.payload.buffer, e.payload.axes
    for statement in stage.body:
        if isinstance(statement, Update):
            yield statement.map.buffer, statement.map.axes


def _find_plain(stage: Stage) -> set[str]:
    """The names of the buffers that are accessed at the point itself."""
    loads = {e.payload for e in stage.exprs() if e.op == "load"}
    return loads | {statement.buffer for statement in stage.body if isinstance(statement, Store)}


# -- accesses to different rows or columns -----------------------------------------------------------------------------
def _differ_between_points(kernel: FusedKernel, stage: Stage, own: Sequence[Buffer], source: Value) -> bool:
    """Whether each dimension of a kernel runs over an axis of the memory, along which all accesses of a point agree.

    So do the accesses of ``a.at[i].set(a[0])``, which all are to column ``j`` at point ``j``.
    """
    sizes = (*kernel.outer, *kernel.inner)
    numbers = (*sizes, *source.shape, *(n for b in own for n in (*b.strides, b.offset)))
    if len({b.strides for b in own}) != 1 or any(type(n) is not int for n in numbers):
        return False
    memory = _Axes(source.shape)
    dims = [memory.find_run(stride, size) for size, stride in zip(sizes, own[0].strides) if size != 1]
    kept = [run[0] for run in dims if run is not None]
    if len(set(kept)) != len(sizes) - sizes.count(1):
        return False
    starts = {b.name: memory.coordinates(b.offset) for b in own}
    if len({tuple(start[axis] for axis in kept) for start in starts.values()}) != 1:
        return False
    indexed = [(name, axis) for name, axes in find_indexed(stage) if name in starts for axis in axes]
    return all(memory.holds(run, start) for start in starts.values() for run in dims) and all(
        _is_beside(memory, axis, starts[name], kept) for name, axis in indexed
    )


def _is_beside(memory: _Axes, indexed: IndexedAxis, start: Sequence[int], kept: Sequence[int]) -> bool:
    """Whether the elements that an index selects differ along an axis that no dimension of the kernel runs over."""
    if indexed.size == 1:
        return True
    run = memory.find_run(indexed.stride, indexed.size)
    return run is not None and run[0] not in kept and memory.holds(run, start)


Run = tuple[int, int, int]
"""An axis of the memory, and the number and the distance along it of elements that are accessed one after another."""


class _Axes:
    """The axes of a contiguous array."""

    def __init__(self, shape: Sequence[int]):
        self.shape, self.strides = tuple(shape), contiguous(tuple(shape)).strides

    def find_run(self, stride: int, size: int) -> Run | None:
        """The axis along which elements have a distance in memory."""
        for axis, (length, step) in enumerate(zip(self.shape, self.strides)):
            if stride and stride % step == 0 and abs(stride // step) < length:
                return axis, size, stride // step
        return None

    def coordinates(self, offset: int) -> tuple[int, ...]:
        """The position of an element along each axis."""
        return tuple(offset // step % length for length, step in zip(self.shape, self.strides))

    def holds(self, run: Run | None, start: Sequence[int]) -> bool:
        """Whether a run from a position does not leave its axis."""
        return run is not None and 0 <= start[run[0]] + (run[1] - 1) * run[2] < self.shape[run[0]]
