"""Data that are part of a graph: what a rule written by hand makes from data inside the body of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..eager.tensor import wrap
from ..operators.declare import Declaration
from ..operators.derivatives import NotDifferentiable
from ..registry.dtypes import as_dtype
from ..registry.library import Library
from ..registry.operator import find
from ..registry.values import TensorSpec


class Data:
    """An array that is an argument of a node, and no input of its graph."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]):
        self.array = np.array(array)

    def __repr__(self) -> str:
        return f"<{self.array.dtype.name}[{','.join(map(str, self.array.shape))}]>"


def _spec(data: Data) -> TensorSpec:
    return TensorSpec(data.array.shape, as_dtype(data.array.dtype))


SCHEMA = "constant(Any data) -> Tensor"
LIBRARY = Library("control", "FRAGMENT")
LIBRARY.define(
    SCHEMA,
    Declaration(
        SCHEMA,
        "creation",
        "A copy of data that are part of the graph.",
        meta=_spec,
        derivative=NotDifferentiable("it depends on no argument"),
        method=False,
    ),
)
LIBRARY.impl("constant", lambda data: wrap(data.array.copy()), "CPU")
CONSTANT = find("control::constant")
