"""Kernels that only prepare an operand become part of those that read it: the cast of a weight, a broadcast constant.

A group holds nodes of one space, so what is computed of a small operand alone is a kernel of its own. On a device whose
launches cost as much as a million elements it is better computed again for each element that reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from ..operators.expr import Expr, const, order
from ..tracer.graph import Value
from .bodies import CHEAP, cost
from .loops import Buffer, FusedKernel, Reduce, Stage, index
from .ranges import range_kernel, range_of_constant
from .steps import KernelStep, Step, reads_and_writes


class Producer(NamedTuple):
    """A kernel that stores one cheap expression.

    Attributes:
        step: the kernel.
        value: what it makes.
        target: the buffer that it stores to.
        expr: what it stores.
    """

    step: KernelStep
    value: Value
    target: Buffer
    expr: Expr


def absorbed(steps: Iterable[Step], placed: Collection[Value], results: Collection[Value]) -> list[Step]:
    """Steps of which no kernel only prepares operands of others.

    Args:
        steps: in order.
        placed: the values that lie where they are throughout: parameters and constants. What reads nothing else can
            be computed at any time.
        results: the values that somebody reads after the last step.

    Returns:
        the steps that are left, in order.
    """
    found, place = list(steps), 0
    while place < len(found):
        step = found[place]
        readers = _readers(_producer(step, placed, results), found)
        if readers:
            found = [readers.get(id(s)) or s for s in found if s is not step]
        else:
            place += 1
    return found


def with_counted(steps: Iterable[Step], constants: Iterable[tuple[Value, Any]]) -> list[Step]:
    """Steps that read no evenly spaced integers: each is computed from its position where it is needed.

    Args:
        steps: in order.
        constants: with their tensors on the host.
    """
    found = list(steps)
    for value, tensor in constants:
        counts = range_of_constant(tensor._array)
        if counts is not None:
            kernel = range_kernel("range", value.spec, counts)
            expr = kernel.stages[0].body[0].value
            producer = Producer(KernelStep(kernel, (value,), (), ()), value, kernel.buffers[0], expr)
            found = [merged_reader(step, producer) or step for step in found]
    return found


def _readers(producer: Producer | None, steps: list[Step]) -> dict[int, KernelStep]:
    """By identity of each step that reads what a producer makes: what takes its place; empty if one cannot do without
    the producer."""
    if producer is None or sum(producer.value in reads_and_writes(s)[1] for s in steps) > 1:
        return {}  # a result put together from pieces has several that write it
    found = {}
    for step in steps:
        if producer.value in reads_and_writes(step)[0]:
            merged = merged_reader(step, producer)
            if merged is None:
                return {}
            found[id(step)] = merged
    return found


def _producer(step: Step, placed: Collection[Value], results: Collection[Value]) -> Producer | None:
    if (
        not isinstance(step, KernelStep)
        or len(step.kernel.stages) != 1
        or len(step.kernel.stages[0].body) != 1
    ):
        return None
    statement = step.kernel.stages[0].body[0]
    if isinstance(statement, Reduce):
        return None
    target, loads = _buffer(step.kernel, statement.buffer), _loads(statement.value)
    value = step.params[target.param] if target.param is not None else None
    inputs = [step.params[b.param] for b in step.kernel.buffers if b.name in loads and b.param is not None]
    if value is None or value in results or target.offset or cost(statement.value) > CHEAP:
        return None
    if any(v not in placed for v in inputs) or statement.value.dtype is not target.dtype:
        return None
    return Producer(step, value, target, statement.value)


def _buffer(kernel: FusedKernel, name: str) -> Buffer:
    return next(b for b in kernel.buffers if b.name == name)


def _loads(expr: Expr) -> set[str]:
    return {e.payload for e in order(expr) if e.op == "load"}


def merged_reader(step: Step, producer: Producer) -> KernelStep | None:
    """A kernel that computes the producer's value itself; None if it cannot."""
    if not isinstance(step, KernelStep) or producer.value not in step.params or producer.step is step:
        return None
    kernel, params = step.kernel, [v for v in step.params if v is not producer.value]
    place = step.params.index(producer.value)
    buffers = [
        replace(b, param=b.param - 1) if b.param is not None and b.param > place else b
        for b in kernel.buffers
        if b.param != place
    ]
    exprs: dict[str, Expr] = {}
    for b in kernel.buffers:
        if b.param == place:
            mapped = _dimensions(kernel, b, producer)
            counted = None if mapped is None else _indices(kernel, mapped, producer)
            if mapped is None or counted is None:
                return None
            names = _sources(b.name, producer, mapped, params, buffers)
            exprs[b.name] = _renamed(producer.expr, names, counted)
    stages = tuple(_inlined(stage, exprs) for stage in kernel.stages)
    whole = replace(kernel, buffers=tuple(buffers), stages=stages)
    return KernelStep(whole, tuple(params), step.temporaries, (*producer.step.nodes, *step.nodes))


def _sources(
    name: str, producer: Producer, mapped: list[int | None], params: list[Value], buffers: list[Buffer]
) -> dict[str, str]:
    """What the buffers that a producer reads are called in a kernel that reads its value as ``name``; those that the
    kernel lacks join its parameters and buffers."""
    found: dict[str, str] = {}
    for b in producer.step.kernel.buffers:
        if b.name in _loads(producer.expr) and b.param is not None:
            value = producer.step.params[b.param]
            if value not in params:
                params.append(value)
            strides = tuple(0 if k is None else b.strides[k] for k in mapped)
            made = Buffer(f"{name}_{b.name}", b.dtype, strides, params.index(value), b.offset)
            known = next((x for x in buffers if replace(x, name=made.name) == made), None)
            found[b.name] = made.name if known is None else known.name
            buffers += [made] if known is None else []
    return found


def _dimensions(kernel: FusedKernel, b: Buffer, producer: Producer) -> list[int | None] | None:
    """For each dimension of a kernel that of the producer along which it reads its value."""
    source = producer.step.kernel
    sizes, own = (*kernel.outer, *kernel.inner), (*source.outer, *source.inner)
    left = [k for k, size in enumerate(own) if size != 1]
    found: list[int | None] = []
    for size, stride in zip(sizes, b.strides, strict=True):
        fits = [k for k in left if own[k] == size and producer.target.strides[k] == stride]
        if stride and size != 1 and not fits:
            return None
        found.append(fits[0] if stride and size != 1 else None)
        left = [k for k in left if k != found[-1]]
    return None if left or b.offset else found


def _indices(kernel: FusedKernel, mapped: list[int | None], producer: Producer) -> dict[Expr, Expr] | None:
    """For each index that the producer reads what it is in a kernel; None if it runs over the kernel's rows."""
    source, found = producer.step.kernel, {}
    for e in order(producer.expr):
        if e.op == "index":
            at = len(source.outer) + e.payload
            if at not in mapped:
                found[e] = const(0, e.dtype)  # a dimension of size 1
            elif mapped.index(at) < len(kernel.outer):
                return None
            else:
                found[e] = index(mapped.index(at) - len(kernel.outer))
    return found


def _renamed(expr: Expr, names: dict[str, str], known: dict[Expr, Expr]) -> Expr:
    found: dict[Expr, Expr] = {}
    for e in order(expr):
        if e in known:
            found[e] = known[e]
            continue
        payload = names[e.payload] if e.op == "load" else e.payload
        found[e] = Expr(e.op, tuple(found[a] for a in e.args), e.dtype, payload)
    return found[expr]


def with_loads(stage: Stage, values: dict[str, Expr]) -> dict[Expr, Expr]:
    """For each expression of a stage the same with expressions in the place of the loads of some buffers."""
    found: dict[Expr, Expr] = {}
    for e in stage.exprs():
        if e.op == "load" and e.payload in values:
            found[e] = values[e.payload]
        elif any(found[a] is not a for a in e.args):
            found[e] = Expr(e.op, tuple(found[a] for a in e.args), e.dtype, e.payload)
        else:
            found[e] = e
    return found


def _inlined(stage: Stage, exprs: dict[str, Expr]) -> Stage:
    found = with_loads(stage, exprs)
    return Stage(stage.dims, tuple(s._replace(value=found[s.value]) for s in stage.body))
