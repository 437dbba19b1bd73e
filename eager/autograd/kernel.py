"""The Autograd keys' kernel: one boxed kernel that records every operator by its declaration.

The same functions record tensors with ``requires_grad`` (here) and values of a level (:mod:`..layers.levels`); they
differ in the tensors that count and in the values that are saved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import LeafWriteError, UnsupportedError
from ...operators.declare.declaration import LIBRARY
from ...operators.declare.derivatives import Custom
from ...operators.declare.ownership import shares_memory
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOGRAD, DispatchKey, below, keys_of
from ...registry.dispatch.state import state
from ...registry.operator import Operator
from ...registry.values import TensorBase, describe
from ..layers.level_stack import stack
from ..tensor.dunders import by_name
from ..tensor.results import contains, flat, map_results
from ..tensor.tensor import EAGER, Tensor, require_grad
from .alias_sets import check_unshared
from .autograd_meta import TRACING, AutogradMeta
from .context import Context, ContextNode, Input
from .derivative_rules import ARGUMENT, OperatorDerivative, TrackedArgument, derivative_of
from .lifted_captures import capture_lifters, lift_captures
from .node import Node
from .view_writes import View, rebase, root_of, track_view

if TYPE_CHECKING:
    from ...eager.autograd.node import Edge
    from ...registry.types import Args, Kwargs

recompute = lazy.Module(".eager.autograd.recompute")

BELOW = below(DispatchKey.AutogradOther)
MetaOf = Callable[[object], AutogradMeta | None]


def eager_meta(value: object) -> AutogradMeta | None:
    """The AutogradMeta of a tensor that requires a gradient, else None."""
    if isinstance(value, Tensor) and value._keys & AUTOGRAD:
        meta: AutogradMeta | None = value._meta
        return meta if meta is not None and meta.requires_grad else None
    return None


def value_at(argument: TrackedArgument, args: Args, kwargs: Kwargs) -> Any:
    """The value of an argument in a call."""
    return kwargs[argument.name] if argument.position is None else args[argument.position]


def edge_of(value: Tensor, meta: AutogradMeta) -> Edge:
    """The edge of a value: the node or leaf that receives its gradient, with result index, shape and dtype.

    Native twin: backends/cpu/fastpath/runtime/rt_record.py:make_edge
    """
    return (meta if meta.node is None else meta.node), meta.index, value.shape, value.dtype


def edges_of(
    derivative: OperatorDerivative, args: Args, kwargs: Kwargs, meta_of: MetaOf
) -> tuple[int, list[Any]]:
    """The arguments that need gradients, as bits, and their edges; the next bit is set for arguments without a rule."""
    edges: list[Any] = []
    mask = 0
    for bit, argument in enumerate(derivative.arguments):
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
    for argument in derivative.uncovered:
        value = value_at(argument, args, kwargs)
        if isinstance(value, (TensorBase, tuple, list)) and any(
            meta_of(item) is not None for item in flat(value)
        ):
            return mask | 1 << len(derivative.arguments), edges
    return mask, edges


def make_node(
    derivative: OperatorDerivative,
    mask: int,
    edges: list[Any],
    args: Args,
    kwargs: Kwargs,
    out: object,
    is_alias: bool,
) -> Node:
    """Create the node of a call; residuals are taken from ``args``, ``kwargs`` and ``out``.

    Native twin: backends/cpu/fastpath/runtime/rt_record.py:make_node
    """
    if derivative.reason is not None:
        return Node(derivative.op, None, edges, derivative.reason)
    if derivative.custom is not None:
        return _context_node(derivative, derivative.custom, mask, edges, args, kwargs, out, is_alias)
    if mask >> len(derivative.arguments):
        names = ", ".join(argument.name for argument in derivative.uncovered)
        return Node(derivative.op, None, edges, f"its rules leave out {names}, which requires a gradient")
    node = Node(derivative.op, derivative.active(mask), edges)
    if node.active is not None and node.active.savers:
        node.save(args, kwargs, out, is_alias)
    if isinstance(out, tuple):
        node.results = tuple(item.spec for item in out)
    return node


def _context_node(
    derivative: OperatorDerivative,
    custom: Custom,
    mask: int,
    edges: list[Any],
    args: Args,
    kwargs: Kwargs,
    out: object,
    is_alias: bool,
) -> Node:
    """Create the node of an operator whose derivative is written by hand."""
    tracked = [argument for bit, argument in enumerate(derivative.arguments) if mask >> bit & 1]
    inputs = [Input(a.name, a.type.core == "Tensor", a.type.is_list) for a in derivative.op.schema.positional]
    needs: list[bool | tuple[bool, ...]] = [
        (False,) * len(value) if item.is_list and isinstance(value, tuple) and item.is_tensor else False
        for item, value in zip(inputs, args)
    ]
    for argument, edge in zip(tracked, edges):
        if argument.position is None:
            raise UnsupportedError(
                f"{derivative.op.name}: {argument.name!r} requires a gradient and is keyword-only, but a "
                "registered derivative returns gradients of positional arguments; pass x.detach(), or make it "
                "positional"
            )
        needs[argument.position] = tuple(to is not None for to in edge) if argument.is_list else True
    node = ContextNode(derivative.op, edges, custom.backward, inputs, [a.position or 0 for a in tracked])
    context = Context(tuple(needs))
    if custom.setup_context is not None:
        keywords = (
            {"keyword_only_inputs": kwargs}
            if any(a.kwarg_only for a in derivative.op.schema.arguments)
            else {}
        )
        with adjust_keys(exclude=AUTOGRAD if is_alias else 0):
            custom.setup_context(context, args, output=out, **keywords)
    node.keep(context, out, is_alias)
    return node


def autograd(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator below autograd and record it; the fallback of the Autograd keys."""
    if state.include & TRACING:
        return _call_traced(op, keyset, args, kwargs)
    derivative = derivative_of(op)
    if derivative.decompose is not None:
        return derivative.decompose(*args, **kwargs)
    if derivative.written:
        return write(derivative, args, kwargs, lambda: run_below(derivative, keyset, args, kwargs))
    return record_call(derivative, args, kwargs, run_below(derivative, keyset, args, kwargs))


def _call_traced(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Dispatch a call inside a trace; captured tensors that require gradients become values of the recording level."""
    if capture_lifters.stack:
        given, named = lift_captures(args), {name: lift_captures(value) for name, value in kwargs.items()}
        pairs = zip(flat((args, *kwargs.values())), flat((given, *named.values())))
        if any(old is not new for old, new in pairs):
            return op.dispatch(keyset & ~AUTOGRAD | 1 << DispatchKey.Level, given, named)
    return op.dispatch(keyset & BELOW, args, kwargs)


def record_call(derivative: OperatorDerivative, args: Args, kwargs: Kwargs, out: object) -> object:
    """Record a finished call: return its result, with a graph node if an argument requires a gradient.

    Native twin: backends/cpu/fastpath/runtime/rt_record.py:record_natively
    """
    mask, edges = edges_of(derivative, args, kwargs, eager_meta)
    if not mask:
        return out
    out = _copy_returned_arguments(out, args)
    attach(make_node(derivative, mask, edges, args, kwargs, out, True), out)
    if derivative.is_view:
        track_view(derivative, args, kwargs, out)
    return out


# [number of running checkpointed functions with a policy]: :mod:`.recompute` observes their operators.
policies = [0]


def run_below(derivative: OperatorDerivative, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Run the kernel of the next lower key."""
    if policies[0]:
        compute = partial(_run_below, derivative, keyset, args, kwargs)
        return recompute.run_call(derivative.op, args, kwargs, compute)
    return _run_below(derivative, keyset, args, kwargs)


def _run_below(derivative: OperatorDerivative, keyset: int, args: Args, kwargs: Kwargs) -> object:
    if derivative.isolate:
        with adjust_keys(exclude=AUTOGRAD):
            return derivative.op.dispatch(keyset & BELOW, args, kwargs)
    return derivative.op.dispatch(keyset & BELOW, args, kwargs)


def _copy_returned_arguments(out: object, args: Args) -> object:
    """Replace results that are arguments of the call by aliases of them."""
    return map_results(lambda item, _: item._alias() if contains(args, item) else item, out)


def attach(node: Node, out: object, written: Args = ()) -> object:
    """Attach a node to the results, except to those in ``written``, which have theirs.

    Native twin: backends/cpu/fastpath/runtime/rt_record.py:attach
    """
    constant = node.constant if isinstance(node, ContextNode) else ()
    for index, item in enumerate(flat(out)):
        if type(item) not in EAGER or any(item is target for target in written):
            continue
        dtype = item.dtype
        if dtype.is_inexact and index not in constant:
            require_grad(item, AutogradMeta(node, index))
            if stack.recording is not None:
                stack.recording.note(item)
        elif dtype.is_integer or index in constant:  # booleans are masks, and there are many; they stay plain
            item._meta = AutogradMeta(None, 0, False, node.op.name)
    return out


# -- in place ----------------------------------------------------------------------------------------------------------
def write(derivative: OperatorDerivative, args: Args, kwargs: Kwargs, run: Callable[[], object]) -> object:
    """Run an in-place operator; the written tensor gets the node of the functional operator.

    If that has no derivative, the written tensors get a node that raises in ``backward``, naming the operator.

    Raises:
        LeafWriteError: a tensor that is written is a leaf, or a view of one.
        UnsupportedError: other tensors share the memory, and would keep an outdated graph.
    """
    inner = derivative_of(derivative.inner) if derivative.inner is not None else None
    targets = written_values(derivative, args, kwargs)
    for target in targets:
        check_not_leaf(derivative.op, target, eager_meta(root_of(target)))
    mask, edges = edges_of(inner or derivative, args, kwargs, eager_meta)
    if not mask:
        return run()
    if stack.recording is not None:
        for target in targets:
            stack.recording.check_written(derivative.op, target, edges)
    for target in targets:
        check_unshared(derivative.op, target)
    if inner is None or inner.reason is not None or inner.decompose is not None:
        return _write_unknown(derivative, inner, edges, targets, run)
    written: Any = args[0]
    args = tuple(_arguments_before_write(written, args, inner, mask))
    run()
    rebase(written, make_node(inner, mask, edges, args, kwargs, written, True), require_grad, view_node)
    return written


def written_values(derivative: OperatorDerivative, args: Args, kwargs: Kwargs) -> tuple[Tensor, ...]:
    """The tensors that a call writes in place."""
    names = [argument.name for argument in derivative.op.schema.positional]
    given = {**dict(zip(names, args)), **kwargs}
    return tuple(
        item for name in derivative.written for item in flat(given[name]) if isinstance(item, Tensor)
    )


def _write_unknown(
    derivative: OperatorDerivative,
    inner: OperatorDerivative | None,
    edges: list[Any],
    targets: tuple[Tensor, ...],
    run: Callable[[], object],
) -> object:
    """Run an in-place operator without a derivative; ``backward`` through its node raises an error."""
    reason = (
        derivative.reason or "it writes in place" if inner is None or inner.reason is None else inner.reason
    )
    out = run()
    node = Node(derivative.op, None, edges, reason)
    for target in targets:
        if target.dtype.is_inexact:
            rebase(target, node, require_grad, view_node)
    return attach(node, out, targets)


def view_node(view: View, out: object) -> Node:
    """Create the node of a view, with an edge to the current node of its base."""
    mask, edges = edges_of(view.derivative, view.args, view.kwargs, eager_meta)
    return make_node(view.derivative, mask, edges, view.args, view.kwargs, out, True)


def check_not_leaf(op: Operator, target: Tensor, meta: AutogradMeta | None) -> None:
    """Raise LeafWriteError for a write into a leaf that requires a gradient."""
    if meta is not None and meta.node is None and meta.requires_grad:
        raise LeafWriteError(
            f"{op.name} writes into a leaf that requires a gradient, {describe(target)}; make a new tensor "
            "(x = x + y, x.at[index].set(value)), or write inside td.no_grad()"
        )


def _arguments_before_write(target: Tensor, args: Args, inner: OperatorDerivative, mask: int) -> list[object]:
    """The arguments before the write: needed residuals that share the target's memory are copied."""
    result = list(args)
    for kind, where, _ in inner.active(mask).savers:
        if kind == ARGUMENT:
            result[where] = _copy_if_aliased(target, args[where])
    return result


def _copy_if_aliased(target: Tensor, value: object) -> object:
    if type(value) is tuple:
        return tuple(_copy_if_aliased(target, item) for item in value)
    return _copy(value) if isinstance(value, Tensor) and shares_memory(target, value) else value


def _copy(value: Tensor) -> Tensor:
    """A copy of a tensor with the same graph node."""
    with adjust_keys(exclude=AUTOGRAD):
        old = by_name("clone")(value)
    return old if value._meta is None else require_grad(old, value._meta)


for _key in keys_of(AUTOGRAD):
    LIBRARY.fallback(autograd, _key)
