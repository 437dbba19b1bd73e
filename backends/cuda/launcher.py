"""Launchers: callables that put one kernel into a stream, in machine code where there is some."""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import lazy
from ...registry.native_type import NativeCallable, accept_entries, set_entry
from ..cpu.native import dsl, engine, lang, lang_expr, rt_base
from ..cpu.native.records import Record
from . import rt_launch as rt

_SOURCES = (dsl, lang, lang_expr, rt_base, rt)


@functools.cache
def _entry() -> engine.Code:
    """The machine code that every launcher shares; compiled once, and kept on disk."""
    digest = hashlib.sha256()
    for module in _SOURCES:
        digest.update(Path(str(module.__file__)).read_bytes())
    key = engine.fingerprint("cuda launch", digest.hexdigest())
    return engine.build(key, lambda: lang.emit({"launch": rt.launch}, {}), ["launch"], level=1)


@accept_entries
class Launcher(NativeCallable):  # type: ignore[misc]
    """``launcher(stream, *values)``: puts a kernel into a stream and gives the driver's status.

    Args:
        address: of the driver's ``cuLaunchKernel``.
        function: the driver's handle of the kernel.
        sizes: grid, then block.
        shared: bytes of dynamic shared memory.
        changing: how many parameters are given at each call: addresses, or the bits of numbers.
        staying: the values of the parameters behind them, as ctypes objects.

    Attributes:
        record: what machine code reads of it.
    """

    def __init__(
        self,
        address: int,
        function: int,
        sizes: Sequence[int],
        shared: int,
        changing: int,
        staying: Sequence[Any],
    ):
        record = Record(rt.L_SIZE)
        fields = {rt.L_DRIVER: address, rt.L_FUNCTION: function, rt.L_SHARED: shared}
        fields |= {rt.L_GRID + 8 * i: size for i, size in enumerate(sizes)}
        fields |= {rt.L_CHANGING: changing, rt.L_STAYING: len(staying)}
        fields |= {rt.L_VALUES + 8 * i: ctypes.addressof(value) for i, value in enumerate(staying)}
        for offset, value in fields.items():
            record.set(offset, value)
        record.kept.extend(staying)
        self.record, self._code = record, _entry()
        set_entry(self, self._code["launch"], record.address)

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError("a launcher has a native entry")


def why_not(changing: int, staying: int) -> str:
    """Why launches of so many parameters do not run as machine code; empty if they do."""
    fault: str = lazy.native_layer().why_off()
    return fault or ("too many parameters" if changing + staying > rt.MOST else "")
