"""The table of a call of an inner loop: its sizes and strides, in the layout of ``rt_loops.LoopCall``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....lowering.fusion.loop_ir import collapse
from ....lowering.layout import Layout
from ....operators.declare.shape_rules import broadcast_shapes
from ..fastpath.compiler.structs import fields_of, sizeof
from ..fastpath.runtime.rt_loops import MOST_AXES, MOST_OPERANDS, LoopCall

CoreShapes = tuple[tuple[str, ...], ...]
"""The names of the core sizes of each operand."""

WORDS = {name: field.offset // 8 for name, field in fields_of(LoopCall).items()}
"""The words of a table that have the fields of a ``LoopCall``."""


def parse_signature(text: str) -> CoreShapes:
    """Return the names of the core sizes of each operand and result.

    >>> parse_signature("(m, m),(m,n)->(m,n)")
    (('m', 'm'), ('m', 'n'), ('m', 'n'))
    """
    shapes = re.findall(r"\(([^()]*)\)", text)
    return tuple(tuple(name.strip() for name in shape.split(",") if name.strip()) for shape in shapes)


def find_core_sizes(signature: CoreShapes, shapes: Sequence[tuple[int, ...]]) -> dict[str, int] | None:
    """Return the core sizes by name, in the order of the loop's sizes; None if the shapes do not fit the signature."""
    sizes: dict[str, int] = {}
    if len(signature) != len(shapes) or len(signature) > MOST_OPERANDS:
        return None
    for names, shape in zip(signature, shapes, strict=True):
        core = shape[len(shape) - len(names) :]
        if len(core) != len(names):
            return None
        if any(sizes.setdefault(name, size) != size for name, size in zip(names, core, strict=True)):
            return None
    return sizes


def make_call_table(
    signature: CoreShapes,
    layouts: Sequence[Layout],
    itemsizes: Sequence[int],
    failures: int,
    is_finite: bool = False,
) -> list[int]:
    """Return the words of a table.

    Args:
        signature: the names of the core sizes.
        layouts: the layouts of operands and results, whose shapes fit the signature.
        itemsizes: the bytes of an element of each.
        failures: how the loop reports failures.
        is_finite: whether the first operand must be finite.
    """
    shapes = [layout.shape for layout in layouts]
    sizes = find_core_sizes(signature, shapes) or {}
    cores = [len(names) for names in signature]
    lead = broadcast_shapes("", *(shape[: len(shape) - k] for shape, k in zip(shapes, cores, strict=True)))
    outer = [
        _outer_strides(layout, core, len(lead), itemsize)
        for layout, core, itemsize in zip(layouts, cores, itemsizes, strict=True)
    ]
    lengths, strides = collapse(lead, outer)
    *axes, (count, *first) = zip(lengths, *strides) if lengths else [(1, *[0] * len(layouts))]
    inner = [
        stride * itemsize
        for layout, core, itemsize in zip(layouts, cores, itemsizes, strict=True)
        for stride in layout.strides[len(layout.strides) - core :]
    ]
    dims, steps = [count, *sizes.values()], [*first, *inner]
    at = sizeof(LoopCall)
    offsets = at, at + 8 * len(dims), at + 8 * (len(dims) + len(steps))
    rest = [word for axis in axes for word in axis]
    parts = itemsizes[0] // 8 if is_finite else 0
    start, last = offsets[:-1], offsets[-1]
    return [len(layouts), len(axes), failures, *start, parts, last, *dims, *steps, *rest]


def is_single_call(words: Sequence[int]) -> bool:
    """Return whether the loop is called once, with nothing to do before or after it."""
    return not any(words[WORDS[name]] for name in ("axes", "failures", "parts"))


def _outer_strides(layout: Layout, core: int, rank: int, itemsize: int) -> tuple[int, ...]:
    """Return the strides of the outer axes in bytes, 0 where an operand is broadcast."""
    own = len(layout.shape) - core
    steps = [
        s * itemsize if n != 1 else 0 for n, s in zip(layout.shape[:own], layout.strides[:own], strict=True)
    ]
    return (*[0] * (rank - own), *steps)


def fits(words: Sequence[int]) -> bool:
    """Return whether a call does not have too many axes."""
    return words[1] <= MOST_AXES
