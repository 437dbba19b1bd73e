"""Install the native call path: give stubs to operators, methods and other functions that have native entries."""

from __future__ import annotations

from typing import Any

from .... import lazy
from ....eager.layers import level_allocations
from ....eager.tensor import methods
from ....registry import native_type
from ....registry.dispatch import trace
from ....registry.dispatch.observers import draw_watches
from ....registry.dispatch.precedence import Entry
from ....registry.dtypes import DType
from ....registry.function import functions
from ....registry.operator import Operator
from .glue import backward, layout, subscript
from .glue.runtime import Runtime
from .glue.stubs import FunctionStub
from .glue.table import Stubs, is_row_served
from .runtime import rt_base as rt

_protocols = lazy.Module(".backends.cpu.fastpath.glue.protocols")
_traced = lazy.Module(".backends.cpu.fastpath.glue.traced")
_installed: list[Stubs] = []
_functions: list[FunctionStub] = []
_notes: list[Any] = []  # the fields `Globals.note` and `note_value` of the process's runtime


def why_off() -> str:
    """Return why native code is not used in this process; empty when it is."""
    return native_type.fault or layout.check()


def install() -> None:
    """Give a stub to every operator function whose kind has a native entry. Without native code, do nothing."""
    if why_off():
        return
    if not _installed:
        _installed.append(Stubs(Runtime()))
        native_type.runtime = _installed[0].runtime
        trace.listeners.append(_follow_trace)
        trace.answer_natively = _answer_natively
        _follow_trace()
        fields = (rt.Globals.note, rt.Globals.note_value)
        _notes.extend(map(_installed[0].runtime.process.field, fields))
        level_allocations.listeners.append(_follow_levels)
        _follow_levels(level_allocations.open_level_count[0])
        level_allocations.before_first_level.append(_installed[0].attach_batches)
        native_type.accept_listeners.append(_add_function)
        for accepting in native_type.accepting:
            _add_function(*accepting)
        methods.before_protocol_call.append(_attach_protocols)
        draw_watches.listeners.append(_follow_watches)
        _follow_watches(draw_watches.count)
    known = _installed[0].by_operator
    for function in list(functions.values()):
        if function.operator not in known and function.operator not in _installed[0].kernels:
            _installed[0].add(function)
    _installed[0].add_methods()
    subscript.attach(_installed[0])
    backward.attach(_installed[0].runtime)


def stubs() -> Stubs | None:
    """Return the stubs of this process; None if native code is off or not installed yet."""
    return _installed[0] if _installed else None


def serves(operator: Operator, dtype: DType) -> bool:
    """Return whether a hot call of an operator on this dtype, in any layout, runs native code."""
    stub = _installed[0].by_operator.get(operator) if _installed else None
    return stub is not None and not stub.failure and is_row_served(operator, dtype)


def failures() -> dict[str, str]:
    """Return the operators whose native code could not be compiled, and why."""
    known = _installed[0].by_operator if _installed else {}
    return {op.name: stub.failure for op, stub in known.items() if stub.failure}


def _add_function(function: native_type.NativeFunction, kind: str, operators: tuple[str, ...]) -> None:
    """Give a function outside the registry its stub."""
    _functions.append(FunctionStub(_installed[0].runtime, function, kind, operators))


def _attach_protocols() -> None:
    """Give NumPy's protocols native entries, once."""
    methods.before_protocol_call.clear()
    _protocols.attach(_installed[0].runtime)


def _follow_levels(count: int) -> None:
    """While levels of transforms are open, report new tensors to them, and with several also new values of levels."""
    _notes[0].value = id(level_allocations.note_allocation) if count else 0
    _notes[1].value = id(level_allocations.note_allocation) if count > 1 else 0


def _follow_watches(count: int) -> None:
    """While a run notes the states of random generators that are written, leave such calls to Python."""
    _installed[0].runtime.process.set(rt.Globals.draw_watches, count)


def _answer_natively(call: trace.Call, entry: Entry) -> tuple[str, Any] | None:
    """Return the result that a native entry computes in place of a CPU kernel, for the dispatch trace."""
    stub = _installed[0].by_operator.get(call.operator)
    answer: tuple[str, Any] | None = _traced.answer_by_stub(stub, entry, call)
    return answer


def _follow_trace() -> None:
    process = _installed[0].runtime.process
    process.set(rt.Globals.off, int(trace.active))
