"""Print fused kernels, given as loop IR, as LLVM IR."""

from __future__ import annotations

from typing import NamedTuple

from ....lowering.fusion.loop_ir import Buffer, FusedKernel, Stage
from ....registry.dtypes import DType
from .casts import check_emittable
from .columns import ColumnPrinter
from .host import host
from .stages import StagePrinter
from .text import Function, Module
from .tiles import TilePrinter, find_tiled_dimension


class Scratch(NamedTuple):
    """Bytes of scratch memory that a kernel needs below and above the pointer that it receives."""

    below: int
    above: int


def write_fused(module: Module, kernel: FusedKernel) -> Scratch:
    """Add the function ``void kernel.name(char **buffers, void *scalars, char *scratch)`` to a module.

    Returns:
        The memory needed around ``scratch``, which is a multiple of 64. Its initial content does not matter.

    Raises:
        UnsupportedError: a dtype that is not emitted here (complex; float16 without F16C).
        LoweringError: a stage that mixes reductions to row values with reductions that keep dimensions.
    """
    dtypes = [e.dtype for s in kernel.stages for e in s.exprs()] + [b.dtype for b in kernel.buffers]
    check_emittable(*dtypes, f16c=host().f16c)
    printer = Printer(module, kernel)
    printer.rows(0)
    f = printer.f
    f.do("ret void")
    parameters = "ptr %buffers, ptr %scalars, ptr noalias align 64 %scratch"
    module.helper(kernel.name, f.text(f"void @{kernel.name}({parameters}) #0"))
    return Scratch(f.below, f.most)


class Printer:
    """State of printing one kernel: base pointers of the row, and the row values computed so far."""

    def __init__(self, module: Module, kernel: FusedKernel):
        self.kernel = kernel
        self.f = Function(module, 1, "%scratch")
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
        with f.loop("0", str(kernel.outer[dim]), "1") as loop:
            before = dict(self.bases)
            for b in kernel.buffers:
                step = b.strides[dim] * b.dtype.itemsize
                if step:
                    self.bases[b.name] = f.address(before[b.name], f.op(f"mul i64 {loop.index}, {step}"))
            self.rows(dim + 1)
            self.bases = before

    def stage(self, stage: Stage) -> None:
        """Write one stage inside the open loops."""
        before = self.f.above
        printer = StagePrinter(self.f, self.kernel, stage, self.bases, self.row_values)
        kept, across = printer.kept(), find_tiled_dimension(printer)
        if kept:
            ColumnPrinter(printer, kept).write()
        elif across is not None:
            TilePrinter(printer, across).write()
        else:
            printer.write()
        self.f.above = before  # the next stage reuses this stage's memory
