"""The frequencies of a transform, and shifts of their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ValueArgumentError
from ..operators.creation.creation import arange
from ..operators.declare.declaration import ErrorInput, TensorSample
from ..operators.declare.kinds import composite
from ..operators.declare.shape_rules import normalize_axis, spec_of
from ..operators.elementwise.comparison import lt
from ..operators.elementwise.selection import where
from ..operators.shape.repeating import roll
from ..registry.dtypes import ALL, DType, default_float

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.types import Tensor


def _shift(name: str, x: Tensor, axes: Sequence[int] | None, back: bool) -> Tensor:
    shape = spec_of(x).shape
    chosen = range(len(shape)) if axes is None else [normalize_axis(name, axis, len(shape)) for axis in axes]
    return roll(x, tuple(-(shape[a] // 2) if back else shape[a] // 2 for a in chosen), tuple(chosen))


@composite(
    "fft_fftshift(Tensor self, int[]? axes=None) -> Tensor",
    doc="""A transform with the frequency 0 in the middle.

    Args:
        self: any tensor.
        axes: the axes to shift; None: all.

    Returns:
        A new tensor.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> td.fft.fftshift(td.arange(4)).tolist()
    [2, 3, 0, 1]
    """,
    reference="numpy.fft.fftshift",
    samples="samples.fft.shift_samples",
    errors=lambda: [ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds")],
    dtypes=ALL,
    method=False,
)
def fftshift(self: Tensor, axes: Sequence[int] | None) -> Tensor:
    return _shift("fftshift", self, axes, False)


@composite(
    "fft_ifftshift(Tensor self, int[]? axes=None) -> Tensor",
    doc="""A transform with the frequency 0 in front again: the inverse of `fftshift`.

    Args:
        self: any tensor.
        axes: the axes to shift; None: all.

    Returns:
        A new tensor.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> td.fft.ifftshift(td.arange(5)).tolist()
    [2, 3, 4, 0, 1]
    """,
    reference="numpy.fft.ifftshift",
    samples="samples.fft.shift_samples",
    errors=lambda: [ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds")],
    dtypes=ALL,
    method=False,
)
def ifftshift(self: Tensor, axes: Sequence[int] | None) -> Tensor:
    return _shift("ifftshift", self, axes, True)


def _check_length(name: str, n: int) -> None:
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
        raise ValueArgumentError(f"{name}: n must be a positive int, the number of points, not {n!r}")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: str = "cpu") -> Tensor:
    """The frequencies of the elements of a transform.

    Args:
        n: the number of points that were transformed.
        d: the distance between points.
        dtype: the dtype of the result; None: the default dtype.
        device: the device of the result.

    Returns:
        A tensor of shape ``(n,)``: 0 and the positive frequencies, then the negative ones.

    Raises:
        ValueArgumentError: ``n`` is not positive.

    >>> import tandem as td
    >>> td.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    _check_length("fftfreq", n)
    at = arange(n, dtype=dtype or default_float(), device=device)
    return where(lt(at, (n + 1) // 2), at, at - n) / (n * d)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: str = "cpu") -> Tensor:
    """The frequencies of the elements of a transform of real numbers.

    Args:
        n: the number of points that were transformed.
        d: the distance between points.
        dtype: the dtype of the result; None: the default dtype.
        device: the device of the result.

    Returns:
        A tensor of shape ``(n // 2 + 1,)``.

    Raises:
        ValueArgumentError: ``n`` is not positive.

    >>> import tandem as td
    >>> td.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    _check_length("rfftfreq", n)
    return arange(n // 2 + 1, dtype=dtype or default_float(), device=device) / (n * d)
