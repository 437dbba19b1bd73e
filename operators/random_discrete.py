"""Signs, classes and choices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .. import lazy
from ..errors import ArgumentError, DTypeError, ShapeError, ValueArgumentError
from ..registry.dtypes import DEFAULT_INT, FLOATS, DType, float32, int64, uint32
from ..registry.values import TensorSpec
from .batching import Batched, BatchInfo, Dims, leading, with_batch
from .bitwise import bitwise_right_shift
from .casting import cast
from .declare import Bad, Draw, Sample
from .derivatives import NotDifferentiable
from .exponential import log
from .kinds import composite, library
from .picking import take
from .random_continuous import gumbel
from .random_keys import KEY, KEYS, key_errors, random_bits
from .random_numbers import computed_in, float_dtype, integers, open_uniform, order, parameter
from .random_typed import one_key
from .rearrange import moveaxis
from .reductions import argmax
from .rules import check_shape, is_tensor, normalize_axis, spec_of
from .scans import cumsum
from .views import reshape

references = lazy.Functions("operators.references_discrete")

PLACES = NotDifferentiable("it gives places")


def signs(key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """1 or -1 by the highest bit of a word."""
    return 1 - 2 * cast(bitwise_right_shift(random_bits(key, shape), 31), dtype)


@composite(
    "random_rademacher(Tensor key, SymInt[] shape=[], ScalarType? dtype=None) -> Tensor",
    doc="""1 or -1, equally likely.

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
    reference=references.rademacher,
    samples=lambda dtype: [
        *(Sample((KEY, shape)) for shape in ((), (0,), (3, 5))),
        Sample((KEYS, 3), {"dtype": float32}),
    ],
    errors=lambda: [*key_errors(3), Bad((KEY, 3), TypeError, "signed", {"dtype": "uint8"})],
    dtypes=(uint32,),
    method=False,
)
def rademacher(key: Any, shape: Any, dtype: DType | None) -> Any:
    dtype = dtype or DEFAULT_INT
    if dtype.kind not in "ifc":
        raise DTypeError(f"random_rademacher: gives signed numbers, not {dtype}")
    return signs(key, shape, dtype)


# -- places ------------------------------------------------------------------------------------------------------------
def _top_meta(x: Any, k: int) -> TensorSpec:
    spec = spec_of(x)
    if not spec.shape or not 0 <= k <= spec.shape[-1]:
        raise ShapeError(f"random_top: {spec} has no {k} elements along its last axis")
    return TensorSpec((*spec.shape[:-1], k), int64, spec.device)


top: Any = library(
    "random",
    "random_top(Tensor x, int k) -> Tensor",
    _top_meta,
    lambda xp, x, k: xp.argsort(-x, axis=-1, kind="stable")[..., :k].astype(xp.int64),
    doc="""The places of the largest elements along the last axis, the largest first.

    Args:
        x: a float tensor with an axis.
        k: how many.

    Returns:
        An int64 tensor whose last axis has ``k`` elements.

    Raises:
        ShapeError: there are not so many.

    >>> td.ops.td.random_top(td.asarray([1.0, 3.0, 2.0]), 2).tolist()
    [1, 2]
    """,
    reference=references.top,
    dtypes=FLOATS,
    derivative=PLACES,
    batching=leading,
    samples=lambda dtype: [
        Sample((Draw((5,), distinct=True), 3)),
        Sample((Draw((2, 4), distinct=True), 4)),
        Sample((Draw((3,), distinct=True), 0)),
    ],
    errors=lambda: [Bad((Draw((3,)), 4), ValueError, "elements"), Bad((Draw(()), 1), ValueError, "elements")],
    method=False,
)


def _pick_meta(bounds: Any, x: Any) -> TensorSpec:
    one, two = spec_of(bounds), spec_of(x)
    lead = one.shape[:-1]
    if not one.shape or two.shape[: len(lead)] != lead:
        raise ShapeError(f"random_pick: for each row of {one} there are numbers, unlike {two}")
    return TensorSpec(two.shape, int64, two.device)


def _pick_kernel(xp: Any, bounds: Any, x: Any) -> Any:
    size = bounds.shape[-1]
    rows, numbers = bounds.reshape(-1, size), x.reshape(math.prod(bounds.shape[:-1]), -1)
    out = xp.empty(numbers.shape, xp.int64)
    for row, given, place in zip(rows, numbers, out):
        place[...] = xp.minimum(xp.searchsorted(row, given, side="right"), max(size - 1, 0))
    return out.reshape(x.shape)


def _pick_batched(info: BatchInfo, in_dims: Dims, bounds: Any, x: Any) -> Batched:
    return info.call(*(with_batch(one, dim, info.batch_size) for one, dim in zip((bounds, x), in_dims))), 0


pick: Any = library(
    "random",
    "random_pick(Tensor bounds, Tensor x) -> Tensor",
    _pick_meta,
    _pick_kernel,
    doc="""Between which bounds numbers lie.

    Args:
        bounds: a tensor whose last axis does not fall.
        x: numbers; the leading axes are those of the bounds.

    Returns:
        An int64 tensor like ``x``: the place of the first bound that is larger, at most the last place.

    Raises:
        ShapeError: the leading axes differ.

    >>> td.ops.td.random_pick(td.asarray([0.1, 0.5, 1.0]), td.asarray([0.05, 0.1, 0.7])).tolist()
    [0, 1, 2]
    """,
    reference=references.pick,
    dtypes=FLOATS[2:],
    derivative=PLACES,
    batching=_pick_batched,
    samples=lambda dtype: [
        Sample((Draw((3,), values=(0.1, 0.5, 1.0)), Draw((2, 4), 0, 1))),
        Sample((Draw((2, 2), values=(0.3, 1.0, 0.9, 1.0)), Draw((2, 5), 0, 1))),
        Sample((Draw((3,), values=(0.1, 0.5, 1.0)), Draw((0,), 0, 1))),
    ],
    errors=lambda: [
        Bad((Draw((2, 3), dtype=float32), Draw((3,), dtype=float32)), ValueError, "each row"),
        Bad((Draw((), dtype=float32), Draw((3,), dtype=float32)), ValueError, "each row"),
    ],
    method=False,
)


# -- classes -----------------------------------------------------------------------------------------------------------
def _class_shapes(logits: Any, axis: int, shape: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The axes that come before, the shape of the scores, and the axis of the classes counted from the end."""
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
    place = len(own) + 1 + axis
    return wanted[:count], (*own[:place], spec.shape[axis], *own[place:]), axis


def _class_samples(dtype: DType) -> Iterable[Sample]:
    yield Sample((KEY, Draw((5,), distinct=True)))
    yield Sample((KEY, Draw((2, 3), distinct=True)))
    yield Sample((KEY, Draw((3, 2), distinct=True)), {"axis": 0, "shape": (4, 2)})
    yield Sample((KEYS, Draw((3,), distinct=True)), {"shape": (4,)})
    yield Sample((KEY, Draw((5,), distinct=True)), {"shape": (3,), "replace": False})
    yield Sample((KEY, Draw((2, 4), distinct=True)), {"shape": (3, 2), "replace": False})


@composite(
    "random_categorical(Tensor key, Tensor logits, int axis=-1, SymInt[]? shape=None, bool replace=True) -> Tensor",
    doc="""Classes, by the logarithms of their probabilities.

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
    reference=references.categorical,
    samples=_class_samples,
    errors=lambda: [
        *key_errors(Draw((3,), dtype=float32)),
        Bad((KEY, Draw((3,), dtype=int64)), TypeError, "floats"),
        Bad((KEY, Draw((3,), dtype=float32)), IndexError, "out of bounds", {"axis": 1}),
        Bad((KEY, Draw((2, 3), dtype=float32)), ValueError, "end as", {"shape": (3,)}),
        Bad((KEY, Draw((0,), dtype=float32)), ValueError, "no class"),
        Bad((KEY, Draw((3,), dtype=float32)), ValueError, "cannot", {"shape": (4,), "replace": False}),
    ],
    dtypes=FLOATS,
    method=False,
)
def categorical(key: Any, logits: Any, axis: int, shape: Any, replace: bool) -> Any:
    prefix, scores, axis = _class_shapes(logits, axis, shape)
    wide = computed_in(spec_of(logits).dtype)
    logits = parameter(logits, wide)
    if replace:
        return argmax(gumbel(key, (*prefix, *scores), wide) + logits, axis)
    count = math.prod(prefix)
    if count > scores[axis]:
        raise ValueArgumentError(
            f"random_categorical: {count} different classes cannot be drawn of {scores[axis]}"
        )
    found = top(moveaxis(gumbel(key, scores, wide) + logits, axis, -1), count)
    lead = len(found.shape) - len(scores)
    found = moveaxis(found, -1, lead)
    return reshape(found, (*found.shape[:lead], *prefix, *found.shape[lead + 1 :]))


# -- choices -----------------------------------------------------------------------------------------------------------
def _count_of(a: Any, axis: int) -> tuple[int, int]:
    """How many there are to choose from, and the axis, not negative."""
    if type(a) is int:
        if a < 0:
            raise ValueArgumentError(f"random_choice: {a} is no number of things to choose from")
        return a, 0
    shape = spec_of(a).shape if is_tensor(a) else ()
    if not shape:
        raise ArgumentError(
            f"random_choice: takes an int or a tensor with axes, not {spec_of(a)}; a trace must know the size "
            "(static_argnames)"
        )
    axis = normalize_axis("random_choice", axis, len(shape))
    return shape[axis], axis


def _places(key: Any, n: int, shape: tuple[int, ...], replace: bool, p: Any) -> Any:
    """The places that are chosen."""
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
    wide = computed_in(float_dtype("random_choice", None, p))
    p = parameter(p, wide)
    if not replace:
        return reshape(top(gumbel(key, (n,), wide) + log(p), size), shape)
    if not n:
        return integers(key, shape, 0, 1)
    bounds = cumsum(p, 0)
    return pick(bounds, open_uniform(key, shape, wide) * bounds[n - 1])


def _choice_samples(dtype: DType) -> Iterable[Sample]:
    p = Draw((4,), values=(0.1, 0.0, 0.6, 0.3), dtype=float32)
    for replace in (True, False):
        yield Sample((KEY, 6, (4,), replace))
        yield Sample((KEY, Draw((5, 2), distinct=True), (2, 2), replace))
        yield Sample((KEY, Draw((2, 4), distinct=True), 3, replace), {"p": p, "axis": 1})
        yield Sample((KEY, 4, (), replace, p))
        yield Sample((KEY, 4, (0,), replace))


@composite(
    "random_choice(Tensor key, Tensor a, SymInt[] shape=[], bool replace=True, Tensor? p=None, int axis=0) -> Tensor",
    doc="""Numbers below ``a``, or slices of a tensor, by chance.

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
    reference=references.choice,
    samples=_choice_samples,
    errors=lambda: [
        *key_errors(3),
        Bad((KEYS, 3), ValueError, "one key"),
        Bad((KEY, -1), ValueError, "no number of things"),
        Bad((KEY, 0, 2), ValueError, "nothing to choose"),
        Bad((KEY, 3, 4, False), ValueError, "cannot be chosen"),
        Bad((KEY, 2.5), TypeError, "an int"),
        Bad((KEY, 3, 2, True, Draw((2,), 0, 1, dtype=float32)), ValueError, "one probability"),
        Bad((KEY, Draw((3,)), 2), IndexError, "out of bounds", {"axis": 1}),
    ],
    dtypes=(float32,),
    method=False,
)
def choice(key: Any, a: Any, shape: Any, replace: bool, p: Any, axis: int) -> Any:
    one_key("random_choice", key)
    shape = check_shape("random_choice", shape)
    n, axis = _count_of(a, axis)
    places = _places(key, n, shape, replace, p)
    if type(a) is int:
        return places
    sizes = spec_of(a).shape
    found = take(a, reshape(places, (math.prod(shape),)), axis)
    return reshape(found, (*sizes[:axis], *shape, *sizes[axis + 1 :]))
