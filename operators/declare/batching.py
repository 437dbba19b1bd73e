"""Batching rules: how operators run under ``vmap``, on tensors with a batch axis in front.

A rule is ``rule(info, in_dims, *args, **kwargs) -> (result, out_dims)``. The arguments are those of the operator.
``in_dims`` has an entry for each: 0 for a batched tensor (its batch axis), None for any other argument, and a tuple of
these for a list of tensors. The rule calls operators on the arguments (the operator itself as ``info.call``) and
returns the result with its batch axis: an int, None if the result is not batched, or a tuple of these for several
results. This module has the helpers of rules, and the rules that operators of one kind share.

Source: the rules of ``jax.interpreters.batching`` and of functorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...named_tuple import NamedTuple
from ...registry.function import function_of
from ...registry.values import TensorBase
from .shape_rules import normalize_axes, normalize_axis, spec_of

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Kwargs, Tensor

Dims = tuple[Any, ...]
Batched = tuple[Any, Any]


class BatchInfo(NamedTuple):
    """The context in which a batching rule runs.

    Attributes:
        batch_size: the length of the batch axis.
        name: the transform that opened the level, for messages: ``vmap(f)``.
        call: the operator, to be called on the tensors with their batch axes.
        axis_name: the name of the batch axis, or None.
    """

    batch_size: int
    name: str
    call: Callable[..., Any]
    axis_name: Any = None


# -- helpers of rules -------------------------------------------------------------------------------------------------
def get_operator(name: str) -> OperatorFunction[Tensor]:
    """The function of an operator by name: rules are defined before the operators that they call."""
    return function_of(f"td::{name}")


def logical_shape(x: Tensor, dim: int | None) -> tuple[int, ...]:
    """The shape of one example of an argument."""
    shape: tuple[int, ...] = x.shape if isinstance(x, TensorBase) else ()
    return shape if dim is None else shape[1:]


def expand_rank(x: Tensor, dim: int | None, rank: int) -> Tensor:
    """A batched tensor whose examples have ``rank`` axes: axes of length 1 are inserted after the batch axis."""
    if dim is None:
        return x
    shape = x.shape
    missing = rank + 1 - len(shape)
    return x if missing <= 0 else get_operator("reshape")(x, (shape[0], *(1,) * missing, *shape[1:]))


def ensure_batch_axis(x: Tensor, dim: int | None, size: int) -> Tensor:
    """A tensor with a batch axis in front: a tensor that has none is broadcast along it, without a copy."""
    return x if dim is not None else get_operator("broadcast_to")(x, (size, *spec_of(x).shape))


def move_to_front(x: Tensor, axis: int) -> Tensor:
    """A tensor with one axis moved to the front."""
    if axis == 0:
        return x
    rest = [at for at in range(len(x.shape)) if at != axis]
    return get_operator("permute")(x, (axis, *rest))


def flatten_examples(x: Tensor) -> Tensor:
    """A batched tensor with each example flattened."""
    return get_operator("reshape")(x, (x.shape[0], math.prod(x.shape[1:])))


# -- rules of kinds ----------------------------------------------------------------------------------------------------
def elementwise(info: BatchInfo, in_dims: Dims, *args: Tensor) -> Batched:
    """Batching rule of elementwise operators: expand all examples to the largest rank, so that they broadcast.

    If the examples have equal ranks, ``eager/layers/vmap/kernel.py:_elementwise`` calls the operator on the payloads
    and does not run this rule.
    """
    rank, uneven = -1, False
    for x, dim in zip(args, in_dims):
        if dim is not None:
            own = len(x.shape) - 1
        elif isinstance(x, TensorBase):
            own = len(x.shape)
        else:
            continue
        uneven |= rank not in (-1, own)
        rank = own if own > rank else rank
    if uneven:
        args = tuple([expand_rank(x, dim, rank) for x, dim in zip(args, in_dims)])
    return info.call(*args), 0


def pointwise(info: BatchInfo, in_dims: Dims, *args: object, **kwargs: object) -> Batched:
    """Batching rule of operators that map each element of the first argument: casts and copies."""
    return info.call(*args, **kwargs), 0


def drop_defaults(options: Kwargs) -> Kwargs:
    """The options without those at their default: native entries accept only calls that omit defaults."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def reduction(
    info: BatchInfo, in_dims: Dims, x: Tensor, axis: int | tuple[int, ...] | None, **options: object
) -> Batched:
    """Batching rule of reductions: shift the axes past the batch axis; ``axis=None`` reduces all others."""
    rank = len(x.shape) - 1
    axes = normalize_axes(info.name, (axis,) if isinstance(axis, int) else axis, rank)
    return info.call(
        x, axes[0] + 1 if len(axes) == 1 else tuple([at + 1 for at in axes]), **drop_defaults(options)
    ), 0


def index_reduction(
    info: BatchInfo, in_dims: Dims, x: Tensor, axis: int | None, *, keepdims: bool
) -> Batched:
    """Batching rule of argmax and argmin: as :func:`reduction`; ``axis=None`` flattens the examples."""
    if axis is not None:
        return reduction(info, in_dims, x, axis, keepdims=keepdims)
    result = info.call(flatten_examples(x), 1)
    if keepdims:
        result = get_operator("reshape")(result, (info.batch_size,) + (1,) * (len(x.shape) - 1))
    return result, 0


def scan(info: BatchInfo, in_dims: Dims, x: Tensor, axis: int | None, **options: object) -> Batched:
    """Batching rule of scans: shift the axis past the batch axis; ``axis=None`` flattens the examples."""
    if axis is None:
        return info.call(flatten_examples(x), 1, **drop_defaults(options)), 0
    return info.call(x, normalize_axis(info.name, axis, len(x.shape) - 1) + 1, **drop_defaults(options)), 0


def leading(info: BatchInfo, in_dims: Dims, x: Tensor, *args: object, **kwargs: Any) -> Batched:
    """Batching rule of operators that accept any number of leading axes, such as several keys."""
    return info.call(x, *args, **kwargs), 0
