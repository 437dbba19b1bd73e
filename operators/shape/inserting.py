"""append, insert, delete, resize and trim_zeros."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, OutOfBoundsError, ShapeError, UnsupportedError, ValueArgumentError
from ...registry.dtypes import ALL
from ..creation.creation import full
from ..declare.array_arguments import accept_arrays
from ..declare.declaration import ErrorInput, SampleInput, TensorSample
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import broadcast_shapes, check_shape, normalize_axis, spec_of
from ..elementwise.casting import cast, clone
from ..indexing.take import nonzero, take
from .joining import concat
from .rearrange import moveaxis
from .splitting import slice_axis
from .views import broadcast_to, reshape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...registry.types import Array, ArrayModule, Tensor

_ARGS = """Args:
    self: any tensor.
    {more}
    axis: the axis; None: the tensor is flattened first.

Returns:
    A new tensor{dtype}.

Raises:
    {raises}"""


def _append_to_array(np: ArrayModule, x: Array, values: Array | float, axis: int | None) -> Any:  # noqa: ANN401
    """``append`` of arrays of one dtype, or of a number of its kind."""
    if not hasattr(values, "dtype"):
        if x.dtype.kind not in {bool: "b", int: "i", float: "f", complex: "c"}[type(values)]:
            return NotImplemented
        values = np.asarray(values, x.dtype)
    return np.append(x, values, axis) if values.dtype == x.dtype else NotImplemented


@composite(
    "append(Tensor self, Tensor values, int? axis=None) -> Tensor",
    doc=make_docstring(
        "The tensor with values appended along an axis.",
        _ARGS.format(
            more="values: a tensor whose shape agrees except along the axis; flattened too without an axis.",
            dtype=" of the promoted dtype",
            raises="ShapeError: the shapes differ in another axis.",
        ),
        "td.append(td.asarray([1, 2]), 3) -> [1, 2, 3]",
    ),
    reference="numpy.append",
    eager_kernel=_append_to_array,
    samples="samples.stacking.append_samples",
    errors=lambda: [ErrorInput((TensorSample((2, 2)), TensorSample((3,)), 0), ValueError, "shape")],
    dtypes=ALL,
    method=False,
)
def append(self: Tensor, values: Tensor, axis: int | None) -> Tensor:
    return concat([self, values], axis)


def _along(name: str, self: Tensor, axis: int | None) -> tuple[Tensor, int]:
    """The tensor, flattened without an axis, and the non-negative axis."""
    shape = spec_of(self).shape
    if axis is None:
        return reshape(self, (math.prod(shape),)), 0
    return self, normalize_axis(name, axis, len(shape))


def _edit(name: str, edit: Callable[[], Array]) -> Array:
    """The result of NumPy's function on positions, with its errors raised as tandem's."""
    try:
        return edit()
    except IndexError as fault:
        raise OutOfBoundsError(f"{name}: {fault}") from None
    except (TypeError, ValueError) as fault:
        raise ValueArgumentError(f"{name}: {fault}") from None


def _check_positions(name: str, positions: Any) -> Any:  # noqa: ANN401
    """Positions as an int, a slice or an array of ints or bools; a trace has no data of tensors."""
    if hasattr(positions, "_array"):
        positions = positions._array
    if isinstance(positions, slice):
        return positions
    array = np.asarray(positions) if not hasattr(positions, "_keys") else np.asarray("")
    if array.size == 0 and isinstance(positions, (list, tuple)):
        return array.astype(np.int64)
    if array.dtype.kind not in "biu" or array.ndim > 1:
        raise ArgumentError(
            f"{name}: positions are an int, a slice or a list of ints, which do not depend on traced data; "
            f"not {positions!r}"
        )
    return int(array) if array.ndim == 0 else array


def _is_plain_position(self: Array, indices: int | slice | list[int] | Array) -> bool:
    """Whether positions are an int, or those that NumPy's functions take as the bodies do, with results in C order."""
    if type(indices) is int:
        return True
    is_listed = type(indices) is list and {*map(type, indices)} == {int}
    if isinstance(indices, np.ndarray):
        is_listed = indices.ndim == 1 and indices.dtype.kind == "i"
    return (is_listed or type(indices) is slice) and self.flags.c_contiguous


def _insert_into_array(
    xp: ArrayModule, self: Array, indices: int | slice | list[int] | Array, values: Array, axis: int | None
) -> object:
    if axis is None:
        self, axis = self.reshape(-1), 0
    if isinstance(values, (int, float)):
        if self.dtype.kind != "f":
            return NotImplemented
        values = xp.asarray(values, self.dtype)
    if values.dtype != self.dtype or values.ndim > self.ndim or not _is_plain_position(self, indices):
        return NotImplemented
    if type(indices) is not int:
        return xp.insert(self, indices, values, axis)
    axis, length = range(self.ndim)[axis], self.shape[axis]
    start = range(length + 1)[indices] if indices >= 0 else range(length)[indices]
    if values.ndim < self.ndim:
        values = values.reshape((1,) * (self.ndim - values.ndim) + values.shape)
    if axis:
        values = values.transpose(*range(1, axis + 1), 0, *range(axis + 1, self.ndim))
    count, before = values.shape[axis], (slice(None),) * axis
    result = xp.empty((*self.shape[:axis], length + count, *self.shape[axis + 1 :]), self.dtype)
    result[*before, slice(start)] = self[*before, slice(start)]
    result[*before, slice(start, start + count)] = values
    result[*before, slice(start + count, None)] = self[*before, slice(start, None)]
    return result


def _delete_from_array(
    xp: ArrayModule, self: Array, indices: int | slice | list[int] | Array, axis: int | None
) -> object:
    if axis is None:
        self, axis = self.reshape(-1), 0
    if not _is_plain_position(self, indices):
        return NotImplemented
    axis = range(self.ndim)[axis]
    before = (slice(None),) * axis
    if type(indices) is not int:
        is_kept = xp.ones(self.shape[axis], bool)
        is_kept[indices] = False
        return xp.compress(is_kept, self, axis) if self.ndim > 1 else self[is_kept]
    start = range(self.shape[axis])[indices]
    if axis:
        return xp.concatenate((self[*before, slice(start)], self[*before, slice(start + 1, None)]), axis)
    return xp.concatenate((self[:start], self[start + 1 :]))


def _resize_array(xp: ArrayModule, self: Array, shape: tuple[int, ...]) -> object:
    count, size = math.prod(shape), self.size
    if not size or (shape and min(shape) < 0):
        return NotImplemented
    flat = self.reshape(-1)
    if count <= size:
        return flat[:count].copy().reshape(shape)
    result, whole = xp.empty(count, self.dtype), count // size * size
    result[:whole].reshape(-1, size)[...] = flat
    result[whole:] = flat[: count - whole]
    return result.reshape(shape)


@composite(
    "insert(Tensor self, Any indices, Tensor values, int? axis=None) -> Tensor",
    doc=make_docstring(
        "The tensor with values inserted along an axis.",
        _ARGS.format(
            more="indices: the positions in ``self`` before which to insert: an int, a slice or a list of ints.\n"
            "    values: the values; they broadcast, and are cast to the dtype of ``self``.",
            dtype=" of the dtype of ``self``",
            raises="OutOfBoundsError: a position or the axis is out of bounds.\n"
            "    ShapeError: the values do not fit.\n"
            "    ArgumentError: the positions are not integers, or traced.",
        ),
        "td.insert(td.asarray([1, 2]), 1, 7) -> [1, 7, 2]",
    ),
    reference="numpy.insert",
    eager_kernel=_insert_into_array,
    samples="samples.stacking.insert_samples",
    errors="samples.stacking.insert_errors",
    dtypes=ALL,
    method=False,
    spellings={"obj": "indices"},
    promotes=True,
)
def insert(self: Tensor, indices: int | slice | Sequence[int], values: Tensor, axis: int | None) -> Tensor:
    flat, along = _along("insert", self, axis)
    shape, positions = flat.shape, _check_positions("insert", indices)
    spec = spec_of(values)
    if isinstance(positions, slice):
        positions = np.arange(shape[along])[positions]
    elif not isinstance(positions, int) and positions.dtype.kind == "b":
        positions = positions.nonzero()[0]
    values = reshape(values, (1,) * (len(shape) - len(spec.shape)) + spec.shape)
    if isinstance(positions, int):
        values = moveaxis(values, 0, along)
    count = values.shape[along] if isinstance(positions, int) or positions.size == 1 else positions.size
    wide = (*shape[:along], count, *shape[along + 1 :])
    if broadcast_shapes("insert", values.shape, wide) != wide:
        raise ShapeError(f"insert: values of shape {spec.shape} do not fit into {wide}")
    whole = concat([flat, cast(broadcast_to(values, wide), spec_of(self).dtype)], along)
    one = positions if isinstance(positions, int) or positions.size != 1 else int(positions[0])
    order = _edit("insert", lambda: np.insert(np.arange(shape[along]), one, shape[along] + np.arange(count)))
    return take(whole, order, along)


@composite(
    "delete(Tensor self, Any indices, int? axis=None) -> Tensor",
    doc=make_docstring(
        "The tensor without the slices at some positions along an axis.",
        _ARGS.format(
            more="indices: the positions: an int, a slice, a list of ints, or one bool for each position.",
            dtype="",
            raises="OutOfBoundsError: a position or the axis is out of bounds.\n"
            "    ArgumentError: the positions are not integers, or traced.",
        ),
        "td.delete(td.asarray([1, 2, 3]), 1) -> [1, 3]",
    ),
    reference="numpy.delete",
    eager_kernel=_delete_from_array,
    samples="samples.stacking.delete_samples",
    errors="samples.stacking.delete_errors",
    dtypes=ALL,
    method=False,
    spellings={"obj": "indices"},
)
def delete(self: Tensor, indices: int | slice | Sequence[int], axis: int | None) -> Tensor:
    flat, along = _along("delete", self, axis)
    positions = _check_positions("delete", indices)
    order = _edit("delete", lambda: np.delete(np.arange(flat.shape[along]), positions))
    return take(flat, order, along)


@composite(
    "resize(Tensor self, SymInt[] shape) -> Tensor",
    doc=make_docstring(
        "The elements in order, repeated or cut to fill a shape; zeros if there are none.",
        """Args:
    self: any tensor.
    shape: the shape of the result.

Returns:
    A new tensor.

Raises:
    ShapeError: a size is negative.""",
        "td.resize(td.asarray([1, 2]), (2, 3)) -> [[1, 2, 1], [2, 1, 2]]",
    ),
    reference="references.numpy_functions.resize",
    eager_kernel=_resize_array,
    samples=lambda dtype: [
        SampleInput((TensorSample(size), shape))
        for size, shape in (
            ((3, 4), (2, 3)),
            ((3,), (2, 4)),
            ((), (3,)),
            ((0,), (2,)),
            ((3,), (0,)),
            ((2,), ()),
        )
    ],
    errors=lambda: [ErrorInput((TensorSample((2,)), (-1,)), ValueError, "negative")],
    dtypes=ALL,
    method=False,
)
def resize(self: Tensor, shape: tuple[int, ...]) -> Tensor:
    shape, spec = check_shape("resize", shape), spec_of(self)
    if not spec.size:
        return full(shape, 0, dtype=spec.dtype, device=spec.device)
    order = np.arange(math.prod(shape)) % spec.size
    return reshape(take(self, order), shape)


# -- trim_zeros --------------------------------------------------------------------------------------------------------
@accept_arrays
def trim_zeros(filt: Tensor, trim: str = "fb") -> Tensor:
    """The vector without zeros at its ends; only outside of jit and vmap, because its length depends on data.

    Args:
        filt: a tensor of one axis.
        trim: ``"f"``: from the front, ``"b"``: from the back, ``"fb"``: from both.

    Returns:
        A new tensor.

    Raises:
        ShapeError: the tensor does not have one axis.
        ValueArgumentError: ``trim`` is another string.
        UnsupportedError: the tensor is traced, or batched.

    >>> import tandem as td
    >>> td.trim_zeros(td.asarray([0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    """
    shape = spec_of(filt).shape
    if len(shape) != 1:
        raise ShapeError(f"trim_zeros: needs a tensor of one axis, not of shape {shape}")
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueArgumentError(f"trim_zeros: trim is 'f', 'b' or 'fb', not {trim!r}")
    try:
        positions = nonzero(filt)[0]
    except UnsupportedError:
        raise UnsupportedError(
            "trim_zeros: the length of the result depends on data that a trace does not have; call it outside of jit "
            "and vmap"
        ) from None
    if not spec_of(positions).size:
        return clone(slice_axis(filt, 0, 0, 0))
    start = positions[0].item() if "f" in trim else 0
    return clone(slice_axis(filt, 0, start, positions[-1].item() + 1 if "b" in trim else shape[0]))
