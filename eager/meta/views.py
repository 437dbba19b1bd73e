"""The strides of views of meta tensors, computed as NumPy does for arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...operators.indexing.slicing import plan_strides
from ...registry.values import TensorSpec
from .tensor import MetaTensor, meta_view, row_major

if TYPE_CHECKING:
    from ...registry.types import ShapeLike

Ints = tuple[int, ...]


def reshaped_strides(shape: Ints, strides: Ints, wanted: Ints) -> Ints | None:
    """The strides of a reshape that needs no copy, or None if it needs one.

    Axes that lie in memory like one are a run; each run must split exactly into axes of the wanted shape.
    """
    if 0 in shape:
        return row_major(wanted)
    runs = _runs(shape, strides)
    left, step = runs.pop(0)
    steps: list[int] = []
    for size in reversed(wanted):
        if left == 1 and size != 1:
            left, step = runs.pop(0)
        if left % size:
            return None
        steps.append(step)
        left, step = left // size, step * size
    return tuple(reversed(steps))


def _runs(shape: Ints, strides: Ints) -> list[tuple[int, int]]:
    """(elements, step) of each run of axes, the innermost first."""
    runs = [(1, 1)]
    for size, step in zip(reversed(shape), reversed(strides)):
        elements, inner = runs[-1]
        if size == 1:
            continue
        if elements == 1:
            runs[-1] = (size, step)
        elif step == elements * inner:
            runs[-1] = (elements * size, inner)
        else:
            runs.append((size, step))
    return runs


def _reshape(x: MetaTensor, spec: TensorSpec, shape: ShapeLike) -> MetaTensor | None:
    strides = reshaped_strides(x.shape, x.strides, spec.shape)
    return None if strides is None else meta_view(x, spec.shape, strides, x.storage_offset)


def _permute(x: MetaTensor, spec: TensorSpec, axes: Ints) -> MetaTensor:
    return meta_view(x, spec.shape, tuple(x.strides[axis] for axis in axes), x.storage_offset)


def _broadcast_to(x: MetaTensor, spec: TensorSpec, shape: ShapeLike) -> MetaTensor:
    lead = len(spec.shape) - len(x.shape)
    strides = tuple(
        0 if old != new else step for old, new, step in zip(x.shape, spec.shape[lead:], x.strides)
    )
    return meta_view(x, spec.shape, (0,) * lead + strides, x.storage_offset)


def _basic_index(x: MetaTensor, spec: TensorSpec, plan: tuple[object, ...]) -> MetaTensor:
    strides, first = plan_strides(plan, x.strides)
    return meta_view(x, spec.shape, strides, x.storage_offset + first)


def _contiguous(x: MetaTensor, spec: TensorSpec) -> MetaTensor | None:
    return x._alias() if x.is_contiguous() else None


# view operator -> the view of a meta tensor, given the result's spec; None where memory would be copied
VIEWS: dict[str, Callable[..., MetaTensor | None]] = {
    "td::reshape": _reshape,
    "td::permute": _permute,
    "td::broadcast_to": _broadcast_to,
    "td::basic_index": _basic_index,
    "td::contiguous": _contiguous,
    "td::stop_gradient": lambda x, spec: x._alias(),
}
