"""``take``, ``repeat``, ``linspace``, ``meshgrid`` and ``searchsorted`` with the keywords of ``jax.numpy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.tensor.construct import asarray
from ..errors import ValueArgumentError
from ..operators.creation import creation
from ..operators.declare.shape_rules import normalize_axis, promoted_dtype, spec_of
from ..operators.elementwise.casting import astype
from ..operators.elementwise.rounding import floor
from ..operators.elementwise.selection import clip, where
from ..operators.indexing import take as taking
from ..operators.reductions import searching
from ..operators.reductions.scans import cumsum
from ..operators.shape import grids, repeating
from ..operators.shape.rearrange import moveaxis
from ..operators.shape.views import broadcast_to, reshape
from ..registry.dtype_functions import iinfo
from ..registry.dtypes import as_dtype, default_float
from .keywords import extend_operator, is_number, to_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.dtypes import DType
    from ..registry.types import DTypeLike, Number, Tensor, TensorLike

_SEARCHES = ("compare_all", "scan", "scan_unrolled", "sort")


@extend_operator(taking.take)
def take(
    a: TensorLike,
    indices: TensorLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Number | None = None,
) -> Tensor:
    """The elements at indices along an axis.

    Args:
        a: a tensor.
        indices: integers of any shape.
        axis: the axis; None: of the flattened tensor.
        out: None.
        mode: what an index out of bounds means: ``"fill"`` ``fill_value``, ``"clip"`` the nearest element, where
            negative indices are those of the first one, ``"wrap"`` that of the remainder; None: an error.
        unique_indices, indices_are_sorted: accepted for compatibility with JAX.
        fill_value: None: NaN, the smallest integer, the largest of unsigned ones, or True.

    Raises:
        ValueArgumentError: another mode, or ``out`` is given.
        OutOfBoundsError: an index is out of bounds, and there is no mode.

    Source: ``jax.numpy.take``.

    >>> import tandem.jax.numpy as jnp
    >>> jnp.take(jnp.arange(3.0), jnp.array([1, 5]), mode="fill", fill_value=-1.0).tolist()
    [1.0, -1.0]
    """
    if out is not None:
        raise ValueArgumentError("take: out is not supported, as in JAX; use the result")
    if mode is None:
        return taking.take(a, indices, axis)
    x, positions = asarray(a), asarray(indices)
    along = axis if axis is None else normalize_axis("take", axis, len(spec_of(x).shape))
    size = spec_of(x).size if along is None else spec_of(x).shape[along]
    if mode == "clip":
        return taking.take(x, clip(positions, 0, size - 1), along)
    if mode == "wrap":
        return taking.take(x, positions % size, along)
    if mode != "fill":
        raise ValueArgumentError(f"take: mode is 'fill', 'clip' or 'wrap', not {mode!r}")
    is_within = (positions >= -size) & (positions < size)
    result = taking.take(x, where(is_within, positions, 0), along)
    missing = 0 if along is None else len(spec_of(x).shape) - along - 1
    is_within = reshape(is_within, (*spec_of(is_within).shape, *[1] * missing))
    return where(is_within, result, _missing_value(spec_of(x).dtype) if fill_value is None else fill_value)


def _missing_value(dtype: DType) -> Number:
    """The value of elements out of bounds: NaN, the smallest integer, the largest of unsigned ones, or True."""
    if dtype.is_inexact:
        return float("nan")
    if dtype.kind == "b":
        return True
    limits = iinfo(dtype)
    return limits.max if dtype.kind == "u" else limits.min


@extend_operator(repeating.repeat)
def repeat(
    a: TensorLike,
    repeats: int | Sequence[int] | Tensor,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
) -> Tensor:
    """The elements repeated along an axis.

    Args:
        a: a tensor.
        repeats: how many times, one number or one for each element along the axis.
        axis: the axis; None: of the flattened tensor.
        total_repeat_length: the length of the result, which a jitted function needs if ``repeats`` is traced; what
            is longer ends there, and what is shorter ends with more of the last element.

    Source: ``jax.numpy.repeat``.

    >>> import tandem as td
    >>> import tandem.jax.numpy as jnp
    >>> td.jit(lambda x, n: jnp.repeat(x, n, total_repeat_length=4))(td.arange(3), td.asarray([1, 0, 2])).tolist()
    [0, 2, 2, 2]
    """
    if total_repeat_length is None:
        return repeating.repeat(a, repeats, axis)
    x = asarray(a)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    along = normalize_axis("repeat", axis, len(spec_of(x).shape))
    size = spec_of(x).shape[along]
    counts = asarray(repeats)
    ends = cumsum(broadcast_to(reshape(counts, (-1,)), (size,)), 0)
    positions = searching.searchsorted(ends, creation.arange(total_repeat_length), side="right")
    return taking.take(x, clip(positions, 0, size - 1), along)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Evenly spaced numbers.

    Args:
        start, stop: the first and the last number, or tensors of them.
        num: how many numbers there are.
        endpoint: whether ``stop`` is one of them.
        retstep: whether to return the distance of the numbers too.
        dtype: the dtype; None: that of ``start`` and ``stop``, or the default float for integers.
        axis: the axis of the numbers in the result, if ``start`` or ``stop`` has axes.
        device: where the result is.

    Returns:
        A tensor; with ``retstep``, it and the distance, a 0-d tensor, or one of the shape of ``start`` and ``stop``.

    Source: ``jax.numpy.linspace``.

    >>> import tandem.jax.numpy as jnp
    >>> jnp.linspace(0, 1, 3, retstep=True)
    (tensor([0. , 0.5, 1. ]), tensor(0.5))
    """
    if not retstep and is_number(start) and is_number(stop):
        plain: Tensor = creation.linspace(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)
        return plain
    ends = [x if is_number(x) else asarray(x, device=device) for x in (start, stop)]
    wide = promoted_dtype("linspace", ends)
    wide = wide if wide.is_inexact else default_float()
    first, last = (to_dtype(x, wide, device) for x in ends)
    step = (last - first) / (num - endpoint) if num > endpoint else (last - first) * float("nan")
    offsets = reshape(
        astype(creation.arange(num, device=device), wide), (num, *[1] * len(spec_of(step).shape))
    )
    result: Tensor = first + offsets * (step if num > endpoint else last - first)
    if endpoint and num > 1:
        result = where(offsets == num - 1, last, result)
    result = moveaxis(result, 0, axis)
    target = wide if dtype is None else as_dtype(dtype)
    result = astype(result if target.is_inexact else floor(result), target)
    return (result, step) if retstep else result


def meshgrid(*xi: TensorLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of the points of a grid, a list of one tensor for each axis.

    Args:
        xi: the coordinates along each axis: tensors of one axis, or 0-d ones.
        copy: True.
        sparse: whether each tensor has the length 1 along the other axes.
        indexing: ``"xy"``: the first two axes are exchanged; ``"ij"``: axis i belongs to argument i.

    Raises:
        ValueArgumentError: ``copy`` is False.

    Source: ``jax.numpy.meshgrid``.

    >>> import tandem.jax.numpy as jnp
    >>> [x.shape for x in jnp.meshgrid(jnp.arange(3), jnp.arange(2), sparse=True)]
    [(1, 3), (2, 1)]
    """
    if not copy:
        raise ValueArgumentError("meshgrid: copy=False is not supported, as in JAX")
    if not sparse:
        return list(grids.meshgrid(*map(asarray, xi), indexing=indexing))
    if indexing not in ("xy", "ij"):
        raise ValueArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    axes = list(range(len(xi)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = 1, 0
    return [
        reshape(asarray(x), tuple(-1 if at == axis else 1 for at in range(len(xi))))
        for x, axis in zip(xi, axes)
    ]


@extend_operator(searching.searchsorted)
def searchsorted(
    a: Tensor,
    v: TensorLike,
    side: str = "left",
    sorter: Tensor | None = None,
    *,
    method: str = "scan",
) -> Tensor:
    """The indices at which values would be inserted into a sorted tensor.

    Args:
        a: a sorted tensor of one axis.
        v: the values.
        side: ``"left"``: before equal elements; ``"right"``: after them.
        sorter: the order that sorts ``a``.
        method: a name of JAX's algorithms, which have the same results.

    Raises:
        ValueArgumentError: another ``method``.

    Source: ``jax.numpy.searchsorted``.

    >>> import tandem.jax.numpy as jnp
    >>> jnp.searchsorted(jnp.arange(3.0), jnp.array([1.5]), method="sort").tolist()
    [2]
    """
    if method not in _SEARCHES:
        raise ValueArgumentError(f"searchsorted: method is one of {_SEARCHES}, not {method!r}")
    return searching.searchsorted(a, v, side, sorter)
