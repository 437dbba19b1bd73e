"""Values that a kernel would store for others alone are computed by these from what they read anyway.

A group computes what its nodes are, so a product that is summed over rows in one kernel and over columns in another is
stored by the first. On a device whose memory is slow beside its arithmetic it is better computed twice, if that moves
fewer bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..operators.expr import Expr, order
from ..tracer.graph import Value
from .absorb import Producer, merged_reader
from .bodies import CHEAP, cost
from .loops import Buffer, FusedKernel, Reduce, Stage, Store, load
from .steps import KernelStep, Step, reads_and_writes


def recomputed(steps: Iterable[Step], results: Collection[Value]) -> list[Step]:
    """Steps that move fewer bytes.

    Args:
        steps: in order.
        results: the values that somebody reads after the last step.

    Returns:
        the steps that are left, in order.
    """
    found, place = list(steps), 0
    left = {value for step in found for value in reads_and_writes(step)[0]}.difference(results)
    while place < len(found):
        changed = _without_a_store(found, place, left)
        if changed is None:
            place += 1
        else:
            found = changed
    return found


def _without_a_store(steps: list[Step], place: int, left: Collection[Value]) -> list[Step] | None:
    """The steps if one of them stores one value less; None if each that it stores had better be stored. ``left``: the
    values that steps leave for others alone."""
    step = steps[place]
    if not isinstance(step, KernelStep):
        return None
    for producer in _stored(step, left):
        readers = [s for s in steps if producer.value in reads_and_writes(s)[0]]
        if not _pays(step, producer, readers) or _changes(producer, steps, place):
            continue
        merged = {id(s): merged_reader(s, producer) for s in readers}
        if readers and all(merged.values()):
            rest = _without(step, producer.target.name)
            found = [rest if s is step else merged.get(id(s)) or s for s in steps]
            return [s for s in found if s is not None]
    return None


def _stored(step: KernelStep, left: Collection[Value]) -> Iterator[Producer]:
    """What a kernel stores of some values that can be told from arrays in memory, each as a kernel of its own."""
    kernel = step.kernel
    for number, stage in enumerate(kernel.stages):
        for statement in stage.body:
            buffer = None if isinstance(statement, Reduce) else kernel.buffer(statement.buffer)
            is_left = buffer is not None and buffer.param is not None and _param(step, buffer) in left
            if isinstance(statement, Store) and buffer is not None and is_left:
                told = statement._replace(value=_told(kernel, number, statement.value))
                if _is_open(kernel, number, told):
                    yield _alone(step, stage, told, buffer)


def _told(kernel: FusedKernel, number: int, value: Expr) -> Expr:
    """An expression of a stage that loads what earlier stages have stored of it."""
    ids: dict[Any, int] = {}
    known: dict[int, Buffer] = {}
    written = _all_written(kernel)
    changed = {b.name for b in kernel.buffers if b.param in written}
    for stage in kernel.stages[:number]:
        for s in stage.body:
            buffer = kernel.buffer(s.buffer) if isinstance(s, Store) else None
            if buffer is not None and buffer.param is not None and s.value.dtype is buffer.dtype:
                known[_numbered(s.value, ids)[s.value]] = buffer
    found: dict[Expr, Expr] = {}
    numbers = _numbered(value, ids)
    for e in order(value):
        stored = known.get(numbers[e])
        if stored is not None and not changed.intersection(x.payload for x in order(e) if x.op == "load"):
            found[e] = load(stored)
        else:
            found[e] = Expr(e.op, tuple(found[a] for a in e.args), e.dtype, e.payload)
    return found[value]


def _numbered(root: Expr, ids: dict[Any, int]) -> dict[Expr, int]:
    """A number for each expression, the same for equal ones."""
    found: dict[Expr, int] = {}
    for e in order(root):
        payload = repr(e.payload) if e.op == "const" else e.payload
        key = (e.op, e.dtype, payload, *(found[a] for a in e.args))
        found[e] = ids.setdefault(key, len(ids))
    return found


def _all_written(kernel: FusedKernel) -> set[int | None]:
    return {_written(kernel, s) for stage in kernel.stages for s in stage.body}


def _is_open(kernel: FusedKernel, number: int, statement: Store) -> bool:
    """Whether a stored value is a cheap one of arrays that have their last values by then, and is not read here."""
    target = kernel.buffer(statement.buffer)
    if target is None or target.param is None or target.offset or statement.value.dtype is not target.dtype:
        return False
    exprs = order(statement.value)
    loads = {b.param for b in kernel.buffers if b.name in {e.payload for e in exprs if e.op == "load"}}
    reads = {b.param for b in kernel.buffers if b.name in _loaded(kernel)}
    writes = [_written(kernel, s) for stage in kernel.stages for s in stage.body]
    later = {_written(kernel, s) for stage in kernel.stages[number:] for s in stage.body}
    is_final = None not in loads and not loads & later and target.param not in reads
    is_cheap = cost(statement.value) <= CHEAP and all(e.op != "row" for e in exprs)
    return is_final and is_cheap and writes.count(target.param) == 1


def _written(kernel: FusedKernel, statement: Store | Reduce) -> int | None:
    """The parameter that a statement writes to; None for what is private to a row."""
    into = kernel.buffer(statement.into if isinstance(statement, Reduce) else statement.buffer)
    return None if into is None else into.param


def _loaded(kernel: FusedKernel) -> set[str]:
    return {e.payload for stage in kernel.stages for e in stage.exprs() if e.op == "load"}


def _alone(step: KernelStep, stage: Stage, statement: Store, target: Buffer) -> Producer:
    """A store as a kernel."""
    names = {target.name} | {e.payload for e in order(statement.value) if e.op == "load"}
    kernel = replace(step.kernel, stages=(Stage(stage.dims, (statement,)),))
    nodes = tuple(n for n in step.nodes if _param(step, target) in n.outputs)
    only = _compact(replace(step, kernel=kernel, nodes=nodes), names)
    return Producer(only, _param(step, target), only.kernel.buffer(target.name) or target, statement.value)


def _param(step: KernelStep, b: Buffer) -> Value:
    return step.params[b.param or 0]


def _changes(producer: Producer, steps: list[Step], place: int) -> bool:
    """Whether other kernels write to the value too, or later ones to what it is made of: results made of pieces."""
    others = [s for s in steps if s is not steps[place]]
    sources = {v for v in producer.step.params if v is not producer.value}
    return any(producer.value in reads_and_writes(s)[1] for s in others) or any(
        sources.intersection(reads_and_writes(s)[1]) for s in steps[place + 1 :]
    )


def _pays(step: KernelStep, producer: Producer, readers: list[Step]) -> bool:
    """Whether fewer bytes are moved: the value is neither written nor read, but what it is made of is read."""
    whole = producer.value.spec.size
    sources = {v for v in producer.step.params if v is not producer.value and v.spec.size >= whole}
    left = _without(step, producer.target.name)
    fewer = [producer.value] * (1 + len(readers))
    fewer += [v for v in sources if left is None or v not in left.params]
    more = [v for s in readers for v in sources.difference(s.params if isinstance(s, KernelStep) else ())]
    return _bytes(more) < _bytes(fewer)


def _bytes(values: Iterable[Value]) -> int:
    return sum(v.spec.size * v.spec.dtype.itemsize for v in values)


def _without(step: KernelStep, name: str) -> KernelStep | None:
    """A kernel that does not store to a buffer; None if that leaves nothing to do."""
    stages = [
        Stage(s.dims, tuple(x for x in s.body if isinstance(x, Reduce) or x.buffer != name))
        for s in step.kernel.stages
    ]
    kernel = replace(step.kernel, stages=tuple(s for s in stages if s.body))
    names = {n for s in kernel.stages for n in s.buffers()}
    return _compact(replace(step, kernel=kernel), names) if kernel.stages else None


def _compact(step: KernelStep, names: Collection[str]) -> KernelStep:
    """A kernel with some of its buffers, and their parameters."""
    kept = [b for b in step.kernel.buffers if b.name in names]
    places = sorted({b.param for b in kept if b.param is not None})
    buffers = [b if b.param is None else replace(b, param=places.index(b.param)) for b in kept]
    params = tuple(step.params[p] for p in places)
    temporaries = tuple(v for v in step.temporaries if v in params)
    return KernelStep(replace(step.kernel, buffers=tuple(buffers)), params, temporaries, step.nodes)
