"""TracerScalar: a Python scalar argument of a jitted function, whose value is passed at run time.

It is weak in promotion, as the number is. Arithmetic among scalars alone is recorded as a list of
:class:`.graph.Derived`, which Python computes before each run, so the results are the same as without ``jit``
(``1 / 3`` is a double, ``7 // 2`` an int).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..registry.dtypes import scalar_dtype
from ..registry.function import functions
from ..registry.values import SCALARS, converters, traced_number_types
from .graph import Value
from .tensor import Dataless, TracerTensor
from .trace import Trace, check_alive


class TracerScalar(Dataless):
    """A traced Python number. ``python_type`` is the number's type, which promotion uses."""

    __slots__ = ("_example", "_trace", "_value", "python_type")

    def __init__(self, trace: Trace, value: Value, example: object):
        self._trace, self._value, self._example = trace, value, example
        self.python_type: type = value.weak or type(example)

    def __hash__(self) -> int:
        return id(self)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A method of the tensor of the number, such as ``astype``, which JAX's traced numbers have."""
        if name.startswith("_") or not callable(getattr(TracerTensor, name, None)):
            raise AttributeError(f"a traced {self.python_type.__name__} has no attribute {name!r}")
        method: Callable[..., Any] = getattr(_to_tensor(self), name)
        return method

    def __copy__(self) -> TracerScalar:
        return self  # a number never changes

    def __deepcopy__(self, memo: dict[int, object]) -> TracerScalar:
        return self

    def __repr__(self) -> str:
        return f"<traced {self.python_type.__name__}>"


def example_of(value: object) -> object:
    """The number that a scalar had when the function was traced."""
    return value._example if type(value) is TracerScalar else value


def derive_scalar(function: str, *operands: object) -> object:
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


def _make_unary(function: str) -> Callable[[object], object]:
    return lambda self: derive_scalar(function, self)


def _make_binary(function: str, swapped: bool) -> Callable[[object, object], object]:
    def method(self: Any, other: Any) -> Any:
        if type(other) is not TracerScalar and type(other) not in SCALARS:
            return NotImplemented
        return derive_scalar(function, other, self) if swapped else derive_scalar(function, self, other)

    return method


_BINARY = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift".split()
for _name in _BINARY:
    setattr(TracerScalar, f"__{_name.rstrip('_')}__", _make_binary(_name, False))
    setattr(TracerScalar, f"__r{_name.rstrip('_')}__", _make_binary(_name, True))
for _name in "eq ne lt le gt ge".split():
    setattr(TracerScalar, f"__{_name}__", _make_binary(_name, False))
for _name in "neg pos abs invert".split():
    setattr(TracerScalar, f"__{_name}__", _make_unary(_name))


def _check_scalar(value: TracerScalar) -> TracerScalar:
    check_alive(value)
    return value


converters[TracerScalar] = _check_scalar  # type: ignore[assignment]


def _to_tensor(value: TracerScalar) -> Any:
    """The 0-d tensor of a number, of the default dtype of its kind."""
    dtype = scalar_dtype(value)
    return functions["td::full"]((), _check_scalar(value), dtype=dtype)


traced_number_types[TracerScalar] = _to_tensor
