"""The eager loop of a scan: the partial results of a fold, in the order of the elements."""

from __future__ import annotations

from .reducers import RowFold
from .text import REGISTER, Function, Module


def write_scan_loop(module: Module, name: str, row: RowFold) -> None:
    """Add ``void name(ptr pointers, ptr sizes, ptr strides)``, a loop over rows.

    ``pointers`` holds the source and the result, ``sizes`` the number of rows and of elements of a row, ``strides`` in
    bytes those of the source and then of the result, along the rows and along the elements.
    """
    f, out = Function(module, 1), row.out or row.dtype
    reducer = row.make_reducer()
    vec = f.vec(REGISTER[row.dtype])
    pointers = [f.load("ptr", f.address("%pointers", str(8 * k))) for k in range(2)]
    rows, count = (f.load("i64", f.address("%sizes", str(8 * k))) for k in range(2))
    steps = [f.load("i64", f.address("%strides", str(8 * k))) for k in range(4)]
    with f.when(f.op(f"icmp sgt i64 {count}, 0")), f.loop("0", rows, "1") as at:
        source, target = (
            f.address(pointer, f.op(f"mul i64 {at.index}, {step}"))
            for pointer, step in zip(pointers, steps[::2], strict=True)
        )
        first = row.operand(f, f.load_vector(row.source, source))
        f.store_vector(out, row.result(f, first), target)
        with f.loop("1", count, "1", [(vec, first)]) as element:
            x = f.address(source, f.op(f"mul i64 {element.index}, {steps[1]}"))
            value = row.operand(f, f.load_vector(row.source, x))
            total = reducer.combine(f, element.carried[0], value)
            address = f.address(target, f.op(f"mul i64 {element.index}, {steps[3]}"))
            f.store_vector(out, row.result(f, total), address)
            element.next = [total]
    f.do("ret void")
    module.helper(name, f.text(f"void @{name}(ptr %pointers, ptr %sizes, ptr %strides) #0"))
