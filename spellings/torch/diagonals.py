"""Diagonals of matrices, and tensors with a part replaced: diag_embed, diagonal_scatter, select_scatter, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.compiled import compile_when_hot
from ..errors import ShapeError
from ..operators.creation.creation import arange, eye
from ..operators.declare.shape_rules import normalize_axes, spec_of
from ..operators.elementwise.casting import clone
from ..operators.elementwise.selection import clip, where
from ..operators.indexing.take import take
from ..operators.shape.parts import narrow
from ..operators.shape.rearrange import expand_dims, moveaxis
from ..operators.shape.repeating import tile

if TYPE_CHECKING:
    from ..registry.types import Tensor


def _spread(values: Tensor, rows: int, columns: int, offset: int) -> tuple[Tensor, Tensor]:
    """A mask of a diagonal, and matrices with the last axis of ``values`` on it; other elements are arbitrary."""
    spec = spec_of(values)
    side = rows if offset >= 0 else columns
    positions = clip(arange(side, device=spec.device), 0, max(spec.shape[-1] - 1, 0))
    mask = eye(rows, columns, k=offset, dtype="bool", device=spec.device)
    return mask, expand_dims(take(values, positions, -1), -1 if offset >= 0 else -2)


@compile_when_hot
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices whose diagonals are the last axis of the tensor, along two new axes.

    >>> import tandem.torch as torch
    >>> torch.diag_embed(torch.tensor([[1, 2]])).tolist()
    [[[1, 0], [0, 2]]]
    """
    shape = spec_of(input).shape
    axes = normalize_axes("diag_embed", (dim1, dim2), len(shape) + 1)
    side = shape[-1] + abs(offset)
    if not shape[-1]:
        input = tile(input, (1,)).new_zeros((*shape[:-1], 1))
    mask, spread = _spread(input, side, side, offset)
    if not shape[-1]:
        mask = mask & False
    return moveaxis(where(mask, spread, 0), (-2, -1), axes)


@compile_when_hot
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of the tensor with ``src`` on a diagonal of its matrices.

    Raises:
        ShapeError: ``src`` does not have the shape of the diagonal.

    >>> import tandem.torch as torch
    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(1), 1).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    shape = spec_of(input).shape
    axes = normalize_axes("diagonal_scatter", (dim1, dim2), len(shape))
    matrices = moveaxis(input, axes, (-2, -1))
    *lead, rows, columns = spec_of(matrices).shape
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    _check_source("diagonal_scatter", src, (*lead, count))
    if not count:
        return clone(input)
    mask, spread = _spread(src, rows, columns, offset)
    return moveaxis(where(mask, spread, matrices), (-2, -1), axes)


def _check_source(name: str, src: Tensor, shape: tuple[int, ...]) -> None:
    if spec_of(src).shape != shape:
        raise ShapeError(
            f"{name}: src has the shape of the part that it replaces, {shape}, not {spec_of(src).shape}"
        )


def _write(name: str, input: Tensor, src: Tensor, dim: int, index: int | slice) -> Tensor:
    (axis,) = normalize_axes(name, (dim,), len(spec_of(input).shape))
    selected = (*(slice(None),) * axis, index)
    _check_source(name, src, input[selected].shape)
    return input.at[selected].set(src)


@compile_when_hot
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of the tensor with ``src`` at one index along an axis.

    >>> import tandem.torch as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    return _write("select_scatter", input, src, dim, index)


@compile_when_hot
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of the tensor with ``src`` in a slice of an axis.

    >>> import tandem.torch as torch
    >>> torch.slice_scatter(torch.zeros(4), torch.ones(2), start=1, end=3).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    return _write("slice_scatter", input, src, dim, slice(start, end, step))


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of a slice of an axis."""
    return clone(narrow(input, dim, start, length))
