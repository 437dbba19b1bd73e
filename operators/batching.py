"""How operators run on tensors with one more axis, the batch, in front: what the rules share, and the kinds' rules.

A rule is ``rule(info, in_dims, *args, **kwargs) -> (result, out_dims)``. The arguments are those of the operator; of a
batched one ``in_dims`` says 0, where its batch axis is, of any other None (for a list of tensors it has a tuple). The
rule calls operators on them, the operator itself as ``info.call``, and says where the result's batch axis is: an axis,
None for "not batched", or for several results a tuple of these.

Source: the rules of ``jax.interpreters.batching`` and of functorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..registry.function import function_of
from ..registry.values import TensorBase
from .rules import normalize_axes, normalize_axis, spec_of

Dims = tuple[Any, ...]
Batched = tuple[Any, Any]


class BatchInfo(NamedTuple):
    """What a rule knows beside the arguments.

    Attributes:
        batch_size: the length of the batch axis.
        name: what opened the level, for messages: ``vmap(f)``.
        call: the operator, to be called on the tensors with their batch axes.
        axis_name: what the batch axis is called, or None.
    """

    batch_size: int
    name: str
    call: Callable[..., Any]
    axis_name: Any = None


# -- what rules are made of --------------------------------------------------------------------------------------------
def operator(name: str) -> Any:
    """The function of an operator by name; the rules stand below the operators that they call."""
    return function_of(f"td::{name}")


def logical_shape(x: Any, dim: int | None) -> tuple[int, ...]:
    """The shape of one example of an argument."""
    shape: tuple[int, ...] = x.shape if isinstance(x, TensorBase) else ()  # type: ignore[attr-defined]
    return shape if dim is None else shape[1:]


def at_rank(x: Any, dim: int | None, rank: int) -> Any:
    """A batched tensor whose examples have ``rank`` axes: new ones, of length 1, come behind the batch."""
    if dim is None:
        return x
    shape = x.shape
    missing = rank + 1 - len(shape)
    return x if missing <= 0 else operator("reshape")(x, (shape[0], *(1,) * missing, *shape[1:]))


def with_batch(x: Any, dim: int | None, size: int) -> Any:
    """A tensor with a batch axis in front: one that has none is repeated, without a copy."""
    return x if dim is not None else operator("broadcast_to")(x, (size, *spec_of(x).shape))


def one_to_front(x: Any, axis: int) -> Any:
    """A tensor with one axis moved to the front."""
    if axis == 0:
        return x
    rest = [at for at in range(len(x.shape)) if at != axis]
    return operator("permute")(x, (axis, *rest))


def flat_examples(x: Any) -> Any:
    """A batched tensor with each example flattened."""
    return operator("reshape")(x, (x.shape[0], math.prod(x.shape[1:])))


# -- rules of kinds ----------------------------------------------------------------------------------------------------
def elementwise(info: BatchInfo, in_dims: Dims, *args: Any) -> Batched:
    """Examples broadcast among each other, so all of them must have as many axes as the one that has most."""
    rank, uneven = -1, False
    for x, dim in zip(args, in_dims):
        if dim is not None:
            own = len(x.shape) - 1
        elif isinstance(x, TensorBase):
            own = len(x.shape)  # type: ignore[attr-defined]
        else:
            continue
        uneven |= rank not in (-1, own)
        rank = own if own > rank else rank
    if uneven:
        args = tuple([at_rank(x, dim, rank) for x, dim in zip(args, in_dims)])
    return info.call(*args), 0


def pointwise(info: BatchInfo, in_dims: Dims, *args: Any, **kwargs: Any) -> Batched:
    """The first argument's elements are treated one by one: a cast, a copy."""
    return info.call(*args, **kwargs), 0


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are not left out: native entries know only calls that leave out what has a default."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def reduction(info: BatchInfo, in_dims: Dims, x: Any, axis: Any, **options: Any) -> Batched:
    """The axes are counted from behind the batch; without any, all but the batch."""
    rank = len(x.shape) - 1
    axes = normalize_axes(info.name, (axis,) if isinstance(axis, int) else axis, rank)
    return info.call(
        x, axes[0] + 1 if len(axes) == 1 else tuple([at + 1 for at in axes]), **given(options)
    ), 0


def index_reduction(info: BatchInfo, in_dims: Dims, x: Any, axis: int | None, *, keepdims: bool) -> Batched:
    """As :func:`reduction` for one axis; without one the examples are flattened."""
    if axis is not None:
        return reduction(info, in_dims, x, axis, keepdims=keepdims)
    found = info.call(flat_examples(x), 1)
    if keepdims:
        found = operator("reshape")(found, (info.batch_size,) + (1,) * (len(x.shape) - 1))
    return found, 0


def scan(info: BatchInfo, in_dims: Dims, x: Any, axis: int | None, **options: Any) -> Batched:
    """Along an axis counted from behind the batch; without one, along the flattened examples."""
    if axis is None:
        return info.call(flat_examples(x), 1, **given(options)), 0
    return info.call(x, normalize_axis(info.name, axis, len(x.shape) - 1) + 1, **given(options)), 0


def leading(info: BatchInfo, in_dims: Dims, x: Any, *args: Any, **kwargs: Any) -> Batched:
    """For operators that take any number of leading axes before what they work on, such as several keys."""
    return info.call(x, *args, **kwargs), 0
