"""The primitives ``c2c``, ``r2c`` and ``c2r``: unscaled transforms along the last axis, of which all are composed.

They are linear, so their derivatives are transposes; ``c2c`` is its own transpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import lazy
from ..errors import ShapeError
from ..operators.creation.creation import arange
from ..operators.declare.batching import leading
from ..operators.declare.declaration import ErrorInput, SampleInput, TensorSample
from ..operators.declare.derivatives import Linear
from ..operators.declare.kinds import array_op
from ..operators.declare.native_kernel import DOUBLES, NativeKernel, NativeLoop
from ..operators.declare.shape_rules import compute_dtype, spec_of
from ..operators.elementwise.comparison import eq
from ..operators.elementwise.complex_parts import conj, real
from ..operators.elementwise.selection import where
from ..operators.shape.padding import pad
from ..operators.shape.splitting import slice_axis
from ..registry.dtypes import COMPLEX, DType, complex64, complex128, float32, float64, to_complex
from ..registry.values import TensorSpec

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import Array, ArrayModule, Tensor, TensorOrSpec

_ufuncs = lazy.Module("numpy.fft._pocketfft_umath")
FLOATING = (float32, float64)
CLOSE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}


def resize_last_axis(x: Tensor, size: int) -> Tensor:
    """A tensor with its last axis truncated, or padded with zeros."""
    *lead, own = x.shape
    if own >= size:
        return x if own == size else slice_axis(x, len(lead), 0, size)
    return pad(x, (*((0, 0) for _ in lead), (0, size - own)))


def _check_points(name: str, x: TensorOrSpec, dtypes: tuple[DType, ...]) -> TensorSpec:
    spec = spec_of(x)
    compute_dtype(name, "same", dtypes, (spec,))
    if not spec.shape or spec.shape[-1] < 1:
        raise ShapeError(f"{name}: needs at least one point to transform, not shape {spec.shape}")
    return spec


def compute_transform(
    xp: ArrayModule, name: str, self: Array, points: int, out: np.dtype[Any]
) -> Array | None:
    """Return a transform by NumPy's ufunc, in the precision of its operand; None without such a ufunc.

    NumPy's functions compute transforms that have no factor in double precision.
    """
    try:
        ufunc = getattr(_ufuncs, name, None) if xp is np else None
    except ImportError:  # the module is private
        return None
    if ufunc is None:
        return None
    result = np.empty((*self.shape[:-1], points), out)
    ufunc(self, self.real.dtype.type(1), out=result)
    return result


# -- complex to complex ------------------------------------------------------------------------------------------------
def _c2c_kernel(xp: ArrayModule, self: Array, inverse: bool) -> Array:
    result = compute_transform(xp, "ifft" if inverse else "fft", self, self.shape[-1], self.dtype)
    if result is not None:
        return result
    return xp.fft.ifft(self, norm="forward") if inverse else xp.fft.fft(self)


c2c: OperatorFunction[Tensor] = array_op(
    "fourier",
    "fft_c2c(Tensor self, bool inverse=False) -> Tensor",
    lambda self, inverse=False: _check_points("fft_c2c", self, COMPLEX),
    _c2c_kernel,
    doc="""The discrete Fourier transform of complex numbers along the last axis, without a factor.

    Args:
        self: a complex tensor of at least one axis.
        inverse: whether to compute the inverse transform.

    Returns:
        A tensor of the same shape and dtype.

    >>> td.ops.td.fft_c2c(td.asarray([1 + 0j, 0j])).tolist()
    [(1+0j), (1+0j)]
    """,
    reference=lambda x, inverse=False: _reference_c2c(x, inverse),
    dtypes=COMPLEX,
    derivative=Linear({"self": lambda g, inverse: c2c(g, inverse)}),
    batching=leading,
    native=NativeKernel(
        (
            NativeLoop("numpy.fft", "fft", lambda self, inverse=False: not inverse, (1.0,)),
            NativeLoop("numpy.fft", "ifft", lambda self, inverse=False: inverse, (1.0,)),
        ),
        widen=DOUBLES,
    ),
    samples="samples.fft.c2c_samples",
    errors=lambda: [
        ErrorInput((TensorSample((3,), dtype=float32),), TypeError, "does not take float32"),
        ErrorInput((TensorSample((2, 0), dtype=complex64),), ValueError, "at least one point"),
    ],
    tolerance=CLOSE,
    method=False,
)


def _reference_c2c(x: Array, inverse: bool) -> Array:
    return np.fft.ifft(x) * x.shape[-1] if inverse else np.fft.fft(x)


# -- real to complex ---------------------------------------------------------------------------------------------------
def _r2c_shape_rule(self: TensorSpec) -> TensorSpec:
    spec = _check_points("fft_r2c", self, FLOATING)
    dtype = to_complex(spec.dtype)
    return TensorSpec((*spec.shape[:-1], spec.shape[-1] // 2 + 1), dtype, spec.device)


def _r2c_kernel(xp: ArrayModule, self: Array) -> Array:
    points, name = self.shape[-1], "rfft_n_odd" if self.shape[-1] % 2 else "rfft_n_even"
    result = compute_transform(xp, name, self, points // 2 + 1, np.result_type(self.dtype, np.complex64))
    return xp.fft.rfft(self) if result is None else result


r2c = array_op(
    "fourier",
    "fft_r2c(Tensor self) -> Tensor",
    _r2c_shape_rule,
    _r2c_kernel,
    doc="""The first half of the transform of real numbers, without a factor; the other half are its conjugates.

    Args:
        self: a real tensor of at least one axis.

    Returns:
        A complex tensor; the last axis, of length N, becomes one of length N // 2 + 1.

    >>> td.ops.td.fft_r2c(td.asarray([1.0, 0.0])).tolist()
    [(1+0j), (1+0j)]
    """,
    reference="numpy.fft.rfft",
    dtypes=FLOATING,
    derivative=Linear({"self": lambda g, self_spec: real(c2c(resize_last_axis(g, self_spec.shape[-1])))}),
    batching=leading,
    native=NativeKernel(
        (
            NativeLoop("numpy.fft", "rfft_n_even", lambda self: self.shape[-1] % 2 == 0, (1.0,)),
            NativeLoop("numpy.fft", "rfft_n_odd", lambda self: self.shape[-1] % 2 == 1, (1.0,)),
        ),
        widen=DOUBLES,
    ),
    samples="samples.fft.point_samples",
    errors=lambda: [ErrorInput((TensorSample((2, 0)),), ValueError, "at least one point")],
    tolerance=CLOSE,
    method=False,
)


# -- complex to real ---------------------------------------------------------------------------------------------------
def _c2r_shape_rule(self: TensorSpec, n: int) -> TensorSpec:
    spec = _check_points("fft_c2r", self, COMPLEX)
    if n < 1 or n // 2 + 1 != spec.shape[-1]:
        raise ShapeError(f"fft_c2r: {n} real numbers need {n // 2 + 1} complex numbers, not {spec.shape[-1]}")
    return TensorSpec((*spec.shape[:-1], n), float64 if spec.dtype is complex128 else float32, spec.device)


def _half_weights(n: int, device: str) -> Tensor:
    """The number of times that each element of the first half occurs in the whole transform: 1 or 2."""
    at = arange(n // 2 + 1, device=device)
    return where(eq(at * 2 % n, 0), 1.0, 2.0)


def _c2r_transpose(g: Tensor, n: int) -> Tensor:
    return conj(r2c(g)) * _half_weights(n, g.device)


def _c2r_kernel(xp: ArrayModule, self: Array, n: int) -> Array:
    result = compute_transform(xp, "irfft", self, n, self.real.dtype)
    return xp.fft.irfft(self, n, norm="forward") if result is None else result


c2r = array_op(
    "fourier",
    "fft_c2r(Tensor self, int n) -> Tensor",
    _c2r_shape_rule,
    _c2r_kernel,
    doc="""The inverse of ``fft_r2c``, times ``n``.

    Args:
        self: a complex tensor whose last axis is the first half of a transform.
        n: the number of real numbers.

    Returns:
        A real tensor with last size ``n``.

    Raises:
        ShapeError: the last size is not ``n // 2 + 1``.

    >>> td.ops.td.fft_c2r(td.asarray([1 + 0j, 1 + 0j]), 2).tolist()
    [2.0, 0.0]
    """,
    reference=lambda x, n: np.fft.irfft(x, n) * n,
    dtypes=COMPLEX,
    derivative=Linear({"self": _c2r_transpose}),
    batching=leading,
    native=NativeKernel((NativeLoop("numpy.fft", "irfft", lambda self, n: True, (1.0,)),), widen=DOUBLES),
    samples=lambda dtype: [
        SampleInput((TensorSample((*lead, n // 2 + 1)), n))
        for lead, n in (((), 1), ((), 2), ((), 5), ((2,), 4), ((2, 3), 7))
    ],
    errors=lambda: [ErrorInput((TensorSample((3,), dtype=complex64), 3), ValueError, "real numbers")],
    tolerance=CLOSE,
    method=False,
)
