"""Transforms along several axes: one after the other."""

from __future__ import annotations

from typing import Any

from .declared import axes_and_sizes, several_axes
from .single import fft, ifft, irfft, rfft


def _each(name: str, one: Any, x: Any, s: Any, axes: Any, norm: str) -> Any:
    for axis, n in axes_and_sizes(name, x, s, axes):
        x = one(x, n, axis, norm)
    return x


def _real_last(name: str, x: Any, s: Any, axes: Any, norm: str) -> Any:
    *others, (axis, n) = axes_and_sizes(name, x, s, axes)
    x = rfft(x, n, axis, norm)
    for at, size in others:
        x = fft(x, size, at, norm)
    return x


def _back_to_real(name: str, x: Any, s: Any, axes: Any, norm: str) -> Any:
    *others, (axis, n) = axes_and_sizes(name, x, s, axes)
    for at, size in others:
        x = ifft(x, size, at, norm)
    return irfft(x, n, axis, norm)


_UNIT = "td.fft.{}(td.ones((2, 2))).real().tolist()\n    [[4.0, 0.0], [0.0, 0.0]]"
_INVERSE = "td.fft.{}(td.ones((2, 2)) * 4).real().tolist()\n    [[4.0, 0.0], [0.0, 0.0]]"
_HALF = "td.fft.{}(td.ones((2, 2))).real().tolist()\n    [[4.0, 0.0], [0.0, 0.0]]"
_BACK = "td.fft.{}(td.ones((2, 2))).tolist()\n    [[1.0, 0.0], [0.0, 0.0]]"


@several_axes("fftn", "The discrete Fourier transform along axes.", _UNIT.format("fftn"), given="complex")
def fftn(self: Any, s: Any, axes: Any, norm: str) -> Any:
    return _each("fftn", fft, self, s, axes, norm)


@several_axes(
    "ifftn", "The inverse discrete Fourier transform along axes.", _INVERSE.format("ifftn"), given="complex"
)
def ifftn(self: Any, s: Any, axes: Any, norm: str) -> Any:
    return _each("ifftn", ifft, self, s, axes, norm)


@several_axes(
    "rfftn",
    "The discrete Fourier transform of real numbers along axes; of the last axis the first half.",
    _HALF.format("rfftn"),
    given="complex",
    real=True,
)
def rfftn(self: Any, s: Any, axes: Any, norm: str) -> Any:
    return _real_last("rfftn", self, s, axes, norm)


@several_axes(
    "irfftn",
    "The inverse of `rfftn`; along the last axis there are twice the others, 2 * (m - 1), if ``s`` does not say.",
    _BACK.format("irfftn"),
    given="real",
)
def irfftn(self: Any, s: Any, axes: Any, norm: str) -> Any:
    return _back_to_real("irfftn", self, s, axes, norm)


@several_axes(
    "fft2", "The discrete Fourier transform along two axes.", _UNIT.format("fft2"), given="complex", last=True
)
def fft2(self: Any, s: Any, axes: Any, norm: str) -> Any:
    return _each("fft2", fft, self, s, axes, norm)


@several_axes(
    "ifft2",
    "The inverse discrete Fourier transform along two axes.",
    _INVERSE.format("ifft2"),
    given="complex",
    last=True,
)
def ifft2(self: Any, s: Any, axes: Any, norm: str) -> Any:
    return _each("ifft2", ifft, self, s, axes, norm)


@several_axes(
    "rfft2",
    "The discrete Fourier transform of real numbers along two axes; of the last axis the first half.",
    _HALF.format("rfft2"),
    given="complex",
    last=True,
    real=True,
)
def rfft2(self: Any, s: Any, axes: Any, norm: str) -> Any:
    return _real_last("rfft2", self, s, axes, norm)


@several_axes(
    "irfft2",
    "The inverse of `rfft2`; along the last axis there are twice the others, 2 * (m - 1), if ``s`` does not say.",
    _BACK.format("irfft2"),
    given="real",
    last=True,
)
def irfft2(self: Any, s: Any, axes: Any, norm: str) -> Any:
    return _back_to_real("irfft2", self, s, axes, norm)
