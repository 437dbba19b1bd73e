"""Dispatch tables to look at: which kernel serves which key, from which registration.

Source: PyTorch's ``torch._C._dispatch_dump_table``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import ArgumentError, UnknownKeyError, UnknownOperatorError
from .keys import DispatchKey
from .library import find_overloads
from .operator import Entry, Operator
from .values import describe


class DispatchTable(Mapping[str, Entry]):
    """The table of one operator: key name to :class:`Entry`; prints as one line a key, highest key first."""

    def __init__(self, operator: Operator):
        self.operator = operator
        self._entries = dict(zip((key.name for key in DispatchKey), operator.table))

    def __getitem__(self, key: str) -> Entry:
        if not isinstance(key, str) or key not in self._entries:
            raise UnknownKeyError(f"no dispatch key {key!r}; the keys are {', '.join(self._entries)}")
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        lines = [str(self.operator.schema)]
        for name, entry in reversed(self._entries.items()):
            registration = entry.registration
            what = (
                ""
                if registration is None
                else f"{registration.name}  [{registration.key_name}] {registration.origin}"
            )
            lines.append(f"  {name:<16} {entry.kind:<19} {what}".rstrip())
        return "\n".join(lines)


def dispatch_table(name: str) -> DispatchTable:
    """The dispatch table of an operator.

    Args:
        name: ``"add"``, ``"add.Tensor"``, or with a namespace, ``"myns::mul_add"``.

    Returns:
        A mapping from key names to entries that prints as a table.

    Raises:
        UnknownOperatorError: no operator has that name.
        ArgumentError: the name is no string.

    >>> import tandem as td
    >>> td.dispatch_table("add")["CPU"].kind
    'kernel'
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f'dispatch_table takes the name of an operator, such as "add", not {describe(name)}'
        )
    namespace, colons, rest = name.rpartition("::")
    stem, dot, overload = rest.partition(".")
    for operator in find_overloads(namespace if colons else "td", stem):
        if not dot or operator.schema.overload == overload:
            return DispatchTable(operator)
    raise UnknownOperatorError(f"{namespace or 'td'}::{stem} has no overload {overload!r}")
