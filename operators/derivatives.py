"""How an operator declares its derivative: once, for forward and reverse mode.

A rule is a function of *named* values, read off its parameter names, so that only what it names is saved:
an argument of the schema, ``out`` (the result), ``g`` (the cotangent of the result), or ``<argument>_spec`` and
``out_spec`` (shape and dtype without the data). Rules are written with operators, so they differentiate again, trace
and compile. A number stands for a constant rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import lazy

RuleFn = Callable[..., Any] | int | float


class Partials(NamedTuple):
    """Elementwise: the partial derivative of the result by each tensor argument (0 contributes nothing).

    A rule that names ``g`` gives the product with it instead: where a mask chooses, ``where(mask, g, 0)`` is one
    operator and keeps an infinite ``g`` from becoming NaN.
    """

    by: Mapping[str, RuleFn]


class Linear(NamedTuple):
    """Linear in its tensor arguments: the transpose by each, a function of ``g``; the tangent is the operator's own."""

    transpose: Mapping[str, Callable[..., Any]]


class Rule(NamedTuple):
    """Anything else: ``vjp[argument]`` a function of ``g``, ``jvp[argument]`` a function of ``t``, the tangent."""

    vjp: Mapping[str, Callable[..., Any]]
    jvp: Mapping[str, Callable[..., Any]] = {}


class Custom(NamedTuple):
    """Written by hand for the whole call, as those who add an operator from outside do.

    Attributes:
        backward: ``backward(ctx, *grads)``: from the gradient of each result to that of each positional argument.
        setup_context: ``setup_context(ctx, inputs, output)``: notes on the context what ``backward`` needs; where the
            operator has keyword-only arguments it also takes them, as ``keyword_only_inputs``. None: nothing is needed.
    """

    backward: Callable[..., Any]
    setup_context: Callable[..., Any] | None = None


class NotDifferentiable(NamedTuple):
    """Said aloud: there is no derivative, and why."""

    reason: str


Derivative = Partials | Linear | Rule | Custom | NotDifferentiable


def names_of(rule: RuleFn) -> tuple[str, ...]:
    """The names of the values that a rule needs."""
    return tuple(lazy.module("inspect").signature(rule).parameters) if callable(rule) else ()


def reverse_rules(derivative: Derivative | None) -> Mapping[str, RuleFn]:
    """The rules of reverse mode by argument name (empty where there is no derivative)."""
    if isinstance(derivative, Partials):
        return derivative.by
    if isinstance(derivative, Linear):
        return derivative.transpose
    return derivative.vjp if isinstance(derivative, Rule) else {}
