"""Choose the calls of cuBLAS that multiply two stacks of matrices, from their layouts.

cuBLAS is column-major, tandem row-major: ``C = A @ B`` by rows is ``C' = B' @ A'`` by columns, on the same memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ....lowering.fusion.loop_ir import collapse
from ....lowering.layout import Layout, contiguous
from ....named_tuple import NamedTuple
from ....operators.declare.shape_rules import broadcast_shapes
from ....operators.shape.views import reshaped_strides

Ints = tuple[int, ...]
LARGEST = 2**31 - 1
CALL_BYTES = 8 << 20  # the cost of a call, as the number of bytes that a device moves in about that time


class Side(NamedTuple):
    """One matrix operand of cuBLAS, or a batch of matrices with a constant stride.

    Attributes:
        first: the offset of the first matrix, in elements.
        transposed: the operand's transpose flag.
        lead: the leading dimension: elements from one column to the next.
        step: elements from one matrix of the batch to the next.
    """

    first: int
    transposed: bool
    lead: int
    step: int


class Call(NamedTuple):
    """``c = a @ b`` for a batch of ``matrices``, column-major: ``m`` x ``k`` by ``k`` x ``n``."""

    m: int
    n: int
    k: int
    a: Side
    b: Side
    c: Side
    matrices: int


class GemmCalls(NamedTuple):
    """The calls of cuBLAS for one product.

    Attributes:
        copies: for each operand, whether it is made contiguous first.
        calls: the calls; their side ``a`` is the second operand, ``b`` the first.
    """

    copies: tuple[bool, bool]
    calls: tuple[Call, ...]


def find_leading_dimension(layout: Layout) -> tuple[bool, int] | None:
    """(transposed, leading dimension) of matrices of a layout; None if they have to be copied first."""
    (rows, columns), (down, across) = layout.shape[-2:], layout.strides[-2:]
    value = None
    if (across == 1 or columns == 1) and down >= max(columns, 1):
        value = False, down
    elif (down == 1 or rows == 1) and across >= max(rows, 1):
        value = True, across
    elif rows == 1 and (across == 1 or columns == 1):
        value = False, columns
    return value if value is not None and value[1] <= LARGEST else None


def choose_calls(one: Layout, two: Layout, itemsize: int) -> GemmCalls | None:
    """The cheapest calls for ``one @ two``, with copies of operands where they are needed or save calls.

    Args:
        one, two: the layouts of the operands.
        itemsize: bytes of an element.

    Returns:
        None if nothing is multiplied: the result or the sums are empty.
    """
    one, two = _as_matrices(one, two)
    best: tuple[int, GemmCalls] | None = None
    for first, second in itertools.product((False, True), repeat=2):
        calls = _calls_without_copies(_after_copy(one, first), _after_copy(two, second))
        if calls:
            moved = [CALL_BYTES + 2 * itemsize * x.size for x, copy in ((one, first), (two, second)) if copy]
            cost = CALL_BYTES * len(calls) + sum(moved)
            if best is None or cost < best[0]:
                best = cost, GemmCalls((first, second), calls)
    return None if best is None else best[1]


def _after_copy(layout: Layout, copy: bool) -> Layout:
    return contiguous(layout.shape) if copy else layout


def _as_matrices(one: Layout, two: Layout) -> tuple[Layout, Layout]:
    """The operands with vectors as matrices of one row or one column."""
    if len(one.shape) == 1:
        one = Layout((1, *one.shape), (one.shape[0] * one.strides[0], *one.strides), one.offset)
    if len(two.shape) == 1:
        two = Layout((*two.shape, 1), (*two.strides, 1), two.offset)
    return one, two


def _calls_without_copies(one: Layout, two: Layout) -> tuple[Call, ...]:
    """The calls without copies; an empty tuple if cuBLAS cannot read the layouts."""
    batch = broadcast_shapes("matmul", one.shape[:-2], two.shape[:-2])
    one, batch = _flatten_batch(one, two, batch)
    rows, inner, columns = one.shape[-2], one.shape[-1], two.shape[-1]
    kinds = find_leading_dimension(one), find_leading_dimension(two)
    if kinds[0] is None or kinds[1] is None or not rows * inner * columns * math.prod(batch):
        return ()
    size = rows * columns
    strides = [
        _broadcast_batch_strides(one, batch),
        _broadcast_batch_strides(two, batch),
        tuple(size * s for s in contiguous(batch).strides),
    ]
    if any(step < 0 for own in strides for step in own):
        return ()
    items = []
    for count, (b, a, c) in _split_batch(batch, strides):
        left, right = Side(two.offset + a[0], *kinds[1], a[1]), Side(one.offset + b[0], *kinds[0], b[1])
        items.append(Call(columns, rows, inner, left, right, Side(c[0], False, columns, c[1]), count))
    return tuple(items)


def _flatten_batch(one: Layout, two: Layout, batch: Ints) -> tuple[Layout, Ints]:
    """If the second operand is one matrix: the batch of the first as rows of one matrix, if its strides allow it."""
    if len(two.shape) > 2 or len(one.shape) == 2:
        return one, batch
    shape = math.prod(one.shape[:-1]), one.shape[-1]
    strides = reshaped_strides(one.shape, one.strides, shape)
    if strides is None or shape[0] > LARGEST:
        return one, batch
    return Layout(shape, strides, one.offset), ()


def _broadcast_batch_strides(layout: Layout, batch: Ints) -> Ints:
    """The strides of a stack of matrices, broadcast to the axes of a batch."""
    sizes = layout.shape[:-2]
    lead = len(batch) - len(sizes)
    own = (0 if size != whole else step for size, whole, step in zip(sizes, batch[lead:], layout.strides))
    return (0,) * lead + tuple(own)


def _split_batch(shape: Ints, strides: Sequence[Ints]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Split the batch into as few runs of constant stride as possible: (matrices, (offset, stride) for each array)."""
    sizes, steps = collapse(shape, list(strides))
    if not sizes:
        return [(1, [(0, 0)] * len(steps))]
    longest = max(range(len(sizes)), key=sizes.__getitem__)
    outer = [range(1 if axis == longest else size) for axis, size in enumerate(sizes)]
    return [
        (
            sizes[longest],
            [(sum(i * step for i, step in zip(index, own)), own[longest]) for own in steps],
        )
        for index in itertools.product(*outer)
    ]
