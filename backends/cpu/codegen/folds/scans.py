"""The loops of scans: the partial results of a fold, in the order of the elements.

Bits follow from the order along the scanned axis, so lines are independent: where neighbouring lines are adjacent in
memory a vector holds one element of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from .....named_tuple import NamedTuple
from .....registry.dtypes import DType
from ..elementwise import lanes_below
from ..text import Function, Module
from .order import is_ordered, lane_count
from .reducers import RowFold

NARROW = 8  # the last, partial vector of lines has this fraction of the lanes
TOGETHER = 4  # lines that are scanned in turn if each combination of floats waits long for the last one


class Lines(NamedTuple):
    """The lines of a scan in memory; counts and strides are registers or literals of i64, strides in bytes.

    Attributes:
        source, target: the addresses of the first element and of its result.
        rows: the number of lines.
        count: the number of elements of a line, not 0.
        over: the strides of the source and of the result from line to line.
        along: their strides from element to element.
    """

    source: str
    target: str
    rows: str
    count: str  # type: ignore[assignment]  # tuples have a method of that name
    over: tuple[str, str]
    along: tuple[str, str]


def write_scan_loop(module: Module, name: str, row: RowFold) -> None:
    """Add ``void name(ptr pointers, ptr sizes, ptr strides)``, a loop over lines.

    ``pointers`` holds the source and the result, ``sizes`` the number of lines and of elements of a line, ``strides``
    in bytes those of the source and then of the result, along the lines and along the elements.
    """
    f = Function(module, 1)
    source, target = (f.load("ptr", f.address("%pointers", str(8 * k))) for k in range(2))
    rows, count = (f.load("i64", f.address("%sizes", str(8 * k))) for k in range(2))
    steps = [f.load("i64", f.address("%strides", str(8 * k))) for k in range(4)]
    lines = Lines(source, target, rows, count, (steps[0], steps[2]), (steps[1], steps[3]))
    with f.when_returning(f.op(f"icmp slt i64 {count}, 1")):
        pass
    sizes = (row.source.itemsize, result_dtype(row).itemsize)
    adjacent = f.op(f"icmp sgt i64 {rows}, 1")
    for step, size in zip(lines.over, sizes, strict=True):
        adjacent = f.op(f"and i1 {adjacent}, {f.op(f'icmp eq i64 {step}, {size}')}")
    with f.when_returning(adjacent):
        write_adjacent_lines(f, row, lines)
    write_lines(f, row, lines)
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}(ptr %pointers, ptr %sizes, ptr %strides) #0"))


def result_dtype(row: RowFold) -> DType:
    """Return the dtype of the results of a scan."""
    return row.out or row.dtype


def write_lines(f: Function, row: RowFold, lines: Lines) -> None:
    """Write the scan of lines at any strides, one element at a time."""
    whole = "0"
    if is_ordered(row.fold, row.dtype):
        whole = f.op(f"and i64 {lines.rows}, {-TOGETHER}")
        with f.loop("0", whole, str(TOGETHER)) as at, f.width(1):
            _scan_together(f, row, lines, [f.op(f"add i64 {at.index}, {k}") for k in range(TOGETHER)])
    with f.loop(whole, lines.rows, "1") as at, f.width(1):
        _scan_together(f, row, lines, [at.index])


def write_adjacent_lines(f: Function, row: RowFold, lines: Lines) -> None:
    """Write the scan of lines that are adjacent in the source and in the result, a vector of them at a time."""
    lanes = lane_count(row.dtype)
    narrow = max(lanes // NARROW, 1)
    whole = f.op(f"and i64 {lines.rows}, {-lanes}")
    with f.loop("0", whole, str(lanes)) as at, f.width(lanes):
        _scan_together(f, row, lines, [at.index])
    with f.loop(whole, lines.rows, str(narrow)) as at, f.width(narrow):
        mask = lanes_below(f, f.op(f"sub i64 {lines.rows}, {at.index}"))
        _scan_together(f, row, lines, [at.index], mask)


def _scan_together(f: Function, row: RowFold, lines: Lines, numbers: Sequence[str], mask: str = "") -> None:
    """Scan some vectors of lines in turn; each vector begins at a line of a given number."""
    reducer, vec, out = row.make_reducer(), f.register_type(row.dtype), result_dtype(row)
    sources, targets = (
        [f.address(start, f.op(f"mul i64 {number}, {step}")) for number in numbers]
        for start, step in zip((lines.source, lines.target), lines.over, strict=True)
    )

    def load(offset: str) -> list[str]:
        addresses = [f.address(source, offset) for source in sources]
        return [row.load(f, address, mask) for address in addresses]

    def store(values: Sequence[str], offset: str) -> None:
        for target, value in zip(targets, values, strict=True):
            address, result = f.address(target, offset), row.result(f, value)
            if mask:
                f.store_masked(out, result, address, mask)
            else:
                f.store_vector(out, result, address)

    first = load("0")
    store(first, "0")
    with f.loop("1", lines.count, "1", [(vec, value) for value in first]) as element:
        from_offset, to_offset = (f.op(f"mul i64 {element.index}, {step}") for step in lines.along)
        pairs = zip(element.carried, load(from_offset), strict=True)
        element.next = [reducer.combine(f, total, value) for total, value in pairs]
        store(element.next, to_offset)
