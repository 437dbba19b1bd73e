"""Functions of NumPy that write into a tensor: copyto, put, place, putmask, fill_diagonal, put_along_axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import DTypeError, ShapeError, ValueArgumentError
from ..operators.creation.creation import arange
from ..operators.declare.shape_rules import is_tensor, spec_of
from ..operators.elementwise.casting import astype
from ..operators.elementwise.selection import clip, where
from ..operators.indexing import writing
from ..operators.indexing.take import nonzero, take
from ..operators.reductions.statistics import count_nonzero
from ..operators.shape.views import broadcast_to, reshape
from ..registry.dtype_functions import can_cast
from ..registry.dtypes import bool_
from ..registry.values import SCALARS

if TYPE_CHECKING:
    from ..registry.types import TensorLike


def copyto(dst: Tensor, src: TensorLike, casting: str = "same_kind", where: TensorLike = True) -> None:
    """Write values, which broadcast, into a tensor; at a mask, if that is given.

    Args:
        dst: the tensor.
        src: the values.
        casting: the casts that are allowed, as for :func:`tandem.can_cast`.
        where: the mask, which broadcasts.

    Raises:
        DTypeError: the cast is not allowed.

    >>> import tandem.numpy as np
    >>> x = np.zeros(3)
    >>> np.copyto(x, [1.0, 2.0, 3.0], where=np.array([True, False, True]))
    >>> x.tolist()
    [1.0, 0.0, 3.0]

    Source: ``numpy.copyto``.
    """
    if type(src) is Tensor and where is True and src.dtype is dst.dtype:
        dst[...] = src
        return
    if not isinstance(src, SCALARS):
        src = asarray(src)
        if casting != "unsafe" and not can_cast(src.dtype, dst.dtype, casting):
            raise DTypeError(f"copyto: cannot cast {src.dtype} to {dst.dtype} (casting={casting!r})")
    dst[...] = src if where is True else select(dst, where, src)


def select(x: Tensor, mask: TensorLike, values: TensorLike) -> Tensor:
    """``x`` with values, which broadcast, at a mask."""
    if type(x) is type(mask) is type(values) is Tensor and x.dtype is values.dtype:
        return where(mask, values, x)
    return where(_tensor(mask, None), astype(_tensor(values, x), spec_of(x).dtype), x)


def _tensor(value: TensorLike, like: Tensor | None) -> Any:  # noqa: ANN401
    """A value as a tensor; Python numbers in the dtype of another tensor."""
    if is_tensor(value):
        return value
    return asarray(value, None if like is None or hasattr(value, "dtype") else spec_of(like).dtype)


def _repeat(values: TensorLike, count: int, like: Tensor) -> Tensor:
    """So many values: the given ones again and again."""
    given = reshape(_tensor(values, like), (-1,))
    size = spec_of(given).size
    if not size and count:
        raise ValueArgumentError("there are no values to write")
    return given if size in (1, count) else take(given, arange(count) % max(size, 1))


def put(a: Tensor, ind: TensorLike, v: TensorLike, mode: str = "raise") -> None:
    """Write values at positions of the flattened tensor; the values repeat.

    Args:
        a: the tensor.
        ind: integers.
        v: the values.
        mode: what to do with a position out of bounds: "raise", "wrap" or "clip".

    Raises:
        OutOfBoundsError: a position is out of bounds.
        ValueArgumentError: ``mode`` is another one.

    >>> import tandem.numpy as np
    >>> x = np.zeros(3)
    >>> np.put(x, [0, 2], 5.0)
    >>> x.tolist()
    [5.0, 0.0, 5.0]

    Source: ``numpy.put``.
    """
    if mode == "raise" and _is_flat(a):
        positions = reshape(_tensor(ind, None), (-1,))
        reshape(a, (-1,))[positions] = _tensor(v, a) if type(v) in SCALARS else _repeat(v, positions.size, a)
    else:
        a[...] = put_values(a, ind, v, mode)


def _is_flat(x: Tensor) -> bool:
    """Whether a tensor is in memory and the elements follow each other, so that its flat form is a view of it."""
    return type(x) is Tensor and x._array.flags.c_contiguous


def put_values(a: Tensor, ind: TensorLike, v: TensorLike, mode: str = "raise") -> Tensor:
    """The tensor with values at positions; arguments are those of :func:`put`."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueArgumentError(f"put: mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    spec = spec_of(a)
    positions = reshape(_tensor(ind, None), (-1,))
    if mode == "wrap":
        positions = positions % spec.size
    elif mode == "clip":
        positions = clip(positions, 0, spec.size - 1)
    values = _repeat(v, spec_of(positions).size, a)
    return reshape(reshape(a, (spec.size,)).at[positions].set(values), spec.shape)


def place(arr: Tensor, mask: TensorLike, vals: TensorLike) -> None:
    """Write values at the true elements of a mask of the tensor's shape, one after the other; the values repeat.

    Raises:
        ShapeError: the mask has another shape.
        ValueArgumentError: there are no values.

    >>> import tandem.numpy as np
    >>> x = np.zeros(3)
    >>> np.place(x, np.array([True, False, True]), [1.0, 2.0])
    >>> x.tolist()
    [1.0, 0.0, 2.0]

    Source: ``numpy.place``.
    """
    if type(mask) is type(arr) is Tensor and mask.shape == arr.shape and mask.dtype is bool_:
        is_number = type(vals) in SCALARS
        arr[mask] = _tensor(vals, arr) if is_number else _repeat(vals, count_nonzero(mask).item(), arr)
    else:
        arr[...] = replace_at_mask(arr, mask, vals)


def replace_at_mask(arr: Tensor, mask: TensorLike, vals: TensorLike) -> Tensor:
    """The tensor with values at a mask; arguments are those of :func:`place`."""
    chosen, spec = _tensor(mask, None), spec_of(arr)
    if spec_of(chosen).shape != spec.shape:
        raise ShapeError(f"place: a mask of shape {spec_of(chosen).shape} does not fit shape {spec.shape}")
    positions = nonzero(reshape(chosen, (spec.size,)))[0]
    values = _repeat(vals, spec_of(positions).size, arr)
    return reshape(reshape(arr, (spec.size,)).at[positions].set(values), spec.shape)


def putmask(a: Tensor, mask: TensorLike, values: TensorLike) -> None:
    """Write values at a mask of the tensor's shape: at each place, the value of that place; the values repeat.

    Raises:
        ShapeError: the mask has another shape.

    >>> import tandem.numpy as np
    >>> x = np.arange(4)
    >>> np.putmask(x, x > 1, [-1, -2, -3, -4])
    >>> x.tolist()
    [0, 1, -3, -4]

    Source: ``numpy.putmask``.
    """
    if type(mask) is type(a) is type(values) is Tensor and mask.shape == a.shape == values.shape:
        a[...] = select(a, mask, values)
        return
    spec = spec_of(a)
    chosen = _tensor(mask, None)
    if spec_of(chosen).shape != spec.shape:
        raise ShapeError(f"putmask: a mask of shape {spec_of(chosen).shape} does not fit shape {spec.shape}")
    repeated = _repeat(values, spec.size, a)
    shape = spec.shape if spec_of(repeated).size == spec.size else (1,) * len(spec.shape)
    a[...] = select(a, chosen, broadcast_to(reshape(repeated, shape), spec.shape))


def fill_diagonal(a: Tensor, val: TensorLike, wrap: bool = False) -> None:
    """Write a value, or values one after the other, into the main diagonal of a tensor.

    >>> import tandem.numpy as np
    >>> x = np.zeros((2, 2))
    >>> np.fill_diagonal(x, 5.0)
    >>> x.tolist()
    [[5.0, 0.0], [0.0, 5.0]]

    Source: ``numpy.fill_diagonal``.
    """
    if _is_flat(a) and a.ndim == 2 and a.shape[0] <= a.shape[1] and type(val) in SCALARS:
        reshape(a, (-1,))[: a.shape[0] * a.shape[1] : a.shape[1] + 1] = _tensor(val, a)
    else:
        a[...] = writing.fill_diagonal(a, _tensor(val, a), wrap)


def put_along_axis(arr: Tensor, indices: Tensor, values: TensorLike, axis: int | None = -1) -> None:
    """Write values at the positions along an axis that ``indices`` has for each element.

    >>> import tandem.numpy as np
    >>> x = np.array([[1, 2], [3, 4]])
    >>> np.put_along_axis(x, np.array([[1], [0]]), 9, 1)
    >>> x.tolist()
    [[1, 9], [9, 4]]

    Source: ``numpy.put_along_axis``.
    """
    arr[...] = writing.put_along_axis(arr, indices, _tensor(values, arr), axis)
