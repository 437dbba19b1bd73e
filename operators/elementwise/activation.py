"""Activation functions of neural networks. The derivative of `relu` at 0 is 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ... import lazy
from ...errors import ValueArgumentError
from ...registry.dtypes import FLOATS, REAL, bool_
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.derivatives import Partials
from ..declare.docstrings import make_docstring
from ..declare.kinds import binary, composite, unary
from ..scalar_ir import nodes as s
from .arithmetic import abs
from .comparison import ge, gt
from .exponential import erf, exp, expm1
from .selection import minimum, where
from .trigonometry import tanh

if TYPE_CHECKING:
    from ...registry.types import Array, Tensor

scipy_special = lazy.Module("scipy.special")

_REAL = (bool_, *REAL)


relu = unary(
    "relu",
    lambda x: s.maximum(x, 0),
    doc="The positive part of each element; NaN stays NaN.",
    example="td.relu(td.asarray([-1.0, 2.0])) -> [0.0, 2.0]",
    reference=lambda x: np.maximum(x, x.dtype.type(0)),
    dtypes=REAL,
    derivative=Partials({"self": lambda g, self: where(gt(self, 0), g, 0.0)}),
)
sigmoid = unary(
    "sigmoid",
    s.sigmoid,
    doc="1 / (1 + exp(-self)), without intermediate overflow.",
    example="td.sigmoid(td.asarray([0.0])) -> [0.5]",
    reference="scipy.special.expit",
    dtypes=_REAL,
    result="float",
    special=((100.0,), (-80.0,)),
    derivative=Partials({"self": lambda out: out * (1 - out)}),
)


def _silu_derivative(self: Tensor) -> Tensor:
    share = sigmoid(self)
    return share * (1 + self * (1 - share))


silu = unary(
    "silu",
    lambda x: x * s.sigmoid(x),
    doc="self * sigmoid(self), also called swish.",
    example="td.silu(td.asarray([0.0])) -> [0.0]",
    reference=lambda x: x * np.reciprocal(1 + np.exp(-x)),
    dtypes=_REAL,
    result="float",
    derivative=Partials({"self": _silu_derivative}),
)
softplus = unary(
    "softplus",
    lambda x: s.maximum(x, 0) + s.log1p(s.exp(-s.abs(x))),
    doc="log(1 + exp(self)), without intermediate overflow.",
    example="td.softplus(td.asarray([float('-inf'), 100.0])) -> [0.0, 100.0]",
    reference=lambda x: np.logaddexp(x, x.dtype.type(0)),
    dtypes=_REAL,
    result="float",
    special=((100.0,), (-80.0,)),
    derivative=Partials({"self": lambda self: sigmoid(self)}),
    autocast="float32",
)


# -- gelu: an operator for each formula, and a composite that selects one ----------------------------------------------
_SQRT_HALF = math.sqrt(0.5)
_DENSITY = 1 / math.sqrt(2 * math.pi)  # of the normal distribution, at 0
_SLOPE, _CUBE = math.sqrt(2 / math.pi), 0.044715


def _gelu_erf_derivative(self: Tensor) -> Tensor:
    return 0.5 * (1 + erf(self * _SQRT_HALF)) + self * exp(-0.5 * self * self) * _DENSITY


def _gelu_tanh_derivative(self: Tensor) -> Tensor:
    t = tanh(_SLOPE * (self + _CUBE * self * self * self))
    return 0.5 * (1 + t) + 0.5 * self * (1 - t * t) * _SLOPE * (1 + 3 * _CUBE * self * self)


def _gelu_erf_reference(x: Array) -> Array:
    wide = x.astype(np.float64)
    result: Array = (wide * scipy_special.ndtr(wide)).astype(x.dtype)
    return result


def _gelu_tanh_reference(x: Array) -> Array:
    wide = x.astype(np.float64)
    result: Array = (0.5 * wide * (1 + np.tanh(_SLOPE * (wide + _CUBE * wide**3)))).astype(x.dtype)
    return result


gelu_erf = unary(
    "gelu_erf",
    lambda x: 0.5 * x * (1 + s.erf(x * _SQRT_HALF)),
    doc="The element times the probability that a standard normal variable is smaller.",
    example="td.ops.td.gelu_erf(td.asarray([0.0])) -> [0.0]",
    reference=_gelu_erf_reference,
    dtypes=_REAL,
    result="float",
    derivative=Partials({"self": _gelu_erf_derivative}),
    tolerance={"float32": 5e-5, "float64": 1e-13},  # 1 + erf(x) loses digits below 0
    method=False,
)
gelu_tanh = unary(
    "gelu_tanh",
    # (1 + tanh(u)) / 2 loses the digits of small values
    lambda x: x * s.sigmoid(2 * _SLOPE * (x + _CUBE * x * x * x)),
    doc="`gelu_erf` with the probability approximated by a tanh.",
    example="td.ops.td.gelu_tanh(td.asarray([0.0])) -> [0.0]",
    reference=_gelu_tanh_reference,
    dtypes=_REAL,
    result="float",
    derivative=Partials({"self": _gelu_tanh_derivative}),
    method=False,
)


@composite(
    'gelu(Tensor self, *, str approximate="none") -> Tensor',
    doc=make_docstring(
        "The Gaussian error linear unit.",
        """Args:
    self: tensor of bool, integer or real floating dtype, any shape.
    approximate: "none" for the exact function, "tanh" for the approximation by a tanh.

Returns:
    A tensor of the same shape; the default float for integers and bools.

Raises:
    ValueArgumentError: another `approximate`.""",
        "td.gelu(td.asarray([0.0])) -> [0.0]",
    ),
    reference=_gelu_erf_reference,
    dtypes=FLOATS,
    samples="samples.elementwise.float_samples",
    errors=lambda: [
        ErrorInput((TensorSample((2,)),), ValueError, "'none' or 'tanh'", {"approximate": "erf"})
    ],
)
def gelu(self: Tensor, *, approximate: str) -> Tensor:
    if approximate not in ("none", "tanh"):
        raise ValueArgumentError(f"gelu: approximate must be 'none' or 'tanh', not {approximate!r}")
    return gelu_tanh(self) if approximate == "tanh" else gelu_erf(self)


relu_with_slope = binary(
    "relu_with_slope",
    lambda x, slope: s.select(s.gt(x, 0), x, x * slope),
    doc="The positive elements, and the others times `other`.",
    example="td.ops.td.relu_with_slope(td.asarray([-2.0, 2.0]), 0.5) -> [-1.0, 2.0]",
    reference=lambda x, slope: np.where(x > 0, x, x * slope),
    dtypes=FLOATS,
    derivative=Partials(
        {
            "self": lambda g, self, other: where(gt(self, 0), g, g * other),
            "other": lambda g, self, other: where(gt(self, 0), 0.0, g * self),
        }
    ),
    method=False,
)


def _hardswish_derivative(g: Tensor, self: Tensor) -> Tensor:
    inside = where(gt(3.0, abs(self)), g * (self / 3 + 0.5), 0.0)
    return where(ge(self, 3.0), g, inside)


hardsigmoid = unary(
    "hardsigmoid",
    lambda x: s.minimum(s.maximum(x + 3, 0), 6) / 6,
    doc="(self + 3) / 6, limited to the interval from 0 to 1.",
    example="td.ops.td.hardsigmoid(td.asarray([-4.0, 0.0])) -> [0.0, 0.5]",
    reference=lambda x: np.clip(x + x.dtype.type(3), 0, 6) / x.dtype.type(6),
    dtypes=FLOATS,
    domain=(-5.0, 5.0),
    derivative=Partials({"self": lambda g, self: where(gt(3.0, abs(self)), g / 6, 0.0)}),
    method=False,
)
hardswish = unary(
    "hardswish",
    lambda x: x * (s.minimum(s.maximum(x + 3, 0), 6) / 6),
    doc="self * hardsigmoid(self).",
    example="td.ops.td.hardswish(td.asarray([-4.0, 3.0])) -> [-0.0, 3.0]",
    reference=lambda x: x * (np.clip(x + x.dtype.type(3), 0, 6) / x.dtype.type(6)),
    dtypes=FLOATS,
    domain=(-5.0, 5.0),
    derivative=Partials({"self": _hardswish_derivative}),
    method=False,
)


@composite(
    "leaky_relu(Tensor self, float negative_slope=0.01) -> Tensor",
    doc=make_docstring(
        "The positive elements, and the others times a slope.",
        """Args:
    self: tensor of real floating dtype, any shape.
    negative_slope: the slope below 0; also the derivative at 0.

Returns:
    A tensor of the same shape and dtype.""",
        "td.leaky_relu(td.asarray([-2.0, 2.0]), 0.5) -> [-1.0, 2.0]",
    ),
    reference=lambda x: np.where(x > 0, x, x * x.dtype.type(0.01)),
    dtypes=FLOATS,
    samples="samples.elementwise.float_samples",
    inplace=True,
)
def leaky_relu(self: Tensor, negative_slope: float) -> Tensor:
    return relu_with_slope(self, negative_slope)


@composite(
    "elu(Tensor self, float alpha=1.0) -> Tensor",
    doc=make_docstring(
        "The positive elements, and alpha * (exp(self) - 1) for the others.",
        """Args:
    self: tensor of real floating dtype, any shape.
    alpha: minus the limit at minus infinity.

Returns:
    A tensor of the same shape and dtype.""",
        "td.elu(td.asarray([0.0, 2.0])) -> [0.0, 2.0]",
    ),
    reference=lambda x: np.where(x > 0, x, np.expm1(x)),
    dtypes=FLOATS,
    samples="samples.elementwise.float_samples",
    inplace=True,
)
def elu(self: Tensor, alpha: float) -> Tensor:
    return where(gt(self, 0), self, alpha * expm1(minimum(self, 0.0)))
