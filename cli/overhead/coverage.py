"""Native coverage: which rows (operator x dtype x memory layout) run native code."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...backends.cpu import fastpath as native
from ...operators.declare.declaration import declared_operators
from ...registry.operator import Operator

LAYOUTS = ("contiguous", "transposed", "reversed", "strided")
# Composites are made of the others; LAPACK, FFT and SciPy are machine code already, and loaded when they are used.
ELSEWHERE = ("composite", "factorization", "fourier", "special")


@dataclass(frozen=True)
class Row:
    """One row: whether a hot call of this operator on this dtype and layout runs native."""

    operator: str
    kind: str
    dtype: str
    layout: str
    native: bool


def layouts_of(operator: Operator) -> tuple[str, ...]:
    """The layouts that an operator's arguments can have; what takes no tensor only makes contiguous ones."""
    takes_tensors = any(argument.type.core == "Tensor" for argument in operator.schema.arguments)
    return LAYOUTS if takes_tensors else LAYOUTS[:1]


def rows() -> Iterator[Row]:
    """Every row of every operator that has a kernel in the table."""
    for operator in declared_operators():
        yield from rows_of(operator)


def rows_of(operator: Operator) -> Iterator[Row]:
    """The rows of one declared operator; none if it has no kernel in the table."""
    decl = operator.decl
    if decl.kind not in ELSEWHERE:
        for dtype in decl.dtypes:
            served = native.serves(operator, dtype)  # on every layout
            for layout in layouts_of(operator):
                yield Row(operator.name, decl.kind, dtype.name, layout, served)


def share(rows: Sequence[Row]) -> float:
    """The share of rows that run native."""
    return sum(row.native for row in rows) / len(rows) if rows else 0.0
