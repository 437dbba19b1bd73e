"""Rematerialization: recompute a cheap intermediate in each consumer when that moves fewer bytes than storing it.

For example, a product that one kernel sums over rows and another over columns is stored by the first kernel. On a
device whose memory is slow compared with its arithmetic, computing it in both kernels is faster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ...operators.scalar_ir.expr import Expr, order
from ...tracer.graph import Value
from ..cost_model import is_cheap
from ..fusion.loop_ir import (
    Buffer,
    FusedKernel,
    Stage,
    Statement,
    Store,
    load,
    read_buffers,
    roots_of,
    target_of,
)
from ..thunks import KernelThunk, Thunk, keep_buffers, reads_and_writes
from .inline_producers import Producer, merge_producer


def rematerialize(steps: Iterable[Thunk], results: Collection[Value]) -> list[Thunk]:
    """Remove stores of intermediates that their readers can recompute with fewer bytes moved.

    Args:
        steps: in order.
        results: the values that are read after the last step.

    Returns:
        The remaining steps, in order.
    """
    result, index = list(steps), 0
    left = {value for step in result for value in reads_and_writes(step)[0]}.difference(results)
    while index < len(result):
        changed = _remove_one_store(result, index, left)
        if changed is None:
            index += 1
        else:
            result = changed
    return result


def _remove_one_store(steps: list[Thunk], index: int, left: Collection[Value]) -> list[Thunk] | None:
    """Remove one store of the step at index ``place`` to a value in ``left``, which only steps read.

    Returns None if all are worth storing.
    """
    step = steps[index]
    if not isinstance(step, KernelThunk):
        return None
    for producer in _candidates(step, left):
        readers = [s for s in steps if producer.value in reads_and_writes(s)[0]]
        if not _moves_fewer_bytes(step, producer, readers) or _is_overwritten(producer, steps, index):
            continue
        merged = {id(s): merge_producer(s, producer) for s in readers}
        if readers and all(merged.values()):
            rest = remove_store(step, producer.target.name)
            items = [rest if s is step else merged.get(id(s)) or s for s in steps]
            return [s for s in items if s is not None]
    return None


def _candidates(step: KernelThunk, left: Collection[Value]) -> Iterator[Producer]:
    """The stores of a kernel to the values ``left`` that its readers could recompute, each as a separate kernel."""
    kernel = step.kernel
    for number, stage in enumerate(kernel.stages):
        for statement in stage.body:
            buffer = kernel.buffer(statement.buffer) if isinstance(statement, Store) else None
            is_left = buffer is not None and buffer.param is not None and _param(step, buffer) in left
            if isinstance(statement, Store) and buffer is not None and is_left:
                told = statement._replace(value=_reuse_earlier_stores(kernel, number, statement.value))
                if _can_recompute(kernel, number, told):
                    yield _extract_store(step, stage, told, buffer)


def _reuse_earlier_stores(kernel: FusedKernel, number: int, value: Expr) -> Expr:
    """Replace subexpressions of a value by loads of what earlier stages stored."""
    ids: dict[object, int] = {}
    known: dict[int, Buffer] = {}
    written = _written_params(kernel)
    changed = {b.name for b in kernel.buffers if b.param in written}
    for stage in kernel.stages[:number]:
        for s in stage.body:
            buffer = kernel.buffer(s.buffer) if isinstance(s, Store) else None
            if buffer is not None and buffer.param is not None and s.value.dtype is buffer.dtype:
                known[_number_values(s.value, ids)[s.value]] = buffer
    mapping: dict[Expr, Expr] = {}
    numbers = _number_values(value, ids)
    for e in order(value):
        stored = known.get(numbers[e])
        if stored is not None and not changed.intersection(read_buffers(e)):
            mapping[e] = load(stored)
        else:
            mapping[e] = Expr(e.op, tuple(mapping[a] for a in e.args), e.dtype, e.payload)
    return mapping[value]


def _number_values(root: Expr, ids: dict[object, int]) -> dict[Expr, int]:
    """Value numbering: equal expressions get equal numbers."""
    result: dict[Expr, int] = {}
    for e in order(root):
        payload = repr(e.payload) if e.op == "const" else e.payload
        key = (e.op, e.dtype, payload, *(result[a] for a in e.args))
        result[e] = ids.setdefault(key, len(ids))
    return result


def _written_params(kernel: FusedKernel) -> set[int | None]:
    return {_written_param(kernel, s) for stage in kernel.stages for s in stage.body}


def _can_recompute(kernel: FusedKernel, number: int, statement: Store) -> bool:
    """Whether a stored value can be recomputed elsewhere: it is cheap, not read here, and its sources are final."""
    target = kernel.buffer(statement.buffer)
    if target is None or target.param is None or target.offset or statement.value.dtype is not target.dtype:
        return False
    exprs = order(statement.value)
    loads = {b.param for b in kernel.buffers if b.name in read_buffers(statement.value)}
    reads = {b.param for b in kernel.buffers if b.name in _loaded_buffers(kernel)}
    writes = [_written_param(kernel, s) for stage in kernel.stages for s in stage.body]
    later = {_written_param(kernel, s) for stage in kernel.stages[number:] for s in stage.body}
    is_final = None not in loads and not loads & later and target.param not in reads
    reads_rows = any(e.op == "row" for e in exprs)
    return is_final and is_cheap(statement.value) and not reads_rows and writes.count(target.param) == 1


def _written_param(kernel: FusedKernel, statement: Statement) -> int | None:
    """The parameter that a statement writes to; None for row values and row buffers."""
    into = kernel.buffer(target_of(statement))
    return None if into is None else into.param


def _loaded_buffers(kernel: FusedKernel) -> set[str]:
    roots = (root for stage in kernel.stages for s in stage.body for root in roots_of(s))
    return {name for root in roots for name in read_buffers(root)}


def _extract_store(step: KernelThunk, stage: Stage, statement: Store, target: Buffer) -> Producer:
    """Make a kernel of one store."""
    names = {target.name} | read_buffers(statement.value)
    kernel = step.kernel._replace(stages=(Stage(stage.dims, (statement,)),))
    nodes = tuple(n for n in step.nodes if _param(step, target) in n.outputs)
    only = keep_buffers(step._replace(kernel=kernel, nodes=nodes), names)
    return Producer(only, _param(step, target), only.kernel.buffer(target.name) or target, statement.value)


def _param(step: KernelThunk, b: Buffer) -> Value:
    return step.params[b.param or 0]


def _is_overwritten(producer: Producer, steps: list[Thunk], index: int) -> bool:
    """Whether other steps also write the value, or later steps overwrite its sources (concatenation in place)."""
    others = [s for s in steps if s is not steps[index]]
    sources = {v for v in producer.step.params if v is not producer.value}
    return any(producer.value in reads_and_writes(s)[1] for s in others) or any(
        sources.intersection(reads_and_writes(s)[1]) for s in steps[index + 1 :]
    )


def _moves_fewer_bytes(step: KernelThunk, producer: Producer, readers: list[Thunk]) -> bool:
    """Whether recomputing the value from its sources moves fewer bytes than storing and loading it."""
    whole = producer.value.spec.size
    sources = {v for v in producer.step.params if v is not producer.value and v.spec.size >= whole}
    left = remove_store(step, producer.target.name)
    fewer = [producer.value] * (1 + len(readers))
    fewer += [v for v in sources if left is None or v not in left.params]
    more = [v for s in readers for v in sources.difference(s.params if isinstance(s, KernelThunk) else ())]
    return _total_bytes(more) < _total_bytes(fewer)


def _total_bytes(values: Iterable[Value]) -> int:
    return sum(v.spec.size * v.spec.dtype.itemsize for v in values)


def remove_store(step: KernelThunk, name: str) -> KernelThunk | None:
    """Remove the store to a buffer from a kernel; None if no statement remains."""
    stages = [
        Stage(s.dims, tuple(x for x in s.body if not isinstance(x, Store) or x.buffer != name))
        for s in step.kernel.stages
    ]
    kernel = step.kernel._replace(stages=tuple(s for s in stages if s.body))
    names = {n for s in kernel.stages for n in s.buffers()}
    return keep_buffers(step._replace(kernel=kernel), names) if kernel.stages else None
