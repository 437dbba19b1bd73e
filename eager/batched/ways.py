"""Which way the Batched layer runs an operator: by its declaration's rule, by its body, or by a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ...operators.batching import elementwise
from ...operators.declare import Declaration
from ...registry.operator import Operator
from ..inplace import functional

Rule = Callable[..., Any]


class Way(NamedTuple):
    """How an operator is run on a batch.

    Attributes:
        version: the operator's version that this was read from.
        rule: its rule; None for a loop over the examples, or where it is ``decompose``d.
        decompose: the body of a composite, which is run on the batched values.
        inner: for an in-place operator, the functional one whose rule this is; it writes its first argument.
        checked: whether the rule is from outside, so that what it returns is looked at.
        lists: places of the arguments that are lists of tensors.
        writes: whether the schema says that an argument is written.
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


_ways: WeakKeyDictionary[Operator, Way] = WeakKeyDictionary()


def way_of(op: Operator) -> Way:
    """How an operator is run on a batch, as registered now."""
    found = _ways.get(op)
    if found is None or found.version != op.version:
        found = _ways[op] = _find(op)
    return found


def _find(op: Operator) -> Way:
    version, schema = op.version, op.schema
    lists = frozenset(i for i, is_list in op.binder.tensor_positions if is_list)
    writes = any(argument.is_write for argument in schema.arguments)
    decl = op.decl if isinstance(op.decl, Declaration) else None
    if decl is not None and decl.batching is not None:
        checked, plain = schema.namespace != "td", decl.batching is elementwise
        return Way(version, decl.batching, None, None, checked, lists, writes, plain)
    inner = functional.get(op)
    if inner is not None:
        way = way_of(inner)
        return Way(version, way.rule, None, inner, way.checked, lists, True)
    return Way(version, None, _body(op, decl), lists=lists, writes=writes)


def _body(op: Operator, decl: Declaration | None) -> Rule | None:
    """The body that is written with other operators, if there is one."""
    if decl is not None and decl.kind == "composite" and decl.body is not None:
        return decl.body
    if decl is not None and decl.kind == "custom":
        return None  # a function of plain tensors
    for key in ("CompositeImplicit", "CompositeExplicit"):
        held = op.registered(key)
        if held is not None and not held.boxed and not held.with_keyset:
            return held.fn
    return None
