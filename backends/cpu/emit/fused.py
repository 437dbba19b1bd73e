"""Fused kernels as LLVM IR: the printer of the loop IR for the CPU."""

from __future__ import annotations

from ....errors import LoweringError
from ....lowering.loops import Buffer, FusedKernel, Stage
from ....registry.dtypes import DType
from .casts import check_emittable
from .columns import ColumnPrinter
from .host import host
from .stages import StagePrinter
from .text import Function, Module
from .tiles import TilePrinter, tiled_dimension

STACK_LIMIT = 256 * 1024
"""Bytes of private buffers that a kernel may have; larger ones belong in the table of pointers."""


def write_fused(module: Module, kernel: FusedKernel) -> None:
    """Add the function ``void kernel.name(char **buffers, void *scalars)`` to a module, which may hold many.

    Raises:
        UnsupportedError: a dtype that is not emitted here (complex; float16 without F16C).
        LoweringError: private buffers too large for the stack, or a stage that mixes reductions to row values with
            reductions that keep dimensions.
    """
    dtypes = [e.dtype for s in kernel.stages for e in s.exprs()] + [b.dtype for b in kernel.buffers]
    check_emittable(*dtypes, f16c=host().f16c)
    printer = Printer(module, kernel)
    printer.rows(0)
    printer.f.do("ret void")
    module.helper(kernel.name, printer.f.text(f"void @{kernel.name}(ptr %buffers, ptr %scalars) #0"))


class Printer:
    """The state of writing one kernel: base pointers of the row, and the row values known so far."""

    def __init__(self, module: Module, kernel: FusedKernel):
        self.kernel = kernel
        self.f = Function(module, 1)
        self.bases: dict[str, str] = {}
        self.row_values: dict[str, tuple[str, DType]] = {}
        private = [b for b in kernel.buffers if b.param is None]
        total = sum(self._extent(b) * b.dtype.itemsize for b in private)
        if total > STACK_LIMIT:
            names = ", ".join(b.name for b in private)
            raise LoweringError(
                f"kernel {kernel.name}: private buffers {names} take {total} bytes, more than {STACK_LIMIT}; "
                "pass them as parameters"
            )
        for b in kernel.buffers:
            self.bases[b.name] = self._base(b)

    def _extent(self, b: Buffer) -> int:
        inner = b.strides[len(self.kernel.outer) :]
        return 1 + sum(max(n - 1, 0) * abs(s) for n, s in zip(self.kernel.inner, inner, strict=True))

    def _base(self, b: Buffer) -> str:
        if b.param is None:
            return self.f.buffer(self._extent(b) * b.dtype.itemsize)
        pointer = self.f.load("ptr", self.f.address("%buffers", str(8 * b.param)))
        return self.f.address(pointer, str(b.offset * b.dtype.itemsize)) if b.offset else pointer

    def rows(self, dim: int) -> None:
        """The loops over outer dimensions from ``dim`` on, and in them the stages."""
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
        """One stage of the row whose loops are open."""
        printer = StagePrinter(self.f, self.kernel, stage, self.bases, self.row_values)
        kept, across = printer.kept(), tiled_dimension(printer)
        if kept:
            ColumnPrinter(printer, kept).write()
        elif across is not None:
            TilePrinter(printer, across).write()
        else:
            printer.write()
