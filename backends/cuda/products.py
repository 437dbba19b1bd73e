"""Matrix products on the device, by cuBLAS."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...lowering.layout import Layout as Place
from ...operators.rules import broadcast_shapes
from ...registry.dtypes import COMPLEX, FLOATS
from ...registry.operator import Operator
from ...tracer.graph import Node, Value
from . import cublas, devices, rt_eager
from . import toolkit as tools
from .arrays import DeviceArray, Layout, contiguous_layout
from .casting import copied
from .devices import device_at
from .gemm import Gemm, gemm
from .gemm_plan import LARGEST, plan_product
from .launching import fill_bytes
from .library_ops import library_kernel
from .memory import empty_cache, pool_of
from .native_eager import Doors, key_record
from .native_result import device_record, result_record
from .operands import placed
from .streams import stream_at
from .tensor import CudaTensor, cuda_tensor

Ints = tuple[int, ...]
TAKEN = (*FLOATS, *COMPLEX)
MOST = 1 << 12


class Product:
    """``one @ two`` for two layouts.

    Args:
        one, two: of the operands: matrices, vectors or stacks of matrices of one dtype on one device.

    Attributes:
        layout: of the result.
        calls: what multiplies; none where sums have no terms, or nothing is asked for.
        copies: for each operand whether it is copied first.
        record: what machine code reads of it.
        known: whether machine code knows it, or never will.
    """

    __slots__ = ("at", "calls", "copies", "known", "layout", "record")

    def __init__(self, one: Layout, two: Layout):
        self.at = device_at(one.index)
        self.layout = contiguous_layout(product_shape(one.shape, two.shape), one.dtype, one.index)
        first, second = Place(one.shape, one.strides), Place(two.shape, two.strides)
        plan = plan_product(first, second, one.dtype.itemsize)
        self.copies: tuple[bool, bool] = (False, False)
        self.calls: list[Any] = []
        if plan is not None:
            blas = cublas.cublas_at(one.index)
            self.copies = plan.copies
            self.calls = [gemm(blas, call, one.dtype) for call in plan.calls]
        self.record: Any = None
        self.known = False

    def describe(self, args: tuple[CudaTensor, ...]) -> tuple[int, ...]:
        """Make the record, and give the key by which machine code finds it; no key where it is not one call."""
        if len(self.calls) != 1 or any(self.copies) or not isinstance(self.calls[0], Gemm):
            return ()
        layouts = [one._data.layout for one in args]
        record = self.record = key_record(tuple(map(id, layouts)), self)
        record.kept.append(layouts)
        record.point(rt_eager.E_DEVICE, device_record(self.layout.index))
        record.point(rt_eager.E_RESULT, result_record(self.layout))
        record.point(rt_eager.E_CONTIGUOUS, self.calls[0].record)
        return tuple(map(id, layouts))

    def into(self, one: DeviceArray, two: DeviceArray, out: DeviceArray) -> None:
        """Put the product into the current stream, written to a contiguous array of the result's size.

        Raises:
            CudaError: cuBLAS refuses it.
            OutOfMemoryError: there is no memory for copies, or for what cuBLAS needs.
        """
        if devices.current_thread.context != self.at.context:
            self.at.make_current()
        if not self.calls:
            fill_bytes(out, 0)
            return
        one, two = (copied(x) if copy else x for x, copy in zip((one, two), self.copies))
        stream = stream_at(self.layout.index)
        for call in self.calls:
            status = call(stream.number, one.ptr, two.ptr, out.ptr)
            if status == cublas.ALLOC_FAILED:
                gc.collect()
                empty_cache()
                status = call(stream.number, one.ptr, two.ptr, out.ptr)
            if status:
                raise cublas.fault("matmul: cublasGemmEx", status)
        for array in (one, two, out):
            pool = array.buffer.pool
            if pool is None or pool.stream is not stream:
                array.buffer.used_by(stream)

    def made(self, one: DeviceArray, two: DeviceArray) -> DeviceArray:
        """The product as a new array."""
        stream = stream_at(self.layout.index)
        buffer = (stream.pool or pool_of(stream)).get(self.layout.nbytes)
        out = DeviceArray(buffer.ptr, self.layout, buffer)
        self.into(one, two, out)
        return out


_products: dict[tuple[Layout, Layout], Product] = {}
tools.changed.append(_products.clear)


def product_of(one: Layout, two: Layout) -> Product:
    """What multiplies arrays of two layouts of one dtype on one device."""
    found = _products.get((one, two))
    if found is None:
        if len(_products) >= MOST:
            _products.clear()
        found = _products[one, two] = Product(one, two)
    return found


def product_shape(one: Ints, two: Ints) -> Ints:
    """The shape of the product of two shapes that fit."""
    batch = broadcast_shapes("matmul", one[:-2], two[:-2])
    return (*batch, *one[-2:-1], *(two[-1:] if len(two) > 1 else ()))


def product_reason(node: Node) -> str | None:
    """Why a node of a graph is served by cuBLAS, or None if it is not."""
    if node.op.name != "td::matmul" or not all(isinstance(a, Value) and a.weak is None for a in node.args):
        return None
    values = (*node.inputs, *node.outputs)
    dtypes = {value.spec.dtype for value in values}
    if len(dtypes) > 1 or not dtypes <= set(FLOATS) or not _fit(*(value.shape for value in values)):
        return None
    return "gemm of cuBLAS"


def _fit(*shapes: Ints) -> bool:
    """Whether cuBLAS, which counts in 32 bits, takes matrices of these shapes, and as many."""
    return all(max((math.prod(shape[:-2]), *shape[-2:])) <= LARGEST for shape in shapes)


def copied_matrices(node: Node, places: Sequence[Place]) -> Sequence[bool]:
    """Which operands of a product in a graph are copied first; see :func:`.gemm_plan.plan_product`."""
    one, two = places
    plan = plan_product(one, two, node.outputs[0].spec.dtype.itemsize)
    return (False, False) if plan is None else plan.copies


def matmul_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``matmul``."""
    by_library, doors = library_kernel(op), Doors(op, "product")

    def kernel(self: Any, other: Any) -> CudaTensor:
        if type(self) is CudaTensor and type(other) is CudaTensor:
            one, two = self._data, other._data
            found = _products.get((one.layout, two.layout))
            if found is not None:
                if not found.known:
                    found.known = doors.learn(found, (self, other))
                return cuda_tensor(found.made(one, two))
        return first(self, other)

    def first(self: Any, other: Any) -> CudaTensor:
        self, other = placed("matmul", (self, other), constants=False)
        spec = op.decl.meta(self, other)
        if spec.dtype not in TAKEN or not _fit(self.shape, other.shape, spec.shape):
            return by_library(self, other)  # type: ignore[no-any-return]
        one, two = (x._data if x.dtype is spec.dtype else copied(x._data, spec.dtype) for x in (self, other))
        return cuda_tensor(product_of(one.layout, two.layout).made(one, two))

    doors.kernel = kernel
    return kernel
