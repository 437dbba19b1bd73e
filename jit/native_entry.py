"""The native entry of a jitted function: links specializations that native code can run.

Python runs calls whose guards fail, and specializations that the entry cannot express (views among the results,
foreign containers, ...).
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

from .. import config, lazy
from ..registry import native_type
from ..registry.dtypes import default_float
from ..registry.function import OperatorFunction, initialize
from ..registry.operator import Operator, change_listeners, lock
from .arguments import Arguments
from .specialization import Specialization

if TYPE_CHECKING:
    from ..backends.cpu.fastpath.glue.jit_structs import JitStruct, SpecializationStruct
    from ..registry.types import Args, Function, Kwargs

_jit_structs = lazy.Module(".backends.cpu.fastpath.glue.jit_structs")
_native_record = lazy.Module(".jit.native_record")
_traced = lazy.Module(".backends.cpu.fastpath.glue.traced")

_clock = itertools.count(-(2**62))  # before any time of the native clock


def use_time() -> int:
    """Advance and return the clock of uses, which native calls advance too; for least-recently-used eviction."""
    runtime = native_type.runtime
    return next(_clock) if runtime is None else int(runtime.tick())


class NativeEntry:
    """The native entry of one jitted function.

    Args:
        function: the jitted function, a ``NativeCallable``.
        fall_back: the Python fallback for calls whose guards fail.
        kind: ``"jitted"``, or ``"recorded"`` for the forward passes of calls that Python differentiates.
    """

    def __init__(self, function: object, fall_back: Function, kind: str = "jitted"):
        self._kind = kind
        self._function = weakref.ref(function)
        self._fall_back = fall_back
        self._operator: Operator | None = (
            function.operator if isinstance(function, OperatorFunction) else None
        )
        self._record: JitStruct | None = None
        self._ready: bool | None = None

    def link(self, specialization: Specialization, arguments: Arguments, form: object) -> None:
        """Link a specialization for calls of this form if native code can run it."""
        if native_type.runtime is None:
            initialize()
        runtime, function = native_type.runtime, self._function()
        if runtime is None or function is None or not self._worth_it(runtime, specialization):
            return
        record = specialization.records.get(form)
        if record is None:
            record = specialization.records[form] = _native_record.make_native_specialization(
                specialization, arguments, form
            )
        if isinstance(record, str) or self._is_linked(record):
            return
        # A change of the registry unlinks, so the check of versions and the link must be atomic. Calls do not wait:
        # while another thread holds the lock, linking is left to a later call.
        lock.if_free(lambda: self._link(runtime, function, specialization, record))

    def _link(self, runtime: Any, function: object, specialization: Specialization, record: Any) -> None:
        if specialization.is_dropped or not specialization.is_current() or self._is_linked(record):
            return  # another thread may have linked or dropped the specialization
        if specialization.default_dtype is not default_float():
            return  # another thread has set it meanwhile
        if self._record is None:
            entry = runtime.entry(self._kind)
            self._record = _jit_structs.JitStruct(runtime.process, self._fall_back, self._operator)
            native_type.set_entry(function, entry, self._record.address)
        self._record.link(record)
        _linked[id(self)] = self

    def _worth_it(self, runtime: Any, specialization: Specialization) -> bool:
        """Whether the entry is compiled, or the function is called often enough to compile it.

        An executable that still tunes how it is called stays with Python.
        """
        if not getattr(specialization.executable, "settled", True):
            return False
        if self._record is not None or specialization.hits >= config.flags.hot_calls:
            return True
        if self._ready is None:
            self._ready = runtime.is_available(self._kind)
        return bool(self._ready)

    def _is_linked(self, record: SpecializationStruct) -> bool:
        return self._record is not None and record in self._record.chain

    def replay(self, args: Args, kwargs: Kwargs) -> tuple[Any] | None:
        """Run the native entry while the dispatch trace is on; returns a 1-tuple, or None if guards fail."""
        answer: tuple[Any] | None = _traced.answer_by_specialization(
            self._function(), self._record, args, kwargs
        )
        return answer

    def remove(self, specialization: Specialization) -> None:
        """Unlink one specialization, so that Python runs its calls."""
        with lock:
            specialization.is_dropped = True
            for record in specialization.records.values():
                if self._record is not None and not isinstance(record, str):
                    self._record.remove(record)

    def unlink(self) -> None:
        """Unlink all specializations, so that Python runs every call until it links them again."""
        if self._record is not None:
            with lock:
                self._record.unlink()


# The entries with linked specializations. By their ids: a WeakSet cannot be copied while entries are deleted.
_linked: weakref.WeakValueDictionary[int, NativeEntry] = weakref.WeakValueDictionary()


def _unlink_all(op: Operator) -> None:
    """Unlink all entries when a kernel changes, so that Python checks the guards again; the registry's lock is held."""
    for reference in _linked.valuerefs():
        entry = reference()
        if entry is not None:
            entry.unlink()
    _linked.clear()


change_listeners.append(_unlink_all)
