"""Nodes of compiled graphs that eager kernels serve: they put their work into the stream of the call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ...lowering.evaluate import call
from ...lowering.layout import Layout, contiguous
from ...lowering.steps import NodeStep
from ...registry.dtypes import DType
from ...tracer.graph import map_values
from ..cpu.callback import scalar_at
from .arrays import DeviceArray, layout_of
from .casting import contiguous as dense
from .casting import copied
from .copies import copy_bytes
from .cublas import cublas_at
from .direct_text import Word
from .memory import Buffer
from .products import product_of
from .tensor import CudaTensor, cuda_tensor


def array_at(address: int, layout: Layout, dtype: DType, index: int) -> DeviceArray:
    """An array on memory that the call keeps."""
    found = layout_of(layout.shape, layout.strides, dtype, index)
    first = address + layout.offset * dtype.itemsize
    return DeviceArray(first, found, Buffer(address, found.nbytes))


def make_product(step: NodeStep, index: int) -> Callable[[int], None]:
    """A function of the address of a table: where two operands of a matrix product lie, and its result.

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
        product_of(one.layout, two.layout).into(one, two, out)

    return multiply


def serving(step: NodeStep | Word | None, index: int) -> Any:
    """What serves a node: a product that is written where it belongs, or the eager kernel; cuBLAS; a number."""
    if step is None:
        return cublas_at(index)
    if isinstance(step, Word):
        return step.make(index)
    return make_product(step, index) if step.kind == "blas" else make_callback(step, index)


def make_callback(step: NodeStep, index: int) -> Callable[[int], None]:
    """A function of the address of a table: where the data of the step's operands lie, then those of its results.

    Operators from outside get copies, since they may keep what they are given beyond the call.

    Args:
        step: the node.
        index: the device's number.
    """
    node, layouts = step.node, [layout for _, layout in step.operands]
    copies = not node.op.place.own

    def operand(address: int, layout: Layout, dtype: DType) -> CudaTensor:
        found = array_at(address, layout, dtype, index)
        return cuda_tensor(copied(found) if copies else found)

    def callback(address: int) -> None:
        table = (ctypes.c_void_p * (len(layouts) + len(node.outputs))).from_address(address)
        found: Any = iter(
            scalar_at(pointer or 0, value)
            if value.weak is not None
            else operand(pointer or 0, layout, value.spec.dtype)
            for value, layout, pointer in zip(node.inputs, layouts, table, strict=False)
        )
        args = map_values(lambda value: next(found), node.args)
        kwargs = {name: map_values(lambda value: next(found), arg) for name, arg in node.kwargs.items()}
        results = call(node, args, kwargs)
        for result, out, pointer in zip(results, node.outputs, table[len(layouts) :], strict=True):
            if out.spec.size:
                copy_bytes(pointer or 0, dense(result._data))

    return callback
