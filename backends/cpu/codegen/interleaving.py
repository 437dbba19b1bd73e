"""Interleaved accesses: loads and stores of all columns of rows that have few elements.

A kernel whose vectors run along the rows, such as that of states ``(batch, 4)``, accesses columns with a stride. If it
accesses all of them, the rows are loaded or stored whole, and shuffles take the columns apart or put them together.

Source: interleaved access groups of LLVM's loop vectorizer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..target import vector_target
from .elementwise import lanes_below
from .text import PARTS, Function, memory_type

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        self._rows = ""
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
            with self._whole_rows(f):
                pointer = self._columns[0].here
                if count is None:
                    self._rows = f.load_vector(access.dtype, pointer)
                else:
                    self._rows = f.load_masked(access.dtype, pointer, self._mask(f, count))
        self._values[access] = self._rows
        if len(self._values) == width:
            self._values.clear()
        number, rows = self._columns.index(access), f"<{width * f.lanes} x {element}>"
        picks = ", ".join(f"i32 {width * lane + number}" for lane in range(f.lanes))
        return f.op(f"shufflevector {rows} {self._rows}, {rows} poison, <{f.lanes} x i32> <{picks}>")

    def store(self, access: Access, value: str, count: str | None) -> None:
        """Note a column of the rows; the call for the last column stores them."""
        f, dtype, width = access.f, access.dtype, len(self._columns)
        self._values[access] = value
        if len(self._values) < width:
            return
        rows = _join(f, memory_type(dtype), [self._values[one] for one in self._columns])
        self._values.clear()
        with self._whole_rows(f):
            pointer = self._columns[0].here
            if count is None:
                f.store_vector(dtype, rows, pointer)
            else:
                f.store_masked(dtype, rows, pointer, self._mask(f, count))

    @contextmanager
    def _whole_rows(self, f: Function) -> Iterator[None]:
        """Use vectors of whole rows."""
        lanes = f.lanes
        f.lanes = lanes * len(self._columns)
        try:
            yield
        finally:
            f.lanes = lanes

    def _mask(self, f: Function, count: str) -> str:
        return lanes_below(f, f.op(f"mul i64 {count}, {len(self._columns)}"))


def _join(f: Function, element: str, columns: Sequence[str]) -> str:
    """One vector of the elements of columns, row by row."""
    lanes, width, parts = f.lanes, len(columns), list(columns)
    parts += ["poison"] * ((1 << (width - 1).bit_length()) - width)
    size = lanes
    while len(parts) > 1:  # one after the other
        vec, picks = f"<{size} x {element}>", ", ".join(f"i32 {number}" for number in range(2 * size))
        shuffle = f"<{2 * size} x i32> <{picks}>"
        pairs = zip(parts[::2], parts[1::2])
        parts = [f.op(f"shufflevector {vec} {a}, {vec} {b}, {shuffle}") for a, b in pairs]
        size *= 2
    picks = ", ".join(f"i32 {column * lanes + lane}" for lane in range(lanes) for column in range(width))
    vec = f"<{size} x {element}>"
    return f.op(f"shufflevector {vec} {parts[0]}, {vec} poison, <{width * lanes} x i32> <{picks}>")


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
