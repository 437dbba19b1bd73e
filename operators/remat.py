"""What marks values for ``checkpoint``: names for its policies, and a barrier that keeps a recomputation apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lazy
from ..registry.dtypes import ALL, COMPLEX, FLOATS
from ..registry.values import TensorSpec
from . import batching
from .declare import Bad, Draw, Sample
from .derivatives import Linear, Partials
from .kinds import LAYOUTS, binary, library
from .rules import spec_of

references = lazy.Functions("operators.references")


def _same_meta(self: Any, name: str) -> TensorSpec:
    return spec_of(self)


checkpoint_name = library(
    "view",
    "checkpoint_name(Tensor(a) self, str name) -> Tensor(a)",
    _same_meta,
    lambda xp, self, name: xp.asarray(self)[...],
    doc="""The tensor under a name that policies of `td.checkpoint` go by.

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
    reference=lambda a, name: references.identity(a),
    dtypes=ALL,
    derivative=Linear({"self": lambda g: g}),
    batching=batching.pointwise,
    samples=lambda dtype: [
        *(Sample((Draw((3, 4), layout=layout), "x")) for layout in LAYOUTS),
        Sample((Draw(()), "x")),
        Sample((Draw((2, 0)), "x")),
    ],
    errors=lambda: [Bad((None, "x"), TypeError, "Tensor"), Bad((Draw((2,)), 1), TypeError, "name")],
    method=False,
)

recompute_barrier = binary(
    "recompute_barrier",
    lambda a, b: a,
    doc="The first tensor. The second says what the result is for, so that equal calls for other ends stay apart.",
    example="td.ops.td.recompute_barrier(td.asarray([1.0, 2.0]), 7) -> [1.0, 2.0]",
    reference=lambda a, b: np.broadcast_arrays(a, b)[0],
    dtypes=(*FLOATS, *COMPLEX),
    derivative=Partials({"self": 1, "other": 0}),
    method=False,
)
