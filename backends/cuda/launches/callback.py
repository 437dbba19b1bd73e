"""Python callbacks for nodes of compiled graphs that eager kernels compute, in the stream of the call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ....lowering.interpreter import call_kernel
from ....lowering.layout import Layout, contiguous
from ....lowering.thunks import NodeThunk
from ....registry.dtypes import DType
from ....tracer.graph import map_values
from ...cpu.callback import scalar_at
from ..blas.cublas import cublas_at
from ..blas.products import get_product
from ..kernels.casting import contiguous as dense
from ..kernels.casting import copy_array
from ..kernels.tensor import CudaTensor, cuda_tensor
from ..runtime.arrays import DeviceArray, layout_of
from ..runtime.copies import copy_bytes
from ..runtime.memory import Buffer
from .prewritten_text import DeviceNumber


def array_at(address: int, layout: Layout, dtype: DType, index: int) -> DeviceArray:
    """An array on memory that the call keeps alive."""
    result = layout_of(layout.shape, layout.strides, dtype, index)
    first = address + layout.offset * dtype.itemsize
    return DeviceArray(first, result, Buffer(address, result.nbytes))


def make_product(step: NodeThunk, index: int) -> Callable[[int], None]:
    """A function of the address of a table with the addresses of a product's two operands and of its result.

    Args:
        step: the node.
        index: the device's number.
    """
    layouts = [layout for _, layout in step.operands] + [contiguous(step.node.outputs[0].shape)]
    dtype = step.node.outputs[0].spec.dtype

    def multiply(address: int) -> None:
        table = (ctypes.c_void_p * 3).from_address(address)
        one, two, out = (
            array_at(p or 0, layout, dtype, index) for p, layout in zip(table, layouts, strict=True)
        )
        get_product(one.layout, two.layout).into(one, two, out)

    return multiply


def make_node_callable(step: NodeThunk | DeviceNumber | None, index: int) -> Any:
    """The table entry of a node: a function for a product or another node, cuBLAS's struct, or a number."""
    if step is None:
        return cublas_at(index)
    if isinstance(step, DeviceNumber):
        return step.make(index)
    return make_product(step, index) if step.kind == "blas" else make_callback(step, index)


def make_callback(step: NodeThunk, index: int) -> Callable[[int], None]:
    """A function of the address of a table with the addresses of a step's operands, then of its results.

    Users' operators get copies, since they may keep their arguments after the call.

    Args:
        step: the node.
        index: the device's number.
    """
    node, layouts = step.node, [layout for _, layout in step.operands]
    copies = not node.op.site.own

    def operand(address: int, layout: Layout, dtype: DType) -> CudaTensor:
        output = array_at(address, layout, dtype, index)
        return cuda_tensor(copy_array(output) if copies else output)

    def callback(address: int) -> None:
        table = (ctypes.c_void_p * (len(layouts) + len(node.outputs))).from_address(address)
        output: Any = iter(
            scalar_at(pointer or 0, value)
            if value.weak is not None
            else operand(pointer or 0, layout, value.spec.dtype)
            for value, layout, pointer in zip(node.inputs, layouts, table, strict=False)
        )
        args = map_values(lambda value: next(output), node.args)
        kwargs = {name: map_values(lambda value: next(output), arg) for name, arg in node.kwargs.items()}
        results = call_kernel(node, args, kwargs)
        for result, out, pointer in zip(results, node.outputs, table[len(layouts) :], strict=True):
            if out.spec.size:
                copy_bytes(pointer or 0, dense(result._data))

    return callback
