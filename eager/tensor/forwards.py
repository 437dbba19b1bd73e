"""Functions of ``td.linalg`` and ``td.special`` under PyTorch's names in ``td``, and forms of indexing as methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .dunders import by_name
from .inplace import write_rows
from .tensor import Tensor

if TYPE_CHECKING:
    from ...registry.types import TensorLike


# -- linear algebra ----------------------------------------------------------------------------------------------------
def det(self: Tensor) -> Tensor:
    """The determinants of a stack of square matrices: :func:`tandem.linalg.det`."""
    return by_name("linalg_det")(self)


def inverse(self: Tensor) -> Tensor:
    """The inverses of a stack of square matrices: :func:`tandem.linalg.inv`."""
    return by_name("linalg_inv")(self)


def matrix_power(self: Tensor, n: int) -> Tensor:
    """The powers of a stack of square matrices: :func:`tandem.linalg.matrix_power`."""
    return by_name("linalg_matrix_power")(self, n)


def pinverse(self: Tensor) -> Tensor:
    """The pseudoinverses of a stack of matrices: :func:`tandem.linalg.pinv`."""
    return by_name("linalg_pinv")(self)


# -- special functions -------------------------------------------------------------------------------------------------
def digamma(self: Tensor) -> Tensor:
    """The derivative of `lgamma`: :func:`tandem.special.digamma`."""
    return by_name("special_digamma")(self)


def erfinv(self: Tensor) -> Tensor:
    """The inverse of the error function: :func:`tandem.special.erfinv`."""
    return by_name("special_erfinv")(self)


def lgamma(self: Tensor) -> Tensor:
    """The logarithm of the magnitude of the gamma function: :func:`tandem.special.gammaln`."""
    return by_name("special_gammaln")(self)


def logit(self: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)): :func:`tandem.special.logit`, of x limited to the interval from ``eps`` to ``1 - eps``."""
    return by_name("special_logit")(self if eps is None else by_name("clip")(self, eps, 1 - eps))


def xlogy(self: Tensor, other: TensorLike) -> Tensor:
    """self * log(other), and 0 where ``self`` is 0: :func:`tandem.special.xlogy`."""
    return by_name("special_xlogy")(self, other)


# -- indexing ----------------------------------------------------------------------------------------------------------
def select(self: Tensor, axis: int, index: int) -> Tensor:
    """The view of the slice at one position along an axis, which is removed."""
    return by_name("narrow")(self, axis, index, 1).squeeze(axis)


def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where a mask is true, as a vector; the shapes broadcast."""
    shape = by_name("logical_or")(mask, by_name("zeros_like")(self, dtype="bool")).shape
    return self.expand(shape)[mask.expand(shape)]


def index_put(
    self: Tensor, indices: Sequence[Tensor], values: TensorLike, accumulate: bool = False
) -> Tensor:
    """A copy of the tensor with values written, or added, to the elements that index tensors select."""
    selected = self.at[tuple(indices)]
    return selected.add(values) if accumulate else selected.set(values)


def index_put_(
    self: Tensor, indices: Sequence[Tensor], values: TensorLike, accumulate: bool = False
) -> Tensor:
    """Write values, or add them, to the elements that index tensors select; return the tensor."""
    is_single = len(indices) == 1 and isinstance(indices[0], Tensor)
    key: object = indices[0] if is_single else tuple(indices)
    if accumulate:
        return _add_at(self, key, values)
    self[key] = values
    return self


def _add_at(self: Tensor, key: object, values: TensorLike) -> Tensor:
    """Add values to the elements at a key, of all that are at one position; return the tensor."""
    written = None
    if isinstance(key, Tensor) and isinstance(values, Tensor) and key.ndim == 1:
        written = write_rows(self, 0, key, values, True)
    return self.copy_(self.at[key].add(values)) if written is None else written
