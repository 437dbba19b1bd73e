"""Elementwise functions of ``jax.lax`` whose arguments or meaning are not those of tandem's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ArgumentError, ShapeError, ValueArgumentError
from ...numpy.shapes import to_condition
from ...operators.declare.shape_rules import promoted_dtype, spec_of
from ...operators.elementwise import arithmetic
from ...operators.elementwise.activation import sigmoid as logistic
from ...operators.elementwise.arithmetic import abs, sign
from ...operators.elementwise.bitwise import bitwise_not, bitwise_right_shift
from ...operators.elementwise.casting import astype, clone, stop_gradient
from ...operators.elementwise.comparison import eq, isfinite
from ...operators.elementwise.number_parts import bitwise_count
from ...operators.elementwise.selection import clip, where
from ...operators.shape.bitcast import bitcast
from ...operators.shape.rearrange import squeeze
from ...operators.shape.views import reshape
from ...pytree import tree_map
from ...registry.dtypes import SIGNED, UNSIGNED, as_dtype, bfloat16, float16, float32, float64

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, Pytree, Tensor

__all__ = [
    "bitcast_convert_type",
    "clamp",
    "clz",
    "convert_element_type",
    "div",
    "integer_pow",
    "logistic",
    "optimization_barrier",
    "reduce_precision",
    "select",
    "select_n",
    "shift_right_logical",
]


def div(x: Tensor, y: Tensor) -> Tensor:
    """Quotients; of integers rounded towards zero.

    >>> import tandem as td
    >>> td.jax.lax.div(td.asarray([-7, 7]), 2).tolist()
    [-3, 3]
    """
    if promoted_dtype("div", (x, y)).is_inexact:
        return arithmetic.div(x, y)
    return arithmetic.floor_divide(arithmetic.sub(x, arithmetic.fmod(x, y)), y)


def clamp(min: Tensor, x: Tensor, max: Tensor) -> Tensor:
    """``x`` between two bounds, which come first and last."""
    return clip(x, min, max)


def select(pred: Tensor, on_true: Tensor, on_false: Tensor) -> Tensor:
    """Elements of the second argument where ``pred`` holds, or is not 0, else of the third."""
    return where(to_condition(pred), on_true, on_false)


def select_n(which: Tensor, *cases: Tensor) -> Tensor:
    """Elements of the case whose number ``which`` has; of a bool, the second case where it holds.

    Raises:
        ArgumentError: there is no case.
    """
    if not cases:
        raise ArgumentError("select_n takes at least one case")
    result = cases[0]
    for number, case in enumerate(cases[1:], 1):
        result = where(eq(which, number), case, result)
    return result


def integer_pow(x: Tensor, y: int) -> Tensor:
    """``x`` to the power of a Python integer."""
    return arithmetic.pow(x, y)


def convert_element_type(operand: Tensor, new_dtype: DTypeLike) -> Tensor:
    """The elements in another dtype."""
    return astype(operand, new_dtype)


def bitcast_convert_type(operand: Tensor, new_dtype: DTypeLike) -> Tensor:
    """The bits of the elements as another dtype, in memory of its own.

    Smaller elements are along a new last axis; for larger ones, the last axis has the parts of one.

    Raises:
        ShapeError: the last axis does not have the parts of one element.

    >>> import tandem as td
    >>> td.jax.lax.bitcast_convert_type(td.ones(2), td.uint16).shape
    (2, 2)
    """
    spec, dtype = spec_of(operand), as_dtype(new_dtype)
    old, new = spec.dtype.itemsize, dtype.itemsize
    if new < old:
        operand = reshape(operand, (*spec.shape, 1))
    elif new > old and (not spec.shape or spec.shape[-1] != new // old):
        raise ShapeError(
            f"bitcast_convert_type: {new // old} elements of {spec.dtype} make one of {dtype}, not {spec.shape}"
        )
    bits = bitcast(operand, dtype)
    return clone(squeeze(bits, -1) if new > old else bits)


def shift_right_logical(x: Tensor, y: Tensor) -> Tensor:
    """``x`` shifted right by ``y`` bits; zeros come in, for negative numbers too.

    >>> import tandem as td
    >>> td.jax.lax.shift_right_logical(td.asarray([-1], dtype=td.int8), 4).tolist()
    [15]
    """
    dtype = promoted_dtype("shift_right_logical", (x, y))
    if dtype.kind != "i":
        return bitwise_right_shift(x, y)
    unsigned = UNSIGNED[SIGNED.index(dtype)]
    return astype(bitwise_right_shift(astype(x, unsigned), astype(y, unsigned)), dtype)


def clz(x: Tensor) -> Tensor:
    """The number of leading zero bits of integers.

    >>> import tandem as td
    >>> td.jax.lax.clz(td.asarray([0, 1, -1], dtype=td.int8)).tolist()
    [8, 7, 0]
    """
    dtype, step = spec_of(x).dtype, 1
    bits = _to_unsigned(x)
    while step < 8 * dtype.itemsize:  # every bit after the first one is set
        bits, step = bits | bitwise_right_shift(bits, step), 2 * step
    return astype(bitwise_count(bitwise_not(bits)), dtype)


def _to_unsigned(x: Tensor) -> Tensor:
    dtype = spec_of(x).dtype
    return x if dtype in UNSIGNED else astype(x, UNSIGNED[SIGNED.index(dtype)])


def population_count(x: Tensor) -> Tensor:
    """The number of bits that are set, of negative integers in two's complement, in the same dtype.

    >>> import tandem as td
    >>> td.jax.lax.population_count(td.asarray([3, -1], dtype=td.int8)).tolist()
    [2, 8]
    """
    return astype(bitwise_count(_to_unsigned(x)), spec_of(x).dtype)


def optimization_barrier(operand: Pytree) -> Pytree:
    """The argument, a pytree of tensors; tandem has no barrier, since the order of computation does not change results.

    Source: ``jax.lax.optimization_barrier``.
    """
    return tree_map(lambda x: x, operand)


def reduce_precision(operand: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """The elements rounded to fewer bits, in the same dtype.

    Numbers too large become infinite, those too small 0. The derivative is that of the identity.

    Args:
        operand: a tensor of float16, bfloat16, float32 or float64.
        exponent_bits: the bits of the exponent, at least 1.
        mantissa_bits: the bits of the fraction.

    Raises:
        ValueArgumentError: a number of bits is negative, or there is no exponent.

    Source: ``jax.lax.reduce_precision``.

    >>> import tandem as td
    >>> td.jax.lax.reduce_precision(td.asarray([1.1, 70000.0]), 5, 10).tolist()
    [1.099609375, inf]
    """
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueArgumentError(
            f"reduce_precision: {exponent_bits} bits of exponent and {mantissa_bits} of fraction"
        )
    rounded = _round_bits(stop_gradient(operand), exponent_bits, mantissa_bits)
    return where(isfinite(operand), operand + (rounded - stop_gradient(operand)), rounded)


def _round_bits(x: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """Round to nearest, ties to even, by the bits; what the exponent cannot have becomes infinite or 0."""
    dtype = spec_of(x).dtype
    own = _EXPONENT_BITS[dtype]
    width = 8 * dtype.itemsize
    fraction = width - 1 - own
    bits = bitcast(x, UNSIGNED[(width // 8).bit_length() - 1])
    dropped = fraction - mantissa_bits
    if dropped > 0:
        last = bitwise_right_shift(bits, dropped) & 1
        bits = (bits + last + ((1 << dropped - 1) - 1)) & ((1 << width) - (1 << dropped))
    rounded = clone(bitcast(bits, dtype))
    if exponent_bits < own:
        bias = (1 << exponent_bits - 1) - 1
        size = abs(rounded)
        rounded = where(size >= 2.0 ** (bias + 1), sign(x) * float("inf"), rounded)
        rounded = where(size < 2.0 ** (1 - bias), rounded * 0.0, rounded)
    return where(isfinite(x), rounded, x)


_EXPONENT_BITS = {float16: 5, bfloat16: 8, float32: 8, float64: 11}
