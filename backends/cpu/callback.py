"""Host callbacks: nodes without emitted code run their eager kernel, called from within ``main``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.tensor.tensor import wrap
from ...lowering.interpreter import call_kernel
from ...lowering.layout import Layout
from ...lowering.thunks import NodeThunk
from ...registry.dispatch.unwinding import restore_guards_on_error
from ...registry.dtypes import DType
from ...tracer.graph import Value, map_values

PENDING = "declare ptr @PyErr_Occurred()\n"
CALLBACKS = f"""
{PENDING}declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare void @Py_DecRef(ptr)
define internal i32 @call_back(ptr %callable, ptr %table) {{
entry:
  %pending = call ptr @PyErr_Occurred()
  %is_pending = icmp ne ptr %pending, null
  br i1 %is_pending, label %failed, label %start
start:
  %argument = call ptr @PyLong_FromVoidPtr(ptr %table)
  %nothing = icmp eq ptr %argument, null
  br i1 %nothing, label %failed, label %call
call:
  %result = call ptr @PyObject_CallOneArg(ptr %callable, ptr %argument)
  call void @Py_DecRef(ptr %argument)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %failed, label %done
done:
  call void @Py_DecRef(ptr %result)
  ret i32 0
failed:
  ret i32 1
}}
"""
"""The function that calls a Python function with an address; it returns 1 if that raises, or an exception is set."""


def array_at(address: int, layout: Layout, dtype: DType) -> Any:
    """Return an ndarray over memory that it does not own, in a given layout."""
    if layout.size == 0:
        return np.empty(layout.shape, dtype.np)
    low = sum(min((n - 1) * s, 0) for n, s in zip(layout.shape, layout.strides, strict=True))
    high = sum(max((n - 1) * s, 0) for n, s in zip(layout.shape, layout.strides, strict=True))
    first = address + (layout.offset + low) * dtype.itemsize
    memory = (ctypes.c_char * ((high - low + 1) * dtype.itemsize)).from_address(first)
    flat = np.frombuffer(memoryview(memory), dtype.np)
    strides = tuple(s * dtype.itemsize for s in layout.strides)
    return np.lib.stride_tricks.as_strided(flat[-low:], layout.shape, strides)


def scalar_at(address: int, value: Value) -> Any:
    """Return a Python scalar read from the table of scalars."""
    kind: Any = {bool: ctypes.c_bool, int: ctypes.c_int64, float: ctypes.c_double}[value.weak or float]
    return kind.from_address(address).value


def skip_lines(step: NodeThunk, pointer: Callable[[Value], str], number: int) -> list[str]:
    """Return instructions that skip the callback of a step where a condition says that it has no effect.

    Args:
        step: the step.
        pointer: returns the register of the address of a value.
        number: of the step, whose callback is followed by the label ``after<number>``.
    """
    decl = step.node.op.decl
    names = [argument.name for argument in step.node.op.schema.positional]
    if decl is None or not decl.idle_if or type(step.node.args[names.index(decl.idle_if)]) is not Value:
        return []
    index = sum(isinstance(a, Value) for a in step.node.args[: names.index(decl.idle_if)])
    root, layout = step.operands[index]
    return [
        f"  %i{number}a = getelementptr i8, ptr {pointer(root)}, i64 {0 if layout is None else layout.offset}",
        f"  %i{number}b = load i8, ptr %i{number}a",
        f"  %i{number}c = icmp ne i8 %i{number}b, 0",
        f"  br i1 %i{number}c, label %after{number}, label %run{number}",
        f"run{number}:",
    ]


def make_callback(step: NodeThunk) -> Callable[[int], None]:
    """Return a function that runs a node's eager kernel.

    Its argument is the address of a table: pointers to the data of the step's operands, then of its results. Operands
    are copied, since a kernel may keep references to its arguments (a view, a residual) beyond the call.
    """
    node, layouts = step.node, [layout for _, layout in step.operands]

    @restore_guards_on_error
    def callback(address: int) -> None:
        table = (ctypes.c_void_p * (len(layouts) + len(node.outputs))).from_address(address)
        output = iter(
            scalar_at(pointer, value)
            if value.weak is not None
            else wrap(array_at(pointer, layout, value.spec.dtype).copy())
            for value, layout, pointer in zip(node.inputs, layouts, table, strict=False)
        )
        args = map_values(lambda value: next(output), node.args)
        kwargs = {name: map_values(lambda value: next(output), arg) for name, arg in node.kwargs.items()}
        results = call_kernel(node, args, kwargs)
        for result, out, pointer in zip(results, node.outputs, table[len(layouts) :], strict=True):
            if out.spec.size:
                target = (ctypes.c_char * (out.spec.size * out.spec.dtype.itemsize)).from_address(
                    pointer or 0
                )
                np.frombuffer(memoryview(target), out.spec.dtype.np).reshape(out.shape)[...] = result._array

    return callback
