"""Creation operators: full, arange, linspace, eye.

The default dtypes are the Array API's: float32 for floats, int64 for integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ... import lazy
from ...errors import AllocationError, DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import (
    ALL,
    NUMERIC,
    REAL,
    DType,
    default_complex,
    default_float,
    float64,
    promote_scalar,
    scalar_dtype,
)
from ...registry.values import SCALARS, TensorSpec
from ..declare.batching import Batched, BatchInfo, Dims, expand_rank, get_operator
from ..declare.declaration import SampleInput
from ..declare.derivatives import Linear, NotDifferentiable
from ..declare.kinds import array_op
from ..declare.native_kernel import Decomposition
from ..declare.shape_rules import check_shape, is_tensor, promoted_dtype, spec_of
from .devices import check_device

if TYPE_CHECKING:
    from ...registry.dims import Dim
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Shape, T, Tensor

_dims = lazy.Module(".registry.dims")

# The constants of the Array API standard.
e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None
euler_gamma = 0.5772156649015329  # NumPy's


CONSTANT = NotDifferentiable("the result depends on no tensor")


def allocate(name: str, shape: tuple[int, ...], make: Callable[[], T]) -> T:
    """Return ``make()``, with its memory errors raised as AllocationError.

    Raises:
        AllocationError: there is not enough memory for ``shape``.
    """
    try:
        return make()
    except (MemoryError, ValueError) as fault:  # NumPy raises ValueError if the size in bytes overflows
        raise AllocationError(
            f"{name}: no memory for shape {shape} ({math.prod(shape):.3g} elements): {fault}"
        ) from None


# -- full --------------------------------------------------------------------------------------------------------------
def _full_shape_rule(
    shape: Shape, fill_value: Any, *, dtype: DType | None = None, device: str | None = None
) -> TensorSpec:
    fill = spec_of(fill_value)
    if fill.shape != ():
        raise ShapeError(
            f"full: the fill value must be a number or a 0-d tensor, not a tensor of shape {fill.shape}"
        )
    if dtype is not None and fill.dtype.kind == "c" and dtype.kind != "c":
        raise DTypeError(f"full: a complex value does not fit {dtype}; use its real part")
    if dtype is not None and not is_tensor(fill_value):
        promote_scalar(dtype, fill_value)  # an integer that does not fit raises
    value = fill.dtype if is_tensor(fill_value) else scalar_dtype(fill_value)
    return TensorSpec(check_shape("full", shape), dtype or value, check_device("full", device))


def _full_kernel(
    xp: ArrayModule, shape: Shape, fill_value: Any, *, dtype: DType | None, device: str | None
) -> Array:
    chosen = dtype or scalar_dtype(fill_value) if isinstance(fill_value, SCALARS) else dtype
    native = chosen.np if chosen else fill_value.dtype
    if isinstance(fill_value, (int, float)) and fill_value == 0 and math.copysign(1, fill_value) > 0:
        return allocate("full", shape, lambda: xp.zeros(shape, native))  # the system returns zeroed memory
    with xp.errstate(all="ignore"):
        value = xp.asarray(fill_value).astype(native)
    return allocate("full", shape, lambda: xp.full(shape, value, native))


def _full_batched(
    info: BatchInfo,
    in_dims: Dims,
    shape: Shape,
    fill_value: Any,
    *,
    dtype: DType | None,
    device: str | None,
) -> Batched:
    """Batching rule: one value per example, in new memory, since the result may be written."""
    spec = _full_shape_rule(
        shape, TensorSpec(fill_value.shape[1:], fill_value.dtype), dtype=dtype, device=device
    )
    values = get_operator("cast")(fill_value, spec.dtype)
    wide = get_operator("broadcast_to")(
        expand_rank(values, 0, len(spec.shape)), (info.batch_size, *spec.shape)
    )
    return get_operator("clone")(wide), 0


full: OperatorFunction[Tensor] = array_op(
    "creation",
    "full(SymInt[] shape, Tensor fill_value, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    _full_shape_rule,
    _full_kernel,
    doc="""A tensor of one value.

    Args:
        shape: its shape; an int means one axis.
        fill_value: a number or a 0-d tensor.
        dtype: its dtype; None: that of the value (the default dtype of a Python number).
        device: its device; None: the CPU.

    Returns:
        A new tensor.

    Raises:
        ShapeError: a size is negative, or the shape has too many elements.
        AllocationError: there is not enough memory.
        BackendUnavailableError: ``device="cuda"`` without a CUDA backend.

    >>> td.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """,
    reference="references.basic.full",
    dtypes=ALL,
    derivative=Linear({"fill_value": lambda g: g.sum()}),
    batching=_full_batched,
    samples="samples.creation.full_samples",
    errors="samples.creation.full_errors",
    method=False,
)


# -- arange ------------------------------------------------------------------------------------------------------------
def arange_length(start: float, stop: float, step: float) -> Dim:
    """The number of values from ``start`` to below ``stop``; exact for integers and symbolic sizes.

    Raises:
        ValueArgumentError: a bound is NaN or infinite, or the step is 0.
    """
    if all(isinstance(bound, int) for bound in (start, stop, step)) and step:
        return max(0, -int((start - stop) // step))
    if step and (_is_symbolic(start) or _is_symbolic(stop)):
        return max(cast("Dim", -((start - stop) // step)), 0)
    if step == 0 or not all(-math.inf < bound < math.inf for bound in (start, stop, step)):
        raise ValueArgumentError(
            f"arange: from {start} to {stop} by {step}: needs finite bounds and a step other than 0"
        )
    length = (stop - start) / step
    if abs(length) >= 2.0**60:
        raise ShapeError(f"arange: from {start} to {stop} by {step} has too many elements")
    return max(0, math.ceil(length))


def _is_symbolic(bound: object) -> bool:
    """Whether a bound is a symbolic size."""
    return not isinstance(bound, SCALARS) and _dims.is_symbolic(bound)


def _normalize_bounds(start: float, stop: float | None) -> tuple[float, float]:
    return (0, start) if stop is None else (start, stop)


def _arange_shape_rule(
    start: float,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: str | None = None,
) -> TensorSpec:
    start, stop = _normalize_bounds(start, stop)
    numbers = [1 if _is_symbolic(bound) else bound for bound in (start, stop, step)]  # a size is an int
    value = dtype or promoted_dtype("arange", numbers)
    if dtype is None and value.kind == "f":
        value = default_float()
    if value.kind in "bc" or any(isinstance(bound, complex) for bound in (start, stop, step)):
        raise DTypeError(f"arange: values are real numbers, not {value}")
    shape = check_shape("arange", (arange_length(start, stop, step),))
    return TensorSpec(shape, value, check_device("arange", device))


def _arange_kernel(
    xp: ArrayModule, start: float, stop: float | None, step: float, *, dtype: DType | None, device: str | None
) -> Array:
    """Native twin: backends/cpu/fastpath/entries/rt_ranges.py:arange"""
    spec = _arange_shape_rule(start, stop, step, dtype=dtype)
    start, stop = _normalize_bounds(start, stop)
    exact = all(isinstance(bound, int) for bound in (start, step))
    # start + i * step in the widest type, rounded once
    return allocate(
        "arange",
        spec.shape,
        lambda: (xp.arange(spec.shape[0], dtype=xp.int64 if exact else xp.float64) * step + start).astype(
            spec.dtype.np
        ),
    )


arange = array_op(
    "creation",
    "arange(Scalar start, Scalar? stop=None, Scalar step=1, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
    _arange_shape_rule,
    _arange_kernel,
    doc="""Evenly spaced values ``start + i * step`` from ``start`` to below ``stop``.

    Args:
        start: the first value; if ``stop`` is not given, the end, and the first value is 0.
        stop: the end, exclusive.
        step: the distance of the values; may be negative.
        dtype: integer or float; None: int64 if all three are integers, else float32.
        device: its device; None: the CPU.

    Returns:
        A 1-d tensor; computed in int64 or float64 and rounded once.

    Raises:
        ValueArgumentError: the step is 0, or a bound is NaN or infinite.
        DTypeError: a bool or complex dtype.
        AllocationError: there is not enough memory.

    >>> td.arange(1, 8, 3).tolist()
    [1, 4, 7]
    """,
    reference="references.basic.arange",
    dtypes=REAL,
    derivative=CONSTANT,
    samples="samples.creation.arange_samples",
    errors="samples.creation.arange_errors",
    method=False,
)


# -- linspace ----------------------------------------------------------------------------------------------------------
def _linspace_shape_rule(
    start: Any,
    stop: Any,
    num: int,
    *,
    endpoint: bool = True,
    dtype: DType | None = None,
    device: str | None = None,
) -> TensorSpec:
    default = (
        default_complex() if isinstance(start, complex) or isinstance(stop, complex) else default_float()
    )
    value = dtype or default
    if value.kind == "b" or (default.kind == "c" and value.kind != "c"):
        raise DTypeError(f"linspace: the values from {start} to {stop} are not {value}")
    return TensorSpec(check_shape("linspace", (num,)), value, check_device("linspace", device))


def _linspace_kernel(
    xp: ArrayModule, start: Any, stop: Any, num: int, *, endpoint: bool, dtype: DType | None, device: Any
) -> Array:
    """Native twin: backends/cpu/fastpath/entries/rt_ranges.py:linspace"""
    spec = _linspace_shape_rule(start, stop, num, dtype=dtype)
    with xp.errstate(invalid="ignore"):
        make = lambda: xp.linspace(start, stop, num, endpoint=endpoint).astype(spec.dtype.np)  # noqa: E731
        return allocate("linspace", spec.shape, make)


def _linspace_step(start: float, stop: float, num: int, endpoint: bool) -> float:
    """The distance of two values, in float64; 0 if it is too small, or there is one value."""
    steps = num - 1 if endpoint else num
    return (float(stop) - float(start)) / steps if num > 1 else 0.0


def _has_linspace_step(start: Any, stop: Any, num: int, *, endpoint: bool, dtype: Any, device: Any) -> bool:
    if not (isinstance(start, (int, float)) and isinstance(stop, (int, float))):
        return False
    step = _linspace_step(start, stop, num, endpoint)
    return step != 0 and math.isfinite(step)


def _linspace_by_arange(
    start: float, stop: float, num: int, *, endpoint: bool, dtype: DType | None, device: str | None
) -> Tensor:
    """The values in the order of operations of ``numpy.linspace``."""
    spec = _linspace_shape_rule(start, stop, num, endpoint=endpoint, dtype=dtype, device=device)
    index = arange(num, device=device)
    result = get_operator("cast")(index, float64) * _linspace_step(start, stop, num, endpoint) + float(start)
    if endpoint:
        is_last = get_operator("eq.Tensor")(index, num - 1)
        result = get_operator("where")(is_last, float(stop), result)
    return get_operator("cast")(result, spec.dtype)


linspace = array_op(
    "creation",
    "linspace(Scalar start, Scalar stop, int num, *, ScalarType? dtype=None, Device? device=None, bool endpoint=True)"
    " -> Tensor",
    _linspace_shape_rule,
    _linspace_kernel,
    doc="""``num`` evenly spaced values from ``start`` to ``stop``.

    Args:
        start: the first value.
        stop: the last value; if ``endpoint`` is false, the value after it.
        num: the number of values.
        dtype: a numeric dtype; None: float32, or complex64 for complex bounds.
        device: its device; None: the CPU.
        endpoint: whether ``stop`` is one of the values.

    Returns:
        A 1-d tensor of ``num`` values; computed in float64 and rounded once.

    Raises:
        ShapeError: ``num`` is negative.
        DTypeError: bool, or a real dtype for complex bounds.

    >>> td.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """,
    reference="references.basic.linspace",
    dtypes=NUMERIC,
    derivative=CONSTANT,
    decomposition=Decomposition(_linspace_by_arange, _has_linspace_step),
    samples=lambda dtype: [
        *(SampleInput((0, 8, num), {"dtype": dtype}) for num in (0, 1, 2, 5, 9)),
        SampleInput((0, 8, 4), {"dtype": dtype, "endpoint": False}),
        SampleInput((0.0, -1.0, 7)),
        SampleInput((0, 1j, 3)),
    ],
    errors="samples.creation.linspace_errors",
    method=False,
)


# -- eye ---------------------------------------------------------------------------------------------------------------
def _eye_shape_rule(
    n_rows: int,
    n_cols: int | None = None,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: str | None = None,
) -> TensorSpec:
    shape = check_shape("eye", (n_rows, n_rows if n_cols is None else n_cols))
    return TensorSpec(shape, dtype or default_float(), check_device("eye", device))


def _eye_kernel(
    xp: ArrayModule, n_rows: int, n_cols: Any, *, k: int, dtype: DType | None, device: Any
) -> Array:
    """Native twin: backends/cpu/fastpath/entries/rt_ranges.py:eye"""
    spec = _eye_shape_rule(n_rows, n_cols, dtype=dtype)
    native = spec.dtype.np
    offset = _clip_offset(spec.shape, k)
    return allocate("eye", spec.shape, lambda: xp.eye(*spec.shape, offset, dtype=native))


def _clip_offset(shape: Shape, k: int) -> int:
    """The offset of a diagonal; beyond the sizes it is outside of the matrix."""
    return max(-shape[0], min(k, shape[1]))


def _eye_by_comparison(
    n_rows: int, n_cols: int | None, *, k: int, dtype: DType | None, device: str | None
) -> Tensor:
    spec = _eye_shape_rule(n_rows, n_cols, k=k, dtype=dtype, device=device)
    rows, columns = spec.shape
    row = arange(_clip_offset(spec.shape, k), rows + _clip_offset(spec.shape, k), device=device)
    row = get_operator("reshape")(row, (rows, 1))
    is_one = get_operator("eq.Tensor")(row, arange(columns, device=device))
    return get_operator("cast")(is_one, spec.dtype)


eye = array_op(
    "creation",
    "eye(SymInt n_rows, SymInt? n_cols=None, *, int k=0, ScalarType? dtype=None, Device? device=None) -> Tensor",
    _eye_shape_rule,
    _eye_kernel,
    doc="""A matrix with ones on one diagonal and zeros elsewhere.

    Args:
        n_rows: number of rows.
        n_cols: number of columns; None: ``n_rows``.
        k: the offset of the diagonal; positive: above the main one.
        dtype: None: float32.
        device: its device; None: the CPU.

    Returns:
        A tensor of shape ``(n_rows, n_cols)``.

    Raises:
        ShapeError: a size is negative.

    >>> td.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """,
    reference="references.basic.eye",
    dtypes=ALL,
    derivative=CONSTANT,
    decomposition=Decomposition(_eye_by_comparison),
    samples=lambda dtype: [
        SampleInput((3,), {"dtype": dtype}),
        SampleInput((2, 4), {"dtype": dtype, "k": 1}),
        SampleInput((4, 2), {"dtype": dtype, "k": -1}),
        SampleInput((2, 2), {"k": 9}),
        SampleInput((0, 3)),
    ],
    errors="samples.creation.eye_errors",
    method=False,
)
