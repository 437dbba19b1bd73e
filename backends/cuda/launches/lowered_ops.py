"""Operators that only CUDA's passes insert into graphs: parts of indexing, with their own kernels."""

from __future__ import annotations

from typing import Any

from ....operators.declare.declaration import Declaration
from ....operators.declare.derivatives import NotDifferentiable
from ....registry.dispatch.keys import DispatchKey
from ....registry.dtypes import int64
from ....registry.library import Library
from ....registry.values import TensorSpec
from ..kernels.casting import contiguous
from ..kernels.tensor import CudaTensor, cuda_tensor
from ..runtime import faults
from ..runtime.arrays import contiguous_layout, empty
from ..runtime.launching import launch_source

CHECKED = "cuda::checked_index"
LIBRARY = Library("cuda", "DEF")
_NO_DERIVATIVE = NotDifferentiable("derivatives have been taken when it comes in")


def _define(schema: str, meaning: str, meta: Any, kernel: Any) -> None:
    decl = Declaration(schema, "gather", meaning, shape_rule=meta, derivative=_NO_DERIVATIVE, method=False)
    LIBRARY.define(schema, decl)
    LIBRARY.impl(schema.partition("(")[0], kernel, DispatchKey.CUDA)


def _checked_spec(self: Any, size: int, axis: int) -> TensorSpec:
    return TensorSpec(tuple(self.shape), int64, self.spec.device)


def _checked_index(self: CudaTensor, size: int, axis: int) -> CudaTensor:
    result = contiguous(self._data, int64)
    at = result.layout.index
    out = empty(contiguous_layout(result.shape, int64, at))
    if out.layout.size:
        call = faults.register_call(at, "index", axis, (size,))
        values = [out, result, faults.fault_words(at), out.layout.size, size, call]
        launch_source("checked_index", out, out.layout.size, values, [result])
    return cuda_tensor(out)


_define(
    "checked_index(Tensor self, int size, int axis) -> Tensor",
    "Nonnegative positions; -1 for a position that is out of bounds, which is reported to the host.",
    _checked_spec,
    _checked_index,
)
