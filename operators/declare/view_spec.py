"""Views as one rule each: from the sizes, strides and offset of a tensor to those of the view.

NumPy's kernel, meta tensors, functionalization, lowering, CUDA and native entries read the rule of an operator's
declaration; a rule computes with ``+``, ``-``, ``*``, exact ``//`` and comparisons only, so that it works on symbolic
sizes (:mod:`...registry.dims`) as well as on ints.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import OutOfBoundsError
from ...named_tuple import NamedTuple
from ...registry.values import TensorSpec
from .shape_rules import spec_of

if TYPE_CHECKING:
    from ...registry.dims import Dim

Sizes: TypeAlias = "tuple[Dim, ...]"


class ViewLayout(NamedTuple):
    """The addresses of the elements of a view in its memory.

    Attributes:
        sizes: the size of each axis.
        strides: the distance between neighbours along each axis, in any unit.
        offset: the distance of the first element from the start of the memory, in the same unit.
        itemsize: the bytes of an element, for rules that change the dtype: these compute in elements of the tensor,
            and return elements of the view. 0 in the layouts that other rules take and return.
    """

    sizes: Sizes
    strides: Sizes
    offset: Dim = 0
    itemsize: int = 0


ViewRule = Callable[..., ViewLayout | None]
"""``rule(layout, *arguments)``; None where the elements have to be copied."""


class Piece(NamedTuple):
    """A part of a result that is copied from an argument.

    Attributes:
        target: the addresses of the part, which is a view of the result.
        source: a tensor or a number, which broadcasts to the part.
        adds: whether the source is added to the elements that earlier pieces have written.
    """

    target: ViewLayout
    source: Any
    adds: bool = False

    @property
    def size(self) -> Dim:
        """Number of elements."""
        return math.prod(self.target.sizes)


class PieceSpec:
    """The parts of an operator's result that are copies of its arguments, which lowering compiles from.

    Attributes:
        rule: ``rule(whole, *arguments)`` with the layout of the result: its pieces in the order of writing, or None if
            the elements are computed in another way for these arguments.
        updates: whether there are two pieces, the whole result and a part that is written over it: the result may be
            stored in the memory of the first argument. Otherwise pieces do not overlap.
    """

    __slots__ = ("rule", "updates")

    def __init__(self, rule: Callable[..., list[Piece] | None], *, updates: bool = False):
        self.rule, self.updates = rule, updates


def row_major_strides(sizes: Sizes) -> Sizes:
    """The strides, in elements, of a contiguous tensor."""
    strides: list[Dim] = []
    step: Dim = 1
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
    old, new = base.itemsize or 1, view.itemsize or base.itemsize or 1
    if 0 in base.sizes or low * new < lowest * old or (high + 1) * new > (highest + 1) * old:
        raise OutOfBoundsError(
            f"{name}: its rule addresses offsets {low} to {high} of memory with offsets {lowest} to {highest}"
        )


def extent(layout: ViewLayout) -> tuple[Dim, Dim]:
    """The lowest and the highest offset of an element."""
    reach = [(size - 1) * stride for size, stride in zip(layout.sizes, layout.strides, strict=True)]
    high = sum(r for r in reach if r >= 0)
    return layout.offset + sum(reach) - high, layout.offset + high
