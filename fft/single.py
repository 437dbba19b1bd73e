"""Transforms along one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.elementwise.complex_parts import conj
from .declared import (
    apply_along_axis,
    as_complex,
    normalization_factor,
    one_axis_transform,
    scale,
    set_length,
)
from .sums import c2c, c2r, r2c, resize_last_axis

if TYPE_CHECKING:
    from ..registry.types import Tensor

_HALF = "twice the others, 2 * (m - 1)"


def _complex_to_complex(name: str, x: Tensor, n: int | None, axis: int, norm: str, inverse: bool) -> Tensor:
    def run(last: Tensor) -> Tensor:
        size = last.shape[-1] if n is None else n
        by = normalization_factor(name, size, norm, inverse)
        return scale(c2c(as_complex(set_length(last, size)), inverse), by)

    return apply_along_axis(name, x, axis, run)


@one_axis_transform(
    "fft",
    "The discrete Fourier transform along an axis.",
    "td.fft.fft(td.asarray([1.0, 0.0])).tolist()\n    [(1+0j), (1+0j)]",
    given="complex",
)
def fft(self: Tensor, n: int | None, axis: int, norm: str) -> Tensor:
    return _complex_to_complex("fft", self, n, axis, norm, False)


@one_axis_transform(
    "ifft",
    "The inverse discrete Fourier transform along an axis.",
    "td.fft.ifft(td.asarray([2.0, 0.0])).tolist()\n    [(1+0j), (1+0j)]",
    given="complex",
)
def ifft(self: Tensor, n: int | None, axis: int, norm: str) -> Tensor:
    return _complex_to_complex("ifft", self, n, axis, norm, True)


def _real_to_half(name: str, x: Tensor, n: int | None, axis: int, norm: str, inverse: bool) -> Tensor:
    def run(last: Tensor) -> Tensor:
        size = last.shape[-1] if n is None else n
        by = normalization_factor(name, size, norm, inverse)
        result = scale(r2c(set_length(last, size)), by)
        return conj(result) if inverse else result

    return apply_along_axis(name, x, axis, run)


@one_axis_transform(
    "rfft",
    "The first half of the discrete Fourier transform of real numbers; the rest are its conjugates.",
    "td.fft.rfft(td.asarray([1.0, 0.0])).tolist()\n    [(1+0j), (1+0j)]",
    given="complex",
    real=True,
)
def rfft(self: Tensor, n: int | None, axis: int, norm: str) -> Tensor:
    return _real_to_half("rfft", self, n, axis, norm, False)


@one_axis_transform(
    "ihfft",
    "The inverse of `hfft`: the first half of a spectrum whose other half are its conjugates.",
    "td.fft.ihfft(td.asarray([2.0, 0.0])).tolist()\n    [(1-0j), (1-0j)]",
    given="complex",
    real=True,
)
def ihfft(self: Tensor, n: int | None, axis: int, norm: str) -> Tensor:
    return _real_to_half("ihfft", self, n, axis, norm, True)


def _half_to_real(name: str, x: Tensor, n: int | None, axis: int, norm: str, inverse: bool) -> Tensor:
    def run(last: Tensor) -> Tensor:
        size = 2 * (last.shape[-1] - 1) if n is None else n
        by = normalization_factor(name, size, norm, inverse)
        half = resize_last_axis(as_complex(last), size // 2 + 1)
        return scale(c2r(half if inverse else conj(half), size), by)

    return apply_along_axis(name, x, axis, run)


@one_axis_transform(
    "irfft",
    "The inverse of `rfft`: real numbers from the first half of their transform.",
    "td.fft.irfft(td.asarray([1.0, 1.0])).tolist()\n    [1.0, 0.0]",
    given="real",
    none=_HALF,
)
def irfft(self: Tensor, n: int | None, axis: int, norm: str) -> Tensor:
    return _half_to_real("irfft", self, n, axis, norm, True)


@one_axis_transform(
    "hfft",
    "The discrete Fourier transform, real, of a signal whose second half are the conjugates of the first.",
    "td.fft.hfft(td.asarray([1.0, 1.0])).tolist()\n    [2.0, 0.0]",
    given="real",
    none=_HALF,
)
def hfft(self: Tensor, n: int | None, axis: int, norm: str) -> Tensor:
    return _half_to_real("hfft", self, n, axis, norm, False)
