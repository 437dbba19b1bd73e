"""ravel_multi_index, unravel_index and ix_: indices of axes and of the flattened tensor."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import INTEGERS, bool_, int64
from ..creation.full import zeros
from ..declare.array_arguments import accept_arrays
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import check_shape, spec_of
from ..elementwise.arithmetic import add
from ..elementwise.casting import cast
from ..shape.views import broadcast_to, reshape
from .choosing import bound_indices
from .positions import flatnonzero
from .take import take

if TYPE_CHECKING:
    from ...registry.types import Tensor

_ORDER = 'order: ``"C"``: the last axis varies fastest, or ``"F"``: the first one.'


def _check_order(name: str, order: str) -> None:
    if order not in ("C", "F"):
        raise ValueArgumentError(f"{name}: order is 'C' or 'F', not {order!r}")


def _strides(shape: tuple[int, ...], order: str) -> list[int]:
    """The distance in the flattened tensor of neighbours along each axis."""
    if order == "F":
        return [math.prod(shape[:at]) for at in range(len(shape))]
    return [math.prod(shape[at + 1 :]) for at in range(len(shape))]


def _check_bounds(indices: Tensor, size: int) -> Tensor:
    """The indices, after a read at each of them from a tensor without memory, which raises out of bounds."""
    device = spec_of(indices).device
    return indices + take(broadcast_to(zeros((), dtype=int64, device=device), (size,)), indices)


@composite(
    "ravel_multi_index(Tensor[] multi_index, int[] dims, str mode='raise', str order='C') -> Tensor",
    doc=make_docstring(
        "The positions in the flattened tensor of elements with some indices.",
        f"""Args:
    multi_index: a list of tensors of integers, one for each axis, whose shapes broadcast.
    dims: the shape of the tensor.
    mode: an index out of bounds ``"raise"``s an error, ``"wrap"``s around, or is ``"clip"``ped.
    {_ORDER}

Returns:
    An int64 tensor of the broadcast shape.

Raises:
    OutOfBoundsError: an index is out of bounds.
    ShapeError: the number of tensors is not that of axes, or the shapes do not broadcast.
    DTypeError: the indices are not integers.
    ValueArgumentError: another mode or order.""",
        "td.ravel_multi_index([td.asarray([0, 1]), td.asarray([2, 0])], (2, 3)) -> [2, 3]",
    ),
    reference="references.numpy_functions.ravel_multi_index",
    samples="samples.indexing.ravel_samples",
    errors="samples.indexing.ravel_errors",
    dtypes=INTEGERS,
    method=False,
)
def ravel_multi_index(multi_index: Sequence[Tensor], dims: tuple[int, ...], mode: str, order: str) -> Tensor:
    shape = check_shape("ravel_multi_index", dims)
    _check_order("ravel_multi_index", order)
    if len(multi_index) != len(shape) or not shape:
        raise ShapeError(f"ravel_multi_index: {len(multi_index)} tensors of indices do not fit shape {shape}")
    parts: list[Tensor] = []
    for indices, size, stride in zip(multi_index, shape, _strides(shape, order)):
        bounded = bound_indices("ravel_multi_index", indices, size, mode)
        parts.append((_check_bounds(bounded, size) if mode == "raise" else bounded) * stride)
    return functools.reduce(add, parts)


@composite(
    "unravel_index(Tensor self, int[] shape, str order='C') -> Tensor[]",
    doc=make_docstring(
        "The indices of the elements at positions in the flattened tensor.",
        f"""Args:
    self: a tensor of integers, the positions.
    shape: the shape of the tensor.
    {_ORDER}

Returns:
    A tuple of int64 tensors of the shape of ``self``, one for each axis.

Raises:
    OutOfBoundsError: a position is out of bounds.
    DTypeError: the positions are not integers.
    ValueArgumentError: another order.

>>> [x.tolist() for x in td.unravel_index(td.asarray([2, 3]), (2, 3))]
[[0, 1], [2, 0]]
""",
        "",
    ),
    reference="references.numpy_functions.unravel_index",
    samples="samples.indexing.unravel_samples",
    errors="samples.indexing.unravel_errors",
    dtypes=INTEGERS,
    method=False,
    variadic=False,
    spellings={"indices": "self", "dims": "shape"},
)
def unravel_index(self: Tensor, shape: tuple[int, ...], order: str) -> tuple[Tensor, ...]:
    sizes = check_shape("unravel_index", shape)
    _check_order("unravel_index", order)
    count = math.prod(sizes)
    flat = _check_bounds(bound_indices("unravel_index", self, count, "raise"), count)
    return tuple(flat // max(stride, 1) % max(size, 1) for size, stride in zip(sizes, _strides(sizes, order)))


@accept_arrays
def ix_(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Index tensors for the grid of some positions along each axis: ``x[td.ix_(rows, columns)]``.

    Args:
        arrays: tensors of integers of one axis, or of bools, of which the true positions count.

    Returns:
        A tuple of tensors with as many axes as there are arguments; number i is long along axis i alone.

    Raises:
        ShapeError: a tensor has not one axis.
        UnsupportedError: bools are traced: the number of positions depends on data.

    >>> import tandem as td
    >>> td.arange(6).reshape(2, 3)[td.ix_(td.asarray([1, 0]), td.asarray([0, 2]))].tolist()
    [[3, 5], [0, 2]]
    """
    result = []
    for at, positions in enumerate(arrays):
        spec = spec_of(positions)
        if len(spec.shape) != 1:
            raise ShapeError(f"ix_: positions have one axis, not shape {spec.shape}")
        flat = flatnonzero(positions) if spec.dtype is bool_ else positions
        flat = cast(flat, int64) if not spec.size else flat
        result.append(reshape(flat, tuple(-1 if axis == at else 1 for axis in range(len(arrays)))))
    return tuple(result)
