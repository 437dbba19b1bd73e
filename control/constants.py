"""Array constants in graphs, for derivative rules that create tensors from data inside a loop's body."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..eager.tensor.tensor import wrap
from ..operators.declare.declaration import Declaration
from ..operators.declare.derivatives import NotDifferentiable
from ..registry.dtypes import as_dtype
from ..registry.library import Library
from ..registry.operator import find_operator
from ..registry.values import TensorSpec

if TYPE_CHECKING:
    from ..registry.types import Array


class ArrayConstant:
    """An array that is an argument of a node, not an input of its graph."""

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = np.array(array)

    def __repr__(self) -> str:
        return f"<{self.array.dtype.name}[{','.join(map(str, self.array.shape))}]>"


def _spec(data: ArrayConstant) -> TensorSpec:
    return TensorSpec(data.array.shape, as_dtype(data.array.dtype))


SCHEMA = "constant(Any data) -> Tensor"
LIBRARY = Library("control", "FRAGMENT")
LIBRARY.define(
    SCHEMA,
    Declaration(
        SCHEMA,
        "creation",
        "A copy of an array that is part of the graph.",
        shape_rule=_spec,
        derivative=NotDifferentiable("it depends on no argument"),
        method=False,
    ),
)
LIBRARY.impl("constant", lambda data: wrap(data.array.copy()), "CPU")
CONSTANT = find_operator("control::constant")
