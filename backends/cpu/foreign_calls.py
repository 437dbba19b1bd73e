"""Which native code computes a node; calls of users' C functions from emitted code: an instruction in ``main``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import lazy
from ...lowering.foreign_kernels import find_foreign_function
from ...lowering.layout import Layout
from ...lowering.thunks import NodeThunk
from ...operators.foreign.functions import BufferFunction, ParameterBinding
from ...registry import dtypes as dt
from ...registry.dtypes import DType
from ...tracer.graph import Node, Value
from .codegen.text import REGISTER, literal
from .kernels.foreign import measure
from .random_bits import explain_random_bits

_scans = lazy.Module(".backends.cpu.scans")
_calls = lazy.Module(".backends.cpu.native_kernels.calls")
_WEAK = {bool: dt.bool_, int: dt.int64, float: dt.float64}


def explain_foreign_call(node: Node) -> str | None:
    """Return why a user's C function serves a node, or None if it does not."""
    function = find_foreign_function(node)
    if not isinstance(function, BufferFunction) or _find_mismatch(node, function):
        return None
    return f"the C function {function.signature}"


def _find_mismatch(node: Node, function: BufferFunction) -> str:
    """Return which parameter of a C function a node's arguments do not fit; empty if all fit."""
    for binding in function.bindings:
        value = binding.select(node.args, node.kwargs, node.outputs)
        if binding.param.is_pointer:
            known = value is None or (isinstance(value, Value) and value.weak is None)
            if not known:
                return f"{binding.param} gets {value!r}, which has no memory"
            if value is not None and value.spec.dtype is not binding.param.dtype:
                return f"{binding.param} gets {value.spec.dtype.name}"
        elif not binding.param.what and not _fits_exactly(value, binding.param.dtype):
            return f"{binding.param} gets {value!r}"
        elif binding.param.what and not isinstance(value, Value):
            return f"{binding.param}: {value!r} has no shape"
        elif binding.param.what == "shape" and not -value.spec.ndim <= binding.param.axis < value.spec.ndim:
            return f"{binding.param}: the shape is {value.shape}"
    return ""


def _fits_exactly(value: Any, dtype: DType) -> bool:
    """Return whether a number fits a parameter without a check at run time."""
    if isinstance(value, Value):
        exact: bool = value.weak is not None and _WEAK.get(value.weak) is dtype
        return exact or bool(dtype.is_inexact and value.weak in (int, float))
    if isinstance(value, bool):
        return dtype is dt.bool_
    if isinstance(value, int):
        return bool(dtype.is_inexact) or bool(dtype.is_integer and _is_in_range(value, dtype))
    return isinstance(value, float) and bool(dtype.is_inexact)


def _is_in_range(value: int, dtype: DType) -> bool:
    """Return whether an integer fits an integer dtype."""
    low = -(2 ** (dtype.bits - 1)) if dtype.kind == "i" else 0
    return bool(low <= value < low + 2**dtype.bits)


def explain_native(node: Node) -> str | None:
    """Return why prewritten code serves a node, or None if none does."""
    if is_scan(node):
        why: str | None = _scans.explain_scan(node)
        return why
    if node.op.decl.native is not None:
        loop: str | None = _calls.explain_loop_call(node)
        return loop
    return explain_random_bits(node) or explain_foreign_call(node)


def is_scan(node: Node) -> bool:
    """Return whether a node is a scan."""
    return getattr(node.op.decl, "kind", "") == "scan"


def operands_to_copy(node: Node, layouts: Sequence[Layout]) -> Sequence[bool] | None:
    """Return which operands of a node are copied first; None if those are that are not contiguous."""
    if is_scan(node):
        return [_scans.must_copy(node, layouts[0])]
    return [False] * len(layouts) if getattr(node.op.decl, "native", None) is not None else None


class ForeignCall:
    """The LLVM IR of one call.

    Attributes:
        lines: instructions for ``main``.
        declaration: declares the function.
        symbol, address: the function's name and address, for the linker.
    """

    def __init__(self, writer: Any, step: NodeThunk, number: int):
        function: Any = find_foreign_function(step.node)
        self.writer, self.step, self.number = writer, step, number
        self.symbol, self.address = function.symbol, function.address
        self.lines: list[str] = []
        self.operands = dict(zip(step.node.inputs, step.operands, strict=True))
        passed = [self._argument(binding, index) for index, binding in enumerate(function.bindings)]
        kinds = [self._type(binding.param) for binding in function.bindings]
        self.declaration = f"declare void @{self.symbol}({', '.join(kinds)})"
        given = ", ".join(f"{kind} {value}" for kind, value in zip(kinds, passed, strict=True))
        self.lines.append(f"  call void @{self.symbol}({given})")

    def _type(self, param: Any) -> str:
        if param.is_pointer:
            return "ptr"
        small = param.dtype.kind in "biu" and param.dtype.itemsize < 4
        widened = " signext" if small and param.dtype.kind == "i" else " zeroext" if small else ""
        return REGISTER[param.dtype] + widened

    def _argument(self, binding: ParameterBinding, index: int) -> str:
        node = self.step.node
        value = binding.select(node.args, node.kwargs, node.outputs)
        if binding.param.is_pointer:
            return self._pointer(value, index)
        if binding.param.what:
            return literal(measure(binding, tuple(value.shape)), binding.param.dtype)
        if isinstance(value, Value):
            return self._scalar(value, binding.param.dtype, index)
        return literal(value, binding.param.dtype)

    def _pointer(self, value: Value | None, index: int) -> str:
        if value is None:
            return "null"
        if value not in self.operands:
            return str(self.writer.pointer(value))
        root, layout = self.operands[value]
        register = f"%u{self.number}_{index}"
        offset = layout.offset * value.spec.dtype.itemsize
        self.lines.append(f"  {register} = getelementptr i8, ptr {self.writer.pointer(root)}, i64 {offset}")
        return register

    def _scalar(self, value: Value, dtype: DType, index: int) -> str:
        """Return the register of a number passed at run time, loaded from its eight bytes."""
        register, source = f"%u{self.number}_{index}", _WEAK[value.weak or float]
        memory = "i8" if source is dt.bool_ else REGISTER[source]
        pointer = self.writer.pointer(value)
        self.lines.append(f"  {register}m = load {memory}, ptr {pointer}")
        if source is dt.bool_:
            convert = f"icmp ne i8 {register}m, 0"
        elif source is dtype:
            return f"{register}m"
        elif source is dt.int64:
            convert = f"sitofp i64 {register}m to {REGISTER[dtype]}"
        else:
            convert = f"fptrunc double {register}m to {REGISTER[dtype]}"
        self.lines.append(f"  {register} = {convert}")
        return register
