"""Cutting, repeating and indexing with PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, ShapeError
from ..operators.contraction.kron import cross as _cross
from ..operators.declare.shape_rules import normalize_axis, spec_of
from ..operators.elementwise.selection import where as _where
from ..operators.indexing.take import nonzero as _nonzero
from ..operators.shape import rearrange, turning
from ..operators.shape.cutting import array_split
from ..operators.shape.grids import meshgrid as _meshgrid
from ..operators.shape.joining import stack
from ..operators.shape.parts import narrow
from ..operators.shape.rearrange import swapaxes
from ..operators.shape.repeating import repeat_ints
from ..operators.shape.splitting import split_dim
from ..registry.function import accept_options

if TYPE_CHECKING:
    from ..registry.types import Tensor


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of a given size, the last perhaps smaller, or of the given sizes.

    >>> import tandem.torch as torch
    >>> [part.tolist() for part in torch.split(torch.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    return split_dim(tensor, split_size_or_sections, dim)


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:  # noqa: ANN401
    """Views of a number of parts of almost one size, or cut at the given indices."""
    return array_split(input, indices_or_sections, dim)


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two axes exchanged."""
    return swapaxes(input, dim0, dim1)


def repeat(input: Tensor, *repeats: Any) -> Tensor:  # noqa: ANN401
    """The tensor tiled, as PyTorch's method ``repeat``; the elements one by one: ``repeat_interleave``.

    Raises:
        ShapeError: there are fewer numbers than axes.
    """
    counts = tuple(repeats[0]) if len(repeats) == 1 and isinstance(repeats[0], (tuple, list)) else repeats
    return repeat_ints(input, counts)


@accept_options("as_tuple")
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The indices of elements that are not zero, one row for each; with ``as_tuple`` one tensor for each axis.

    >>> import tandem.torch as torch
    >>> torch.nonzero(torch.tensor([[1, 0], [0, 3]])).tolist()
    [[0, 0], [1, 1]]
    """
    indices = _nonzero(input)
    return indices if as_tuple else stack(indices, 1)


def where(condition: Tensor, *values: Any) -> Any:  # noqa: ANN401
    """Elements of the second or third argument; of a condition alone the indices where it holds, one tensor an axis.

    Raises:
        ArgumentError: there is one value only.
    """
    if not values:
        return _nonzero(condition)
    if len(values) != 2:
        raise ArgumentError(f"where takes a condition and two values, not {len(values)} of them")
    return _where(condition, *values)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:  # noqa: ANN401
    """Grids of coordinates; the first tensor is along the first axis, in NumPy along the second."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    return tuple(_meshgrid(*given, indexing=indexing))


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross products along ``dim``; None: along the first axis of length 3.

    Raises:
        ShapeError: no axis has length 3.
    """
    if dim is None:
        shape = spec_of(input).shape
        if 3 not in shape:
            raise ShapeError(f"cross: no axis of shape {shape} has length 3")
        dim = shape.index(3)
    return _cross(input, other, axis=dim)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The view of the slice at one position along an axis, which is removed.

    >>> import tandem.torch as torch
    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 1, 0).tolist()
    [1, 3]
    """
    return rearrange.squeeze(narrow(input, dim, index, 1), dim)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return spec_of(input).size


def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """A view without axes of length 1: all of them, or those of ``dim`` that have this length.

    >>> import tandem.torch as torch
    >>> torch.squeeze(torch.ones(1, 3), 0).shape, torch.squeeze(torch.ones(1, 3), 1).shape
    ((3,), (1, 3))

    Source: ``torch.squeeze``.
    """
    shape = spec_of(input).shape
    given = range(len(shape)) if dim is None else (dim,) if isinstance(dim, int) else dim
    axes = [normalize_axis("squeeze", axis, len(shape)) for axis in given]
    return rearrange.squeeze(input, tuple(axis for axis in axes if shape[axis] == 1))


def flip(input: Tensor, *axes: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """A copy with the order of the elements along some axes reversed; ``td.flip`` returns a view.

    Args:
        input: any tensor.
        axes: the axes, as numbers or as one sequence.
        dims: the axes as a keyword.

    >>> import tandem.torch as torch
    >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), dims=(1,)).tolist()
    [[2, 1], [4, 3]]

    Source: ``torch.flip``.
    """
    along = dims if dims is not None else axes[0] if len(axes) == 1 else axes
    return rearrange.flip(input, along).clone()


def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns in reverse order; ``td.fliplr`` returns a view. Source: ``torch.fliplr``."""
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """A copy with the rows in reverse order; ``td.flipud`` returns a view. Source: ``torch.flipud``."""
    return flip(input, 0)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy turned by ``k`` quarter turns; ``td.rot90`` returns a view. Source: ``torch.rot90``."""
    return turning.rot90(input, k, tuple(dims)).clone()
