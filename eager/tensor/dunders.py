"""The special methods of arithmetic, ``x + y``, ``2 - x``, ``x += y``, ``x == y``, ``-x``, and of collections.

Those of arithmetic are callable objects, not functions, so that they can hold the native entry of their operator.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError
from ...operators.indexing.masks import MaskedElements
from ...registry.dispatch.keys import CPU_KEYS
from ...registry.function import functions
from ...registry.lazy_operators import is_lazy, materialize
from ...registry.native_type import NativeCallable, accept_entries, accept_entry
from ...registry.native_type import fault as no_native_code
from ...registry.schemas.binding import WEAK
from ...registry.values import SCALARS, TensorBase, converters
from .tensor import Tensor, from_numpy_scalar

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Function, TensorLike

# special method: operator
BINARY = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
COMPARISON = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
UNARY = {"neg": "neg", "pos": "positive", "abs": "abs", "invert": "bitwise_not"}


def is_operand(value: object) -> bool:
    """Whether an operator accepts a value for a tensor argument."""
    kind = type(value)
    if kind is MaskedElements:
        return False  # its own special methods apply the operator
    return kind in SCALARS or kind in converters or isinstance(value, (TensorBase, *SCALARS, *converters))


@accept_entries
class BinaryMethod(NativeCallable):  # type: ignore[misc]
    """``__add__``, ``__radd__`` or ``__iadd__``: returns NotImplemented for operands that cannot become tensors.

    The operator's stub (backends/cpu/fastpath/glue/stubs.py) counts the calls of the function, and installs the native
    entry in the function and in this object; then CPython calls the entry, and not :meth:`__call__`.

    Attributes:
        function: the operator's function.
        swapped: whether the tensor is the right operand.
        writes: whether it is an in-place method.
    """

    function: OperatorFunction[Tensor]
    swapped: bool
    writes: bool

    def __init__(self, name: str, function: OperatorFunction[Tensor], swapped: bool = False):
        self.function, self.swapped = function, swapped
        self.writes = function.operator.schema.is_mutable
        self.__name__, self.__qualname__, self.__doc__ = name, f"Tensor.{name}", function.__doc__

    def __call__(self, x: Tensor, other: object, modulus: object = None) -> object:
        if modulus is not None or not is_operand(other):  # a modulus comes from pow(x, y, z)
            return NotImplemented
        if self.writes and x._keys & WEAK:
            return NotImplemented  # a weak scalar is not written: Python calls the functional method
        if x._keys is CPU_KEYS and isinstance(other, np.generic):
            other = from_numpy_scalar(other)  # native entries accept tensors
        return self.function(other, x) if self.swapped else self.function(x, other)

    def __get__(self, instance: object, owner: type | None = None) -> BinaryMethod | MethodType:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<method {self.__qualname__}>"


methods: dict[str, BinaryMethod] = {}


def by_name(name: str) -> OperatorFunction[Tensor]:
    """The function of the operator of that name; of the overload defined first if there are several.

    Raises:
        KeyError: no operator has that name.
    """
    materialize(f"td::{name}")
    result = functions.get(f"td::{name}") or functions.get(f"td::{name}.Tensor")
    if result is None:
        result = next((fn for full, fn in functions.items() if full.startswith(f"td::{name}.")), None)
    if result is None:
        raise KeyError(name)
    return result


def as_function(method: BinaryMethod) -> Function:
    """A Python function that calls the method.

    CPython binds functions without a call of ``__get__``. It loses what ``__get__`` of a comparison raises, so that
    an interrupt there would become a TypeError (``slot_tp_richcompare`` in its ``Objects/typeobject.c``).
    """

    def call(x: Tensor, other: object, modulus: object = None) -> object:
        return method(x, other, modulus)

    call.__name__, call.__qualname__, call.__doc__ = method.__name__, method.__qualname__, method.__doc__
    return call


def _method(name: str, function: OperatorFunction[Tensor], swapped: bool = False) -> None:
    methods[name] = BinaryMethod(name, function, swapped)
    setattr(Tensor, name, as_function(methods[name]) if no_native_code else methods[name])


@functools.cache
def _find(name: str) -> OperatorFunction[Any]:
    """The function of an operator that is not defined again, as :func:`by_name`."""
    return by_name(name)


# -- Python's built-in functions ---------------------------------------------------------------------------------------
def round_(self: Tensor, ndigits: int | None = None) -> Tensor:
    """``round(x)`` and ``round(x, 2)``: a tensor of the same dtype."""
    options = {} if ndigits is None else {"decimals": ndigits}
    result: Tensor = _find("round")(self, **options)
    return result


def divmod_(self: Tensor, other: object) -> object:
    """``divmod(x, y)``: the pair ``(x // y, x % y)``."""
    if not is_operand(other):
        return NotImplemented
    return _find("floor_divide")(self, other), _find("remainder")(self, other)


def rdivmod(self: Tensor, other: object) -> object:
    """``divmod(y, x)``."""
    if not is_operand(other):
        return NotImplemented
    return _find("floor_divide")(other, self), _find("remainder")(other, self)


def trunc(self: Tensor) -> int:
    """``math.trunc(x)``: the only element without its fraction."""
    return math.trunc(float(self))


BUILTINS = {"__round__": round_, "__divmod__": divmod_, "__rdivmod__": rdivmod, "__trunc__": trunc}


def attach() -> None:
    """Attach the special methods to Tensor."""
    for name, method in BUILTINS.items():
        setattr(Tensor, name, method)
    for name, operator in BINARY.items():
        _method(f"__{name}__", by_name(operator))
        _method(f"__r{name}__", by_name(operator), True)
        if is_lazy(f"td::{operator}_"):
            _method(f"__i{name}__", by_name(f"{operator}_"))
        if by_name(operator).decl.is_elementwise:
            MaskedElements.add_operator(name, by_name(operator))
    for name, operator in COMPARISON.items():
        _method(f"__{name}__", by_name(operator))
    for name, operator in UNARY.items():
        setattr(Tensor, f"__{name}__", by_name(operator))
        MaskedElements.add_operator(name, by_name(operator))


# -- a tensor as a collection ------------------------------------------------------------------------------------------
MOST_AT_ONCE = 256  # rows; their views are made by one call


@accept_entry("iterate")
def iterate(self: Tensor) -> Iterator[Tensor]:
    """The sub-tensors along the first axis.

    Native twin: backends/cpu/fastpath/entries/rt_type_slots.py:iterate
    """
    if not self.shape:
        raise ArgumentError("iteration over a 0-d tensor")
    if type(self) is Tensor and self._meta is None and self.shape[0] <= MOST_AT_ONCE:
        return iter(_find("unstack")(self))
    return map(self.__getitem__, range(self.shape[0]))


def contains(self: Tensor, value: TensorLike) -> bool:
    """Whether an element equals ``value``."""
    return is_operand(value) and bool((self == value).any())
