"""Shape and dtype rules that operators share."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from ... import lazy
from ...errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    OutOfBoundsError,
    ScalarOverflowError,
    ShapeError,
    UndecidedError,
)
from ...registry.dtypes import (
    DType,
    bool_,
    complex128,
    default_float,
    float32,
    float64,
    promote,
    promote_scalar,
    scalar_dtype,
    to_complex,
)
from ...registry.formatting import short_repr
from ...registry.function import functions
from ...registry.schemas.binding import weak_scalar_types
from ...registry.schemas.parser import parse_schema
from ...registry.values import MAX_RANK, SCALARS, TensorBase, TensorSpec, describe
from .declaration import Declaration

if TYPE_CHECKING:
    from ...registry.dims import Dim
    from ...registry.schemas.schema import Schema
    from ...registry.types import Number, Operand, TensorOrSpec

R = TypeVar("R")

_dims = lazy.Module(".registry.dims")


def is_tensor(value: object) -> TypeGuard[TensorOrSpec]:
    """Whether a value has shape and dtype (a tensor or a spec), unlike a Python scalar."""
    return isinstance(value, (TensorBase, TensorSpec))


def spec_of(value: object) -> TensorSpec:
    """The spec of a tensor or of a Python scalar (0-d, default dtype of its kind)."""
    if isinstance(value, TensorSpec):
        return value
    if isinstance(value, TensorBase):
        return TensorSpec(value.shape, value.dtype, value.device)  # type: ignore[attr-defined]
    return TensorSpec((), scalar_dtype(value))


def promoted_dtype(name: str, args: Sequence[Operand]) -> DType:
    """The promoted dtype of tensors and weak Python scalars, in which an operation is computed.

    :func:`...registry.dtypes.promote_scalar` promotes Python numbers: a number does not widen a dtype of its kind.

    Raises:
        DTypeError: two dtypes do not promote.
        ScalarOverflowError: a Python integer does not fit.
    """
    tensors = [arg.dtype for arg in args if is_tensor(arg)]
    scalars: list[Any] = [arg for arg in args if not is_tensor(arg)]
    try:
        result = tensors[0] if tensors else scalar_dtype(scalars[0])
        for dtype in tensors[1:]:
            result = promote(result, dtype)
        for scalar in scalars:
            result = promote_scalar(result, scalar)
    except (DTypeError, ScalarOverflowError) as fault:
        raise type(fault)(f"{name}: {fault}") from None
    return result


def common_dtype(tensors: Sequence[TensorOrSpec]) -> DType | None:
    """The dtype to which a number adapts among tensors: the widest of the highest kind; None without tensors."""
    ranks = "buifc"
    return max((x.dtype for x in tensors), key=lambda d: (ranks.index(d.kind), d.itemsize), default=None)


def convert_numbers(values: Sequence[object]) -> list[Any]:
    """The values, where Python numbers among tensors of inexact dtypes are 0-d tensors of the promoted dtype.

    A number beside integers alone stays a number: it loses no precision.
    """
    tensors = [value for value in values if is_tensor(value)]
    dtype = common_dtype(tensors)
    if dtype is None or not dtype.is_inexact:
        return list(values)
    make, device = functions["td::full"], tensors[0].device
    return [
        make((), value, dtype=promote_scalar(dtype, value), device=device)  # type: ignore[arg-type]
        if type(value) in weak_scalar_types
        else value
        for value in values
    ]


def is_known(number: object, value: Number) -> bool:
    """Whether a number has a value; one that is known only when compiled code runs is not compared."""
    return type(number) in SCALARS and number == value


def promote_numbers(schema: Schema, body: Callable[..., R]) -> Callable[..., R]:
    """Wrap a composite's body so that numbers among its tensor arguments have the dtype of the tensors.

    Without it, an operator that reads the number alone, such as ``reshape``, would round it to the default dtype.
    """
    positions = [n for n, argument in enumerate(schema.positional) if argument.type.core == "Tensor"]
    names = [a.name for a in schema.arguments if a.kwarg_only and a.type.core == "Tensor"]

    @functools.wraps(body)
    def kernel(*args: Any, **kwargs: Any) -> R:
        given = [args[at] for at in positions] + [kwargs[name] for name in names]
        flat = [item for value in given for item in (value if type(value) is tuple else (value,))]
        if not any(type(item) in weak_scalar_types for item in flat):
            return body(*args, **kwargs)
        rest = iter(convert_numbers(flat))
        values = [tuple([next(rest) for _ in x]) if type(x) is tuple else next(rest) for x in given]
        renewed = dict(zip(positions, values))
        named = dict(zip(names, values[len(positions) :]))
        return body(*[renewed.get(at, value) for at, value in enumerate(args)], **{**kwargs, **named})

    return kernel


def result_dtype(rule: str, computed: DType) -> DType:
    """The dtype of a result by the rule of its declaration (:class:`.declaration.Declaration`)."""
    if rule == "bool":
        return bool_
    if rule == "complex":
        return to_complex(computed)
    if rule == "real" and computed.kind == "c":
        return float64 if computed is complex128 else float32
    if rule == "float" and not computed.is_inexact:
        return default_float()
    return computed


_as_set = functools.cache(
    frozenset[DType]
)  # whose members are found by their hashes, and not compared one by one


def compute_dtype(name: str, rule: str, accepts: Sequence[DType], args: Sequence[Operand]) -> DType:
    """The dtype that an elementwise body runs in.

    Raises:
        DTypeError: the operator does not support that dtype.
    """
    result = promoted_dtype(name, args)
    if result not in _as_set(tuple(accepts)):
        raise DTypeError(f"{name} does not take {result.name}; it takes {', '.join(d.name for d in accepts)}")
    return result_dtype("float", result) if rule == "float" else result


def operand_dtypes(decl: Declaration, computed: DType, count: int) -> tuple[DType, ...]:
    """The dtypes of an elementwise body's operands: the computed dtype, and bool for conditions.

    Args:
        decl: the declaration.
        computed: the result of :func:`compute_dtype`.
        count: the number of operands.
    """
    if not decl.conditions:
        return (computed,) * count
    names = [argument.name for argument in parse_schema(decl.schema).arguments]
    return tuple(bool_ if name in decl.conditions else computed for name in names)


def broadcast_shapes(name: str, *shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The broadcast shape of several shapes.

    Raises:
        ShapeError: the shapes do not broadcast.
    """
    rank = max(map(len, shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if size != 1 and out[axis] not in (1, size):
                raise ShapeError(f"{name}: shapes {' and '.join(map(str, shapes))} do not broadcast")
            out[axis] = size if size != 1 else out[axis]
    return tuple(out)


def common_device(name: str, args: Sequence[Operand]) -> str:
    """The device that all arguments are on.

    Raises:
        DeviceError: the arguments are on several devices.
    """
    tensors = [arg for arg in args if is_tensor(arg)]
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        raise device_mismatch_error(name, *tensors)
    return devices.pop() if devices else "cpu"


def device_mismatch_error(name: str, *tensors: TensorOrSpec) -> DeviceError:
    """The error for arguments on different devices; the message names the first tensor on each device.

    Args:
        name: the operator that was called.
        tensors: its tensors, or their specs.
    """
    first: dict[str, TensorOrSpec] = {}
    for tensor in tensors:
        first.setdefault(tensor.device, tensor)
    listed = ", ".join(f"{describe(tensor)} on {device}" for device, tensor in first.items())
    target = next((device for device in first if device != "cpu"), "cpu")
    return DeviceError(f"{name}: arguments are on different devices: {listed}; move one with .to({target!r})")


def normalize_axis(name: str, axis: int, rank: int) -> int:
    """The axis as a non-negative int.

    Raises:
        OutOfBoundsError: the axis is not in ``-rank .. rank-1``.
    """
    if not -rank <= axis < rank:
        raise OutOfBoundsError(
            f"{name}: axis {short_repr(axis)} is out of bounds for an array of {rank} dimensions"
        )
    return axis % rank


def normalize_axes(name: str, axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The axes as sorted non-negative ints; None means all.

    Raises:
        OutOfBoundsError: an axis is out of bounds.
        ShapeError: an axis occurs twice.
    """
    if axes is None:
        return tuple(range(rank))
    result = tuple(sorted(normalize_axis(name, axis, rank) for axis in axes))
    if len(set(result)) != len(result):
        raise ShapeError(f"{name}: axis {tuple(axes)} names an axis twice")
    return result


def reduced_shape(shape: tuple[Dim, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[Dim, ...]:
    """The shape after a reduction over non-negative axes."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def check_rank(name: str, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the shape if it has at most ``MAX_RANK`` axes.

    Raises:
        ShapeError: the shape has more axes than an array can have.
    """
    if len(shape) > MAX_RANK:
        raise ShapeError(f"{name}: the result would have {len(shape)} axes; a tensor has at most {MAX_RANK}")
    return shape


def check_shape(name: str, shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """The shape as a tuple of non-negative sizes.

    Raises:
        ArgumentError: a size is not an integer.
        ShapeError: a size is negative, or the array would be too large to address.
    """
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except UndecidedError:
        return _check_symbolic_shape(name, shape)
    except TypeError:
        raise ArgumentError(f"{name}: a shape is a sequence of ints, not {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise ShapeError(f"{name}: negative size in shape {short_repr(sizes)}")
    total = 1
    for size in sizes:
        total *= max(size, 1)
    if total >= 2**60:
        raise ShapeError(f"{name}: shape {short_repr(sizes)} has too many elements")
    return sizes


def _check_symbolic_shape(name: str, shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """A shape with symbolic sizes, which are not negative; the number of elements is checked when they are known."""
    known = check_shape(name, [size for size in shape if not _dims.is_symbolic(size)])
    if any(_dims.is_symbolic(size) and size < 0 for size in shape):
        raise ShapeError(f"{name}: negative size in shape {tuple(shape)}")
    sizes = iter(known)
    return tuple(size if _dims.is_symbolic(size) else next(sizes) for size in shape)
