"""Methods of PyTorch that change a tensor in place: its axes, its memory, or its elements by composed functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..eager.compiled import compile_writes_when_hot
from ..eager.tensor import forwards as _forwards
from ..eager.tensor.attributes import become_view
from ..eager.tensor.construct import asarray
from ..eager.tensor.inplace import check_fits, writes_directly
from ..eager.tensor.tensor import Tensor
from ..errors import ShapeError
from ..operators.declare.shape_rules import normalize_axis
from ..operators.shape.parts import t
from ..operators.shape.rearrange import expand_dims, squeeze, swapaxes
from ..operators.shape.views import reshape
from ..registry.values import TensorSpec
from . import complex_views, distances, special_functions
from .creation import to_shape
from .methods import index_reduce as _reduce_at
from .methods import polygamma as _polygamma

if TYPE_CHECKING:
    from ..registry.types import TensorLike


# -- axes --------------------------------------------------------------------------------------------------------------
def t_(self: Tensor) -> Tensor:
    """Exchange the two axes of a matrix in place, without a copy."""
    return become_view("t_", self, t, "t")


def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes in place, without a copy.

    >>> import tandem.torch as torch
    >>> torch.zeros(2, 3).transpose_(0, 1).shape
    (3, 2)
    """
    return become_view("transpose_", self, lambda x: swapaxes(x, dim0, dim1), "transpose")


def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two axes in place, without a copy."""
    return become_view("swapaxes_", self, lambda x: swapaxes(x, axis0, axis1), "swapaxes")


def swapdims_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes in place, without a copy."""
    return become_view("swapdims_", self, lambda x: swapaxes(x, dim0, dim1), "swapdims")


def squeeze_(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Remove axes of length 1 in place, all or the given ones; other axes stay.

    >>> import tandem.torch as torch
    >>> torch.zeros(1, 3).squeeze_(0).shape
    (3,)
    """
    given = range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = {normalize_axis("squeeze_", axis, self.ndim) for axis in given}
    removed = sorted(axis for axis in axes if self.shape[axis] == 1)
    return become_view("squeeze_", self, lambda x: squeeze(x, removed), "squeeze") if removed else self


def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """Insert an axis of length 1 in place.

    >>> import tandem.torch as torch
    >>> torch.zeros(3).unsqueeze_(0).shape
    (1, 3)
    """
    return become_view("unsqueeze_", self, lambda x: expand_dims(x, dim), "unsqueeze")


# -- memory ------------------------------------------------------------------------------------------------------------
def set_(self: Tensor, source: Tensor) -> Tensor:
    """Let the tensor share the memory, shape and strides of another one of the same dtype.

    >>> import tandem.torch as torch
    >>> torch.zeros(3).set_(torch.ones(2)).tolist()
    [1.0, 1.0]
    """
    self.data = source
    return self


def resize_(self: Tensor, *sizes: int | Sequence[int]) -> Tensor:
    """Change the shape in place; a larger tensor gets new memory, whose additional elements are zeros.

    >>> import tandem.torch as torch
    >>> torch.tensor([[1, 2], [3, 4]]).resize_(3).tolist()
    [1, 2, 3]
    """
    shape = to_shape(sizes)
    count = math.prod(shape)
    flat = reshape(self.detach(), (-1,))
    if count > flat.shape[0]:
        wider = flat.new_zeros((count,))
        wider[: flat.shape[0]] = flat
        flat = wider
    self.data = reshape(flat[:count], shape)
    return self


def resize_as_(self: Tensor, tensor: Tensor) -> Tensor:
    """Change the shape in place to that of another tensor, as :func:`resize_`."""
    return resize_(self, tensor.shape)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors have the same memory, shape and strides."""
    return (
        self.data_ptr() == tensor.data_ptr()
        and self.storage() is tensor.storage()
        and (self.shape, self._strides) == (tensor.shape, tensor._strides)
    )


# -- elements ----------------------------------------------------------------------------------------------------------
def fill_diagonal_(self: Tensor, fill_value: TensorLike, wrap: bool = False) -> Tensor:
    """Write a value to the diagonal, in place; ``wrap``: it begins again below the square part of a tall matrix.

    >>> import tandem.torch as torch
    >>> torch.zeros(2, 2).fill_diagonal_(3).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    if self.ndim < 2 or (self.ndim > 2 and len({*self.shape}) > 1):
        raise ShapeError(
            f"fill_diagonal_: needs a matrix, or more axes of equal lengths, not shape {self.shape}"
        )
    fill_value = asarray(fill_value).to(self.dtype)
    rows, columns = self.shape[:2]
    if self.ndim > 2:
        for at in range(rows):
            self[(at,) * self.ndim] = fill_value
        return self
    for start in range(0, rows, columns + 1) if wrap else (0,):
        part = self[start : start + columns]
        for at in range(min(part.shape)):
            part[at, at] = fill_value
    return self


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write values, or add them, at indices of the flattened tensor, in place.

    >>> import tandem.torch as torch
    >>> torch.zeros(2, 2).put_(torch.tensor([3]), torch.ones(1)).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    positions, values = reshape(index, (-1,)), reshape(source, (-1,))
    if type(self) is Tensor and self.is_contiguous():
        _forwards.index_put_(reshape(self, (-1,)), (positions,), values, accumulate)
        return self
    selected = reshape(self.clone(), (-1,)).at[positions]
    result = selected.add(values) if accumulate else selected.set(values)
    return self.copy_(reshape(result, self.shape))


def _writing(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The in-place variant of a function of a tensor."""

    @functools.wraps(function)
    def write(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        source = self.clone() if self.requires_grad else self
        result = function(source, *args, **kwargs)
        if writes_directly(self, result):
            self[...] = result
            return self
        check_fits(name, self, TensorSpec(result.shape, result.dtype))
        return self.copy_(result)

    first = (function.__doc__ or "").strip().partition("\n")[0]
    write.__doc__ = f"{first}\n\nIn place: writes the result into the tensor and returns it."
    write.__name__ = write.__qualname__ = name
    return compile_writes_when_hot(write)


conj_physical_ = _writing(complex_views.conj_physical, "conj_physical_")
digamma_ = _writing(_forwards.digamma, "digamma_")
erfinv_ = _writing(_forwards.erfinv, "erfinv_")
i0_ = _writing(special_functions.i0, "i0_")
igamma_ = _writing(special_functions.igamma, "igamma_")
igammac_ = _writing(special_functions.igammac, "igammac_")
index_reduce_ = _writing(_reduce_at, "index_reduce_")
lgamma_ = _writing(_forwards.lgamma, "lgamma_")
logit_ = _writing(_forwards.logit, "logit_")
mvlgamma_ = _writing(special_functions.mvlgamma, "mvlgamma_")
polygamma_ = _writing(_polygamma, "polygamma_")
renorm_ = _writing(distances.renorm, "renorm_")
xlogy_ = _writing(_forwards.xlogy, "xlogy_")
