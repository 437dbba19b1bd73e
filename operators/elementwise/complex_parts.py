"""Parts of complex numbers.

Derivatives follow JAX's convention: the cotangent of a complex value is the transposed, not the conjugated, derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...registry.dtypes import NUMERIC, float32, float64
from ...registry.values import TensorSpec
from ..declare.derivatives import Linear, Partials
from ..declare.kinds import binary, unary
from ..scalar_ir import nodes as s
from .arithmetic import mul

if TYPE_CHECKING:
    from ...registry.types import Tensor

real = unary(
    "real",
    lambda x: s.real(x) if x.dtype.kind == "c" else x,
    doc="The real part of each element; real elements are unchanged.",
    example="td.real(td.asarray([1 + 2j])) -> [1.0]",
    reference="numpy.real",
    dtypes=NUMERIC,
    result="real",
    method=False,
    derivative=Linear({"self": lambda g: g}),
)

complex = binary(
    "complex",
    s.complex_,
    doc="Complex numbers of their real and imaginary parts.",
    example="td.complex(td.asarray([1.0]), td.asarray([2.0])) -> [(1+2j)]",
    reference="references.numpy_functions.complex_of_parts",
    dtypes=(float32, float64),
    result="complex",
    method=False,
    derivative=Partials({"self": 1, "other": 1j}),
)


def _imag_transpose(g: Tensor, self_spec: TensorSpec) -> Tensor:
    return mul(g, -1j if self_spec.dtype.kind == "c" else 0)


imag = unary(
    "imag",
    lambda x: s.imag(x) if x.dtype.kind == "c" else s.const(0, x.dtype),
    doc="The imaginary part of each element; 0 for real elements.",
    example="td.imag(td.asarray([1 + 2j])) -> [2.0]",
    reference="numpy.imag",
    dtypes=NUMERIC,
    result="real",
    method=False,
    derivative=Linear({"self": _imag_transpose}),
)


def _conj_transpose(g: Tensor) -> Tensor:
    return conj(g)


conj = unary(
    "conj",
    lambda x: s.conj(x) if x.dtype.kind == "c" else x,
    doc="The complex conjugate of each element; real elements are unchanged.",
    example="td.conj(td.asarray([1 + 2j])) -> [(1-2j)]",
    reference="numpy.conjugate",
    dtypes=NUMERIC,
    derivative=Linear({"self": _conj_transpose}),
    aliases=("conjugate",),
)
