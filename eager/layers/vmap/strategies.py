"""Choose how an operator runs on a batch: by its batching rule, by decomposition, or by a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from ....named_tuple import NamedTuple
from ....operators.declare.batching import elementwise
from ....operators.declare.declaration import Declaration
from ....registry.operator import Operator
from ...tensor.inplace import functional

Rule = Callable[..., object]


class Strategy(NamedTuple):
    """The strategy by which an operator runs on a batch.

    Attributes:
        version: the version of the operator for which this was chosen.
        rule: its batching rule; None for a loop over the examples or a decomposition.
        decompose: the body of a composite, which is run on the batched values.
        inner: for an in-place operator, the functional one whose rule is used; its first argument is written.
        checked: whether the rule is user-defined, so that its results are checked.
        lists: positions of the arguments that are lists of tensors.
        writes: whether the schema declares that an argument is written.
        elementwise: whether the rule is that of the elementwise kinds.
    """

    version: int
    rule: Rule | None
    decompose: Rule | None = None
    inner: Operator | None = None
    checked: bool = False
    lists: frozenset[int] = frozenset()
    writes: bool = False
    elementwise: bool = False


class StrategyCache(dict[int, dict[Operator, Any]]):
    """The strategies and batch infos that calls of one function use, by batch size and operator.

    Attributes:
        name: the name of the transformed function, for messages; empty before the first call.
    """

    name = ""


_strategies: WeakKeyDictionary[Operator, Strategy] = WeakKeyDictionary()


def find_strategy(op: Operator) -> Strategy:
    """The current strategy of an operator."""
    result = _strategies.get(op)
    if result is None or result.version != op.version:
        result = _strategies[op] = _choose_strategy(op)
    return result


def _choose_strategy(op: Operator) -> Strategy:
    version, schema = op.version, op.schema
    lists = frozenset(i for i, is_list in op.binder.tensor_positions if is_list)
    writes = any(argument.is_write for argument in schema.arguments)
    decl = op.decl if isinstance(op.decl, Declaration) else None
    if decl is not None and decl.batching is not None:
        checked, plain = schema.namespace != "td", decl.batching is elementwise
        return Strategy(version, decl.batching, None, None, checked, lists, writes, plain)
    inner = functional.get(op)
    if inner is not None:
        strategy = find_strategy(inner)
        return Strategy(version, strategy.rule, None, inner, strategy.checked, lists, True)
    return Strategy(version, None, _body(op, decl), lists=lists, writes=writes)


def _body(op: Operator, decl: Declaration | None) -> Rule | None:
    """The body of a composite, which is written with other operators, or None."""
    if decl is not None and decl.kind == "composite" and decl.body is not None:
        return decl.body
    if decl is not None and decl.kind == "custom":
        return None  # a function of plain tensors
    for key in ("CompositeImplicit", "CompositeExplicit"):
        kernel = op.registered(key)
        if kernel is not None and not kernel.boxed and not kernel.with_keyset:
            return kernel.fn
    return None
