"""Declared derivatives of operators: one declaration serves forward and reverse mode.

A rule is a function whose parameter names select its values, so that only those become residuals: an argument of the
schema, ``out`` (the result), ``g`` (the cotangent of the result), or ``<argument>_spec`` and ``out_spec`` (shape and
dtype without the data). Rules are written with operators, so they can be differentiated, traced and compiled. A number
is a constant rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ... import lazy
from ...named_tuple import NamedTuple

inspect = lazy.Module("inspect")

RuleFn = Callable[..., Any] | int | float | complex


class Partials(NamedTuple):
    """Elementwise: the partial derivative of the result with respect to each tensor argument (0: no contribution).

    A rule that has a parameter ``g`` returns the product with ``g`` instead: ``where(mask, g, 0)`` is one operator, and
    keeps an infinite ``g`` from becoming NaN.
    """

    by: Mapping[str, RuleFn]


class Linear(NamedTuple):
    """Linear in its tensor arguments: the transpose of each, a function of ``g``; the jvp is the operator itself."""

    transpose: Mapping[str, Callable[..., Any]]


class Rule(NamedTuple):
    """General rules: ``vjp[argument]`` is a function of ``g``, ``jvp[argument]`` a function of the tangent ``t``."""

    vjp: Mapping[str, Callable[..., Any]]
    jvp: Mapping[str, Callable[..., Any]] = {}


class Custom(NamedTuple):
    """A backward function for the whole call, as custom operators register it.

    Attributes:
        backward: ``backward(ctx, *grads)``: from the gradient of each result to that of each positional argument.
        setup_context: ``setup_context(ctx, inputs, output)`` stores the residuals of ``backward`` on the context; for
            operators with keyword-only arguments it also takes them, as ``keyword_only_inputs``. None: no residuals.
    """

    backward: Callable[..., Any]
    setup_context: Callable[..., Any] | None = None


class NotDifferentiable(NamedTuple):
    """The operator has no derivative, for the given reason."""

    reason: str


Derivative = Partials | Linear | Rule | Custom | NotDifferentiable


def parameter_names(rule: RuleFn) -> tuple[str, ...]:
    """The names of the values that a rule needs: its parameters."""
    return tuple(inspect.signature(rule).parameters) if callable(rule) else ()


def reverse_rules(derivative: Derivative | None) -> Mapping[str, RuleFn]:
    """Return the reverse-mode rules by argument name; empty without a derivative."""
    if isinstance(derivative, Partials):
        return derivative.by
    if isinstance(derivative, Linear):
        return derivative.transpose
    return derivative.vjp if isinstance(derivative, Rule) else {}
