"""Masks in subscripts: their positions, and reads and writes that need no positions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ... import lazy
from ...errors import UnsupportedError
from ...registry.dtypes import bool_
from ...registry.function import functions
from ...registry.schemas.binding import to_tensor_or_number
from ...registry.values import TensorBase, converters, traced_number_types
from ..creation.creation import full
from ..declare.shape_rules import spec_of
from ..elementwise.casting import astype, clone
from ..elementwise.selection import where
from ..shape.views import broadcast_to, reshape
from .slicing import check_storable
from .take import nonzero

if TYPE_CHECKING:
    from ...registry.types import Array, Tensor, TensorLike

_statistics = lazy.Module(".operators.reductions.statistics")

# Called with a mask that is a tensor: a function that returns its elements if a trace may rely on them, else None.
constant_mask_hooks: list[Callable[[Any], Array | None]] = []

# Called with two masks that are different objects: whether they are known to have the same elements.
equal_mask_hooks: list[Callable[[Any, Any], bool]] = []

# Called with a mask that is a tensor: the number of in-place writes into its memory.
mask_version_hooks: list[Callable[[Any], int]] = []


def is_mask(item: Any) -> bool:
    """Whether a part of a key is a mask, as a tensor or an array."""
    return isinstance(item, np.ndarray) or (isinstance(item, TensorBase) and spec_of(item).dtype is bool_)


def read_if_constant(mask: Tensor | Array) -> Tensor | Array:
    """The elements of a mask as an array if a trace may rely on them, because the mask is captured; else the mask."""
    if isinstance(mask, np.ndarray):
        return mask
    return next((array for read in constant_mask_hooks if (array := read(mask)) is not None), mask)


def mask_positions(mask: Tensor | Array) -> tuple[Tensor, ...]:
    """The positions of the true elements of a mask, one tensor for each of its axes; constants if they are known."""
    mask = read_if_constant(mask)
    if isinstance(mask, np.ndarray):
        return tuple(converters[np.ndarray](one) for one in mask.nonzero())
    return tuple(nonzero(mask))


class MaskedElements:
    """``x[mask]`` where the number of true elements is unknown: in a trace, and for a mask of a batch.

    It has no shape, so it is not a tensor. Elementwise operators apply to all elements of ``x``, with 1 where the mask
    is false, and a write at the same mask stores the others: ``x[mask] += 1``, ``x[mask] = 2 * y[mask] + z[mask]``. The
    same mask is the same tensor, not written to in between, or, in a trace, one that was computed alike:
    ``x[x > 0] = 1 / x[x > 0]``. ``sum``, ``mean``, ``prod``, ``any`` and ``all`` of all elements reduce those at the
    mask, in the order of all elements of ``x``. Every other use raises the error of a mask whose positions are unknown.

    Attributes:
        dense: a tensor with the elements at the mask, and others, in which the axes of the mask are consecutive.
        mask: the mask at the time of the read: a copy, since a write may change the tensor.
        axis: the first of its axes.
        fault: the error of other uses.
        source: the tensor that was the mask, and how often its memory had been written to.

    >>> import tandem as td
    >>> def f(x):
    ...     y = x * 1
    ...     y[y > 1] *= 10
    ...     return y
    >>> td.jit(f)(td.asarray([3.0, 1.0])).tolist()
    [30.0, 1.0]
    """

    __slots__ = ("axis", "dense", "fault", "mask", "source")

    def __init__(self, dense: Any, mask: Tensor | Array, axis: int, fault: UnsupportedError):
        self.dense, self.axis, self.fault = dense, axis, fault
        self.mask = mask.copy() if isinstance(mask, np.ndarray) else clone(mask)
        read = () if isinstance(mask, np.ndarray) else mask_version_hooks
        self.source = mask, [version_of(mask) for version_of in read]

    def align(self, value: Any) -> Any:
        """A value, or other elements at the same mask, for all elements of ``dense``.

        Raises:
            UnsupportedError: the value has an axis for the true elements, or the masks differ.
        """
        if type(value) is MaskedElements:
            (one, before), (two, now) = value.source, self.source
            is_same = one is two and before == now
            is_same = is_same or any(same(value.mask, self.mask) for same in equal_mask_hooks)
            if is_same and value.axis == self.axis and value._after == self._after:
                return value.dense
            raise self.fault
        covered, rank = len(self.mask.shape), len(self.dense.shape)
        aligned = _align_with_mask(to_tensor_or_number(value), covered, self._after, rank)
        if aligned is None:
            raise self.fault
        return aligned

    @property
    def _after(self) -> int:
        return len(self.dense.shape) - self.axis - len(self.mask.shape)

    def apply(self, function: Callable[..., Any], *values: object, swapped: bool = False) -> MaskedElements:
        """The results of an elementwise function of the elements and values."""
        given = [self.dense, *map(self.align, values)]
        result = copy(self)
        result.dense = function(*(given[::-1] if swapped else given))
        return result

    @classmethod
    def add_operator(cls, name: str, function: Callable[..., Any]) -> None:
        """Let an elementwise operator with a special method apply to the elements."""
        setattr(cls, f"__{name}__", lambda self, *values: self.apply(function, *values))
        setattr(cls, f"__r{name}__", lambda self, value: self.apply(function, value, swapped=True))

    def _fill_others(self, dense: Any, value: object) -> Any:
        return fill_others(dense, self.mask, self.axis, value)

    def sum(self) -> Tensor:
        """The sum of all elements at the mask."""
        return functions["td::sum"](self._fill_others(self.dense, 0))

    def prod(self) -> Tensor:
        """The product of all elements at the mask."""
        return functions["td::prod"](self._fill_others(self.dense, 1))

    def any(self) -> Tensor:
        """Whether an element at the mask is true."""
        return functions["td::any"](self._fill_others(self.dense, 0))

    def all(self) -> Tensor:
        """Whether all elements at the mask are true."""
        return functions["td::all"](self._fill_others(self.dense, 1))

    def mean(self) -> Tensor:
        """The mean of all elements at the mask; NaN if there are none."""
        wide = _statistics.widen_halves(self.dense)
        count = functions["td::sum"](broadcast_to(_expand_mask(self.mask, self._after), self.dense.shape))
        total = functions["td::sum"](self._fill_others(wide, 0))
        result: Tensor = _statistics.narrow_halves(total / astype(count, total.dtype), self.dense)
        return result

    def refuse(self, *_: object) -> NoReturn:
        """Raise the error of uses that need the number of true elements."""
        raise self.fault

    __array__ = __bool__ = __float__ = __getitem__ = __int__ = __iter__ = __len__ = __setitem__ = refuse
    __eq__ = __ge__ = __gt__ = __le__ = __lt__ = __matmul__ = __ne__ = __rmatmul__ = refuse
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.fault


converters[MaskedElements] = MaskedElements.refuse


def _expand_mask(mask: Tensor | Array, after: int) -> Tensor:
    """A copy of a mask, with axes of length 1 for those after it: a derivative needs the mask as it is now."""
    whole: Tensor = converters[np.ndarray](mask) if isinstance(mask, np.ndarray) else clone(mask)
    return reshape(whole, (*whole.shape, *(1,) * after)) if after else whole


def fill_others(x: Any, mask: Tensor | Array, axis: int, value: object) -> Tensor:
    """A copy of a tensor with a value where a mask of the axes from ``axis`` on is false.

    With 1 there, the derivative of a function of the elements at the mask is not NaN because of others.
    """
    spec = spec_of(x)
    wide = _expand_mask(mask, len(spec.shape) - axis - len(mask.shape))
    return where(wide, x, full((), value, dtype=spec.dtype, device=spec.device))


def write_at_mask(
    view: Any, mask: Tensor | Array, axis: int, value: Any, combine: Callable[[Any, Any], Any] | None
) -> Tensor | None:
    """A copy of a tensor with values written at a mask, as a ``where``.

    Args:
        view: the tensor.
        mask: a mask of consecutive axes.
        axis: the first of them.
        value: a number or a tensor that broadcasts to the selected elements.
        combine: combines elements with values; None: the values replace them.

    Returns:
        None if the value has an axis for the true elements, whose number is needed then.

    Raises:
        ShapeError, DTypeError: the value does not fit.
    """
    after = len(view.shape) - axis - len(mask.shape)
    if type(value) is MaskedElements:
        aligned = MaskedElements(view, mask, axis, value.fault).align(value)
    else:
        aligned = _align_with_mask(to_tensor_or_number(value), len(mask.shape), after, len(view.shape))
    if aligned is None:
        return None
    spec = spec_of(view)
    check_storable("index_put", spec, aligned, spec.shape, combine is not None)
    if combine is not None:
        aligned = combine(fill_others(view, mask, axis, 1), aligned)
        check_storable("index_put", spec, aligned, spec.shape)
    if type(aligned) is int and spec.dtype.is_inexact:
        aligned = float(aligned)  # rounded twice, as by NumPy
    if isinstance(aligned, TensorBase):
        aligned = astype(aligned, spec.dtype, copy=False)
    else:
        aligned = full((), aligned, dtype=spec.dtype, device=spec.device)
    return where(_expand_mask(mask, after), aligned, view)


def _align_with_mask(value: Any, covered: int, after: int, rank: int) -> Any:
    """A value with as many axes as a mask covers, instead of the axis of the true elements.

    Args:
        value: broadcasts to the selection: the axes before the mask, one for the true elements, the axes after it.
        covered, after, rank: the number of axes of the mask, of those after it, and of all axes.

    Returns:
        None if the value's axis of the true elements is not of length 1.
    """
    value = without_leading_ones(value, rank - covered + 1)
    shape = spec_of(value).shape if isinstance(value, TensorBase) else ()
    axis = len(shape) - 1 - after
    if axis < 0:
        return value
    if shape[axis] != 1:
        return None
    return value if covered == 1 else reshape(value, (*shape[:axis], *(1,) * covered, *shape[axis + 1 :]))


def without_leading_ones(value: TensorLike, rank: int) -> TensorLike:
    """A value without excess leading axes of length 1, which assignment allows."""
    if type(value) in traced_number_types:
        return value
    shape = spec_of(value).shape if isinstance(value, TensorBase) else np.shape(value)
    extra = len(shape) - rank
    if extra <= 0 or any(size != 1 for size in shape[:extra]):
        return value
    return reshape(value, shape[extra:])
