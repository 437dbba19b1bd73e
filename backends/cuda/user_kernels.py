"""Kernels that users write in CUDA C, called eagerly: results as the fake says, one thread for each element."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ...eager.tensor import Tensor
from ...errors import DTypeError
from ...operators.user_functions import Passed
from ...registry.operator import Operator
from ...registry.values import TensorSpec, describe
from ...tracer.infer import infer, specs_of
from ..cpu.user_kernels import C_TYPES, measure, number_for
from .arrays import DeviceArray, contiguous_layout, empty
from .casting import contiguous, convert_into
from .compiler import USER_OPTIONS
from .devices import device_at
from .modules import Parameters, module_of
from .operands import device_index, flattened
from .streams import stream_at
from .tensor import cuda_tensor

THREADS = 256


def user_kernel(op: Operator, source: str, name: str, passed: Sequence[Passed]) -> Callable[..., Any]:
    """The kernel of an operator.

    Args:
        op: the operator.
        source: CUDA C.
        name: of the ``__global__`` function in it.
        passed: what each of its parameters gets.
    """

    def kernel(*args: Any, **kwargs: Any) -> Any:
        index = device_index(op.schema.name, flattened((*args, *kwargs.values())))
        promised = infer(op, _specs(args), {key: _specs(value) for key, value in kwargs.items()})
        results = [empty(contiguous_layout(s.shape, s.dtype, index)) for s in specs_of(promised)]
        kept: list[DeviceArray] = []
        changed: list[tuple[DeviceArray, DeviceArray]] = []
        cells = [_cell(op, one, one.of(args, kwargs, results), kept, changed) for one in passed]
        written = [*results, *(copy for _, copy in changed)] or kept
        _launch(source, name, index, max((a.layout.size for a in written), default=0), cells, kept)
        for target, copy in changed:
            if target is not copy:
                convert_into(target, copy)
        tensors = tuple(map(cuda_tensor, results))
        return None if promised is None else tensors[0] if isinstance(promised, TensorSpec) else tensors

    return kernel


def _cell(
    op: Operator,
    one: Passed,
    value: Any,
    kept: list[DeviceArray],
    changed: list[tuple[DeviceArray, DeviceArray]],
) -> Any:
    """What one parameter gets. ``kept``: the arrays of the call; ``changed``: those written, and what is written."""
    if not one.param.is_pointer:
        found = value
        if one.param.what:
            found = 0 if value is None else measure(one, tuple(getattr(value, "shape", ())))
        return C_TYPES[one.param.dtype.name](number_for(op, one.param.dtype, found))
    if value is None:
        return ctypes.c_uint64(0)
    array = value if isinstance(value, DeviceArray) else getattr(value, "_data", None)
    if not isinstance(array, DeviceArray) or array.dtype is not one.param.dtype:
        raise DTypeError(
            f"{op.name}: its kernel takes {one.param.dtype.name} on a CUDA device for {one.param}, not "
            f"{describe(value)}"
        )
    whole = contiguous(array)
    kept.append(whole)
    if not one.param.is_const and one.result < 0:
        changed.append((array, whole))
    return ctypes.c_uint64(whole.ptr)


def _launch(
    source: str, name: str, index: int, count: int, cells: Sequence[Any], used: Sequence[DeviceArray]
) -> None:
    if not count:
        return
    function = module_of(source, index, USER_OPTIONS).function(name)
    at, stream, packed = device_at(index), stream_at(index), Parameters(cells)
    at.make_current()
    blocks = -(-count // THREADS)
    at.driver.cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, stream.handle, packed.address, None)
    for array in used:
        array.buffer.used_by(stream)


def _specs(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.spec
    return tuple(map(_specs, value)) if type(value) is tuple else value
