"""Operators that only passes put into graphs for CUDA: parts of indexing with kernels of their own."""

from __future__ import annotations

from typing import Any

from ...operators.declare import Declaration
from ...operators.derivatives import NotDifferentiable
from ...registry.dtypes import int64
from ...registry.keys import DispatchKey
from ...registry.library import Library
from ...registry.values import TensorSpec
from . import faults
from .arrays import contiguous_layout, empty
from .casting import contiguous, zeros
from .indexing import store
from .launching import launch_text
from .tensor import CudaTensor, cuda_tensor

CHECKED, ADD_ROWS = "cuda::checked_index", "cuda::add_rows"
LIBRARY = Library("cuda", "DEF")
_AFTER = NotDifferentiable("derivatives have been taken when it comes in")


def _define(schema: str, meaning: str, meta: Any, kernel: Any) -> None:
    decl = Declaration(schema, "gather", meaning, meta=meta, derivative=_AFTER, method=False)
    LIBRARY.define(schema, decl)
    LIBRARY.impl(schema.partition("(")[0], kernel, DispatchKey.CUDA)


def _checked_spec(self: Any, size: int, axis: int) -> TensorSpec:
    return TensorSpec(tuple(self.shape), int64, self.spec.device)


def _checked(self: CudaTensor, size: int, axis: int) -> CudaTensor:
    found = contiguous(self._data, int64)
    at = found.layout.index
    out = empty(contiguous_layout(found.shape, int64, at))
    if out.layout.size:
        call = faults.number(at, "index", axis, (size,))
        values = [out, found, faults.place(at), out.layout.size, size, call]
        launch_text("checked_index", out, out.layout.size, values, [found])
    return cuda_tensor(out)


def _rows_spec(indices: Any, value: Any, shape: Any, axis: int) -> TensorSpec:
    return TensorSpec(tuple(shape), value.spec.dtype, value.spec.device)


def _add_rows(indices: Any, value: CudaTensor, shape: Any, axis: int) -> CudaTensor:
    made = zeros(contiguous_layout(tuple(shape), value.dtype, value._data.layout.index))
    return cuda_tensor(contiguous(store("index_put", made, indices, value, axis, True), value.dtype))


_define(
    "checked_index(Tensor self, int size, int axis) -> Tensor",
    "Positions counted from the start, -1 for one that is out of bounds, which is noted.",
    _checked_spec,
    _checked,
)
_define(
    "add_rows(Tensor[] indices, Tensor value, int[] shape, int axis) -> Tensor",
    "Zeros, to which values are added at integer positions.",
    _rows_spec,
    _add_rows,
)
