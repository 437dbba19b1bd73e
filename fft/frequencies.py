"""The frequencies of a transform, and the order that they are shown in."""

from __future__ import annotations

from typing import Any

from ..errors import ValueArgumentError
from ..operators.comparison import lt
from ..operators.creation import arange
from ..operators.declare import Bad, Draw, Sample
from ..operators.kinds import composite
from ..operators.repeating import roll
from ..operators.rules import normalize_axis, spec_of
from ..operators.selection import where
from ..registry.dtypes import ALL, DEFAULT_FLOAT, DType


def _shift_samples(dtype: DType) -> list[Sample]:
    return [
        Sample((Draw((5,)),)),
        Sample((Draw((3, 4)),)),
        Sample((Draw((3, 4)), 0)),
        Sample((Draw((2, 3, 4)), (0, -1))),
    ]


def _moved(name: str, x: Any, axes: Any, back: bool) -> Any:
    shape = spec_of(x).shape
    chosen = range(len(shape)) if axes is None else [normalize_axis(name, axis, len(shape)) for axis in axes]
    return roll(x, tuple(-(shape[a] // 2) if back else shape[a] // 2 for a in chosen), tuple(chosen))


@composite(
    "fft_fftshift(Tensor self, int[]? axes=None) -> Tensor",
    doc="""A transform with the frequency 0 in the middle.

    Args:
        self: any tensor.
        axes: the axes that are moved; None: all.

    Returns:
        A new tensor.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> td.fft.fftshift(td.arange(4)).tolist()
    [2, 3, 0, 1]
    """,
    reference="numpy.fft.fftshift",
    samples=_shift_samples,
    errors=lambda: [Bad((Draw((3,)), 1), IndexError, "out of bounds")],
    dtypes=ALL,
    method=False,
)
def fftshift(self: Any, axes: Any) -> Any:
    return _moved("fftshift", self, axes, False)


@composite(
    "fft_ifftshift(Tensor self, int[]? axes=None) -> Tensor",
    doc="""A transform with the frequency 0 in front again: the inverse of `fftshift`.

    Args:
        self: any tensor.
        axes: the axes that are moved; None: all.

    Returns:
        A new tensor.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> td.fft.ifftshift(td.arange(5)).tolist()
    [2, 3, 4, 0, 1]
    """,
    reference="numpy.fft.ifftshift",
    samples=_shift_samples,
    errors=lambda: [Bad((Draw((3,)), 1), IndexError, "out of bounds")],
    dtypes=ALL,
    method=False,
)
def ifftshift(self: Any, axes: Any) -> Any:
    return _moved("ifftshift", self, axes, True)


def _check(name: str, n: int) -> None:
    if type(n) is not int or n < 1:
        raise ValueArgumentError(f"{name}: n is a positive number of points, not {n!r}")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType = DEFAULT_FLOAT, device: str = "cpu") -> Any:
    """The frequencies of the elements of a transform.

    Args:
        n: how many points were transformed.
        d: the distance between points.
        dtype: the dtype of the result.
        device: where it is made.

    Returns:
        A tensor of shape ``(n,)``: 0 and the positive frequencies, then the negative ones.

    Raises:
        ValueArgumentError: ``n`` is not positive.

    >>> import tandem as td
    >>> td.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    _check("fftfreq", n)
    at = arange(n, dtype=dtype, device=device)
    return where(lt(at, (n + 1) // 2), at, at - n) / (n * d)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType = DEFAULT_FLOAT, device: str = "cpu") -> Any:
    """The frequencies of the elements of a transform of real numbers.

    Args:
        n: how many points were transformed.
        d: the distance between points.
        dtype: the dtype of the result.
        device: where it is made.

    Returns:
        A tensor of shape ``(n // 2 + 1,)``.

    Raises:
        ValueArgumentError: ``n`` is not positive.

    >>> import tandem as td
    >>> td.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    _check("rfftfreq", n)
    return arange(n // 2 + 1, dtype=dtype, device=device) / (n * d)
