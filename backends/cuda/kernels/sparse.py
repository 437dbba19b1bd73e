"""Sparse tensors on the device: index arrays of the array library, and products by tandem's own kernels.

cuSPARSE is not used: its products support four dtypes only, and its transposed products are not deterministic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....eager.tensor.tensor import Tensor
from ....errors import DeviceError
from ....registry.dispatch.keys import DispatchKey
from ....registry.dtypes import DType, float32, int64, is_half
from ....registry.operator import Operator
from ..runtime import faults
from ..runtime.arrays import DeviceArray, contiguous_layout, empty
from ..runtime.copies import to_device, to_host
from ..runtime.devices import device_of
from ..runtime.launching import launch
from ..runtime.streams import stream_at
from . import sparse_sources
from .casting import contiguous
from .library import library
from .operands import check_devices
from .sources import BLOCKS
from .tensor import CudaTensor, cuda_tensor


class CudaIndexSpace:
    """The positions of sparse tensors on a device; see :class:`tandem.eager.sparse.indices.IndexSpace`."""

    keys = 1 << DispatchKey.SparseCUDA

    def __init__(self, index: int):
        self._index = index

    @property
    def xp(self) -> Any:
        return library().xp

    def on(self) -> Any:
        return library().on(self._index)

    def own(self, array: Any) -> Any:
        return self.xp.array(array, np.int64)

    def array(self, name: str, tensor: Any) -> Any:
        if type(tensor) is Tensor:
            tensor = cuda_tensor(to_device(tensor._array, self._index))
        if type(tensor) is not CudaTensor or tensor._data.layout.index != self._index:
            raise DeviceError(
                f"{name} are on {tensor.device}, and the values on cuda:{self._index}; move one of them with .to(...)"
            )
        return _library_view(tensor._data)

    def tensor(self, array: Any) -> Tensor:
        return cuda_tensor(library().adopt(array, self._index))

    def host(self, array: Any) -> Any:
        return to_host(library().adopt(array, self._index))

    def expand(self, counts: Any) -> Any:
        ends = self.xp.cumsum(counts)
        total = int(ends[-1]) if len(counts) else 0
        return self.xp.searchsorted(ends, self.xp.arange(total), side="right")


_index_space_on = functools.cache(CudaIndexSpace)


def indices_on(device: str) -> CudaIndexSpace:
    """The index arrays of a CUDA device, for :mod:`tandem.eager.sparse.indices`; one object for each device."""
    return _index_space_on(device_of(device).index)


def _library_view(array: DeviceArray) -> Any:
    array.buffer.used_by(stream_at(array.layout.index))
    return library().view(array)


# -- products ----------------------------------------------------------------------------------------------------------
def _accumulator(dtype: DType) -> DType:
    return float32 if is_half(dtype.np) else dtype


def _launch_product(
    body: str, op: str, out: DeviceArray, parts: tuple[DeviceArray, ...], sizes: tuple[int, int, int, int]
) -> None:
    """Launch a kernel of :mod:`.sparse_sources`.

    Args:
        body: the kernel's name there.
        op: the operator's name.
        out: the result.
        parts: row starts, column indices and the two arrays that are multiplied.
        sizes: rows, columns, the width of the dense operands, stored elements.
    """
    dtype, index = out.dtype, out.layout.index
    kernel = sparse_sources.kernel(body, dtype.name if dtype.is_inexact else f"uint{dtype.bits}")
    threads = out.layout.size * (1 if body == "spmm" else sparse_sources.WARP)
    call = faults.register_call(index, op, 1, sizes[1:2])
    values = [out, *parts, faults.fault_words(index), call, *sizes]
    launch(kernel, index, (kernel.blocks(threads, BLOCKS), 1, 1), values, [out, *parts])


def _transpose(
    starts: DeviceArray, indices: DeviceArray, values: DeviceArray, columns: int
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Row starts, column indices and values of the transposed matrix."""
    value, index = library(), starts.layout.index
    at = CudaIndexSpace(index)
    with value.on(index):
        crow, col = _library_view(starts), _library_view(indices)
        order = value.xp.argsort(col, kind="stable")
        rows = value.xp.searchsorted(crow[1:], value.xp.arange(len(col)), side="right")[order]
        crow = value.xp.searchsorted(col[order], value.xp.arange(columns + 1))
        result = [at.own(one) for one in (crow, rows)]
        moved = value.adopt(_library_view(values)[order], index)
        return value.adopt(result[0], index), value.adopt(result[1], index), moved


def spmm_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``sparse::spmm``."""

    def kernel(
        crow_indices: Any, col_indices: Any, values: Any, other: Any, columns: int, *, transpose: bool
    ) -> CudaTensor:
        values, other = check_devices("spmm", (values, other), constants=False)
        _, crow, col = check_devices(
            "spmm", (values, crow_indices, col_indices), constants=False, indices=True
        )
        spec = op.decl.shape_rule(crow, col, values, other, columns, transpose=transpose)
        dtype, index = _accumulator(spec.dtype), values._data.layout.index
        starts, indices = (contiguous(one._data, int64) for one in (crow, col))
        elements, dense = (contiguous(one._data, dtype) for one in (values, other))
        rows, inner = starts.shape[0] - 1, columns
        if transpose:
            starts, indices, elements = _transpose(starts, indices, elements, columns)
            rows, inner = inner, rows
        out = empty(contiguous_layout(spec.shape, dtype, index))
        if out.layout.size:
            width = math.prod(spec.shape[1:])
            sizes = rows, inner, width, indices.shape[0]
            _launch_product(
                "spmv" if width == 1 else "spmm", "spmm", out, (starts, indices, elements, dense), sizes
            )
        return cuda_tensor(contiguous(out, spec.dtype))

    return kernel


def sddmm_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``sparse::sddmm``."""

    def kernel(crow_indices: Any, col_indices: Any, one: Any, two: Any) -> CudaTensor:
        one, two = check_devices("sddmm", (one, two), constants=False)
        _, crow, col = check_devices("sddmm", (one, crow_indices, col_indices), constants=False, indices=True)
        spec = op.decl.shape_rule(crow, col, one, two)
        dtype, index = _accumulator(spec.dtype), one._data.layout.index
        starts, indices = (contiguous(x._data, int64) for x in (crow, col))
        first, second = (contiguous(x._data, dtype) for x in (one, two))
        out = empty(contiguous_layout(spec.shape, dtype, index))
        if out.layout.size:
            sizes = starts.shape[0] - 1, two.shape[0], math.prod(one.shape[1:]), indices.shape[0]
            _launch_product("sddmm", "sddmm", out, (starts, indices, first, second), sizes)
        return cuda_tensor(contiguous(out, spec.dtype))

    return kernel
