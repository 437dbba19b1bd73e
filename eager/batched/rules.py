"""Batching rules from outside: each becomes a kernel of its operator for the Batched key."""

from __future__ import annotations

from typing import Any

from ...errors import RegistrationError
from ...registry.function import OperatorFunction
from ...registry.library import Library
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
    """Say how an operator runs on a batch, in the place of what its declaration or its body says.

    Args:
        op: the operator, its function, or its full name.
        rule: ``rule(info, in_dims, *args, **kwargs) -> (result, out_dims)``. The arguments are those of the call;
            ``in_dims`` has for each positional one 0 where a batch axis is in front of it, else None (for a list of
            tensors a tuple of these); ``info.batch_size`` is the length of the batch, ``info.call`` the operator.
            ``out_dims`` says which axis of the result is the batch; None: it is the same for all examples; for several
            results a tuple.

    Returns:
        A handle whose ``remove()`` puts what was in force before in force again.

    Raises:
        RegistrationError: ``op`` is no operator, or the rule is not callable.

    >>> import tandem as td
    >>> from tandem.eager.batched.rules import register_rule
    >>> with td.Library("doc", "DEF") as lib:
    ...     _ = lib.define("total(Tensor x) -> Tensor")
    ...     _ = lib.impl("total", lambda x: td.asarray(x.numpy().sum()), "CPU")
    ...     with register_rule("doc::total", lambda info, in_dims, x: (x.sum(tuple(range(1, x.ndim))), 0)):
    ...         td.vmap(td.ops.doc.total)(td.ones((2, 3))).tolist()
    [3.0, 3.0]
    """
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
    found = (
        op.operator if isinstance(op, OperatorFunction) else operators.get(op) if isinstance(op, str) else op
    )
    if not isinstance(found, Operator):
        raise RegistrationError(
            f"a batching rule is for an operator, its function or its full name such as 'td::exp', not {op!r}"
        )
    return found
