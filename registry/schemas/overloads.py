"""Overload resolution, cached for each combination of argument classes.

The decision is PyTorch's: the first overload, in order of definition, that takes the arguments as they are; if none
does, the first that takes them by turning a number into a tensor or a 0-d tensor into a number. So ``add.Scalar`` gets
``add(x, 1)`` and ``add.Tensor`` gets ``add(x, y)``, whichever is defined first, and a set that has only one of them
gets both.

What decides is the *class* of each argument: its type, the classes of a list's items, whether a tensor is 0-d. The
first call with a combination of classes asks the schemas; later ones look it up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, DeviceError, DTypeError
from ..function import make_function
from ..operator import Operator
from ..values import SCALARS, TensorBase, describe, traced_number_types
from .binding import ConversionError
from .schema import Type

if TYPE_CHECKING:
    from ..types import Args, Kwargs

_NUMBERS = frozenset(("int", "SymInt", "float", "bool", "SymBool", "Scalar", "complex"))
# Types that accept some strings and refuse others.
_NAMED = frozenset(("ScalarType", "Device", "Layout", "MemoryFormat", "Dimname"))
_REMEMBERED = 512  # decisions; when there are more, all are forgotten


class OverloadSet:
    """The overloads of one operator, with a cache of resolved calls.

    Attributes:
        operators: the overloads, in order of definition; they never change.
        by_types: the functions that calls mean, by the types of the arguments, the names of keywords and their types;
            only decisions that the types alone tell.
    """

    def __init__(self, operators: tuple[Operator, ...]):
        self.operators = operators
        self.by_types: dict[tuple[object, ...], Any] = {}
        self._by_classes: dict[tuple[object, ...], Any] = {}
        self._names_matter = any(
            argument.type.core in _NAMED for operator in operators for argument in operator.schema.arguments
        )

    def choose(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operator:
        """Choose the overload for the arguments of a call.

        Raises:
            ArgumentError: no overload accepts them; the message lists the reason for each.
        """
        key = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        function = self.by_types.get(key) or self.decide(key, args, kwargs)
        operator: Operator = function.operator
        return operator

    def decide(self, key: tuple[object, ...], args: Args, kwargs: Kwargs) -> Any:
        """The function of the overload that a call means; remembered under the key if types alone decide."""
        values = (*args, *kwargs.values())
        classes = (len(args), *kwargs, *map(self._class, values))
        function = self._by_classes.get(classes)
        if function is None:
            operator, as_they_are = self._search(args, kwargs)
            function = make_function(operator)
            _remember(self._by_classes, classes, function)
            if all(self._is_told_by_type(value, as_they_are) for value in values):
                _remember(self.by_types, key, function)
        return function

    def _search(self, args: Args, kwargs: Kwargs) -> tuple[Operator, bool]:
        """The overload, and whether it takes the arguments as they are."""
        second = None
        for operator in self.operators:
            taken = _match_overload(operator, args, kwargs)
            if taken == "as they are":
                return operator, True
            if taken and second is None:
                second = operator
        if second is None:
            raise self._refusal(args, kwargs)
        return second, False

    def _refusal(self, args: Args, kwargs: Kwargs) -> ArgumentError:
        schema = self.operators[0].schema
        shown = [*map(describe, args), *(f"{name}={describe(value)}" for name, value in kwargs.items())]
        faults = [f"no overload of {schema.namespace}::{schema.name} takes ({', '.join(shown)}):"]
        for operator in self.operators:
            try:
                operator.binder.bind(args, kwargs)
            except (ArgumentError, DTypeError, DeviceError) as fault:
                faults.append(f"  {fault}")
        return ArgumentError("\n".join(faults))

    def _class(self, value: Any) -> object:
        """The class of a value: the same overloads accept all values of one class."""
        kind = type(value)
        if isinstance(value, (list, tuple)):
            return "list", frozenset(map(self._class, value))
        if isinstance(value, str):
            return ("name", str(value)) if self._names_matter else str
        if isinstance(value, TensorBase):
            return _class_of_tensor(value)
        if kind is np.ndarray:
            return "array", min(value.ndim, 2), value.dtype.kind
        return (kind, value.python_type) if kind in traced_number_types else kind

    def _is_told_by_type(self, value: object, as_they_are: bool) -> bool:
        """Whether any value of the same type would lead to the same decision."""
        if isinstance(value, TensorBase):
            return as_they_are
        if isinstance(value, (list, tuple, np.ndarray)) or type(value) in traced_number_types:
            return False
        if isinstance(value, type):
            return False  # `float` names a dtype, another class does not
        return not (self._names_matter and isinstance(value, str))


def _remember(decisions: dict[tuple[object, ...], object], key: tuple[object, ...], function: object) -> None:
    if len(decisions) >= _REMEMBERED:
        decisions.clear()
    decisions[key] = function


def _class_of_tensor(value: Any) -> object:
    if getattr(value, "shape", None) != ():
        return type(value)
    return type(value), value.dtype, bool(getattr(value, "requires_grad", False))


def _match_overload(operator: Operator, args: Args, kwargs: Kwargs) -> str:
    """``"as they are"``, ``"converted"``, or nothing if an operator does not take the arguments."""
    binder = operator.binder
    if not binder.fits(len(args), kwargs.keys()):
        return ""
    as_they_are = True
    given = [
        *zip(binder.positional, args),
        *((binder.argument(name), value) for name, value in kwargs.items()),
    ]
    for argument, value in given:
        try:
            binder.converters[argument.name](value)
        except (ConversionError, ArgumentError, DTypeError, DeviceError):
            return ""
        except Exception:  # the call will raise it, and say more
            return "as they are"
        as_they_are = as_they_are and _is_native(argument.type, value)
    return "as they are" if as_they_are else "converted"


def _is_native(kind: Type, value: object) -> bool:
    """Whether a value is of a type by itself, rather than a tensor for a number or the other way round."""
    if kind.form == "optional" and kind.element is not None:
        return value is None or _is_native(kind.element, value)
    if kind.form == "list" and kind.element is not None:
        element = kind.element
        return isinstance(value, (list, tuple)) and all(_is_native(element, item) for item in value)
    if kind.base == "Tensor":
        return not isinstance(value, (*SCALARS, np.generic, *traced_number_types))
    return kind.base not in _NUMBERS or not isinstance(value, (TensorBase, np.ndarray))
