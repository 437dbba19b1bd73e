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
from ....registry import native_type
from ....registry.dispatch.keys import DispatchKey
from ....registry.dtypes import default_listeners
from ....registry.native_type import accept_entries, set_entry
from ....registry.operator import Operator, change_listeners, lock
from ...cpu.fastpath.glue.patch_points import TargetCallable
from ...cpu.fastpath.glue.structs import EntryStruct, HashTable, StructMemory
from ...cpu.fastpath.runtime import rt_base
from ..runtime import toolkit as tools
from ..runtime.arrays import Layout
from ..runtime.launching import native_code
from . import call_cache_entries, eager_entries, result

native_layer = lazy.Module(".backends.cpu.fastpath")

_ELEMENTWISE = {"entry": eager_entries.elementwise}
# callees come before their callers
_CACHED = {"encode": call_cache_entries.encode_arguments, "entry": call_cache_entries.call_cached}

# kind of entry -> its functions and compile-time constants
KINDS: dict[str, tuple[dict[str, Callable[..., Any]], dict[str, int]]] = {
    **{f"elementwise{n}": (_ELEMENTWISE, {"NIN": n}) for n in (1, 2, 3)},
    **{f"inplace{n}": (_ELEMENTWISE, {"NIN": n, "IN_PLACE": 1}) for n in (1, 2, 3)},
    "product": (_ELEMENTWISE, {"NIN": 2, "PRODUCT": 1}),
    "keyed": (_CACHED, {"NIN": 1, "SUBSCRIPT": 0}),
    "subscript": (_CACHED, {"NIN": 1, "SUBSCRIPT": 1}),
}


@functools.cache
def entry_code(kind: str) -> Any:
    """The native code of a kind of entry."""
    result.result_code()  # installs the native finalizer of buffers too
    functions, own = KINDS[kind]
    return native_code(kind, functions, result.constants() | own)


@functools.cache
def _can_build(kind: str) -> bool:
    """Whether there is native code for a kind; a failed build warns once, and Python answers the calls."""
    try:
        return bool(entry_code(kind))
    except (RuntimeError, OSError, SyntaxError, ImportError) as error:
        fault = f"{type(error).__name__}: {error}"
        warnings.warn(f"CUDA: {kind} calls run without native code: {fault}", RuntimeWarning, stacklevel=2)
        return False


@accept_entries
class EagerEntry(TargetCallable):
    """A native entry that answers the calls on CUDA tensors that an operator's CPU entry passes on.

    Args:
        fallback: the callable for calls that this entry does not answer.
        table: of the cached calls; the caller keeps it alive.
    """

    def __init__(self, fallback: Callable[..., Any], table: StructMemory):
        super().__init__(fallback)
        self.record = EntryStruct(
            eager_entries.CudaEntry,
            native_type.runtime.process,
            fallback,
            backend=result.backend_struct(),
            variants=table.address,
        )


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
        entries_by_operator[op] = self
        tools.change_listeners.append(self.clear)
        default_listeners.append(self.clear)

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
        return sum(entry.record.calls for entry in self.entries)

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
        key = call.make_record(args) if result.is_native_enabled() else ()
        if key and key not in self.cached_calls:
            self.install()
            self.cached_calls[key] = call
            if 2 * len(self.cached_calls) > self.table.mask:
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
        function = entry_code(self.kind)["entry"] if self.entries and self.is_usable else 0
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
        lock.if_free(lambda: self.install() if result.is_native_enabled() else None)

    def prepare(self, entry: EagerEntry) -> None:
        """Prepare a new entry; subclasses override it."""

    def operator_entries(self) -> Iterable[Any]:
        """The CPU entries of the operator."""
        stub = native_layer.stubs().by_operator.get(self.op)
        return () if stub is None else stub.patch_points

    def _publish(self) -> None:
        before, self.table = self.table, _make_table(self.cached_calls)
        for entry in self.entries:
            entry.record.set(rt_base.OperatorEntry.variants, self.table.address)
        del before  # unused now: entries hold the GIL while they read a table


entries_by_operator: dict[Operator, OperatorEntries] = {}


def make_call_record(key: Sequence[int], owner: Any, kept: Any, out: Layout) -> StructMemory:
    """The native struct of a cached call, without its launches.

    Args:
        key: the integers by which the entry finds the call.
        owner: the object that keeps the struct.
        kept: the objects whose addresses are in the key.
        out: the layout of the result.
    """
    device, spec = result.device_struct(out.index), result.result_struct(out)
    record = StructMemory(
        eager_entries.CacheEntry, count=len(key), owner=id(owner), device=device, result=spec
    )
    record.kept.extend((kept, out))
    struct.pack_into(f"<{len(key)}q", record.memory, eager_entries.CacheEntry.keys, *key)
    return record


def _make_table(calls: dict[tuple[int, ...], Any]) -> HashTable:
    """The hash table of cached calls."""
    result = HashTable(len(calls))
    for key, call in calls.items():
        _insert(result, key, call)
    return result


def _insert(table: HashTable, key: tuple[int, ...], call: Any) -> None:
    """Insert a cached call by the hash of its key.

    Native twin of the lookup: backends/cuda/fastpath/eager_entries.py:find_call
    """
    code = 0
    for word in key:
        code = ((code ^ word ^ word >> 4) * 31) & eager_entries.CODE_MASK
    table.kept.append(call)
    table.insert(code ^ code >> 7, call.record)


def _on_change(op: Operator) -> None:
    cached = entries_by_operator.get(op)
    if cached is not None:
        cached.update()


change_listeners.append(_on_change)
