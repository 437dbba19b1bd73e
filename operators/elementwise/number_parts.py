"""Parts of numbers: divmod, modf, frexp, ldexp, float_power, bitwise_count and around."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import DTypeError
from ...registry.dtypes import INTEGERS, NUMERIC, REAL, float64, int32, uint8, uint16, uint32, uint64
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import is_tensor, promoted_dtype, result_dtype, spec_of
from .arithmetic import abs, copysign, floor_divide, pow, remainder, sub
from .casting import cast
from .comparison import ge, isfinite, isinf, logical_and, lt, ne
from .exponential import exp2, log2
from .rounding import floor, round, trunc
from .selection import where

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Tensor

_FLOAT_ARGS = """Args:
    self: tensor of integer or real floating dtype, any shape; integers become the default float.{more}

Returns:
    {returns}

Raises:
    DTypeError: the dtype is not supported."""


def _to_float(x: Any) -> Any:  # noqa: ANN401
    dtype = spec_of(x).dtype
    return cast(x, result_dtype("float", dtype)) if is_tensor(x) and not dtype.is_inexact else x


@composite(
    "divmod(Tensor self, Tensor other) -> (Tensor quotient, Tensor remainder)",
    doc=make_docstring(
        "The quotients rounded down, and the remainders, whose sign is that of `other`.",
        """Args:
    self, other: tensors of integer or real floating dtype; shapes that broadcast.

Returns:
    The results of `floor_divide` and `remainder`.

Raises:
    DTypeError: the dtype is not supported.
    ShapeError: the shapes do not broadcast.

>>> [x.tolist() for x in td.divmod(td.asarray([7, -7]), 2)]
[[3, -4], [1, 1]]
""",
        "",
    ),
    reference="numpy.divmod",
    samples="samples.elementwise.divmod_samples",
    dtypes=REAL,
    method=False,
)
def divmod(self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    return floor_divide(self, other), remainder(self, other)


@composite(
    "modf(Tensor self) -> (Tensor fractional, Tensor integral)",
    doc=make_docstring(
        "The fractional and the integral part of each element, both with its sign.",
        _FLOAT_ARGS.format(more="", returns="Two tensors of the same shape.")
        + "\n\n>>> [x.tolist() for x in td.modf(td.asarray([1.5, -2.25]))]\n[[0.5, -0.25], [1.0, -2.0]]\n",
        "",
    ),
    reference="numpy.modf",
    samples=("samples.kinds.unary_samples", (-3.0, 3.0), ()),
    dtypes=REAL,
    method=False,
)
def modf(self: Tensor) -> tuple[Tensor, Tensor]:
    x = _to_float(self)
    whole = trunc(x)
    part = where(isinf(x), 0.0, sub(x, whole))
    return copysign(part, x), whole


def _ldexp_of_arrays(np: ArrayModule, x: Array, other: Array | int) -> Any:  # noqa: ANN401
    """``ldexp`` in the two steps of the body; NotImplemented for other dtypes."""
    is_number = type(other) is int
    if x.dtype.char not in "fd" or not (is_number or (hasattr(other, "dtype") and other.dtype.kind == "i")):
        return NotImplemented
    half, one = other // 2, x.dtype.type(1)
    with np.errstate(all="ignore"):
        return x * np.ldexp(one, half) * np.ldexp(one, other - half)


@composite(
    "ldexp(Tensor self, Tensor other) -> Tensor",
    doc=make_docstring(
        "self * 2**other.",
        _FLOAT_ARGS.format(
            more="\n    other: tensor of integer dtype; the shapes broadcast.",
            returns="A tensor of the broadcast shape.",
        ),
        "td.ldexp(td.asarray([1.0, 3.0]), 2) -> [4.0, 12.0]",
    ),
    reference="numpy.ldexp",
    eager_kernel=_ldexp_of_arrays,
    samples="samples.elementwise.ldexp_samples",
    dtypes=REAL,
    autocast="float32",
    inplace=True,
)
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    x = _to_float(self)
    dtype = spec_of(x).dtype
    half = floor_divide(other, 2)
    # in two steps, whose factors are finite where the result is
    result: Tensor = x * exp2(cast(half, dtype)) * exp2(cast(sub(other, half), dtype))
    return result


@composite(
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    doc=make_docstring(
        "Each element as mantissa * 2**exponent, with the mantissa's magnitude in [0.5, 1).",
        _FLOAT_ARGS.format(
            more="", returns="The mantissas, and the exponents as int32: 0 for 0, infinities and NaN."
        )
        + "\n\n>>> [x.tolist() for x in td.frexp(td.asarray([8.0, -0.75]))]\n[[0.5, -0.75], [4, 0]]\n",
        "",
    ),
    reference="numpy.frexp",
    samples="samples.elementwise.frexp_samples",
    dtypes=REAL,
    autocast="float32",
)
def frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    x = _to_float(self)
    is_normal = logical_and(isfinite(x), ne(x, 0))
    size = where(is_normal, abs(x), 1.0)
    power = cast(floor(log2(size)), int32) + 1
    mantissa = ldexp(where(is_normal, x, 1.0), -power)
    # the logarithm is rounded: the exponent is off by one next to powers of two
    is_large, is_small = ge(abs(mantissa), 1), lt(abs(mantissa), 0.5)
    mantissa = where(is_large, mantissa * 0.5, where(is_small, mantissa * 2, mantissa))
    power = power + cast(is_large, int32) - cast(is_small, int32)
    return where(is_normal, mantissa, x), where(is_normal, power, 0)


@composite(
    "float_power(Tensor self, Tensor other) -> Tensor",
    doc=make_docstring(
        "self to the power other, as a float, also of integers.",
        """Args:
    self, other: tensors of numeric dtype; shapes that broadcast.

Returns:
    A tensor of the broadcast shape, of the promoted dtype, or the default float for integers.

Raises:
    DTypeError: the dtypes do not promote.
    ShapeError: the shapes do not broadcast.""",
        "td.float_power(td.asarray([2, 4]), -1) -> [0.5, 0.25]",
    ),
    reference="references.numpy_functions.float_power",
    samples="samples.elementwise.float_power_samples",
    dtypes=NUMERIC,
    autocast="float32",
    inplace=True,
)
def float_power(self: Tensor, other: Tensor) -> Tensor:
    dtype = result_dtype("float", promoted_dtype("float_power", (self, other)))
    return pow(cast(self, dtype), cast(other, dtype) if is_tensor(other) else other)


# -- integers ----------------------------------------------------------------------------------------------------------
_UNSIGNED = {8: uint8, 16: uint16, 32: uint32, 64: uint64}


def _repeat_byte(byte: int, bits: int) -> int:
    return int.from_bytes(bytes([byte]) * (bits // 8), "big")


@composite(
    "bitwise_count(Tensor self) -> Tensor",
    doc=make_docstring(
        "The number of bits set in the magnitude of each element.",
        """Args:
    self: tensor of integer dtype, any shape.

Returns:
    A uint8 tensor of the same shape.

Raises:
    DTypeError: the dtype is not supported.""",
        "td.bitwise_count(td.asarray([7, 8, -1])) -> [3, 1, 1]",
    ),
    reference="numpy.bitwise_count",
    samples=("samples.kinds.unary_samples", (-100.0, 100.0), ()),
    dtypes=INTEGERS,
    method=False,
)
def bitwise_count(self: Tensor) -> Tensor:
    dtype = spec_of(self).dtype
    if not dtype.is_integer:
        raise DTypeError(f"bitwise_count: {dtype} is not an integer dtype")
    bits = 8 * dtype.np.itemsize
    x = cast(abs(self), _UNSIGNED[bits])
    x = x - ((x >> 1) & _repeat_byte(0x55, bits))
    x = (x & _repeat_byte(0x33, bits)) + ((x >> 2) & _repeat_byte(0x33, bits))
    x = (x + (x >> 4)) & _repeat_byte(0x0F, bits)
    return cast((x * _repeat_byte(0x01, bits)) >> (bits - 8), uint8)


# -- decimals ----------------------------------------------------------------------------------------------------------
@composite(
    "around(Tensor self, int decimals=0) -> Tensor",
    doc=make_docstring(
        "Each element rounded to some decimals, halves to even.",
        """Args:
    self: tensor of numeric dtype, any shape.
    decimals: the number of decimals; negative: the number of digits before the point that become 0.

Returns:
    A tensor of the same shape and dtype.""",
        "td.around(td.asarray([1.25, -3.75]), 1) -> [1.2000000476837158, -3.799999952316284]",
    ),
    reference="references.numpy_functions.around",
    samples="samples.elementwise.around_samples",
    dtypes=NUMERIC,
    method=False,
    tolerance={"float16": 1e-2, "bfloat16": 8e-2},
    autocast="float32",
    spellings={"a": "self"},
)
def around(self: Tensor, decimals: int) -> Tensor:
    dtype = spec_of(self).dtype
    if not decimals or (decimals > 0 and not dtype.is_inexact):
        return round(self) if dtype.is_inexact else cast(self, dtype)
    if not dtype.is_inexact:
        return cast(round(cast(self, float64) / 10.0**-decimals) * 10.0**-decimals, dtype)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    return round(self * scale) / scale if decimals > 0 else round(self / scale) * scale
