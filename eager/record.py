"""The Autograd keys' kernel: one boxed kernel that records every operator by its declaration.

The same recording serves tensors with ``requires_grad`` (here) and the values of a level (:mod:`.levels`): they differ
in which tensors count, and in what is saved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import lazy
from ..errors import LeafWriteError, UnsupportedError
from ..operators.declare import LIBRARY
from ..operators.derivatives import Custom
from ..registry.keys import AUTOGRAD, DispatchKey, below, keys_of
from ..registry.operator import Operator
from ..registry.state import adjusted, state
from ..registry.values import describe
from .aliases import check_unshared
from .captured import entered, entrances
from .context import Context, ContextNode, Input
from .dunders import by_name
from .meta import TRACING, AutogradMeta
from .node import Node
from .plans import ARGUMENT, Plan, Tracked, plan_of
from .results import flat, map_results
from .tensor import EAGER, Tensor, require_grad
from .views import View, rebase, root_of, shares, track

BELOW = below(DispatchKey.AutogradOther)
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
MetaOf = Callable[[Any], AutogradMeta | None]


def eager_meta(value: Any) -> AutogradMeta | None:
    """The record of a tensor that requires gradients, else None."""
    if isinstance(value, Tensor) and value._keys & AUTOGRAD:
        meta: AutogradMeta | None = value._meta
        return meta if meta is not None and meta.requires_grad else None
    return None


def value_at(argument: Tracked, args: Args, kwargs: Kwargs) -> Any:
    """What a call gives for an argument."""
    return kwargs[argument.name] if argument.position is None else args[argument.position]


def edge_of(value: Any, meta: AutogradMeta) -> Any:
    """Where the gradient of a value goes."""
    return (meta if meta.node is None else meta.node), meta.index, value.shape, value.dtype


def edges_of(plan: Plan, args: Args, kwargs: Kwargs, meta_of: MetaOf) -> tuple[int, list[Any]]:
    """The set of arguments that need gradients, as bits, and their edges; one more bit for those without a rule."""
    mask, edges = 0, []
    for bit, argument in enumerate(plan.arguments):
        value = value_at(argument, args, kwargs)
        if argument.is_list:
            metas = [meta_of(item) for item in value or ()]
            if any(meta is not None for meta in metas):
                mask |= 1 << bit
                edges.append(tuple(None if m is None else edge_of(v, m) for v, m in zip(value, metas)))
        else:
            meta = meta_of(value)
            if meta is not None:
                mask |= 1 << bit
                edges.append(edge_of(value, meta))
    for argument in plan.uncovered:
        value = value_at(argument, args, kwargs)
        if any(meta_of(item) is not None for item in flat(value)):
            return mask | 1 << len(plan.arguments), edges
    return mask, edges


def make_node(
    plan: Plan, mask: int, edges: list[Any], args: Args, kwargs: Kwargs, out: Any, is_alias: bool
) -> Node:
    """The node of a call. ``args`` and ``out`` are what is saved."""
    if plan.reason is not None:
        return Node(plan.op, None, edges, plan.reason)
    if plan.custom is not None:
        return _context_node(plan, plan.custom, mask, edges, args, kwargs, out, is_alias)
    if mask >> len(plan.arguments):
        names = ", ".join(argument.name for argument in plan.uncovered)
        return Node(plan.op, None, edges, f"its rules leave out {names}, which requires a gradient")
    node = Node(plan.op, plan.active(mask), edges)
    if node.active is not None and node.active.savers:
        node.save(args, kwargs, out, is_alias)
    if isinstance(out, tuple):
        node.results = tuple(item.spec for item in out)
    return node


def _context_node(
    plan: Plan,
    custom: Custom,
    mask: int,
    edges: list[Any],
    args: Args,
    kwargs: Kwargs,
    out: Any,
    is_alias: bool,
) -> Node:
    """The node of an operator whose derivative is written by hand."""
    tracked = [argument for bit, argument in enumerate(plan.arguments) if mask >> bit & 1]
    inputs = [Input(a.name, a.type.core == "Tensor", a.type.is_list) for a in plan.op.schema.positional]
    needs: list[Any] = [
        (False,) * len(value) if item.is_list and isinstance(value, tuple) and item.is_tensor else False
        for item, value in zip(inputs, args)
    ]
    for argument, edge in zip(tracked, edges):
        if argument.position is None:
            raise UnsupportedError(
                f"{plan.op.name}: {argument.name!r} requires a gradient and is keyword-only, and a registered "
                "derivative gives gradients of positional arguments; pass x.detach(), or define it as positional"
            )
        needs[argument.position] = tuple(to is not None for to in edge) if argument.is_list else True
    node = ContextNode(plan.op, edges, custom.backward, inputs, [a.position or 0 for a in tracked])
    context = Context(tuple(needs))
    if custom.setup_context is not None:
        keywords = (
            {"keyword_only_inputs": kwargs} if any(a.kwarg_only for a in plan.op.schema.arguments) else {}
        )
        with adjusted(exclude=AUTOGRAD if is_alias else 0):
            custom.setup_context(context, args, output=out, **keywords)
    node.keep(context, out, is_alias)
    return node


def autograd(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator below autograd and record it; the fallback of the Autograd keys."""
    if state.include & TRACING:
        return _traced(op, keyset, args, kwargs)
    plan = plan_of(op)
    if plan.decompose is not None:
        return plan.decompose(*args, **kwargs)
    if plan.written:
        return write(plan, args, kwargs, lambda: run_below(plan, keyset, args, kwargs))
    return record_call(plan, args, kwargs, run_below(plan, keyset, args, kwargs))


def _traced(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """A call inside a trace: the trace records it, as values of the level that takes gradients if there is one."""
    if entrances.stack:
        given, named = entered(args), {name: entered(value) for name, value in kwargs.items()}
        pairs = zip(flat((args, *kwargs.values())), flat((given, *named.values())))
        if any(old is not new for old, new in pairs):
            return op.dispatch(keyset & ~AUTOGRAD | 1 << DispatchKey.Level, given, named)
    return op.dispatch(keyset & BELOW, args, kwargs)


def record_call(plan: Plan, args: Args, kwargs: Kwargs, out: Any) -> Any:
    """Put a call that has run into the graph: its result, with a history if an argument has one."""
    mask, edges = edges_of(plan, args, kwargs, eager_meta)
    if not mask:
        return out
    out = _fresh(out, args)
    attach(make_node(plan, mask, edges, args, kwargs, out, True), out)
    if plan.is_view:
        track(plan, args, kwargs, out)
    return out


# [number of checkpointed functions with a policy that run now]: :mod:`.recompute` watches their operators.
policies = [0]


def run_below(plan: Plan, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """Run the kernel of the next lower key."""
    if policies[0]:
        compute = partial(_run_below, plan, keyset, args, kwargs)
        return lazy.recomputation().run_call(plan.op, args, kwargs, compute)
    return _run_below(plan, keyset, args, kwargs)


def _run_below(plan: Plan, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    if plan.isolate:
        with adjusted(exclude=AUTOGRAD):
            return plan.op.dispatch(keyset & BELOW, args, kwargs)
    return plan.op.dispatch(keyset & BELOW, args, kwargs)


def _fresh(out: Any, args: Args) -> Any:
    """The result as an object of its own, where the kernel has given back an argument."""
    given = {id(item) for item in flat(args)}
    return map_results(lambda item, _: item._alias() if id(item) in given else item, out)


def attach(node: Node, out: Any, written: Args = ()) -> Any:
    """Give the results their history; those that were written have got theirs."""
    constant = node.constant if isinstance(node, ContextNode) else ()
    for index, item in enumerate(flat(out)):
        if type(item) not in EAGER or any(item is target for target in written):
            continue
        dtype = item.dtype
        if dtype.is_inexact and index not in constant:
            require_grad(item, AutogradMeta(node, index))
        elif dtype.is_integer or index in constant:  # booleans are masks, and there are many; they stay plain
            item._meta = AutogradMeta(None, 0, False, node.op.name)
    return out


# -- in place ----------------------------------------------------------------------------------------------------------
def write(plan: Plan, args: Args, kwargs: Kwargs, run: Callable[[], Any]) -> Any:
    """Run an in-place operator; the tensor written gets the history of the functional operator.

    Where that has no derivative the tensors written get a history that raises in ``backward``, naming the operator.

    Raises:
        LeafWriteError: a tensor that is written is a leaf, or a view of one.
        UnsupportedError: other tensors share the memory, and would keep a history that is no longer true.
    """
    inner = plan_of(plan.inner) if plan.inner is not None else None
    targets = written_values(plan, args, kwargs)
    for target in targets:
        check_not_leaf(plan.op, target, eager_meta(root_of(target)))
    mask, edges = edges_of(inner or plan, args, kwargs, eager_meta)
    if not mask:
        return run()
    for target in targets:
        check_unshared(plan.op, target)
    if inner is None or inner.reason is not None or inner.decompose is not None:
        return _write_unknown(plan, inner, edges, targets, run)
    target = args[0]
    args = tuple(_before(target, args, inner, mask))
    run()
    rebase(target, make_node(inner, mask, edges, args, kwargs, target, True), require_grad, view_node)
    return target


def written_values(plan: Plan, args: Args, kwargs: Kwargs) -> Args:
    """The tensors that a call writes."""
    names = [argument.name for argument in plan.op.schema.positional]
    given = {**dict(zip(names, args)), **kwargs}
    return tuple(item for name in plan.written for item in flat(given[name]) if isinstance(item, Tensor))


def _write_unknown(
    plan: Plan, inner: Plan | None, edges: list[Any], targets: Args, run: Callable[[], Any]
) -> Any:
    """Run an operator that writes in a way that has no derivative; whoever asks for one gets an error."""
    reason = plan.reason or "it writes in place" if inner is None or inner.reason is None else inner.reason
    out = run()
    node = Node(plan.op, None, edges, reason)
    for target in targets:
        if target.dtype.is_inexact:
            rebase(target, node, require_grad, view_node)
    return attach(node, out, targets)


def view_node(view: View, out: Any) -> Node:
    """The node of a view, to the present history of its base."""
    mask, edges = edges_of(view.plan, view.args, view.kwargs, eager_meta)
    return make_node(view.plan, mask, edges, view.args, view.kwargs, out, True)


def check_not_leaf(op: Operator, target: Any, meta: AutogradMeta | None) -> None:
    """Refuse to write into the start of a history."""
    if meta is not None and meta.node is None and meta.requires_grad:
        raise LeafWriteError(
            f"{op.name} writes into a leaf that requires a gradient, {describe(target)}; make a new tensor "
            "(x = x + y, x.at[index].set(value)), or write inside td.no_grad()"
        )


def _before(target: Any, args: Args, inner: Plan, mask: int) -> list[Any]:
    """The arguments as they are before the write: copies of those in the target's memory whose elements are needed."""
    found = list(args)
    for kind, where, _ in inner.active(mask).savers:
        if kind == ARGUMENT:
            found[where] = _unwritten(target, args[where])
    return found


def _unwritten(target: Any, value: Any) -> Any:
    if type(value) is tuple:
        return tuple(_unwritten(target, item) for item in value)
    return _copy(value) if isinstance(value, Tensor) and shares(target, value) else value


def _copy(value: Any) -> Any:
    """The elements in new memory, with the same history."""
    with adjusted(exclude=AUTOGRAD):
        old = by_name("clone")(value)
    return old if value._meta is None else require_grad(old, value._meta)


for _key in keys_of(AUTOGRAD):
    LIBRARY.fallback(autograd, _key)
