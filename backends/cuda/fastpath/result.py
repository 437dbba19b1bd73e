"""Allocation of results in native code: the structs that :mod:`.result_entries` reads, and its compiled functions."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from typing import Any

from .... import lazy
from ....eager.tensor.storage import Number, Storage
from ....eager.tensor.tensor import Tensor
from ....errors import OutOfMemoryError
from ....registry.dispatch.keys import CUDA_KEYS, GRAD_CUDA_KEYS
from ....registry.dtypes import DType
from ...cpu.fastpath.compiler import engine
from ...cpu.fastpath.compiler.structs import sizeof
from ...cpu.fastpath.glue import layout
from ...cpu.fastpath.glue.structs import StructMemory
from ..kernels.tensor import CudaTensor, DeviceStorage
from ..runtime import stream_keys
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray, Layout
from ..runtime.devices import device_at, device_count
from ..runtime.launcher import native_code
from ..runtime.memory import Buffer, Pool, Stats, pool_of, size_class
from ..runtime.streams import default_stream
from . import result_entries as rt

_FINALIZE = 392  # offset of tp_finalize in a type object
# callees come before their callers
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ready": rt.current_stream,
    "block": rt.allocate,
    "result": rt.make_result,
    "finalize": rt.finalize,
}


@functools.cache
def constants() -> dict[str, int]:
    """Compile-time constants: the slot offsets of the classes that native functions of this backend access.

    Raises:
        RuntimeError: a slot is not where its descriptor says.
    """
    probe: Any = [object(), object(), object(), None, object(), []]
    buffer = Buffer(*probe)
    return {
        **layout.class_constants(Tensor, Storage, Number),
        **layout.slot_constants(DeviceArray, "A_", ("ptr", "layout", "buffer")),
        **layout.slot_constants(
            Buffer, "B_", ("ptr", "nbytes", "size", "pool", "block", "free_list", "users"), buffer
        ),
        **layout.slot_constants(Pool, "P_", ("counts",)),
    }


def build_code(
    name: str,
    functions: Mapping[str, Callable[..., Any]],
    own: Mapping[str, Any] | None = None,
) -> engine.Code:
    """Compile native functions of this backend, or load them from the disk cache.

    Args:
        name: of the module.
        functions: the entry points, by name.
        own: further compile-time constants.
    """
    return native_code(name, functions, {**constants(), **(own or {})})


@functools.cache
def result_code() -> engine.Code:
    """Compile :mod:`.result_entries`, and install its ``finalize`` as the finalizer of buffers."""
    result = build_code("results", FUNCTIONS)
    slot = _finalizer(Buffer)
    if _finalizer_fault():
        return result
    Stats.finalize = slot.value or 0
    for stats in Stats.instances:
        stats.counts[rt.Counters.finalize // 8] = Stats.finalize
    slot.value = result["finalize"]
    return result


def _finalizer(cls: type) -> ctypes.c_void_p:
    """The slot ``tp_finalize`` of a class, the function that CPython calls for ``__del__``."""
    return ctypes.c_void_p.from_address(id(cls) + _FINALIZE)


def _finalizer_fault() -> bool:
    """Whether ``tp_finalize`` is at another offset in this interpreter; then Python finalizes buffers."""

    class Finalized:
        def __del__(self) -> None: ...

    class Plain:
        pass

    value = _finalizer(Finalized).value
    return not value or _finalizer(Buffer).value != value or _finalizer(Plain).value is not None


def is_on() -> bool:
    """Whether native code answers calls in this process."""
    return not lazy.native_layer().why_off() and lazy.native_layer().runtime() is not None


@functools.cache
def backend_record() -> StructMemory:
    """The backend's struct (:class:`.result_entries.Backend`)."""
    result = StructMemory(sizeof(rt.Backend))
    result.point(rt.Backend.globals_, lazy.native_layer().runtime().process)
    objects = {
        rt.Backend.tensor: CudaTensor,
        rt.Backend.array: DeviceArray,
        rt.Backend.buffer: Buffer,
        rt.Backend.keys: CUDA_KEYS,
        rt.Backend.grad_keys: GRAD_CUDA_KEYS,
        rt.Backend.get: "get",
        rt.Backend.out_of_memory: OutOfMemoryError,
        rt.Backend.dtype: DType,
        rt.Backend.storage: DeviceStorage,
    }
    for offset, value in objects.items():
        result.refer(offset, value)
    return result


@functools.cache
def _context_key() -> int:
    return stream_keys.new_key()


_devices: dict[int, StructMemory] = {}


def device_record(index: int) -> StructMemory:
    """The struct of a device (:class:`.result_entries.Device`), valid for the current toolkit."""
    result = _devices.get(index)
    if result is None:
        at, default = device_at(index), default_stream(f"cuda:{index}")
        pool_of(default)
        result = StructMemory(sizeof(rt.Device))
        result.point(rt.Device.backend, backend_record())
        result.set(rt.Device.context, at.context)
        result.set(rt.Device.set_context, at.driver.address("cuCtxSetCurrent"))
        result.set(rt.Device.context_key, _context_key() if device_count() == 1 else -1)
        result.set(rt.Device.stream_key, stream_keys.key_of(index))
        result.point(rt.Device.default_stream, default.record)
        result.kept.append(default)
        result = _devices.setdefault(index, result)
    return result


def result_record(of: Layout) -> StructMemory:
    """The struct of results of a layout (:class:`.result_entries.ResultSpec`); the caller keeps the layout alive."""
    result: StructMemory | None = of.record
    if result is None:
        result = block_record(of.nbytes)
        result.set(rt.ResultSpec.layout, id(of))
        of.record = result
    return result


def block_record(nbytes: int) -> StructMemory:
    """The struct of a block of ``nbytes`` bytes without a layout, for scratch memory."""
    result, size = StructMemory(sizeof(rt.ResultSpec)), size_class(nbytes)
    result.refer(rt.ResultSpec.nbytes, nbytes)
    result.refer(rt.ResultSpec.key, size)
    result.set(rt.ResultSpec.size, size)
    return result


tools.change_listeners.append(_devices.clear)
