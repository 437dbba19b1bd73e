"""Methods of PyTorch whose functions have their arguments in another order, or have no function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import special
from ..errors import ShapeError
from ..operators.declare.shape_rules import normalize_axis, spec_of
from ..operators.elementwise.selection import where as _where
from ..operators.shape.cutting import array_split
from ..operators.shape.views import sum_to
from ..registry.layouts import strided
from .creation import to_shape

if TYPE_CHECKING:
    from ..registry.types import Tensor, TensorLike


def polygamma(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of :func:`tandem.special.digamma`."""
    return special.polygamma(n, self)


def where(self: Tensor, condition: Tensor, y: TensorLike) -> Tensor:
    """The elements of the tensor where a condition is true, and those of ``y`` elsewhere.

    >>> import tandem as td
    >>> td.asarray([1, 2]).where(td.asarray([True, False]), 0).tolist()
    [1, 0]
    """
    return _where(condition, self, y)


def tensor_split(self: Tensor, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of a number of parts of almost one size, or cut at the given indices."""
    return array_split(self, indices_or_sections, dim)


def sum_to_size(self: Tensor, *size: int | Sequence[int]) -> Tensor:
    """The sum over the axes that broadcasting a tensor of a shape to this one's would repeat.

    Raises:
        ShapeError: a tensor of the shape does not broadcast to that of this one.

    >>> import tandem as td
    >>> td.ones((2, 3)).sum_to_size(1, 3).tolist()
    [[2.0, 2.0, 2.0]]
    """
    shape = to_shape(size)
    own = spec_of(self).shape
    tail = own[len(own) - len(shape) :]
    if len(shape) > len(own) or any(want not in (1, have) for want, have in zip(shape, tail)):
        raise ShapeError(f"sum_to_size: shape {shape} does not broadcast to {own}")
    return sum_to(self, shape)


def index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of the tensor with slices combined into its slices at indices along an axis.

    Args:
        self: a tensor of at least one axis.
        dim: the axis.
        index: a vector of integers.
        source: a tensor with a slice for each index.
        reduce: ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
        include_self: whether the former slices take part.

    >>> import tandem as td
    >>> td.asarray([2.0, 3.0]).index_reduce(0, td.asarray([1, 1]), td.asarray([5.0, 7.0]), "prod").tolist()
    [2.0, 105.0]
    """
    spec = spec_of(self)
    axis = normalize_axis("index_reduce", dim, len(spec.shape))
    shape = [1] * len(spec.shape)
    shape[axis] = -1
    indices = index.reshape(shape).expand(spec_of(source).shape)
    return self.scatter_reduce(axis, indices, source, reduce, include_self=include_self)


def dim_order(self: Tensor) -> tuple[int, ...]:
    """The axes in the order of their strides, the largest first."""
    return tuple(sorted(range(self.ndim), key=lambda axis: -self._strides[axis]))


def const_data_ptr(self: Tensor) -> int:
    """The address of the first element."""
    return self.data_ptr()


def untyped_storage(self: Tensor) -> object:
    """The memory that it shares with its views: its address and size in bytes."""
    return self.storage()


def sparse_dim(self: Tensor) -> int:
    """The number of axes that have indices: all of a sparse tensor, none of a dense one."""
    return 0 if self.layout == strided else self.ndim


def dense_dim(self: Tensor) -> int:
    """The number of axes without indices: none of a sparse tensor, all of a dense one."""
    return self.ndim if self.layout == strided else 0
