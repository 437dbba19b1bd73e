"""Reads of rows: gathers whose positions are the same for many points, so that these read consecutive elements.

Their bounds are checked once, and vectors of their elements are loaded at once, if they are aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....operators.scalar_ir.expr import Expr

Ints = tuple[int, ...]


def find_row_reads(exprs: Iterable[Expr], varies: Callable[[Expr], bool]) -> dict[Expr, None]:
    """The gathers whose buffers vary along some dimensions and whose positions do not.

    Args:
        exprs: all expressions of a kernel, operands first.
        varies: whether a leaf, or the buffer of a gather, varies along the dimensions.
    """
    varying: set[Expr] = set()
    result: dict[Expr, None] = {}
    for e in exprs:
        positions = any(a in varying for a in e.args)
        buffer = e.op in ("load", "gather", "index") and varies(e)
        if positions or buffer:
            varying.add(e)
        if e.op == "gather" and buffer and not positions:
            result[e] = None
    return result


def with_indexed_axes(steps: dict[str, Ints], reads: Iterable[Expr]) -> dict[str, Ints]:
    """The strides of each buffer, after those of the axes that gathers index: a vector is aligned if all are."""
    result = dict(steps)
    for e in reads:
        name = e.payload.buffer
        result[name] = (*(axis.stride for axis in e.payload.axes), *result[name])
    return result
