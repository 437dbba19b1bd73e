"""Kernels of creation operators: from numbers, from other arrays, from random keys."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ....eager.tensor.tensor import Tensor
from ....errors import DeviceError
from ....operators.random.philox import BITS, FOLD, SPLIT
from ....registry.dispatch.keys import CUDA_KEYS
from ....registry.dtypes import DType, float64, int64, uint32, uint64
from ....registry.operator import Operator, operators
from ..fastpath.call_cache import CallCache
from ..runtime.arrays import DeviceArray, Layout, contiguous_layout, empty
from ..runtime.devices import device_of
from ..runtime.launching import launch_source
from .casting import PARTS, contiguous, convert_into, copy_array, copy_tensor, part, zeros
from .operands import check_devices, device_mismatch_error
from .tensor import CudaTensor, cuda_tensor
from .views import broadcast

Ints = tuple[int, ...]


# -- from numbers ------------------------------------------------------------------------------------------------------
def fill_array(layout: Layout, value: Any) -> DeviceArray:
    """A new contiguous array of one number, or of the element of a constant."""
    native = layout.dtype.np
    with np.errstate(all="ignore"):
        element = np.asarray(value._array if isinstance(value, Tensor) else value).astype(native)
    raw = element.tobytes()
    if not any(raw):
        return zeros(layout)
    result = empty(layout)
    if layout.size:
        launch_source(f"fill_{native.itemsize}", result, layout.size, [result, layout.size, raw], [result])
    return result


def number(value: Any, dtype: DType, index: int) -> DeviceArray:
    """A 0-d array of a number."""
    return fill_array(contiguous_layout((), dtype, index), value)


def _layout_of_spec(spec: Any) -> Layout:
    return contiguous_layout(spec.shape, spec.dtype, device_of(spec.device).index)


def full_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``full``."""

    def kernel(shape: Any, fill_value: Any, *, dtype: DType | None, device: str | None) -> CudaTensor:
        where = device or getattr(fill_value, "device", None)
        spec = op.decl.shape_rule(shape, fill_value, dtype=dtype, device=where)
        if not spec.device.startswith("cuda"):
            raise DeviceError(
                f"full: the fill value is on {fill_value.device}, and the device of the result is {spec.device}; move "
                f"it with .to({spec.device!r})"
            )
        layout = _layout_of_spec(spec)
        if type(fill_value) is not CudaTensor:
            return cuda_tensor(fill_array(layout, fill_value))
        if fill_value.device != spec.device:
            raise DeviceError(
                f"full: the fill value is on {fill_value.device}, not on {spec.device}; move it there"
            )
        result = empty(layout)
        convert_into(result, fill_value._data)
        return cuda_tensor(result)

    return kernel


def _count_up(layout: Layout, start: Any, step: Any, wide: DType) -> DeviceArray:
    """``start + i * step`` in a wide dtype, rounded once to the layout's."""
    result = empty(contiguous_layout(layout.shape, wide, layout.index))
    if layout.size:
        if wide is float64:
            name, ends = "count_up_float64", [struct.pack("<d", start), struct.pack("<d", step)]
        else:
            name, ends = "count_up_uint64", [struct.pack("<Q", int(n) % 2**64) for n in (start, step)]
        launch_source(name, result, layout.size, [result, layout.size, *ends], [result])
    return result if layout.dtype is wide else copy_array(result, layout.dtype)


def arange_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``arange``: computed in int64 or float64, rounded once."""

    def kernel(start: Any, stop: Any, step: Any, *, dtype: DType | None, device: str | None) -> CudaTensor:
        spec = op.decl.shape_rule(start, stop, step, dtype=dtype, device=device)
        first = 0 if stop is None else start
        exact = all(isinstance(bound, int) for bound in (first, step))
        return cuda_tensor(_count_up(_layout_of_spec(spec), first, step, int64 if exact else float64))

    return kernel


def linspace_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``linspace``; the last value is the end itself."""

    def kernel(
        start: Any, stop: Any, num: int, *, dtype: DType | None, device: str | None, endpoint: bool
    ) -> CudaTensor:
        spec = op.decl.shape_rule(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)
        layout = _layout_of_spec(spec)
        if layout.dtype.kind == "c":
            real = contiguous_layout(layout.shape, PARTS[layout.dtype], layout.index)
            ends = complex(start), complex(stop)
            return compose(
                _space_evenly(real, ends[0].real, ends[1].real, endpoint),
                _space_evenly(real, ends[0].imag, ends[1].imag, endpoint),
                layout.dtype,
            )
        return cuda_tensor(_space_evenly(layout, start, stop, endpoint))

    return kernel


def _space_evenly(layout: Layout, start: Any, stop: Any, endpoint: bool) -> DeviceArray:
    """Evenly spaced values, computed in float64 and rounded once."""
    count = layout.size
    steps = count - 1 if endpoint else count
    wide = contiguous_layout(layout.shape, float64, layout.index)
    result = _count_up(
        wide, float(start), (float(stop) - float(start)) / steps if steps > 0 else 0.0, float64
    )
    if endpoint and count > 1:
        convert_into(result.view((), (), count - 1), number(float(stop), float64, layout.index))
    dtype = layout.dtype
    return result if dtype is float64 else copy_array(result, dtype)


def eye_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``eye``: zeros, and ones along a diagonal."""

    def kernel(n_rows: int, n_cols: Any, *, k: int, dtype: DType | None, device: str | None) -> CudaTensor:
        spec = op.decl.shape_rule(n_rows, n_cols, k=k, dtype=dtype, device=device)
        layout = _layout_of_spec(spec)
        result = zeros(layout)
        rows, columns = spec.shape
        down, across = max(-k, 0), max(k, 0)
        length = min(rows - down, columns - across)
        if length > 0:
            diagonal = result.view((length,), (columns + 1,), down * columns + across)
            convert_into(diagonal, number(1, spec.dtype, layout.index))
        return cuda_tensor(result)

    return kernel


# -- from arrays -------------------------------------------------------------------------------------------------------
def _make_copy_kernel(op: Operator, copy: Callable[..., CudaTensor]) -> Callable[..., CudaTensor]:
    """The kernel of an operator that copies one tensor; native code answers repeated calls."""
    entries = CallCache(op)

    def kernel(self: CudaTensor, *args: Any) -> CudaTensor:
        entries.install_if_free()
        return copy(self, *args)

    entries.kernel = kernel
    return kernel


def cast_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``cast``."""

    def cast(self: CudaTensor, dtype: DType) -> CudaTensor:
        op.decl.shape_rule(self, dtype)
        return copy_tensor(self, dtype)

    return _make_copy_kernel(op, cast)


def clone_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``clone``, which a reshape that needs a copy calls too."""
    return _make_copy_kernel(op, copy_tensor)


def contiguous_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``contiguous``: an alias of a contiguous tensor, else a copy."""
    return _make_copy_kernel(
        op, lambda self: self._alias() if self._data.layout.contiguous else copy_tensor(self)
    )


def concat_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``concat``, which copies each tensor into a view of the result."""

    def kernel(tensors: Any, axis: int | None) -> CudaTensor:
        (tensors,) = check_devices("concat", (tensors,), constants=True)
        first = next(one for one in tensors if type(one) is CudaTensor)
        known = tuple(
            one
            if type(one) is CudaTensor or not isinstance(one, Tensor)
            else one.spec._replace(device=first.device)
            for one in tensors
        )
        spec = op.decl.shape_rule(known, axis)
        result = empty(_layout_of_spec(spec))
        along = 0 if axis is None else axis % len(spec.shape)
        start = 0
        for one in tensors:
            data = one._data if type(one) is CudaTensor else number(one, spec.dtype, result.layout.index)
            shape = (data.layout.size,) if axis is None else data.shape
            sizes = (*spec.shape[:along], shape[along], *spec.shape[along + 1 :])
            target = result.view(sizes, result.strides, start * result.strides[along])
            source = data if axis is not None or len(data.shape) == 1 else contiguous(data).view(shape, (1,))
            convert_into(target, source)
            start += shape[along]
        return cuda_tensor(result)

    return kernel


def compose(real: DeviceArray, imaginary: DeviceArray, dtype: DType) -> CudaTensor:
    """Complex numbers from their parts."""
    result = empty(contiguous_layout(real.shape, dtype, real.layout.index))
    for which, given in enumerate((real, imaginary)):
        convert_into(part(result, which), given)
    return cuda_tensor(result)


# -- from random keys --------------------------------------------------------------------------------------------------
def draw_words(keys: DeviceArray, count: int, use: int) -> DeviceArray:
    """The first ``count`` words of each key's stream: uint32 of shape ``(*keys.shape[:-1], count)``."""
    given = contiguous(keys)
    result = empty(contiguous_layout((*keys.shape[:-1], count), uint32, keys.layout.index))
    if result.layout.size:
        per_key = -(-count // 4)
        blocks = per_key * math.prod(keys.shape[:-1])
        values = [result, given, blocks, per_key, count, struct.pack("<I", use)]
        launch_source("philox_words", result, blocks, values, [result, given])
    return result


def reinterpret(array: DeviceArray, shape: Ints, dtype: DType) -> DeviceArray:
    """View the memory of a contiguous array as another dtype and shape."""
    return DeviceArray(array.ptr, contiguous_layout(shape, dtype, array.layout.index), array.buffer)


def bits_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``random_bits``."""

    def kernel(key: CudaTensor, shape: Ints, *, bits: int) -> CudaTensor:
        spec = op.decl.shape_rule(key, shape, bits=bits)
        words = draw_words(key._data, math.prod(shape) * (bits // 32), BITS)
        return cuda_tensor(reinterpret(words, spec.shape, spec.dtype))

    return kernel


def split_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``random_split``."""

    def kernel(key: CudaTensor, n: int) -> CudaTensor:
        spec = op.decl.shape_rule(key, n)
        return cuda_tensor(reinterpret(draw_words(key._data, 4 * n, SPLIT), spec.shape, uint32))

    return kernel


def fold_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``random_fold_in``."""

    def kernel(key: Any, data: Any) -> CudaTensor:
        key, data = check_devices("random_fold_in", (key, data), constants=True)
        if type(key) is not CudaTensor:
            raise device_mismatch_error("random_fold_in", key, data)
        index = key._data.layout.index
        spec = op.decl.shape_rule(key, data)
        if type(data) is CudaTensor:
            numbers = contiguous(broadcast(contiguous(data._data, uint64), spec.shape[:-1]))
        else:
            given = data % 2**64 if isinstance(data, int) else int(data.item()) % 2**64
            numbers = fill_array(contiguous_layout(spec.shape[:-1], uint64, index), np.uint64(given))
        keys = contiguous(broadcast(key._data, spec.shape))
        result = empty(contiguous_layout(spec.shape, uint32, index))
        count = numbers.layout.size
        if count:
            values = [result, keys, numbers, count, struct.pack("<I", FOLD)]
            launch_source("philox_fold", result, count, values, [result, keys, numbers])
        return cuda_tensor(result)

    return kernel


def key_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``random_key``."""

    def kernel(seed: CudaTensor) -> CudaTensor:
        spec = op.decl.shape_rule(seed)
        seeds = contiguous(seed._data, uint64)
        result = empty(contiguous_layout(spec.shape, uint32, seed._data.layout.index))
        count = seeds.layout.size
        if count:
            launch_source("philox_key", result, count, [result, seeds, count], [result, seeds])
        return cuda_tensor(result)

    return kernel


def order_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``random_order``, the argsort of random 64-bit words."""

    def kernel(key: CudaTensor, n: int) -> CudaTensor:
        spec = op.decl.shape_rule(key, n)
        words = reinterpret(draw_words(key._data, 2 * n, BITS), spec.shape, uint64)
        options = {"axis": -1, "descending": False, "stable": True}
        sort = operators["td::argsort"]
        return sort.dispatch(CUDA_KEYS, (cuda_tensor(words),), options)  # type: ignore[no-any-return]

    return kernel


def pick_kernel(op: Operator) -> Callable[..., CudaTensor]:
    """The kernel of ``random_pick``, a binary search in each row."""

    def kernel(bounds: Any, x: Any) -> CudaTensor:
        bounds, x = check_devices("random_pick", (bounds, x), constants=False)
        spec = op.decl.shape_rule(bounds, x)
        dtype = x.dtype
        rows, given = contiguous(bounds._data, dtype), contiguous(x._data)
        result = empty(contiguous_layout(spec.shape, int64, given.layout.index))
        count, size = given.layout.size, rows.shape[-1]
        if count:
            per_row = count // max(math.prod(rows.shape[:-1]), 1)
            used = [result, rows, given]
            launch_source(f"pick_{dtype.name}", result, count, [*used, count, size, per_row], used)
        return cuda_tensor(result)

    return kernel
