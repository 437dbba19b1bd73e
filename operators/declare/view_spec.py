"""Views as one rule each: from the sizes, strides and offset of a tensor to those of the view.

NumPy's kernel, meta tensors, functionalization, lowering, CUDA and native entries read the rule of an operator's
declaration; a rule computes with ``+``, ``-``, ``*`` and comparisons only, so that it also works on symbolic integers.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import OutOfBoundsError
from ...named_tuple import NamedTuple
from ...registry.values import TensorSpec
from .shape_rules import spec_of

Ints = tuple[int, ...]


class ViewLayout(NamedTuple):
    """The addresses of the elements of a view in its memory.

    Attributes:
        sizes: the size of each axis.
        strides: the distance between neighbours along each axis, in any unit.
        offset: the distance of the first element from the start of the memory, in the same unit.
    """

    sizes: Ints
    strides: Ints
    offset: int = 0


ViewRule = Callable[..., ViewLayout | None]
"""``rule(layout, *arguments)``; None where the elements have to be copied."""


def row_major_strides(sizes: Ints) -> Ints:
    """The strides, in elements, of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def view_shape_rule(rule: ViewRule) -> Callable[..., TensorSpec]:
    """The shape rule of a view."""

    def shape_rule(self: TensorSpec, *args: object, **kwargs: object) -> TensorSpec:
        spec = spec_of(self)
        layout = rule(ViewLayout(spec.shape, row_major_strides(spec.shape)), *args, **kwargs)
        if layout is None:
            raise OutOfBoundsError("a view of a contiguous tensor needs no copy")
        return TensorSpec(tuple(layout.sizes), spec.dtype, spec.device)

    return shape_rule


def check_within(name: str, view: ViewLayout, base: ViewLayout) -> None:
    """Check that a view addresses no memory outside of its base.

    Raises:
        OutOfBoundsError: it does.
    """
    if 0 in view.sizes:
        return
    low, high = extent(view)
    lowest, highest = extent(base)
    if 0 in base.sizes or low < lowest or high > highest:
        raise OutOfBoundsError(
            f"{name}: its rule addresses offsets {low} to {high} of memory with offsets {lowest} to {highest}"
        )


def extent(layout: ViewLayout) -> tuple[int, int]:
    """The lowest and the highest offset of an element."""
    reach = [(size - 1) * stride for size, stride in zip(layout.sizes, layout.strides, strict=True)]
    low, high = (sum(choose(r, 0) for r in reach) for choose in (min, max))
    return layout.offset + low, layout.offset + high
