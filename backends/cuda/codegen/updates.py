"""Updates: kernels that write at integer positions of a buffer, or combine values with the elements there.

Points that share an element are those that differ along the dimensions of the positions only, the *picked* dimensions;
the element has an address of its own for each point of the others, the *kept* dimensions. Three ways give the same bits
in every run: each element is written once, by the last of its points (or by its only one); integers are combined by
atomic operations, whose order does not matter; other values are folded in the order of the points after a sort
(:mod:`.sorted_updates`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from ....lowering.fusion.loop_ir import Buffer, FusedKernel, IndexMap, Stage, Update, read_buffers
from ....named_tuple import NamedTuple
from ....operators.scalar_ir.expr import Expr, const, order
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from .elementwise import Elementwise, Point, times, vector_lanes
from .kernel import WORKSPACE, CudaKernel
from .nodes import write_cast, write_op
from .parameters import Parameters, shift_pointer
from .row_reads import with_indexed_axes
from .space import Space
from .text import Scope, Text
from .types import CTYPE, literal

THREADS = 256
ATOMIC = {"add": "atomicAdd", "minimum": "atomicMin", "maximum": "atomicMax"}
ATOMIC_DTYPES = (dt.int32, dt.int64, dt.uint32, dt.uint64)


Use = Callable[["Accesses", str, str, str], str]


class Accesses(NamedTuple):
    """The writes of an update.

    Attributes:
        update: the statement.
        target: the buffer that it writes.
        picked: the dimensions of the kernel along which positions vary.
        points: the number of points along these.
    """

    update: Update
    target: Buffer
    picked: tuple[int, ...]
    points: int

    @property
    def limit(self) -> int:
        """The number of elements along the indexed axes."""
        return math.prod(int(axis.size) for axis in self.update.map.axes)


def find_accesses(kernel: FusedKernel) -> Accesses | None:
    """The writes of a kernel at integer positions; None if it has none."""
    update = kernel.stages[0].body[0]
    target = kernel.buffer(update.map.buffer) if isinstance(update, Update) else None
    if not isinstance(update, Update) or target is None:
        return None
    picked = tuple(d for d, stride in enumerate(target.strides) if not stride)
    return Accesses(update, target, picked, math.prod(int(kernel.inner[d]) for d in picked))


def is_atomic(accesses: Accesses) -> bool:
    """Whether an atomic operation combines values, and its order does not matter."""
    return accesses.update.combine in ATOMIC and accesses.target.dtype in ATOMIC_DTYPES


def write_points(
    kernel: FusedKernel, accesses: Accesses, comments: Sequence[str], unaligned: Iterable[int]
) -> list[CudaKernel]:
    """The kernels of an update that needs no sort."""
    unaligned = frozenset(unaligned)
    if accesses.update.combine or accesses.points == 1 or are_distinct(kernel, accesses):
        return [_Writer(kernel, accesses, unaligned).write(comments)]
    nbytes = 8 * accesses.limit
    kernels = [
        _write_clearing(f"{kernel.name}_clear", accesses.limit),
        PositionWriter(kernel, accesses, _find_last).write_parallel(f"{kernel.name}_last"),
        _LastWriter(kernel, accesses, unaligned).write(comments),
    ]
    return [one._replace(temporaries=nbytes) for one in kernels]


def _write_clearing(name: str, count: int) -> CudaKernel:
    """The kernel that clears the numbers of the last points."""
    text = Text()
    text.line(f"const long long i = (long long)blockIdx.x * {THREADS} + threadIdx.x;")
    text.line(f"if (i < {count}) ((unsigned long long*)workspace)[i] = 0;")
    source = text.function(name, ["char* __restrict__ workspace"], THREADS, ())
    grid = (-(-count // THREADS), 1, 1)
    return CudaKernel(name, source, tuple(text.helpers), grid, (THREADS, 1, 1), params=(WORKSPACE,))


# -- positions of their own --------------------------------------------------------------------------------------------
def are_distinct(kernel: FusedKernel, accesses: Accesses) -> bool:
    """Whether each point writes another element, as in a window: ``start + i`` along each of the picked dimensions."""
    picked = {d for d in accesses.picked if kernel.inner[d] > 1}
    left = set(picked)
    for axis, position in zip(accesses.update.map.axes, accesses.update.indices, strict=True):
        steps = _find_steps(kernel, picked, position)
        if steps is None or len(steps) > 1:
            continue
        for d, step in steps.items():
            if 0 < abs(step) * (kernel.inner[d] - 1) < axis.size:
                left.discard(d)
    return not left


def _find_steps(kernel: FusedKernel, dims: set[int], position: Expr) -> dict[int, int] | None:
    """The step of a position along each dimension that it varies along; None if it is not an affine function."""
    known: dict[Expr, dict[int, int] | None] = {}
    for e in order(position):
        parts = [known[a] for a in e.args]
        if e.op == "index":
            known[e] = {e.payload: 1} if e.payload in dims else {}
        elif e.op in ("load", "gather"):
            buffer = kernel.buffer(e.payload if e.op == "load" else e.payload.buffer)
            varies = buffer is None or any(buffer.strides[d] for d in dims) or any(parts)
            known[e] = None if varies else {}
        elif not any(part is None or part for part in parts):
            known[e] = {}
        elif e.dtype is not dt.int64 or any(part is None for part in parts):
            known[e] = None
        else:
            known[e] = _combine_steps(e, [part or {} for part in parts])
    return known[position]


def _combine_steps(e: Expr, parts: list[dict[int, int]]) -> dict[int, int] | None:
    if e.op == "cast":
        return parts[0] if e.args[0].dtype is dt.int64 else None
    if e.op in ("add", "sub"):
        sign = 1 if e.op == "add" else -1
        one, two = parts
        return {d: one.get(d, 0) + sign * two.get(d, 0) for d in {*one, *two}}
    factor = next((a.payload for a in e.args if a.op == "const"), None)
    if e.op == "mul" and factor is not None:
        return {d: step * factor for part in parts for d, step in part.items()}
    return None


# -- kernels of all points ---------------------------------------------------------------------------------------------
def accumulator(dtype: DType) -> DType:
    """The dtype in which values are combined."""
    return dt.float32 if dtype in dt.HALVES else dtype


def combine_text(text: Text, combine: str, dtype: DType, element: str, value: str) -> str:
    """The text of an element of ``dtype`` that is combined with a value of its :func:`accumulator`."""
    wide = accumulator(dtype)
    old = write_cast(element, dtype, wide)
    both = write_op(combine, wide, old.text, value)
    result = write_cast(both.text, wide, dtype)
    text.need(*old.helpers, *both.helpers, *result.helpers)
    return result.text


class _Writer(Elementwise):
    """Writes a kernel in which each point writes its element, or combines its value with it by an atomic operation."""

    def __init__(self, kernel: FusedKernel, accesses: Accesses, unaligned: frozenset[int]):
        self.accesses, self.update = accesses, accesses.update
        self.atomic = accesses.points > 1 and is_atomic(accesses) and not are_distinct(kernel, accesses)
        self.row_target: tuple[str, str] | None = (
            None  # for a row: the condition, and the pointer to the first element
        )
        super().__init__(kernel, Space(kernel), unaligned)

    def _vector_lanes(self, unaligned: frozenset[int]) -> tuple[int, set[str]]:
        """Vectors of the values, and of the elements where rows are written."""
        name = self.accesses.target.name
        steps = with_indexed_axes(self.steps, self.rows)
        steps[name] = (*(axis.stride for axis in self.update.map.axes), *steps[name])
        names = {e.payload for e in self.exprs if e.op == "load"} | {e.payload.buffer for e in self.rows}
        if not self.atomic:
            names.add(name)
        return vector_lanes([b for b in self.kernel.buffers if b.name in names], steps, self.sizes, unaligned)

    def _load_rows(self, stage: Stage, at_point: Point) -> dict[Expr, str]:
        known = super()._load_rows(stage, at_point)
        target = self.accesses.target.name
        self.row_target = None
        if at_point.lanes > 1 and self.steps[target][-1]:
            self.row_target = self._locate(Scope(self.text, lambda e: self._leaf(e, at_point, "0")), at_point)
        if target in at_point.vectors and self.row_target is not None:
            ctype, lanes = CTYPE[self.accesses.target.dtype], at_point.lanes
            self.text.line(f"Vec<{ctype}, {lanes}> values = {{}};")
            if self.update.combine:
                inside, pointer = self.row_target
                self.text.line(f"if ({inside}) values = load<{lanes}>({pointer});")
        return known

    def _locate(self, scope: Scope, point: Point) -> tuple[str, str]:
        """The condition under which a point writes, and the pointer to its element."""
        indices = [self.same[i] for i in self.update.indices]
        scope.write(indices)
        start = point.addresses[self.accesses.target.name]
        inside, pointer, names = scope.locate(self.update.map, indices, start)
        return self._condition(inside, names, point), pointer

    def _condition(self, inside: str, positions: list[str], point: Point) -> str:
        return inside

    def _values(self, stage: Stage, point: Point, rows: dict[Expr, str]) -> None:
        scope = Scope(self.text, lambda leaf: self._leaf(leaf, point))
        scope.known.update(rows)
        target = self.accesses.target
        inside, pointer = self.row_target or self._locate(scope, point)
        if self.row_target is not None:
            pointer = shift_pointer(pointer, times("v", self.steps[target.name][-1]))
        (value,) = scope.write([self.same[self.update.value]], names=bool(self.update.combine))
        if target.name in point.vectors and self.row_target is not None:
            element, guard = "values.at[v]", ""
        else:
            element, guard = f"*({pointer})", f"if ({inside}) "
        if self.atomic:
            self.text.line(f"{guard}{self._atomic_text(pointer, value)};")
            return
        if self.update.combine:
            value = self._combined(element, value)
        self.text.line(f"{guard}{element} = {value};")

    def _combined(self, element: str, value: str) -> str:
        """The element combined with a value, which is folded first, as several values would be."""
        combine, dtype = self.update.combine, self.accesses.target.dtype
        wide = accumulator(dtype)
        given = write_cast(value, dtype, wide)
        self.text.need(*given.helpers)
        folded = given.text
        if combine == "add" and dtype.is_inexact and self.accesses.points > 1:
            code = write_op("add", wide, literal(0, wide), folded)
            self.text.need(*code.helpers)
            folded = code.text
        return combine_text(self.text, combine, dtype, element, folded)

    def _atomic_text(self, pointer: str, value: str) -> str:
        ctype = CTYPE[self.accesses.target.dtype]
        if self.update.combine == "add":  # wraps around
            ctype = CTYPE[dt.uint32 if self.accesses.target.dtype.itemsize == 4 else dt.uint64]
        return f"{ATOMIC[self.update.combine]}(({ctype}*)({pointer}), ({ctype})({value}))"

    def _finish(self, point: Point) -> None:
        if self.accesses.target.name in point.vectors and self.row_target is not None:
            inside, pointer = self.row_target
            self.text.line(f"if ({inside}) store({pointer}, values);")


class _LastWriter(_Writer):
    """Writes a kernel in which the last of the points of an element writes it."""

    def _parameters(self) -> Parameters:
        result = super()._parameters()
        result.add_workspace()
        return result

    def _condition(self, inside: str, positions: list[str], point: Point) -> str:
        number = self._number(point)
        last = f"((const unsigned long long*)workspace)[{flat_position(self.update.map, positions)}]"
        return f"{inside} && {last} == (unsigned long long)({number}) + 1"

    def _number(self, point: Point) -> str:
        """The number of a point along the picked dimensions."""
        steps, terms, step = self.steps[self.accesses.target.name], list[str](), 1
        for d in reversed(range(len(self.sizes))):
            if steps[d]:
                continue
            last = point.lanes > 1 and d == len(self.sizes) - 1
            along = f"({point.indices[d]} * {point.lanes} + v)" if last else point.indices[d]
            terms.append(along if step == 1 else f"{along} * {step}LL")
            step *= self.sizes[d]
        return " + ".join(reversed(terms)) or "0"


# -- positions ---------------------------------------------------------------------------------------------------------
def flat_position(index_map: IndexMap, positions: Sequence[str]) -> str:
    """The text of the number of an element along the indexed axes, in row-major order."""
    terms, step = list[str](), 1
    for axis, name in zip(reversed(index_map.axes), reversed(positions), strict=True):
        terms.append(name if step == 1 else f"{name} * {step}")
        step *= int(axis.size)
    return " + ".join(reversed(terms))


def _find_last(accesses: Accesses, inside: str, position: str, number: str) -> str:
    last = f"(unsigned long long*)workspace + ({position})"
    return f"if ({inside}) atomicMax({last}, (unsigned long long)({number}) + 1);"


class PositionWriter(Elementwise):
    """Writes kernels that compute the position of each point along the picked dimensions.

    Args:
        kernel: the kernel of the update.
        accesses: the writes of the kernel.
        use: returns the statement for one point, from the condition under which its position is in bounds, the position
            (in row-major order along the indexed axes), and the number of the point.
    """

    def __init__(self, kernel: FusedKernel, accesses: Accesses, use: Use):
        self.accesses, self.use = accesses, use
        self.update = update = accesses.update._replace(value=const(0, dt.int64))
        read = {name for i in update.indices for name in read_buffers(i)}
        self.read = sorted(read)
        picked = kernel._replace(
            inner=tuple(n if d in accesses.picked else 1 for d, n in enumerate(kernel.inner)),
            buffers=tuple(b for b in kernel.buffers if b.name in read or b is accesses.target),
            stages=(kernel.stages[0]._replace(body=(update,)),),
        )
        super().__init__(picked, Space(picked), frozenset())

    def write_parallel(self, name: str) -> CudaKernel:
        """The kernel whose threads take a point each."""
        self.kernel = self.kernel._replace(name=name)
        return self.write(())

    def write_serial(self, name: str, threads: int, then: Sequence[str]) -> CudaKernel:
        """The kernel of one block, whose threads take all points and then run some more statements."""
        text = self.text
        with text.block(f"for ({self.index} i = threadIdx.x; i < {self.accesses.points}; i += {threads})"):
            self._points("i", 1)
        for line in then:
            text.line(line)
        parameters = self._parameters()
        return CudaKernel(
            name,
            text.function(name, parameters.text(), threads, ()),
            tuple(text.helpers),
            (1, 1, 1),
            (threads, 1, 1),
            params=tuple(parameters.indices),
            scalars=parameters.scalars,
            checks=tuple(text.checks),
        )

    def _parameters(self) -> Parameters:
        result = Parameters(self.kernel, self.read, self.exprs)
        result.add_workspace()
        return result

    def _vector_lanes(self, unaligned: frozenset[int]) -> tuple[int, set[str]]:
        return 1, set()

    def _values(self, stage: Stage, point: Point, rows: dict[Expr, str]) -> None:
        update = self.update
        indices = [self.same[i] for i in update.indices]
        scope = Scope(self.text, lambda leaf: self._leaf(leaf, point))
        scope.write(indices)
        inside, _, names = scope.locate(update.map, indices, "p")
        self.text.line(self.use(self.accesses, inside, flat_position(update.map, names), "i"))
