"""``tandem.numpy.lib.stride_tricks``: views with given strides, sliding windows, and broadcasting.

Results are computed by operators, so that calls are traced and differentiated; windows are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...eager.tensor.interop.array_namespace import broadcast_shapes as broadcast_shapes
from ...errors import ShapeError, UnsupportedError, ValueArgumentError
from ...operators.declare.shape_rules import normalize_axis, spec_of
from ...operators.declare.view_spec import row_major_strides
from ...operators.shape.grids import broadcast_arrays as broadcast_arrays
from ...operators.shape.parts import unfold
from ...operators.shape.strided import as_strided as _as_strided
from ...operators.shape.views import broadcast_to as broadcast_to
from ...spellings.forwarding import refuse_unknown

if TYPE_CHECKING:
    from ...registry.types import Tensor


def sliding_window_view(
    x: Tensor,
    window_shape: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Tensor:
    """All windows of a shape, one axis of them for each axis of the windows.

    Args:
        x: a tensor.
        window_shape: the lengths of the windows.
        axis: the axis of each length, where an axis may have several; None: all axes of ``x``.
        subok, writeable: accepted for compatibility with NumPy.

    Returns:
        A new tensor, where NumPy returns a view; the axes of the windows are the last ones.

    Raises:
        ValueArgumentError: a window is longer than its axis, or has a negative length.
        ShapeError: there are not as many axes as lengths.

    >>> import tandem.numpy as np
    >>> np.lib.stride_tricks.sliding_window_view(np.arange(4), 2).tolist()
    [[0, 1], [1, 2], [2, 3]]

    Source: ``numpy.lib.stride_tricks.sliding_window_view``.
    """
    name, rank = "sliding_window_view", spec_of(x).ndim
    sizes = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    given = range(rank) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    axes = [normalize_axis(name, one, rank) for one in given]
    if len(axes) != len(sizes):
        raise ShapeError(f"{name}: {len(sizes)} lengths of windows do not fit {len(axes)} axes")
    result = x
    for along, size in zip(axes, sizes):
        length = spec_of(result).shape[along]
        if not 0 <= size <= length:
            raise ValueArgumentError(
                f"{name}: a window of {size} elements does not fit an axis of length {length}"
            )
        result = unfold(result, along, size, 1)
    return result


def as_strided(
    x: Tensor,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    subok: bool = False,
    writeable: bool = True,
) -> Tensor:
    """A view of a contiguous tensor with a shape and strides.

    Args:
        x: a contiguous tensor.
        shape: the shape of the result; None: that of ``x``.
        strides: for each axis the distance, in bytes, between neighbours; None: those of ``x``.
        subok, writeable: accepted for compatibility with NumPy.

    Returns:
        A view; it is read only where its elements share memory.

    Raises:
        OutOfBoundsError: an element lies outside of ``x``, whose memory NumPy would read.
        UnsupportedError: ``x`` is not contiguous, or a stride is not a whole number of elements.

    >>> import tandem.numpy as np
    >>> np.lib.stride_tricks.as_strided(np.arange(4), (3, 2), (8, 8)).tolist()
    [[0, 1], [1, 2], [2, 3]]

    Source: ``numpy.lib.stride_tricks.as_strided``.
    """
    spec = spec_of(x)
    size = spec.dtype.itemsize
    if not x.is_contiguous():
        raise UnsupportedError("as_strided: the tensor is not contiguous; take x.contiguous()")
    if strides is not None and any(step % size for step in strides):
        raise UnsupportedError(
            f"as_strided: strides of {tuple(strides)} bytes are not whole elements of {spec.dtype}"
        )
    steps = row_major_strides(spec.shape) if strides is None else [step // size for step in strides]
    return _as_strided(x, spec.shape if shape is None else tuple(shape), tuple(steps))


__getattr__ = refuse_unknown(__name__)
