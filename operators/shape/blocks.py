"""block: tensors assembled from nested lists of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, ValueArgumentError
from ..declare.array_arguments import accept_arrays
from ..declare.shape_rules import spec_of
from ..elementwise.casting import clone
from .joining import concat, numbers_to_tensors
from .views import reshape

if TYPE_CHECKING:
    from ...registry.types import Tensor


def _nesting(blocks: Any) -> int:  # noqa: ANN401
    """The depth of nested lists.

    Raises:
        ArgumentError: a list is empty.
        ValueArgumentError: the depths differ.
    """
    if not isinstance(blocks, list):
        return 0
    if not blocks:
        raise ArgumentError("block: a list is empty")
    depths = {_nesting(one) for one in blocks}
    if len(depths) > 1:
        raise ValueArgumentError(f"block: the depths of nested lists differ: {sorted(depths)}")
    return 1 + depths.pop()


def _join_blocks(blocks: Any, depth: int, rank: int, tensors: Iterator[Tensor]) -> Tensor:  # noqa: ANN401
    """Blocks of ``rank`` axes joined: the innermost lists along the last axis; ``tensors`` are the leaves in order."""
    if depth == 0:
        blocks = next(tensors)
        shape = spec_of(blocks).shape
        return reshape(blocks, (1,) * (rank - len(shape)) + shape)
    return concat([_join_blocks(one, depth - 1, rank, tensors) for one in blocks], -depth)


def _leaves(blocks: Any) -> list[Any]:  # noqa: ANN401
    return [leaf for one in blocks for leaf in _leaves(one)] if isinstance(blocks, list) else [blocks]


@accept_arrays
def block(arrays: Sequence[object] | Tensor) -> Tensor:
    """A tensor assembled from nested lists of blocks.

    Args:
        arrays: nested lists of tensors and numbers: the innermost lists are joined along the last axis, the next along
            the one before it, and so on.

    Returns:
        A new tensor of the promoted dtype.

    Raises:
        ArgumentError: a list is empty.
        ValueArgumentError: the lists are not nested equally deep.
        ShapeError: the shapes of the blocks do not fit.

    >>> import tandem as td
    >>> td.block([[td.eye(2), td.zeros((2, 1))], [td.ones((1, 2)), 5.0]]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 5.0]]
    """
    depth, leaves = _nesting(arrays), numbers_to_tensors(_leaves(arrays))
    rank = max(depth, *(len(spec_of(leaf).shape) for leaf in leaves))
    result = _join_blocks(arrays, depth, rank, iter(leaves))
    return result if depth else clone(result)
