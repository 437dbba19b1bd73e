"""Matrix products on the device, computed by cuBLAS."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from typing import Any

from ....lowering.layout import Layout as OperandLayout
from ....operators.declare.shape_rules import broadcast_shapes
from ....registry.dtypes import COMPLEX, FLOATS
from ....registry.operator import Operator
from ....tracer.graph import Node, Value
from ..fastpath.eager import OperatorEntries, make_call_record
from ..fastpath.eager_entries import ANY_ADDRESS
from ..kernels.casting import copy_array
from ..kernels.library_ops import library_kernel
from ..kernels.operands import check_devices
from ..kernels.tensor import CudaTensor, cuda_tensor
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray, Layout, contiguous_layout
from ..runtime.devices import device_at
from ..runtime.launching import fill_bytes
from ..runtime.memory import empty_cache, note_uses, pool_of
from ..runtime.streams import stream_at
from . import cublas
from .gemm import Gemm, make_gemm
from .gemm_plan import LARGEST, choose_calls

Ints = tuple[int, ...]
GEMM_DTYPES = (*FLOATS, *COMPLEX)
MAX_PRODUCTS = 1 << 12


class Product:
    """``one @ two`` for two layouts.

    Args:
        one, two: the operands' layouts: matrices, vectors or stacks of matrices of one dtype on one device.

    Attributes:
        layout: the result's layout.
        calls: the callables that multiply; empty if the result or the sums are empty.
        copies: for each operand, whether it is copied first.
        record: the native struct of the cached call.
        is_registered: whether native code knows the product, or cannot compute it.
    """

    __slots__ = ("at", "calls", "copies", "is_registered", "layout", "record")

    def __init__(self, one: Layout, two: Layout):
        self.at = device_at(one.index)
        self.layout = contiguous_layout(product_shape(one.shape, two.shape), one.dtype, one.index)
        first, second = OperandLayout(one.shape, one.strides), OperandLayout(two.shape, two.strides)
        plan = choose_calls(first, second, one.dtype.itemsize)
        self.copies: tuple[bool, bool] = (False, False)
        self.calls: list[Any] = []
        if plan is not None:
            blas = cublas.cublas_at(one.index)
            self.copies = plan.copies
            self.calls = [make_gemm(blas, call, one.dtype) for call in plan.calls]
        self.record: Any = None
        self.is_registered = False

    def make_record(self, args: tuple[CudaTensor, ...]) -> tuple[int, ...]:
        """Make the native struct, and return its key; an empty key if the product is not a single call."""
        if len(self.calls) != 1 or any(self.copies) or not isinstance(self.calls[0], Gemm):
            return ()
        layouts = [one._data.layout for one in args]
        key = tuple(map(id, layouts))
        self.record = make_call_record(key, self, layouts, self.layout)
        for offset in ANY_ADDRESS:
            self.record.point(offset, self.calls[0].record)
        return key

    def into(self, one: DeviceArray, two: DeviceArray, out: DeviceArray) -> None:
        """Compute the product in the current stream, into a contiguous array of the result's shape.

        Raises:
            CudaError: cuBLAS reports an error.
            OutOfMemoryError: there is no memory for copies, or for cuBLAS.
        """
        self.at.make_current()
        if not self.calls:
            fill_bytes(out, 0)
            return
        one, two = (copy_array(x) if copy else x for x, copy in zip((one, two), self.copies))
        stream = stream_at(self.layout.index)
        for call in self.calls:
            status = call(stream.number, one.ptr, two.ptr, out.ptr)
            if status == cublas.ALLOC_FAILED:
                gc.collect()
                empty_cache()
                status = call(stream.number, one.ptr, two.ptr, out.ptr)
            cublas.check("matmul: cublasGemmEx", status)
        note_uses((one, two, out), stream)

    def compute(self, one: DeviceArray, two: DeviceArray) -> DeviceArray:
        """The product as a new array."""
        stream = stream_at(self.layout.index)
        buffer = (stream.pool or pool_of(stream)).get(self.layout.nbytes)
        out = DeviceArray(buffer.ptr, self.layout, buffer)
        self.into(one, two, out)
        return out


_products: dict[tuple[Layout, Layout], Product] = {}
tools.change_listeners.append(_products.clear)


def get_product(one: Layout, two: Layout) -> Product:
    """The cached product of two layouts of one dtype on one device."""
    result = _products.get((one, two))
    if result is None:
        if len(_products) >= MAX_PRODUCTS:
            _products.clear()
        result = _products[one, two] = Product(one, two)
    return result


def product_shape(one: Ints, two: Ints) -> Ints:
    """The shape of the product of two compatible shapes."""
    batch = broadcast_shapes("matmul", one[:-2], two[:-2])
    return (*batch, *one[-2:-1], *(two[-1:] if len(two) > 1 else ()))


def explain_product(node: Node) -> str | None:
    """The reason why cuBLAS computes a node of a graph; None if it does not."""
    if node.op.name != "td::matmul" or not all(isinstance(a, Value) and a.weak is None for a in node.args):
        return None
    values = (*node.inputs, *node.outputs)
    dtypes = {value.spec.dtype for value in values}
    if len(dtypes) > 1 or not dtypes <= set(FLOATS) or not _fits_cublas(*(value.shape for value in values)):
        return None
    return "gemm of cuBLAS"


def _fits_cublas(*shapes: Ints) -> bool:
    """Whether cuBLAS, whose sizes have 32 bits, supports stacks of matrices of these shapes."""
    return all(max((math.prod(shape[:-2]), *shape[-2:])) <= LARGEST for shape in shapes)


def product_operands_to_copy(node: Node, indices: Sequence[OperandLayout]) -> Sequence[bool]:
    """For each operand of a product in a graph, whether it is copied first; see :func:`.gemm_plan.choose_calls`."""
    one, two = indices
    plan = choose_calls(one, two, node.outputs[0].spec.dtype.itemsize)
    return (False, False) if plan is None else plan.copies


def matmul_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``matmul``."""
    by_library, entries = library_kernel(op), OperatorEntries(op, "product")

    def kernel(self: Any, other: Any) -> CudaTensor:
        if type(self) is CudaTensor and type(other) is CudaTensor:
            one, two = self._data, other._data
            cached = _products.get((one.layout, two.layout))
            if cached is not None:
                if not cached.is_registered:
                    entries.add(cached, (self, other))
                return cuda_tensor(cached.compute(one, two))
        return first(self, other)

    def first(self: Any, other: Any) -> CudaTensor:
        self, other = check_devices("matmul", (self, other), constants=False)
        spec = op.decl.shape_rule(self, other)
        if spec.dtype not in GEMM_DTYPES or not _fits_cublas(self.shape, other.shape, spec.shape):
            return by_library(self, other)  # type: ignore[no-any-return]
        one, two = (
            x._data if x.dtype is spec.dtype else copy_array(x._data, spec.dtype) for x in (self, other)
        )
        return cuda_tensor(get_product(one.layout, two.layout).compute(one, two))

    entries.kernel = kernel
    return kernel
