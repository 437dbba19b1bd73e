"""Native entries while the dispatch trace is on: it disables them for calls, and runs them itself to name them.

A replay is a callable with the entry of another and a copy of its struct, in which calls are enabled; calls that the
entry does not take raise `Declined`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from .....registry.dispatch.guards import adjust_keys
from .....registry.dispatch.keys import AUTOGRAD, CPU_KEYS, DispatchKey
from .....registry.dispatch.precedence import Entry
from .....registry.dispatch.state import state
from .....registry.dispatch.trace import Call
from .....registry.native_type import NativeCallable, accept_entries, entry_of, set_entry
from .....registry.operator import Operator
from .....registry.schemas.schema import Argument, Return
from ..compiler.structs import sizeof
from ..runtime import rt_base as rt
from . import jit_layout
from .jit_structs import JitStruct
from .structs import StructMemory
from .stubs import Stub


class Declined(Exception):
    """The entry falls back to Python."""


def _decline(*args: Any, **kwargs: Any) -> Any:
    raise Declined


@accept_entries
class Replay(NativeCallable):  # type: ignore[misc]
    """A callable with only a native entry.

    Args:
        entry: its address.
        data: what it reads.
        keep: what that refers to.
    """

    def __init__(self, entry: int, data: StructMemory, keep: Any) -> None:
        self.keep = data, keep
        set_entry(self, entry, data.address)


def _copy_struct(original: StructMemory, size: int) -> StructMemory:
    """Return a copy of an entry's struct, whose process struct does not disable calls."""
    result, process = StructMemory(size), StructMemory(sizeof(rt.Globals))
    result.memory.raw = ctypes.string_at(original.address, size)
    process.memory.raw = ctypes.string_at(original.get(rt.OperatorEntry.globals_), sizeof(rt.Globals))
    process.set(rt.Globals.off, 0)
    result.point(rt.OperatorEntry.globals_, process)
    result.refer(rt.OperatorEntry.fall_back, _decline)
    return result


def answer_by_stub(stub: Stub | None, entry: Entry, call: Call) -> tuple[str, Any] | None:
    """Return the kind of the entry that runs a call in place of the operator's CPU kernel, and the result.

    Args:
        stub: of the operator; None if it has none.
        entry: what fills the slot that was reached.
        call: the call; the entry is run on what was written, as it would be without the trace.

    Returns:
        None where Python answers: the operator is cold, its entry does more than the kernel (it writes, or makes a
        view), does not take the call or does not record it, or a layer other than autograd answers.
    """
    if stub is None or stub.record is None or not entry_of(stub.function):
        return None
    above = call.keyset & ~CPU_KEYS
    if above and not (above & AUTOGRAD == above and stub.record.get(rt.OperatorEntry.records)):
        return None
    if not _computes_same(stub, entry, call.operator):
        return None
    with adjust_keys(exclude=state.exclude | AUTOGRAD):  # the layers above have run
        data = _copy_struct(stub.record, sizeof(rt.OperatorEntry))
        data.refer(rt.OperatorEntry.miss, _decline)
        data.set(rt.OperatorEntry.records, 0)
        try:
            return stub.patch_points[0].kind, Replay(entry_of(stub.function), data, stub.record)(
                *call.given, **call.named
            )
        except Declined:
            return None


def _computes_same(stub: Stub, entry: Entry, operator: Operator) -> bool:
    """Return whether the entry computes what the kernel does, and nothing else."""
    parts: tuple[Argument | Return, ...] = (*operator.schema.arguments, *operator.schema.returns)
    pure = not any(each.type.aliases() for each in parts)
    same = stub.base is operator and entry.fn is operator.table[DispatchKey.CPU].fn
    return pure and same and stub.usable


def answer_by_specialization(
    function: Any, record: JitStruct | None, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any] | None:
    """Return the result of a jitted function's native entry in a tuple, or None if Python runs the call."""
    chain = list(record.chain) if record is not None else []
    if record is None or not chain or not entry_of(function):
        return None
    data = _copy_struct(record, sizeof(jit_layout.JitEntry))
    data.point(jit_layout.JitEntry.head, chain[0])
    try:
        return (Replay(entry_of(function), data, chain)(*args, **kwargs),)
    except Declined:
        return None
