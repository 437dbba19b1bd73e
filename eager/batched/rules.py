"""Batching rules from outside: each becomes a kernel of its operator for the Batched key."""

from __future__ import annotations

from typing import Any

from ...errors import RegistrationError
from ...registry.late import declare_promised
from ...registry.library import Library
from ...registry.namespace import Packet
from ...registry.operator import Operator, operators
from ..levels import highest_level
from ..record import Args, Kwargs
from .kernel import below_modes, info_of
from .ways import Rule, Way


class RuleKernel:
    """The kernel for the Batched key that a rule from outside becomes."""

    def __init__(self, rule: Rule):
        self.rule = rule
        self.__qualname__ = getattr(rule, "__qualname__", repr(rule))

    def __call__(self, op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
        level = highest_level(op, args, kwargs)
        return below_modes(level, op, _way_with(op, self.rule), info_of(level, op), args, kwargs)


_libraries: dict[str, Library] = {}


def register_rule(op: Any, rule: Rule) -> Any:
    """Put a rule in force for an operator: what :func:`tandem.register_vmap` does; arguments are described there."""
    operator = _operator(op)
    if not callable(rule):
        raise RegistrationError(f"a batching rule is a function, not {rule!r}")
    namespace, _, name = operator.name.partition("::")
    library = _libraries.get(namespace) or _libraries.setdefault(namespace, Library(namespace, "IMPL"))
    return library.impl(name, RuleKernel(rule), "Batched", boxed=True, allow_override=True)


def _way_with(op: Operator, rule: Rule) -> Way:
    """How an operator is run on a batch with a rule from outside."""
    lists = frozenset(i for i, is_list in op.binder.tensor_positions if is_list)
    return Way(op.version, rule, checked=True, lists=lists)


def _operator(op: Any) -> Operator:
    """An operator of an operator, its function, or its full name.

    Raises:
        RegistrationError: it is none.
    """
    if isinstance(op, str):
        declare_promised(op)
    found = operators.get(op) if isinstance(op, str) else op
    if isinstance(found, Packet) and len(found.overloads()) == 1:
        found = getattr(found, found.overloads()[0])
    found = getattr(found, "operator", found)
    if not isinstance(found, Operator):
        raise RegistrationError(
            f"a batching rule is for an operator (one overload of it), its function, or its full name such as "
            f"'td::exp', not {op!r}"
        )
    return found
