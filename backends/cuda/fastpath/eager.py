"""Native entries of eager calls on CUDA tensors, and their tables of cached calls.

The CPU entry of an operator calls a fallback for calls that it cannot answer. An :class:`EagerEntry` is that fallback:
it answers calls on plain CUDA tensors whose layouts are in its table (:mod:`.eager_entries`), and passes other calls to
the original fallback.
"""

from __future__ import annotations

import functools
import struct
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .... import lazy
from ....eager.autograd.ad_inplace_or_view import ad_inplace_or_view
from ....registry.dispatch.keys import DispatchKey
from ....registry.native_type import NativeCallable, accept_entries, set_entry
from ....registry.operator import Operator, change_listeners, lock
from ...cpu.fastpath.compiler.structs import sizeof
from ...cpu.fastpath.glue.structs import StructMemory
from ...cpu.fastpath.runtime import rt_base
from ..runtime import toolkit as tools
from . import call_cache_entries, eager_entries, result, write_entries

# kind of entry -> its function and compile-time constants
KINDS: dict[str, tuple[Callable[..., Any], dict[str, int]]] = {
    **{f"elementwise{n}": (eager_entries.elementwise, {"NIN": n, "PRODUCT": 0}) for n in (1, 2, 3)},
    **{f"inplace{n}": (write_entries.inplace, {"NIN": n}) for n in (1, 2, 3)},
    "product": (eager_entries.elementwise, {"NIN": 2, "PRODUCT": 1}),
    "keyed": (call_cache_entries.call_cached, {"NIN": 1, "SUBSCRIPT": 0}),
    "subscript": (call_cache_entries.call_cached, {"NIN": 1, "SUBSCRIPT": 1}),
}


@functools.cache
def _code(kind: str) -> Any:
    function, own = KINDS[kind]
    result.result_code()  # installs the native finalizer of buffers too
    return result.build_code(kind, {kind: function}, own)


@functools.cache
def _can_build(kind: str) -> bool:
    """Whether there is native code for a kind; a failed build warns once, and Python answers the calls."""
    try:
        return bool(_code(kind))
    except (RuntimeError, OSError, SyntaxError, ImportError) as error:
        fault = f"{type(error).__name__}: {error}"
        warnings.warn(f"CUDA: {kind} calls run without native code: {fault}", RuntimeWarning, stacklevel=2)
        return False


@accept_entries
class EagerEntry(NativeCallable):  # type: ignore[misc]
    """A native entry that answers the calls on CUDA tensors that an operator's CPU entry passes on.

    Args:
        fallback: the callable for calls that this entry does not answer.
        table: of the cached calls.
    """

    def __init__(self, fallback: Callable[..., Any], table: StructMemory):
        self.fallback = fallback
        self.record = StructMemory(sizeof(eager_entries.CudaEntry))
        self.record.point(rt_base.OperatorEntry.globals_, lazy.native_layer().runtime().process)
        self.record.refer(rt_base.OperatorEntry.fall_back, fallback)
        self.record.point(eager_entries.CudaEntry.backend, result.backend_record())
        self.set_table(table)

    def set_table(self, table: StructMemory) -> None:
        """Set the table of cached calls, which the caller keeps alive."""
        self.record.set(rt_base.OperatorEntry.variants, table.address)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.fallback(*args, **kwargs)


class OperatorEntries:
    """The native entries of one operator on CUDA, and their cached calls.

    Args:
        op: the operator.
        kind: of the entry, one of ``KINDS``.

    Attributes:
        kernel: the CUDA kernel that the entries replace.
    """

    def __init__(self, op: Operator, kind: str):
        self.op, self.kind = op, kind
        self.kernel: Any = None
        self.entries: list[EagerEntry] = []
        self.cached_calls: dict[tuple[int, ...], Any] = {}
        self.table = _make_table({})
        _by_operator[op] = self
        tools.change_listeners.append(self.clear)

    @property
    def is_usable(self) -> bool:
        """Whether the kernel is still registered, writes and views are tracked as usual, and no mode is active."""
        table = self.op.table
        is_ours = table[DispatchKey.CUDA].fn is self.kernel
        is_tracked = not self.op.layer_keys or table[DispatchKey.ADInplaceOrView].fn is ad_inplace_or_view
        return is_ours and is_tracked and not self.op.extra_keys

    @property
    def calls(self) -> int:
        """The number of calls answered by native code."""
        return sum(entry.record.get(rt_base.OperatorEntry.calls) for entry in self.entries)

    def add(self, call: Any, args: tuple[Any, ...]) -> bool:
        """Add a call to the table.

        Args:
            call: its ``make_record(args)`` makes its native struct ``record`` and returns the key by which the entry
                finds it; an empty key if native code cannot answer it. ``is_registered`` is set afterwards.
            args: the arguments of the call.

        Returns:
            Whether it was added; False while another thread holds the lock.
        """
        return lock.if_free(lambda: self._add(call, args))

    def _add(self, call: Any, args: tuple[Any, ...]) -> None:
        if call.is_registered:
            return  # by another thread: native code reads its record, which must not be replaced
        key = call.make_record(args) if result.is_on() else ()
        if key and key not in self.cached_calls:
            self.install()
            self.cached_calls[key] = call
            if 2 * len(self.cached_calls) > self.table.get(0):
                self._publish()
            else:
                _insert(self.table, key, call)
        call.is_registered = True

    def clear(self) -> None:
        """Remove all cached calls."""
        self.cached_calls = {}
        self._publish()

    def update(self) -> None:
        """Enable or disable the native code after a change of the operator's kernels or keys; the lock is held."""
        function = _code(self.kind)[self.kind] if self.entries and self.is_usable else 0
        for entry in self.entries:
            set_entry(entry, function, entry.record.address)

    def install(self) -> None:
        """Make entries the fallbacks of the CPU entries of the operator's function and methods, where missing."""
        if not _can_build(self.kind):
            return
        known = len(self.entries)
        for entry in self.operator_entries():
            if not isinstance(entry.fall_back, EagerEntry):
                self.entries.append(EagerEntry(entry.fall_back, self.table))
                self.prepare(self.entries[-1])
                entry.set_fallback(self.entries[-1])
        if len(self.entries) > known:
            self.update()

    def install_if_free(self) -> None:
        """Install the entries if native code is on, unless another thread holds the lock."""
        if self.entries:
            return
        lock.if_free(lambda: self.install() if result.is_on() else None)

    def prepare(self, entry: EagerEntry) -> None:
        """Prepare a new entry; subclasses override it."""

    def operator_entries(self) -> Iterable[Any]:
        """The CPU entries of the operator."""
        stub = lazy.native_layer().stubs().by_operator.get(self.op)
        return () if stub is None else stub.patch_points

    def _publish(self) -> None:
        before, self.table = self.table, _make_table(self.cached_calls)
        for entry in self.entries:
            entry.set_table(self.table)
        del before  # unused now: entries hold the GIL while they read a table


_by_operator: dict[Operator, OperatorEntries] = {}


def make_call_record(key: Sequence[int], owner: Any) -> StructMemory:
    """The native struct of a cached call, with its key and owner only.

    Args:
        key: the integers by which the entry finds the call.
        owner: the object that keeps the struct.
    """
    result = StructMemory(sizeof(eager_entries.CacheEntry))
    result.set(eager_entries.CacheEntry.count, len(key))
    result.set(eager_entries.CacheEntry.owner, id(owner))
    struct.pack_into(f"<{len(key)}q", result.memory, eager_entries.CacheEntry.keys, *key)
    return result


def _make_table(calls: dict[tuple[int, ...], Any]) -> StructMemory:
    """A hash table of cached calls with open addressing, with room for as many more."""
    size = max(8, 1 << (4 * len(calls)).bit_length())
    result = StructMemory(8 * size + 8)
    result.set(0, size - 1)
    for key, call in calls.items():
        _insert(result, key, call)
    return result


def _insert(table: StructMemory, key: tuple[int, ...], call: Any) -> None:
    """Insert a cached call at the first free index after the hash of its key.

    Native twin of the lookup: backends/cuda/fastpath/eager_entries.py:find_call
    """
    code, mask = 0, table.get(0)
    for word in key:
        code = ((code ^ word ^ word >> 4) * 31) & eager_entries.CODE_MASK
    slot = (code ^ code >> 7) & mask
    while table.get(8 * slot + 8):
        slot = (slot + 1) & mask
    table.kept.append(call)
    table.set(8 * slot + 8, call.record.address)


def entries_of(op: Operator) -> OperatorEntries | None:
    """The native entries of an operator, if it has any."""
    return _by_operator.get(op)


def _on_change(op: Operator) -> None:
    cached = _by_operator.get(op)
    if cached is not None:
        cached.update()


change_listeners.append(_on_change)
