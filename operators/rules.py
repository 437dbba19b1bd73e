"""Shape and dtype rules that operators share."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    OutOfBoundsError,
    ScalarOverflowError,
    ShapeError,
)
from ..registry.dtypes import (
    DEFAULT_FLOAT,
    DType,
    bool_,
    complex128,
    float32,
    float64,
    promote,
    promote_scalar,
    scalar_dtype,
)
from ..registry.schema_parser import parse_schema
from ..registry.text import shown
from ..registry.values import TensorBase, TensorSpec
from .declare import Declaration

Arg = Any  # a tensor, a TensorSpec or a Python scalar


def is_tensor(value: Any) -> bool:
    """Whether a value has shape and dtype (a tensor or a spec), unlike a Python scalar."""
    return isinstance(value, (TensorBase, TensorSpec))


def spec_of(value: Any) -> TensorSpec:
    """The spec of a tensor or of a Python scalar (0-d, default dtype of its kind)."""
    if isinstance(value, TensorSpec):
        return value
    if isinstance(value, TensorBase):
        return TensorSpec(value.shape, value.dtype, value.device)  # type: ignore[attr-defined]
    return TensorSpec((), scalar_dtype(value))


def promoted_dtype(name: str, args: Sequence[Arg]) -> DType:
    """The dtype in which an operation on tensors and weak Python scalars is computed.

    Raises:
        DTypeError: two dtypes do not promote; the message names the operator.
        ScalarOverflowError: a Python integer does not fit.
    """
    tensors = [arg.dtype for arg in args if is_tensor(arg)]
    scalars = [arg for arg in args if not is_tensor(arg)]
    try:
        found = tensors[0] if tensors else scalar_dtype(scalars[0])
        for dtype in tensors[1:]:
            found = promote(found, dtype)
        for scalar in scalars:
            found = promote_scalar(found, scalar)
    except (DTypeError, ScalarOverflowError) as fault:
        raise type(fault)(f"{name}: {fault}") from None
    return found


def result_dtype(rule: str, computed: DType) -> DType:
    """The dtype of the result, by the rule of a declaration (``"same"``, ``"float"``, ``"bool"``, ``"real"``)."""
    if rule == "bool":
        return bool_
    if rule == "real" and computed.kind == "c":
        return float64 if computed is complex128 else float32
    if rule == "float" and not computed.is_inexact:
        return DEFAULT_FLOAT
    return computed


def compute_dtype(name: str, rule: str, accepts: Sequence[DType], args: Sequence[Arg]) -> DType:
    """The dtype that an elementwise body runs in.

    Raises:
        DTypeError: the operator does not take that dtype.
    """
    found = promoted_dtype(name, args)
    if found not in accepts:
        raise DTypeError(f"{name} does not take {found.name}; it takes {', '.join(d.name for d in accepts)}")
    return result_dtype("float", found) if rule == "float" else found


def operand_dtypes(decl: Declaration, computed: DType, count: int) -> tuple[DType, ...]:
    """The dtypes that the operands of an elementwise body have: the computed one, and bool for conditions.

    Args:
        decl: the declaration.
        computed: what :func:`compute_dtype` gives.
        count: the number of operands.
    """
    if not decl.conditions:
        return (computed,) * count
    names = [argument.name for argument in parse_schema(decl.schema).arguments]
    return tuple(bool_ if name in decl.conditions else computed for name in names)


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape.

    Raises:
        ShapeError: there is none; the message names the operator and the shapes.
    """
    rank = max(map(len, shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if size != 1 and out[axis] not in (1, size):
                raise ShapeError(f"{name}: shapes {' and '.join(map(str, shapes))} do not broadcast")
            out[axis] = size if size != 1 else out[axis]
    return tuple(out)


def common_device(name: str, args: Sequence[Arg]) -> str:
    """The one device of the arguments.

    Raises:
        DeviceError: they lie on several.
    """
    devices = {spec_of(arg).device for arg in args if is_tensor(arg)}
    if len(devices) > 1:
        raise DeviceError(
            f"{name}: arguments lie on {' and '.join(sorted(devices))}; move them with .to(device)"
        )
    return devices.pop() if devices else "cpu"


def normalize_axis(name: str, axis: int, rank: int) -> int:
    """A non-negative axis.

    Raises:
        OutOfBoundsError: the axis lies outside of ``-rank .. rank-1``.
    """
    if not -rank <= axis < rank:
        raise OutOfBoundsError(
            f"{name}: axis {shown(axis)} is out of bounds for an array of {rank} dimensions"
        )
    return axis % rank


def normalize_axes(name: str, axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Sorted non-negative axes; None means all.

    Raises:
        OutOfBoundsError: an axis lies outside.
        ShapeError: an axis is named twice.
    """
    if axes is None:
        return tuple(range(rank))
    found = tuple(sorted(normalize_axis(name, axis, rank) for axis in axes))
    if len(set(found)) != len(found):
        raise ShapeError(f"{name}: axis {tuple(axes)} names an axis twice")
    return found


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape after reduction over normalised axes."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def check_shape(name: str, shape: Sequence[Any]) -> tuple[int, ...]:
    """A tuple of non-negative ints.

    Raises:
        ArgumentError: an entry is no integer.
        ShapeError: an entry is negative, or the array could not be addressed.
    """
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise ArgumentError(f"{name}: a shape is a sequence of ints, not {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise ShapeError(f"{name}: negative size in shape {shown(sizes)}")
    total = 1
    for size in sizes:
        total *= max(size, 1)
    if total >= 2**60:
        raise ShapeError(f"{name}: shape {shown(sizes)} has too many elements")
    return sizes
