"""Forward mode: the kernel of a level of ``jvp``, whose values carry a tangent.

The tangent of a result follows from the one derivative that the operator declares: partials are summed up, a linear
operator is applied to the tangents, a rule gives its ``jvp``. What has only a reverse rule is transposed: that rule is
linear in the cotangent, so reverse mode through *it* gives the tangent.

Tangents are never written: a write into a value gives it, and the views of its memory, new ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from .. import config
from ..errors import NotDifferentiableError
from ..operators.derivatives import Linear, Partials, names_of
from ..operators.derivatives import Rule as DeclaredRule
from ..registry.function import functions
from ..registry.keys import AUTOGRAD
from ..registry.operator import Operator
from ..registry.state import adjusted, state
from .dunders import by_name
from .engine import Pass
from .levels import (
    Level,
    LevelTensor,
    check_written,
    open_level,
    results_written,
    run_below,
    unwrap_deep,
    unwritten,
    wrap_level,
)
from .meta import AutogradMeta
from .node import Node, apply_rule, fit, spec_deep, zeros_of
from .plans import (
    ARGUMENT,
    ARGUMENT_SPEC,
    GRADIENT,
    KEYWORD,
    KEYWORD_SPEC,
    RESULT,
    Active,
    Plan,
    Rule,
    plan_of,
)
from .record import Args, Kwargs, make_node, value_at, written_values
from .results import flat, map_results
from .tensor import Tensor
from .views import root_of, track

Tangents = list[
    Any
]  # for each argument of a plan its tangent, None, or for a list of tensors a tuple of these


class Source(NamedTuple):
    """What stands for the node of a result: the operator, for messages."""

    op: Any


class ForwardMeta(AutogradMeta):
    """What a level of ``jvp`` knows about a value: its tangent, a value of the levels below."""

    __slots__ = ("tangent",)

    def __init__(self, tangent: Any, source: Source | None = None):
        super().__init__(source)
        self.tangent = tangent


def tangent_at(level: Level, value: Any) -> Any:
    """The tangent of a value at a level; None for what does not depend on what is differentiated by."""
    if isinstance(value, LevelTensor) and value._level is level and type(value._meta) is ForwardMeta:
        return value._meta.tangent
    return None


def forward(level: Level, op: Operator, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator below a level of ``jvp``, and find the tangents of its results."""
    plan = plan_of(op)
    if plan.decompose is not None:
        return plan.decompose(*args, **kwargs)
    if plan.written:
        return _write(plan, level, args, kwargs)
    raw_args = tuple([unwrap_deep(level, arg) for arg in args])
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()} if kwargs else kwargs
    out = run_below(op, level, raw_args, raw_kwargs)
    if state.exclude & AUTOGRAD:
        return out
    mask, tangents = tangents_of(plan, level, args, kwargs)
    if not mask:
        return out
    if level.outer_exclude:
        with adjusted(exclude=level.outer_exclude):
            found = derive(plan, mask, tangents, raw_args, raw_kwargs, out)
    else:
        found = derive(plan, mask, tangents, raw_args, raw_kwargs, out)
    if found is None:
        return out
    result = attach(level, Source(op), raw_args, out, found)
    if plan.is_view:
        track(plan, args, kwargs, result)
    return result


def at_outer(level: Level, compute: Callable[[], Any]) -> Any:
    """Compute something as it is recorded outside of the level."""
    if not level.outer_exclude:
        return compute()
    with adjusted(exclude=level.outer_exclude):
        return compute()


def tangents_of(plan: Plan, level: Level, args: Args, kwargs: Kwargs) -> tuple[int, Tangents]:
    """Which arguments have tangents, as bits, and their tangents; one more bit for those without a rule."""
    mask, found = 0, []
    for bit, argument in enumerate(plan.arguments):
        value = value_at(argument, args, kwargs)
        if argument.is_list:
            tangent: Any = tuple([tangent_at(level, item) for item in value or ()])
            there = any(item is not None for item in tangent)
        else:
            tangent = tangent_at(level, value)
            there = tangent is not None
        mask |= there << bit
        found.append(tangent if there else None)
    for argument in plan.uncovered:
        if any(tangent_at(level, item) is not None for item in flat(value_at(argument, args, kwargs))):
            return mask | 1 << len(plan.arguments), found
    return mask, found


def attach(level: Level, source: Any, given: Args, out: Any, tangents: Any) -> Any:
    """Results as values of the level; those without a tangent stay what they are."""
    if not isinstance(out, (tuple, list)):
        return _wrapped(level, source, given, out, tangents)
    several = flat(tangents)
    return map_results(lambda item, index: _wrapped(level, source, given, item, several[index]), out)


def _wrapped(level: Level, source: Any, given: Args, item: Any, tangent: Any) -> Any:
    if tangent is None or not item.dtype.is_inexact:
        return item
    for arg in given:
        if arg is item:  # the kernel gave back an argument
            item = by_name("reshape")(item, item.shape)
            break
    return wrap_level(level, item, ForwardMeta(tangent, source))


# -- the derivative ----------------------------------------------------------------------------------------------------
def derive(plan: Plan, mask: int, tangents: Tangents, args: Args, kwargs: Kwargs, out: Any) -> Any:
    """The tangents of the results of a call; None where they do not depend on those of the arguments.

    Args:
        plan: how the operator is differentiated.
        mask: which arguments have tangents.
        tangents: theirs.
        args, kwargs: the arguments, as values of the levels below.
        out: the result.

    Raises:
        NotDifferentiableError: the operator has no derivative, or none by one of the arguments.
    """
    if isinstance(out, Tensor):
        if not out.dtype.is_inexact:
            return None
    elif not any(isinstance(item, Tensor) and item.dtype.is_inexact for item in flat(out)):
        return None
    if plan.reason is not None or mask >> len(plan.arguments):
        return _missing(plan)
    derivative = plan.op.decl.derivative
    if isinstance(derivative, Linear):
        return fit_all(_linear(plan, tangents, args, kwargs), out)
    active = plan.forward.get(mask) or plan.forward.setdefault(mask, _activate(plan, mask))
    if active is None:
        return _transposed_call(plan, mask, tangents, args, kwargs, out)
    values = _values(active, args, kwargs, out)
    values.append(None)  # so its place is GRADIENT, -1
    total = None
    for rule in active.rules:
        values[GRADIENT] = _filled(plan, rule, tangents[rule.bit], args, kwargs)
        term = apply_rule(rule, values)
        total = term if total is None else total if term is None else _sum(total, term)
    return None if total is None else fit_all(total, out)


def _missing(plan: Plan) -> None:
    """There is no derivative: an error, or where the user wants that a warning and no tangent."""
    reason = plan.reason or f"its rules leave out one of {', '.join(a.name for a in plan.uncovered)}"
    message = f"the operator {plan.op.name} has no derivative: {reason}"
    if config.flags.missing_derivative == "error":
        raise NotDifferentiableError(f"{message}; x.detach() and td.stop_gradient(x) hold a value constant")
    warnings.warn(f"{message}; what it depends on counts for nothing in it", RuntimeWarning, stacklevel=2)


def _activate(plan: Plan, mask: int) -> Active | None:
    """The rules of forward mode for the arguments with tangents; None if one of them has only a reverse rule."""
    derivative = plan.op.decl.derivative
    if isinstance(derivative, Partials):
        return plan.active(mask)
    if not isinstance(derivative, DeclaredRule):
        return None
    needed: dict[str, int] = {}
    rules = []
    for bit, argument in enumerate(plan.arguments):
        if mask >> bit & 1:
            rule = derivative.jvp.get(argument.name)
            if rule is None:
                return None
            places = tuple(
                GRADIENT if name == "t" else needed.setdefault(name, len(needed)) for name in names_of(rule)
            )
            rules.append(Rule(bit, rule, places, None, False, argument.is_list))
    return Active(tuple(rules), tuple(plan.saver(name) for name in needed))


def _values(active: Active, args: Args, kwargs: Kwargs, out: Any) -> list[Any]:
    """The values that the rules name."""
    found = []
    for kind, where, _ in active.savers:
        if kind in (ARGUMENT, ARGUMENT_SPEC):
            value = args[where]
        else:
            value = kwargs[where] if kind in (KEYWORD, KEYWORD_SPEC) else out
        found.append(value if kind in (ARGUMENT, KEYWORD, RESULT) else spec_deep(value))
    return found


def _filled(plan: Plan, rule: Rule, tangent: Any, args: Args, kwargs: Kwargs) -> Any:
    """A tangent for a rule; that of a list with zeros for the items that have none."""
    if not rule.is_list:
        return tangent
    value = value_at(plan.arguments[rule.bit], args, kwargs)
    return tuple([_or_zeros(t, item) for t, item in zip(tangent, value)])


def _or_zeros(tangent: Any, value: Any) -> Any:
    return by_name("zeros_like")(value) if tangent is None else tangent


def _sum(one: Any, two: Any) -> Any:
    if isinstance(one, (tuple, list)):
        return tuple([_sum(a, b) for a, b in zip(one, two)])
    return one + two


def _linear(plan: Plan, tangents: Tangents, args: Args, kwargs: Kwargs) -> Any:
    """An operator that is linear in its tensor arguments together: itself, of their tangents."""
    args, kwargs = list(args), dict(kwargs)  # type: ignore[assignment]
    for argument, tangent in zip(plan.arguments, tangents):
        value = value_at(argument, args, kwargs)
        if argument.is_list:
            missing = (None,) * len(value or ())
            found: Any = tuple([_or_zeros(t, item) for t, item in zip(tangent or missing, value or ())])
        else:
            found = _or_zeros(tangent, value) if isinstance(value, Tensor) else value if value is None else 0
        if argument.position is None:
            kwargs[argument.name] = found
        else:
            args[argument.position] = found  # type: ignore[index]
    return functions.get(plan.op.name, plan.op)(*args, **kwargs)


def fit_all(tangents: Any, out: Any) -> Any:
    """Tangents with the shapes and dtypes of the results."""
    if isinstance(out, (tuple, list)):
        return tuple([fit_all(t, item) for t, item in zip(tangents, out)])
    if tangents is None or not isinstance(out, Tensor) or not out.dtype.is_inexact:
        return None
    return fit_tangent(tangents, out)


def fit_tangent(tangent: Any, out: Any) -> Any:
    """A tangent with the shape and dtype of its value: broadcasting and promotion leave terms smaller."""
    if type(tangent) is Tensor and type(out) is Tensor:
        one, two = tangent._array, out._array
        if one.shape == two.shape and one.dtype is two.dtype:
            return tangent
    dtype = out.dtype
    if tangent.dtype is not dtype:
        if tangent.dtype.kind == "c" and dtype.kind != "c":
            tangent = by_name("real")(tangent)
        tangent = by_name("astype")(tangent, dtype, copy=False)
    return tangent if tangent.shape == out.shape else by_name("broadcast_to")(tangent, out.shape)


# -- from the reverse rule ---------------------------------------------------------------------------------------------
def _transposed_call(plan: Plan, mask: int, tangents: Tangents, args: Args, kwargs: Kwargs, out: Any) -> Any:
    edges: list[Any] = []
    given: list[Any] = []
    for bit, argument in enumerate(plan.arguments):
        if mask >> bit & 1:
            value, tangent = value_at(argument, args, kwargs), tangents[bit]
            given.append(tangent)
            edges.append(
                tuple(None if t is None else edge_to(v) for v, t in zip(value, tangent))
                if argument.is_list
                else edge_to(value)
            )
    node = make_node(plan, mask, edges, args, kwargs, out, False)
    return transposed(node, given, out)


def edge_to(value: Any) -> Any:
    """An edge that says of an argument only what its gradient must be."""
    return None, 0, value.shape, value.dtype


def transposed(node: Node, tangents: Tangents, out: Any) -> Any:
    """The tangents of results, from the reverse rule of the call.

    The rule is a linear function of the cotangents; its own reverse rule, for the tangents as cotangents, is what
    forward mode computes.

    Args:
        node: the call; its edges are those of :func:`edge_to`.
        tangents: one for each edge; for a list of tensors a tuple.
        out: the results.
    """
    name = f"jvp({node.op.schema.name})"
    starts: dict[int, Any] = {}
    with open_level(name, "") as level:
        for index, item in enumerate(flat(out)):
            if isinstance(item, Tensor) and item.dtype.is_inexact:
                starts[index] = wrap_level(level, zeros_of(item.spec), AutogradMeta())
        roots = [
            (g._meta.node or g._meta, g._meta.index, t)
            for g, t in _pairs(node, node.gradients(dict(starts)), tangents)
            if isinstance(g, LevelTensor) and g._level is level and g._meta is not None
        ]
    found = Pass(keep=False).run(roots)
    by_index = {index: found.get(start._meta) for index, start in starts.items()}
    if not any(item is not None for item in by_index.values()):
        return None
    numbers = iter(range(len(flat(out))))
    return fit_all(_in_order(out, by_index, numbers), out)


def _in_order(out: Any, found: dict[int, Any], numbers: Any) -> Any:
    if isinstance(out, (tuple, list)):
        return tuple([_in_order(item, found, numbers) for item in out])
    tangent = found.get(next(numbers))
    inexact = isinstance(out, Tensor) and out.dtype.is_inexact
    return zeros_of(out.spec) if tangent is None and inexact else tangent


def _pairs(node: Node, gradients: list[Any], tangents: Tangents) -> list[tuple[Any, Any]]:
    """For each argument the gradient by it, fitted, and its tangent."""
    found: list[tuple[Any, Any]] = []
    for edge, gradient, tangent in zip(node.edges, gradients, tangents):
        if gradient is None:
            continue
        rows = zip(edge, gradient, tangent) if isinstance(tangent, tuple) else [(edge, gradient, tangent)]
        found += [(fit(g, e[2], e[3]), t) for e, g, t in rows if e is not None and g is not None]
    return found


# -- in place ----------------------------------------------------------------------------------------------------------
def _write(plan: Plan, level: Level, args: Args, kwargs: Kwargs) -> Any:
    """Run an operator that writes; what is written gets the tangent of the functional operator."""
    targets = written_values(plan, args, kwargs)
    for target in targets:
        check_written(plan.op, level, target)
    raw_args = tuple([unwrap_deep(level, arg) for arg in args])
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()}
    is_on = not state.exclude & AUTOGRAD
    tangent = at_outer(level, lambda: _tangent_written(plan, level, args, kwargs)) if is_on else None
    out = run_below(plan.op, level, raw_args, raw_kwargs)
    if is_on:
        source = Source(plan.op)
        for target in targets:
            if target.dtype.is_inexact:
                at_outer(level, partial(_rebase, level, target, tangent, source))
    return results_written(level, targets, out)


def _tangent_written(plan: Plan, level: Level, args: Args, kwargs: Kwargs) -> Any:
    """The tangent that a write gives; found before it, while the arguments are what they were."""
    inner = plan if plan.inner is None else plan_of(plan.inner)
    mask, tangents = tangents_of(inner, level, args, kwargs)
    if not mask:
        return None
    if plan.inner is None:
        return _missing(plan)
    raw_args = tuple(
        [unwritten(args[0], unwrap_deep(level, arg)) for arg in args]
    )  # levels below may save them
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()}
    out = functions.get(inner.op.name, inner.op)(*raw_args, **raw_kwargs)
    return derive(inner, mask, tangents, raw_args, raw_kwargs, out)


def _rebase(level: Level, target: Any, tangent: Any, source: Source) -> None:
    """Give a value that was written its new tangent, and with it all that lie in its memory."""
    family = None if target._meta is None else target._meta.family
    root = root_of(target)
    whole = tangent if root is target else _with_part(level, root, target, tangent)
    _set(root, whole, source)
    for member in family.live() if family is not None else ():
        if member is not root:
            view = member._meta.view
            base = tangent_at(level, view.base)
            _set(member, None if base is None else view.part()(base), source)


def _set(value: Any, tangent: Any, source: Source) -> None:
    old = value._meta
    value._meta = AutogradMeta(None, 0, False) if tangent is None else ForwardMeta(tangent, source)
    if old is not None:
        value._meta.view, value._meta.family = old.view, old.family


def _with_part(level: Level, root: Any, target: Any, tangent: Any) -> Any:
    """The tangent of a whole memory after that of a part was replaced."""
    before = tangent_at(level, root)
    if before is None and tangent is None:
        return None
    chain = []
    part = target
    while part is not root:
        chain.append(part)
        part = part._meta.view.base
    mask = by_name("ones_like")(target._payload)
    placed = tangent
    for member in chain:
        mask = _placed(member, mask)
        placed = None if placed is None else _placed(member, placed)
    placed = by_name("zeros_like")(mask) if placed is None else placed
    return placed if before is None else by_name("where")(mask == 0, before, placed)


def _placed(view_value: Any, part: Any) -> Any:
    """Zeros of the base's shape with a part at the place of a view: the transpose of the view."""
    view = view_value._meta.view
    base = view.base._payload if hasattr(view.base, "_payload") else view.base
    node = make_node(view.plan, 1, [edge_to(base)], (base, *view.args[1:]), view.kwargs, part, False)
    return fit(node.gradients({0: part})[0], base.shape, base.dtype)
