"""Collective operators: reductions and gathers along a named axis of ``vmap``, whose result every example receives.

The operators take the name and the length of the axis, because their kernels run for values that are the same for all
examples. The batching rules compute the collective at the level whose axis has that name, and call the operator again
at any other level.

Source: the collectives of ``jax.lax``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..registry.dtypes import NUMERIC, int64
from ..registry.values import TensorSpec
from .declare.batching import Batched, BatchInfo, Dims
from .declare.declaration import ErrorInput, SampleInput, TensorSample
from .declare.derivatives import Linear
from .declare.kinds import array_op
from .declare.shape_rules import spec_of
from .indexing.gather import index
from .reductions.folds import sum
from .shape.views import broadcast_to

if TYPE_CHECKING:
    from ..registry.function import OperatorFunction
    from ..registry.types import Tensor


def _make_batching_rule(work: Callable[[Any], Any]) -> Callable[..., Batched]:
    """A batching rule: ``work(batch)`` at the level that has the named axis, with a result that is not batched."""

    def rule(info: BatchInfo, in_dims: Dims, x: Tensor, axis_name: Hashable, axis_size: int) -> Batched:
        return (info.call(x, axis_name, axis_size), 0) if info.axis_name != axis_name else (work(x), None)

    return rule


def _gather_batching_rule(
    info: BatchInfo, in_dims: Dims, x: Tensor, number: object, axis_name: Hashable, axis_size: int
) -> Batched:
    if info.axis_name != axis_name:
        return info.call(x, number, axis_name, axis_size), None if in_dims[0] is None else 1
    return (x if in_dims[0] == 0 else broadcast_to(x, (axis_size, *x.shape))), None


axis_sum: OperatorFunction[Tensor] = array_op(
    "collective",
    "axis_sum(Tensor self, Any axis_name, int axis_size) -> Tensor",
    lambda self, axis_name, axis_size: spec_of(self),
    lambda xp, self, axis_name, axis_size: xp.asarray(self * xp.asarray(axis_size, self.dtype)),
    doc="""The sum over the axis of a `vmap`, for each example; what `td.psum` calls.

    Args:
        self: a tensor.
        axis_name: the name of the axis.
        axis_size: its length.

    Returns:
        A tensor of the same shape and dtype.

    >>> td.vmap(lambda x: td.ops.td.axis_sum(x, "i", 3), axis_name="i")(td.asarray([1.0, 2.0, 3.0])).tolist()
    [6.0, 6.0, 6.0]
    """,
    reference=lambda a, axis_name, axis_size: a * np.asarray(axis_size, a.dtype),
    dtypes=NUMERIC,
    derivative=Linear({"self": lambda g, axis_name, axis_size: axis_sum(g, axis_name, axis_size)}),
    batching=_make_batching_rule(lambda x: sum(x, 0, dtype=x.dtype)),
    samples="samples.collective.collective_samples",
    errors="samples.collective.collective_errors",
    method=False,
)


def _gather_shape_rule(self: TensorSpec, number: object, axis_name: Hashable, axis_size: int) -> TensorSpec:
    spec = spec_of(self)
    return TensorSpec((axis_size, *spec.shape), spec.dtype, spec.device)


axis_gather = array_op(
    "collective",
    "axis_gather(Tensor self, Tensor number, Any axis_name, int axis_size) -> Tensor",
    _gather_shape_rule,
    lambda xp, self, number, axis_name, axis_size: xp.array(xp.broadcast_to(self, (axis_size, *self.shape))),
    doc="""All examples of the axis of a `vmap`, stacked in front, for each example; what `td.all_gather` calls.

    Args:
        self: a tensor.
        number: the number of the example along the axis: `td.axis_index(axis_name)`.
        axis_name: the name of the axis.
        axis_size: its length.

    Returns:
        A tensor with one axis more, in front.

    >>> gather = td.ops.td.axis_gather
    >>> td.vmap(lambda x: gather(x, td.axis_index("i"), "i", 2), axis_name="i")(td.asarray([1.0, 2.0])).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """,
    reference=lambda a, number, axis_name, axis_size: np.broadcast_to(a, (axis_size, *a.shape)),
    dtypes=NUMERIC,
    derivative=Linear(
        {
            "self": lambda g, number, axis_name, axis_size: index(
                axis_sum(g, axis_name, axis_size), (number,), 0
            )
        }
    ),
    batching=_gather_batching_rule,
    samples=lambda dtype: [
        SampleInput((TensorSample(shape), TensorSample((), values=(0,), dtype=int64), "i", 3))
        for shape in ((3, 4), (), (0, 2))
    ],
    errors=lambda: [ErrorInput((None, 0, "i", 3), TypeError, "Tensor")],
    method=False,
)
