"""Joining tensors, and taking them apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import lazy
from ..errors import ShapeError, ValueArgumentError
from ..registry.dtypes import ALL, DType, as_dtype
from ..registry.values import TensorSpec
from .batching import Batched, BatchInfo, Dims, flat_examples, with_batch
from .creation import full
from .declare import Bad, Draw, Sample
from .derivatives import Linear
from .kinds import LAYOUTS, composite, library
from .rearrange import expand_dims, whole
from .rules import common_device, is_tensor, normalize_axis, promoted_dtype, spec_of
from .slicing import basic_index
from .views import reshape

references = lazy.Functions("operators.references")


# -- concat ------------------------------------------------------------------------------------------------------------
def _concat_axis(tensors: Sequence[Any], axis: int | None) -> tuple[list[tuple[int, ...]], int]:
    """The shapes to join and the axis to join them along; axis None flattens."""
    if not tensors:
        raise ValueArgumentError("concat: needs at least one tensor")
    if axis is None:
        return [(spec_of(one).size,) for one in tensors], 0
    shapes = [spec_of(one).shape for one in tensors]
    if not all(shapes):
        raise ShapeError("concat: 0-d tensors have no axis to join along; use stack")
    return shapes, normalize_axis("concat", axis, len(shapes[0]))


def _concat_meta(tensors: Sequence[Any], axis: int | None = 0) -> TensorSpec:
    shapes, along = _concat_axis(tensors, axis)
    first = shapes[0]
    for shape in shapes:
        if (
            len(shape) != len(first)
            or shape[:along] + shape[along + 1 :] != first[:along] + first[along + 1 :]
        ):
            raise ShapeError(f"concat: shapes {first} and {shape} differ beside axis {along}")
    size = sum(shape[along] for shape in shapes)
    dtype = promoted_dtype("concat", tensors)
    return TensorSpec((*first[:along], size, *first[along + 1 :]), dtype, common_device("concat", tensors))


def _concat_kernel(xp: Any, tensors: Sequence[Any], axis: int | None) -> Any:
    native = promoted_dtype(
        "concat", [TensorSpec(one.shape, as_dtype(one.dtype)) for one in map(xp.asarray, tensors)]
    )
    return xp.concatenate([xp.asarray(one).astype(native.np, copy=False) for one in tensors], axis)


def _concat_samples(dtype: DType) -> Iterable[Sample]:
    for layout in LAYOUTS:
        yield Sample(((Draw((2, 3), layout=layout), Draw((4, 3), layout=layout)),))
    yield Sample(((Draw((2, 3)), Draw((2, 1)), Draw((2, 0))), 1))
    yield Sample(((Draw((2, 3)), Draw((2, 1))), -1))
    yield Sample(((Draw((2, 3)), Draw((2,))), None))
    yield Sample(((Draw((3,)),),))


def _concat_errors() -> Iterable[Bad]:
    yield Bad(((),), ValueError, "at least one")
    yield Bad(((Draw((2, 3)), Draw((2, 4))),), ValueError, "differ beside axis 0")
    yield Bad(((Draw((2, 3)), Draw((2,))),), ValueError, "differ")
    yield Bad(((Draw(()),),), ValueError, "0-d")
    yield Bad(((Draw((2,)),), 1), IndexError, "out of bounds")
    yield Bad((Draw((2,)),), TypeError, "sequence")


def _parts(g: Any, tensors_spec: Sequence[TensorSpec], axis: int | None) -> tuple[Any, ...]:
    """The transpose of joining: each tensor's part of ``g``."""
    shapes, along = _concat_axis(tensors_spec, axis)
    found, start = [], 0
    for spec, shape in zip(tensors_spec, shapes):
        plan = whole(g.shape)
        plan[along] = (start, shape[along], 1) if shape[along] else (0, 0, 1)
        found.append(reshape(basic_index(g, tuple(plan)), spec.shape))
        start += shape[along]
    return tuple(found)


def _concat_batched(info: BatchInfo, in_dims: Dims, tensors: Sequence[Any], axis: int | None) -> Batched:
    dtype = promoted_dtype("concat", tensors)
    given = [one if is_tensor(one) else full((), one, dtype=dtype) for one in tensors]
    whole_batch = [with_batch(one, dim, info.batch_size) for one, dim in zip(given, in_dims[0])]
    if axis is None:
        return info.call([flat_examples(one) for one in whole_batch], 1), 0
    _, along = _concat_axis([TensorSpec(one.shape[1:], one.dtype) for one in whole_batch], axis)
    return info.call(whole_batch, along + 1), 0


concat = library(
    "join",
    "concat(Tensor[] tensors, int? axis=0) -> Tensor",
    _concat_meta,
    _concat_kernel,
    doc="""Tensors joined along an axis that they have.

    Args:
        tensors: a list or tuple of tensors of one shape but for the axis.
        axis: the axis; None: each tensor is flattened first.

    Returns:
        A new tensor of the promoted dtype.

    Raises:
        ValueArgumentError: the list is empty.
        ShapeError: the shapes differ beside the axis, or a tensor is 0-d.
        OutOfBoundsError: there is no such axis.

    >>> td.concat([td.zeros(2), td.ones(1)]).tolist()
    [0.0, 0.0, 1.0]
    """,
    reference="numpy.concatenate",
    dtypes=ALL,
    derivative=Linear({"tensors": lambda g, tensors_spec, axis: _parts(g, tensors_spec, axis)}),
    batching=_concat_batched,
    samples=_concat_samples,
    errors=_concat_errors,
    method=False,
    autocast="promote",
)


# -- stack and unstack -------------------------------------------------------------------------------------------------
@composite(
    "stack(Tensor[] tensors, int axis=0) -> Tensor",
    doc="""Tensors of one shape joined along a new axis.

    Args:
        tensors: a list or tuple of tensors of one shape.
        axis: where the new axis is in the result.

    Returns:
        A new tensor of the promoted dtype.

    Raises:
        ValueArgumentError: the list is empty.
        ShapeError: the shapes differ.
        OutOfBoundsError: the result has no such axis.

    >>> td.stack([td.zeros(2), td.ones(2)], -1).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """,
    reference="numpy.stack",
    samples=lambda dtype: [
        *(Sample(((Draw((3, 4), layout=layout), Draw((3, 4))),)) for layout in LAYOUTS),
        Sample(((Draw((3, 4)), Draw((3, 4)), Draw((3, 4))), -1)),
        Sample(((Draw(()), Draw(())),)),
        Sample(((Draw((0,)),), 1)),
    ],
    errors=lambda: [
        Bad(((),), ValueError, "at least one"),
        Bad(((Draw((2,)), Draw((3,))),), ValueError, "shapes"),
        Bad(((Draw((2,)),), 2), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    method=False,
    autocast="promote",
)
def stack(tensors: Sequence[Any], axis: int) -> Any:
    shapes = [spec_of(one).shape for one in tensors]
    if len(set(shapes)) > 1:
        raise ShapeError(f"stack: the shapes differ: {', '.join(map(str, shapes))}")
    return concat([expand_dims(one, axis) for one in tensors], axis)


@composite(
    "unstack(Tensor(a) self, int axis=0) -> Tensor(a)[]",
    doc="""The sub-tensors along an axis, as views.

    Args:
        self: a tensor of at least one axis.
        axis: the axis that goes away.

    Returns:
        A tuple of as many tensors as the axis is long.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> [x.tolist() for x in td.unstack(td.asarray([[1, 2], [3, 4]]), 1)]
    [[1, 3], [2, 4]]
    """,
    reference=references.unstack,
    samples=lambda dtype: [Sample((Draw((3, 4)),)), Sample((Draw((3, 4)), -1)), Sample((Draw((0, 2)),))],
    errors=lambda: [
        Bad((Draw(()),), IndexError, "out of bounds"),
        Bad((Draw((2,)), 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
)
def unstack(self: Any, axis: int) -> tuple[Any, ...]:
    shape = spec_of(self).shape
    along = normalize_axis("unstack", axis, len(shape))
    plan: list[Any] = list(whole(shape))
    return tuple(basic_index(self, (*plan[:along], at, *plan[along + 1 :])) for at in range(shape[along]))
