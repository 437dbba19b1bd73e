"""Native allocation of results: the structs that :mod:`.result_entries` reads, and its compiled functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .... import lazy
from ....errors import OutOfMemoryError
from ....registry import native_type
from ....registry.dispatch.keys import CUDA_KEYS, GRAD_CUDA_KEYS
from ....registry.dtypes import DType
from ....registry.function import initialize
from ...cpu.fastpath.compiler import engine
from ...cpu.fastpath.glue import class_slots
from ...cpu.fastpath.glue.structs import StructMemory
from ..kernels.tensor import CudaTensor, DeviceStorage
from ..runtime import toolkit as tools
from ..runtime.arrays import DeviceArray, Layout
from ..runtime.devices import device_at, device_count
from ..runtime.launching import native_code
from ..runtime.memory import Buffer, Pool, finalizer_of, pool_of, size_class
from ..runtime.streams import default_stream, key_of, new_key
from . import result_entries as rt

native_layer = lazy.Module(".backends.cpu.fastpath")

# callees come before their callers
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "current_stream": rt.current_stream,
    "allocate": rt.allocate,
    "make_result": rt.make_result,
    "finalize": rt.finalize,
}


@functools.cache
def constants() -> dict[str, int]:
    """Return compile-time constants: the slot offsets of the classes that native functions of this backend access.

    Raises:
        RuntimeError: a slot is not at the offset that its descriptor has.
    """
    probe: Any = [object(), object(), object(), None, object(), []]
    return {
        **class_slots.class_constants(),
        **class_slots.slot_constants(DeviceArray, rt.ArrayObject),
        **class_slots.slot_constants(Buffer, rt.BufferObject, Buffer(*probe)),
        **class_slots.slot_constants(Pool, rt.PoolObject),
    }


@engine.KeepFirst
def result_code() -> engine.Code:
    """Compile :mod:`.result_entries`, and install its ``finalize`` as the finalizer of buffers."""
    result = native_code("results", FUNCTIONS, constants())
    if not _is_finalizer_slot_unknown():
        finalizer_of(Buffer).value = result["finalize"]
    return result


def _is_finalizer_slot_unknown() -> bool:
    """Whether ``tp_finalize`` has another offset in this interpreter; Python then finalizes buffers."""

    class Finalized:
        def __del__(self) -> None: ...

    class Plain:
        pass

    value = finalizer_of(Finalized).value
    return not value or finalizer_of(Buffer).value != value or finalizer_of(Plain).value is not None


def is_native_enabled() -> bool:
    """Whether native code answers calls in this process."""
    return not native_layer.why_off() and native_type.runtime is not None


@functools.cache
def backend_struct() -> StructMemory:
    """Return the struct of the backend (:class:`.result_entries.Backend`)."""
    initialize()  # a jitted call may be the first of the process
    result = StructMemory(
        rt.Backend,
        globals_=native_type.runtime.process,
        tensor=CudaTensor,
        array=DeviceArray,
        buffer=Buffer,
        get="get",
        out_of_memory=OutOfMemoryError,
        dtype=DType,
        storage=DeviceStorage,
    )
    for name, value in {
        "keys": CUDA_KEYS,
        "grad_keys": GRAD_CUDA_KEYS,
        "zero": 0,
    }.items():  # by their addresses
        result.refer(getattr(rt.Backend, name), value)
    return result


_context_key = functools.cache(new_key)


@engine.KeepFirst
def device_struct(index: int) -> StructMemory:
    """Return the struct of a device (:class:`.result_entries.Device`), valid for the current toolkit."""
    device, default = device_at(index), default_stream(f"cuda:{index}")
    pool_of(default)
    result = StructMemory(
        rt.Device,
        backend=backend_struct(),
        context=device.context or 0,
        set_context=device.driver.address("cuCtxSetCurrent"),
        context_key=_context_key() if device_count() == 1 else -1,
        stream_key=key_of(index),
        default_stream=default.record,
    )
    result.kept.append(default)
    return result


def result_struct(layout: Layout) -> StructMemory:
    """Return the struct of results with a layout (:class:`.result_entries.ResultSpec`).

    The caller keeps the layout alive.
    """
    result: StructMemory | None = layout.record
    if result is None:
        result = block_struct(layout.nbytes)
        result.set(rt.ResultSpec.layout, id(layout))
        layout.record = result
    return result


def block_struct(nbytes: int) -> StructMemory:
    """Return the struct of a block of ``nbytes`` bytes without a layout, for scratch memory."""
    size = size_class(nbytes)
    result = StructMemory(rt.ResultSpec, size=size)
    result.refer(rt.ResultSpec.nbytes, nbytes)
    result.refer(rt.ResultSpec.key, size)
    return result


tools.change_listeners.append(device_struct.results.clear)
