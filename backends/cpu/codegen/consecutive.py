"""Reads and updates at consecutive positions: ``x[start + arange(n)]`` is loaded and stored in whole vectors.

The start is only known at run time. If all positions are in bounds, and none is negative, a loop over whole vectors
runs; otherwise one in which each position is checked on its own. A start that is clipped, as that of
:func:`tandem.jax.lax.dynamic_slice`, needs no test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....lowering.fusion.loop_ir import IndexMap
from ....named_tuple import NamedTuple
from ....operators.scalar_ir.expr import Expr
from ....registry import dtypes as dt
from .intervals import add_intervals, find_interval


class Consecutive(NamedTuple):
    """Positions that count up along the last dimension of a stage.

    Attributes:
        axis: the number of the index that counts, among the indices of the map.
        terms: the expressions whose sum is the first position; they do not vary along the last dimension.
    """

    axis: int
    terms: tuple[Expr, ...]

    def is_in_bounds(self, index_map: IndexMap, count: int) -> bool:
        """Return whether ``count`` positions are in bounds whatever the operands are."""
        low, high = add_intervals(map(find_interval, self.terms))
        return low >= 0 and high + count <= index_map.axes[self.axis].size


def find_consecutive(
    indices: Sequence[Expr], varies: Callable[[Expr], bool], last: int
) -> Consecutive | None:
    """Return the index that counts along dimension ``last``; None if another one varies, or if it varies otherwise."""
    varying = [number for number, e in enumerate(indices) if varies(e)]
    if len(varying) != 1:
        return None
    terms = _split_sum(indices[varying[0]], varies, last)
    if terms is None or sum(e.op == "index" and e.payload == last for e in terms) != 1:
        return None
    return Consecutive(varying[0], tuple(e for e in terms if e.op != "index" or e.payload != last))


def _split_sum(e: Expr, varies: Callable[[Expr], bool], last: int) -> list[Expr] | None:
    """Return the terms of a sum of int64: values that do not vary, and the position along ``last``; None for others."""
    if not varies(e) or (e.op == "index" and e.payload == last):
        return [e]
    if e.op != "add" or e.dtype is not dt.int64:
        return None
    parts = [_split_sum(a, varies, last) for a in e.args]
    known = [term for part in parts if part is not None for term in part]
    return known if all(part is not None for part in parts) else None
