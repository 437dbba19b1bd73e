"""The declaration of an operator: everything that tandem knows about it, in one place.

What a declaration says is read by the dispatcher's layers, the backends, the docs and the tests. The *kinds*
(:mod:`.kinds`) fill in what operators of a kind have in common.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..registry.dtypes import DType
from ..registry.function import make_function
from ..registry.late import declare_all
from ..registry.library import Library
from ..registry.operator import Operator, lock, operators
from .derivatives import Derivative

LIBRARY = Library("td", "DEF")

# Told of each operator that is declared: what layers and backends make of every declaration.
_listeners: list[Callable[[Operator], object]] = []


class Sample(NamedTuple):
    """One call to test an operator with. ``args`` may hold :class:`Draw`, which the tests turn into tensors."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = {}


class Draw(NamedTuple):
    """A tensor to draw: its shape, the interval or the values, and how it lies in memory.

    Attributes:
        shape: the shape.
        low, high: interval of the values (clipped to what the dtype holds).
        values: exact values instead (cast to the dtype), of length ``prod(shape)``.
        layout: ``"contiguous"``, ``"transposed"``, ``"reversed"`` (negative strides) or ``"strided"`` (every second).
        dtype: a dtype that overrides the row's.
        distinct: whether no two values may be equal (for derivatives of max, sort, ...).
    """

    shape: tuple[int, ...] = ()
    low: float = -3.0
    high: float = 3.0
    values: tuple[Any, ...] | None = None
    layout: str = "contiguous"
    dtype: DType | None = None
    distinct: bool = False


class Bad(NamedTuple):
    """A call that must raise: arguments, exception class and a part of its message."""

    args: tuple[Any, ...]
    error: type[Exception]
    match: str = ""
    kwargs: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False)
class Declaration:
    """One operator.

    Attributes:
        schema: its schema, in PyTorch's language.
        kind: ``"unary" "binary" "comparison" "ternary" "reduction" "scan" "view" "cast" "copy" "join" "gather"
            "scatter" "contraction" "convolution" "creation" "composite" "random"``.
        doc: its documentation.
        meta: shape and dtype rule: the schema's arguments (tensors, specs, scalars) to one TensorSpec or a tuple.
        body: for elementwise kinds the scalar body over :mod:`.scalar`; for composites the body written with operators.
        kernel: for the others, the array kernel ``kernel(xp, *arguments)`` with ``xp`` numpy or cupy; views give views.
        reduce: for reductions and scans that are folds: the name of the combining fold (``"sum"``, ``"max"``, ...).
        derivative: the derivative, or why there is none; None only for composites, which have that of their body.
        dtypes: dtypes of the first tensor argument that it accepts.
        result: how the result's dtype follows from the promoted one: ``"same"``, ``"float"`` (integers become the
            default float), ``"bool"`` or ``"real"`` (complex becomes its real type).
        conditions: for elementwise kinds: arguments that are bool and take no part in promotion; a body takes them as
            bools or as values of the promoted dtype, zero for false.
        value_checked: for elementwise kinds: whether ``meta`` refuses Python integers by their value (beyond those
            that do not fit), so that calls with one stay in Python.
        reference: dotted name of the NumPy or SciPy function that tests compare with, or a function of NumPy arrays;
            never derived from the body.
        samples, errors: what the tests call it with.
        tolerance: relative tolerance by dtype name where the kind's default does not do.
        inplace: whether an in-place variant (``add_``) exists.
        method: whether it is a method of Tensor.
        explicit: for composites: recorded whole by a trace (CompositeExplicit) instead of decomposed.
        batching: how the Batched layer runs the operator on tensors with a batch axis in front, a rule of
            :mod:`.batching`; the elementwise kinds, reductions and scans supply theirs. None: a composite's body, or a
            loop over the examples.
        autocast: the Autocast layer's policy: ``"lower"`` (run in the lower precision), ``"float32"``, ``"promote"``
            (the widest dtype among the arguments), or empty: left alone.
        effects: ``"random"``, ``"callback"``, ``"print"``, ``"mutation"``: never merged, dropped or moved.
    """

    schema: str
    kind: str
    doc: str
    meta: Callable[..., Any] | None = None
    body: Callable[..., Any] | None = None
    kernel: Callable[..., Any] | None = None
    reduce: str | None = None
    derivative: Derivative | None = None
    dtypes: Sequence[DType] = ()
    result: str = "same"
    conditions: tuple[str, ...] = ()
    value_checked: bool = False
    reference: str | Callable[..., Any] = ""
    samples: Callable[[DType], Iterable[Sample]] | None = None
    errors: Callable[[], Iterable[Bad]] | None = None
    tolerance: Mapping[str, float] = field(default_factory=dict)
    inplace: bool = False
    method: bool = True
    explicit: bool = False
    batching: Callable[..., Any] | None = None
    autocast: str = ""
    effects: frozenset[str] = frozenset()

    @property
    def is_elementwise(self) -> bool:
        """Whether the operator has a scalar body."""
        return self.kind in ("unary", "binary", "comparison", "ternary")


def declare(declaration: Declaration) -> Any:
    """Enter a declaration into the registry.

    Returns:
        The operator's function object, which is also what users call.
    """
    LIBRARY.define(declaration.schema, declaration)
    operator = next(op for op in reversed(operators.values()) if op.decl is declaration)
    if declaration.kind == "composite" and declaration.body is not None:
        key = "CompositeExplicit" if declaration.explicit else "CompositeImplicit"
        LIBRARY.impl(operator, declaration.body, key)
    function = make_function(operator, inspect.cleandoc(declaration.doc))
    for listener in _listeners:
        listener(operator)
    return function


def on_declaration(listener: Callable[[Operator], object]) -> None:
    """Have a function called with every operator that is declared so far, and with those that come."""
    with lock:
        for operator in _declared():
            listener(operator)
        _listeners.append(listener)


def declared() -> list[Operator]:
    """All operators of tandem's own that have a declaration, in order of declaration."""
    declare_all()
    return _declared()


def _declared() -> list[Operator]:
    return [
        operator
        for operator in list(operators.values())
        if isinstance(operator.decl, Declaration) and operator.schema.namespace == "td"
    ]
