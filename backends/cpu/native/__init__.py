"""The native call path: eager calls answered by machine code. `install()` turns it on, `why_off()` says why not."""

from __future__ import annotations

from ....eager import made
from ....eager.tensor import Tensor
from ....registry import native_type, trace
from ....registry.dtypes import DType
from ....registry.function import functions
from ....registry.operator import Operator
from . import backward, layout, subscript
from . import rt_base as rt
from .runtime import Runtime
from .table import Stubs, describe_failures, row_served

_installed: list[Stubs] = []


def why_off() -> str:
    """Why native code is not used in this process; empty when it is."""
    return native_type.fault or layout.check()


def install() -> None:
    """Give every operator function of a kind with a native entry its stub. Without native code, do nothing."""
    if why_off():
        return
    if not _installed:
        _installed.append(Stubs(Runtime(Tensor)))
        trace.listeners.append(_follow_trace)
        _follow_trace()
        made.listeners.append(_follow_levels)
        _follow_levels(bool(made.watching[0]))
    known = _installed[0].by_operator
    for function in list(functions.values()):
        if function.operator not in known and function.operator not in _installed[0].kernels:
            _installed[0].add(function)
    _installed[0].add_methods()
    subscript.attach(_installed[0].runtime)
    backward.attach(_installed[0].runtime)


def runtime() -> Runtime | None:
    """The entries of this process; None when native code is off or not installed yet."""
    return _installed[0].runtime if _installed else None


def stubs() -> Stubs | None:
    """The stubs of this process; None when native code is off or not installed yet."""
    return _installed[0] if _installed else None


def serves(operator: Operator, dtype: DType, layout: str) -> bool:
    """Whether a hot call of an operator on this dtype and layout (see `overhead.coverage`) runs native."""
    stub = _installed[0].by_operator.get(operator) if _installed else None
    return stub is not None and not stub.failure and row_served(operator, dtype, layout)


def failures() -> dict[str, str]:
    """Operators that run in Python because their native code could not be made, and why."""
    return describe_failures(_installed[0]) if _installed else {}


def _follow_levels(is_open: bool) -> None:
    """While a level of a transform is open, new tensors are noted as made inside."""
    _installed[0].runtime.process.set(rt.G_NOTE, id(made.note_native) if is_open else 0)


def _follow_trace() -> None:
    process = _installed[0].runtime.process
    process.set(rt.G_OFF, int(trace.active))
