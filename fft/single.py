"""Transforms along one axis."""

from __future__ import annotations

from typing import Any

from ..operators.complex_parts import conj
from .declared import along, as_complex, factor, one_axis, points, scaled
from .sums import c2c, c2r, r2c, resized

_HALF = "twice the others, 2 * (m - 1)"


def _complex(name: str, x: Any, n: int | None, axis: int, norm: str, inverse: bool) -> Any:
    def run(last: Any) -> Any:
        size = last.shape[-1] if n is None else n
        by = factor(name, size, norm, inverse)
        return scaled(c2c(as_complex(points(last, size)), inverse), by)

    return along(name, x, axis, run)


@one_axis(
    "fft",
    "The discrete Fourier transform along an axis.",
    "td.fft.fft(td.asarray([1.0, 0.0])).tolist()\n    [(1+0j), (1+0j)]",
    given="complex",
)
def fft(self: Any, n: int | None, axis: int, norm: str) -> Any:
    return _complex("fft", self, n, axis, norm, False)


@one_axis(
    "ifft",
    "The inverse discrete Fourier transform along an axis.",
    "td.fft.ifft(td.asarray([2.0, 0.0])).tolist()\n    [(1+0j), (1+0j)]",
    given="complex",
)
def ifft(self: Any, n: int | None, axis: int, norm: str) -> Any:
    return _complex("ifft", self, n, axis, norm, True)


def _halved(name: str, x: Any, n: int | None, axis: int, norm: str, inverse: bool) -> Any:
    def run(last: Any) -> Any:
        size = last.shape[-1] if n is None else n
        by = factor(name, size, norm, inverse)
        found = scaled(r2c(points(last, size)), by)
        return conj(found) if inverse else found

    return along(name, x, axis, run)


@one_axis(
    "rfft",
    "The first half of the discrete Fourier transform of real numbers; the rest are its conjugates.",
    "td.fft.rfft(td.asarray([1.0, 0.0])).tolist()\n    [(1+0j), (1+0j)]",
    given="complex",
    real=True,
)
def rfft(self: Any, n: int | None, axis: int, norm: str) -> Any:
    return _halved("rfft", self, n, axis, norm, False)


@one_axis(
    "ihfft",
    "The inverse of `hfft`: the first half of a spectrum whose other half are its conjugates.",
    "td.fft.ihfft(td.asarray([2.0, 0.0])).tolist()\n    [(1-0j), (1-0j)]",
    given="complex",
    real=True,
)
def ihfft(self: Any, n: int | None, axis: int, norm: str) -> Any:
    return _halved("ihfft", self, n, axis, norm, True)


def _doubled(name: str, x: Any, n: int | None, axis: int, norm: str, inverse: bool) -> Any:
    def run(last: Any) -> Any:
        size = 2 * (last.shape[-1] - 1) if n is None else n
        by = factor(name, size, norm, inverse)
        half = resized(as_complex(last), size // 2 + 1)
        return scaled(c2r(half if inverse else conj(half), size), by)

    return along(name, x, axis, run)


@one_axis(
    "irfft",
    "The inverse of `rfft`: real numbers from the first half of their transform.",
    "td.fft.irfft(td.asarray([1.0, 1.0])).tolist()\n    [1.0, 0.0]",
    given="real",
    none=_HALF,
)
def irfft(self: Any, n: int | None, axis: int, norm: str) -> Any:
    return _doubled("irfft", self, n, axis, norm, True)


@one_axis(
    "hfft",
    "The discrete Fourier transform, real, of a signal whose second half are the conjugates of the first.",
    "td.fft.hfft(td.asarray([1.0, 1.0])).tolist()\n    [2.0, 0.0]",
    given="real",
    none=_HALF,
)
def hfft(self: Any, n: int | None, axis: int, norm: str) -> Any:
    return _doubled("hfft", self, n, axis, norm, False)
