"""Sums of complex numbers: those of their real parts and of their imaginary parts, with the bits of sums of floats.

Contiguous columns of complex numbers are twice as many columns of floats. Contiguous rows are taken apart a block at a
time, so that memory is read once. Other operands are read once for each part.
"""

from __future__ import annotations

from ...target import vector_target
from ..text import REGISTER, Function, Module
from .fold_loop import ARGUMENTS
from .order import RowState, block_length
from .reducers import RowFold

LEAST = 64  # elements of rows that are taken apart one by one


def write_complex_sum(module: Module, name: str, row: RowFold, of_parts: str) -> None:
    """Add the loop for sums of complex numbers.

    Args:
        module: where to add it.
        name: its name.
        row: the fold of the parts.
        of_parts: the name of the loop for sums of the parts, see `eager.write_fold_loop`.
    """
    size = row.dtype.itemsize
    f = Function(module, vector_target().vector_bytes // size)
    kept, folded, columns, outer = (f.load("i64", f.address("%sizes", str(8 * k))) for k in range(4))
    over, to, step, across = (f.load("i64", f.address("%strides", str(8 * k))) for k in range(4))
    by_columns = f.op(f"icmp ne i64 {columns}, 0")
    dense = f.op(f"and i1 {_is(f, over, 2 * size)}, {_is(f, to, 2 * size)}")
    with f.when_returning(f.op(f"and i1 {by_columns}, {dense}")):
        twice = f.op(f"mul i64 {kept}, 2")
        sizes, strides = (
            _write_table(f, twice, folded, "1", outer),
            _write_table(f, str(size), str(size), step, across),
        )
        f.do(f"call void @{of_parts}(ptr %source, ptr %out, ptr {sizes}, ptr {strides})")
    single = f.op(f"and i1 {f.op(f'icmp sle i64 {outer}, 1')}, {f.op(f'icmp sge i64 {folded}, {LEAST}')}")
    contiguous = f.op(f"and i1 {f.op(f'xor i1 {by_columns}, true')}, {_is(f, step, 2 * size)}")
    with f.when_returning(f.op(f"and i1 {single}, {contiguous}")):
        _write_rows(f, row, kept, folded, over, to)
    for offset in ("0", str(size)):
        source, target = f.address("%source", offset), f.address("%out", offset)
        f.do(f"call void @{of_parts}(ptr {source}, ptr {target}, ptr %sizes, ptr %strides)")
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}({ARGUMENTS}) #0"))


def _is(f: Function, value: str, number: int) -> str:
    return f.op(f"icmp eq i64 {value}, {number}")


def _write_table(f: Function, *values: str) -> str:
    """Return the address of some i64."""
    table = f.allocate(8 * len(values))
    for at, value in enumerate(values):
        f.do(f"store i64 {value}, ptr {f.address(table, str(8 * at))}")
    return table


def _write_rows(f: Function, row: RowFold, kept: str, folded: str, over: str, to: str) -> None:
    """Write the sums of contiguous rows."""
    size, length = row.dtype.itemsize, block_length(row.dtype)
    f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
    parts = [f.allocate(length * size) for _ in range(2)]
    states = [RowState(f, row) for _ in range(2)]
    with f.loop("0", kept, "1") as line:
        start = f.address("%source", f.op(f"mul i64 {line.index}, {over}"))
        for state in states:
            state.begin()
        with f.loop("0", folded, str(length)) as at:
            left = f.op(f"sub i64 {folded}, {at.index}")
            count = f.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {length})")
            _deinterleave(f, row, f.address(start, f.op(f"mul i64 {at.index}, {2 * size}")), count, parts)
            for state, part in zip(states, parts, strict=True):
                state.add(part, count)
        result = f.address("%out", f.op(f"mul i64 {line.index}, {to}"))
        for number, state in enumerate(states):
            target = f.address(result, str(number * size))
            f.do(f"store {REGISTER[row.dtype]} {state.end()}, ptr {target}, align 1")


def _deinterleave(f: Function, row: RowFold, start: str, count: str, parts: list[str]) -> None:
    """Copy the parts of ``count`` complex numbers."""
    dtype, size, element = row.dtype, row.dtype.itemsize, REGISTER[row.dtype]
    whole = f.op(f"and i64 {count}, {-f.lanes}")
    with f.loop("0", whole, str(f.lanes)) as at:
        pairs = f.load(
            f"<{2 * f.lanes} x {element}>", f.address(start, f.op(f"mul i64 {at.index}, {2 * size}"))
        )
        for value, part in zip(f.split_parts(element, pairs), parts, strict=True):
            f.store_vector(dtype, value, f.address(part, f.op(f"mul i64 {at.index}, {size}")))
    with f.loop(whole, count, "1") as at:
        pair = f.address(start, f.op(f"mul i64 {at.index}, {2 * size}"))
        for number, part in enumerate(parts):
            value = f.load(element, f.address(pair, str(number * size)))
            f.do(
                f"store {element} {value}, ptr {f.address(part, f.op(f'mul i64 {at.index}, {size}'))}, align 1"
            )
