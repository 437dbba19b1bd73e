"""Registrations that meet an earlier one: which are the same again, and which are an error."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from ..errors import RegistrationError
from .registration import Place, Registration
from .schema import Schema


def check_only_definer(namespace: str, there: Place, new: Place) -> None:
    """Refuse a second ``"DEF"`` library, unless the first one's module or cell is being run again.

    Raises:
        RegistrationError: both libraries are meant to be there.
    """
    if not new.run_again(there):
        raise RegistrationError(
            f"namespace {namespace!r} has a 'DEF' library already, made at {there.origin}; this one is made at "
            f"{new.origin}. Add to it with Library({namespace!r}, 'FRAGMENT'), or close the first"
        )


def check_definition(there: Any, new: Any) -> None:
    """Refuse a second definition of an operator, unless it is the first one, run again.

    Raises:
        RegistrationError: both operators are meant to be there.
    """
    if new.place.run_again(there.place) or (new.place.origin == there.place.origin and not new.place.own):
        return
    raise RegistrationError(
        f"{new.name} is defined already:\n"
        f"  there: {there.schema}\n"
        f"         at {there.place.origin}\n"
        f"  new:   {new.schema}\n"
        f"         at {new.place.origin}\n"
        f"  {schema_difference(there.schema, new.schema)}"
    )


def schema_difference(there: Schema, new: Schema) -> str:
    """In what two schemas of one operator differ, in words."""
    if str(there) == str(new):
        return "the schemas are the same; remove one of the definitions"
    found = []
    for what in ("arguments", "returns"):
        pairs = zip_longest(getattr(there, what), getattr(new, what))
        for number, (old, now) in enumerate(pairs, 1):
            if str(old) != str(now):
                kind = f"{what[:-1]} {number}"
                found.append(f"{kind} is `{_or_none(old)}` there and `{_or_none(now)}` in the new one")
    return "they differ: " + "; ".join(found or ["in their order or markers"])


def _or_none(item: Any) -> str:
    return "nothing" if item is None else str(item)


def check_kernel_is_new(
    registration: Registration, held: Sequence[Registration], allow_override: bool
) -> Registration | None:
    """The registration that a new one replaces, having been made by the same lines; None if it stands beside them.

    Raises:
        RegistrationError: another place has registered a kernel for the same key and dtypes.
    """
    if registration.place.own:
        return None
    rivals = [other for other in held if other.overlaps(registration) and not other.place.own]
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
        f"  there: {there.name} at {there.origin} ({there.library})\n"
        f"  new:   {registration.name} at {registration.origin} ({registration.library})\n"
        f"  pass allow_override=True to shadow the first one for as long as the new one is registered"
    )
