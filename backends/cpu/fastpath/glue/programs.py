"""Loops for dtypes without emitted code: an expression as a program of NumPy's inner loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from .....named_tuple import NamedTuple
from .....operators.scalar_ir.expr import Expr, constant_value, is_exact, order
from .....operators.scalar_ir.numpy_evaluation import UFUNCS
from .....registry import dtypes as dt
from .....registry.dtypes import DType
from ..compiler import engine, lang
from ..runtime import rt_programs
from . import node_functions
from .folds import machine_type
from .structs import StructMemory
from .ufuncs import find_inner_loop

_REAL = {dt.complex64: "f32", dt.complex128: "f64"}
_WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "u64"}
_OWN: dict[str, Any] = {**UFUNCS, "pow": np.power}


class Loop(NamedTuple):
    """An inner loop: address, its data's address, and the object that keeps it alive."""

    address: int
    data: int
    kept: Any


class Value(NamedTuple):
    """A value of a program: kind, location and size, as in `rt_programs`."""

    kind: int
    location: int
    size: int


@cache
def _compile_helper(
    function: Callable[..., Any], types: tuple[tuple[str, str], ...], constants: tuple[tuple[str, int], ...]
) -> Loop:
    code = engine.compile_ir(lang.emit({"loop": function}, dict(constants), dict(types)), ["loop"])
    return Loop(code["loop"], 0, code)


def _compile_typed(
    function: Callable[..., Any], types: Mapping[str, str | None], **constants: int
) -> Loop | None:
    known = tuple((name, ty) for name, ty in types.items() if ty is not None)
    return _compile_helper(function, known, tuple(constants.items())) if len(known) == len(types) else None


def _cast_loop(source: DType, target: DType) -> Loop | None:
    """Return the loop of a conversion to a complex dtype."""
    if target not in _REAL:
        return None
    half = target.itemsize // 2
    if source in _REAL:
        pair = {"S": _REAL[source], "T": _REAL[target]}
        return _compile_typed(rt_programs.complex_to_complex, pair, PART=source.itemsize // 2, BYTES=half)
    types: dict[str, str | None] = {"S": machine_type(source), "T": _REAL[target]}
    return _compile_typed(rt_programs.real_to_complex, types, BITS=int(source is dt.bfloat16), BYTES=half)


def find_loop(expr: Expr) -> Loop | None:
    """Return the inner loop of a node, or None."""
    source, target = expr.args[-1].dtype, expr.dtype
    if expr.op == "cast":
        return _cast_loop(source, target)
    if expr.op == "select":
        part = 8 if target.itemsize == 16 else 0
        return _compile_typed(rt_programs.select_elements, {"T": _WORDS[target.itemsize]}, PART=part)
    if expr.op in ("real", "imag"):
        part = target.itemsize if expr.op == "imag" else 0
        return _compile_typed(rt_programs.part_of_complex, {"T": _REAL.get(source)}, PART=part)
    if expr.op == "complex":
        return _compile_typed(
            rt_programs.complex_of_parts, {"T": _REAL.get(target)}, BYTES=target.itemsize // 2
        )
    value = None if is_exact(expr) else node_functions.find_ufunc(expr)
    return find_ufunc_loop(value or _OWN.get(expr.op), [*(a.dtype for a in expr.args), target])


def find_ufunc_loop(ufunc: Any, dtypes: Sequence[DType]) -> Loop | None:
    """Return the inner loop of a ufunc for dtypes, or None."""
    value = find_inner_loop(ufunc, dtypes) if isinstance(ufunc, np.ufunc) else None
    return Loop(*value, ufunc) if value is not None else None


class Program:
    """A program being built.

    Args:
        root: the expression over `arg(0)`, `arg(1)`, ...
        arity: the number of operands.
    """

    def __init__(self, root: Expr, arity: int) -> None:
        self.root, self.arity = root, arity
        self.steps: list[tuple[Loop, list[Value]]] = []
        self.kept: list[Any] = []
        self.values: dict[Expr, Value] = {}
        self.scratch = 0

    def build(self) -> StructMemory | None:
        """Return the program's struct; None if a node has no loop, or there are too many values."""
        for expr in order(self.root):
            if expr.op == "arg":
                self.values[expr] = Value(rt_programs.OPERAND, expr.payload, 0)
            elif expr.op == "const":
                self.values[expr] = self._constant(constant_value(expr), expr.dtype)
            elif not self._step(expr):
                return None
        if self.root.op in ("arg", "const") and not self._copy():
            return None
        return self._record() if self.scratch <= rt_programs.MOST_SCRATCH else None

    def _constant(self, value: Any, dtype: DType) -> Value:
        held = np.array(value, dtype.np)
        self.kept.append(held)
        return Value(rt_programs.CONSTANT, held.ctypes.data, 0)

    def _result(self, expr: Expr) -> Value:
        if expr is self.root:
            return Value(rt_programs.OPERAND, self.arity, 0)
        self.scratch += 1
        return Value(rt_programs.SCRATCH, (self.scratch - 1) * rt_programs.BLOCK * 16, expr.dtype.itemsize)

    def _step(self, expr: Expr) -> bool:
        inputs = [self.values[a] for a in expr.args]
        loop = find_loop(expr)
        if expr.op == "cast" and expr.dtype is dt.bool_ and expr.args[0].dtype in _REAL:
            source = expr.args[0].dtype
            loop = find_ufunc_loop(np.not_equal, [source, source, dt.bool_])
            inputs.append(self._constant(0, source))
        if loop is None:
            return False
        self.values[expr] = self._result(expr)
        self.steps.append((loop, [*inputs, self.values[expr]]))
        return True

    def _copy(self) -> bool:
        """Add a copy, for an operator that returns its operand."""
        loop = find_ufunc_loop(np.positive, [self.root.dtype] * 2)
        if loop is not None:
            self.steps.append((loop, [self.values[self.root], Value(rt_programs.OPERAND, self.arity, 0)]))
        return loop is not None

    def _record(self) -> StructMemory:
        result = StructMemory(rt_programs.LoopProgram.first + rt_programs.STEP_BYTES * len(self.steps))
        result.set(rt_programs.LoopProgram.steps, len(self.steps))
        result.set(rt_programs.LoopProgram.block, rt_programs.BLOCK if self.scratch else 2**62)
        result.kept.extend(self.kept)
        for k, (loop, values) in enumerate(self.steps):
            write_step(result, rt_programs.LoopProgram.first + rt_programs.STEP_BYTES * k, loop, values)
        return result


def write_step(record: StructMemory, at: int, loop: Loop, values: Sequence[Value]) -> None:
    """Write one step at an offset of a struct."""
    record.kept.append(loop.kept)
    record.set(at + rt_programs.LoopStep.loop, loop.address)
    record.set(at + rt_programs.LoopStep.data, loop.data)
    record.set(at + rt_programs.LoopStep.values, len(values))
    for j, value in enumerate(values):
        for offset, number in enumerate(value):
            record.set(at + rt_programs.LoopStep.value + 24 * j + 8 * offset, number)


def make_program(root: Expr, arity: int) -> StructMemory | None:
    """Return the program of an expression, for `Variant.program`; None if there is none."""
    return Program(root, arity).build()


@cache
def compile_interpreter() -> engine.Code:
    """Return the loop that runs programs."""
    return engine.compile_ir(lang.emit({"loop": rt_programs.program_loop}), ["loop"])
