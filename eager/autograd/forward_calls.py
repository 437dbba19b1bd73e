"""Calls of operators on values of a level of ``jvp`` without the dispatcher, for native entries that do not take them.

A :class:`ForwardCall` does what the dispatcher would for the common call (plain dispatch state, no kernel of another
package), and returns NotImplemented for any other one, which the dispatcher then runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...operators.declare.derivatives import Linear
from ...registry.dispatch.keys import DispatchKey
from ...registry.dispatch.state import DEFAULT, current
from ..layers.level_stack import stack
from ..layers.levels import LevelTensor
from ..tensor.dunders import by_name
from ..tensor.tensor import Tensor
from .derivative_rules import ARGUMENT, GRADIENT, RESULT, OperatorDerivative, derivative_of
from .forward_mode import ForwardMeta, Source, Tangents, attach_tangents, derive, fit_tangent, forward
from .kernel import autograd
from .lifted_captures import capture_lifters
from .node import apply_rule

if TYPE_CHECKING:
    from ...registry.operator import Operator
    from ...registry.types import Kwargs
    from ..layers.levels import Level


class ForwardCall:
    """Runs calls of one operator at a level of ``jvp``.

    Args:
        op: the operator, which returns one tensor and has no lists of tensors among its arguments.
        function: its function, which runs calls at lower levels.
    """

    __slots__ = ("_count", "_function", "_is_linear", "_known", "_op", "_positions", "_source")

    def __init__(self, op: Operator, function: Callable[..., Tensor]):
        self._op, self._function, self._source = op, function, Source(op)
        self._known: OperatorDerivative | None = None
        self._positions: tuple[int, ...] = ()
        self._is_linear, self._count = False, len(op.schema.arguments)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run the call; NotImplemented if the dispatcher has to."""
        level = _innermost(args)
        if level is None or level.forward is not forward or not self._is_plain(level):
            return NotImplemented
        derivative = derivative_of(self._op)
        if derivative is not self._known:
            self._read(derivative)
        tangents: Tangents = [None] * len(self._positions)
        mask, given = 0, list(args)
        for bit, position in enumerate(self._positions):
            x = args[position] if position < len(args) else None
            if isinstance(x, LevelTensor) and x._level is level:
                given[position] = x._payload
                if type(x._meta) is ForwardMeta:
                    mask |= 1 << bit
                    tangents[bit] = x._meta.tangent
        if not mask:
            return NotImplemented
        out = self._function(*given, **kwargs)
        if derivative.reason is None and isinstance(out, Tensor) and out.dtype.is_inexact:
            tangent = self._push(derivative, mask, tangents, given, kwargs, out)
        else:
            tangent = derive(derivative, mask, tangents, tuple(given), kwargs, out)
        return out if tangent is None else attach_tangents(level, self._source, tuple(given), out, tangent)

    def _push(
        self,
        derivative: OperatorDerivative,
        mask: int,
        tangents: Tangents,
        given: list[object],
        kwargs: Kwargs,
        out: Tensor,
    ) -> object:
        """The tangent of the result: :func:`derive` for one result, with arguments as the call has them."""
        if self._is_linear:
            directions = given.copy()
            for position, tangent in zip(self._positions, tangents):
                if position < len(given):
                    directions[position] = _zeros_for(given[position]) if tangent is None else tangent
            return fit_tangent(self._function(*directions, **kwargs), out)
        active = derivative.forward.get(mask)
        if active is None or kwargs or len(given) < self._count:
            raw, named = self._op.binder.bind(tuple(given), kwargs)
            return derive(derivative, mask, tangents, raw, named, out)
        values: list[object] = []
        for kind, where, _ in active.savers:
            if kind == ARGUMENT:
                values.append(given[where])
            elif kind == RESULT:
                values.append(out)
            else:
                return derive(derivative, mask, tangents, *self._op.binder.bind(tuple(given), kwargs), out)
        values.append(None)
        total = None
        for rule in active.rules:
            values[GRADIENT] = tangents[rule.bit]
            term = apply_rule(rule, values)
            total = term if total is None else total if term is None else total + term
        return None if total is None else fit_tangent(total, out)

    def _is_plain(self, level: Level) -> bool:
        """Whether nothing but the level sees the call."""
        return bool(
            level.is_open
            and not level.outer_exclude
            and level.depth > stack.floor
            and current() is DEFAULT
            and not capture_lifters.stack
            and self._op.table[DispatchKey.AutogradCPU].fn is autograd
        )

    def _read(self, derivative: OperatorDerivative) -> None:
        """Note the positions of the arguments that may have tangents; none if the dispatcher has to run all calls."""
        is_common = derivative.decompose is None and not derivative.written and not derivative.is_view
        if is_common and not any(one.is_list or one.position is None for one in derivative.arguments):
            self._positions = tuple(one.position for one in derivative.arguments if one.position is not None)
        else:
            self._positions = ()
        if derivative.uncovered:
            self._positions = ()
        self._is_linear = isinstance(getattr(derivative.decl, "derivative", None), Linear)
        self._known = derivative


def _zeros_for(value: object) -> object:
    """The argument of a linear operator for one without a tangent."""
    if isinstance(value, Tensor):
        return by_name("zeros_like")(value)
    return value if value is None else 0


def _innermost(args: tuple[object, ...]) -> Level | None:
    """The innermost level of the values among arguments."""
    level: Level | None = None
    for x in args:
        if isinstance(x, LevelTensor) and (level is None or x._level.depth > level.depth):
            level = x._level
    return level
