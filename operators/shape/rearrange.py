"""Views composed of ``reshape``, ``permute``, ``broadcast_to`` and ``basic_index``: transpose, squeeze, flip, ..."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...errors import ShapeError
from ...registry.dtypes import ALL
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axes, normalize_axis, spec_of
from ..indexing.slicing import basic_index
from .views import broadcast_to, permute, reshape

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Function, T, Tensor
    from ..declare.declaration import Errors, Samples


def full_plan(shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """The index plan that selects a whole tensor of a shape."""
    return [(0, size, 1) for size in shape]


def _view(
    schema: str,
    doc: str,
    reference: str | Function,
    samples: Samples,
    errors: Errors,
    aliases: tuple[str, ...] = (),
    spellings: Mapping[str, str] | None = None,
    variadic: bool | str | None = None,
) -> Callable[[Callable[..., T]], OperatorFunction[T]]:
    return composite(
        schema,
        doc=doc,
        reference=reference,
        samples=samples,
        errors=errors,
        dtypes=ALL,
        aliases=aliases,
        spellings=spellings,
        variadic=variadic,
    )


@_view(
    "transpose(Tensor(a) self, int[]? axes=None) -> Tensor(a)",
    """A view with the axes in another order.

    Args:
        self: any tensor.
        axes: the axis of ``self`` that becomes each axis of the result; None: all axes in reverse order, as in NumPy.
            A method takes them one by one, too: ``x.transpose(1, 0, 2)``. Two axes of a tensor that has not two axes
            are exchanged, as in PyTorch: ``x.transpose(1, 2)``.

    Returns:
        A view.

    Raises:
        OutOfBoundsError: there is no such axis.
        ValueArgumentError: the axes are not a permutation.

    >>> td.transpose(td.zeros((2, 3, 4))).shape
    (4, 3, 2)
    """,
    "numpy.transpose",
    "samples.shape.transpose_samples",
    lambda: [
        ErrorInput((TensorSample((3, 4)), (0, 2)), IndexError, "out of bounds"),
        ErrorInput((TensorSample((3, 4)), (0,)), ValueError, "permutation"),
    ],
    variadic="ints",
)
def transpose(self: Tensor, axes: tuple[int, ...] | None) -> Tensor:
    return permute(self, tuple(reversed(range(len(spec_of(self).shape)))) if axes is None else axes)


@_view(
    "swapaxes(Tensor(a) self, int axis1, int axis2) -> Tensor(a)",
    """A view with two axes exchanged.

    Args:
        self: a tensor with these axes.
        axis1, axis2: the two axes.

    Returns:
        A view.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> td.swapaxes(td.zeros((2, 3, 4)), 0, 1).shape
    (3, 2, 4)
    """,
    "numpy.swapaxes",
    ("samples.shape.rearranged_samples", (3, 4), (0, 1), (1, 1), (-1, 0)),
    lambda: [ErrorInput((TensorSample((3, 4)), 0, 2), IndexError, "out of bounds")],
    aliases=("swapdims",),
    spellings={"dim0": "axis1", "dim1": "axis2"},
)
def swapaxes(self: Tensor, axis1: int, axis2: int) -> Tensor:
    axes = list(range(len(spec_of(self).shape)))
    one, two = (normalize_axis("swapaxes", axis, len(axes)) for axis in (axis1, axis2))
    axes[one], axes[two] = two, one
    return permute(self, axes)


@_view(
    "matrix_transpose(Tensor(a) self) -> Tensor(a)",
    """The transposes of a stack of matrices: a view with the last two axes exchanged; also ``x.mT``.

    Args:
        self: a tensor of shape ``(..., M, N)``.

    Returns:
        A view of shape ``(..., N, M)``.

    Raises:
        ShapeError: there are fewer than two axes.

    >>> td.matrix_transpose(td.zeros((2, 3, 4))).shape
    (2, 4, 3)
    """,
    "references.basic.transpose",
    lambda dtype: [SampleInput((TensorSample(shape),)) for shape in ((3, 4), (2, 3, 4), (0, 2))],
    lambda: [ErrorInput((TensorSample((3,)),), ValueError, "two axes")],
)
def matrix_transpose(self: Tensor) -> Tensor:
    own = spec_of(self).shape
    if len(own) < 2:
        raise ShapeError(f"matrix_transpose: needs at least two axes, not shape {own}")
    return swapaxes(self, -2, -1)


@_view(
    "moveaxis(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    """A view with some axes moved to new positions; the others keep their order.

    Args:
        self: any tensor.
        source: the axes to move, an int or several.
        destination: the new position of each.

    Returns:
        A view.

    Raises:
        OutOfBoundsError: there is no such axis.
        ShapeError: an axis occurs twice, or the numbers of axes differ.

    >>> td.moveaxis(td.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """,
    "numpy.moveaxis",
    ("samples.shape.rearranged_samples", (2, 3, 4), (0, -1), ((0, 1), (2, 0)), (2, 0)),
    lambda: [
        ErrorInput((TensorSample((2, 3)), 2, 0), IndexError, "out of bounds"),
        ErrorInput((TensorSample((2, 3)), (0, 0), (0, 1)), ValueError, "twice"),
        ErrorInput((TensorSample((2, 3)), (0, 1), 0), ValueError, "as many"),
    ],
    aliases=("movedim",),
)
def moveaxis(self: Tensor, source: tuple[int, ...], destination: tuple[int, ...]) -> Tensor:
    own = spec_of(self).shape
    rank = len(own)
    if len(source) != len(destination):
        raise ShapeError(f"moveaxis: {source} to {destination}: needs as many destinations as axes")
    normalize_axes("moveaxis", source, rank), normalize_axes("moveaxis", destination, rank)
    axes = [axis for axis in range(rank) if axis not in {s % rank for s in source}]
    for index, axis in sorted((d % rank, s % rank) for s, d in zip(source, destination)):
        axes.insert(index, axis)
    return permute(self, axes)


@_view(
    "expand(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    """``broadcast_to`` where -1 keeps a size.

    Args:
        self: any tensor.
        shape: the sizes of the result; -1 keeps that of ``self``.

    Returns:
        A view of that shape.

    Raises:
        ShapeError: the shapes do not broadcast, or -1 is the size of a new axis.

    >>> td.expand(td.zeros((2, 1)), (-1, 3)).shape
    (2, 3)
    """,
    "references.basic.expand",
    ("samples.shape.rearranged_samples", (3, 1), ((-1, 4),), ((2, 3, 4),), ((2, -1, -1),)),
    lambda: [
        ErrorInput((TensorSample((3,)), (-1, 3)), ValueError, "-1"),
        ErrorInput((TensorSample((3,)), (4,)), ValueError, "broadcast"),
    ],
)
def expand(self: Tensor, shape: tuple[int, ...]) -> Tensor:
    own = spec_of(self).shape
    lead = len(shape) - len(own)
    if -1 in shape[: max(lead, 0)]:
        raise ShapeError(f"expand: -1 in {shape} is the size of a new axis, which shape {own} does not have")
    return broadcast_to(
        self, tuple(own[i - lead] if n == -1 and lead >= 0 else n for i, n in enumerate(shape))
    )


@_view(
    "squeeze(Tensor(a) self, int[]? axis=None) -> Tensor(a)",
    """A view without axes of length 1.

    Args:
        self: any tensor.
        axis: the axis or axes to remove; None: all of length 1.

    Returns:
        A view; by default the tensor itself if no axis has length 1.

    Raises:
        ShapeError: an axis has another length.
        OutOfBoundsError: there is no such axis.

    >>> td.squeeze(td.zeros((1, 3, 1)), 0).shape
    (3, 1)
    """,
    "numpy.squeeze",
    ("samples.shape.rearranged_samples", (1, 3, 1), (), (0,), (-1,), ((0, 2),), ((),)),
    lambda: [
        ErrorInput((TensorSample((1, 3)), 1), ValueError, "length 3"),
        ErrorInput((TensorSample((1, 3)), 2), IndexError, "out of bounds"),
    ],
)
def squeeze(self: Tensor, axis: tuple[int, ...] | None) -> Tensor:
    own = spec_of(self).shape
    if axis is None:
        return reshape(self, tuple(size for size in own if size != 1)) if 1 in own else self
    gone = normalize_axes("squeeze", axis, len(own))
    for axis_ in gone:
        if own[axis_] != 1:
            raise ShapeError(f"squeeze: axis {axis_} of shape {own} has length {own[axis_]}, not 1")
    return reshape(self, tuple(size for at, size in enumerate(own) if at not in gone))


@_view(
    "flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    """Consecutive axes merged into one; by default all of them. Also called ``ravel``.

    Args:
        self: any tensor.
        start_dim, end_dim: the first and the last of the axes.

    Returns:
        A view if the strides allow it, else a copy.

    Raises:
        OutOfBoundsError: there is no such axis.
        ShapeError: ``end_dim`` is before ``start_dim``.

    >>> td.flatten(td.zeros((2, 3, 4)), 1).shape
    (2, 12)
    """,
    "references.basic.flatten",
    ("samples.shape.rearranged_samples", (2, 3, 4), (), (1,), (0, 1), (-1,)),
    lambda: [
        ErrorInput((TensorSample((2, 3)), 2), IndexError, "out of bounds"),
        ErrorInput((TensorSample((2, 3)), 1, 0), ValueError, "before"),
    ],
    aliases=("ravel",),
)
def flatten(self: Tensor, start_dim: int, end_dim: int) -> Tensor:
    own = spec_of(self).shape
    if not own:
        return reshape(self, (1,))
    first, last = (normalize_axis("flatten", dim, len(own)) for dim in (start_dim, end_dim))
    if last < first:
        raise ShapeError(f"flatten: end_dim {end_dim} is before start_dim {start_dim} of shape {own}")
    return reshape(self, (*own[:first], math.prod(own[first : last + 1]), *own[last + 1 :]))


@_view(
    "expand_dims(Tensor(a) self, int[] axis=[0]) -> Tensor(a)",
    """A view with new axes of length 1; also called ``unsqueeze``.

    Args:
        self: any tensor.
        axis: the index of the new axis or axes in the result.

    Returns:
        A view.

    Raises:
        OutOfBoundsError: the result has no such axis.

    >>> td.expand_dims(td.zeros(3), -1).shape
    (3, 1)
    """,
    "numpy.expand_dims",
    ("samples.shape.rearranged_samples", (3, 4), (0,), (1,), (-1,), ((0, 2),)),
    lambda: [
        ErrorInput((TensorSample((3,)), 2), IndexError, "out of bounds"),
        ErrorInput((TensorSample((3,)), (0, 0)), ValueError, "twice"),
    ],
    aliases=("unsqueeze",),
)
def expand_dims(self: Tensor, axis: tuple[int, ...]) -> Tensor:
    own = spec_of(self).shape
    rank = len(own) + len(axis)
    new = normalize_axes("expand_dims", axis, rank)
    sizes = iter(own)
    return reshape(self, tuple(1 if at in new else next(sizes) for at in range(rank)))


@_view(
    "flip(Tensor(a) self, int[]? axis=None) -> Tensor(a)",
    """A view with the elements in reverse order along some axes.

    Args:
        self: any tensor.
        axis: the axis or axes; None: all.

    Returns:
        A view.

    Raises:
        OutOfBoundsError: there is no such axis.

    >>> td.flip(td.arange(3)).tolist()
    [2, 1, 0]
    """,
    "numpy.flip",
    ("samples.shape.rearranged_samples", (3, 4), (), (0,), (-1,), ((0, 1),)),
    lambda: [ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds")],
    variadic=True,
)
def flip(self: Tensor, axis: tuple[int, ...] | None) -> Tensor:
    own = spec_of(self).shape
    turned = normalize_axes("flip", axis, len(own))
    return basic_index(
        self, tuple((n - 1, n, -1) if at in turned and n else (0, n, 1) for at, n in enumerate(own))
    )
