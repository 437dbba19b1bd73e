"""Producer inlining: recompute a cheap operand (the cast of a weight, a range) in each kernel that reads it.

A fusion group has one iteration space, so a computation on a small operand alone is a separate kernel. On a device
where a launch costs as much as a million elements, recomputing it for each element that reads it is faster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ...named_tuple import NamedTuple
from ...operators.scalar_ir.expr import Expr
from ...tracer.graph import Value
from ..cost_model import is_cheap
from ..fusion.affine_reads import AffineAxis, Composition, Part, find_positions, make_part
from ..fusion.loop_ir import Buffer, FusedKernel, Store, read_buffers
from ..fusion.ranges import make_range_kernel, match_constant_range
from ..thunks import KernelThunk, Thunk, reads_and_writes


class Producer(NamedTuple):
    """A kernel that stores one cheap expression.

    Attributes:
        step: the kernel.
        value: the value that it computes.
        target: the buffer that it stores to.
        expr: the expression that it stores.
    """

    step: KernelThunk
    value: Value
    target: Buffer
    expr: Expr


def inline_producers(
    steps: Iterable[Thunk], placed: Collection[Value], results: Collection[Value]
) -> list[Thunk]:
    """Inline kernels that store one cheap expression into all kernels that read it.

    Args:
        steps: in order.
        placed: parameters and constants: values whose buffers do not change, so that a producer that reads only these
            can run at any time.
        results: the values that are read after the last step.

    Returns:
        The remaining steps, in order.
    """
    result, index = list(steps), 0
    while index < len(result):
        step = result[index]
        readers = _merge_into_readers(_find_producer(step, placed, results), result)
        if readers:
            result = [readers.get(id(s)) or s for s in result if s is not step]
        else:
            index += 1
    return result


def inline_ranges(steps: Iterable[Thunk], constants: Iterable[tuple[Value, Any]]) -> list[Thunk]:
    """Replace loads of evenly spaced integer constants by arithmetic on the position.

    Args:
        steps: in order.
        constants: the constants, with their tensors on the CPU.
    """
    result = list(steps)
    for value, tensor in constants:
        counts = match_constant_range(tensor._array)
        if counts is not None:
            kernel = make_range_kernel("range", value.spec, counts)
            expr = kernel.stages[0].body[0].value
            producer = Producer(KernelThunk(kernel, (value,), (), ()), value, kernel.buffers[0], expr)
            result = [merge_producer(step, producer) or step for step in result]
    return result


def _merge_into_readers(producer: Producer | None, steps: list[Thunk]) -> dict[int, KernelThunk]:
    """The merged kernel of each reader of a producer, by the reader's id; empty if one cannot be merged."""
    if producer is None or sum(producer.value in reads_and_writes(s)[1] for s in steps) > 1:
        return {}  # several kernels write a result that is concatenated in place
    result = {}
    for step in steps:
        if producer.value in reads_and_writes(step)[0]:
            merged = merge_producer(step, producer)
            if merged is None:
                return {}
            result[id(step)] = merged
    return result


def _find_producer(step: Thunk, placed: Collection[Value], results: Collection[Value]) -> Producer | None:
    if (
        not isinstance(step, KernelThunk)
        or len(step.kernel.stages) != 1
        or len(step.kernel.stages[0].body) != 1
    ):
        return None
    statement = step.kernel.stages[0].body[0]
    if not isinstance(statement, Store):
        return None
    target, loads = _find_buffer(step.kernel, statement.buffer), read_buffers(statement.value)
    value = step.params[target.param] if target.param is not None else None
    inputs = [step.params[b.param] for b in step.kernel.buffers if b.name in loads and b.param is not None]
    if value is None or value in results or target.offset or not is_cheap(statement.value):
        return None
    if any(v not in placed for v in inputs) or statement.value.dtype is not target.dtype:
        return None
    return Producer(step, value, target, statement.value)


def _find_buffer(kernel: FusedKernel, name: str) -> Buffer:
    return next(b for b in kernel.buffers if b.name == name)


def merge_producer(step: Thunk, producer: Producer) -> KernelThunk | None:
    """Merge a producer into a kernel that reads it; None if that is not possible."""
    if not isinstance(step, KernelThunk) or producer.value not in step.params or producer.step is step:
        return None
    if step.updated is not None and step.updated.source is producer.value:
        return None  # the elements that an update keeps are read from memory
    composed = Composition(step.kernel, step.params, producer.value)
    if {b.name for b in composed.reads} & _indexed_buffers(step.kernel):
        return None  # it is read at other positions than the current point
    sizes = (*step.kernel.outer, *step.kernel.inner)
    for read in composed.reads:
        match = find_read(producer, sizes, read)
        if match is None or not composed.replace(read, *match):
            return None
    nodes = (*producer.step.nodes, *step.nodes)
    return KernelThunk(composed.finish(), tuple(composed.values), step.temporaries, nodes, step.updated)


def _indexed_buffers(kernel: FusedKernel) -> set[str]:
    """The names of the buffers that a kernel reads at integer positions."""
    exprs = (e for stage in kernel.stages for e in stage.exprs())
    return {e.payload.buffer for e in exprs if e.op == "gather"}


def find_read(
    producer: Producer, sizes: tuple[int, ...], read: Buffer
) -> tuple[tuple[AffineAxis, ...], Part] | None:
    """The positions at which a kernel reads a producer's value, and the part of the value: the whole."""
    kernel = producer.step.kernel
    for shape in (
        producer.value.shape,
        (*kernel.outer, *kernel.inner),
    ):  # the kernel of a reshape has another space
        part = make_part(shape, kernel, producer.step.params, producer.target, producer.expr)
        axes = None if part is None else find_positions(shape, sizes, read.strides, read.offset)
        if part is not None and axes is not None and tuple(part.sizes) == tuple(shape):
            return axes, part
    return None
