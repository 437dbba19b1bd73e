"""Markers for ``checkpoint``: names that its policies select, and a barrier against merging a recomputation."""

from __future__ import annotations

import numpy as np

from ..registry.dtypes import ALL, COMPLEX, FLOATS
from ..registry.values import TensorSpec
from .declare import batching
from .declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from .declare.derivatives import Linear, Partials
from .declare.kinds import binary, view
from .declare.shape_rules import spec_of


def _same_shape_rule(self: TensorSpec, name: str) -> TensorSpec:
    return spec_of(self)


checkpoint_name = view(
    "checkpoint_name(Tensor(a) self, str name) -> Tensor(a)",
    lambda x, name: x,
    shape_rule=_same_shape_rule,
    kernel=lambda xp, self, name: xp.asarray(self)[...],
    doc="""Name a tensor for the policies of `td.checkpoint`.

    Args:
        self: any tensor.
        name: the name.

    Returns:
        A view of the tensor.

    >>> def layer(x):
    ...     return td.checkpoint_name(td.sin(x), "angles") * x
    >>> policy = td.checkpoint_policies.save_only_these_names("angles")
    >>> td.grad(td.checkpoint(layer, policy=policy))(0.0)
    tensor(0.)
    """,
    reference=lambda a, name: a,
    dtypes=ALL,
    derivative=Linear({"self": lambda g: g}),
    batching=batching.pointwise,
    samples=lambda dtype: [
        *(SampleInput((TensorSample((3, 4), layout=layout), "x")) for layout in LAYOUTS),
        SampleInput((TensorSample(()), "x")),
        SampleInput((TensorSample((2, 0)), "x")),
    ],
    errors=lambda: [
        ErrorInput((None, "x"), TypeError, "Tensor"),
        ErrorInput((TensorSample((2,)), 1), TypeError, "name"),
    ],
    method=False,
)

recompute_barrier = binary(
    "recompute_barrier",
    lambda a, b: a,
    doc="The first tensor; equal calls with different second tensors are not merged.",
    example="td.ops.td.recompute_barrier(td.asarray([1.0, 2.0]), 7) -> [1.0, 2.0]",
    reference=lambda a, b: np.broadcast_arrays(a, b)[0],
    dtypes=(*FLOATS, *COMPLEX),
    derivative=Partials({"self": 1, "other": 0}),
    method=False,
)
