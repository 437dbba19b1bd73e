"""``tandem.torch.linalg``: the functions of ``tandem.linalg``, ``LinAlgError`` and ``vander``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import LinearAlgebraError as LinAlgError
from ..operators.creation import grids as _grids
from ..operators.declare.shape_rules import spec_of as _spec_of
from ..operators.shape.views import reshape as _reshape
from ..spellings.forwarding import forward_to as _forward_to

if TYPE_CHECKING:
    from ..registry.types import Tensor

__all__ = ["LinAlgError", "vander"]


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Vandermonde matrices: the powers 0 to N - 1 of the elements of vectors.

    Args:
        x: a tensor of numeric dtype and shape (..., n).
        N: the number of powers; None: n.

    Returns:
        A tensor of shape (..., n, N) and of the dtype of ``x``.

    >>> import tandem.torch as torch
    >>> torch.linalg.vander(torch.tensor([2, 3]), N=3).tolist()
    [[1, 2, 4], [1, 3, 9]]

    Source: ``torch.linalg.vander``.
    """
    shape = _spec_of(x).shape
    count = shape[-1] if N is None else N
    return _reshape(_grids.vander(_reshape(x, (-1,)), count, increasing=True), (*shape, count))


__getattr__, __dir__ = _forward_to(__name__, "linalg")
