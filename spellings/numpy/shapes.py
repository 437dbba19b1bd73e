"""Joining, reshaping, clipping and indexing with NumPy's arguments."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor import construct
from ..eager.tensor.tensor import Tensor
from ..errors import DTypeError, ValueArgumentError
from ..operators.creation import creation
from ..operators.declare.shape_rules import is_tensor, normalize_axis, spec_of
from ..operators.elementwise import comparison, elementary, number_parts, rounding, scaling, selection
from ..operators.indexing import take as taking
from ..operators.shape import joining, rearrange, repeating, stacking, views
from ..registry.dtype_functions import can_cast
from ..registry.dtypes import as_dtype, bool_
from ..registry.values import traced_number_types
from .array_likes import name_operator
from .creation import asarray

if TYPE_CHECKING:
    from ..registry.types import DTypeLike


def _with_cast(join: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that joins tensors, with the arguments ``dtype`` and ``casting``."""

    @name_operator(join, "dtype", "casting")
    @wraps(join, updated=())
    def joined(
        arrays: Sequence[Tensor],
        *args: object,
        dtype: DTypeLike | None = None,
        casting: str = "same_kind",
        **kwargs: object,
    ) -> Tensor:
        if dtype is None:
            return join(arrays, *args, **kwargs)
        target, tensors = as_dtype(dtype), [construct.asarray(array) for array in arrays]
        for tensor in tensors:
            if casting != "unsafe" and not can_cast(tensor, target, casting):
                raise DTypeError(
                    f"{join.__name__}: cannot cast {tensor.dtype} to dtype={target} (casting={casting!r})"
                )
        return join([tensor.astype(target) for tensor in tensors], *args, **kwargs)

    return joined


concat = concatenate = _with_cast(joining.concat)
stack = _with_cast(joining.stack)
hstack = _with_cast(stacking.hstack)
vstack = _with_cast(stacking.vstack)


@name_operator(views.reshape, "order", "copy", takes_none=True, most=2)
def reshape(a: Tensor, shape: int | Sequence[int], order: str = "C", *, copy: bool | None = None) -> Tensor:
    """The elements of ``a`` in another shape.

    Args:
        a: a tensor.
        shape: the lengths of the axes; -1: what is left of the elements.
        order: "C": the last axis changes fastest, in ``a`` and in the result; "F": the first axis.
        copy: whether to copy; None: if it is needed.

    Source: ``numpy.reshape``.

    >>> import tandem.numpy as np
    >>> np.reshape(np.arange(6), (2, 3), order="F").tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    if order not in (None, "C", "A", "K", "F"):
        raise ValueArgumentError(f"reshape: order must be 'C', 'F' or 'A', not {order!r}")
    if order != "F":
        return views.reshape(a, shape) if copy is None else views.reshape(a, shape, copy=copy)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return _reverse(views.reshape(_reverse(a), sizes[::-1], copy=copy))


def _reverse(x: Tensor) -> Tensor:
    return rearrange.transpose(x)


@name_operator(rearrange.flatten, "order", takes_none=True, most=1)
def ravel(a: Tensor, order: str = "C") -> Tensor:
    """The elements of ``a`` in one axis; ``order`` as for :func:`reshape`. Source: ``numpy.ravel``."""
    return reshape(a, (-1,), order)


@name_operator(selection.clip, "a_min", "a_max", "min", "max", "out")
def clip(
    a: Tensor,
    a_min: Tensor | float | None = None,
    a_max: Tensor | float | None = None,
    out: Tensor | None = None,
    *,
    min: Tensor | float | None = None,
    max: Tensor | float | None = None,
) -> Tensor:
    """The elements limited to an interval, whose ends have two names. Source: ``numpy.clip``."""
    low, high = min if a_min is None else a_min, max if a_max is None else a_max
    return selection.clip(a, low, high) if out is None else selection.clip(a, low, high, out=out)


@name_operator(elementary.angle, "deg")
def angle(z: Tensor, deg: bool = False) -> Tensor:
    """The angles of complex numbers, in radians or degrees. Source: ``numpy.angle``."""
    result = elementary.angle(z)
    return scaling.rad2deg(result) if deg else result


def round(a: Tensor, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """The elements rounded to a number of decimals, halves to even. Source: ``numpy.round``."""
    return number_parts.around(a, decimals, out=out) if decimals else rounding.round(a, out=out)


around = round


@name_operator(taking.take, "out", "mode")
def take(
    a: Tensor, indices: Tensor, axis: int | None = None, out: Tensor | None = None, mode: str = "raise"
) -> Tensor:
    """The elements at indices along an axis.

    Args:
        a: a tensor.
        indices: integers of any shape.
        axis: the axis; None: of the flattened tensor.
        out: a tensor of the result's shape that is written and returned.
        mode: an index out of bounds is an error ("raise"), the nearest ("clip"), or its remainder ("wrap").

    Source: ``numpy.take``.
    """
    indices, spec = construct.asarray(indices), spec_of(a)
    size = spec.size if axis is None else spec.shape[normalize_axis("take", axis, len(spec.shape))]
    if mode == "clip":
        indices = selection.clip(indices, 0, size - 1)
    elif mode == "wrap":
        indices = indices % size
    elif mode != "raise":
        raise ValueArgumentError(f"take: mode must be 'raise', 'clip' or 'wrap', not {mode!r}")
    return taking.take(a, indices, axis, out=out)


@name_operator(selection.where, values_start=1)
def where(condition: Tensor, x: Tensor | None = None, y: Tensor | None = None) -> Tensor | tuple[Tensor, ...]:
    """Elements of one of two tensors; of the condition alone, the indices of its true elements.

    Numbers other than 0 are true. A number as a value takes the dtype of the other operand; two numbers have NumPy's
    dtypes.

    Raises:
        ValueArgumentError: one of the two tensors is missing.

    Source: ``numpy.where``.
    """
    if x is None and y is None:
        return taking.nonzero(condition)
    if x is None or y is None:
        raise ValueArgumentError("where: give both x and y, or neither")
    one, other = _kind_of(x), _kind_of(y)
    if _needs_dtype(one, other) and (other >= 0 or one >= other):
        x = asarray(x)
    elif _needs_dtype(other, one):
        y = asarray(y)
    return selection.where(to_condition(condition), x, y)


def to_condition(x: Any) -> Any:  # noqa: ANN401
    """A condition as a bool tensor or a bool: numbers other than 0 are true."""
    if is_tensor(x):
        return x if spec_of(x).dtype is bool_ else comparison.ne(x, 0)
    if type(x) in traced_number_types:
        return x if x.python_type is bool else comparison.ne(x, 0)
    if isinstance(x, np.ndarray):
        return x.astype(bool, copy=False)
    return bool(x) if type(x) in _NUMBERS else x


@name_operator(repeating.roll)
def roll(a: Tensor, shift: Any, axis: int | Sequence[int] | None = None) -> Tensor:  # noqa: ANN401
    """The elements rolled along axes, by numbers of positions that may be traced.

    Args:
        a: a tensor.
        shift: the number of positions; one for all axes, or one for each.
        axis: the axis or axes; None: roll the flattened tensor and restore the shape.

    Raises:
        ValueArgumentError: the numbers of shifts and axes differ.
        OutOfBoundsError: there is no such axis.

    >>> import tandem as td
    >>> import tandem.numpy as np
    >>> td.jit(lambda x, n: np.roll(x, n))(np.arange(4), 1).tolist()
    [3, 0, 1, 2]

    Source: ``numpy.roll``.
    """
    shifts = list(shift) if isinstance(shift, (list, tuple)) else [shift]
    if not any(map(_is_traced, shifts)):
        return repeating.roll(a, shift, axis)
    if len(shifts) == 1 and is_tensor(shifts[0]) and spec_of(shifts[0]).shape:
        shifts = [shifts[0][at] for at in range(spec_of(shifts[0]).shape[0])]
    shape = spec_of(a).shape
    if axis is None:
        flat = views.reshape(a, (-1,))
        return views.reshape(_roll_axis(flat, builtins.sum(shifts), 0), shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    if len(shifts) not in (1, len(axes)):
        raise ValueArgumentError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for offset, ax in zip(shifts * len(axes) if len(shifts) == 1 else shifts, axes):
        a = _roll_axis(a, offset, normalize_axis("roll", ax, len(shape)))
    return a


def _is_traced(x: object) -> bool:
    """Whether the values of a number are known only when the traced function runs."""
    return type(x) in traced_number_types or (is_tensor(x) and type(x) is not Tensor)


def _roll_axis(x: Tensor, shift: Any, axis: int) -> Tensor:  # noqa: ANN401
    size = spec_of(x).shape[axis]
    return taking.take(x, (creation.arange(size) - shift) % size, axis) if size else x


_NUMBERS, _KINDS = (bool, int, float, complex), {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def _kind_of(value: Any) -> int:  # noqa: ANN401
    """The kind of a value's dtype: bool, integer, floating-point or complex; below 0 for numbers."""
    if type(value) in _NUMBERS:
        return _NUMBERS.index(type(value)) - len(_NUMBERS)
    return _KINDS.get(value.dtype.kind, 2) if hasattr(value, "dtype") else 2


def _needs_dtype(kind: int, other: int) -> bool:
    """Whether a value of a kind is a number that does not take the precision of the other operand."""
    return kind < 0 and kind + len(_NUMBERS) > other and other != _KINDS["f"]
