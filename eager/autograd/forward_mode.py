"""Forward mode: the kernel of a level of ``jvp``, whose values carry a tangent.

The tangent of a result follows from the derivative that the operator declares: partials are summed, a linear operator
is applied to the tangents, a rule has its own ``jvp``. An operator with only a reverse rule is transposed: that rule is
linear in the cotangent, so reverse mode through the rule computes the tangent.

Tangents are never written in place: a write into a value assigns new tangents to it and to the views of its memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import config
from ...errors import NotDifferentiableError
from ...named_tuple import NamedTuple
from ...operators.declare.derivatives import Linear, Partials, parameter_names
from ...operators.declare.derivatives import Rule as DeclaredRule
from ...registry.dispatch.guards import adjust_keys
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import state
from ...registry.function import functions
from ...registry.operator import Operator
from ..layers.levels import (
    Level,
    LevelTensor,
    check_written,
    copy_if_aliased,
    open_level,
    replace_written,
    run_below,
    unwrap_deep,
    wrap_level,
)
from ..tensor.dunders import by_name
from ..tensor.results import flat, map_results
from ..tensor.tensor import Tensor
from .autograd_meta import AutogradMeta
from .derivative_rules import (
    ARGUMENT,
    ARGUMENT_SPEC,
    GRADIENT,
    KEYWORD,
    KEYWORD_SPEC,
    RESULT,
    ActiveRules,
    OperatorDerivative,
    Rule,
    derivative_of,
)
from .engine import Pass
from .kernel import make_node, value_at, written_values
from .node import Edge, Node, apply_rule, fit, spec_deep, zeros_of
from .view_writes import root_of, track_view

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs

# For each tensor argument: its tangent, None, or for a list of tensors a tuple of those.
Tangents = list[Any]


class Source(NamedTuple):
    """Placeholder for the graph node of a result: the operator, for messages."""

    op: Any


class ForwardMeta(AutogradMeta):
    """The data of a value at a level of ``jvp``: its tangent, a value of the levels below."""

    __slots__ = ("tangent",)

    def __init__(self, tangent: Tensor, source: Source | None = None):
        super().__init__(source)
        self.tangent = tangent


def tangent_at(level: Level, value: object) -> Tensor | None:
    """The tangent of a value at a level; None if it does not depend on the inputs."""
    if isinstance(value, LevelTensor) and value._level is level and type(value._meta) is ForwardMeta:
        return value._meta.tangent
    return None


def forward(level: Level, op: Operator, args: Args, kwargs: Kwargs) -> object:
    """Run an operator below a level of ``jvp`` and compute the tangents of its results."""
    derivative = derivative_of(op)
    if derivative.decompose is not None:
        return derivative.decompose(*args, **kwargs)
    if derivative.written:
        return _write(derivative, level, args, kwargs)
    raw_args = tuple([unwrap_deep(level, arg) for arg in args])
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()} if kwargs else kwargs
    out = run_below(op, level, raw_args, raw_kwargs)
    if state.exclude & AUTOGRAD:
        return out
    mask, tangents = tangents_of(derivative, level, args, kwargs)
    if not mask:
        return out
    results = run_at_outer(level, lambda: derive(derivative, mask, tangents, raw_args, raw_kwargs, out))
    if results is None:
        return out
    result = attach_tangents(level, Source(op), raw_args, out, results)
    if derivative.is_view:
        track_view(derivative, args, kwargs, result)
    return result


def run_at_outer(level: Level, compute: Callable[[], Any]) -> Any:
    """Call a function with the autograd keys that were excluded outside the level."""
    if not level.outer_exclude:
        return compute()
    with adjust_keys(exclude=level.outer_exclude):
        return compute()


def tangents_of(
    derivative: OperatorDerivative, level: Level, args: Args, kwargs: Kwargs
) -> tuple[int, Tangents]:
    """The arguments with tangents, as bits, and the tangents; the next bit marks arguments without a rule."""
    mask, current = 0, []
    for bit, argument in enumerate(derivative.arguments):
        value = value_at(argument, args, kwargs)
        if argument.is_list:
            tangent: Any = tuple([tangent_at(level, item) for item in value or ()])
            there = any(item is not None for item in tangent)
        else:
            tangent = tangent_at(level, value)
            there = tangent is not None
        mask |= there << bit
        current.append(tangent if there else None)
    for argument in derivative.uncovered:
        if any(tangent_at(level, item) is not None for item in flat(value_at(argument, args, kwargs))):
            return mask | 1 << len(derivative.arguments), current
    return mask, current


def attach_tangents(level: Level, source: Source, given: Args, out: object, tangents: object) -> object:
    """Wrap results that have a tangent as values of the level; return others unchanged."""
    if not isinstance(out, (tuple, list)):
        return _wrap_result(level, source, given, out, tangents)
    several = flat(tangents)
    return map_results(lambda item, index: _wrap_result(level, source, given, item, several[index]), out)


def _wrap_result(level: Level, source: Any, given: tuple[Any, ...], item: Any, tangent: Any) -> Any:
    if tangent is None or not item.dtype.is_inexact:
        return item
    for arg in given:
        if arg is item:  # the kernel returned an argument
            item = by_name("reshape")(item, item.shape)
            break
    return wrap_level(level, item, ForwardMeta(tangent, source))


# -- the derivative ----------------------------------------------------------------------------------------------------
def derive(
    derivative: OperatorDerivative, mask: int, tangents: Tangents, args: Args, kwargs: Kwargs, out: object
) -> object:
    """The tangents of the results of a call; None if they do not depend on those of the arguments.

    Args:
        derivative: how the operator is differentiated.
        mask: which arguments have tangents.
        tangents: their tangents.
        args, kwargs: the arguments, as values of the levels below.
        out: the result.

    Raises:
        NotDifferentiableError: the operator has no derivative, or none by one of the arguments.
    """
    if not any(isinstance(item, Tensor) and item.dtype.is_inexact for item in flat(out)):
        return None
    if derivative.reason is not None or mask >> len(derivative.arguments):
        return _report_missing(derivative)
    formula = derivative.op.decl.derivative
    if isinstance(formula, Linear):
        return fit_all(_linear(derivative, tangents, args, kwargs), out)
    active = derivative.forward.get(mask) or derivative.forward.setdefault(mask, _activate(derivative, mask))
    if active is None:
        return _transposed_call(derivative, mask, tangents, args, kwargs, out)
    values = [*_values(active, args, kwargs, out), None]  # the last is at GRADIENT, -1
    total = None
    for rule in active.rules:
        values[GRADIENT] = _fill_tangent(derivative, rule, tangents[rule.bit], args, kwargs)
        term = apply_rule(rule, values)
        total = term if total is None else total if term is None else _sum(total, term)
    return None if total is None else fit_all(total, out)


def _report_missing(derivative: OperatorDerivative) -> object:
    """Raise an error for a missing derivative, or warn and return no tangent, as configured."""
    names = ", ".join(argument.name for argument in derivative.uncovered)
    reason = derivative.reason or f"its rules leave out one of {names}"
    message = f"the operator {derivative.op.name} has no derivative: {reason}"
    if config.flags.missing_derivative == "error":
        raise NotDifferentiableError(
            f"{message}; x.detach() and td.stop_gradient(x) treat a value as a constant"
        )
    warnings.warn(f"{message}; its result is treated as a constant", RuntimeWarning, stacklevel=2)
    return None


def _activate(derivative: OperatorDerivative, mask: int) -> ActiveRules | None:
    """The rules of forward mode for the arguments with tangents; None if one of them has only a reverse rule."""
    formula = derivative.op.decl.derivative
    if isinstance(formula, Partials):
        return derivative.active(mask)
    if not isinstance(formula, DeclaredRule):
        return None
    needed: dict[str, int] = {}
    rules = []
    for bit, argument in enumerate(derivative.arguments):
        if mask >> bit & 1:
            rule = formula.jvp.get(argument.name)
            if rule is None:
                return None
            indices = tuple(
                GRADIENT if name == "t" else needed.setdefault(name, len(needed))
                for name in parameter_names(rule)
            )
            rules.append(Rule(bit, rule, indices, None, False, argument.is_list))
    return ActiveRules(tuple(rules), tuple(derivative.saver(name) for name in needed))


def _values(active: ActiveRules, args: Args, kwargs: Kwargs, out: object) -> list[object]:
    """The values that the rules name."""
    result = []
    for kind, where, _ in active.savers:
        if kind in (ARGUMENT, ARGUMENT_SPEC):
            value = args[where]
        else:
            value = kwargs[where] if kind in (KEYWORD, KEYWORD_SPEC) else out
        result.append(value if kind in (ARGUMENT, KEYWORD, RESULT) else spec_deep(value))
    return result


def _fill_tangent(
    derivative: OperatorDerivative, rule: Rule, tangent: Any, args: Args, kwargs: Kwargs
) -> Any:
    """The tangent that a rule receives; for a list, with zeros for the items that have none."""
    if not rule.is_list:
        return tangent
    value = value_at(derivative.arguments[rule.bit], args, kwargs)
    return tuple([_or_zeros(t, item) for t, item in zip(tangent, value)])


def _or_zeros(tangent: Any, value: Any) -> Any:
    return by_name("zeros_like")(value) if tangent is None else tangent


def _sum(one: Any, two: Any) -> Any:
    if isinstance(one, (tuple, list)):
        return tuple([_sum(a, b) for a, b in zip(one, two)])
    return one + two


def _linear(derivative: OperatorDerivative, tangents: Tangents, args: Args, kwargs: Kwargs) -> object:
    """Apply an operator that is jointly linear in its tensor arguments to their tangents."""
    args, kwargs = list(args), dict(kwargs)  # type: ignore[assignment]
    for argument, tangent in zip(derivative.arguments, tangents):
        value = value_at(argument, args, kwargs)
        if argument.is_list:
            missing = (None,) * len(value or ())
            result: Any = tuple([_or_zeros(t, item) for t, item in zip(tangent or missing, value or ())])
        else:
            result = _or_zeros(tangent, value) if isinstance(value, Tensor) else value if value is None else 0
        if argument.position is None:
            kwargs[argument.name] = result
        else:
            args[argument.position] = result  # type: ignore[index]
    return functions.get(derivative.op.name, derivative.op)(*args, **kwargs)


def fit_all(tangents: Any, out: object) -> object:
    """Broadcast and cast tangents to the shapes and dtypes of the results."""
    if isinstance(out, (tuple, list)):
        return tuple([fit_all(t, item) for t, item in zip(tangents, out)])
    if tangents is None or not isinstance(out, Tensor) or not out.dtype.is_inexact:
        return None
    return fit_tangent(tangents, out)


def fit_tangent(tangent: Tensor, out: Tensor) -> Tensor:
    """Broadcast and cast a tangent to the shape and dtype of its value."""
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
def _transposed_call(
    derivative: OperatorDerivative, mask: int, tangents: Tangents, args: Args, kwargs: Kwargs, out: object
) -> object:
    edges: list[Any] = []
    given = [tangent for bit, tangent in enumerate(tangents) if mask >> bit & 1]
    for bit, argument in enumerate(derivative.arguments):
        if mask >> bit & 1:
            value, tangent = value_at(argument, args, kwargs), tangents[bit]
            edges.append(
                tuple(None if t is None else edge_to(v) for v, t in zip(value, tangent))
                if argument.is_list
                else edge_to(value)
            )
    node = make_node(derivative, mask, edges, args, kwargs, out, False)
    return transpose_node(node, given, out)


def edge_to(value: Tensor) -> Edge:
    """An edge without a target, which records only the shape and dtype of the gradient."""
    return None, 0, value.shape, value.dtype


def transpose_node(node: Node, tangents: Tangents, out: object) -> Any:
    """Compute the tangents of results by transposing the reverse rule of a call.

    The rule is a linear function of the cotangents; its own reverse rule, for the tangents as cotangents, is what
    forward mode computes.

    Args:
        node: the call; its edges are those of :func:`edge_to`.
        tangents: one for each edge; for a list of tensors a tuple.
        out: the results.
    """
    starts: dict[int, LevelTensor] = {}
    with open_level(f"jvp({node.op.schema.name})", "") as level:
        for index, item in enumerate(flat(out)):
            if isinstance(item, Tensor) and item.dtype.is_inexact:
                starts[index] = wrap_level(level, zeros_of(item.spec), AutogradMeta())
        roots = [
            (g._meta.node or g._meta, g._meta.index, t)
            for g, t in _pairs(node, node.gradients(dict(starts)), tangents)
            if isinstance(g, LevelTensor) and g._level is level and g._meta is not None
        ]
    result = Pass(keep=False).run(roots)
    by_index = {index: result.get(start._meta) for index, start in starts.items()}  # type: ignore[arg-type]
    if not any(item is not None for item in by_index.values()):
        return None
    numbers = iter(range(len(flat(out))))
    return fit_all(_in_order(out, by_index, numbers), out)


def _in_order(out: Any, tangents: dict[int, Tensor | None], numbers: Iterator[int]) -> Any:
    if isinstance(out, (tuple, list)):
        return tuple([_in_order(item, tangents, numbers) for item in out])
    tangent = tangents.get(next(numbers))
    inexact = isinstance(out, Tensor) and out.dtype.is_inexact
    return zeros_of(out.spec) if tangent is None and inexact else tangent


def _pairs(node: Node, gradients: list[Any], tangents: Tangents) -> list[tuple[Tensor, Tensor]]:
    """For each argument, its gradient in the argument's shape and dtype, and its tangent."""
    result: list[tuple[Any, Any]] = []
    for edge, gradient, tangent in zip(node.edges, gradients, tangents):
        if gradient is None:
            continue
        rows = zip(edge, gradient, tangent) if isinstance(tangent, tuple) else [(edge, gradient, tangent)]
        result += [(fit(g, e[2], e[3]), t) for e, g, t in rows if e is not None and g is not None]
    return result


# -- in place ----------------------------------------------------------------------------------------------------------
def _write(derivative: OperatorDerivative, level: Level, args: Args, kwargs: Kwargs) -> object:
    """Run an operator that writes; the written values get the tangent of the functional operator."""
    targets = written_values(derivative, args, kwargs)
    for target in targets:
        check_written(derivative.op, level, target)
    raw_args = tuple([unwrap_deep(level, arg) for arg in args])
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()}
    is_on = not state.exclude & AUTOGRAD
    compute = partial(_tangent_written, derivative, level, args, kwargs)
    tangent = run_at_outer(level, compute) if is_on else None
    out = run_below(derivative.op, level, raw_args, raw_kwargs)
    if is_on:
        source = Source(derivative.op)
        for target in targets:
            if target.dtype.is_inexact:
                run_at_outer(level, partial(_rebase, level, target, tangent, source))
    return replace_written(level, targets, out)


def _tangent_written(derivative: OperatorDerivative, level: Level, args: Any, kwargs: Kwargs) -> object:
    """The tangent of a write, computed before the write, while the arguments still have their old values."""
    inner = derivative if derivative.inner is None else derivative_of(derivative.inner)
    mask, tangents = tangents_of(inner, level, args, kwargs)
    if not mask:
        return None
    if derivative.inner is None:
        return _report_missing(derivative)
    # Levels below may save the arguments.
    raw_args = tuple([copy_if_aliased(args[0], unwrap_deep(level, arg)) for arg in args])
    raw_kwargs = {name: unwrap_deep(level, arg) for name, arg in kwargs.items()}
    out = functions.get(inner.op.name, inner.op)(*raw_args, **raw_kwargs)
    return fit_all(derive(inner, mask, tangents, raw_args, raw_kwargs, out), args[0])


def _rebase(level: Level, target: Tensor, tangent: Any, source: Source) -> None:
    """Assign the new tangent to a written value and update all values that share its memory."""
    alias_set, root = None if target._meta is None else target._meta.alias_set, root_of(target)
    whole = tangent if root is target else _replace_part(level, root, target, tangent)
    _set_tangent(root, whole, source)
    for member in alias_set.live() if alias_set is not None else ():
        if member is not root:
            view = member._meta.view
            base = tangent_at(level, view.base)
            _set_tangent(member, None if base is None else view.part()(base), source)


def _set_tangent(value: Tensor, tangent: Tensor | None, source: Source) -> None:
    old = value._meta
    value._meta = AutogradMeta(None, 0, False) if tangent is None else ForwardMeta(tangent, source)
    if old is not None:
        value._meta.view, value._meta.alias_set = old.view, old.alias_set


def _replace_part(level: Level, root: Any, target: Any, tangent: Tensor | None) -> Tensor | None:
    """The tangent of the root after the tangent of a view was replaced."""
    before = tangent_at(level, root)
    if before is None and tangent is None:
        return None
    chain, part = [], target
    while part is not root:
        chain.append(part)
        part = part._meta.view.base
    mask = by_name("ones_like")(target._payload)
    placed = tangent
    for member in chain:
        mask = _scatter_part(member, mask)
        placed = None if placed is None else _scatter_part(member, placed)
    placed = by_name("zeros_like")(mask) if placed is None else placed
    return placed if before is None else by_name("where")(mask == 0, before, placed)


def _scatter_part(view_value: Any, part: Tensor) -> Tensor:
    """Scatter a part into zeros of the base's shape: the transpose of the view."""
    view = view_value._meta.view
    base = view.base._payload if hasattr(view.base, "_payload") else view.base
    node = make_node(view.derivative, 1, [edge_to(base)], (base, *view.args[1:]), view.kwargs, part, False)
    return fit(node.gradients({0: part})[0], base.shape, base.dtype)
