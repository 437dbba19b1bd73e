"""Which way the Batched layer runs an operator: by a registered rule, by its declaration's, by its body, by a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ...errors import RegistrationError
from ...operators.batching import elementwise
from ...operators.declare import Declaration
from ...registry.function import OperatorFunction
from ...registry.library import Handle
from ...registry.operator import Operator, lock, operators
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


_registered: WeakKeyDictionary[Operator, list[Rule]] = WeakKeyDictionary()
_ways: dict[Operator, Way] = {}


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
    held = _registered.get(op)
    if held:
        return Way(version, held[-1], checked=True, lists=lists, writes=writes)
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
    for key in ("CompositeImplicit", "CompositeExplicit"):
        held = op.registered(key)
        if held is not None and not held.boxed and not held.with_keyset:
            return held.fn
    return None


def as_operator(op: Any) -> Operator:
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


def register_rule(op: Any, rule: Rule) -> Handle:
    """Say how an operator runs on a batch.

    Args:
        op: the operator, its function, or its full name.
        rule: ``rule(info, in_dims, *args, **kwargs) -> (result, out_dims)``. The arguments are those of the call;
            ``in_dims`` has for each positional one 0 where a batch axis is in front of it, else None (for a list of
            tensors a tuple of these); ``info.batch_size`` is the length of the batch, ``info.call`` the operator.
            ``out_dims`` says which axis of the result is the batch; None: it is the same for all examples; for several
            results a tuple.

    Returns:
        A handle whose ``remove()`` puts the former rule in force again.

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
    operator = as_operator(op)
    if not callable(rule):
        raise RegistrationError(f"a batching rule is a function, not {rule!r}")
    with lock:
        _registered.setdefault(operator, []).append(rule)
    operator.recompute()
    return Handle(lambda: _withdraw(operator, rule))


def _withdraw(op: Operator, rule: Rule) -> None:
    with lock:
        held = _registered.get(op, [])
        for place in reversed(range(len(held))):
            if held[place] is rule:
                del held[place]
                break
    op.recompute()
