"""Tables of constants and Python objects that compiled code uses: callbacks, errors of bounds checks and of loops."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ... import lazy
from ...errors import OutOfBoundsError
from ...lowering.lower import Lowered
from ...lowering.thunks import NodeThunk
from ...named_tuple import NamedTuple
from .codegen.fused import Scratch
from .codegen.index_maps import Check
from .target import IS_X86, MXCSR_FLUSH

_callback = lazy.Module(".backends.cpu.callback")


class OutOfBoundsReport(NamedTuple):
    """Raises the error of a kernel's failed bounds check.

    Attributes:
        checks: the checks of the kernel.
    """

    checks: tuple[Check, ...]

    def report(self, address: int) -> None:
        """Raise the error that the kernel's status describes.

        Args:
            address: of the status: the number of the failed check plus one, and the index.

        Raises:
            OutOfBoundsError: always.
        """
        number, index = (ctypes.c_int64 * 2).from_address(address)
        index_map, axis = self.checks[number - 1]
        raise OutOfBoundsError(
            f"{index_map.op}: index {index} is out of bounds for axis {axis.axis} with size {axis.size} "
            f"(shape {index_map.shape})"
        )


class LoopFailureReport(NamedTuple):
    """Raises the error of an inner loop that failed.

    Attributes:
        error: the class of the error.
        message: its text.
    """

    error: type[Exception]
    message: str

    def report(self, address: int) -> None:
        """Raise the error.

        Args:
            address: not used.

        Raises:
            Exception: always.
        """
        raise self.error(self.message)


def write_check(writer: Any, scratch: Scratch, memory: str, number: int) -> list[str]:
    """Return instructions that raise the error of a kernel's bounds check if ``%e<number>``, its result, is not 0."""
    failed, status = f"%e{number}", f"%e{number}_status"
    return [
        f"  {failed}_is = icmp ne i64 {failed}, 0",
        f"  br i1 {failed}_is, label %missing{number}, label %checked{number}",
        f"missing{number}:",
        f"  {status} = getelementptr i8, ptr {memory}, i64 {scratch.status}",
        f"  store i64 {failed}, ptr {status}",
        *(stop_flushing(writer, f"{failed}_mode", status) if IS_X86 else ()),
        *writer.call_lines(OutOfBoundsReport(scratch.checks), status, number),
        "  ret i32 1",
        f"checked{number}:",
    ]


def stop_flushing(writer: Any, register: str, status: str) -> list[str]:
    """Return instructions after which Python code sees denormal numbers as usual; they use memory of the status."""
    for name in ("st", "ld"):
        writer.module.declare(f"llvm.x86.sse.{name}mxcsr", "void", "ptr")
    return [
        f"  {register}p = getelementptr i8, ptr {status}, i64 16",
        f"  call void @llvm.x86.sse.stmxcsr(ptr {register}p)",
        f"  {register} = load i32, ptr {register}p",
        f"  {register}n = and i32 {register}, {~MXCSR_FLUSH}",
        f"  store i32 {register}n, ptr {register}p",
        f"  call void @llvm.x86.sse.ldmxcsr(ptr {register}p)",
    ]


class EmbeddedBody(NamedTuple):
    """A graph whose code is a function of the module: the entries of its own table of objects."""

    lowered: Lowered
    items: list[TableItem]


TableItem = NodeThunk | EmbeddedBody | OutOfBoundsReport | LoopFailureReport


class ObjectTable:
    """The table of addresses passed to code in addition to its arguments: constants' data, then callbacks.

    The code itself refers to neither, so that equal graphs share it. The executable keeps this object alive.
    """

    def __init__(self, constants: list[Any], callables: list[Any]):
        self.arrays = [np.ascontiguousarray(tensor._array) for tensor in constants]
        self.callables = callables
        objects = (c.address if isinstance(c, ObjectTable) else id(c) for c in callables)
        addresses = [*(a.__array_interface__["data"][0] for a in self.arrays), *objects]
        self.words = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)

    @property
    def address(self) -> int:
        """The address of the table."""
        return ctypes.addressof(self.words)


def make_object_table(body: EmbeddedBody) -> ObjectTable:
    """Return the table of a graph's constants and callables."""
    tensors = [tensor for _, tensor in body.lowered.folded]
    return ObjectTable(tensors, [_make_table_object(item) for item in body.items])


def _make_table_object(item: TableItem) -> Any:
    """Return the entry of the table of objects for a callback, a report or the body of a loop."""
    if isinstance(item, EmbeddedBody):
        return make_object_table(item)
    return _callback.make_callback(item) if isinstance(item, NodeThunk) else item.report
