"""Buffers as the stage of a kernel uses them: addresses, strides, and the order of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from ....lowering.fusion.loop_ir import Buffer
from ....named_tuple import NamedTuple
from .folds.reducers import Reducer, State
from .text import Function


class Use(NamedTuple):
    """A buffer in a stage: the address of the current row, and its strides over the stage's dimensions."""

    buffer: Buffer
    base: str
    strides: tuple[int, ...]

    def offset_along(self, f: Function, dim: int, index: str) -> Use:
        """Return the use with ``index`` along ``dim`` fixed."""
        step = self.strides[dim] * self.buffer.dtype.itemsize
        return Use(
            self.buffer,
            f.address(self.base, f.op(f"mul i64 {index}, {step}")) if step else self.base,
            self.strides,
        )


def split_state(items: Sequence[Reducer], values: Sequence[str]) -> list[State]:
    """Split carried values into one state per reduction."""
    result, at = [], 0
    for x in items:
        result.append(list(values[at : at + len(x.state)]))
        at += len(x.state)
    return result


def move_long_axis_last(
    shape: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the dimensions in an order whose last is long enough for vectors, if there is one."""
    if len(shape) < 2 or shape[-1] >= 8 or max(shape) < 64:
        return shape, strides
    longest = shape.index(max(shape))
    order = [d for d in range(len(shape)) if d != longest] + [longest]
    return tuple(shape[d] for d in order), [tuple(s[d] for d in order) for s in strides]
