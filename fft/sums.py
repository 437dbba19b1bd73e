"""The three sums that all transforms are made of, along the last axis and without any factor.

They are linear, so a transpose is their derivative. That of the sum over complex numbers is the sum itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..operators.batching import leading
from ..operators.comparison import eq
from ..operators.complex_parts import conj, real
from ..operators.creation import arange
from ..operators.declare import Bad, Draw, Sample
from ..operators.derivatives import Linear
from ..operators.kinds import library
from ..operators.pieces import part
from ..operators.repeating import pad
from ..operators.rules import compute_dtype, spec_of
from ..operators.selection import where
from ..registry.dtypes import COMPLEX, DType, complex64, complex128, float32, float64
from ..registry.values import TensorSpec

FLOATING = (float32, float64)
CLOSE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}


def resized(x: Any, size: int) -> Any:
    """A tensor with its last axis cut, or filled up with zeros."""
    *lead, own = x.shape
    if own >= size:
        return x if own == size else part(x, len(lead), 0, size)
    return pad(x, (*((0, 0) for _ in lead), (0, size - own)))


def _checked(name: str, x: Any, dtypes: tuple[DType, ...]) -> TensorSpec:
    spec = spec_of(x)
    compute_dtype(name, "same", dtypes, (spec,))
    if not spec.shape or spec.shape[-1] < 1:
        raise ShapeError(f"{name}: needs at least one point to transform, not shape {spec.shape}")
    return spec


def _samples(*rest: Any) -> list[Sample]:
    return [
        Sample((Draw((*lead, n)), *rest)) for lead, n in (((), 1), ((), 5), ((2,), 4), ((2, 3), 6), ((0,), 3))
    ]


# -- complex to complex ------------------------------------------------------------------------------------------------
def _c2c_kernel(xp: Any, self: Any, inverse: bool) -> Any:
    return xp.fft.ifft(self, norm="forward") if inverse else xp.fft.fft(self)


c2c: Any = library(
    "fourier",
    "fft_c2c(Tensor self, bool inverse=False) -> Tensor",
    lambda self, inverse=False: _checked("fft_c2c", self, COMPLEX),
    _c2c_kernel,
    doc="""Sums of complex numbers times powers of a root of unity, along the last axis.

    Args:
        self: a complex tensor of at least one axis.
        inverse: whether the powers are those of the conjugated root.

    Returns:
        A tensor of the same shape and dtype; there is no factor.

    >>> td.ops.td.fft_c2c(td.asarray([1 + 0j, 0j])).tolist()
    [(1+0j), (1+0j)]
    """,
    reference=lambda x, inverse=False: _reference_c2c(x, inverse),
    dtypes=COMPLEX,
    derivative=Linear({"self": lambda g, inverse: c2c(g, inverse)}),
    batching=leading,
    samples=lambda dtype: [*_samples(), *_samples(True)],
    errors=lambda: [
        Bad((Draw((3,), dtype=float32),), TypeError, "does not take float32"),
        Bad((Draw((2, 0), dtype=complex64),), ValueError, "at least one point"),
    ],
    tolerance=CLOSE,
    method=False,
)


def _reference_c2c(x: Any, inverse: bool) -> Any:
    return np.fft.ifft(x) * x.shape[-1] if inverse else np.fft.fft(x)


# -- real to half of the complex numbers -------------------------------------------------------------------------------
def _r2c_meta(self: Any) -> TensorSpec:
    spec = _checked("fft_r2c", self, FLOATING)
    dtype = complex128 if spec.dtype is float64 else complex64
    return TensorSpec((*spec.shape[:-1], spec.shape[-1] // 2 + 1), dtype, spec.device)


r2c: Any = library(
    "fourier",
    "fft_r2c(Tensor self) -> Tensor",
    _r2c_meta,
    lambda xp, self: xp.fft.rfft(self),
    doc="""The first half of the sums for real numbers; the other half are their conjugates.

    Args:
        self: a real tensor of at least one axis.

    Returns:
        A complex tensor; the last axis, of length N, becomes one of length N // 2 + 1. There is no factor.

    >>> td.ops.td.fft_r2c(td.asarray([1.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """,
    reference="numpy.fft.rfft",
    dtypes=FLOATING,
    derivative=Linear({"self": lambda g, self_spec: real(c2c(resized(g, self_spec.shape[-1])))}),
    batching=leading,
    samples=lambda dtype: _samples(),
    errors=lambda: [Bad((Draw((2, 0)),), ValueError, "at least one point")],
    tolerance=CLOSE,
    method=False,
)


# -- and back ----------------------------------------------------------------------------------------------------------
def _c2r_meta(self: Any, n: int) -> TensorSpec:
    spec = _checked("fft_c2r", self, COMPLEX)
    if n < 1 or n // 2 + 1 != spec.shape[-1]:
        raise ShapeError(
            f"fft_c2r: {n} real numbers follow from {n // 2 + 1} complex ones, not {spec.shape[-1]}"
        )
    return TensorSpec((*spec.shape[:-1], n), float64 if spec.dtype is complex128 else float32, spec.device)


def _weights(n: int, device: str) -> Any:
    """How often each of the first half of the sums occurs in the whole."""
    at = arange(n // 2 + 1, device=device)
    return where(eq(at * 2 % n, 0), 1.0, 2.0)


def _c2r_transpose(g: Any, n: int) -> Any:
    return conj(r2c(g)) * _weights(n, g.device)


c2r: Any = library(
    "fourier",
    "fft_c2r(Tensor self, int n) -> Tensor",
    _c2r_meta,
    lambda xp, self, n: xp.fft.irfft(self, n, norm="forward"),
    doc="""The real numbers that have these sums, times how many they are.

    Args:
        self: a complex tensor; the last axis has the first half of the sums.
        n: how many real numbers.

    Returns:
        A real tensor with ``n`` as its last size. There is no factor.

    Raises:
        ShapeError: so many numbers have more or fewer sums.

    >>> td.ops.td.fft_c2r(td.asarray([1 + 0j, 1 + 0j]), 2).tolist()
    [2.0, 0.0]
    """,
    reference=lambda x, n: np.fft.irfft(x, n) * n,
    dtypes=COMPLEX,
    derivative=Linear({"self": _c2r_transpose}),
    batching=leading,
    samples=lambda dtype: [
        Sample((Draw((*lead, n // 2 + 1)), n))
        for lead, n in (((), 1), ((), 2), ((), 5), ((2,), 4), ((2, 3), 7))
    ],
    errors=lambda: [Bad((Draw((3,), dtype=complex64), 3), ValueError, "real numbers")],
    tolerance=CLOSE,
    method=False,
)
