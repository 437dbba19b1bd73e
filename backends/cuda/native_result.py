"""Results from machine code: the records that :mod:`.rt_result` reads, and its functions, compiled at first need."""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ... import lazy
from ...eager.storage import Storage
from ...eager.tensor import Tensor
from ...errors import OutOfMemoryError
from ...registry.dtypes import DType
from ...registry.keys import CUDA_KEYS, GRAD_CUDA_KEYS
from ..cpu.native import dsl, engine, jit_layout, lang, lang_expr, layout, rt_base, rt_operands
from ..cpu.native.records import Record
from . import rt_result, stream_keys
from . import rt_result as rt
from . import toolkit as tools
from .arrays import DeviceArray, Layout
from .devices import device_at, device_count
from .memory import Buffer, Pool, Stats, pool_of, size_class
from .streams import default_stream
from .tensor import CudaTensor, DeviceStorage

_SOURCES = (dsl, lang, lang_expr, layout, jit_layout, rt_base, rt_operands, rt_result)
_FINALIZE = 392  # offset of tp_finalize in a type object
# what others call comes before them
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ready": rt.ready,
    "block": rt.block,
    "result": rt.result,
    "finalize": rt.finalize,
}


@functools.cache
def constants() -> dict[str, int]:
    """Compile-time constants: where the slots lie of the classes that native functions of this backend know.

    Raises:
        RuntimeError: a slot is not where its descriptor says.
    """
    probe: Any = [object(), object(), object(), None, object(), []]
    buffer = Buffer(*probe)
    return {
        **layout.class_constants(Tensor, Storage),
        **layout.slot_constants(DeviceArray, "A_", ("ptr", "layout", "buffer")),
        **layout.slot_constants(
            Buffer, "B_", ("ptr", "nbytes", "size", "pool", "block", "home", "users"), buffer
        ),
        **layout.slot_constants(Pool, "P_", ("counts",)),
    }


def build(
    name: str,
    functions: Mapping[str, Callable[..., Any]],
    sources: tuple[Any, ...],
    own: Mapping[str, Any] | None = None,
) -> engine.Code:
    """Native functions of this backend, compiled or from the disk cache.

    Args:
        name: of the module.
        functions: those that are called from outside, by name.
        sources: the modules that they are written in, beside :mod:`.rt_result` and what it uses.
        own: further compile-time constants.
    """
    digest = hashlib.sha256()
    for module in (*_SOURCES, *sources):
        digest.update(Path(str(module.__file__)).read_bytes())
    known = {**constants(), **(own or {})}
    key = engine.fingerprint(f"cuda {name}", digest.hexdigest(), repr(sorted(known.items())))
    return engine.build(key, lambda: lang.emit(functions, known), list(functions), level=1)


@functools.cache
def code() -> engine.Code:
    """``ready``, ``result`` and ``block`` of :mod:`.rt_result`; from now on buffers go back by machine code too."""
    found = build("results", FUNCTIONS, ())
    slot = _finalizer(Buffer)
    if _finalizer_fault():
        return found
    Stats.finalize = slot.value or 0
    for stats in Stats.made:
        stats.counts[rt.W_FINALIZE // 8] = Stats.finalize
    slot.value = found["finalize"]
    return found


def _finalizer(cls: type) -> ctypes.c_void_p:
    """Where a class has what CPython calls for ``__del__``."""
    return ctypes.c_void_p.from_address(id(cls) + _FINALIZE)


def _finalizer_fault() -> bool:
    """Whether that lies elsewhere in this interpreter; buffers then go back by Python."""

    class Finalized:
        def __del__(self) -> None: ...

    class Plain:
        pass

    found = _finalizer(Finalized).value
    return not found or _finalizer(Buffer).value != found or _finalizer(Plain).value is not None


def is_on() -> bool:
    """Whether machine code answers calls in this process."""
    return not lazy.native_layer().why_off() and lazy.native_layer().runtime() is not None


@functools.cache
def home() -> Record:
    """The backend's record."""
    found = Record(rt.H_SIZE)
    found.point(rt.H_GLOBALS, lazy.native_layer().runtime().process)
    objects = {
        rt.H_TENSOR: CudaTensor,
        rt.H_ARRAY: DeviceArray,
        rt.H_BUFFER: Buffer,
        rt.H_KEYS: CUDA_KEYS,
        rt.H_GRAD_KEYS: GRAD_CUDA_KEYS,
        rt.H_GET: "get",
        rt.H_SHORTAGE: OutOfMemoryError,
        rt.H_DTYPE: DType,
        rt.H_STORAGE: DeviceStorage,
    }
    for offset, value in objects.items():
        found.refer(offset, value)
    return found


@functools.cache
def _context_key() -> int:
    return stream_keys.new_key()


_devices: dict[int, Record] = {}


def device_record(index: int) -> Record:
    """The record of a device. It holds for the toolkit that is in force now."""
    found = _devices.get(index)
    if found is None:
        at, default = device_at(index), default_stream(f"cuda:{index}")
        pool_of(default)
        found = Record(rt.X_SIZE)
        found.point(rt.X_HOME, home())
        found.set(rt.X_CONTEXT, at.context)
        found.set(rt.X_SET, at.driver.address("cuCtxSetCurrent"))
        found.set(rt.X_CONTEXT_KEY, _context_key() if device_count() == 1 else -1)
        found.set(rt.X_STREAM_KEY, stream_keys.key_of(index))
        found.point(rt.X_DEFAULT, default.record)
        found.kept.append(default)
        found = _devices.setdefault(index, found)
    return found


def result_record(of: Layout) -> Record:
    """The record of results of a layout; whoever uses it keeps the layout."""
    found: Record | None = of.record
    if found is None:
        found = result_of(of.nbytes)
        found.set(rt.Y_LAYOUT, id(of))
        of.record = found
    return found


def result_of(nbytes: int) -> Record:
    """The record of a block of so many bytes that is no tensor's."""
    found, size = Record(rt.Y_SIZE), size_class(nbytes)
    found.refer(rt.Y_NBYTES, nbytes)
    found.refer(rt.Y_KEY, size)
    found.set(rt.Y_BYTES, size)
    return found


tools.changed.append(_devices.clear)
