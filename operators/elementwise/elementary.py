"""Elementwise functions that are composed of other operators: angle, sinc, nan_to_num."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import lazy
from ...registry.dtypes import ALL, COMPLEX, DType
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import result_dtype, spec_of
from .casting import astype
from .comparison import eq, isnan, logical_and, logical_not, lt, signbit
from .complex_parts import imag, real
from .selection import where
from .trigonometry import atan2, sin

if TYPE_CHECKING:
    from ...registry.types import Tensor

ml_dtypes = lazy.Module("ml_dtypes")

_FLOATING = ALL[-6:]
_ARGS = """Args:
    self: tensor of {dtypes} dtype; any shape.

Returns:
    A tensor of the same shape, of the {result} dtype; the default float for integers.

Raises:
    DTypeError: the dtype is not supported."""


@composite(
    "angle(Tensor self) -> Tensor",
    doc=make_docstring(
        "The angle of each element in the complex plane, in radians: 0 or pi for real elements.",
        _ARGS.format(dtypes="any", result="real"),
        "td.angle(td.asarray([1.0, -0.5 + 0j])).astype(td.float16) -> [0.0, 3.140625]",
    ),
    reference="references.arrays.angle",
    samples=("samples.kinds.unary_samples", (-3.0, 3.0), ()),
    dtypes=ALL,
)
def angle(self: Tensor) -> Tensor:
    x = astype(self, result_dtype("float", spec_of(self).dtype), copy=False)
    if spec_of(x).dtype in COMPLEX:
        return atan2(imag(x), real(x))
    is_left = logical_and(signbit(x), logical_not(isnan(x)))  # -0.0 too
    return where(is_left, math.pi, where(isnan(x), x, 0.0))


# -- sinc --------------------------------------------------------------------------------------------------------------
_TERMS = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(8, -1, -1))


def _sinc_series(square: Tensor) -> Tensor:
    """``sin(y) / y`` from ``y**2`` below 1/4, to the last bit: the Taylor series."""
    total: Tensor = square * _TERMS[0] + _TERMS[1]
    for term in _TERMS[2:]:
        total = total * square + term
    return total


@composite(
    "sinc(Tensor self) -> Tensor",
    doc=make_docstring(
        "sin(pi * self) / (pi * self), and 1 at 0, where derivatives of any order are defined too.",
        _ARGS.format(dtypes="real", result="same"),
        "td.sinc(td.asarray([0.0, 1.0])).astype(td.int8) -> [1, 0]",
    ),
    reference="numpy.sinc",
    samples="samples.elementwise.sinc_samples",
    dtypes=_FLOATING[:4],
    tolerance={"float32": 1e-5, "float64": 1e-13},
    inplace=True,
)
def sinc(self: Tensor) -> Tensor:
    y = self * math.pi
    square = y * y
    is_near = lt(square, 0.25)
    far = where(is_near, 1.0, y)
    return where(is_near, _sinc_series(where(is_near, square, 0.0)), sin(far) / far)


# -- nan_to_num --------------------------------------------------------------------------------------------------------
@composite(
    "nan_to_num(Tensor self, *, float nan=0.0, float? posinf=None, float? neginf=None) -> Tensor",
    doc=make_docstring(
        "Replace NaN and infinities by numbers; no gradient flows to the replaced elements.",
        """Args:
    self: tensor of any dtype and shape.
    nan: the replacement of NaN.
    posinf, neginf: the replacements of the infinities; None: the largest and the smallest number of the dtype.

Returns:
    A tensor of the same shape and dtype; complex numbers are replaced part by part.""",
        "td.nan_to_num(td.asarray([float('nan'), 1.0])) -> [0.0, 1.0]",
    ),
    reference="references.arrays.nan_to_num",
    samples="samples.elementwise.nan_to_num_samples",
    dtypes=ALL,
    inplace=True,
)
def nan_to_num(self: Tensor, *, nan: float, posinf: float | None, neginf: float | None) -> Tensor:
    dtype = spec_of(self).dtype
    if dtype in COMPLEX:
        parts = [nan_to_num(part(self), nan=nan, posinf=posinf, neginf=neginf) for part in (real, imag)]
        return astype(parts[0] + 1j * parts[1], dtype, copy=False)
    if not dtype.is_inexact:
        return self
    high = _largest_finite(dtype) if posinf is None else posinf
    low = -_largest_finite(dtype) if neginf is None else neginf
    result = where(isnan(self), nan, self)
    return where(eq(self, math.inf), high, where(eq(self, -math.inf), low, result))


def _largest_finite(dtype: DType) -> float:
    return float(ml_dtypes.finfo(dtype.np).max)
