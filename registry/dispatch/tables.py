"""DispatchTable: a printable view of an operator's dispatch table and registrations.

Source: PyTorch's ``torch._C._dispatch_dump_table`` (the computed table) and ``_dispatch_dump`` (the registrations).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...errors import ArgumentError, UnknownKeyError, UnknownOperatorError
from ..dtypes import DType
from ..formatting import short_repr
from ..library import find_overloads
from ..lock import lock
from ..operator import Operator
from ..registration import KeyName, Registration
from ..values import describe
from .keys import ALIASES, DispatchKey
from .precedence import Entry


class DispatchTable(Mapping[str, Entry]):
    """The dispatch table of one operator: key name to :class:`Entry`; prints one line for each key, highest key first.

    Attributes:
        operator: the operator.
        registrations: its registered kernels, newest first under each key, including shadowed ones.
    """

    def __init__(self, operator: Operator):
        self.operator = operator
        with lock:
            self._entries = dict(zip((key.name for key in DispatchKey), operator.table))
            held = operator.kernels
        self.registrations: tuple[Registration, ...] = tuple(
            registration for key in sorted(held, key=_order) for registration in reversed(held[key])
        )

    def __getitem__(self, key: str) -> Entry:
        if not isinstance(key, str) or key not in self._entries:
            raise UnknownKeyError(
                f"no dispatch key {short_repr(key)}; the keys are {', '.join(self._entries)}"
            )
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        operator = self.operator
        lines = [str(operator.schema)]
        if operator.site.origin:
            lines.append(f"defined at {operator.site.origin}")
        for name, entry in reversed(self._entries.items()):
            lines.append(_line(name, entry))
            lines += [_line(f"  {dtype}", special) for dtype, special in entry.dtypes.items()]
        lines.append("registrations:" if self.registrations else "no registrations")
        seen: set[tuple[str, frozenset[DType]]] = set()
        for registration in self.registrations:
            lines.append(_registration_line(registration, seen))
        return "\n".join(lines)


def _order(key: KeyName) -> tuple[bool, int]:
    """Keys before aliases, the highest first."""
    return (True, list(ALIASES).index(key)) if isinstance(key, str) else (False, -key)


def _line(name: str, entry: Entry) -> str:
    what = "" if entry.registration is None else _source(entry.registration)
    return f"  {name:<20} {entry.kind:<19} {what}".rstrip()


def _source(registration: Registration) -> str:
    return f"{registration.name}  [{registration.key_name}, {registration.library}] {registration.origin}"


def _registration_line(registration: Registration, seen: set[tuple[str, frozenset[DType]]]) -> str:
    """The line of one registration; ``seen`` holds the newer ones, which may shadow it."""
    key, dtypes = registration.key_name, registration.dtypes or frozenset()
    above = {dtype for other, those in seen if other == key for dtype in those}
    shadowed = dtypes <= above if dtypes else (key, dtypes) in seen
    seen.add((key, dtypes))
    notes = [f"for {', '.join(sorted(d.name for d in dtypes))}"] if dtypes else []
    notes += ["alias"] * isinstance(registration.key, str) + ["boxed"] * registration.boxed
    notes += ["takes the key set"] * registration.with_keyset + ["shadowed"] * shadowed
    text = f"  {key:<20} {registration.name}  [{registration.library}] {registration.origin}"
    return text + (f"  ({'; '.join(notes)})" if notes else "")


def dispatch_table(name: str | Operator) -> DispatchTable:
    """The dispatch table of an operator.

    Args:
        name: ``"add"``, ``"add.Tensor"``, or with a namespace, ``"myns::mul_add"``; or the operator itself.

    Returns:
        A mapping from key names to entries that prints as a table.

    Raises:
        UnknownOperatorError: no operator has that name.
        ArgumentError: it is neither a name nor an operator.

    >>> import tandem as td
    >>> td.dispatch_table("add")["CPU"].kind
    'kernel'
    """
    operator = getattr(name, "operator", name)
    if isinstance(operator, Operator):
        return DispatchTable(operator)
    if not isinstance(name, str):
        raise ArgumentError(
            f'dispatch_table takes the name of an operator, such as "add", not {describe(name)}'
        )
    namespace, colons, rest = name.rpartition("::")
    stem, dot, overload = rest.partition(".")
    for operator in find_overloads(namespace if colons else "td", stem):
        if not dot or operator.schema.overload == ("" if overload == "default" else overload):
            return DispatchTable(operator)
    raise UnknownOperatorError(f"{namespace or 'td'}::{stem} has no overload {overload!r}")
