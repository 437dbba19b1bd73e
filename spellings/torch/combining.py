"""Tensors made of several: block_diag, broadcast_tensors, cartesian_prod, combinations."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ..eager.tensor.construct import asarray
from ..errors import ArgumentError, ShapeError
from ..operators.declare.shape_rules import spec_of
from ..operators.indexing.take import take
from ..operators.shape.grids import broadcast_arrays, meshgrid
from ..operators.shape.joining import stack
from ..operators.shape.parts import block_diag as _block_diag
from ..operators.shape.views import reshape
from ..registry.dtypes import int64

if TYPE_CHECKING:
    from ..registry.types import Tensor


def block_diag(*tensors: Tensor) -> Tensor:
    """The matrix with the given matrices along its diagonal.

    >>> import tandem.torch as torch
    >>> torch.block_diag(torch.ones(1, 1), torch.ones(1, 2)).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    return _block_diag(tensors)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Views of tensors in their common shape: :func:`tandem.broadcast_arrays`."""
    return broadcast_arrays(*tensors)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """The tuples of one element of each vector, as rows; of one vector, the vector.

    >>> import tandem.torch as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3])).tolist()
    [[1, 3], [2, 3]]
    """
    if not tensors:
        raise ArgumentError("cartesian_prod takes one vector or more")
    if len(tensors) == 1:
        return tensors[0]
    return reshape(stack(meshgrid(*tensors, indexing="ij"), -1), (-1, len(tensors)))


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """The combinations of ``r`` elements of a vector, as rows.

    Raises:
        ShapeError: the tensor is not a vector.

    >>> import tandem.torch as torch
    >>> torch.combinations(torch.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    shape = spec_of(input).shape
    if len(shape) != 1:
        raise ShapeError(f"combinations: needs a vector, not shape {shape}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(shape[0]), r))
    if not rows or not r:
        return input[:0].reshape(0, r) if r else input[:0]
    return take(input, asarray(rows, int64, device=spec_of(input).device))
