"""Print fused kernels, given as loop IR, as LLVM IR.

:class:`Printer` writes the loops over rows, and inside them each stage by a :class:`StagePrinter`: a nest of loops
around a loop over vectors. :mod:`.columns` writes stages that keep dimensions, :mod:`.tiles` those that transpose.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .... import lazy
from ....errors import LoweringError, UnsupportedError
from ....lowering.fusion.loop_ir import Buffer, FusedKernel, Reduce, Stage
from ....named_tuple import NamedTuple
from ....registry.dtypes import DType
from ..target import vector_target
from .casts import check_emittable
from .index_maps import BoundsChecks, Check
from .stage_printer import StagePrinter, find_lines, find_stored
from .text import PARTS, Function, Module
from .vectors import Use

if TYPE_CHECKING:
    from .tiles import Transposer

_columns = lazy.Module(".backends.cpu.codegen.columns")
_row_vectors = lazy.Module(".backends.cpu.codegen.row_vectors")
_tiles = lazy.Module(".backends.cpu.codegen.tiles")
MAX_SHORT_ROW = 12  # elements of a row that may be computed side by side with others
MAX_ADJACENT_ROW = (
    32  # the same if the elements of neighbouring rows are neighbours in memory, as those of windows
)
MAX_INLINED_POINTS = 32  # of a kernel that becomes part of its caller's code
MAX_LOOP_POINTS = 256  # the same for a body of a loop, which then computes less in each step
MAX_INLINED_CALLS = 8  # of such a kernel in one function


class Scratch(NamedTuple):
    """The scratch memory of a kernel.

    Attributes:
        below, above: bytes that it needs below and above the pointer that it receives.
        checks: its bounds checks.
        status: bytes from the pointer to 16 bytes, for the number of the check that has failed plus one, and the index.
    """

    below: int
    above: int
    checks: tuple[Check, ...] = ()
    status: int = 0


def write_fused(
    module: Module, kernel: FusedKernel, linkage: str = "internal ", *, calls: int = 1, in_loop: bool = False
) -> Scratch:
    """Add the function ``kernel.name(char **buffers, void *scalars, char *scratch)`` to a module.

    ``calls`` is the number of its calls in one function; a small kernel with few calls is inlined, in the body of a
    loop (``in_loop``) also a larger one.

    It returns nothing, or the number of the bounds check that has failed plus one, if there are any: 0 if none has.

    Returns:
        The memory needed around ``scratch``, which is a multiple of 64. Its initial content does not matter.

    Raises:
        UnsupportedError: float16 without F16C, or a reduction of complex numbers.
        LoweringError: a stage that mixes reductions to row values with reductions that keep dimensions, or another
            kernel of the name.
    """
    if kernel.name in module.parts:
        raise LoweringError(f"two kernels are called {kernel.name}")
    dtypes = [e.dtype for s in kernel.stages for e in s.exprs()] + [b.dtype for b in kernel.buffers]
    check_emittable(*dtypes, f16c=vector_target().f16c)
    for reduction in (item for s in kernel.stages for item in s.body if isinstance(item, Reduce)):
        if reduction.value.dtype in PARTS:
            raise UnsupportedError(f"reductions of {reduction.value.dtype.name} are not emitted")
    printer = Printer(module, kernel)
    if 1 < math.prod(kernel.inner) <= _longest_short_row(kernel) and _row_vectors.has_short_rows(kernel):
        _row_vectors.RowVectors(printer.f, kernel, printer.bases).write()
    else:
        printer.rows(0)
    f = printer.f
    failed = bool(printer.checks.checks)
    f.do("ret i64 0" if failed else "ret void")
    result = "i64" if failed else "void"
    most = MAX_LOOP_POINTS if in_loop else MAX_INLINED_POINTS
    is_inlined = math.prod(kernel.outer + kernel.inner) <= most and calls <= MAX_INLINED_CALLS
    inline = "alwaysinline" if is_inlined else "noinline"
    parameters = "ptr %buffers, ptr %scalars, ptr noalias align 64 %scratch"
    module.helper(kernel.name, f.text(f"{linkage}{result} @{kernel.name}({parameters}) {inline} #0"))
    return Scratch(f.below, f.most, tuple(printer.checks.checks), printer.checks.offset or 0)


def _longest_short_row(kernel: FusedKernel) -> int:
    """Return the length up to which the rows of a kernel may be computed side by side."""
    if not kernel.outer:
        return 0
    last = len(kernel.outer) - 1
    return MAX_ADJACENT_ROW if all(b.strides[last] in (0, 1) for b in kernel.buffers) else MAX_SHORT_ROW


class Printer:
    """State of printing one kernel: base pointers of the row, and the row values computed so far."""

    def __init__(self, module: Module, kernel: FusedKernel):
        self.kernel = kernel
        self.f = Function(module, 1, "%scratch")
        self.f.is_small = math.prod(kernel.outer + kernel.inner) <= MAX_INLINED_POINTS
        self.checks = BoundsChecks(self.f)
        self.bases: dict[str, str] = {}
        self.row_values: dict[str, tuple[str, DType]] = {}
        for b in kernel.buffers:
            self.bases[b.name] = self._base(b)

    def _extent(self, b: Buffer) -> int:
        inner = b.strides[len(self.kernel.outer) :]
        return 1 + sum(max(n - 1, 0) * abs(s) for n, s in zip(self.kernel.inner, inner, strict=True))

    def _base(self, b: Buffer) -> str:
        if b.param is None:
            return self.f.allocate(self._extent(b) * b.dtype.itemsize)
        pointer = self.f.load("ptr", self.f.address("%buffers", str(8 * b.param)))
        return self.f.address(pointer, str(b.offset * b.dtype.itemsize)) if b.offset else pointer

    def rows(self, dim: int) -> None:
        """Write the loops over outer dimensions from ``dim`` on, and the stages inside."""
        kernel, f = self.kernel, self.f
        if dim == len(kernel.outer):
            for stage in kernel.stages:
                self.stage(stage)
            return
        lines = self._find_lines() if dim == len(kernel.outer) - 1 else None
        if lines is not None:
            self._write_transposed_rows(lines, dim)
            return
        with f.loop("0", str(kernel.outer[dim]), "1") as loop:
            before = dict(self.bases)
            for b in kernel.buffers:
                step = b.strides[dim] * b.dtype.itemsize
                if step:
                    self.bases[b.name] = f.address(before[b.name], f.op(f"mul i64 {loop.index}, {step}"))
            self.rows(dim + 1)
            self.bases = before

    def _find_lines(self) -> Transposer | None:
        """Return what transposes rows that are adjacent in memory; None if no rows of one axis are."""
        kernel = self.kernel
        if len(kernel.inner) != 1 or any(stage.has_index_maps() for stage in kernel.stages):
            return None
        stored = {name for stage in kernel.stages for name in find_stored(stage)}
        uses = self._find_uses()
        readable = {n: use for n, use in uses.items() if n not in stored and use.buffer.param is not None}
        return find_lines(self.f, readable, len(kernel.outer) - 1, kernel.outer[-1], kernel.inner[0])

    def _find_uses(self) -> dict[str, Use]:
        return {b.name: Use(b, self.bases[b.name], b.strides) for b in self.kernel.buffers}

    def _write_transposed_rows(self, lines: Transposer, dim: int) -> None:
        """Write the loop over the last dimension of rows, some of which are copied at a time."""
        kernel, before = self.kernel, self.bases
        with lines.loop(self._find_uses(), str(kernel.inner[0]), []) as (_, uses, _):
            self.bases = {name: use.base for name, use in uses.items()}
            self.kernel = kernel._replace(
                buffers=tuple(b._replace(strides=uses[b.name].strides) for b in kernel.buffers)
            )
            self.rows(dim + 1)
        self.kernel, self.bases = kernel, before

    def stage(self, stage: Stage) -> None:
        """Write one stage inside the open loops."""
        before = self.f.above
        printer = StagePrinter(self.f, self.kernel, stage, self.bases, self.row_values, self.checks)
        kept, across = printer.kept(), printer.find_tiled_dimension()
        copy = _tiles.find_transposed_copy(printer) if printer.may_transpose() else None
        if kept:
            _columns.ColumnPrinter(printer, kept).write()
        elif copy is not None:
            _tiles.write_transposed_copy(printer, copy)
        elif across is not None:
            _tiles.TilePrinter(printer, across).write()
        else:
            printer.write()
        self.f.above = before  # the next stage reuses this stage's memory
