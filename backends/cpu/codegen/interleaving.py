"""Interleaved accesses: loads and stores of all columns of rows that have few elements.

A kernel whose vectors run along the rows, such as that of states ``(batch, 4)``, accesses columns with a stride. If it
accesses all of them, the rows are loaded or stored whole, and shuffles take the columns apart or put them together.

Source: interleaved access groups of LLVM's loop vectorizer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..target import vector_target
from .elementwise import lanes_below
from .text import PARTS, Function, memory_type

if TYPE_CHECKING:
    from .vectors import Access, Use

MOST_COLUMNS = 8
SMALLEST = 4  # bytes of an element; shuffles of smaller ones are slow


class Interleaving:
    """The accesses to all columns of the same rows.

    Args:
        columns: the accesses in the order of their addresses.
    """

    def __init__(self, columns: list[Access]):
        self._columns = columns
        self._rows, self._size = "", 0
        self._values: dict[Access, str] = {}
        for access in columns:
            access.interleaving = self

    def load(self, access: Access, count: str | None) -> str:
        """Return a column of the rows, which the first call loads.

        Args:
            access: the access to the column.
            count: i64, the number of rows that exist; None if all do.
        """
        f, element, width = access.f, memory_type(access.dtype), len(self._columns)
        if not self._values:
            parts = [
                f.load_masked(access.dtype, pointer, mask) if mask else f.load_vector(access.dtype, pointer)
                for pointer, mask in self._pieces(f, count)
            ]
            self._rows, self._size = f.concatenate(element, parts)
        self._values[access] = self._rows
        if len(self._values) == width:
            self._values.clear()
        number, rows = self._columns.index(access), f"<{self._size} x {element}>"
        picks = ", ".join(f"i32 {width * lane + number}" for lane in range(f.lanes))
        return f.op(f"shufflevector {rows} {self._rows}, {rows} poison, <{f.lanes} x i32> <{picks}>")

    def store(self, access: Access, value: str, count: str | None) -> None:
        """Note a column of the rows; the call for the last column stores them."""
        f, dtype, width = access.f, access.dtype, len(self._columns)
        self._values[access] = value
        if len(self._values) < width:
            return
        element, lanes = memory_type(dtype), f.lanes
        columns, size = f.concatenate(element, [self._values[one] for one in self._columns])
        self._values.clear()
        vec = f"<{size} x {element}>"
        for number, (pointer, mask) in enumerate(self._pieces(f, count)):
            order = range(number * lanes, (number + 1) * lanes)
            picks = ", ".join(f"i32 {at % width * lanes + at // width}" for at in order)
            part = f.op(f"shufflevector {vec} {columns}, {vec} poison, <{lanes} x i32> <{picks}>")
            if mask:
                f.store_masked(dtype, part, pointer, mask)
            else:
                f.store_vector(dtype, part, pointer)

    def _pieces(self, f: Function, count: str | None) -> Iterator[tuple[str, str]]:
        """The addresses of the vectors that the rows fill, and the masks of their elements that exist."""
        first, width = self._columns[0], len(self._columns)
        for number in range(width):
            left = (
                ""
                if count is None
                else f.op(f"sub i64 {f.op(f'mul i64 {count}, {width}')}, {number * f.lanes}")
            )
            yield f.address(first.here, str(number * f.lanes * first.size)), left and lanes_below(f, left)


def interleave(accesses: Sequence[tuple[Use, Access]], tail: int) -> None:
    """Find the accesses that make up whole rows, and combine them.

    Args:
        accesses: the loads of a loop, or its stores.
        tail: elements of its last vector if that is partial, else 0.
    """
    if tail and not vector_target().masks:
        return
    groups: dict[object, dict[int, Access]] = defaultdict(dict)
    for use, access in accesses:
        buffer = use.buffer
        is_possible = (
            1 < access.stride <= MOST_COLUMNS and access.size >= SMALLEST and access.dtype not in PARTS
        )
        if is_possible and buffer.param is not None:
            groups[buffer.param, buffer.strides, use.strides, access.dtype][buffer.offset] = access
    for columns in groups.values():
        first, width = min(columns), next(iter(columns.values())).stride
        if sorted(columns) == list(range(first, first + width)):
            Interleaving([columns[first + number] for number in range(width)])
