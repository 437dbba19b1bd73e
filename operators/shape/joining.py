"""concat, stack and unstack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import ALL, as_dtype
from ...registry.values import SCALARS, TensorBase, TensorSpec
from ..creation.creation import full
from ..declare.batching import (
    Batched,
    BatchInfo,
    Dims,
    ensure_batch_axis,
    flatten_examples,
    logical_shape,
)
from ..declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from ..declare.derivatives import Linear
from ..declare.kinds import array_op, composite
from ..declare.native_kernel import Decomposition
from ..declare.shape_rules import (
    common_device,
    is_tensor,
    normalize_axis,
    promoted_dtype,
    spec_of,
)
from ..declare.view_spec import Piece, PieceSpec, ViewLayout
from ..indexing.slicing import basic_index
from .rearrange import expand_dims, full_plan
from .views import reshape

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Number, Tensor


# -- concat ------------------------------------------------------------------------------------------------------------
def _shapes_and_axis(tensors: Sequence[Any], axis: int | None) -> tuple[list[tuple[int, ...]], int]:
    """Return the shapes that ``concat`` joins, flattened if ``axis`` is None, and the normalized axis."""
    if not tensors:
        raise ValueArgumentError("concat: needs at least one tensor")
    if axis is None:
        return [(spec_of(tensor).size,) for tensor in tensors], 0
    shapes = [spec_of(tensor).shape for tensor in tensors]
    if not all(shapes):
        raise ShapeError("concat: 0-d tensors have no axis to join along; use stack")
    return shapes, normalize_axis("concat", axis, len(shapes[0]))


def _concat_shape_rule(tensors: Sequence[Any], axis: int | None = 0) -> TensorSpec:
    shapes, axis = _shapes_and_axis(tensors, axis)
    first = shapes[0]
    for index, shape in enumerate(shapes):
        if len(shape) != len(first):
            raise ShapeError(
                f"concat: tensors 0 and {index} have different numbers of axes, with shapes {first} and {shape}; "
                "add axes with expand_dims"
            )
        if shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ShapeError(
                f"concat: tensors 0 and {index}, of shapes {first} and {shape}, differ in an axis other than {axis}"
            )
    size = sum(shape[axis] for shape in shapes)
    dtype = promoted_dtype("concat", tensors)
    return TensorSpec((*first[:axis], size, *first[axis + 1 :]), dtype, common_device("concat", tensors))


def _concat_kernel(xp: ArrayModule, tensors: Sequence[Any], axis: int | None) -> Array:
    """Concatenate arrays, cast to their promoted dtype.

    Native twin: backends/cpu/fastpath/entries/rt_joins.py:join
    """
    specs = [x if type(x) in SCALARS else TensorSpec(x.shape, as_dtype(x.dtype)) for x in tensors]
    dtype = promoted_dtype("concat", specs)
    return xp.concatenate([xp.asarray(x).astype(dtype.np, copy=False) for x in tensors], axis)


def _concat_pieces(whole: ViewLayout, tensors: Sequence[Any], axis: int | None) -> list[Piece] | None:
    """The pieces of a concatenation: a slice for each tensor; None if some are flattened."""
    shapes = [(1,) if isinstance(x, SCALARS) or (axis is None and not x.shape) else x.shape for x in tensors]
    if any(len(shape) != len(whole.sizes) for shape in shapes):
        return None
    axis = 0 if axis is None else axis % len(whole.sizes)
    result, offset = [], whole.offset
    for tensor, shape in zip(tensors, shapes):
        result.append(Piece(ViewLayout(shape, whole.strides, offset), tensor))
        offset += shape[axis] * whole.strides[axis]
    return result


def _split_cotangent(g: Tensor, tensors_spec: Sequence[TensorSpec], axis: int | None) -> tuple[Tensor, ...]:
    """Transpose of ``concat``: split the cotangent ``g`` into a slice for each tensor."""
    shapes, axis = _shapes_and_axis(tensors_spec, axis)
    slices, start = [], 0
    for spec, shape in zip(tensors_spec, shapes):
        plan = full_plan(g.shape)
        plan[axis] = (start, shape[axis], 1) if shape[axis] else (0, 0, 1)
        slices.append(reshape(basic_index(g, tuple(plan)), spec.shape))
        start += shape[axis]
    return tuple(slices)


def _concat_batched(
    info: BatchInfo, in_dims: Dims, tensors: Sequence[Tensor | Number], axis: int | None
) -> Batched:
    dtype = promoted_dtype("concat", tensors)
    converted = [x if isinstance(x, TensorBase) else full((), x, dtype=dtype) for x in tensors]
    batched = [ensure_batch_axis(x, dim, info.batch_size) for x, dim in zip(converted, in_dims[0])]
    if axis is None:
        return info.call([flatten_examples(x) for x in batched], 1), 0
    _, axis = _shapes_and_axis([TensorSpec(x.shape[1:], x.dtype) for x in batched], axis)
    return info.call(batched, axis + 1), 0


def _is_flat(tensor: object) -> bool:
    return isinstance(tensor, SCALARS) or len(spec_of(tensor).shape) <= 1


def _concat_flattened(tensors: Sequence[Any], axis: None) -> Tensor:
    flat = [x if _is_flat(x) else reshape(x, (spec_of(x).size,)) for x in tensors]
    return concat(flat, axis)


concat: OperatorFunction[Tensor] = array_op(
    "join",
    "concat(Tensor[] tensors, int? axis=0) -> Tensor",
    _concat_shape_rule,
    _concat_kernel,
    doc="""Join tensors along an existing axis.

    Args:
        tensors: a list or tuple of tensors whose shapes agree except along the axis.
        axis: the axis; if None, each tensor is flattened first.

    Returns:
        A new tensor of the promoted dtype.

    Raises:
        ValueArgumentError: the list is empty.
        ShapeError: the shapes differ in another axis, or a tensor is 0-d and ``axis`` is not None.
        OutOfBoundsError: there is no such axis.

    >>> td.concat([td.zeros(2), td.ones(1)]).tolist()
    [0.0, 0.0, 1.0]
    """,
    reference="numpy.concatenate",
    decomposition=Decomposition(
        _concat_flattened,
        lambda tensors, axis: axis is None and not all(map(_is_flat, tensors)),
    ),
    dtypes=ALL,
    derivative=Linear({"tensors": lambda g, tensors_spec, axis: _split_cotangent(g, tensors_spec, axis)}),
    piece_spec=PieceSpec(_concat_pieces),
    batching=_concat_batched,
    samples="samples.shape.concat_samples",
    errors="samples.shape.concat_errors",
    method=False,
    autocast="promote",
    aliases=("concatenate", "cat"),
)


def _check_equal(shapes: list[tuple[int, ...]]) -> None:
    """Raise ShapeError if the shapes of tensors to stack differ."""
    if len(set(shapes)) > 1:
        raise ShapeError(
            f"stack: the shapes differ: {', '.join(map(str, shapes))}; broadcast the tensors first"
        )


def _stack_batched(info: BatchInfo, in_dims: Dims, tensors: Sequence[Tensor | Number], axis: int) -> Batched:
    dtype = promoted_dtype("stack", tensors)
    converted = [x if isinstance(x, TensorBase) else full((), x, dtype=dtype) for x in tensors]
    shapes = [logical_shape(x, dim) for x, dim in zip(converted, in_dims[0])]
    _check_equal(shapes)
    batched = [ensure_batch_axis(x, dim, info.batch_size) for x, dim in zip(converted, in_dims[0])]
    return info.call(batched, normalize_axis("stack", axis, len(shapes[0]) + 1) + 1), 0


# -- stack and unstack -------------------------------------------------------------------------------------------------
@composite(
    "stack(Tensor[] tensors, int axis=0) -> Tensor",
    doc="""Join tensors of one shape along a new axis.

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
        ErrorInput(((),), ValueError, "stack: needs at least one"),
        ErrorInput(((TensorSample((2,)), TensorSample((3,))),), ValueError, "shapes"),
        ErrorInput(((TensorSample((2,)),), 2), IndexError, "stack: axis 2 is out of bounds"),
    ],
    dtypes=ALL,
    batching=_stack_batched,
    method=False,
    autocast="promote",
)
def stack(tensors: Sequence[Tensor], axis: int) -> Tensor:
    if not tensors:
        raise ValueArgumentError("stack: needs at least one tensor")
    shapes = [spec_of(tensor).shape for tensor in tensors]
    _check_equal(shapes)
    axis = normalize_axis("stack", axis, len(shapes[0]) + 1)
    return concat([expand_dims(x, axis) for x in numbers_to_tensors(tensors)], axis)


def numbers_to_tensors(tensors: Sequence[Any]) -> Sequence[Any]:
    """Convert the Python numbers among tensors to stack to tensors of the promoted dtype."""
    if all(map(is_tensor, tensors)):
        return tensors
    dtype = promoted_dtype("stack", tensors)
    device = common_device("stack", [x for x in tensors if is_tensor(x)])
    return [x if is_tensor(x) else full((), x, dtype=dtype, device=device) for x in tensors]


def number_to_tensor(value: Tensor | Number) -> Tensor:
    """Convert a Python number to a tensor of the default dtype of its kind; return any other value unchanged."""
    return full((), value) if isinstance(value, SCALARS) else value


@composite(
    "unstack(Tensor(a) self, int axis=0) -> Tensor(a)[]",
    doc="""Split a tensor into views along an axis, which they do not have.

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
    axis = normalize_axis("unstack", axis, len(shape))
    plan: list[Any] = list(full_plan(shape))
    return tuple(basic_index(self, (*plan[:axis], index, *plan[axis + 1 :])) for index in range(shape[axis]))
