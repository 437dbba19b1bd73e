"""Parts of complex numbers.

Derivatives follow JAX's convention: the cotangent of a complex value is the transposed, not the conjugated, derivative.
"""

from __future__ import annotations

from typing import Any

from ..registry.dtypes import COMPLEX, NUMERIC
from . import scalar as s
from .arithmetic import mul
from .derivatives import Linear
from .kinds import unary

real = unary(
    "real",
    s.real,
    doc="The real part of each element.",
    example="td.real(td.asarray([1 + 2j])) -> [1.0]",
    reference="numpy.real",
    dtypes=COMPLEX,
    result="real",
    derivative=Linear({"self": lambda g: g}),
)
imag = unary(
    "imag",
    s.imag,
    doc="The imaginary part of each element.",
    example="td.imag(td.asarray([1 + 2j])) -> [2.0]",
    reference="numpy.imag",
    dtypes=COMPLEX,
    result="real",
    derivative=Linear({"self": lambda g: mul(g, -1j)}),
)


def _conjugate(g: Any) -> Any:
    return conj(g)


conj = unary(
    "conj",
    lambda x: s.conj(x) if x.dtype.kind == "c" else x,
    doc="The complex conjugate of each element; real elements stay as they are.",
    example="td.conj(td.asarray([1 + 2j])) -> [(1-2j)]",
    reference="numpy.conjugate",
    dtypes=NUMERIC,
    derivative=Linear({"self": _conjugate}),
)
