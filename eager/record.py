"""The Autograd keys' kernel: one boxed kernel that records every operator by its declaration.

The same recording serves tensors with ``requires_grad`` (here) and the values of a level (:mod:`.levels`): they differ
in which tensors count, and in what is saved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import AutogradError, NotDifferentiableError
from ..operators.declare import LIBRARY
from ..registry.keys import AUTOGRAD, DispatchKey, below, keys_of
from ..registry.operator import Operator
from ..registry.state import adjusted
from ..registry.values import describe
from .dunders import by_name
from .meta import AutogradMeta
from .node import Node
from .plans import ARGUMENT, Plan, Tracked, plan_of
from .tensor import EAGER, Tensor, require_grad
from .views import View, check_unshared, rebase, root_of, shares, track

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
    """The set of arguments that need gradients, as bits, and their edges."""
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
    return mask, edges


def make_node(
    plan: Plan, mask: int, edges: list[Any], args: Args, kwargs: Kwargs, out: Any, is_alias: bool
) -> Node:
    """The node of a call. ``args`` and ``out`` are what is saved."""
    if plan.reason is not None:
        return Node(plan.op, None, edges, plan.reason)
    node = Node(plan.op, plan.active(mask), edges)
    if node.active is not None and node.active.savers:
        node.save(args, kwargs, out, is_alias)
    if isinstance(out, tuple):
        node.results = tuple(item.spec for item in out)
    return node


def autograd(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator below autograd and record it; the fallback of the Autograd keys."""
    plan = plan_of(op)
    if plan.decompose is not None:
        return plan.decompose(*args, **kwargs)
    if plan.written:
        return write(plan, args, kwargs, lambda: run_below(plan, keyset, args, kwargs))
    return record_call(plan, args, kwargs, run_below(plan, keyset, args, kwargs))


def record_call(plan: Plan, args: Args, kwargs: Kwargs, out: Any) -> Any:
    """Put a call that has run into the graph: its result, with a history if an argument has one."""
    mask, edges = edges_of(plan, args, kwargs, eager_meta)
    if not mask:
        return out
    out = _fresh(out, args)
    _attach(make_node(plan, mask, edges, args, kwargs, out, True), out)
    if plan.is_view:
        track(plan, args, kwargs, out)
    return out


def run_below(plan: Plan, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """Run the kernel of the next lower key."""
    if plan.isolate:
        with adjusted(exclude=AUTOGRAD):
            return plan.op.dispatch(keyset & BELOW, args, kwargs)
    return plan.op.dispatch(keyset & BELOW, args, kwargs)


def _fresh(out: Any, args: Args) -> Any:
    """The result as an object of its own, where the kernel has given back an argument."""
    if isinstance(out, tuple):
        return tuple(_fresh(item, args) for item in out)
    return out._alias() if any(out is arg for arg in args) else out


def _attach(node: Node, out: Any) -> Any:
    for index, item in enumerate(out if isinstance(out, tuple) else (out,)):
        if type(item) in EAGER:
            dtype = item.dtype
            if dtype.is_inexact:
                require_grad(item, AutogradMeta(node, index))
            elif dtype.is_integer:  # booleans are masks, and there are many; they stay plain tensors
                item._meta = AutogradMeta(None, 0, False, node.op.name)
    return out


# -- in place ----------------------------------------------------------------------------------------------------------
def write(plan: Plan, args: Args, kwargs: Kwargs, run: Callable[[], Any]) -> Any:
    """Run an in-place operator; the tensor written gets the history of the functional operator.

    Raises:
        AutogradError: the tensor is a leaf.
        NotDifferentiableError: the operator has no derivative.
        UnsupportedError: other tensors share the memory, and would keep a history that is no longer true.
    """
    target = args[0]
    inner = plan_of(plan.inner) if plan.inner is not None else None
    check_not_leaf(plan.op, target, eager_meta(root_of(target)))
    mask, edges = edges_of(inner or plan, args, kwargs, eager_meta)
    if not mask:
        return run()
    if inner is None or inner.reason is not None or inner.decompose is not None:
        raise NotDifferentiableError(
            f"{plan.op.name} writes into {describe(target)} and its gradient is not known; use the functional operator"
        )
    check_unshared(plan.op, target)
    args = tuple(_before(target, args, inner, mask))
    run()
    rebase(target, make_node(inner, mask, edges, args, kwargs, target, True), require_grad, _view_node)
    return target


def _view_node(view: View, out: Any) -> Node:
    """The node of a view, to the present history of its base."""
    mask, edges = edges_of(view.plan, view.args, view.kwargs, eager_meta)
    return make_node(view.plan, mask, edges, view.args, view.kwargs, out, True)


def check_not_leaf(op: Operator, target: Any, meta: AutogradMeta | None) -> None:
    """Refuse to write into the start of a history."""
    if meta is not None and meta.node is None:
        raise AutogradError(
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
