"""The loop IR: a fused kernel as stages over an iteration space, which printers translate to LLVM IR or CUDA C.

A kernel runs over *rows*, the points of ``outer``, in any order and on any thread; for each row its stages run one
after the other over the *inner* space. A stage evaluates scalar expressions at each inner point, stores them, and
reduces them into row values (or, keeping trailing dimensions, into buffers). So softmax is one kernel::

    row max = max(x);  e = exp(x - max) -> out, row total = sum(e);  out / total -> out

An elementwise kernel has no rows (``outer=()``) and one stage. A reduction over leading axes has them in ``inner`` and
keeps the rest. Printers emit equal subexpressions once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ...named_tuple import NamedTuple
from ...operators.scalar_ir.expr import Expr, order
from ...operators.scalar_ir.fold import Fold
from ...registry import dtypes as dt
from ...registry.dtypes import DType

if TYPE_CHECKING:
    from ...registry.dims import Dim

Dims: TypeAlias = "tuple[Dim, ...]"


class Buffer(NamedTuple):
    """A strided view of a kernel's memory.

    Attributes:
        name: its name in ``load`` and ``Store``.
        dtype: the dtype of its elements.
        strides: in elements, for the outer then the inner dimensions; 0 where it does not vary.
        param: its index in the table of data pointers; None for memory private to a row.
        offset: of the first element from the data pointer, in elements.
        is_updated: whether other kernels of the graph write single elements of it: a vector that is loaded soon
            afterwards waits until they are in the cache.
    """

    name: str
    dtype: DType
    strides: Dims
    param: int | None = None
    offset: Dim = 0
    is_updated: bool = False


class Store(NamedTuple):
    """Write ``value`` at each point of the stage. A load in the same stage reads the old element."""

    buffer: str
    value: Expr


class Reduce(NamedTuple):
    """Reduce ``value``, the prepared operand of ``fold``, over the stage; indices are in row-major order.

    ``into`` names a new row value (read with ``row`` in later stages), or a buffer: then the trailing dimensions
    of the stage along which the buffer varies are not reduced.
    """

    fold: Fold
    value: Expr
    into: str


class IndexedAxis(NamedTuple):
    """An axis of a buffer that an integer expression indexes.

    Attributes:
        axis: its number in the shape of the indexed tensor.
        size: its size; a negative index counts from its end.
        stride: in elements.
    """

    axis: int
    size: Dim
    stride: Dim


class IndexMap(NamedTuple):
    """The indexed axes of a buffer. Along its other axes the buffer's strides follow the kernel's dimensions.

    At an index that is out of range the kernel ends, and reports it.

    Attributes:
        buffer: the name of the buffer.
        axes: the indexed axes.
        op: the operator that a report names.
        shape: the shape of the indexed tensor, for reports.
    """

    buffer: str
    axes: tuple[IndexedAxis, ...]
    op: str
    shape: Dims


class Update(NamedTuple):
    """Replace the element at ``indices`` by ``value``, or combine the two, at each point in row-major order.

    Attributes:
        map: the indexed axes of the buffer.
        indices: an int64 expression for each indexed axis.
        value: the value, of the buffer's dtype.
        combine: the node of the scalar IR that combines element and value; empty: the value is stored.
    """

    map: IndexMap
    indices: tuple[Expr, ...]
    value: Expr
    combine: str = ""


Statement = Store | Reduce | Update


def roots_of(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that a statement evaluates."""
    return (*statement.indices, statement.value) if isinstance(statement, Update) else (statement.value,)


def target_of(statement: Statement) -> str:
    """The name of the buffer or row value that a statement writes."""
    if isinstance(statement, Update):
        return statement.map.buffer
    return statement.buffer if isinstance(statement, Store) else statement.into


class Stage(NamedTuple):
    """A loop nest over some inner dimensions; without dimensions it runs once for each row."""

    dims: tuple[int, ...]
    body: tuple[Statement, ...]

    def exprs(self) -> list[Expr]:
        """Every expression of the stage, operands first."""
        return order(*[root for statement in self.body for root in roots_of(statement)])

    def with_expressions(self, known: Mapping[Expr, Expr]) -> Stage:
        """The stage with each value and position that its statements use replaced."""
        body: list[Statement] = []
        for s in self.body:
            s = s._replace(value=known[s.value])
            body.append(
                s._replace(indices=tuple(known[i] for i in s.indices)) if isinstance(s, Update) else s
            )
        return self._replace(body=tuple(body))

    def has_index_maps(self) -> bool:
        """Whether the stage reads or writes at integer positions."""
        return any(isinstance(s, Update) for s in self.body) or any(e.op == "gather" for e in self.exprs())

    def buffers(self) -> Iterator[str]:
        """The names of the buffers that the stage uses, repeated for each use."""
        for e in self.exprs():
            if e.op == "load":
                yield e.payload
            elif e.op == "gather":
                yield e.payload.buffer
        yield from map(target_of, self.body)


class FusedKernel(NamedTuple):
    """One kernel: ``void name(char **buffers, void *scalars)``; ``scalars`` is a table of 8-byte slots.

    Attributes:
        name: of the function.
        outer: the sizes of the dimensions of rows.
        inner: the sizes of the dimensions within a row.
        buffers: the buffers that it reads and writes. Two share memory only as
            :func:`~tandem.lowering.point_accesses.reads_what_it_writes` allows.
        stages: the stages that it runs for each row.
    """

    name: str
    outer: Dims
    inner: Dims
    buffers: tuple[Buffer, ...]
    stages: tuple[Stage, ...]

    def buffer(self, name: str) -> Buffer | None:
        """The buffer called ``name``; None if that is the name of a row value."""
        return next((b for b in self.buffers if b.name == name), None)


# ---- equal kernels ---------------------------------------------------------------------------------------------------


def move_offsets(kernel: FusedKernel) -> tuple[FusedKernel, dict[int, Dim]]:
    """Move the offset of the first buffer of each parameter into the pointer of the parameter.

    Kernels that differ only in the part of an array that they work on are equal afterwards.

    Returns:
        The kernel, and the bytes to add to the pointers of some parameters.
    """
    first: dict[int, Buffer] = {}
    for b in kernel.buffers:
        if b.param is not None and first.setdefault(b.param, b).dtype.itemsize != b.dtype.itemsize:
            first[b.param] = b._replace(offset=0)
    starts = {param: b.offset for param, b in first.items() if b.offset}
    if not starts:
        return kernel, {}
    buffers = tuple(
        b if b.param is None else b._replace(offset=b.offset - starts.get(b.param, 0)) for b in kernel.buffers
    )
    return kernel._replace(buffers=buffers), {
        param: start * first[param].dtype.itemsize for param, start in starts.items()
    }


def structure_of(kernel: FusedKernel) -> tuple[object, ...]:
    """A hashable description of a kernel without its name: equal descriptions are computed by the same code."""
    numbers: dict[Expr, int] = {}
    nodes = []
    for e in order(*(root for stage in kernel.stages for one in stage.body for root in roots_of(one))):
        numbers[e] = len(numbers)
        payload = e.payload if isinstance(e.payload, (str, tuple)) else (type(e.payload), repr(e.payload))
        nodes.append((e.op, tuple(numbers[a] for a in e.args), e.dtype, payload))
    stages = [
        (stage.dims, tuple((type(one), *(_describe(field, numbers) for field in one)) for one in stage.body))
        for stage in kernel.stages
    ]
    return kernel.outer, kernel.inner, kernel.buffers, tuple(nodes), tuple(stages)


def _describe(field: object, numbers: dict[Expr, int]) -> object:
    """A field of a statement with the numbers of its expressions."""
    if isinstance(field, Expr):
        return numbers[field]
    if isinstance(field, tuple) and not isinstance(field, IndexMap):
        return tuple(_describe(item, numbers) for item in field)
    return field


# ---- leaves of expressions ------------------------------------------------------------------------------------------


def load(buffer: Buffer) -> Expr:
    """The element of ``buffer`` at the current point."""
    return Expr("load", (), buffer.dtype, buffer.name)


def read_buffers(expr: Expr) -> set[str]:
    """The names of the buffers that an expression loads or reads at integer positions."""
    exprs = order(expr)
    return {e.payload for e in exprs if e.op == "load"} | {
        e.payload.buffer for e in exprs if e.op == "gather"
    }


def gather(index_map: IndexMap, indices: tuple[Expr, ...], dtype: DType) -> Expr:
    """The element of a buffer at int64 ``indices`` along its indexed axes, at the current point along the others."""
    return Expr("gather", indices, dtype, index_map)


def row(name: str, dtype: DType) -> Expr:
    """The row value ``name`` that an earlier stage reduced; ``dtype`` is the fold's ``result_dtype``."""
    return Expr("row", (), dtype, name)


def scalar(slot: int, dtype: DType) -> Expr:
    """The run-time scalar in ``slot``: a C double for float64, an int64 for int64, a byte for bool."""
    return Expr("scalar", (), dtype, slot)


def index(dim: int) -> Expr:
    """The int64 position along inner dimension ``dim``."""
    return Expr("index", (), dt.int64, dim)


def substitute_leaves(stage: Stage, values: Mapping[Any, Expr], op: str = "load") -> dict[Expr, Expr]:
    """Map each expression of a stage to a copy with the leaves ``op`` of some payloads replaced by expressions."""
    result: dict[Expr, Expr] = {}
    for e in stage.exprs():
        if e.op == op and e.payload in values:
            result[e] = values[e.payload]
        elif any(result[a] is not a for a in e.args):
            result[e] = Expr(e.op, tuple(result[a] for a in e.args), e.dtype, e.payload)
        else:
            result[e] = e
    return result


# ---- merging dimensions ---------------------------------------------------------------------------------------------


def collapse(shape: Dims, strides: list[Dims]) -> tuple[Dims, list[Dims]]:
    """Merge adjacent dimensions that are contiguous in every buffer, and drop those of size 1.

    >>> collapse((2, 3, 4), [(12, 4, 1), (12, 4, 1)])
    ((24,), [(1,), (1,)])
    >>> collapse((2, 3), [(3, 1), (0, 1)])
    ((2, 3), [(3, 1), (0, 1)])
    """
    sizes: list[Dim] = []
    steps: list[list[Dim]] = [[] for _ in strides]
    for d, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(s[-1] == whole[d] * size for s, whole in zip(steps, strides, strict=True)):
            sizes[-1] *= size
            for s, whole in zip(steps, strides, strict=True):
                s[-1] = whole[d]
        else:
            sizes.append(size)
            for s, whole in zip(steps, strides, strict=True):
                s.append(whole[d])
    return tuple(sizes), [tuple(s) for s in steps]
