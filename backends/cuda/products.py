"""Matrix products on the device, by cuBLAS: any strides that it can read, batches without a loop where they allow it.

cuBLAS reads columns where tandem has rows. ``C = A @ B`` by rows is ``C' = B' @ A'`` by columns, on the same memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...eager.meta_views import reshaped_strides
from ...lowering.loops import collapse
from ...operators.rules import broadcast_shapes
from ...registry.dtypes import COMPLEX, FLOATS, DType
from ...registry.operator import Operator
from ...tracer.graph import Node, Value
from .arrays import DeviceArray, contiguous_layout, empty
from .casting import copied
from .launching import fill_bytes
from .library import library
from .library_ops import guarded, library_kernel
from .operands import placed
from .streams import stream_at
from .tensor import CudaTensor, cuda_tensor
from .views import broadcast

Ints = tuple[int, ...]
TAKEN = (*FLOATS, *COMPLEX)
LARGEST = 2**31 - 1


class Side(NamedTuple):
    """One matrix of a product, or a batch of them one ``step`` apart, as cuBLAS takes it.

    Attributes:
        ptr: address of the first element.
        dtype: of the elements.
        transposed: whether its columns, read by cuBLAS, are the rows that are wanted.
        lead: elements from one column to the next.
        step: elements from one matrix of a batch to the next.
    """

    ptr: int
    dtype: DType
    transposed: bool
    lead: int
    step: int


def reading(array: DeviceArray) -> tuple[bool, int] | None:
    """(transposed, leading dimension) of matrices as they lie; None where they have to be copied first."""
    (rows, columns), (down, across) = array.shape[-2:], array.strides[-2:]
    if (across == 1 or columns == 1) and down >= max(columns, 1):
        return False, down
    if (down == 1 or rows == 1) and across >= max(rows, 1):
        return True, across
    return (False, columns) if rows == 1 and (across == 1 or columns == 1) else None


def readable(array: DeviceArray) -> DeviceArray:
    """The array, or a copy that cuBLAS can read."""
    return array if reading(array) else copied(array)


def _parts(shape: Ints, arrays: list[DeviceArray]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The batch in parts of one step each: (number of matrices, (first element, step) for each array)."""
    sizes, steps = collapse(shape, [array.strides[: len(shape)] for array in arrays])
    outer, inner = (sizes[:-1], sizes[-1]) if sizes else ((), 1)
    for place in itertools.product(*map(range, outer)):
        firsts = [sum(i * step for i, step in zip(place, own)) for own in steps]
        yield inner, [(first, own[-1] if own else 0) for first, own in zip(firsts, steps)]


def product(one: DeviceArray, two: DeviceArray, out: DeviceArray | None = None) -> DeviceArray:
    """``one @ two`` of stacks of matrices of one dtype, as a new array, or in the memory of a contiguous one."""
    rows, inner, columns = one.shape[-2], one.shape[-1], two.shape[-1]
    batch = broadcast_shapes("matmul", one.shape[:-2], two.shape[:-2])
    layout = contiguous_layout((*batch, rows, columns), one.dtype, one.layout.index)
    if not inner or not layout.size:
        out = out or empty(layout)
        fill_bytes(out, 0)
        return out
    if len(two.shape) == 2 and len(one.shape) > 2:
        flat = reshaped_strides(one.shape, one.strides, (math.prod(batch) * rows, inner))
        if flat is not None:  # one matrix for all: their rows are rows of one
            whole = math.prod(batch) * rows
            place = None if out is None else out.view((whole, columns), (columns, 1))
            made = product(one.view((whole, inner), flat), two, place)
            return DeviceArray(made.ptr, layout, made.buffer)
    one, two = readable(one), readable(two)
    out = out or empty(layout)
    arrays = [broadcast(one, (*batch, rows, inner)), broadcast(two, (*batch, inner, columns)), out]
    kinds = [reading(one) or (False, 1), reading(two) or (False, 1), (False, max(columns, 1))]
    size, found = out.dtype.itemsize, library()

    def run() -> None:
        with found.on(layout.index):
            for count, places in _parts(batch, arrays):
                a, b, c = (
                    Side(array.ptr + first * size, array.dtype, transposed, lead, step)
                    for array, (first, step), (transposed, lead) in zip(arrays, places, kinds)
                )
                found.gemm(columns, rows, inner, b, a, c, count)

    guarded("matmul", layout.index, run)
    stream = stream_at(layout.index)
    for array in arrays:
        array.buffer.used_by(stream)
    return out


def as_matrices(one: DeviceArray, two: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The operands of a product with a vector as a matrix of one row or one column."""
    if len(one.shape) == 1:
        one = one.view((1, *one.shape), (one.shape[0] * one.strides[0], *one.strides))
    if len(two.shape) == 1:
        two = two.view((*two.shape, 1), (*two.strides, 1))
    return one, two


def product_reason(node: Node) -> str | None:
    """Why a node of a graph is served by cuBLAS, or None if it is not."""
    if node.op.name != "td::matmul" or not all(isinstance(a, Value) and a.weak is None for a in node.args):
        return None
    values = (*node.inputs, *node.outputs)
    dtypes, sizes = {value.spec.dtype for value in values}, [size for value in values for size in value.shape]
    if len(dtypes) > 1 or not dtypes <= set(FLOATS) or max(sizes, default=0) > LARGEST:
        return None
    return "gemm of cuBLAS"


def matmul_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``matmul``."""
    by_library = library_kernel(op)

    def kernel(self: Any, other: Any) -> CudaTensor:
        self, other = placed("matmul", (self, other), constants=False)
        spec = op.decl.meta(self, other)
        sizes = (*self.shape, *other.shape)
        if spec.dtype not in TAKEN or max(sizes) > LARGEST:
            return by_library(self, other)  # type: ignore[no-any-return]
        one, two = (x._data if x.dtype is spec.dtype else copied(x._data, spec.dtype) for x in (self, other))
        made = product(*as_matrices(one, two))
        layout = contiguous_layout(spec.shape, spec.dtype, made.layout.index)
        return cuda_tensor(DeviceArray(made.ptr, layout, made.buffer))

    return kernel
