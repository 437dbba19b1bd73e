"""Transforms along several axes, composed of transforms along one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ShapeError
from ..operators.declare.shape_rules import spec_of
from .declared import axes_and_sizes, multi_axis_transform
from .single import fft, ifft, irfft, rfft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.function import OperatorFunction
    from ..registry.types import Tensor

    Sizes = Sequence[int] | None


def _transform_each(
    name: str, one: OperatorFunction[Tensor], x: Tensor, s: Sizes, axes: Sizes, norm: str
) -> Tensor:
    for axis, n in axes_and_sizes(name, x, s, axes):
        x = one(x, n, axis, norm)
    return x


def _split_last_axis(
    name: str, x: Tensor, s: Sizes, axes: Sizes
) -> tuple[list[tuple[int, int | None]], tuple[int, int | None]]:
    result = axes_and_sizes(name, x, s, axes)
    if not result:
        raise ShapeError(f"{name}: needs at least one axis to transform along, of {spec_of(x)}")
    return result[:-1], result[-1]


def _rfft_axes(name: str, x: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    others, (axis, n) = _split_last_axis(name, x, s, axes)
    x = rfft(x, n, axis, norm)
    for at, size in others:
        x = fft(x, size, at, norm)
    return x


def _irfft_axes(name: str, x: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    others, (axis, n) = _split_last_axis(name, x, s, axes)
    for at, size in others:
        x = ifft(x, size, at, norm)
    result: Tensor = irfft(x, n, axis, norm)
    return result


_UNIT = "td.fft.{}(td.ones((2, 2))).real.tolist()\n    [[4.0, 0.0], [0.0, 0.0]]"
_INVERSE = "td.fft.{}(td.ones((2, 2)) * 4).real.tolist()\n    [[4.0, 0.0], [0.0, 0.0]]"
_HALF = "td.fft.{}(td.ones((2, 2))).real.tolist()\n    [[4.0, 0.0], [0.0, 0.0]]"
_BACK = "td.fft.{}(td.ones((2, 2))).tolist()\n    [[1.0, 0.0], [0.0, 0.0]]"


@multi_axis_transform(
    "fftn", "The discrete Fourier transform along axes.", _UNIT.format("fftn"), given="complex"
)
def fftn(self: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    return _transform_each("fftn", fft, self, s, axes, norm)


@multi_axis_transform(
    "ifftn", "The inverse discrete Fourier transform along axes.", _INVERSE.format("ifftn"), given="complex"
)
def ifftn(self: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    return _transform_each("ifftn", ifft, self, s, axes, norm)


@multi_axis_transform(
    "rfftn",
    "The discrete Fourier transform of real numbers along axes; of the last axis the first half.",
    _HALF.format("rfftn"),
    given="complex",
    real=True,
)
def rfftn(self: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    return _rfft_axes("rfftn", self, s, axes, norm)


@multi_axis_transform(
    "irfftn",
    "The inverse of `rfftn`; along the last axis there are twice the others, 2 * (m - 1), if ``s`` does not say.",
    _BACK.format("irfftn"),
    given="real",
)
def irfftn(self: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    return _irfft_axes("irfftn", self, s, axes, norm)


@multi_axis_transform(
    "fft2", "The discrete Fourier transform along two axes.", _UNIT.format("fft2"), given="complex", last=True
)
def fft2(self: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    return _transform_each("fft2", fft, self, s, axes, norm)


@multi_axis_transform(
    "ifft2",
    "The inverse discrete Fourier transform along two axes.",
    _INVERSE.format("ifft2"),
    given="complex",
    last=True,
)
def ifft2(self: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    return _transform_each("ifft2", ifft, self, s, axes, norm)


@multi_axis_transform(
    "rfft2",
    "The discrete Fourier transform of real numbers along two axes; of the last axis the first half.",
    _HALF.format("rfft2"),
    given="complex",
    last=True,
    real=True,
)
def rfft2(self: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    return _rfft_axes("rfft2", self, s, axes, norm)


@multi_axis_transform(
    "irfft2",
    "The inverse of `rfft2`; along the last axis there are twice the others, 2 * (m - 1), if ``s`` does not say.",
    _BACK.format("irfft2"),
    given="real",
    last=True,
)
def irfft2(self: Tensor, s: Sizes, axes: Sizes, norm: str) -> Tensor:
    return _irfft_axes("irfft2", self, s, axes, norm)
