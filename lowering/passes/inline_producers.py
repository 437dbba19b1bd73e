"""Producer inlining: recompute a cheap operand (the cast of a weight, a range) in each kernel that reads it.

A fusion group has one iteration space, so a computation on a small operand alone is a separate kernel. On a device
where a launch costs as much as a million elements, recomputing it for each element that reads it is faster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ...named_tuple import NamedTuple
from ...operators.scalar_ir.expr import Expr, const, order
from ...tracer.graph import Value
from ..cost_model import is_cheap
from ..fusion.loop_ir import Buffer, FusedKernel, Stage, Store, index
from ..thunks import KernelThunk, Thunk, reads_and_writes
from .iota import make_range_kernel, match_constant_range


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
    target, loads = _find_buffer(step.kernel, statement.buffer), _loaded_buffers(statement.value)
    value = step.params[target.param] if target.param is not None else None
    inputs = [step.params[b.param] for b in step.kernel.buffers if b.name in loads and b.param is not None]
    if value is None or value in results or target.offset or not is_cheap(statement.value):
        return None
    if any(v not in placed for v in inputs) or statement.value.dtype is not target.dtype:
        return None
    return Producer(step, value, target, statement.value)


def _find_buffer(kernel: FusedKernel, name: str) -> Buffer:
    return next(b for b in kernel.buffers if b.name == name)


def _loaded_buffers(expr: Expr) -> set[str]:
    return {e.payload for e in order(expr) if e.op == "load"}


def merge_producer(step: Thunk, producer: Producer) -> KernelThunk | None:
    """Merge a producer into a kernel that reads it; None if that is not possible."""
    if not isinstance(step, KernelThunk) or producer.value not in step.params or producer.step is step:
        return None
    kernel, params = step.kernel, [v for v in step.params if v is not producer.value]
    index = step.params.index(producer.value)
    buffers = [
        b._replace(param=b.param - 1) if b.param is not None and b.param > index else b
        for b in kernel.buffers
        if b.param != index
    ]
    exprs: dict[str, Expr] = {}
    for b in kernel.buffers:
        if b.param == index:
            mapped = _map_dimensions(kernel, b, producer)
            counted = None if mapped is None else _map_indices(kernel, mapped, producer)
            if mapped is None or counted is None:
                return None
            names = _bind_sources(b.name, producer, mapped, params, buffers)
            exprs[b.name] = _rename_operands(producer.expr, names, counted)
    stages = tuple(_inline_into_stage(stage, exprs) for stage in kernel.stages)
    whole = kernel._replace(buffers=tuple(buffers), stages=stages)
    return KernelThunk(whole, tuple(params), step.temporaries, (*producer.step.nodes, *step.nodes))


def _bind_sources(
    name: str, producer: Producer, mapped: list[int | None], params: list[Value], buffers: list[Buffer]
) -> dict[str, str]:
    """Map the buffers that a producer reads to buffers of a kernel that reads its value as ``name``.

    Missing ones are appended to ``params`` and ``buffers``.
    """
    result: dict[str, str] = {}
    for b in producer.step.kernel.buffers:
        if b.name in _loaded_buffers(producer.expr) and b.param is not None:
            value = producer.step.params[b.param]
            if value not in params:
                params.append(value)
            strides = tuple(0 if k is None else b.strides[k] for k in mapped)
            made = Buffer(f"{name}_{b.name}", b.dtype, strides, params.index(value), b.offset)
            known = next((x for x in buffers if x._replace(name=made.name) == made), None)
            result[b.name] = made.name if known is None else known.name
            buffers += [made] if known is None else []
    return result


def _map_dimensions(kernel: FusedKernel, b: Buffer, producer: Producer) -> list[int | None] | None:
    """Map each dimension of a kernel to the producer's dimension along which it reads the value."""
    source = producer.step.kernel
    sizes, own = (*kernel.outer, *kernel.inner), (*source.outer, *source.inner)
    left = [k for k, size in enumerate(own) if size != 1]
    items: list[int | None] = []
    for size, stride in zip(sizes, b.strides, strict=True):
        fits = [k for k in left if own[k] == size and producer.target.strides[k] == stride]
        if stride and size != 1 and not fits:
            return None
        items.append(fits[0] if stride and size != 1 else None)
        left = [k for k in left if k != items[-1]]
    return None if left or b.offset else items


def _map_indices(
    kernel: FusedKernel, mapped: list[int | None], producer: Producer
) -> dict[Expr, Expr] | None:
    """Map the producer's index expressions to those of a kernel; None if an index runs over the kernel's rows."""
    source, result = producer.step.kernel, {}
    for e in order(producer.expr):
        if e.op == "index":
            at = len(source.outer) + e.payload
            if at not in mapped:
                result[e] = const(0, e.dtype)  # a dimension of size 1
            elif mapped.index(at) < len(kernel.outer):
                return None
            else:
                result[e] = index(mapped.index(at) - len(kernel.outer))
    return result


def _rename_operands(expr: Expr, names: dict[str, str], known: dict[Expr, Expr]) -> Expr:
    mapping: dict[Expr, Expr] = {}
    for e in order(expr):
        if e in known:
            mapping[e] = known[e]
            continue
        payload = names[e.payload] if e.op == "load" else e.payload
        mapping[e] = Expr(e.op, tuple(mapping[a] for a in e.args), e.dtype, payload)
    return mapping[expr]


def substitute_loads(stage: Stage, values: dict[str, Expr]) -> dict[Expr, Expr]:
    """Map each expression of a stage to a copy with loads of some buffers replaced by expressions."""
    result: dict[Expr, Expr] = {}
    for e in stage.exprs():
        if e.op == "load" and e.payload in values:
            result[e] = values[e.payload]
        elif any(result[a] is not a for a in e.args):
            result[e] = Expr(e.op, tuple(result[a] for a in e.args), e.dtype, e.payload)
        else:
            result[e] = e
    return result


def _inline_into_stage(stage: Stage, exprs: dict[str, Expr]) -> Stage:
    result = substitute_loads(stage, exprs)
    return Stage(stage.dims, tuple(s._replace(value=result[s.value]) for s in stage.body))
