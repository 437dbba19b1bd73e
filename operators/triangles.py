"""Triangles of matrices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import ShapeError
from ..registry.dtypes import ALL, DType
from .comparison import ge, le
from .creation import arange
from .declare import Bad, Draw, Sample
from .kinds import LAYOUTS, composite
from .rules import spec_of
from .selection import where
from .views import reshape

_DOC = """

    Args:
        self: a tensor of shape ``(..., M, N)``.
        k: the last diagonal that is kept; 0 is the main one, positive ones lie above it.

    Returns:
        A new tensor of the same shape and dtype.

    Raises:
        ShapeError: there are fewer than two axes.
"""


def _samples(dtype: DType) -> Iterable[Sample]:
    for layout in LAYOUTS:
        yield Sample((Draw((3, 4), layout=layout),))
    for k in (1, -1, 9, -9):
        yield Sample((Draw((2, 3, 3)),), {"k": k})
    yield Sample((Draw((0, 2)),))


def _errors() -> Iterable[Bad]:
    yield Bad((Draw((3,)),), ValueError, "two axes")
    yield Bad((Draw((3, 3)),), TypeError, "'k' must be an int", {"k": 0.5})


def _kept(name: str, self: Any, k: int, compare: Any) -> Any:
    """The elements whose column compares so with their row, zero elsewhere."""
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
    samples=_samples,
    errors=_errors,
    dtypes=ALL,
)
def tril(self: Any, *, k: int) -> Any:
    return _kept("tril", self, k, le)


@composite(
    "triu(Tensor self, *, int k=0) -> Tensor",
    doc="The upper triangles of a stack of matrices, zero below."
    + _DOC.replace("the last diagonal", "the first diagonal")
    + "\n    >>> td.triu(td.ones((2, 2))).tolist()\n    [[1.0, 1.0], [0.0, 1.0]]\n",
    reference="numpy.triu",
    samples=_samples,
    errors=_errors,
    dtypes=ALL,
)
def triu(self: Any, *, k: int) -> Any:
    return _kept("triu", self, k, ge)
