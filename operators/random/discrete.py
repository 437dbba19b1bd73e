"""rademacher, categorical and choice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, DTypeError, ShapeError, ValueArgumentError
from ...registry.dtypes import DEFAULT_INT, FLOATS, DType, float32, int64, uint32
from ...registry.values import TensorSpec
from ..declare.batching import Batched, BatchInfo, Dims, ensure_batch_axis, leading
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.derivatives import NotDifferentiable
from ..declare.kinds import array_op, composite
from ..declare.native_kernel import Decomposition
from ..declare.shape_rules import check_shape, is_tensor, normalize_axis, spec_of
from ..elementwise.bitwise import bitwise_right_shift
from ..elementwise.casting import cast
from ..elementwise.exponential import log
from ..elementwise.selection import minimum
from ..indexing.take import take
from ..reductions.folds import argmax
from ..reductions.scans import cumsum
from ..reductions.searching import bisect, searchsorted
from ..reductions.sorting import argtopk
from ..shape.rearrange import moveaxis
from ..shape.views import reshape
from .continuous import gumbel
from .key_bits import random_bits
from .typed_keys import check_one_key
from .uniform import cast_parameter, float_dtype, integers, open_uniform, order, working_dtype

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Shape, Tensor

POSITIONS = NotDifferentiable("it returns positions")


def draw_signs(key: Tensor, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """1 or -1 by the highest random bit."""
    return 1 - 2 * cast(bitwise_right_shift(random_bits(key, shape), 31), dtype)


@composite(
    "random_rademacher(Tensor key, SymInt[] shape=[], ScalarType? dtype=None) -> Tensor",
    doc="""Samples of the Rademacher distribution: 1 or -1 with equal probability.

    Args:
        key: a key, or several.
        shape: the shape of what is drawn for each key.
        dtype: a signed dtype; None: int64.

    Returns:
        A tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: no signed dtype, or no key.
        ShapeError: no key, or a negative size.

    >>> set(td.random.rademacher(td.random.key(0), 50).tolist()) == {-1, 1}
    True
    """,
    reference="references.discrete.rademacher",
    samples="samples.distributions.rademacher_samples",
    errors="samples.distributions.rademacher_errors",
    dtypes=(uint32,),
    method=False,
)
def rademacher(key: Tensor, shape: Shape, dtype: DType | None) -> Tensor:
    dtype = dtype or DEFAULT_INT
    if dtype.kind not in "ifc":
        raise DTypeError(f"random_rademacher: returns signed numbers, not {dtype}")
    return draw_signs(key, shape, dtype)


# -- positions ---------------------------------------------------------------------------------------------------------
def _top_shape_rule(x: TensorSpec, k: int) -> TensorSpec:
    spec = spec_of(x)
    if not spec.shape or not 0 <= k <= spec.shape[-1]:
        raise ShapeError(f"random_top: {spec} has no {k} elements along its last axis")
    return TensorSpec((*spec.shape[:-1], k), int64, spec.device)


top = array_op(
    "random",
    "random_top(Tensor x, int k) -> Tensor",
    _top_shape_rule,
    lambda xp, x, k: xp.argsort(-x, axis=-1, kind="stable")[..., :k].astype(xp.int64),
    decomposition=Decomposition(lambda x, k: argtopk(-x, k, descending=False)),
    doc="""The positions of the largest elements along the last axis, the largest first.

    Args:
        x: a float tensor with an axis.
        k: the number of elements.

    Returns:
        An int64 tensor whose last axis has ``k`` elements.

    Raises:
        ShapeError: there are fewer than ``k`` elements.

    >>> td.ops.td.random_top(td.asarray([1.0, 3.0, 2.0]), 2).tolist()
    [1, 2]
    """,
    reference="references.discrete.top",
    dtypes=FLOATS,
    derivative=POSITIONS,
    batching=leading,
    samples=lambda dtype: [
        SampleInput((TensorSample((5,), distinct=True), 3)),
        SampleInput((TensorSample((2, 4), distinct=True), 4)),
        SampleInput((TensorSample((3,), distinct=True), 0)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample((3,)), 4), ValueError, "elements"),
        ErrorInput((TensorSample(()), 1), ValueError, "elements"),
    ],
    method=False,
)


def _pick_shape_rule(bounds: Any, x: TensorSpec) -> TensorSpec:
    one, two = spec_of(bounds), spec_of(x)
    lead = one.shape[:-1]
    if not one.shape or two.shape[: len(lead)] != lead:
        raise ShapeError(f"random_pick: for each row of {one} there are numbers, unlike {two}")
    return TensorSpec(two.shape, int64, two.device)


def _pick_kernel(xp: ArrayModule, bounds: Any, x: Array) -> Array:
    size = bounds.shape[-1]
    rows, numbers = bounds.reshape(-1, size), x.reshape(math.prod(bounds.shape[:-1]), -1)
    out = xp.empty(numbers.shape, xp.int64)
    for row, given, index in zip(rows, numbers, out):
        index[...] = xp.minimum(xp.searchsorted(row, given, side="right"), max(size - 1, 0))
    return out.reshape(x.shape)


def _pick_batched(info: BatchInfo, in_dims: Dims, bounds: Any, x: Tensor) -> Batched:
    return info.call(
        *(ensure_batch_axis(one, dim, info.batch_size) for one, dim in zip((bounds, x), in_dims))
    ), 0


def _pick_by_search(bounds: Tensor, x: Tensor) -> Tensor:
    size = bounds.shape[-1]
    if len(bounds.shape) == 1:
        index = searchsorted(bounds, x, "right")
    else:
        rows = math.prod(bounds.shape[:-1])
        numbers = reshape(x, (rows, math.prod(x.shape[len(bounds.shape) - 1 :])))
        index = reshape(bisect(reshape(bounds, (rows, size)), numbers, "right"), x.shape)
    return minimum(index, max(size - 1, 0))


pick: OperatorFunction[Tensor] = array_op(
    "random",
    "random_pick(Tensor bounds, Tensor x) -> Tensor",
    _pick_shape_rule,
    _pick_kernel,
    decomposition=Decomposition(_pick_by_search),
    doc="""The positions of numbers among sorted bounds, as by ``searchsorted``.

    Args:
        bounds: a tensor that is sorted along its last axis.
        x: numbers; the leading axes are those of the bounds.

    Returns:
        An int64 tensor like ``x``: the position of the first larger bound, at most the last position.

    Raises:
        ShapeError: the leading axes differ.

    >>> td.ops.td.random_pick(td.asarray([0.1, 0.5, 1.0]), td.asarray([0.05, 0.1, 0.7])).tolist()
    [0, 1, 2]
    """,
    reference="references.discrete.pick",
    dtypes=FLOATS[2:],
    derivative=POSITIONS,
    batching=_pick_batched,
    samples=lambda dtype: [
        SampleInput((TensorSample((3,), values=(0.1, 0.5, 1.0)), TensorSample((2, 4), 0, 1))),
        SampleInput((TensorSample((2, 2), values=(0.3, 1.0, 0.9, 1.0)), TensorSample((2, 5), 0, 1))),
        SampleInput((TensorSample((3,), values=(0.1, 0.5, 1.0)), TensorSample((0,), 0, 1))),
    ],
    errors=lambda: [
        ErrorInput(
            (TensorSample((2, 3), dtype=float32), TensorSample((3,), dtype=float32)), ValueError, "each row"
        ),
        ErrorInput(
            (TensorSample((), dtype=float32), TensorSample((3,), dtype=float32)), ValueError, "each row"
        ),
    ],
    method=False,
)


# -- classes -----------------------------------------------------------------------------------------------------------
def _class_shapes(logits: Any, axis: int, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The leading axes, the shape of the scores, and the axis of the classes as a negative int."""
    spec = spec_of(logits)
    if not spec.shape or not spec.dtype.is_floating:
        raise DTypeError(f"random_categorical: logits are floats with an axis of classes, not {spec}")
    axis = normalize_axis("random_categorical", axis, len(spec.shape)) - len(spec.shape)
    batch = tuple(size for at, size in enumerate(spec.shape, -len(spec.shape)) if at != axis)
    wanted = batch if shape is None else check_shape("random_categorical", shape)
    count = len(wanted) - len(batch)
    own = wanted[max(count, 0) :]
    if count < 0 or any(size not in (1, want) for size, want in zip(batch, own)):
        raise ShapeError(
            f"random_categorical: the shape {wanted} does not end as that of the logits, {batch}, does"
        )
    if not spec.shape[axis]:
        raise ValueArgumentError(f"random_categorical: there is no class to draw in {spec}")
    index = len(own) + 1 + axis
    return wanted[:count], (*own[:index], spec.shape[axis], *own[index:]), axis


@composite(
    "random_categorical(Tensor key, Tensor logits, int axis=-1, SymInt[]? shape=None, bool replace=True) -> Tensor",
    doc="""Samples of the categorical distribution.

    Args:
        key: a key, or several.
        logits: a float tensor: the logarithms, up to a constant, along one axis. The others are distributions.
        axis: that axis.
        shape: the shape of the result for each key; it ends as the shape of the logits without the axis does. None:
            that shape.
        replace: whether a class may be drawn again by the axes that come before.

    Returns:
        An int64 tensor of that shape; with several keys, their axes come first.

    Raises:
        DTypeError: logits that are no floats or have no axis, or no key.
        ShapeError: no key, or a shape that does not fit.
        ValueArgumentError: there are no classes, or too few to draw each but once.

    >>> td.random.categorical(td.random.key(0), td.asarray([0.0, 100.0, 0.0]), shape=(4,)).tolist()
    [1, 1, 1, 1]
    """,
    reference="references.discrete.categorical",
    samples="samples.distributions.class_samples",
    errors="samples.distributions.categorical_errors",
    dtypes=FLOATS,
    method=False,
)
def categorical(key: Tensor, logits: Tensor, axis: int, shape: Shape, replace: bool) -> Tensor:
    prefix, scores, axis = _class_shapes(logits, axis, shape)
    wide = working_dtype(spec_of(logits).dtype)
    logits = cast_parameter(logits, wide)
    if replace:
        return argmax(gumbel(key, (*prefix, *scores), wide) + logits, axis)
    count = math.prod(prefix)
    if count > scores[axis]:
        raise ValueArgumentError(
            f"random_categorical: {count} different classes cannot be drawn of {scores[axis]}"
        )
    result = top(moveaxis(gumbel(key, scores, wide) + logits, axis, -1), count)
    lead = len(result.shape) - len(scores)
    result = moveaxis(result, -1, lead)
    return reshape(result, (*result.shape[:lead], *prefix, *result.shape[lead + 1 :]))


# -- choices -----------------------------------------------------------------------------------------------------------
def _count_choices(a: Tensor | int, axis: int) -> tuple[int, int]:
    """The number of items to choose from, and the axis as a non-negative int."""
    if type(a) is int:
        if a < 0:
            raise ValueArgumentError(f"random_choice: the number of items must be non-negative, not {a}")
        return a, 0
    shape = spec_of(a).shape if is_tensor(a) else ()
    if not shape:
        raise ArgumentError(
            f"random_choice: takes an int or a tensor with axes, not {spec_of(a)}; a trace must know the size "
            "(static_argnames)"
        )
    axis = normalize_axis("random_choice", axis, len(shape))
    return shape[axis], axis


def _choose_positions(key: Tensor, n: int, shape: tuple[int, ...], replace: bool, p: Tensor) -> Tensor:
    """The chosen positions."""
    size = math.prod(shape)
    if size and not n:
        raise ValueArgumentError("random_choice: there is nothing to choose from")
    if not replace and size > n:
        raise ValueArgumentError(
            f"random_choice: {size} different ones cannot be chosen of {n}; replace=True repeats"
        )
    if p is None:
        return integers(key, shape, 0, max(n, 1)) if replace else reshape(order(key, n)[:size], shape)
    if spec_of(p).shape != (n,):
        raise ShapeError(f"random_choice: p has one probability for each of {n}, unlike {spec_of(p)}")
    wide = working_dtype(float_dtype("random_choice", None, p))
    p = cast_parameter(p, wide)
    if not replace:
        return reshape(top(gumbel(key, (n,), wide) + log(p), size), shape)
    if not n:
        return integers(key, shape, 0, 1)
    bounds = cumsum(p, 0)
    return pick(bounds, open_uniform(key, shape, wide) * bounds[n - 1])


@composite(
    "random_choice(Tensor key, Tensor a, SymInt[] shape=[], bool replace=True, Tensor? p=None, int axis=0) -> Tensor",
    doc="""Random integers below ``a``, or random slices of a tensor.

    Args:
        key: a key.
        a: an int, or a tensor with axes.
        shape: the shape of what is chosen.
        replace: whether one may be chosen again.
        p: a probability for each, up to a factor; None: all are equally likely. Without replacement those of
            probability 0 are chosen when no others are left.
        axis: the axis of the tensor along which slices are chosen.

    Returns:
        An int64 tensor of that shape; or a new tensor like ``a`` with that shape in the place of the axis.

    Raises:
        DTypeError, ShapeError: that is no key; there are several; or ``p`` does not fit.
        ArgumentError: ``a`` is neither an int nor a tensor with axes.
        ValueArgumentError: there are too few.

    >>> sorted(td.random.choice(td.random.key(0), 4, (4,), replace=False).tolist())
    [0, 1, 2, 3]
    """,
    reference="references.discrete.choice",
    samples="samples.distributions.choice_samples",
    errors="samples.distributions.choice_errors",
    dtypes=(float32,),
    method=False,
)
def choice(key: Tensor, a: Tensor | int, shape: Shape, replace: bool, p: Tensor, axis: int) -> Tensor:
    check_one_key("random_choice", key)
    shape = check_shape("random_choice", shape)
    n, axis = _count_choices(a, axis)
    indices = _choose_positions(key, n, shape, replace, p)
    if type(a) is int:
        return indices
    sizes = spec_of(a).shape
    result = take(a, reshape(indices, (math.prod(shape),)), axis)
    return reshape(result, (*sizes[:axis], *shape, *sizes[axis + 1 :]))
