"""User-defined batching rules: each becomes a kernel of its operator for the Batched key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import RegistrationError
from ....registry.lazy_operators import materialize
from ....registry.library import Library
from ....registry.namespace import OverloadPacket, ops
from ....registry.operator import Operator, operators
from ..levels import highest_level
from .kernel import make_batch_info, run_below_modes
from .strategies import Rule, Strategy

if TYPE_CHECKING:
    from ....registry.library import Handle
    from ....registry.types import Args, Kwargs


class RuleKernel:
    """The kernel for the Batched key that runs a user-defined rule."""

    def __init__(self, rule: Rule):
        self.rule = rule
        self.__qualname__ = getattr(rule, "__qualname__", repr(rule))

    def __call__(self, op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
        level = highest_level(op, args, kwargs)
        return run_below_modes(
            level, op, _strategy_for_rule(op, self.rule), make_batch_info(level, op), args, kwargs
        )


_libraries: dict[str, Library] = {}


def register_rule(op: object, rule: Rule) -> Handle:
    """Register a batching rule; see :func:`tandem.register_vmap`."""
    operator = operator_of(op)
    if not callable(rule):
        raise RegistrationError(f"a batching rule is a function, not {rule!r}")
    namespace, _, name = operator.name.partition("::")
    library = _libraries.get(namespace) or _libraries.setdefault(namespace, Library(namespace, "IMPL"))
    return library.impl_layer(name, RuleKernel(rule), "Batched")


def _strategy_for_rule(op: Operator, rule: Rule) -> Strategy:
    """The strategy of an operator with a user-defined rule."""
    lists = frozenset(i for i, is_list in op.binder.tensor_positions if is_list)
    return Strategy(op.version, rule, checked=True, lists=lists)


def _main_overload(packet: OverloadPacket) -> object:
    """The overload without a name, the only one, or the one whose function is `td.name`; else the packet."""
    overloads = packet.overloads()
    if "default" in overloads:
        return packet.default
    if len(overloads) == 1 or packet.__module__ == "tandem.ops.td":  # tandem's first is the public function's
        return getattr(packet, overloads[0])
    return packet


def operator_of(op: object) -> Operator:
    """Find an operator from the operator itself, its function, or its full name.

    Raises:
        RegistrationError: the object is none of these.
    """
    result = op
    if isinstance(op, str):
        materialize(op)
        namespace, _, name = op.partition("::")
        result = operators.get(op) or getattr(getattr(ops, namespace, None), name, None)
    if isinstance(result, OverloadPacket):
        result = _main_overload(result)
    result = getattr(result, "operator", result)
    if not isinstance(result, Operator):
        raise RegistrationError(
            f"an operator is needed: one overload, its function, or its full name such as 'td::exp', "
            f"not {op!r}"
        )
    return result
