"""Sparse tensors on the device: places in the array library's arrays, and products by kernels of our own.

cuSPARSE, whose products take four dtypes and whose transposed products add up in any order, is not needed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.tensor import Tensor
from ...errors import DeviceError
from ...registry.dtypes import DType, float32, int64, is_half
from ...registry.keys import DispatchKey
from ...registry.operator import Operator
from . import faults, sparse_text
from .arrays import DeviceArray, contiguous_layout, empty
from .casting import contiguous
from .copies import to_device, to_host
from .devices import device_of
from .launching import launch
from .library import library
from .operands import placed
from .streams import stream_at
from .tensor import CudaTensor, cuda_tensor
from .texts import BLOCKS


class CudaPlaces:
    """The places of sparse tensors on a device; see :class:`tandem.eager.sparse_places.Places`."""

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
                f"{name} lie on {tensor.device}, and the values on cuda:{self._index}; move one of them with .to(...)"
            )
        return _viewed(tensor._data)

    def tensor(self, array: Any) -> Tensor:
        return cuda_tensor(library().adopt(array, self._index))

    def host(self, array: Any) -> Any:
        return to_host(library().adopt(array, self._index))

    def expand(self, counts: Any) -> Any:
        ends = self.xp.cumsum(counts)
        total = int(ends[-1]) if len(counts) else 0
        return self.xp.searchsorted(ends, self.xp.arange(total), side="right")


_places_on = functools.cache(CudaPlaces)


def places(device: str) -> CudaPlaces:
    """What :func:`tandem.eager.sparse_places.places_at` gives for a CUDA device; one object for each device."""
    return _places_on(device_of(device).index)


def _viewed(array: DeviceArray) -> Any:
    array.buffer.used_by(stream_at(array.layout.index))
    return library().view(array)


# -- products ----------------------------------------------------------------------------------------------------------
def _wide(dtype: DType) -> DType:
    return float32 if is_half(dtype.np) else dtype


def _run(
    body: str, op: str, out: DeviceArray, parts: tuple[DeviceArray, ...], sizes: tuple[int, int, int, int]
) -> None:
    """Put a kernel into the stream.

    Args:
        body: which of :mod:`.sparse_text`.
        op: the operator's name.
        out: what it writes.
        parts: row starts, places and the two arrays that are multiplied.
        sizes: rows, columns, the width of the dense operands, stored elements.
    """
    dtype, index = out.dtype, out.layout.index
    kernel = sparse_text.kernel(body, dtype.name if dtype.is_inexact else f"uint{dtype.bits}")
    threads = out.layout.size * (1 if body == "spmm" else sparse_text.WARP)
    call = faults.number(index, op, 1, sizes[1:2])
    values = [out, *parts, faults.place(index), call, *sizes]
    launch(kernel, index, (kernel.blocks(threads, BLOCKS), 1, 1), values, [out, *parts])


def _transposed(
    starts: DeviceArray, places: DeviceArray, values: DeviceArray, columns: int
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """The parts of the transposed matrix."""
    found, index = library(), starts.layout.index
    at = CudaPlaces(index)
    with found.on(index):
        crow, col = _viewed(starts), _viewed(places)
        order = found.xp.argsort(col, kind="stable")
        rows = found.xp.searchsorted(crow[1:], found.xp.arange(len(col)), side="right")[order]
        crow = found.xp.searchsorted(col[order], found.xp.arange(columns + 1))
        made = [at.own(one) for one in (crow, rows)]
        moved = found.adopt(_viewed(values)[order], index)
        return found.adopt(made[0], index), found.adopt(made[1], index), moved


def spmm_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``sparse::spmm``."""

    def kernel(
        crow_indices: Any, col_indices: Any, values: Any, other: Any, columns: int, *, transpose: bool
    ) -> CudaTensor:
        values, other = placed("spmm", (values, other), constants=False)
        _, crow, col = placed("spmm", (values, crow_indices, col_indices), constants=False, indices=True)
        spec = op.decl.meta(crow, col, values, other, columns, transpose=transpose)
        dtype, index = _wide(spec.dtype), values._data.layout.index
        starts, places = (contiguous(one._data, int64) for one in (crow, col))
        held, dense = (contiguous(one._data, dtype) for one in (values, other))
        rows, inner = starts.shape[0] - 1, columns
        if transpose:
            starts, places, held = _transposed(starts, places, held, columns)
            rows, inner = inner, rows
        out = empty(contiguous_layout(spec.shape, dtype, index))
        if out.layout.size:
            width = math.prod(spec.shape[1:])
            sizes = rows, inner, width, places.shape[0]
            _run("spmv" if width == 1 else "spmm", "spmm", out, (starts, places, held, dense), sizes)
        return cuda_tensor(contiguous(out, spec.dtype))

    return kernel


def sddmm_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``sparse::sddmm``."""

    def kernel(crow_indices: Any, col_indices: Any, one: Any, two: Any) -> CudaTensor:
        one, two = placed("sddmm", (one, two), constants=False)
        _, crow, col = placed("sddmm", (one, crow_indices, col_indices), constants=False, indices=True)
        spec = op.decl.meta(crow, col, one, two)
        dtype, index = _wide(spec.dtype), one._data.layout.index
        starts, places = (contiguous(x._data, int64) for x in (crow, col))
        first, second = (contiguous(x._data, dtype) for x in (one, two))
        out = empty(contiguous_layout(spec.shape, dtype, index))
        if out.layout.size:
            sizes = starts.shape[0] - 1, two.shape[0], math.prod(one.shape[1:]), places.shape[0]
            _run("sddmm", "sddmm", out, (starts, places, first, second), sizes)
        return cuda_tensor(contiguous(out, spec.dtype))

    return kernel
