"""uniform, normal, integers, permutation and bernoulli, computed from random bits.

They are the same bits on every backend, eager and compiled; :mod:`.portable_math` has the functions that are not exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import (
    COMPLEX,
    DEFAULT_INT,
    FLOATS,
    INTEGERS,
    DType,
    bfloat16,
    check_range,
    complex64,
    default_float,
    float16,
    float32,
    float64,
    int64,
    uint32,
    uint64,
)
from ...registry.values import TensorSpec
from ..declare.batching import leading
from ..declare.kinds import array_op, composite
from ..declare.native_kernel import Decomposition
from ..declare.shape_rules import (
    broadcast_shapes,
    check_shape,
    is_tensor,
    normalize_axis,
    promoted_dtype,
    spec_of,
)
from ..elementwise.arithmetic import remainder
from ..elementwise.bitwise import bitwise_right_shift
from ..elementwise.casting import astype, cast
from ..elementwise.comparison import lt
from ..indexing.slicing import basic_index
from ..indexing.take import take, take_along_axis
from ..reductions.sorting import argsort
from ..shape.rearrange import full_plan, moveaxis
from ..shape.views import reshape
from .key_bits import INTEGRAL, check_key, random_bits, split
from .portable_math import polar

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule, Operand, Shape, T, Tensor

FRACTION = {float16: 11, bfloat16: 8, float32: 24, float64: 53}  # bits that a float holds exactly


def float_dtype(name: str, dtype: DType | None, *parameters: Operand) -> DType:
    """The dtype of a result: the one asked for, that of the parameters that are float tensors, or float32.

    Raises:
        DTypeError: not a float dtype.
    """
    if dtype is not None and not dtype.is_floating:
        raise DTypeError(
            f"{name}: returns floats, not {dtype}; the dtypes are {', '.join(d.name for d in FLOATS)}"
        )
    for one in parameters:
        if spec_of(one).dtype.kind == "c":
            raise DTypeError(f"{name}: its parameters are real numbers, not {spec_of(one)}")
    given = [one for one in parameters if is_tensor(one) and one.dtype.is_floating]
    return dtype or (promoted_dtype(name, given) if given else default_float())


def sample_shape(name: str, shape: tuple[int, ...] | None, *parameters: Operand) -> tuple[int, ...]:
    """The shape of the sample: the requested one, to which the parameters broadcast, or their broadcast shape.

    Raises:
        ShapeError: the parameters do not broadcast to the shape, or it has a negative size.
    """
    common = broadcast_shapes(name, *(spec_of(one).shape for one in parameters))
    if shape is None:
        return common
    shape = check_shape(name, shape)
    if broadcast_shapes(name, shape, common) != shape:
        raise ShapeError(f"{name}: parameters of shape {common} do not broadcast to the shape {shape}")
    return shape


def working_dtype(dtype: DType) -> DType:
    """The dtype in which samples of a dtype are computed: at least float32."""
    return float64 if dtype is float64 else float32


def cast_parameter(value: T, dtype: DType) -> T:
    """Cast a parameter that is a tensor; a number is weak and is returned as it is."""
    return astype(value, dtype, copy=False) if is_tensor(value) else value  # type: ignore[return-value]


def open_uniform(key: Tensor, shape: tuple[int, ...], wide: DType) -> Tensor:
    """Uniform numbers in (0, 1): odd multiples of a power of two, so that ``1 - x`` is one too."""
    words = random_bits(key, shape, bits=wide.bits)
    kept = FRACTION[wide] - 1
    return cast(bitwise_right_shift(words, wide.bits - kept), wide) * 2.0**-kept + 2.0 ** -(kept + 1)


def _to_fraction(words: Tensor, dtype: DType) -> Tensor:
    """Random bits as numbers in [0, 1): exact multiples of a power of two."""
    kept = FRACTION[dtype]
    return cast(bitwise_right_shift(words, words.dtype.bits - kept), dtype) * 2.0**-kept


@composite(
    "random_uniform(Tensor key, SymInt[] shape=[], ScalarType? dtype=None, Tensor? minval=None, Tensor? maxval=None)"
    " -> Tensor",
    doc="""Samples of the uniform distribution over an interval.

    Args:
        key: a key, or several.
        shape: the shape of what is drawn for each key.
        dtype: a float dtype; None: float32.
        minval: the lower end, which may be drawn; None: 0.
        maxval: the upper end, which is not drawn, unless rounding to the dtype gives it; None: 1.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: no float dtype, or no key.
        ShapeError: no key, or a negative size.

    >>> x = td.random.uniform(td.random.key(0), 3)
    >>> bool((x >= 0).all()), bool((x < 1).all())
    (True, True)
    """,
    reference="references.random_bits.random_uniform",
    samples="samples.random.uniform_samples",
    errors="samples.random.uniform_errors",
    dtypes=FLOATS,
    method=False,
)
def uniform(
    key: Tensor, shape: Shape, dtype: DType | None, minval: Tensor | None, maxval: Tensor | None
) -> Tensor:
    dtype = float_dtype("random_uniform", dtype)
    result = _to_fraction(random_bits(key, shape, bits=64 if dtype is float64 else 32), dtype)
    if minval is None and maxval is None:
        return result
    low = cast_parameter(0 if minval is None else minval, dtype)
    high = cast_parameter(1 if maxval is None else maxval, dtype)
    scaled: Tensor = result * (high - low) + low
    return scaled


@composite(
    "random_normal(Tensor key, SymInt[] shape=[], ScalarType? dtype=None) -> Tensor",
    doc="""Samples of the standard normal distribution, by the Box-Muller transform.

    Args:
        key: a key, or several.
        shape: the shape of what is drawn for each key.
        dtype: a float dtype; None: float32. The 16-bit ones are drawn in float32 and rounded. Of a complex number both
            parts are drawn, with variance 1/2 each.

    Returns:
        A tensor of that shape; with several keys, their axes come first. No number is beyond 6.8 (float64: 9.5).

    Raises:
        DTypeError: another dtype, or no key.
        ShapeError: no key, or a negative size.

    >>> td.random.normal(td.random.key(0), (3, 4)).shape
    (3, 4)
    """,
    reference="references.random_bits.random_normal",
    samples="samples.random.standard_normal_samples",
    errors="samples.random.normal_errors",
    dtypes=FLOATS + COMPLEX,
    tolerance={
        "float16": 1e-3,
        "bfloat16": 1e-2,
        "float32": 1e-5,
        "float64": 1e-13,
        "complex64": 1e-5,
        "complex128": 1e-13,
    },
    method=False,
)
def normal(key: Tensor, shape: Shape, dtype: DType | None) -> Tensor:
    lead = len(check_key("random_normal", key).shape) - 1
    if dtype is not None and dtype.kind == "c":
        wide = float32 if dtype is complex64 else float64
        real, imag = _split_pair(normal(key, (2, *shape), wide) * 0.5**0.5, lead)
        return astype(real, dtype) + astype(imag, dtype) * 1j
    dtype = float_dtype("random_normal", dtype)
    wide, width = (float64, 64) if dtype is float64 else (float32, 32)
    one, two = _split_pair(random_bits(key, (2, *shape), bits=width), lead)
    # all bits of the first word, so that the tail is long; never 0
    result = polar(cast(one, wide) * 2.0**-width + 2.0 ** -(width + 1), _to_fraction(two, wide))
    return astype(result, dtype, copy=False)


def _split_pair(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The two halves along an axis of length 2."""
    plan = full_plan(x.shape)
    one, two = (basic_index(x, (*plan[:axis], half, *plan[axis + 1 :])) for half in (0, 1))
    return one, two


# -- integers ----------------------------------------------------------------------------------------------------------
def _check_bounds(low: Tensor | int, high: Tensor | int, dtype: DType) -> None:
    """Check the dtypes of bounds, and the values of Python bounds."""
    for bound in (low, high):
        if not spec_of(bound).dtype.is_integer:
            raise DTypeError(f"random_integers: bounds are integers, not {spec_of(bound)}")
    if type(low) is int:
        check_range(dtype, low)
    if type(high) is int:
        check_range(dtype, high - 1)
        if type(low) is int and low >= high:
            raise ValueArgumentError(f"random_integers: no integer is at least {low} and below {high}")


@composite(
    "random_integers(Tensor key, SymInt[] shape, Tensor low, Tensor high, ScalarType? dtype=None) -> Tensor",
    doc="""Uniform integers from ``low`` to below ``high``.

    A number of 64 random bits is taken modulo the number of values ``n = high - low``, so that no value is more likely
    than another by more than a part in ``2**64 / n``.

    Args:
        key: a key, or several.
        shape: the shape of what is drawn for each key.
        low: the least value: an int, or an integer tensor that broadcasts to the shape.
        high: one more than the greatest; likewise. Where a tensor's ``high`` is not above ``low``, the result is
            ``low`` plus an arbitrary number.
        dtype: an integer dtype; None: int64.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: no integers, or no key.
        ValueArgumentError: two ints with nothing between them.
        ScalarOverflowError: an int does not fit the dtype.

    >>> x = td.random.integers(td.random.key(0), 100, 1, 7)
    >>> int(x.min()), int(x.max())
    (1, 6)
    """,
    reference="references.random_bits.random_integers",
    samples="samples.random.integers_samples",
    errors="samples.random.integers_errors",
    dtypes=INTEGERS,
    method=False,
)
def integers(key: Tensor, shape: Shape, low: Tensor | int, high: Tensor | int, dtype: DType | None) -> Tensor:
    dtype = dtype or DEFAULT_INT
    if not dtype.is_integer:
        raise DTypeError(f"random_integers: returns integers, not {dtype}")
    _check_bounds(low, high, dtype)
    wide = uint64 if dtype is uint64 else int64
    words = random_bits(key, shape, bits=64)
    if type(low) is int and type(high) is int:
        count: Any = high - low
    else:
        count = _unsigned_difference(cast_parameter(high, wide), cast_parameter(low, wide))
    steps = words if isinstance(count, int) and count == 2**64 else remainder(words, count)
    return astype(astype(steps, wide, copy=False) + cast_parameter(low, wide), dtype, copy=False)


def _unsigned_difference(high: Tensor | int, low: Tensor | int) -> Tensor:
    """``high - low`` as uint64, where one may be the int ``2**63`` or ``2**64``, which no tensor holds."""
    if isinstance(high, int):
        return astype((high - 1) - low, uint64) + 1
    return astype(high - low, uint64)


# -- permutation -------------------------------------------------------------------------------------------------------
def _order_shape_rule(key: TensorSpec, n: int) -> TensorSpec:
    spec = check_key("random_order", key)
    return TensorSpec(spec.shape[:-1] + check_shape("random_order", (n,)), int64, spec.device)


def _order_kernel(xp: ArrayModule, key: Array, n: int) -> Array:
    words = random_bits.operator.decl.kernel(xp, key, (n,), bits=64)
    return xp.argsort(words, axis=-1, kind="stable").astype(xp.int64)


order = array_op(
    "random",
    "random_order(Tensor key, int n) -> Tensor",
    _order_shape_rule,
    _order_kernel,
    decomposition=Decomposition(lambda key, n: argsort(random_bits(key, (n,), bits=64))),
    doc="""The numbers from 0 to ``n - 1`` in a random order: that of ``n`` random words of 64 bits.

    Args:
        key: a key, or several.
        n: how many.

    Returns:
        An int64 tensor of shape ``(..., n)``.

    Raises:
        DTypeError, ShapeError: that is no key, or ``n`` is negative.

    >>> sorted(td.ops.td.random_order(td.random.key(0), 4).tolist())
    [0, 1, 2, 3]
    """,
    reference="references.random_bits.random_order",
    dtypes=(uint32,),
    derivative=INTEGRAL,
    batching=leading,
    samples="samples.random.order_samples",
    errors="samples.random.order_errors",
    method=False,
)


@composite(
    "random_permutation(Tensor key, Tensor x, int axis=0, bool independent=False) -> Tensor",
    doc="""The numbers below ``x`` in a random order, or the slices of a tensor.

    Args:
        key: a key.
        x: an int, or a tensor.
        axis: the axis of the tensor along which slices are permuted.
        independent: whether the elements of each row along the axis get an order of their own.

    Returns:
        An int64 tensor of shape ``(x,)``, or a new tensor like ``x``.

    Raises:
        DTypeError, ShapeError: that is no key; or there are several.
        ArgumentError: ``x`` is neither an int nor a tensor with axes.

    >>> sorted(td.random.permutation(td.random.key(0), 4).tolist())
    [0, 1, 2, 3]
    """,
    reference="references.random_bits.random_permutation",
    samples="samples.random.permutation_samples",
    errors="samples.random.permutation_errors",
    dtypes=(uint32,),
    method=False,
)
def permutation(key: Tensor, x: Tensor | int, axis: int, independent: bool) -> Tensor:
    if len(check_key("random_permutation", key).shape) != 1:
        raise ShapeError(f"random_permutation: takes one key, not {spec_of(key)}")
    if type(x) is int:
        return order(key, x)
    shape = spec_of(x).shape
    if not shape:
        raise ArgumentError(
            f"random_permutation: takes an int or a tensor with axes, not {spec_of(x)}; "
            "a trace must know the size (static_argnames)"
        )
    axis = normalize_axis("random_permutation", axis, len(shape))
    if not independent:
        return take(x, order(key, shape[axis]), axis)
    rows = (*shape[:axis], *shape[axis + 1 :])
    orders = reshape(order(split(key, math.prod(rows)), shape[axis]), (*rows, shape[axis]))
    return take_along_axis(x, moveaxis(orders, -1, axis), axis)


@composite(
    "random_bernoulli(Tensor key, Tensor? p=None, SymInt[]? shape=None) -> Tensor",
    doc="""Samples of the Bernoulli distribution: True with probability ``p``.

    Args:
        key: a key.
        p: the probability: a number, or a float tensor that broadcasts to the shape; None: 0.5.
        shape: the shape; None: that of ``p``.

    Returns:
        A bool tensor of that shape. Probabilities count in steps of ``2**-24``.

    Raises:
        DTypeError, ShapeError: that is no key, or a negative size.
        ValueArgumentError: a number that is no probability.

    >>> td.random.bernoulli(td.random.key(0), 1.0, 3).tolist()
    [True, True, True]
    """,
    reference="references.random_bits.random_bernoulli",
    samples="samples.random.bernoulli_samples",
    errors="samples.random.bernoulli_errors",
    dtypes=(uint32,),
    method=False,
)
def bernoulli(key: Tensor, p: Tensor | float, shape: tuple[int, ...] | None) -> Tensor:
    p = 0.5 if p is None else p
    if type(p) in (int, float) and not 0 <= p <= 1:
        raise ValueArgumentError(f"random_bernoulli: p must be a probability in [0, 1], not {p}")
    return lt(uniform(key, spec_of(p).shape if shape is None else shape), p)
