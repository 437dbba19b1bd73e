"""Gathers at positions that are affine functions of the point are loads: ``x[arange(n)[:, None] + arange(k)]``.

The positions are known if they are computed from ranges with sums, products with constants, casts, and with limits and
choices that are the same at all points: windows, frames and patches are strided views of the indexed tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UndecidedError
from ...named_tuple import NamedTuple
from ...operators.scalar_ir.expr import Expr
from ...registry.dtypes import DType
from ...tracer.graph import Value
from ..fusion.affine_reads import AffineAxis, find_positions, make_part
from ..fusion.loop_ir import Buffer, Stage, Store, load
from ..thunks import KernelThunk, Thunk, keep_buffers, reads_and_writes

if TYPE_CHECKING:
    from ...registry.types import Array


class Affine(NamedTuple):
    """The integer ``start`` plus the sum of the position along each dimension times a step.

    Attributes:
        start: the integer at the first point.
        steps: the step along each dimension.
    """

    start: int
    steps: tuple[int, ...]

    def scale(self, factor: int) -> Affine:
        """Return the product with a factor."""
        return Affine(self.start * factor, tuple(step * factor for step in self.steps))

    def add(self, other: Affine) -> Affine:
        """Return the sum with another function."""
        steps = tuple(one + two for one, two in zip(self.steps, other.steps, strict=True))
        return Affine(self.start + other.start, steps)

    def bounds(self, sizes: Sequence[int]) -> tuple[int, int]:
        """Return the smallest and the largest integer over a space.

        >>> Affine(3, (2, -1)).bounds((5, 4))
        (0, 11)
        """
        spans = [step * (size - 1) for step, size in zip(self.steps, sizes, strict=True)]
        return self.start + sum(min(s, 0) for s in spans), self.start + sum(max(s, 0) for s in spans)


def load_at_affine_positions(
    steps: Sequence[Thunk], constants: Iterable[tuple[Value, Any]], results: Iterable[Value]
) -> list[Thunk]:
    """Replace gathers at affine positions by loads, and drop kernels that computed the positions for these alone.

    Args:
        steps: in order.
        constants: the constants, with their tensors on the CPU.
        results: the values that are read after the last step.
    """
    positions = _Positions(steps, constants)
    changed = [positions.replace_gathers(step) for step in steps]
    lost = {
        value
        for before, after in zip(steps, changed, strict=True)
        if after is not before and isinstance(before, KernelThunk)
        for value in before.params
    }
    kept: list[Thunk] = []
    read = set(results)
    for step in reversed(changed):
        reads, writes = reads_and_writes(step)
        if isinstance(step, KernelThunk) and lost.issuperset(writes) and not read.intersection(writes):
            lost.update(reads)
            continue
        read.update(reads)
        kept.append(step)
    return kept[::-1]


def affine_reader(
    steps: Sequence[Thunk], constants: Iterable[tuple[Value, Any]], step: KernelThunk
) -> Callable[[Expr], AffineAxis | None]:
    """Return a function from an integer expression of a kernel to the position along the one dimension it follows.

    That function returns None for expressions that are not known to be affine, or that follow several dimensions.
    """
    reader = _Reader(step, _Positions(steps, constants).of)

    def read(e: Expr) -> AffineAxis | None:
        affine = reader.read(e)
        along = [] if affine is None else [d for d, one in enumerate(affine.steps) if one]
        if affine is None or len(along) > 1:
            return None
        dim = along[0] if along else 0
        return AffineAxis(affine.start, affine.steps[dim] if along else 0, dim)

    return read


class _Positions:
    """The values of a graph that are affine functions of the position along their axes.

    Args:
        steps: the steps of the graph.
        constants: the constants, with their tensors.
    """

    def __init__(self, steps: Sequence[Thunk], constants: Iterable[tuple[Value, Any]]):
        self.constants = dict(constants)
        self.known: dict[Value, Affine | None] = {}
        self.makers: dict[Value, list[Thunk]] = {}
        for step in steps:
            for value in reads_and_writes(step)[1]:
                self.makers.setdefault(value, []).append(step)

    def of(self, value: Value) -> Affine | None:
        """Return the function that a value is; None if it is not known to be one."""
        if value not in self.known:
            self.known[value] = None  # not by itself
            self.known[value] = self._find(value)
        return self.known[value]

    def _find(self, value: Value) -> Affine | None:
        if not value.spec.dtype.is_integer or not value.spec.size:
            return None
        if value in self.constants:
            return _find_constant(self.constants[value]._array)
        makers = self.makers.get(value, [])
        if len(makers) != 1 or not isinstance(makers[0], KernelThunk) or makers[0].updated is not None:
            return None
        step = makers[0]
        stores = [
            (stage, s, b)
            for stage in step.kernel.stages
            for s in stage.body
            if (b := step.kernel.buffer(s.buffer if isinstance(s, Store) else "")) is not None
            and b.param is not None
            and step.params[b.param] is value
        ]
        if len(stores) != 1 or stores[0][1].value.dtype is not value.spec.dtype:
            return None
        (_, statement, target), sizes = stores[0], (*step.kernel.outer, *step.kernel.inner)
        part = make_part(value.shape, step.kernel, step.params, target, statement.value)
        if part is None or tuple(part.sizes) != tuple(value.shape) or 0 in sizes:
            return None
        affine = _Reader(step, self.of).read(statement.value)
        if affine is None or any(s for d, s in enumerate(affine.steps) if d not in part.dims):
            return None
        return Affine(affine.start, tuple(0 if d is None else affine.steps[d] for d in part.dims))

    def replace_gathers(self, step: Thunk) -> Thunk:
        """Return a step with loads in place of its gathers at affine positions; the step if it has none."""
        if not isinstance(step, KernelThunk) or 0 in (*step.kernel.outer, *step.kernel.inner):
            return step
        reader, buffers = _Reader(step, self.of), list(step.kernel.buffers)
        try:
            stages = tuple(_replace_gathers(stage, reader, buffers) for stage in step.kernel.stages)
        except UndecidedError:  # that depends on symbolic sizes
            return step
        if all(one is two for one, two in zip(stages, step.kernel.stages, strict=True)):
            return step
        kernel = step.kernel._replace(buffers=tuple(buffers), stages=stages)
        names = {name for stage in stages for name in stage.buffers()}
        return keep_buffers(step._replace(kernel=kernel), names)


def _find_constant(array: Array) -> Affine | None:
    """Return the affine function that the elements of a constant are; None if they are not one."""
    start = array[(0,) * array.ndim]
    steps = tuple(
        int(array[tuple(int(a == axis) for a in range(array.ndim))]) - int(start) if size > 1 else 0
        for axis, size in enumerate(array.shape)
    )
    result = Affine(int(start), steps)
    if max(map(abs, result.bounds(array.shape))) >= 2**62:
        return None
    total = np.full((), result.start, dtype=np.int64)
    for axis, (step, size) in enumerate(zip(steps, array.shape, strict=True)):
        along = np.arange(size, dtype=np.int64).reshape(-1, *[1] * (array.ndim - axis - 1))
        total = total + step * along
    return result if np.array_equal(total, array) else None


def _replace_gathers(stage: Stage, reader: _Reader, buffers: list[Buffer]) -> Stage:
    """Return a stage with loads in place of gathers; the buffers that these read are added."""
    known: dict[Expr, Expr] = {}
    for e in stage.exprs():
        if e.op == "gather" and (b := reader.locate(e)) is not None:
            same = next((x for x in buffers if x._replace(name="") == b), None)
            if same is None:
                names = {x.name for x in buffers}
                number = next(n for n in range(len(buffers), 2 * len(buffers) + 1) if f"b{n}" not in names)
                same = b._replace(name=f"b{number}")
                buffers.append(same)
            known[e] = load(same)
        elif any(known[a] is not a for a in e.args):
            known[e] = Expr(e.op, tuple(known[a] for a in e.args), e.dtype, e.payload)
        else:
            known[e] = e
    if all(e is after for e, after in known.items()):
        return stage
    return stage.with_expressions(known)


class _Reader:
    """Reads integer expressions of a kernel as affine functions of its dimensions, the outer ones first.

    Args:
        step: the kernel.
        of: returns the function that a value is.
    """

    def __init__(self, step: KernelThunk, of: Callable[[Value], Affine | None]):
        self.kernel, self.params, self.of = step.kernel, step.params, of
        self.sizes = (*step.kernel.outer, *step.kernel.inner)
        self.known: dict[Expr, Affine | None] = {}
        self.rules: Mapping[str, Callable[[Expr], Affine | None]] = {
            "const": lambda e: self._constant(int(e.payload)),
            "index": self._read_index,
            "load": self._read_load,
            "cast": self._read_cast,
            "minimum": self._read_limit,
            "maximum": self._read_limit,
            "select": self._read_select,
            "add": self._read_arithmetic,
            "sub": self._read_arithmetic,
            "mul": self._read_arithmetic,
        }

    def read(self, e: Expr) -> Affine | None:
        """Return an expression as an affine function; None if it is not one, or is beyond its dtype somewhere."""
        if e not in self.known:
            rule = self.rules.get(e.op) if e.dtype.is_integer else None
            result = None if rule is None else rule(e)
            is_kept = result is not None and _holds(e.dtype, result.bounds(self.sizes))
            self.known[e] = result if is_kept else None
        return self.known[e]

    def locate(self, e: Expr) -> Buffer | None:
        """Return the buffer, without a name, whose loads are a gather; None if it does not read affine positions."""
        source = self.kernel.buffer(e.payload.buffer)
        if source is None or source.param is None:
            return None
        offset, strides = source.offset, list(source.strides)
        for axis, index in zip(e.payload.axes, e.args, strict=True):
            affine = self.read(index)
            if affine is None:
                return None
            low, high = affine.bounds(self.sizes)
            start = affine.start + axis.size if high < 0 else affine.start
            if low + start - affine.start < 0 or high + start - affine.start >= axis.size:
                return None
            offset += start * axis.stride
            for d, one in enumerate(affine.steps):
                strides[d] += one * axis.stride
        return source._replace(name="", strides=tuple(strides), offset=offset)

    def _constant(self, number: int) -> Affine:
        return Affine(number, (0,) * len(self.sizes))

    def _read_index(self, e: Expr) -> Affine:
        dim = len(self.kernel.outer) + e.payload
        return Affine(0, tuple(int(d == dim) for d in range(len(self.sizes))))

    def _read_load(self, e: Expr) -> Affine | None:
        b = self.kernel.buffer(e.payload)
        if b is None or b.param is None:
            return None
        value = self.params[b.param]
        affine = self.of(value)
        axes = None if affine is None else find_positions(value.shape, self.sizes, b.strides, b.offset)
        if affine is None or axes is None:
            return None
        result = self._constant(affine.start)
        for step, axis in zip(affine.steps, axes, strict=True):
            moved = tuple(step * axis.step * (d == axis.dim) for d in range(len(self.sizes)))
            result = result.add(Affine(step * axis.start, moved))
        return result

    def _read_cast(self, e: Expr) -> Affine | None:
        return self.read(e.args[0])

    def _read_arithmetic(self, e: Expr) -> Affine | None:
        one, two = map(self.read, e.args)
        if one is None or two is None:
            return None
        if e.op != "mul":
            return one.add(two.scale(-1) if e.op == "sub" else two)
        if any(two.steps):
            one, two = two, one
        return None if any(two.steps) else one.scale(two.start)

    def _read_limit(self, e: Expr) -> Affine | None:
        """Read a minimum or a maximum that is the same operand everywhere."""
        one, two = e.args
        low, high = self._compare(one, two)
        if low < 0 < high:
            return None
        return self.read(one if (high <= 0) == (e.op == "minimum") else two)

    def _read_select(self, e: Expr) -> Affine | None:
        """Read a choice that is the same everywhere."""
        condition, one, two = e.args
        if condition.op not in ("lt", "gt"):
            return None
        left, right = condition.args if condition.op == "lt" else condition.args[::-1]
        low, high = self._compare(left, right)
        return self.read(one) if high < 0 else self.read(two) if low >= 0 else None

    def _compare(self, one: Expr, two: Expr) -> tuple[float, float]:
        """Return the bounds of the difference of two integers."""
        left, right = self.read(one), self.read(two)
        if left is None or right is None:
            return -math.inf, math.inf
        return left.add(right.scale(-1)).bounds(self.sizes)


def _holds(dtype: DType, bounds: tuple[int, int]) -> bool:
    """Whether a dtype has the integers between two bounds."""
    bits = 8 * dtype.itemsize
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if dtype.kind == "i" else (0, 2**bits)
    return low <= bounds[0] and bounds[1] < high
