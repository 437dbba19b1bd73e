"""TracerScalar: a Python scalar argument of a jitted function, whose value is passed at run time.

It is weak in promotion, as the number is. Arithmetic among scalars alone stays Python's own (``1 / 3`` is a double,
``7 // 2`` an int): it is kept as a list of :class:`.graph.Derived` and computed by Python ahead of each run, so nothing
about it differs from the function without ``jit``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..registry.values import SCALARS, converters, number_stand_ins
from .graph import Value
from .tensor import Dataless
from .trace import Trace, check_alive


class TracerScalar(Dataless):
    """Stands for a Python number. ``python_type`` is the number's type, which promotion looks at."""

    __slots__ = ("_example", "_trace", "_value", "python_type")

    def __init__(self, trace: Trace, value: Value, example: Any):
        self._trace, self._value, self._example = trace, value, example
        self.python_type: type = value.weak or type(example)

    def __hash__(self) -> int:
        return id(self)

    def __copy__(self) -> TracerScalar:
        return self  # a number never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> TracerScalar:
        return self

    def __repr__(self) -> str:
        return f"<traced {self.python_type.__name__}>"


def example_of(value: Any) -> Any:
    """The number that a scalar had when the function was traced."""
    return value._example if type(value) is TracerScalar else value


def derived(function: str, *operands: Any) -> Any:
    """The scalar ``operator.<function>(*operands)`` of traced scalars and numbers.

    Its type is that of the result on the numbers of the traced call; a later call that gives another type (``2 ** n``
    with a negative ``n``) is another specialization.
    """
    for operand in operands:
        check_alive(operand)
    trace = next(o._trace for o in operands if type(o) is TracerScalar)
    example = getattr(operator, function)(*map(example_of, operands))
    values = tuple(o._value if type(o) is TracerScalar else o for o in operands)
    return TracerScalar(trace, trace.graph.add_derived(function, values, type(example)), example)


def _unary(function: str) -> Callable[[Any], Any]:
    return lambda self: derived(function, self)


def _binary(function: str, swapped: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if type(other) is not TracerScalar and type(other) not in SCALARS:
            return NotImplemented
        return derived(function, other, self) if swapped else derived(function, self, other)

    return method


_BINARY = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift".split()
for _name in _BINARY:
    setattr(TracerScalar, f"__{_name.rstrip('_')}__", _binary(_name, False))
    setattr(TracerScalar, f"__r{_name.rstrip('_')}__", _binary(_name, True))
for _name in "eq ne lt le gt ge".split():
    setattr(TracerScalar, f"__{_name}__", _binary(_name, False))
for _name in "neg pos abs invert".split():
    setattr(TracerScalar, f"__{_name}__", _unary(_name))


def _checked(value: TracerScalar) -> TracerScalar:
    check_alive(value)
    return value


converters[TracerScalar] = _checked  # type: ignore[assignment]
number_stand_ins.add(TracerScalar)
