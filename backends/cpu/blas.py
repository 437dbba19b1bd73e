"""Matrix products by BLAS, called from emitted code through the C pointers that SciPy publishes.

BLAS thinks in columns: a C-contiguous (m, n) array is its (n, m) matrix, so ``a @ b`` is asked for as ``b^T a^T`` and
lands in row-major order. Operands whose rows or columns lie without gaps are passed as they are, transposed by a flag.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...lowering.layout import Layout, contiguous
from ...lowering.steps import NodeStep, is_matrix
from ...registry import dtypes as dt
from ...registry.dtypes import DType
from ...tracer.graph import Node, Value
from .blas_pointers import pointers as pointers
from .emit.products import Product, is_small, write_product
from .emit.text import Module

PREFIX = {dt.float32: "s", dt.float64: "d"}
SUM = "control::sum_products"
LONG = 1024  # a product along more than this is left to BLAS, which may share it among threads
SIZE_LIMIT = 2**31 - 1  # BLAS counts in 32-bit integers


def library_reason(node: Node) -> str | None:
    """Why a node is served by BLAS, or None if it is not."""
    if node.op.name not in ("td::matmul", SUM) or not all(isinstance(a, Value) for a in node.args):
        return None
    dtypes = {value.spec.dtype for value in (*node.inputs, *node.outputs)}
    dtype = node.outputs[0].spec.dtype
    shapes = [value.shape for value in (*node.inputs, *node.outputs)]
    fits = all(0 < size <= SIZE_LIMIT for shape in shapes for size in shape)
    if dtypes != {dtype} or dtype not in PREFIX or not fits:
        return None
    if _is_written_out(node):
        return "a small product is written out"
    return f"{PREFIX[dtype]}gemm of BLAS" if pointers() else None


def _is_written_out(node: Node) -> bool:
    """Whether a product is small enough to be written out."""
    one, two = (value.shape for value in node.inputs)
    if len(one) < 2 or len(two) < 2 or (one[-1] > LONG and node.op.name != SUM):
        return False
    return is_small(node.outputs[0].spec.dtype, one[-2], two[-1])


def joined(one: Layout, two: Layout) -> tuple[Layout, Layout]:
    """A sum of products as one product along all steps, where the operands lie so that it is one."""
    (steps, rows, depth), (_, _, columns) = one.shape, two.shape
    follow = one.strides[0] == depth * one.strides[2] and two.strides[0] == depth * two.strides[1]
    a = Layout((rows, steps * depth), one.strides[1:], one.offset)
    b = Layout((steps * depth, columns), two.strides[1:], two.offset)
    return (a, b) if (steps == 1 or follow) and is_matrix(a) and is_matrix(b) else (one, two)


class Matrix:
    """An operand as BLAS takes it: strides of its two last axes, the others run through by the batch loop."""

    def __init__(self, layout: Layout, pad: str):
        shape, strides = layout.shape, layout.strides
        if len(shape) == 1:
            shape, strides = ((1, *shape), (0, *strides)) if pad == "row" else ((*shape, 1), (*strides, 0))
        self.rows, self.columns = shape[-2:]
        self.lead, self.lead_strides = shape[:-2], strides[:-2]
        self.row_stride, self.column_stride = strides[-2:]
        self.offset = layout.offset

    def flag(self) -> tuple[str, int]:
        """(the letter, the leading dimension) for BLAS, which sees the transpose of a row-major matrix as it is."""
        plain = (self.column_stride == 1 or self.columns == 1) and (
            self.row_stride >= self.columns or self.rows == 1
        )
        if plain:
            return "N", max(self.row_stride, self.columns) if self.rows > 1 else self.columns
        return "T", max(self.column_stride, self.rows) if self.columns > 1 else self.rows


class Gemm:
    """The text of a matrix product within ``main``."""

    def __init__(self, step: NodeStep, name: str):
        self.name, self.node = name, step.node
        self.dtype: DType = step.node.outputs[0].spec.dtype
        one, two = (layout for _, layout in step.operands)
        self.sums = self.node.op.name == SUM
        if self.sums:
            one, two = joined(one, two)
        self.a, self.b = Matrix(one, "row"), Matrix(two, "column")
        self.type = "float" if self.dtype is dt.float32 else "double"
        lead = len(step.node.outputs[0].shape) - (len(one.shape) > 1) - (len(two.shape) > 1)
        self.batch = one.shape[:-2] if self.sums else step.node.outputs[0].shape[:lead]

    def function(self, module: Module) -> tuple[str, str]:
        """The name of ``void name(ptr a, ptr b, ptr c)``, the product for each point of the leading axes or their sum,
        and its text where the module has it not yet."""
        name = self._written_out(module) if _is_written_out(self.node) else ""
        if name and (self.sums or not self.batch):
            return name, ""
        constants = [] if name else self._constants()
        loops = self._loops(f"@{name}(ptr %a_, ptr %b_, ptr %c_)" if name else self._called(module))
        head = f"define internal void @{self.name}(ptr %a, ptr %b, ptr %c) {{"
        return self.name, "\n".join([head, "entry:", *constants, *loops, "}", ""])

    def _written_out(self, module: Module) -> str:
        """The name of a function for one product, or for the sum."""
        a, b = self.a, self.b
        strides = (a.row_stride, a.column_stride), (b.row_stride, b.column_stride)
        product = Product(self.dtype, a.rows, b.columns, a.columns, *strides)
        if self.sums and self.batch:
            product = replace(
                product, steps=self.batch[0], a_step=a.lead_strides[0], b_step=b.lead_strides[0]
            )
        return write_product(module, product)

    def _called(self, module: Module) -> str:
        """The call of BLAS for one product."""
        name = f"blas_{PREFIX[self.dtype]}gemm"
        module.declare(name, "void", *["ptr"] * 13, pure=False)
        call = ", ".join(f"ptr %{v}" for v in "tb ta n m k one b_ ldb a_ lda beta c_ ldc".split())
        return f"@{name}({call})"

    def _constants(self) -> list[str]:
        (flag_a, lda), (flag_b, ldb) = self.a.flag(), self.b.flag()
        numbers = {
            "m": self.a.rows,
            "n": self.b.columns,
            "k": self.a.columns,
            "lda": lda,
            "ldb": ldb,
            "ldc": self.b.columns,
        }
        lines = []
        for key, number in numbers.items():
            lines += [f"  %{key} = alloca i32", f"  store i32 {number}, ptr %{key}"]
        for key, letter in (("ta", flag_a), ("tb", flag_b)):
            lines += [f"  %{key} = alloca i8", f"  store i8 {ord(letter)}, ptr %{key}"]
        for key, value in (("one", "1.0"), ("beta", "0.0")):
            lines += [f"  %{key} = alloca {self.type}", f"  store {self.type} {value}, ptr %{key}"]
        return lines

    def _strides(self, matrix: Matrix) -> list[int]:
        """The operand's strides over the axes of the batch, 0 where it repeats."""
        missing = len(self.batch) - len(matrix.lead)
        own = [s if n != 1 else 0 for n, s in zip(matrix.lead, matrix.lead_strides, strict=True)]
        return [0] * missing + own

    def _loops(self, call: str) -> list[str]:
        """One loop over the whole batch; the index along each axis is computed from the loop's."""
        total = math.prod(self.batch)
        lines = ["  br label %head", "head:", "  %i = phi i64 [ 0, %entry ], [ %next, %head ]"]
        of_c = list(contiguous((*self.batch, self.a.rows * self.b.columns)).strides[:-1])
        strides = self._strides(self.a), self._strides(self.b), [0] * len(of_c) if self.sums else of_c
        for key, steps in zip("abc", strides, strict=True):
            lines += self._address(key, steps)
        if self.sums:
            lines += [
                "  %first = icmp eq i64 %i, 0",
                f"  %rest = select i1 %first, {self.type} 0.0, {self.type} 1.0",
                f"  store {self.type} %rest, ptr %beta",
            ]
        lines += [f"  call void {call}"]
        lines += ["  %next = add i64 %i, 1", f"  %more = icmp slt i64 %next, {total}"]
        return [*lines, "  br i1 %more, label %head, label %done", "done:", "  ret void"]

    def _address(self, key: str, steps: list[int]) -> list[str]:
        lines, place, below = [], "0", math.prod(self.batch)
        for axis, (size, step) in enumerate(zip(self.batch, steps, strict=True)):
            below //= size
            lines += [
                f"  %{key}d{axis} = udiv i64 %i, {below}",
                f"  %{key}r{axis} = urem i64 %{key}d{axis}, {size}",
                f"  %{key}m{axis} = mul i64 %{key}r{axis}, {step * self.dtype.itemsize}",
                f"  %{key}s{axis} = add i64 {place}, %{key}m{axis}",
            ]
            place = f"%{key}s{axis}"
        return [*lines, f"  %{key}_ = getelementptr i8, ptr %{key}, i64 {place}"]
