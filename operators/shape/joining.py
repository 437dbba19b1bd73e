"""concat, stack and unstack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import ALL, as_dtype
from ...registry.values import SCALARS, TensorBase, TensorSpec
from ..creation.creation import full
from ..declare.batching import Batched, BatchInfo, Dims, ensure_batch_axis, flatten_examples
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.derivatives import Linear
from ..declare.kinds import array_op, composite
from ..declare.shape_rules import common_device, is_tensor, normalize_axis, promoted_dtype, spec_of
from ..indexing.slicing import basic_index
from .rearrange import expand_dims, full_plan
from .views import reshape

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Number, Tensor


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


def _concat_shape_rule(tensors: Sequence[Any], axis: int | None = 0) -> TensorSpec:
    shapes, along = _concat_axis(tensors, axis)
    first = shapes[0]
    for shape in shapes:
        if (
            len(shape) != len(first)
            or shape[:along] + shape[along + 1 :] != first[:along] + first[along + 1 :]
        ):
            raise ShapeError(f"concat: shapes {first} and {shape} differ in an axis other than {along}")
    size = sum(shape[along] for shape in shapes)
    dtype = promoted_dtype("concat", tensors)
    return TensorSpec((*first[:along], size, *first[along + 1 :]), dtype, common_device("concat", tensors))


def _concat_kernel(xp: ArrayModule, tensors: Sequence[Any], axis: int | None) -> Array:
    """Concatenate arrays, cast to their promoted dtype.

    Native twin: backends/cpu/fastpath/entries/rt_joins.py:join
    """
    specs = [x if type(x) in SCALARS else TensorSpec(x.shape, as_dtype(x.dtype)) for x in tensors]
    native = promoted_dtype("concat", specs)
    return xp.concatenate([xp.asarray(one).astype(native.np, copy=False) for one in tensors], axis)


def _split_cotangent(g: Tensor, tensors_spec: Sequence[TensorSpec], axis: int | None) -> tuple[Tensor, ...]:
    """The transpose of ``concat``: each tensor's slice of ``g``."""
    shapes, along = _concat_axis(tensors_spec, axis)
    value, start = [], 0
    for spec, shape in zip(tensors_spec, shapes):
        plan = full_plan(g.shape)
        plan[along] = (start, shape[along], 1) if shape[along] else (0, 0, 1)
        value.append(reshape(basic_index(g, tuple(plan)), spec.shape))
        start += shape[along]
    return tuple(value)


def _concat_batched(
    info: BatchInfo, in_dims: Dims, tensors: Sequence[Tensor | Number], axis: int | None
) -> Batched:
    dtype = promoted_dtype("concat", tensors)
    given = [one if isinstance(one, TensorBase) else full((), one, dtype=dtype) for one in tensors]
    whole_batch = [ensure_batch_axis(one, dim, info.batch_size) for one, dim in zip(given, in_dims[0])]
    if axis is None:
        return info.call([flatten_examples(one) for one in whole_batch], 1), 0
    _, along = _concat_axis([TensorSpec(one.shape[1:], one.dtype) for one in whole_batch], axis)
    return info.call(whole_batch, along + 1), 0


concat: OperatorFunction[Tensor] = array_op(
    "join",
    "concat(Tensor[] tensors, int? axis=0) -> Tensor",
    _concat_shape_rule,
    _concat_kernel,
    doc="""Tensors joined along an existing axis.

    Args:
        tensors: a list or tuple of tensors whose shapes agree except along the axis.
        axis: the axis; None: each tensor is flattened first.

    Returns:
        A new tensor of the promoted dtype.

    Raises:
        ValueArgumentError: the list is empty.
        ShapeError: the shapes differ in another axis, or a tensor is 0-d.
        OutOfBoundsError: there is no such axis.

    >>> td.concat([td.zeros(2), td.ones(1)]).tolist()
    [0.0, 0.0, 1.0]
    """,
    reference="numpy.concatenate",
    dtypes=ALL,
    derivative=Linear({"tensors": lambda g, tensors_spec, axis: _split_cotangent(g, tensors_spec, axis)}),
    batching=_concat_batched,
    samples="samples.shape.concat_samples",
    errors="samples.shape.concat_errors",
    method=False,
    autocast="promote",
    aliases=("concatenate", "cat"),
)


# -- stack and unstack -------------------------------------------------------------------------------------------------
@composite(
    "stack(Tensor[] tensors, int axis=0) -> Tensor",
    doc="""Tensors of one shape joined along a new axis.

    Args:
        tensors: a list or tuple of tensors of one shape.
        axis: the index of the new axis in the result.

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
        *(SampleInput(((TensorSample((3, 4), layout=layout), TensorSample((3, 4))),)) for layout in LAYOUTS),
        SampleInput(((TensorSample((3, 4)), TensorSample((3, 4)), TensorSample((3, 4))), -1)),
        SampleInput(((TensorSample(()), TensorSample(())),)),
        SampleInput(((TensorSample((0,)),), 1)),
    ],
    errors=lambda: [
        ErrorInput(((),), ValueError, "at least one"),
        ErrorInput(((TensorSample((2,)), TensorSample((3,))),), ValueError, "shapes"),
        ErrorInput(((TensorSample((2,)),), 2), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    method=False,
    autocast="promote",
)
def stack(tensors: Sequence[Tensor], axis: int) -> Tensor:
    shapes = [spec_of(one).shape for one in tensors]
    if len(set(shapes)) > 1:
        raise ShapeError(f"stack: the shapes differ: {', '.join(map(str, shapes))}")
    return concat([expand_dims(one, axis) for one in numbers_to_tensors(tensors)], axis)


def numbers_to_tensors(tensors: Sequence[Any]) -> Sequence[Any]:
    """Tensors to stack, with Python numbers converted to tensors of the promoted dtype."""
    if all(map(is_tensor, tensors)):
        return tensors
    dtype = promoted_dtype("stack", tensors)
    device = common_device("stack", [x for x in tensors if is_tensor(x)])
    return [x if is_tensor(x) else full((), x, dtype=dtype, device=device) for x in tensors]


@composite(
    "unstack(Tensor(a) self, int axis=0) -> Tensor(a)[]",
    doc="""The sub-tensors along an axis, as views.

    Args:
        self: a tensor of at least one axis.
        axis: the axis to remove.

    Returns:
        A tuple of as many tensors as the axis is long.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> [x.tolist() for x in td.unstack(td.asarray([[1, 2], [3, 4]]), 1)]
    [[1, 3], [2, 4]]
    """,
    reference="references.basic.unstack",
    samples=lambda dtype: [
        SampleInput((TensorSample((3, 4)),)),
        SampleInput((TensorSample((3, 4)), -1)),
        SampleInput((TensorSample((0, 2)),)),
    ],
    errors=lambda: [
        ErrorInput((TensorSample(()),), IndexError, "out of bounds"),
        ErrorInput((TensorSample((2,)), 1), IndexError, "out of bounds"),
    ],
    dtypes=ALL,
    aliases=("unbind",),
)
def unstack(self: Tensor, axis: int) -> tuple[Tensor, ...]:
    shape = spec_of(self).shape
    along = normalize_axis("unstack", axis, len(shape))
    plan: list[Any] = list(full_plan(shape))
    return tuple(basic_index(self, (*plan[:along], at, *plan[along + 1 :])) for at in range(shape[along]))
