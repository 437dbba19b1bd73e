"""Tables of float64 constants, indexed lane by lane."""

from __future__ import annotations

import zlib

from .....registry import dtypes as dt
from ...target import vector_target
from ..text import Function, literal
from .constants import Table
from .values import Value

_PERMUTED = 8  # float64 lanes of the registers that AVX-512 permutes


def look_up(table: Table, index: Value) -> Value:
    """Return the elements of a table at the lowest bits of int64 indices.

    AVX-512 permutes registers that hold the table; other processors load the elements.

    Args:
        table: 16 or 32 numbers.
        index: the indices; bits above those that count the table are ignored.
    """
    f = index.f
    if f.lanes > 1 and vector_target().masks:
        return _permute(table, index)
    name = _define(f, table)
    offsets = (index & (len(table) - 1)) << 3
    if f.lanes > 1:
        return Value(f, dt.float64, _gather(f, name, offsets.register))
    start = f.op(f"extractelement <1 x i64> {offsets.register}, i64 0")
    pointer = f.op(f"getelementptr i8, ptr @{name}, i64 {start}")
    element = f.op(f"load double, ptr {pointer}, align 8, !invariant.load !{{}}")
    return Value(f, dt.float64, f.op(f"insertelement <1 x double> poison, double {element}, i64 0"))


def _define(f: Function, table: Table) -> str:
    """Define a table as a constant of the module; return its name."""
    text = ", ".join(f"double {literal(x, dt.float64)}" for x in table)
    name = f"table_{zlib.crc32(text.encode()):08x}"
    f.module.helper(
        name, f"@{name} = private unnamed_addr constant [{len(table)} x double] [{text}], align 64"
    )
    return name


def _gather(f: Function, name: str, offsets: str) -> str:
    """Load elements of a constant; as a constant does not change, equal loads are written once."""
    vec, pointers, mask = f.vec("double"), f.vec("ptr"), f.vec("i1")
    symbol = f"llvm.masked.gather.v{f.lanes}f64.v{f.lanes}p0"
    f.module.declare(symbol, vec, pointers, mask, vec)
    addresses = f.op(f"getelementptr i8, ptr @{name}, {f.vec('i64')} {offsets}")
    lanes = f"{pointers} align 8 {addresses}, {mask} splat (i1 true), {vec} poison"
    return f.op(f"call {vec} @{symbol}({lanes})")


def _permute(table: Table, index: Value) -> Value:
    """Return elements of a table by permutations of eight lanes each."""
    f, lanes = index.f, index.f.lanes
    parts = [f.extract_lanes(index.register, "i64", start, _PERMUTED) for start in range(0, lanes, _PERMUTED)]
    with f.width(_PERMUTED):
        elements = [_permute_part(f, table, part) for part in parts]
        joined, size = f.concatenate("double", elements)
    with f.width(size):
        return Value(f, dt.float64, f.extract_lanes(joined, "double", 0, lanes))


def _permute_part(f: Function, table: Table, index: str) -> str:
    vec, symbol = f.vec("double"), "llvm.x86.avx512.vpermi2var.pd.512"
    f.module.declare(symbol, vec, vec, f.vec("i64"), vec)
    registers = [
        f"<{', '.join(f'double {literal(x, dt.float64)}' for x in table[start : start + _PERMUTED])}>"
        for start in range(0, len(table), _PERMUTED)
    ]
    elements = [
        f.op(f"call {vec} @{symbol}({vec} {one}, {f.vec('i64')} {index}, {vec} {two})")
        for one, two in zip(registers[::2], registers[1::2])
    ]
    if len(elements) == 1:
        return elements[0]
    upper = Value(f, dt.int64, index) & (2 * _PERMUTED)
    return f.op(f"select {f.vec('i1')} {upper.equals(0).register}, {vec} {elements[0]}, {vec} {elements[1]}")
