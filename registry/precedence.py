"""The dispatch table of an operator, computed from its registrations and the fallbacks.

Source: ``OperatorEntry::computeDispatchTableEntry`` of PyTorch, whose precedence this is. In a slot, the later of these
that there is: the key's fallback; a kernel for ``Autograd``; one for ``CompositeImplicit``; ``CompositeExplicit``;
``CompositeExplicitNonFunctional``; the key's group (``Dense``, ``Sparse``, ``Quantized``); the key's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from .dtypes import DType
from .keys import ALIASES, AUTOGRAD, BACKENDS, BEHIND, GROUPS, DispatchKey, below, keys_of
from .registration import Kernel, KeyName, Registration, fallthrough
from .shortage import ambiguous, missing
from .values import TensorBase

Held = Mapping[KeyName, list[Registration]]


class Entry(NamedTuple):
    """One slot of a dispatch table.

    Attributes:
        kind: ``"kernel"``, ``"composite_explicit"``, ``"composite_implicit"``, ``"fallback"``, ``"fallthrough"``,
            ``"ambiguous"`` or ``"missing"``.
        registration: what fills the slot; None where it is missing, ambiguous, or filled for some dtypes only.
        fn: what the dispatcher calls.
        boxed: whether as ``fn(op, keyset, args, kwargs)``.
        dtypes: the entries of the dtypes that have one of their own, by the dtype's name.
    """

    kind: str
    registration: Registration | None
    fn: Kernel
    boxed: bool = False
    dtypes: Mapping[str, Entry] = MappingProxyType({})


Table = tuple[Entry, ...]

# Backend fallbacks, newest last. Layers that nobody has registered let calls fall through.
fallbacks: dict[DispatchKey, list[Registration]] = {}

UNSERVED_LAYER = Entry("fallthrough", None, fallthrough)
MISSING = Entry("missing", None, missing, True)
AMBIGUOUS = Entry("ambiguous", None, ambiguous, True)


def filled(kind: str, registration: Registration) -> Entry:
    """The slot that a registration fills."""
    if registration.fn is fallthrough:
        return Entry("fallthrough", registration, fallthrough)
    return Entry(kind, registration, *registration.call)


_row: list[Entry] = []  # what `fallback_row` gives, until the fallbacks change


def fallback_row() -> list[Entry]:
    """The slots of an operator without kernels; the lock is held."""
    if not _row:
        for key in DispatchKey:
            if fallbacks.get(key):
                _row.append(filled("fallback", fallbacks[key][-1]))
            else:
                _row.append(MISSING if BACKENDS >> key & 1 else UNSERVED_LAYER)
    return _row


def fallbacks_changed() -> None:
    """Have the row made anew; the lock is held."""
    _row.clear()


@cache
def places(bits: int) -> tuple[int, ...]:
    """The slots of a key set."""
    return tuple(map(int, keys_of(bits)))


def compute(held: Held, row: list[Entry]) -> tuple[Table, int]:
    """The table of an operator, and the key set of the slots that do not let calls fall through.

    Args:
        held: its registrations by key, newest last.
        row: the fallbacks' slots.
    """
    dtypes = {d for registered in held.values() for r in registered for d in r.dtypes or ()}
    table = _table({key: newest for key in held if (newest := in_force(held, key)) is not None}, row)
    if dtypes:
        special = {d: _table(_for_dtype(held, d), row) for d in sorted(dtypes, key=lambda d: d.name)}
        table = [_by_dtype(place, entry, special) for place, entry in enumerate(table)]
    mask = 0
    for place, entry in enumerate(table):
        if entry.kind != "fallthrough":
            mask |= 1 << place
    return tuple(table), mask


def in_force(held: Held, key: KeyName, dtype: DType | None = None) -> Registration | None:
    """The newest registration for a key and every dtype, or for one dtype."""
    for registration in reversed(held.get(key, ())):
        if registration.dtypes is None if dtype is None else dtype in (registration.dtypes or ()):
            return registration
    return None


def _for_dtype(held: Held, dtype: DType) -> dict[KeyName, Registration]:
    found = {key: in_force(held, key, dtype) or in_force(held, key) for key in held}
    return {key: registration for key, registration in found.items() if registration is not None}


def _table(newest: Mapping[KeyName, Registration], row: list[Entry]) -> list[Entry]:
    """The slots from one registration a key: each step writes over what has a lower precedence."""
    table = row.copy()

    def lay(kind: str, name: str, bits: int) -> None:
        if name in newest:
            entry = filled(kind, newest[name])
            for place in places(bits):
                table[place] = entry

    lay("kernel", "Autograd", AUTOGRAD)
    if "CompositeImplicit" in newest:
        _lay_implicit(newest, table, lay)
    lay("composite_explicit", "CompositeExplicit", ALIASES["CompositeExplicit"])
    lay("composite_explicit", "CompositeExplicitNonFunctional", ALIASES["CompositeExplicitNonFunctional"])
    for group, bits in GROUPS.items():
        lay("kernel", group, bits)
    for key, registration in newest.items():
        if isinstance(key, DispatchKey):
            table[key] = filled("kernel", registration)
    return table


# A level of grad asks for the kernel of an autograd key, one of vmap for that of Batched; before either, what is to be
# cast is cast.
ASKED_BY_LEVELS = AUTOGRAD | 1 << DispatchKey.Batched | 1 << DispatchKey.Autocast


def _lay_implicit(
    newest: Mapping[KeyName, Registration], table: list[Entry], lay: Callable[[str, str, int], None]
) -> None:
    """A CompositeImplicit body stays out of autograd keys whose backends have kernels, which it would bypass."""
    served = sum(1 << key for key in newest if isinstance(key, DispatchKey)) & BACKENDS
    for group, bits in GROUPS.items():
        if group in newest:
            served |= bits
    if "CompositeExplicit" not in newest:
        stopped = sum(1 << key for key, backends in BEHIND.items() if served & backends)
        if any(isinstance(key, DispatchKey) and ASKED_BY_LEVELS >> key & 1 for key in newest):
            stopped |= 1 << DispatchKey.Level
        lay("composite_implicit", "CompositeImplicit", ALIASES["CompositeImplicit"] & ~stopped)
    if served & BEHIND[DispatchKey.AutogradOther]:
        table[DispatchKey.AutogradOther] = AMBIGUOUS


# -- kernels for some dtypes -------------------------------------------------------------------------------------------
class Selector:
    """The boxed kernel of a slot that some dtypes fill otherwise.

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

    def choose(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Entry:
        """The entry for a bound call."""
        return self.by_dtype.get(dispatch_dtype(op, args, kwargs), self.base)

    def __call__(self, op: Any, bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return run_entry(self.choose(op, args, kwargs), op, bits, args, kwargs)


def run_entry(entry: Entry, op: Any, bits: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run what fills a slot; ``bits`` is the key set, whose highest key is the slot's."""
    if entry.kind == "fallthrough":
        return op.dispatch(bits & below(DispatchKey(bits.bit_length() - 1)), args, kwargs)
    if entry.boxed:
        return entry.fn(op, bits, args, kwargs)
    return entry.fn(*args, **kwargs)


def chosen(entry: Entry, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Entry:
    """The entry that serves a bound call: of a slot that some dtypes fill otherwise, the one of the call's dtype."""
    return entry.fn.choose(op, args, kwargs) if isinstance(entry.fn, Selector) else entry


def from_outside(op: Any, key: DispatchKey) -> Registration | None:
    """The kernel from outside that serves one of tandem's own operators at a key, for every dtype or for one."""
    if not op.place.own:
        return None
    entry: Entry = op.table[key]
    found = [each.registration for each in (entry, *entry.dtypes.values()) if each.registration is not None]
    return next((registration for registration in found if not registration.place.own), None)


def _by_dtype(place: int, base: Entry, special: Mapping[DType, list[Entry]]) -> Entry:
    differing: dict[DType | None, Entry] = {
        dtype: table[place] for dtype, table in special.items() if table[place] != base
    }
    if not differing:
        return base
    kind = "kernel" if base.kind in ("missing", "fallthrough") else base.kind
    if all(entry.kind == "fallthrough" for entry in differing.values()) and base.kind == "fallthrough":
        kind = "fallthrough"
    shown = MappingProxyType({dtype.name: entry for dtype, entry in differing.items() if dtype is not None})
    return Entry(kind, base.registration, Selector(base, differing), True, shown)


_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def dispatch_dtype(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DType | None:
    """The dtype by which a kernel is chosen, or None if there is no single one.

    Of the tensor arguments those of the highest kind count (complex, then floating-point, then integers, then
    booleans), so that an index or a mask beside floating-point data does not. They must agree: a call on float32 and
    float64 is for the kernel that serves every dtype.
    """
    found, rank = None, -1
    for value in tensors_of(op, args, kwargs):
        dtype: DType = value.dtype
        this = _RANK[dtype.kind]
        if this > rank:
            found, rank = dtype, this
        elif this == rank and found is not dtype:
            found = None
    return found


def tensors_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors among the arguments of a bound call."""
    binder = op.binder
    values = [args[index] for index, _ in binder.tensor_positions]
    values += [kwargs[name] for name in binder.tensor_keywords]
    flat = [item for value in values for item in (value if isinstance(value, (tuple, list)) else (value,))]
    return [value for value in flat if isinstance(value, TensorBase)]
