"""The derivative of an operator, read off its declaration once: its rules and the residuals that they need.

Which residuals are saved depends on the arguments that need gradients, so an :class:`OperatorDerivative` caches one
:class:`ActiveRules` for each set of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...named_tuple import NamedTuple
from ...operators.declare.declaration import Declaration
from ...operators.declare.derivatives import (
    Custom,
    NotDifferentiable,
    Partials,
    parameter_names,
    reverse_rules,
)
from ...registry.operator import Operator
from ..tensor.inplace import functional

if TYPE_CHECKING:
    from ...registry.types import Function

GRADIENT = -1  # the index of ``g`` among a rule's values
ARGUMENT, KEYWORD, RESULT, ARGUMENT_SPEC, KEYWORD_SPEC, RESULT_SPEC = range(6)


class Rule(NamedTuple):
    """One rule of reverse mode.

    Attributes:
        bit: the index of its argument in ``OperatorDerivative.arguments``.
        fn: the function; None for a constant.
        indices: for each parameter, the index of its value among the residuals, or ``GRADIENT``.
        constant: the constant partial derivative.
        is_partial: whether the result is still to be multiplied with ``g``.
        is_list: whether the argument is a list, so that the result is one gradient per item.
    """

    bit: int
    fn: Function | None
    indices: tuple[int, ...]
    constant: complex | None
    is_partial: bool
    is_list: bool


class ActiveRules(NamedTuple):
    """The rules of the arguments that need gradients, and their residuals as ``(kind, position or name, name)``."""

    rules: tuple[Rule, ...]
    savers: tuple[tuple[int, Any, str], ...]


class TrackedArgument(NamedTuple):
    """A tensor argument that has a rule: its name, its position (None: keyword-only), whether it is a list."""

    name: str
    position: int | None
    is_list: bool


class OperatorDerivative:
    """The derivative of one operator, as autograd uses it.

    Attributes:
        op: the operator.
        decl: the declaration that this was read off.
        arguments: its tensor arguments; only those with a rule, unless there is no derivative at all.
        reason: why there is no derivative; None where there is one.
        custom: the derivative, if it is written by hand for the whole call.
        uncovered: tensor arguments that its rules leave out.
        decompose: for composites without a declared derivative: the body, which is differentiated instead.
        forward: the rules of forward mode, by the set of arguments with tangents.
        inner: for an in-place operator: the functional one.
        isolate: whether the kernels below may call operators themselves, which must not be recorded again.
        is_view: whether the result may be a view of the first argument.
        written: for an operator that writes, the arguments it writes; else empty.
    """

    __slots__ = (
        "_active",
        "arguments",
        "custom",
        "decl",
        "decompose",
        "forward",
        "inner",
        "is_view",
        "isolate",
        "op",
        "reason",
        "rules",
        "uncovered",
        "written",
    )

    def __init__(self, op: Operator):
        decl = op.decl if isinstance(op.decl, Declaration) else None
        self.decl: Any = op.decl
        self.op, self.inner = op, functional.get(op)
        self.is_view = op.is_view and len(op.schema.returns) == 1
        self.written = tuple(a.name for a in op.schema.arguments if a.is_write)
        composite = decl is not None and decl.kind == "composite"
        self.decompose = decl.body if decl is not None and composite and decl.derivative is None else None
        self.reason = _reason(decl, self.written) if self.decompose is None else None
        derivative = None if decl is None else decl.derivative
        self.custom = derivative if isinstance(derivative, Custom) and self.reason is None else None
        self.isolate = decl is None or composite or decl.kind == "custom" or self.custom is not None
        self.rules = {} if decl is None else dict(reverse_rules(decl.derivative))
        self.arguments = tuple(
            value for value in _tensor_arguments(op) if self.reason or self.custom or value.name in self.rules
        )
        everything = () if self.reason or self.custom or not self.rules else _tensor_arguments(op)
        self.uncovered = tuple(value for value in everything if value.name not in self.rules)
        self._active: dict[int, ActiveRules] = {}
        self.forward: dict[int, ActiveRules | None] = {}

    def active(self, mask: int) -> ActiveRules:
        """The rules for the arguments whose bits are in ``mask``."""
        result = self._active.get(mask)
        if result is None:
            result = self._active[mask] = self._activate(mask)
        return result

    def _activate(self, mask: int) -> ActiveRules:
        partial = isinstance(self.op.decl.derivative, Partials)
        needed: dict[str, int] = {}
        rules = []
        for bit, argument in enumerate(self.arguments):
            if mask >> bit & 1:
                rule = self.rules[argument.name]
                names = parameter_names(rule)
                indices = tuple(GRADIENT if n == "g" else needed.setdefault(n, len(needed)) for n in names)
                fn, constant = (rule, None) if callable(rule) else (None, rule)
                rules.append(Rule(bit, fn, indices, constant, partial and "g" not in names, argument.is_list))
        return ActiveRules(tuple(rules), tuple(self.saver(name) for name in needed))

    def saver(self, name: str) -> tuple[int, Any, str]:
        """The source of a value that a rule names: its kind, position or keyword, and name."""
        positions = {argument.name: index for index, argument in enumerate(self.op.schema.positional)}
        keywords = {argument.name for argument in self.op.schema.arguments if argument.kwarg_only}
        stem = name.removesuffix("_spec")
        if name in positions:
            return ARGUMENT, positions[name], name
        if name in keywords:
            return KEYWORD, name, name
        if name in ("out", "out_spec"):
            return (RESULT if name == "out" else RESULT_SPEC), None, name
        if stem != name and stem in positions:
            return ARGUMENT_SPEC, positions[stem], name
        if stem != name and stem in keywords:
            return KEYWORD_SPEC, stem, name
        raise ValueError(
            f"the derivative of {self.op.name} names {name!r}, which is not a value of a call; use g, out, names of "
            "arguments, or these with _spec"
        )


def _reason(decl: Declaration | None, written: tuple[str, ...]) -> str | None:
    if decl is None:
        return "it was defined without a derivative"
    if isinstance(decl.derivative, Custom) and written:
        return f"it writes {', '.join(written)}, and a derivative can be registered for operators that write nothing"
    if decl.kind == "custom" and decl.derivative is None:
        return "no derivative is registered for it"
    if isinstance(decl.derivative, NotDifferentiable):
        return decl.derivative.reason
    return None if decl.derivative is not None else "its declaration has none"


def _tensor_arguments(op: Operator) -> list[TrackedArgument]:
    positional = op.schema.positional
    tracked = [
        TrackedArgument(a.name, i, a.type.is_list)
        for i, a in enumerate(positional)
        if a.type.core == "Tensor"
    ]
    keyword = [a for a in op.schema.arguments if a.kwarg_only and a.type.core == "Tensor"]
    return tracked + [TrackedArgument(a.name, None, a.type.is_list) for a in keyword]


def derivative_of(op: Operator) -> OperatorDerivative:
    """The derivative of an operator, created at first use and again after its declaration was replaced."""
    derivative: OperatorDerivative | None = op.derivative
    if derivative is None or derivative.decl is not op.decl:
        derivative = op.derivative = OperatorDerivative(op)
    return derivative
