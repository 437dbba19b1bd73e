"""Matrix products in emitted code: calls of `rt_products.multiply`, which computes eager products too."""

from __future__ import annotations

from collections.abc import Sequence

from ...lowering.layout import Layout, contiguous
from ...lowering.thunks import NodeThunk, is_matrix
from ...registry import dtypes as dt
from ...registry.dtypes import DType
from ...tracer.graph import Node, Value
from .codegen.product_calls import write_product_calls
from .codegen.small_product import find_coverage
from .codegen.text import Module
from .codegen.tiny_product import TinyProduct, is_tiny, write_tiny_product
from .fastpath.glue.products import PREFIX, Axis, ProductCode, is_served, make_call_table
from .fastpath.runtime.rt_gemm import LARGEST, is_small_product

SUM = "control::sum_products"
DTYPES = (dt.float32, dt.float64)


def explain_product(node: Node) -> str | None:
    """Return why the native matrix product serves a node, or None if it does not.

    `fastpath/runtime/rt_gemm.py:is_small_product` has the thresholds between small products and BLAS.
    """
    if node.op.name not in ("td::matmul", SUM) or not all(isinstance(a, Value) for a in node.args):
        return None
    dtypes = {value.spec.dtype for value in (*node.inputs, *node.outputs)}
    dtype = node.outputs[0].spec.dtype
    shapes = [value.shape for value in (*node.inputs, *node.outputs)]
    fits = all(0 < size <= LARGEST for shape in shapes for size in shape)
    if dtypes != {dtype} or not fits or not is_served(dtype) or not (node.op.name != SUM or dtype in DTYPES):
        return None
    if dtype.is_integer:
        return "a product of integers is written out"
    if dtype in dt.HALVES:
        return "16-bit floats are multiplied as float32"
    rows, depth, columns = _sizes(*(value.shape for value in node.inputs))
    if dtype in DTYPES and 1 in (rows, columns):
        return "a product with a vector is written out"
    if dtype in DTYPES and is_small_product(rows, depth, columns, node.op.name == SUM):
        return "a small product is written out"
    return f"{PREFIX[dtype]}gemm of BLAS"


def _sizes(one: tuple[int, ...], two: tuple[int, ...]) -> tuple[int, int, int]:
    """Return (m, k, n) of one product; a vector counts as a matrix of one row or one column."""
    return one[-2] if len(one) > 1 else 1, one[-1], two[-1] if len(two) > 1 else 1


def merge_steps(one: Layout, two: Layout) -> tuple[Layout, Layout]:
    """Return the layouts of a sum of products as one product over all steps, if the operands' strides allow it."""
    (steps, rows, depth), (_, _, columns) = one.shape, two.shape
    follow = one.strides[0] == depth * one.strides[2] and two.strides[0] == depth * two.strides[1]
    a = Layout((rows, steps * depth), one.strides[1:], one.offset)
    b = Layout((steps * depth, columns), two.strides[1:], two.offset)
    return (a, b) if (steps == 1 or follow) and is_matrix(a) and is_matrix(b) else (one, two)


class ProductCall:
    """The LLVM IR of a matrix product within ``main``.

    Attributes:
        vectors: whether an operand is a vector.
        symbol: the name of the function that is called with the operands, the result and a table.
        tiny: products of a few elements, which are written out; else None.
        small: products that the micro-kernel of small products computes; else None.
        name, table: the name of the table and its definition, a constant of the module that equal products share.
    """

    def __init__(self, step: NodeThunk):
        self.dtype: DType = step.node.outputs[0].spec.dtype
        one, two = (layout for _, layout in step.operands)
        is_sum = step.node.op.name == SUM
        if is_sum:
            one, two = merge_steps(one, two)
        words = _make_call_table(one, two, self.dtype.itemsize, is_sum)
        is_plain = self.dtype in DTYPES and not is_sum
        self.tiny = _find_tiny(words) if is_plain else None
        self.small = _find_small(words) if is_plain else None
        self.vectors = 1 in (words[0], words[2])
        self.symbol = ProductCode(self.dtype, self.vectors).symbol
        values = ", ".join(f"i64 {word}" for word in words)
        self.name = f"product_table_{'_'.join(map(str, words))}"
        self.table = f"@{self.name} = private unnamed_addr constant [{len(words)} x i64] [{values}]\n"

    def write(self, module: Module) -> str:
        """Add the function that computes few elements or small products, and return its name; empty for others."""
        product, needs = self.tiny or self.small, self.needs
        if product is None:
            return ""
        words = [*product.sizes, *product.a, *product.b, *(n for axis in product.axes for n in axis)]
        name = f"product_{self.dtype.name}_{'_'.join(map(str, words))}"
        if needs is None:
            write_tiny_product(module, name, self.dtype, product)
        else:
            write_product_calls(module, name, self.dtype, product, needs.symbol)
        return name

    @property
    def needs(self) -> ProductCode | None:
        """Return what the code outside of the module must compute that is called; None if there is none."""
        if self.tiny is not None:
            return None
        if self.small is None:
            return ProductCode(self.dtype, self.vectors)
        rows, _, columns = self.small.sizes
        return ProductCode(self.dtype, False, find_coverage(rows, columns, self.small.b[1], self.dtype))


def _find_tiny(table: Sequence[int]) -> TinyProduct | None:
    """Return the products of a call's table if they are written out; None for others.

    Where all leading axes are those of the left operand, their rows are rows of one product.
    """
    m, k, n, am, ak, bk, bn = table[:7]
    axes = _long_axes(table)
    if not is_tiny(m, k, n) or _are_rows(axes):
        return None
    return TinyProduct((m, k, n), (am, ak), (bk, bn), axes)


def _long_axes(table: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the leading axes of a call's table that are longer than 1, as in `TinyProduct`."""
    lead, *rest = table[9:]
    axes = ((rest[d], *rest[lead + 3 * d : lead + 3 * d + 3]) for d in range(lead))
    return tuple(axis for axis in axes if axis[0] != 1)


def _are_rows(axes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether only the left operand has leading axes, which then are rows of one product."""
    return bool(axes) and not any(b_step for _, _, b_step, _ in axes)


def _find_small(table: Sequence[int]) -> TinyProduct | None:
    """Return the products of a call's table if all are small ones of matrices whose layout needs no copy; else None.

    As in `rt_products.multiply_merged_rows`, leading axes that only the left operand has become rows.
    """
    m, k, n, am, ak, bk, bn = table[:7]
    axes = _long_axes(table)
    if _are_rows(axes):
        for count, a_step, _, _ in reversed(axes):
            if m != 1 and a_step != m * am:
                return None
            am, m = a_step if m == 1 else am, m * count
        axes = ()
    if 1 in (m, n) or not is_small_product(m, k, n, 0):
        return None
    return TinyProduct((m, k, n), (am, ak), (bk, bn), axes)


def _make_call_table(one: Layout, two: Layout, size: int, is_sum: bool) -> list[int]:
    """Return the table of a call, for elements of ``size`` bytes."""
    m, k, n = _sizes(one.shape, two.shape)
    a = one.strides[-2:] if len(one.shape) > 1 else (0, *one.strides)
    b = two.strides[-2:] if len(two.shape) > 1 else (*two.strides, 0)
    rank = max(len(one.shape), len(two.shape)) - 2
    left, right = _leading_axes(one, rank), _leading_axes(two, rank)
    lead = [max(x[0], y[0]) for x, y in zip(left, right, strict=True)]
    out = [0] * rank if is_sum else contiguous((*lead, m * n)).strides[:-1]
    axes: list[Axis] = [
        (count, x[1] * size, y[1] * size, c * size)
        for count, x, y, c in zip(lead, left, right, out, strict=True)
    ]
    strides = [s * size for s in (*a, *b, n)]
    return make_call_table((m, k, n), strides, axes, is_sum=is_sum)


def _leading_axes(layout: Layout, rank: int) -> list[tuple[int, int]]:
    """Return (size, stride) of each leading axis, padded in front; stride 0 where the operand is broadcast."""
    own = list(zip(layout.shape[:-2], layout.strides[:-2]))
    return [(1, 0)] * (rank - len(own)) + [(n, s if n != 1 else 0) for n, s in own]
