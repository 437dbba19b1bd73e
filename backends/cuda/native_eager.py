"""Eager calls on CUDA tensors in machine code: the doors that stand behind operators' entries, and what they know.

An operator's entry hands calls that it does not take to Python. A door stands in between: it takes those on plain CUDA
tensors whose layouts it has a plan for (:mod:`.rt_eager`), and hands on the rest.
"""

from __future__ import annotations

import functools
import struct
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ... import lazy
from ...eager.adinplace import ad_inplace_or_view
from ...registry.keys import DispatchKey
from ...registry.native_type import NativeCallable, accept_entries, set_entry
from ...registry.operator import Operator, change_listeners, lock
from ..cpu.native import rt_base, rt_folds, rt_storage
from ..cpu.native.records import Record
from . import cublas, native_result, rt_eager, rt_gemm, rt_keyed, rt_launch, rt_writes
from . import toolkit as tools

_SOURCES = (rt_eager, rt_gemm, cublas, rt_keyed, rt_writes, rt_launch, rt_folds, rt_storage)
# The kinds of entries, and their compile-time constants
KINDS: dict[str, tuple[Callable[..., Any], dict[str, int]]] = {
    **{f"elementwise{n}": (rt_eager.elementwise, {"NIN": n}) for n in (1, 2, 3)},
    **{f"inplace{n}": (rt_writes.inplace, {"NIN": n}) for n in (1, 2, 3)},
    "product": (rt_gemm.product, {"NIN": 2}),
    "keyed": (rt_keyed.keyed, {"NIN": 1, "SUBSCRIPT": 0}),
    "subscript": (rt_keyed.keyed, {"NIN": 1, "SUBSCRIPT": 1}),
}


@functools.cache
def _code(kind: str) -> Any:
    function, own = KINDS[kind]
    native_result.code()  # so that buffers go back by machine code too
    return native_result.build(kind, {kind: function}, _SOURCES, own)


@functools.cache
def _is_there(kind: str) -> bool:
    """Whether there is machine code of a kind; if it could not be made, that is said once, and Python answers."""
    try:
        return bool(_code(kind))
    except (RuntimeError, OSError, SyntaxError, ImportError) as error:
        fault = f"{type(error).__name__}: {error}"
        warnings.warn(f"CUDA: {kind} calls run without native code: {fault}", RuntimeWarning, stacklevel=2)
        return False


@accept_entries
class Door(NativeCallable):  # type: ignore[misc]
    """Answers calls on CUDA tensors that an operator's entry for tensors on the host hands on.

    Args:
        behind: what answers those that this one does not take.
        table: of the plans.
    """

    def __init__(self, behind: Callable[..., Any], table: Record):
        self.behind = behind
        self.record = Record(rt_eager.N_SIZE)
        self.record.point(rt_base.D_GLOBALS, lazy.native_layer().runtime().process)
        self.record.refer(rt_base.D_SLOW, behind)
        self.record.point(rt_eager.N_HOME, native_result.home())
        self.show(table)

    def show(self, table: Record) -> None:
        """Let it look plans up in a table, which whoever calls this keeps."""
        self.record.set(rt_base.D_TABLE, table.address)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.behind(*args, **kwargs)


class Doors:
    """The doors of one operator, and the plans that they know.

    Args:
        op: the operator.
        kind: of the entry, one of ``KINDS``.

    Attributes:
        kernel: the CUDA kernel that the entry stands for.
    """

    def __init__(self, op: Operator, kind: str):
        self.op, self.kind = op, kind
        self.kernel: Any = None
        self.doors: list[Door] = []
        self.plans: dict[tuple[int, ...], Any] = {}
        self.table = _table({})
        _by_operator[op] = self
        tools.changed.append(self.clear)

    @property
    def usable(self) -> bool:
        """Whether the kernel is still in force, nothing else counts writes and views, and no mode wants the calls."""
        table = self.op.table
        is_ours = table[DispatchKey.CUDA].fn is self.kernel
        books = not self.op.layer_keys or table[DispatchKey.ADInplaceOrView].fn is ad_inplace_or_view
        return is_ours and books and not self.op.extra_keys

    @property
    def calls(self) -> int:
        """Calls answered by machine code."""
        return sum(door.record.get(rt_base.D_CALLS) for door in self.doors)

    def learn(self, plan: Any, args: tuple[Any, ...]) -> bool:
        """Let the entry know a new plan.

        Args:
            plan: its ``describe`` makes the ``record`` that the entry reads, and gives the key by which the entry finds
                it; empty where it is not for the entry.
            args: what it was made for.

        Returns:
            Whether that is done; not while another thread registers.
        """
        with lock.if_free() as free:
            key = plan.describe(args) if free and native_result.is_on() else ()
            if key and key not in self.plans:
                self.stand()
                self.plans[key] = plan
                if 2 * len(self.plans) > self.table.get(0):
                    self._publish()
                else:
                    _enter(self.table, key, plan)
            return free

    def clear(self) -> None:
        """Forget all plans."""
        self.plans = {}
        self._publish()

    def follow(self) -> None:
        """The operator's kernels, or who is interested in its calls, may have changed; the lock is held."""
        entry = _code(self.kind)[self.kind] if self.doors and self.usable else 0
        for door in self.doors:
            set_entry(door, entry, door.record.address)

    def stand(self) -> None:
        """Put doors behind the entries of the operator's function and methods, those that have none yet."""
        if not _is_there(self.kind):
            return
        known = len(self.doors)
        for entry in self.entries():
            if not isinstance(entry.slow, Door):
                self.doors.append(Door(entry.slow, self.table))
                self.made(self.doors[-1])
                entry.hand_on(self.doors[-1])
        if len(self.doors) > known:
            self.follow()

    def open(self) -> None:
        """Let doors stand, where machine code is on; later if another thread registers now."""
        if self.doors:
            return
        with lock.if_free() as free:
            if free and native_result.is_on():
                self.stand()

    def made(self, door: Door) -> None:
        """A door has been made, and stands from now on."""

    def entries(self) -> Iterable[Any]:
        """What stands before the doors: has ``slow``, and ``hand_on`` to replace it."""
        stub = lazy.native_layer().stubs().by_operator.get(self.op)
        return () if stub is None else stub.doors

    def _publish(self) -> None:
        before, self.table = self.table, _table(self.plans)
        for door in self.doors:
            door.show(self.table)
        del before  # nobody reads it any more: entries look plans up without letting others run


_by_operator: dict[Operator, Doors] = {}


def key_record(key: Sequence[int], owner: Any) -> Record:
    """The record of a plan, so far without what it does.

    Args:
        key: the words that the entry looks it up by.
        owner: the object that keeps the record.
    """
    found = Record(rt_eager.E_SIZE)
    found.set(rt_eager.E_COUNT, len(key))
    found.set(rt_eager.E_OWNER, id(owner))
    struct.pack_into(f"<{len(key)}q", found.memory, rt_eager.E_KEYS, *key)
    return found


def _table(plans: dict[tuple[int, ...], Any]) -> Record:
    """The table in which an entry finds plans, with room for as many more."""
    size = max(8, 1 << (4 * len(plans)).bit_length())
    found = Record(8 * size + 8)
    found.set(0, size - 1)
    for key, plan in plans.items():
        _enter(found, key, plan)
    return found


def _enter(table: Record, key: tuple[int, ...], plan: Any) -> None:
    code, mask = 0, table.get(0)
    for word in key:
        code = ((code ^ word ^ word >> 4) * 31) & rt_eager.CODE_MASK
    place = (code ^ code >> 7) & mask
    while table.get(8 * place + 8):
        place = (place + 1) & mask
    table.kept.append(plan)
    table.set(8 * place + 8, plan.record.address)


def doors_of(op: Operator) -> Doors | None:
    """The doors of an operator, if it has any."""
    return _by_operator.get(op)


def _follow(op: Operator) -> None:
    found = _by_operator.get(op)
    if found is not None:
        found.follow()


change_listeners.append(_follow)
