"""Affine index maps: the points at which a kernel reads the elements of a value, and the kernels that compute these.

A buffer of a kernel is an address for each point of the kernel's space. If the value is contiguous, that address is a
position along each axis of the value, each of which follows one dimension of the kernel: ``start + step * x``. A kernel
that computes a *part* of the value, a box, is read at such positions by composing the two maps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...named_tuple import NamedTuple
from ...operators.scalar_ir.expr import Expr, const, order
from ...registry.dtypes import int64
from ...tracer.graph import Value
from ..layout import contiguous
from .loop_ir import Buffer, FusedKernel, Stage, index, read_buffers, substitute_leaves

if TYPE_CHECKING:
    from ...registry.dims import Dim
    from .loop_ir import Dims


class AffineAxis(NamedTuple):
    """The position along one axis of a value: ``start + step * x``, with ``x`` the position along ``dim`` of a kernel.

    Attributes:
        start: the position at the start of the kernel's space.
        step: the distance between neighbours; 0 if no dimension moves along the axis.
        dim: the number of the dimension among the outer, then the inner ones.
    """

    start: Dim
    step: Dim = 0
    dim: int = 0

    def at(self, point: Dims) -> Dim:
        """The position at a point of the kernel's space."""
        return self.start + self.step * point[self.dim] if self.step else self.start


def find_positions(shape: Dims, sizes: Dims, strides: Dims, offset: Dim) -> tuple[AffineAxis, ...] | None:
    """The position along each axis of a contiguous value that a kernel reads.

    Args:
        shape: the shape of the value.
        sizes: the sizes of the kernel's dimensions.
        strides, offset: those of the kernel's buffer.

    Returns:
        None if the buffer steps through an axis and on to the next one, as in a reshape or a diagonal.

    >>> find_positions((3, 4), (4, 2), (-1, 4), 7)
    (AffineAxis(start=1, step=1, dim=1), AffineAxis(start=3, step=-1, dim=0))
    """
    known: list[AffineAxis] = []
    steps = contiguous(shape).strides
    for stride in steps:
        known.append(AffineAxis(offset // stride))
        offset = offset % stride
    for dim, (size, distance) in enumerate(zip(sizes, strides, strict=True)):
        if size == 1 or distance == 0:
            continue
        axis = _axis_along(shape, steps, distance)
        if axis is None or known[axis].step:
            return None
        step = distance // steps[axis]
        last = known[axis].start + step * (size - 1)
        if not 0 <= last < shape[axis]:
            return None
        known[axis] = known[axis]._replace(step=step, dim=dim)
    return tuple(known)


def _axis_along(shape: Dims, steps: Dims, distance: Dim) -> int | None:
    """The axis with the largest stride that divides a distance; axes of one element have none."""
    axes = enumerate(zip(shape, steps, strict=True))
    return next((axis for axis, (n, s) in axes if n != 1 and abs(distance) >= s and distance % s == 0), None)


class Part(NamedTuple):
    """A box of a value's elements, and the scalar expression that computes them.

    Attributes:
        starts: the first position along each axis of the value.
        sizes: the number of positions along each axis.
        dims: for each axis, the dimension of ``kernel`` along which it varies; None for one position.
        kernel: the kernel that computes the part.
        values: the value of each parameter of the kernel.
        expr: the expression of an element.
    """

    starts: Dims
    sizes: Dims
    dims: tuple[int | None, ...]
    kernel: FusedKernel
    values: tuple[Value, ...]
    expr: Expr

    def contains(self, axis: int, low: Dim, high: Dim) -> bool:
        """Whether the positions from ``low`` to ``high`` along an axis belong to the part."""
        return self.starts[axis] <= low and high < self.starts[axis] + self.sizes[axis]

    def has_gathers(self) -> bool:
        """Whether the elements are read at integer positions, which are checked."""
        return any(e.op == "gather" for e in order(self.expr))


def make_part(
    shape: Dims, kernel: FusedKernel, values: tuple[Value, ...], target: Buffer, expr: Expr
) -> Part | None:
    """The part of a value that a kernel stores to ``target``; None if it is not a box that is stored in order."""
    sizes = (*kernel.outer, *kernel.inner)
    axes = find_positions(shape, sizes, target.strides, target.offset)
    if axes is None or any(axis.step not in (0, 1) for axis in axes):
        return None
    varying = {axis.dim for axis in axes if axis.step}
    if any(size != 1 and dim not in varying for dim, size in enumerate(sizes)):
        return None  # several points store to one element
    dims = tuple(axis.dim if axis.step else None for axis in axes)
    counts = tuple(1 if dim is None else sizes[dim] for dim in dims)
    return Part(tuple(axis.start for axis in axes), counts, dims, kernel, values, expr)


# -- the pieces of a space -----------------------------------------------------------------------------------------
class Region(NamedTuple):
    """A box of a kernel's space: the first point and the size along each dimension."""

    starts: Dims
    sizes: Dims


def split_space(
    sizes: Dims, parts: Sequence[Part], reads: Sequence[tuple[AffineAxis, ...]]
) -> Iterator[Region]:
    """The regions of a kernel's space in which each read is of one part of a value.

    Args:
        sizes: the sizes of the kernel's dimensions.
        parts: the parts of the value.
        reads: the positions of each read of the value.
    """
    cuts: list[set[int]] = [set() for _ in sizes]
    for axes in reads:
        for number, axis in enumerate(axes):
            if axis.step:
                bounds = {bound for part in parts for bound in _bounds(part, number)}
                cuts[axis.dim].update(_first_point_beyond(axis, bound) for bound in bounds)
    spans = []
    for size, points in zip(sizes, cuts, strict=True):
        inner = sorted(point for point in points if 0 < point < size)
        spans.append(list(itertools.pairwise((0, *inner, size))))
    for region in itertools.product(*spans):
        yield Region(tuple(low for low, _ in region), tuple(high - low for low, high in region))


def _bounds(part: Part, axis: int) -> tuple[Dim, Dim]:
    return part.starts[axis], part.starts[axis] + part.sizes[axis]


def _first_point_beyond(axis: AffineAxis, bound: Dim) -> Dim:
    """The first point on the other side of a bound between two positions than the points before it."""
    if axis.step > 0:
        return -((axis.start - bound) // axis.step)
    return (axis.start - bound) // -axis.step + 1


def select_part(parts: Sequence[Part], axes: tuple[AffineAxis, ...], region: Region) -> Part | None:
    """The last part that holds the positions of a region; None if no part holds all of them."""
    spans = []
    for axis in axes:
        first = axis.at(region.starts)
        last = first + axis.step * (region.sizes[axis.dim] - 1) if axis.step else first
        spans.append((min(first, last), max(first, last)))
    holding = [
        part
        for part in parts
        if all(part.contains(number, low, high) for number, (low, high) in enumerate(spans))
    ]
    return holding[-1] if holding else None


def restrict(kernel: FusedKernel, region: Region) -> FusedKernel:
    """The kernel on a region of its space."""
    if not any(region.starts) and region.sizes == (*kernel.outer, *kernel.inner):
        return kernel
    outer = len(kernel.outer)
    buffers = tuple(
        b._replace(offset=b.offset + sum(s * x for s, x in zip(b.strides, region.starts, strict=True)))
        for b in kernel.buffers
    )
    moved = {d: _plus(index(d), start) for d, start in enumerate(region.starts[outer:]) if start}
    stages = tuple(_replace_leaves(stage, "index", moved) for stage in kernel.stages)
    sizes = region.sizes
    return kernel._replace(outer=sizes[:outer], inner=sizes[outer:], buffers=buffers, stages=stages)


def _plus(value: Expr, number: int) -> Expr:
    return value if not number else Expr("add", (value, const(number, int64)), int64)


def _replace_leaves(stage: Stage, op: str, values: Mapping[Any, Expr]) -> Stage:
    """A stage with the leaves ``op`` of some payloads replaced by expressions."""
    if not values:
        return stage
    known = substitute_leaves(stage, values, op)
    return stage.with_expressions(known)


# -- composition -------------------------------------------------------------------------------------------------------
class Composition:
    """A kernel in which reads of a value are replaced by the expressions that compute its elements.

    Attributes:
        kernel: the kernel.
        values: the values of its parameters.
    """

    def __init__(self, kernel: FusedKernel, values: Sequence[Value], value: Value):
        number = list(values).index(value)
        self.values = [one for one in values if one is not value]
        self.reads = [b for b in kernel.buffers if b.param == number]
        self.buffers = [
            b._replace(param=b.param - 1) if b.param is not None and b.param > number else b
            for b in kernel.buffers
            if b.param != number
        ]
        self.kernel = kernel
        self._exprs: dict[object, Expr] = {}

    def replace(self, read: Buffer, axes: tuple[AffineAxis, ...], part: Part) -> bool:
        """Replace the loads of a buffer by the expression of a part; False if the kernel cannot compute it."""
        names: dict[str, str] = {}
        loaded = read_buffers(part.expr)
        for b in part.kernel.buffers:
            if b.name in loaded:
                names[b.name] = self._add_buffer(b, axes, part)
        positions = self._index_exprs(axes, part)
        if positions is None:
            return False
        self._exprs[read.name] = _rename(part.expr, names, positions)
        return True

    def _add_buffer(self, b: Buffer, axes: tuple[AffineAxis, ...], part: Part) -> str:
        """The name of the buffer for reading a buffer of the part's kernel at the positions of a read."""
        value = part.values[b.param or 0]
        if not any(value is one for one in self.values):
            self.values.append(value)
        strides, offset = [0] * (len(self.kernel.outer) + len(self.kernel.inner)), b.offset
        for axis, start, dim in zip(axes, part.starts, part.dims, strict=True):
            if dim is not None:
                offset += (axis.start - start) * b.strides[dim]
                if axis.step:
                    strides[axis.dim] += axis.step * b.strides[dim]
        param = next(number for number, one in enumerate(self.values) if one is value)
        made = Buffer(f"b{self._next_number()}", b.dtype, tuple(strides), param, offset)
        known = next((x for x in self.buffers if x._replace(name=made.name) == made), None)
        if known is None:
            self.buffers.append(made)
        return (known or made).name

    def _next_number(self) -> int:
        names = {b.name for b in (*self.buffers, *self.kernel.buffers)}
        return next(number for number in itertools.count(len(self.buffers)) if f"b{number}" not in names)

    def _index_exprs(self, axes: tuple[AffineAxis, ...], part: Part) -> dict[object, Expr] | None:
        """The positions in the part's kernel, by dimension; None if one follows a row of this kernel."""
        result: dict[object, Expr] = {}
        outer = len(self.kernel.outer)
        for e in order(part.expr):
            if e.op != "index":
                continue
            dim = len(part.kernel.outer) + e.payload
            number = part.dims.index(dim) if dim in part.dims else None
            if number is None:
                result[e.payload] = const(0, int64)
                continue
            axis, start = axes[number], part.starts[number]
            if axis.step and axis.dim < outer:
                return None
            along = index(axis.dim - outer) if axis.step else const(0, int64)
            if axis.step not in (0, 1):
                along = Expr("mul", (along, const(axis.step, int64)), int64)
            result[e.payload] = _plus(along, axis.start - start)
        return result

    def finish(self) -> FusedKernel:
        """The kernel after the replacements."""
        stages = tuple(_replace_leaves(stage, "load", self._exprs) for stage in self.kernel.stages)
        return self.kernel._replace(buffers=tuple(self.buffers), stages=stages)


def _rename(expr: Expr, names: Mapping[str, str], positions: Mapping[object, Expr]) -> Expr:
    """An expression with other buffers and positions."""
    known: dict[Expr, Expr] = {}
    for e in order(expr):
        if e.op == "index":
            known[e] = positions[e.payload]
            continue
        payload = e.payload
        if e.op in ("load", "gather"):
            payload = names[payload] if e.op == "load" else payload._replace(buffer=names[payload.buffer])
        known[e] = Expr(e.op, tuple(known[a] for a in e.args), e.dtype, payload)
    return known[expr]
