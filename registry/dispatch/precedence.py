"""The dispatch table of an operator, computed from its registrations and the fallbacks.

Source: ``OperatorEntry::computeDispatchTableEntry`` of PyTorch, with the same precedence. Each entry holds the last of
these that exists: the key's fallback; the kernel for ``Autograd``; for ``CompositeImplicit``; ``CompositeExplicit``;
``CompositeExplicitNonFunctional``; for the key's group (``Dense``, ``Sparse``, ``Quantized``); for the key itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...locks import ThreadLocal
from ...named_tuple import NamedTuple
from ..dtypes import DType
from ..registration import Kernel, KeyName, Registration, fallthrough
from ..values import tensors_of
from . import unwinding
from .keys import (
    ALIASES,
    AUTOCAST,
    AUTOGRAD,
    BACKENDS,
    BACKENDS_OF_AUTOGRAD,
    GROUPS,
    DispatchKey,
    below,
    keys_of,
)

if TYPE_CHECKING:
    from ..operator import Operator
    from ..types import Args, Kwargs

_missing_kernels = lazy.Functions(".registry.missing_kernels")
RegistrationsByKey = Mapping[KeyName, list[Registration]]


class Entry(NamedTuple):
    """One entry of a dispatch table.

    Attributes:
        kind: ``"kernel"``, ``"composite_explicit"``, ``"composite_implicit"``, ``"fallback"``, ``"fallthrough"``,
            ``"ambiguous"`` or ``"missing"``.
        registration: the kernel's registration; None if it is missing, ambiguous, or exists for some dtypes only.
        fn: the function that the dispatcher calls.
        boxed: whether it is called as ``fn(op, keyset, args, kwargs)``.
        dtypes: entries of dtypes with a specialized kernel, by the dtype's name.
    """

    kind: str
    registration: Registration | None
    fn: Kernel
    boxed: bool = False
    dtypes: Mapping[str, Entry] = MappingProxyType({})


Table = tuple[Entry, ...]

# Backend fallbacks, newest last. Keys of layers without a fallback fall through.
fallbacks: dict[DispatchKey, list[Registration]] = {}

UNSERVED_LAYER = Entry("fallthrough", None, fallthrough)
MISSING = Entry("missing", None, _missing_kernels.raise_missing, True)
AMBIGUOUS = Entry("ambiguous", None, _missing_kernels.raise_ambiguous, True)


def make_entry(kind: str, registration: Registration) -> Entry:
    """The table entry of a registration."""
    if registration.fn is fallthrough:
        return Entry("fallthrough", registration, fallthrough)
    return Entry(kind, registration, *registration.call)


_row: list[Entry] = []  # the cached result of `fallback_row`, until the fallbacks change


def fallback_row() -> list[Entry]:
    """The table of an operator without kernels; the caller holds the lock."""
    if not _row:
        for key in DispatchKey:
            if fallbacks.get(key):
                _row.append(make_entry("fallback", fallbacks[key][-1]))
            else:
                _row.append(MISSING if BACKENDS >> key & 1 else UNSERVED_LAYER)
    return _row


def clear_fallback_row() -> None:
    """Clear the cache of `fallback_row`; the caller holds the lock."""
    _row.clear()


@cache
def slots_of(bits: int) -> tuple[int, ...]:
    """The table indices of a key set."""
    return tuple(map(int, keys_of(bits)))


def compute_table(held: RegistrationsByKey, row: list[Entry]) -> tuple[Table, int]:
    """Compute the table of an operator, and the key set of the entries that do not fall through.

    Args:
        held: its registrations by key, newest last.
        row: the entries of the fallbacks.
    """
    dtypes = {d for registered in held.values() for r in registered for d in r.dtypes or ()}
    table = _fill_table({key: newest for key in held if (newest := find_newest(held, key)) is not None}, row)
    if dtypes:
        special = {
            d: _fill_table(_newest_for_dtype(held, d), row) for d in sorted(dtypes, key=lambda d: d.name)
        }
        table = [_split_by_dtype(index, entry, special) for index, entry in enumerate(table)]
    mask = sum([1 << index for index, entry in enumerate(table) if entry.kind != "fallthrough"])
    return tuple(table), mask


def find_newest(held: RegistrationsByKey, key: KeyName, dtype: DType | None = None) -> Registration | None:
    """The newest registration for a key and every dtype, or for one dtype."""
    for registration in reversed(held.get(key, ())):
        if registration.dtypes is None if dtype is None else dtype in (registration.dtypes or ()):
            return registration
    return None


def _newest_for_dtype(held: RegistrationsByKey, dtype: DType) -> dict[KeyName, Registration]:
    newest = {key: find_newest(held, key, dtype) or find_newest(held, key) for key in held}
    return {key: registration for key, registration in newest.items() if registration is not None}


def _fill_table(newest: Mapping[KeyName, Registration], row: list[Entry]) -> list[Entry]:
    """The table for one registration per key: each step overwrites entries of lower precedence."""
    table = row.copy()

    def lay(kind: str, name: str, bits: int) -> None:
        if name in newest:
            entry = make_entry(kind, newest[name])
            for index in slots_of(bits):
                table[index] = entry

    lay("kernel", "Autocast", AUTOCAST)
    lay("kernel", "Autograd", AUTOGRAD)
    if "CompositeImplicit" in newest:
        _fill_implicit(newest, table, lay)
    lay("composite_explicit", "CompositeExplicit", ALIASES["CompositeExplicit"])
    lay("composite_explicit", "CompositeExplicitNonFunctional", ALIASES["CompositeExplicitNonFunctional"])
    for group, bits in GROUPS.items():
        if group in newest:
            lay("kernel", group, bits)
    for key, registration in newest.items():
        if isinstance(key, DispatchKey):
            table[key] = make_entry("kernel", registration)
    traced = table[_TRACER]
    if traced.kind not in _RECORDING and traced.registration is not table[_CPU].registration:
        # A trace runs another kernel than eager calls do.
        kernel = TracedKernel(traced, row[_TRACER], _find_replaced(traced, newest))
        table[_TRACER] = Entry(traced.kind, traced.registration, kernel, True)
    return table


def _find_replaced(traced: Entry, newest: Mapping[KeyName, Registration]) -> int:
    """The keys of devices where a kernel of another package replaces a composite of tandem.

    Where a package registers a body and a kernel, eager calls run the kernel and traces the body.
    """
    body = traced.registration
    if body is None or not body.site.own or not traced.kind.startswith("composite"):
        return 0
    others = [key for key, registration in newest.items() if not registration.site.own]
    return sum(1 << key for key in others if isinstance(key, DispatchKey)) & BACKENDS & ~_META


# The keys whose kernels run at the Level key: a grad level runs an autograd kernel, a vmap level that of Batched, and
# autocast runs before either.
KEYS_USED_BY_LEVELS = AUTOGRAD | 1 << DispatchKey.Batched | AUTOCAST


def _fill_implicit(
    newest: Mapping[KeyName, Registration], table: list[Entry], lay: Callable[[str, str, int], None]
) -> None:
    """Add a CompositeImplicit kernel, except at autograd keys whose backends have kernels that it would bypass."""
    served = sum(1 << key for key in newest if isinstance(key, DispatchKey)) & BACKENDS
    for group, bits in GROUPS.items():
        if group in newest:
            served |= bits
    if "CompositeExplicit" not in newest:
        stopped = sum(1 << key for key, backends in BACKENDS_OF_AUTOGRAD.items() if served & backends)
        asked = any(isinstance(key, DispatchKey) and KEYS_USED_BY_LEVELS >> key & 1 for key in newest)
        if asked or "Autocast" in newest:
            stopped |= 1 << DispatchKey.Level
        lay("composite_implicit", "CompositeImplicit", ALIASES["CompositeImplicit"] & ~stopped)
        body = newest["CompositeImplicit"]
        if body.cpu_kernel is not None:
            table[DispatchKey.CPU] = Entry("composite_implicit", body, body.cpu_kernel)
    if served & BACKENDS_OF_AUTOGRAD[DispatchKey.AutogradOther]:
        table[DispatchKey.AutogradOther] = AMBIGUOUS


# -- traces of eager calls ---------------------------------------------------------------------------------------------
class _Traces(ThreadLocal):
    """Whether a trace in this thread records the calls that eager calls would answer with another kernel."""

    keeps_kernels = False


traces = unwinding.register_thread_local(_Traces())


_RECORDING = ("fallback", "fallthrough", "missing")  # the kinds of Tracer entries that record calls
_TRACER, _CPU, _META = int(DispatchKey.Tracer), int(DispatchKey.CPU), 1 << DispatchKey.Meta


class TracedKernel:
    """The boxed kernel of a Tracer entry where eager calls on the CPU run another kernel.

    Args:
        traced: the entry for ``@jit``, whose kernel is traced.
        recorded: the entry that records the call; for traces of hot eager calls, and on devices whose kernels replace
            the body.
        backends: the keys of these devices.
    """

    __slots__ = ("backends", "recorded", "traced")

    def __init__(self, traced: Entry, recorded: Entry, backends: int):
        self.traced, self.recorded, self.backends = traced, recorded, backends

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedKernel) and (self.traced, self.recorded, self.backends) == (
            other.traced,
            other.recorded,
            other.backends,
        )

    __hash__ = object.__hash__

    def __call__(self, op: Operator, bits: int, args: Args, kwargs: Kwargs) -> Any:
        """Trace the kernel, or record the call."""
        records = traces.keeps_kernels or (1 << (bits & BACKENDS).bit_length() >> 1) & self.backends
        return run_entry(self.recorded if records else self.traced, op, bits, args, kwargs)


# -- kernels for some dtypes -------------------------------------------------------------------------------------------
class Selector:
    """The boxed kernel of an entry with kernels for some dtypes: chooses one by the dtype of the arguments.

    Args:
        base: the entry for every other dtype.
        by_dtype: the entries that differ.
    """

    __slots__ = ("base", "by_dtype")

    def __init__(self, base: Entry, by_dtype: dict[DType | None, Entry]):
        self.base, self.by_dtype = base, by_dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and (self.base, self.by_dtype) == (other.base, other.by_dtype)

    __hash__ = object.__hash__

    def choose(self, op: Operator, args: Args, kwargs: Kwargs) -> Entry:
        """The entry for a bound call."""
        return self.by_dtype.get(dispatch_dtype(op, args, kwargs), self.base)

    def __call__(self, op: Operator, bits: int, args: Args, kwargs: Kwargs) -> Any:
        """Run the kernel for the dtypes of a call."""
        return run_entry(self.choose(op, args, kwargs), op, bits, args, kwargs)


def run_entry(entry: Entry, op: Operator, bits: int, args: Args, kwargs: Kwargs) -> object:
    """Run the kernel of an entry; the highest key of the key set ``bits`` is the entry's."""
    if entry.kind == "fallthrough":
        return op.dispatch(bits & below(DispatchKey(bits.bit_length() - 1)), args, kwargs)
    if entry.boxed:
        return entry.fn(op, bits, args, kwargs)
    return entry.fn(*args, **kwargs)


def choose_entry(entry: Entry, op: Operator, args: Args, kwargs: Kwargs) -> Entry:
    """The entry that serves a bound call: the one of the call's dtype if some dtypes have their own kernel."""
    return entry.fn.choose(op, args, kwargs) if isinstance(entry.fn, Selector) else entry


def find_external_kernel(op: Operator, key: DispatchKey) -> Registration | None:
    """The kernel of another package that serves one of tandem's own operators at a key, for every dtype or for one."""
    if not op.site.own:
        return None
    entry: Entry = op.table[key]
    items = [each.registration for each in (entry, *entry.dtypes.values()) if each.registration is not None]
    return next((registration for registration in items if not registration.site.own), None)


def _split_by_dtype(index: int, base: Entry, special: Mapping[DType, list[Entry]]) -> Entry:
    differing: dict[DType | None, Entry] = {
        dtype: table[index] for dtype, table in special.items() if table[index] != base
    }
    if not differing:
        return base
    kind = "kernel" if base.kind in ("missing", "fallthrough") else base.kind
    if all(entry.kind == "fallthrough" for entry in differing.values()) and base.kind == "fallthrough":
        kind = "fallthrough"
    shown = MappingProxyType({dtype.name: entry for dtype, entry in differing.items() if dtype is not None})
    return Entry(kind, base.registration, Selector(base, differing), True, shown)


_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def dispatch_dtype(op: Operator, args: Args, kwargs: Kwargs) -> DType | None:
    """The dtype that chooses the kernel, or None if the arguments have no common one.

    Only tensor arguments of the highest kind count (complex, then floating-point, then integers, then booleans), so
    that an index or a mask does not. They must agree: the kernel for every dtype serves a call on float32 and float64.
    """
    result, rank = None, -1
    for value in tensors_of(op, args, kwargs):
        dtype: DType = value.dtype
        this = _RANK[dtype.kind]
        if this > rank:
            result, rank = dtype, this
        elif this == rank and result is not dtype:
            result = None
    return result
