"""Backward compatibility of schemas: find the changes that break callers of an older schema.

Source: ``c10::FunctionSchema::isBackwardCompatibleWith``. Two things differ. Keyword-only arguments are matched by
name, for their order means nothing to a caller in Python; and a new argument ``out`` needs a default like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .schema import Argument, Return, Schema, Type

_SAME = {"SymInt": "int", "DeviceIndex": "int"}  # types of the same values
_SCALARS = frozenset(("int", "float", "complex"))


def find_incompatibilities(old: Schema, new: Schema) -> list[str]:
    """The reasons why callers of ``old`` would break with ``new``."""
    return [*_head_faults(old, new), *_argument_faults(old, new), *_return_faults(old, new)]


def _head_faults(old: Schema, new: Schema) -> Iterator[str]:
    if old.full_name != new.full_name:
        yield f"the name is {new.full_name}, it was {old.full_name}"
    if (old.varargs, old.varrets) != (new.varargs, new.varrets):
        yield "'...' has come or gone"


def _argument_faults(old: Schema, new: Schema) -> Iterator[str]:
    by_name = {argument.name: argument for argument in new.arguments}
    for index, before in enumerate(old.arguments):
        after = by_name.get(before.name)
        if after is None:
            yield f"the argument {before.name!r} is gone"
        elif not before.kwarg_only and new.arguments.index(after) != index:
            yield f"the argument {before.name!r} has moved"
        else:
            yield from _argument_changes(before, after)
    known = {argument.name for argument in old.arguments}
    for argument in new.arguments:
        if argument.name not in known and not argument.has_default:
            yield f"the new argument {argument.name!r} has no default"


def _argument_changes(before: Argument, after: Argument) -> Iterator[str]:
    what = f"the argument {before.name!r}"
    if after.kwarg_only and not before.kwarg_only:
        yield f"{what} has become keyword-only"
    if not _accepts(after.type, before.type):
        yield f"{what} takes {_unaliased_text(after.type)}, which is not all of {_unaliased_text(before.type)}"
    if before.type.aliases() != after.type.aliases():
        yield f"{what} has the type {after.type}, it was {before.type}: the alias annotation differs"
    if before.has_default and (
        not after.has_default
        or type(before.default) is not type(after.default)
        or before.default != after.default
    ):
        now = after.default_text if after.has_default else "gone"
        yield f"the default of {before.name!r} is {now}, it was {before.default_text}"


def _return_faults(old: Schema, new: Schema) -> Iterator[str]:
    if len(old.returns) != len(new.returns):
        yield f"there are {len(new.returns)} results, there were {len(old.returns)}"
        return
    for index, (before, after) in enumerate(zip(old.returns, new.returns)):
        yield from _return_changes(f"result {index}", before, after)


def _return_changes(what: str, before: Return, after: Return) -> Iterator[str]:
    if before.name != after.name:
        yield f"{what} is named {after.name!r}, it was {before.name!r}"
    if not _accepts(before.type, after.type):
        yield f"{what} is {_unaliased_text(after.type)}, which is not always {_unaliased_text(before.type)}"
    if before.type.aliases() != after.type.aliases():
        yield f"{what} has the type {after.type}, it was {before.type}: the alias annotation differs"


def _unaliased_text(kind: Type) -> str:
    """The text of a type without its alias annotations."""
    if kind.element is None:
        return kind.base
    return _unaliased_text(kind.element) + (
        "?" if kind.form == "optional" else f"[{'' if kind.size is None else kind.size}]"
    )


def _accepts(wide: Type, narrow: Type) -> bool:
    """Whether all values of one type are values of another."""
    if wide.form == "base" and wide.base == "Any":
        return not _is_sized(narrow)
    if wide.form == "optional" and wide.element is not None:
        inner = narrow.element if narrow.form == "optional" and narrow.element is not None else narrow
        return _accepts(wide.element, inner)
    if wide.form != narrow.form:
        return False
    if (
        wide.element is not None and narrow.element is not None
    ):  # lists are mutable: their elements stay as they are
        return (
            wide.size == narrow.size
            and _accepts(wide.element, narrow.element)
            and _accepts(narrow.element, wide.element)
        )
    one, other = _SAME.get(wide.base, wide.base), _SAME.get(narrow.base, narrow.base)
    return one == other or (one == "Scalar" and other in _SCALARS)


def _is_sized(kind: Type) -> bool:
    """Whether a type is a sized list, for which a call may pass one value that is repeated."""
    return kind.size is not None or (kind.element is not None and _is_sized(kind.element))
