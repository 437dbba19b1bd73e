"""``td.autograd.Function``: a computation with a derivative written by hand.

Source: ``torch.autograd.Function``. Under several levels each one runs ``setup_context`` on its own values, as
functorch does it, so that gradients of gradients go through ``backward`` at every level.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import ArgumentError, UnsupportedError
from ...operators.declare.ownership import unwrap_levels
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import state
from ...registry.dispatch.unwinding import restore_guards_on_error
from ...registry.values import describe
from ..layers.level_stack import stack
from ..layers.levels import Level, LevelTensor, check_open, set_meta, unwrap, view_node_at, wrap_level
from ..layers.vmap.tensor import wrap_batched
from ..tensor.dunders import by_name
from ..tensor.results import flat, map_results
from ..tensor.tensor import Tensor, require_grad
from .alias_sets import check_unshared
from .autograd_meta import AutogradMeta
from .context import Context, ContextNode, Input
from .forward_mode import Source, attach_tangents, edge_to, fit_all, run_at_outer, tangent_at, transpose_node
from .function_batched import make_batched_function, unwrap_all
from .kernel import attach, check_not_leaf, eager_meta, edge_of, view_node
from .lifted_captures import capture_lifters, lift_captures
from .view_writes import bump_version, rebase, root_of

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs

custom_calls = lazy.Module(".control.custom_calls")
inspect = lazy.Module("inspect")


class _Name:
    """A name in place of an operator in the messages about a node."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    @property
    def schema(self) -> _Name:
        return self


class Function:
    """A computation whose gradient is written by hand. Derive from it, and call ``apply``.

    ``forward(*args)`` computes the results; ``setup_context(ctx, inputs, output)`` saves what the gradient needs;
    ``backward(ctx, *grads)`` takes the gradient of each result and returns that of each input (None for a non-tensor).
    Without ``setup_context``, ``forward(ctx, *args)`` does both: that works under one ``td.grad`` or on tensors that
    require gradients, not under nested transforms.

    ``backward`` is differentiable itself if it is written with operators.

    >>> import tandem as td
    >>> class Clip(td.autograd.Function):
    ...     @staticmethod
    ...     def forward(x, limit):
    ...         return td.clip(x, -limit, limit)
    ...
    ...     @staticmethod
    ...     def setup_context(ctx, inputs, output):
    ...         pass
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g, None  # straight through
    >>> td.grad(lambda x: Clip.apply(x, 1.0).sum())(td.asarray([0.5, 3.0])).tolist()
    [1.0, 1.0]
    """

    @staticmethod
    def forward(*args: Any) -> Any:
        """Compute the results: a tensor, or a tuple of tensors and other values."""
        raise UnsupportedError("a td.autograd.Function needs a static method forward(*args)")

    setup_context: Any = None
    jvp: Any = None  # jvp(ctx, *tangents), None for an input without one; without it backward is transposed

    @staticmethod
    def backward(ctx: Context, *grads: Any) -> Any:
        """Compute the gradient of each input from those of the results."""
        raise UnsupportedError("this td.autograd.Function has no backward(ctx, *grads)")

    @classmethod
    @restore_guards_on_error
    def apply(cls, *args: object, **kwargs: object) -> Any:
        """Run ``forward`` and record it as one graph node.

        Args:
            args, kwargs: the arguments of ``forward``. Tensors that require gradients must be arguments themselves, not
                items of a list or a dict.

        Returns:
            The results of ``forward``.

        Raises:
            ArgumentError: a tensor that requires a gradient is inside a container, or the result is of a wrong kind.
            UnsupportedError: transforms are nested, and there is no ``setup_context``.
        """
        given = _bind(cls, args, kwargs) if kwargs else args
        for index, value in enumerate(given):
            _check_no_hidden(cls, index, value)
        return _apply(cls, given)


def _bind(cls: type[Function], args: Args, kwargs: Kwargs) -> Args:
    signature = inspect.signature(cls.forward)
    first = () if cls.setup_context is not None else (None,)
    bound = signature.bind(*first, *args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise ArgumentError(f"{cls.__name__}.forward takes keyword-only arguments; gradients go by position")
    return tuple(bound.args[len(first) :])


def _check_no_hidden(cls: type[Function], index: int, value: object) -> None:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    for item in items:
        _check_no_hidden(cls, index, item)
        if isinstance(item, Tensor) and item.requires_grad and not state.exclude & AUTOGRAD:
            raise ArgumentError(
                f"{cls.__name__}.apply: argument {index} is a container with a tensor that requires a gradient, which "
                "would be lost; pass each tensor as an argument of its own"
            )


def _apply(cls: type[Function], args: Args) -> object:
    if capture_lifters.stack:
        args = lift_captures(args)
    level = _highest(args)
    if stack.in_body and (level is None or level.depth <= stack.floor):
        return _apply_in_body(cls, args)
    if level is None:
        return _apply_eager(cls, args)
    if level.run is not None:
        return _apply_batched(cls, level, args)
    return _apply_at(cls, level, args) if level.forward is None else _apply_forward(cls, level, args)


def _apply_in_body(cls: type[Function], args: Args) -> object:
    """Apply a Function in the traced body of a loop: the call becomes one graph node with its derivative."""

    def run(given: list[object]) -> object:
        return _compute(cls, Context((False,) * len(args)), tuple(given))

    return custom_calls.call(cls.__name__, run, lambda given, _: _apply(cls, tuple(given)), list(args))


def _apply_batched(cls: type[Function], level: Level, args: Args) -> object:
    """Apply a Function under ``vmap``; if gradients are taken outside the batch, as one call on the whole batch."""
    raw, batched = unwrap_all(level, args)
    if state.exclude & AUTOGRAD or not any(isinstance(v, Tensor) and v.requires_grad for v in raw):
        return _compute(cls, Context((False,) * len(args)), args)
    _check_setup(cls)
    whole, batch = make_batched_function(cls, Function, level, batched)
    out = _apply(whole, raw)
    return map_results(lambda item, n: wrap_batched(level, item) if batch.results[n] else item, out)


def _check_setup(cls: type[Function]) -> None:
    if cls.setup_context is None:
        raise UnsupportedError(
            f"{cls.__name__}.apply: nested transforms need a Function with a static method "
            "setup_context(ctx, inputs, output), and forward(*args) without ctx"
        )


def _highest(args: Args) -> Level | None:
    values = [value for value in args if isinstance(value, LevelTensor)]
    for value in values:
        check_open(value)
    return max((value._level for value in values), key=lambda level: level.depth, default=None)


def _compute(cls: type[Function], context: Context, args: Args) -> object:
    """Run forward and save what backward needs."""
    if cls.setup_context is None:
        return _check_results(cls, cls.forward(context, *args))
    out = _check_results(cls, cls.forward(*args))
    if any(context.needs_input_grad):
        cls.setup_context(context, args, out)
    return out


def _check_results(cls: type[Function], out: object) -> object:
    for item in out if type(out) is tuple else (out,):
        inside = item.values() if isinstance(item, dict) else item if isinstance(item, (list, tuple)) else ()
        if any(isinstance(value, Tensor) for value in inside):
            raise ArgumentError(
                f"{cls.__name__}.forward returned {describe(item)}; return a tensor or a flat tuple of tensors and "
                "other values"
            )
    return out


# -- on tensors that require gradients ---------------------------------------------------------------------------------
def _apply_eager(cls: type[Function], args: tuple[Any, ...]) -> object:
    wanted = not state.exclude & AUTOGRAD
    metas = [eager_meta(value) if wanted else None for value in args]
    edges = [edge_of(value, meta) for value, meta in zip(args, metas) if meta is not None]
    context = Context(tuple(meta is not None for meta in metas))
    with adjust_keys(exclude=AUTOGRAD):
        out = _compute(cls, context, args)
    dirty = _check_dirty(cls, context, out)
    if not edges:
        return out
    kept = {id(item) for item in dirty}
    old = {id(value) for value in args if isinstance(value, Tensor)}
    fresh = map_results(
        lambda item, _: (
            item._alias() if id(item) not in kept and (id(item) in old or item._meta is not None) else item
        ),
        out,
    )
    node = _node(cls, context, args, edges, out, fresh)
    for number, item in enumerate(flat(fresh)):
        if id(item) in kept:
            _rewrite(node, item, number)
    return attach(node, fresh, dirty)


def _rewrite(node: ContextNode, target: Tensor, number: int) -> None:
    """Update the graph of an input that forward has written."""
    check_not_leaf(node.op, target, eager_meta(root_of(target)))
    check_unshared(node.op, target)
    rebase(target, node, require_grad, view_node, number)


def _check_dirty(cls: type[Function], context: Context, out: object) -> tuple[Tensor, ...]:
    results = {id(item) for item in flat(out)}
    for item in context._dirty:
        if id(item) not in results:
            raise ArgumentError(
                f"{cls.__name__}: an input given to mark_dirty is not among the results; forward must return what it "
                "writes"
            )
        bump_version(unwrap_levels(item))
    return context._dirty


def _node(
    cls: type[Function], context: Context, args: Args, edges: list[Any], out: object, fresh: object
) -> ContextNode:
    """The node of a call; ``fresh`` are the objects that will refer to it, None if none of them is a result."""
    inputs = [Input(f"argument {index}", isinstance(value, Tensor)) for index, value in enumerate(args)]
    indices = [index for index, need in enumerate(context.needs_input_grad) if need]
    node = ContextNode(_Name(cls.__name__), edges, cls.backward, inputs, indices)
    node.keep(context, out, fresh is not None, fresh)
    return node


# -- on values of a level ----------------------------------------------------------------------------------------------
def _apply_at(cls: type[Function], level: Level, args: tuple[Any, ...]) -> object:
    raw = tuple(unwrap(level, value) for value in args)
    metas = [v._meta if isinstance(v, LevelTensor) and v._level is level else None for v in args]
    edges = [edge_of(value, meta) for value, meta in zip(args, metas) if meta is not None]
    if state.exclude & AUTOGRAD or not edges:
        return _apply(cls, raw)
    context = Context(tuple(meta is not None for meta in metas))
    out = _apply_below(cls, context, raw)
    dirty = {id(item) for item in _check_dirty(cls, context, out)}
    node = _node(cls, context, args, edges, out, None)
    given = {id(value): args[index] for index, value in enumerate(raw) if isinstance(value, Tensor)}

    def lift(item: Tensor, number: int) -> object:
        if id(item) in dirty:
            target = given[id(item)]
            check_not_leaf(node.op, target, root_of(target)._meta)
            check_unshared(node.op, target)
            rebase(target, node, set_meta, partial(view_node_at, level), number)
            return target
        if number in node.constant or not item.dtype.is_inexact:
            return item
        payload = by_name("reshape")(item, item.shape) if id(item) in given else item
        return wrap_level(level, payload, AutogradMeta(node, number))

    return map_results(lift, out)


def _apply_below(cls: type[Function], context: Context, raw: Args) -> object:
    """Apply a Function to the payloads of a level's values, and save what this level's backward needs."""
    if cls.setup_context is None:
        if any(isinstance(value, Tensor) and value.requires_grad for value in raw):
            _check_setup(cls)
        return _compute(cls, context, raw)
    out = _apply(cls, raw)
    cls.setup_context(context, raw, out)
    return out


# -- on values that carry tangents -------------------------------------------------------------------------------------
def _apply_forward(cls: type[Function], level: Level, args: Args) -> object:
    tangents = [tangent_at(level, value) for value in args]
    raw = tuple(unwrap(level, value) for value in args)
    if state.exclude & AUTOGRAD or not any(t is not None for t in tangents):
        return _apply(cls, raw)
    out, current = run_at_outer(level, lambda: _push_forward(cls, raw, tangents))
    return attach_tangents(level, Source(_Name(cls.__name__)), raw, out, current)


def _push_forward(
    cls: type[Function], raw: tuple[Any, ...], tangents: list[Tensor | None]
) -> tuple[object, object]:
    """The results and their tangents: by the Function's ``jvp``, or from its ``backward``."""
    context = Context(tuple(t is not None for t in tangents))
    out = _apply_below(cls, context, raw)
    if context._dirty:
        raise UnsupportedError(f"{cls.__name__} writes its inputs in place, which td.jvp does not support")
    if cls.jvp is not None:
        return out, fit_all(cls.jvp(context, *tangents), out)
    pairs = [(value, t) for value, t in zip(raw, tangents) if t is not None]
    node = _node(cls, context, raw, [edge_to(value) for value, _ in pairs], out, None)
    result = transpose_node(node, [t for _, t in pairs], out)
    if not isinstance(out, tuple) or result is None:
        return out, result if result is not None else map_results(lambda item, _: None, out)
    return out, tuple(None if i in node.constant else t for i, t in enumerate(result))
