"""Native launchers, callables that launch one kernel; and the build of the backend's native code."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .... import lazy
from ....registry.native_type import NativeCallable, accept_entries, set_entry
from ...cpu.fastpath.compiler import engine, lang
from ...cpu.fastpath.compiler.structs import sizeof
from ...cpu.fastpath.glue.structs import StructMemory
from ..fastpath import launch_entries as rt


def native_code(
    name: str,
    functions: Mapping[str, Callable[..., Any]],
    constants: Mapping[str, Any] | None = None,
) -> engine.Code:
    """Compile native functions, or load them from the disk cache.

    Args:
        name: of the module.
        functions: the entry points, by name.
        constants: compile-time constants.
    """
    known, backend = dict(constants or {}), Path(__file__).parents[1]
    digest = engine.source_digest(backend / "fastpath", backend / "blas")
    key = engine.fingerprint(f"cuda {name}", digest, repr(sorted(known.items())))
    return engine.build(key, lambda: lang.emit(functions, known), list(functions), level=1)


@functools.cache
def _entry_code() -> engine.Code:
    """The native code of all launchers."""
    return native_code("launch", {"launch": rt.launch})


@accept_entries
class Launcher(NativeCallable):  # type: ignore[misc]
    """``launcher(stream, *values)``: launch a kernel and return the driver's status.

    Args:
        address: of the driver's ``cuLaunchKernel``.
        function: the driver's handle of the kernel.
        sizes: grid, then block.
        shared: bytes of dynamic shared memory.
        dynamic: the number of parameters that are given at each call: addresses, or the bits of numbers.
        static: the values of the parameters after them, as ctypes objects.

    Attributes:
        record: the native struct (``Launch`` of ``fastpath/launch_entries.py``).
    """

    def __init__(
        self,
        address: int,
        function: int,
        sizes: Sequence[int],
        shared: int,
        dynamic: int,
        static: Sequence[Any],
    ):
        record = StructMemory(sizeof(rt.Launch))
        fields = {rt.Launch.driver: address, rt.Launch.function: function, rt.Launch.shared: shared}
        fields |= {rt.Launch.grid + 8 * i: size for i, size in enumerate(sizes)}
        fields |= {rt.Launch.dynamic: dynamic, rt.Launch.static: len(static)}
        fields |= {rt.Launch.values + 8 * i: ctypes.addressof(value) for i, value in enumerate(static)}
        for offset, value in fields.items():
            record.set(offset, value)
        record.kept.extend(static)
        self.record, self._code = record, _entry_code()
        set_entry(self, self._code["launch"], record.address)

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError("a launcher has a native entry")


def explain_fallback(dynamic: int, static: int) -> str:
    """The reason why launches with these numbers of parameters do not use native code; empty if they do."""
    fault: str = lazy.native_layer().why_off()
    return fault or ("too many parameters" if dynamic + static > rt.MAX_PARAMETERS else "")
