"""tril and triu."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import ALL
from ..creation.creation import arange
from ..declare.kinds import composite
from ..declare.shape_rules import spec_of
from ..elementwise.comparison import ge, le
from ..elementwise.selection import where
from .views import reshape

if TYPE_CHECKING:
    from ...registry.types import Tensor

_DOC = """

    Args:
        self: a tensor of shape ``(..., M, N)``.
        k: the last diagonal that is kept; 0 is the main one, positive offsets are above it.

    Returns:
        A new tensor of the same shape and dtype.

    Raises:
        ShapeError: there are fewer than two axes.
"""


def _keep_triangle(name: str, self: Tensor, k: int, compare: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The elements where ``compare(column - k, row)`` is true, zero elsewhere."""
    shape = spec_of(self).shape
    if len(shape) < 2:
        raise ShapeError(f"{name}: needs at least two axes, not shape {shape}")
    rows, columns = (arange(size, device=spec_of(self).device) for size in shape[-2:])
    zero = False if spec_of(self).dtype.kind == "b" else 0
    return where(compare(columns - k, reshape(rows, (shape[-2], 1))), self, zero)


@composite(
    "tril(Tensor self, *, int k=0) -> Tensor",
    doc="The lower triangles of a stack of matrices, zero above."
    + _DOC
    + "\n    >>> td.tril(td.ones((2, 2))).tolist()\n    [[1.0, 0.0], [1.0, 1.0]]\n",
    reference="numpy.tril",
    samples="samples.shape.triangles_samples",
    errors="samples.shape.triangles_errors",
    dtypes=ALL,
    inplace=True,
)
def tril(self: Tensor, *, k: int) -> Tensor:
    return _keep_triangle("tril", self, k, le)


@composite(
    "triu(Tensor self, *, int k=0) -> Tensor",
    doc="The upper triangles of a stack of matrices, zero below."
    + _DOC.replace("the last diagonal", "the first diagonal")
    + "\n    >>> td.triu(td.ones((2, 2))).tolist()\n    [[1.0, 1.0], [0.0, 1.0]]\n",
    reference="numpy.triu",
    samples="samples.shape.triangles_samples",
    errors="samples.shape.triangles_errors",
    dtypes=ALL,
    inplace=True,
)
def triu(self: Tensor, *, k: int) -> Tensor:
    return _keep_triangle("triu", self, k, ge)
