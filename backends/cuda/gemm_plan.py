"""Which calls of cuBLAS multiply two stacks of matrices, decided from how they lie.

cuBLAS reads columns where tandem has rows. ``C = A @ B`` by rows is ``C' = B' @ A'`` by columns, on the same memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from ...eager.meta_views import reshaped_strides
from ...lowering.layout import Layout, contiguous
from ...lowering.loops import collapse
from ...operators.rules import broadcast_shapes

Ints = tuple[int, ...]
LARGEST = 2**31 - 1
CALL = 8 << 20  # bytes that a device moves in about the time that one more call takes


class Side(NamedTuple):
    """One matrix of a product, or a batch of them one ``step`` apart, as cuBLAS takes it.

    Attributes:
        first: elements before the first matrix.
        transposed: whether its columns, read by cuBLAS, are the rows that are wanted.
        lead: elements from one column to the next.
        step: elements from one matrix of a batch to the next.
    """

    first: int
    transposed: bool
    lead: int
    step: int


class Call(NamedTuple):
    """``c = a @ b`` for so many ``matrices`` by columns: ``m`` x ``k`` by ``k`` x ``n``."""

    m: int
    n: int
    k: int
    a: Side
    b: Side
    c: Side
    matrices: int


class Plan(NamedTuple):
    """How two operands are multiplied.

    Attributes:
        copies: for each operand whether it is copied first, to lie in order.
        calls: what is called; the sides ``a`` are of the second operand, ``b`` of the first.
    """

    copies: tuple[bool, bool]
    calls: tuple[Call, ...]


def reading(layout: Layout) -> tuple[bool, int] | None:
    """(transposed, leading dimension) of matrices as they lie; None where they have to be copied first."""
    (rows, columns), (down, across) = layout.shape[-2:], layout.strides[-2:]
    found = None
    if (across == 1 or columns == 1) and down >= max(columns, 1):
        found = False, down
    elif (down == 1 or rows == 1) and across >= max(rows, 1):
        found = True, across
    elif rows == 1 and (across == 1 or columns == 1):
        found = False, columns
    return found if found is not None and found[1] <= LARGEST else None


def plan_product(one: Layout, two: Layout, itemsize: int) -> Plan | None:
    """The calls for ``one @ two``, and the copies that they need or that save many of them.

    Args:
        one, two: where the operands lie.
        itemsize: bytes of an element.

    Returns:
        None where nothing is multiplied: no elements, or sums of none.
    """
    one, two = _as_matrices(one, two)
    found: tuple[int, Plan] | None = None
    for first, second in itertools.product((False, True), repeat=2):
        calls = _calls(_copied(one, first), _copied(two, second))
        if calls:
            moved = [CALL + 2 * itemsize * x.size for x, copy in ((one, first), (two, second)) if copy]
            cost = CALL * len(calls) + sum(moved)
            if found is None or cost < found[0]:
                found = cost, Plan((first, second), calls)
    return None if found is None else found[1]


def _copied(layout: Layout, copy: bool) -> Layout:
    return contiguous(layout.shape) if copy else layout


def _as_matrices(one: Layout, two: Layout) -> tuple[Layout, Layout]:
    """The operands of a product with a vector as a matrix of one row or one column."""
    if len(one.shape) == 1:
        one = Layout((1, *one.shape), (one.shape[0] * one.strides[0], *one.strides), one.offset)
    if len(two.shape) == 1:
        two = Layout((*two.shape, 1), (*two.strides, 1), two.offset)
    return one, two


def _calls(one: Layout, two: Layout) -> tuple[Call, ...]:
    """The calls without any copies; none where they cannot be made."""
    batch = broadcast_shapes("matmul", one.shape[:-2], two.shape[:-2])
    one, batch = _flattened(one, two, batch)
    rows, inner, columns = one.shape[-2], one.shape[-1], two.shape[-1]
    kinds = reading(one), reading(two)
    if kinds[0] is None or kinds[1] is None or not rows * inner * columns * math.prod(batch):
        return ()
    size = rows * columns
    strides = [
        _repeated(one, batch),
        _repeated(two, batch),
        tuple(size * s for s in contiguous(batch).strides),
    ]
    if any(step < 0 for own in strides for step in own):
        return ()
    found = []
    for count, (b, a, c) in _parts(batch, strides):
        left, right = Side(two.offset + a[0], *kinds[1], a[1]), Side(one.offset + b[0], *kinds[0], b[1])
        found.append(Call(columns, rows, inner, left, right, Side(c[0], False, columns, c[1]), count))
    return tuple(found)


def _flattened(one: Layout, two: Layout, batch: Ints) -> tuple[Layout, Ints]:
    """If there is one matrix for a whole batch: its rows as rows of one matrix, where they lie so."""
    if len(two.shape) > 2 or len(one.shape) == 2:
        return one, batch
    shape = math.prod(one.shape[:-1]), one.shape[-1]
    strides = reshaped_strides(one.shape, one.strides, shape)
    if strides is None or shape[0] > LARGEST:
        return one, batch
    return Layout(shape, strides, one.offset), ()


def _repeated(layout: Layout, batch: Ints) -> Ints:
    """The strides of a stack along the axes of a batch that it broadcasts to."""
    sizes = layout.shape[:-2]
    lead = len(batch) - len(sizes)
    own = (0 if size != whole else step for size, whole, step in zip(sizes, batch[lead:], layout.strides))
    return (0,) * lead + tuple(own)


def _parts(shape: Ints, strides: Sequence[Ints]) -> list[tuple[int, list[tuple[int, int]]]]:
    """The batch in as few parts of one step each as it has: (matrices, (first element, step) for each array)."""
    sizes, steps = collapse(shape, list(strides))
    if not sizes:
        return [(1, [(0, 0)] * len(steps))]
    longest = max(range(len(sizes)), key=sizes.__getitem__)
    outer = [range(1 if axis == longest else size) for axis, size in enumerate(sizes)]
    return [
        (
            sizes[longest],
            [(sum(i * step for i, step in zip(place, own)), own[longest]) for own in steps],
        )
        for place in itertools.product(*outer)
    ]
