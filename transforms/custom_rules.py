"""Run functions with custom derivative rules, on flat lists of leaves; used by ``custom_vjp`` and ``custom_jvp``.

The innermost level among the arguments is handled first. A level of ``grad`` or ``jvp`` applies the rule to the
payloads of its values: to the levels below, the rule is ordinary code. A level of ``vmap`` creates a rule for whole
batches if a level below it differentiates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from .. import lazy
from ..eager.autograd.autograd_meta import AutogradMeta
from ..eager.autograd.context import Context, ContextNode, Input
from ..eager.autograd.forward_mode import (
    ForwardMeta,
    Source,
    edge_to,
    fit_tangent,
    run_at_outer,
    tangent_at,
    transpose_node,
)
from ..eager.autograd.function_batched import fit_batch, reopen_batch_level, unwrap_all, wrap_all
from ..eager.autograd.kernel import attach, eager_meta, edge_of
from ..eager.autograd.lifted_captures import capture_lifters, lift_captures
from ..eager.autograd.node import CallName, Edge, zeros_of
from ..eager.layers.level_stack import stack
from ..eager.layers.levels import Level, LevelTensor, check_open, open_level, unwrap, wrap_level
from ..eager.tensor.tensor import Tensor
from ..errors import UnsupportedError
from ..locks import ThreadLocal
from ..named_tuple import NamedTuple
from ..registry.dispatch.keys import AUTOGRAD
from ..registry.dispatch.state import state
from ..registry.dispatch.unwinding import register_thread_local, restore_state_on_error
from ..registry.values import describe
from .tapes import tape_at
from .zeros import Tangents

custom_calls = lazy.Module(".control.custom_calls")

# The leaves of a tree: tensors, numbers and other values.
Leaves = Sequence[object]
# For each leaf, its AutogradMeta if it is differentiated.
Metas = list[AutogradMeta | None]


class ReverseRule(NamedTuple):
    """A function with its reverse rule.

    Attributes:
        name: for messages.
        owner: the object that the user created; it identifies the rule while the rule runs.
        run: the function.
        forward: ``forward(arguments, is_differentiated) -> (results, residuals)``.
        backward: ``backward(residuals, cotangents) -> gradients``; None in either: zero.
        is_open: whether ``backward`` also reads values of transforms that its functions capture.
    """

    name: str
    owner: object
    run: Callable[[Leaves], Leaves]
    forward: Callable[[Leaves, list[bool]], tuple[Leaves, Leaves]]
    backward: Callable[[Leaves, Tangents], Tangents]
    is_open: bool = False


class ForwardRule(NamedTuple):
    """A function with its forward rule.

    Attributes:
        name: for messages.
        owner: the object that the user created; it identifies the rule while the rule runs.
        run: the function.
        push: ``push(arguments, tangents) -> (results, tangents)``; None in either: zero.
    """

    name: str
    owner: object
    run: Callable[[Leaves], Leaves]
    push: Callable[[Leaves, Tangents], tuple[Leaves, Tangents]]


Rule = ReverseRule | ForwardRule


@restore_state_on_error
def call(rule: Rule, leaves: Leaves) -> Leaves:
    """Call a function that has a custom derivative rule.

    Raises:
        LeakedTracerError: an argument belongs to a level that has ended.
        UnsupportedError: the function captures a value that is being differentiated.
    """
    if capture_lifters.stack:
        leaves = list(lift_captures(tuple(leaves)))
    level = innermost_level(leaves)
    if stack.in_body and (level is None or level.depth <= stack.floor):
        results: Leaves = custom_calls.call(
            rule.name,
            rule.run,
            lambda given, inside: call(_with_backward_context(rule, inside), given),
            leaves,
            None if rule.owner in _running.traced else partial(_trace_rule, rule),
        )
        return results
    if level is not None and level.run is not None:
        return _call_batched(rule, level, leaves)
    if state.exclude & AUTOGRAD:
        return rule.run(leaves)
    try:
        return _differentiate(rule, level, leaves)
    except _InnerBatch as batch:
        return _call_batched(rule, batch.level, leaves)


def _differentiate(rule: Rule, level: Level | None, leaves: Leaves) -> Leaves:
    """Call a function at the innermost level among its arguments, which is not a level of ``vmap``."""
    if level is None:
        metas = [eager_meta(leaf) for leaf in leaves]
        if rule.owner in _running.owners or not any(metas):
            return rule.run(leaves)
        raw = leaves if stack.recording is None else stack.recording.detach_arguments(leaves)
        return _record_eagerly(rule, leaves, raw, metas)
    raw = [unwrap(level, leaf) for leaf in leaves]
    if (rule.owner, level) in _running.transposing:
        return rule.run(leaves)
    if level.forward is not None:
        tangents = [tangent_at(level, leaf) for leaf in leaves]
        result = any(t is not None for t in tangents)
        return _push(rule, level, raw, tangents) if result else call(rule, raw)
    metas = [_meta_at(level, leaf) for leaf in leaves]
    return _record(rule, level, leaves, raw, metas) if any(metas) else call(rule, raw)


def _with_backward_context(rule: Rule, inside: Callable[[], AbstractContextManager[object]]) -> Rule:
    """Wrap a rule so that its backward part, which runs later, runs in a context."""
    if isinstance(rule, ForwardRule):
        return rule
    backward = rule.backward

    def later(residuals: Leaves, cotangents: Tangents) -> Tangents:
        with inside():
            return backward(residuals, cotangents)

    return rule._replace(backward=later)


def _trace_rule(rule: Rule, leaves: Leaves) -> object:
    """Run the rule with all arguments differentiated; calls of its own function add no captures of the rule again."""
    before, _running.traced = _running.traced, [*_running.traced, rule.owner]
    try:
        return _run_parts(rule, leaves)
    finally:
        _running.traced = before


def _run_parts(rule: Rule, leaves: Leaves) -> object:
    if isinstance(rule, ForwardRule):
        return rule.push(leaves, [zeros_of(x.spec) if isinstance(x, Tensor) else None for x in leaves])
    results, residuals = rule.forward(leaves, [isinstance(x, Tensor) for x in leaves])
    return rule.backward(residuals, [zeros_of(x.spec) if isinstance(x, Tensor) else None for x in results])


def innermost_level(leaves: Leaves) -> Level | None:
    """The innermost level among values."""
    values = [leaf for leaf in leaves if isinstance(leaf, LevelTensor)]
    for value in values:
        check_open(value)
    return max((value._level for value in values), key=lambda level: level.depth, default=None)


def _meta_at(level: Level, leaf: object) -> AutogradMeta | None:
    meta = leaf._meta if isinstance(leaf, LevelTensor) and leaf._level is level else None
    return meta if meta is not None and meta.requires_grad else None


class _InnerBatch(Exception):
    """A rule captures values of a ``vmap`` that was opened after the level at which it is called."""

    def __init__(self, level: Level):
        self.level = level


def _check_results(rule: Rule, level: Level | None, results: Leaves) -> None:
    if level is None and stack.recording is not None:
        stack.recording.refuse_captured(rule.name, results)
    depth = 0 if level is None else level.depth
    for leaf in results:
        if not isinstance(leaf, LevelTensor) or leaf._level.depth < max(depth, 1):
            continue
        if leaf._level.run is not None:
            raise _InnerBatch(leaf._level)
        if leaf._level is level:
            raise UnsupportedError(
                f"{rule.name} has a derivative rule of its own, and its result {describe(leaf)} depends on a value of "
                f"{level.name} that is not an argument; pass that value as an argument"
            )


# -- reverse mode ------------------------------------------------------------------------------------------------------
def _record(rule: Rule, level: Level | None, leaves: Sequence[Any], raw: Leaves, metas: Metas) -> Leaves:
    """Run the rule's forward part, and record its backward part as one node."""
    edges = [edge_of(leaf, meta) for leaf, meta in zip(leaves, metas) if meta is not None]
    wanted = [meta is not None for meta in metas]
    if level is None:
        results, node = _node(rule, level, raw, edges, wanted)
        fresh = [_detach(leaf) for leaf in results]
        attach(node, tuple(fresh))
        return fresh
    results, node = run_at_outer(level, lambda: _node(rule, level, raw, edges, wanted))
    return [_wrap_result(level, leaf, node, number) for number, leaf in enumerate(results)]


class _RunningRules(ThreadLocal):
    """The owners of running rules: called from their own rule, they are ordinary functions."""

    def __init__(self) -> None:
        self.owners: list[object] = []
        self.traced: list[object] = []
        self.transposing: list[tuple[object, Level]] = []


_running = register_thread_local(_RunningRules())


@contextmanager
def _mark_transposing(rule: Rule, level: Level) -> Iterator[None]:
    """Context manager: while a forward rule is transposed, calls of its own function on tangents are linear."""
    before, _running.transposing = _running.transposing, [*_running.transposing, (rule.owner, level)]
    try:
        yield
    finally:
        _running.transposing = before


def _record_eagerly(rule: Rule, leaves: Leaves, raw: Leaves, metas: Metas) -> Leaves:
    """Record a call with tensors that require gradients; operators that the rule calls are recorded too."""
    before, _running.owners = _running.owners, [*_running.owners, rule.owner]
    try:
        return _record(rule, None, leaves, raw, metas)
    finally:
        _running.owners = before


def _detach(leaf: object) -> object:
    return leaf.detach() if isinstance(leaf, Tensor) else leaf


def _wrap_result(level: Level, leaf: object, node: ContextNode, number: int) -> object:
    if not isinstance(leaf, Tensor) or not leaf.dtype.is_inexact:
        return leaf
    return wrap_level(level, leaf[...], AutogradMeta(node, number))


def _node(
    rule: Rule, level: Level | None, raw: Leaves, edges: list[Edge], wanted: list[bool]
) -> tuple[Leaves, ContextNode]:
    """Run the forward part; return the results and the node of the call."""
    results, pull = _forward(rule, raw, wanted)
    _check_results(rule, level, results)
    inputs = [Input(f"argument {index}", isinstance(leaf, Tensor)) for index, leaf in enumerate(raw)]
    positions = [index for index, is_wanted in enumerate(wanted) if is_wanted]
    node = ContextNode(
        CallName(rule.name), edges, lambda ctx, *cotangents: tuple(pull(list(cotangents))), inputs, positions
    )
    context = Context(tuple(wanted))
    context.set_materialize_grads(False)
    context._is_open = isinstance(rule, ReverseRule) and rule.is_open
    node.keep(context, tuple(results), False)
    return results, node


def _forward(
    rule: Rule, raw: Sequence[Any], wanted: list[bool]
) -> tuple[Leaves, Callable[[Tangents], Tangents]]:
    if isinstance(rule, ReverseRule):
        results, residuals = rule.forward(raw, wanted)
        return results, lambda cotangents: rule.backward(residuals, cotangents)
    with open_level(f"transpose({rule.name})", "") as level:
        tangents = [
            wrap_level(level, zeros_of(leaf.spec), AutogradMeta()) if is_wanted else None
            for leaf, is_wanted in zip(raw, wanted)
        ]
        with _mark_transposing(rule, level):
            results, value = rule.push(raw, tangents)
    results = [unwrap(level, leaf) for leaf in results]
    inputs = [t for t in tangents if t is not None]
    tape = tape_at(level, inputs, value)

    def pull(cotangents: Tangents) -> Tangents:
        gradients = iter(tape.pull(cotangents))
        return [next(gradients) if is_wanted else None for is_wanted in wanted]

    return results, pull


# -- forward mode ------------------------------------------------------------------------------------------------------
def _push(rule: Rule, level: Level, raw: Leaves, tangents: Tangents) -> Leaves:
    """Results and their tangents at a level of ``jvp``."""
    source = Source(CallName(rule.name))
    results, value = run_at_outer(level, lambda: _push_forward(rule, level, raw, tangents))
    return [
        wrap_level(level, x[...], ForwardMeta(fit_tangent(t, x), source))
        if t is not None and isinstance(x, Tensor) and x.dtype.is_inexact
        else x
        for x, t in zip(results, value)
    ]


def _push_forward(
    rule: Rule, level: Level, raw: Sequence[Any], tangents: Tangents
) -> tuple[Leaves, Tangents]:
    wanted = [tangent is not None for tangent in tangents]
    if isinstance(rule, ForwardRule):
        results, value = rule.push(raw, tangents)
        _check_results(rule, level, results)
        return results, value
    edges = [edge_to(leaf) for leaf, is_wanted in zip(raw, wanted) if is_wanted]
    results, node = _node(rule, level, raw, edges, wanted)
    pushed = transpose_node(node, [t for t in tangents if t is not None], tuple(results))
    return results, list(pushed) if pushed is not None else [None] * len(results)


# -- batches -----------------------------------------------------------------------------------------------------------
def _call_batched(rule: Rule, level: Level, leaves: Leaves) -> Leaves:
    """Call a function under ``vmap``; if gradients are taken outside the batch, by a rule for the whole batch."""
    raw, batched = unwrap_all(level, tuple(leaves))
    if state.exclude & AUTOGRAD or not any(isinstance(v, Tensor) and v.requires_grad for v in raw):
        return rule.run(leaves)
    batch = _BatchedRule(rule, level, batched)
    whole: Rule
    if isinstance(rule, ReverseRule):
        whole = ReverseRule(rule.name, rule.owner, batch.run, batch.forward, batch.backward)
    else:
        whole = ForwardRule(rule.name, rule.owner, batch.run, batch.push)
    return wrap_all(level, call(whole, list(raw)), batch.results)


class _BatchedRule:
    """The parts of a rule for a whole batch, made from a rule for one example."""

    def __init__(self, rule: Any, level: Level, batched: list[bool]):
        self.rule, self.level, self.batched = rule, level, batched
        self.results: list[bool] = []
        self.residuals: list[bool] = []

    def run(self, raw: Leaves) -> Leaves:
        with reopen_batch_level(self.level) as level:
            value, self.results = unwrap_all(level, tuple(self.rule.run(wrap_all(level, raw, self.batched))))
        return list(value)

    def forward(self, raw: Leaves, wanted: list[bool]) -> tuple[Leaves, Leaves]:
        with reopen_batch_level(self.level) as level:
            out, residuals = self.rule.forward(wrap_all(level, raw, self.batched), wanted)
            value, self.results = unwrap_all(level, tuple(out))
            kept, self.residuals = unwrap_all(level, tuple(residuals))
        return list(value), list(kept)

    def backward(self, residuals: Leaves, cotangents: Tangents) -> Tangents:
        with reopen_batch_level(self.level) as level:
            given = wrap_all(level, cotangents, self.results)
            out = self.rule.backward(wrap_all(level, residuals, self.residuals), given)
            raw, batched = unwrap_all(level, tuple(out))
        rows = zip(raw, batched, self.batched)
        return [fit_batch(self.level, g, is_batched, wanted) for g, is_batched, wanted in rows]

    def push(self, raw: Leaves, tangents: Tangents) -> tuple[Leaves, Tangents]:
        with reopen_batch_level(self.level) as level:
            given = wrap_all(level, tangents, self.batched)
            out, value = self.rule.push(wrap_all(level, raw, self.batched), given)
            values, one = unwrap_all(level, tuple(out))
            pushed, two = unwrap_all(level, tuple(value))
        self.results = [a or b for a, b in zip(one, two)]
        size = self.level
        fitted = [fit_batch(size, x, has, w) for x, has, w in zip(values, one, self.results)]
        return fitted, [fit_batch(size, x, has, w) for x, has, w in zip(pushed, two, self.results)]
