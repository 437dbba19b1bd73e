"""Conflicts between registrations: detect repeated ones (a module or cell that is run again) and reject the others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from ..errors import RegistrationError
from .registration import Registration, RegistrationSite
from .schemas.schema import Schema


def check_single_definer(namespace: str, there: RegistrationSite, new: RegistrationSite) -> None:
    """Reject a second ``"DEF"`` library of a namespace, unless the module or cell of the first one is run again.

    Raises:
        RegistrationError: the namespace has a ``"DEF"`` library from other code.
    """
    if not new.run_again(there):
        raise RegistrationError(
            f"namespace {namespace!r} already has a 'DEF' library, created at {there.origin}; this one is created at "
            f"{new.origin}. Add to the namespace with Library({namespace!r}, 'FRAGMENT'), or close the first library"
        )


def check_definition(there: Any, new: Any) -> None:
    """Reject a second definition of an operator, unless the code of the first one is run again.

    Raises:
        RegistrationError: other code has defined the operator.
    """
    if new.site.run_again(there.site) or (new.site.origin == there.site.origin and not new.site.own):
        return
    raise RegistrationError(
        f"{new.name} is already defined:\n"
        f"  first: {there.schema}\n"
        f"         at {there.site.origin}\n"
        f"  new:   {new.schema}\n"
        f"         at {new.site.origin}\n"
        f"  {describe_schema_difference(there.schema, new.schema)}"
    )


def describe_schema_difference(there: Schema, new: Schema) -> str:
    """The differences between two schemas of one operator, as text."""
    if str(there) == str(new):
        return "the schemas are the same; remove one of the definitions"
    items = []
    for what in ("arguments", "returns"):
        pairs = zip_longest(getattr(there, what), getattr(new, what))
        for number, (old, now) in enumerate(pairs, 1):
            if str(old) != str(now):
                kind = f"{what[:-1]} {number}"
                items.append(
                    f"{kind} is `{_text_or_nothing(old)}` there and `{_text_or_nothing(now)}` in the new one"
                )
    return "they differ: " + "; ".join(items or ["in their order or markers"])


def _text_or_nothing(item: object) -> str:
    return "nothing" if item is None else str(item)


def find_replaced_kernel(
    registration: Registration, held: Sequence[Registration], allow_override: bool
) -> Registration | None:
    """The registration that a new one replaces because the same code made both; None if the new one is added.

    Raises:
        RegistrationError: other code has registered a kernel for the same key and dtypes.
    """
    if registration.site.own:
        return None
    rivals = [other for other in held if other.overlaps(registration) and not other.site.own]
    for other in reversed(rivals):
        if registration.is_rerun_of(other, allow_override):
            return other
    if not rivals or allow_override:
        return None
    there = rivals[-1]
    what = f"a fallback for {there.key_name}" if there.operator == "*" else (
        f"{there.operator} has a kernel for {there.key_name}"
    )  # fmt: skip
    dtypes = f" and {', '.join(sorted(d.name for d in there.dtypes))}" if there.dtypes else ""
    raise RegistrationError(
        f"{what}{dtypes} already:\n"
        f"  first: {there.name} at {there.origin} ({there.library})\n"
        f"  new:   {registration.name} at {registration.origin} ({registration.library})\n"
        f"  pass allow_override=True to shadow the first kernel while the new one is registered"
    )
