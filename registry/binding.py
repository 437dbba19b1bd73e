"""Checking and normalising the arguments of a call against a schema.

A binder is made once for each schema: a converter per argument. A bound call has every argument of the schema, the
positional ones as a tuple and the keyword-only ones as a dict, defaults filled in.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from ..errors import ArgumentError, DeviceError, TandemError
from .dtypes import as_dtype, check_range, scalar_dtype, uint64
from .keys import BACKEND_OF_DEVICE
from .layouts import LAYOUTS
from .schema import MISSING, Argument, Schema, Type
from .schema_defaults import MEMORY_FORMATS
from .values import SCALARS, TensorBase, converters, describe, number_stand_ins

Converter = Callable[[Any], Any]

# type -> function that gives the tensor of words of a random key, where a schema has an argument called ``key``.
key_types: dict[type, Converter] = {}


class Refused(Exception):
    """A value is not of the type; turned into an ArgumentError that names operator and argument."""


def _tensor(value: Any) -> Any:
    if isinstance(value, TensorBase) or type(value) in SCALARS:
        return value
    convert = converters.get(type(value))
    if convert is None:
        for kind, candidate in converters.items():
            if isinstance(value, kind):
                return candidate(value)
        if isinstance(value, SCALARS):
            return _number(value)  # an IntEnum's member, for example
        raise Refused("a Tensor, a NumPy array or a number")
    return convert(value)


def _only_tensor(value: Any) -> Any:
    """The one tensor of a call: a number is a 0-d tensor, for there is nothing that it could be weak beside."""
    if type(value) not in SCALARS:
        return _tensor(value)
    if type(value) is int and not -(2**63) <= value < 2**63:
        check_range(uint64, value)
        return converters[np.ndarray](np.asarray(value, np.uint64))
    return converters[np.ndarray](np.asarray(value, scalar_dtype(value).np))


def _written_tensor(value: Any) -> Any:
    if type(value) in SCALARS or isinstance(value, np.generic):
        raise Refused("a Tensor, for it is written")
    return _tensor(value)


def _key(plain: Converter) -> Converter:
    """The converter of an argument called ``key``: a random key stands for the tensor of its words."""

    def convert(value: Any) -> Any:
        words = key_types.get(type(value))
        return plain(value if words is None else words(value))

    return convert


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)):
        raise Refused("an int")
    try:
        return operator.index(value)
    except TandemError:
        raise  # a traced value says what to do
    except TypeError:
        raise Refused("an int") from None


def _number(value: Any) -> Any:
    if type(value) in SCALARS or type(value) in number_stand_ins:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, SCALARS):
        return next(kind(value) for kind in SCALARS if isinstance(value, kind))  # type: ignore[arg-type]
    if isinstance(value, TensorBase):
        return _item(value)
    raise Refused("a Python number")


def _item(value: Any) -> Any:
    """The number in a 0-d tensor, which stands for it as in PyTorch unless a gradient would be lost."""
    if getattr(value, "shape", None) != ():
        raise Refused("a Python number or a 0-d tensor")
    if getattr(value, "requires_grad", False):
        raise Refused("a Python number; a tensor that requires gradients would lose them (detach() it)")
    return value.item()


def _float(value: Any) -> Any:
    if isinstance(value, TensorBase):
        value = _item(value)
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return float(value)
    if type(value) in number_stand_ins and value.python_type in (int, float):
        return value
    raise Refused("a float")


def _complex(value: Any) -> complex:
    return complex(_number(value))


def _boolean(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if type(value) in number_stand_ins:
        return bool(value)  # raises, and says what to do
    raise Refused("a bool")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Refused("a str")


def device_name(value: Any) -> str:
    """The checked name of a device: ``cpu``, ``meta``, ``cuda`` or ``cuda:1``.

    Raises:
        DeviceError: no such device.
    """
    name = str(value)
    kind, colon, index = name.partition(":")
    if not isinstance(value, str) or kind not in BACKEND_OF_DEVICE or (colon and not index.isdigit()):
        raise DeviceError(
            f"unknown device {value!r}; the devices are {', '.join(BACKEND_OF_DEVICE)} and cuda:<index>"
        )
    return name


def _one_of(what: str, names: Mapping[str, Any]) -> Converter:
    accepted = f"{what}: {', '.join(map(repr, sorted(map(str, names))))}"

    def convert(value: Any) -> Any:
        if isinstance(value, str) and value in names:
            return names[value]
        raise Refused(accepted)

    return convert


def _generator(value: Any) -> Any:
    """NumPy's generator; NumPy loads the module of its class when somebody asks for it."""
    if type(value).__name__ == "Generator" and type(value).__module__.startswith("numpy.random"):
        return value
    raise Refused("a numpy.random.Generator")


def _dimension_name(value: Any) -> str:
    if isinstance(value, str) and (value == "*" or value.isidentifier()):
        return value
    raise Refused("the name of a dimension: an identifier, or '*'")


def _anything(value: Any) -> Any:
    return value


CONVERTERS: dict[str, Converter] = {
    "Tensor": _tensor,
    "int": _integer,
    "SymInt": _integer,
    "float": _float,
    "complex": _complex,
    "bool": _boolean,
    "str": _string,
    "Scalar": _number,
    "ScalarType": as_dtype,
    "Device": device_name,
    "DeviceIndex": _integer,
    "SymBool": _boolean,
    "Layout": _one_of("a layout", LAYOUTS),
    "MemoryFormat": _one_of("a memory format", {name: name for name in MEMORY_FORMATS}),
    "Generator": _generator,
    "Dimname": _dimension_name,
}


def converter(kind: Type) -> Converter:
    """The function that checks and normalises one value of a type."""
    if kind.form == "base" or kind.element is None:
        return CONVERTERS.get(kind.base, _anything)
    inner = converter(kind.element)
    if kind.form == "optional":
        return lambda value: None if value is None else inner(value)
    return _list_converter(kind, inner)


def _list_converter(kind: Type, inner: Converter) -> Converter:
    wanted = f"a sequence of {kind.core}" + ("" if kind.size is None else f" of length {kind.size}")
    scalar_allowed = kind.core in ("int", "SymInt", "float", "bool")

    def convert(value: Any) -> tuple[Any, ...]:
        if isinstance(value, (list, tuple)):
            items = tuple(inner(item) for item in value)
        elif isinstance(value, np.ndarray) and value.ndim == 1 and scalar_allowed:
            items = tuple(inner(item) for item in value.tolist())
        elif scalar_allowed and not isinstance(value, (str, dict)):
            items = (inner(value),) * (1 if kind.size is None else kind.size)
        else:
            raise Refused(wanted)
        return items

    return convert


def _special_converters(schema: Schema) -> dict[str, Converter]:
    """Converters of a tensor that is written, of one that is the only one among other arguments, and of a key."""
    tensors = [argument for argument in schema.arguments if argument.type.core == "Tensor"]
    found: dict[str, Converter] = {
        a.name: _written_tensor for a in tensors if a.is_write and not a.type.is_list
    }
    first = schema.arguments[0] if schema.arguments else None
    if (
        not found
        and first is not None
        and tensors == [first]
        and first.type.form == "base"
        and len(schema.arguments) > 1
    ):
        found[first.name] = _only_tensor
    for argument in tensors:
        if argument.name == "key" and argument.type.form == "base":
            found["key"] = _key(found.get("key", _tensor))
    return found


class Binder:
    """Binds calls to one schema.

    Attributes:
        tensors_only: whether all arguments are positional tensors, so that a call with tensors and numbers for each is
            bound as it stands.
    """

    def __init__(self, schema: Schema):
        self.schema = schema
        self.positional = schema.positional
        self.keyword = tuple(argument for argument in schema.arguments if argument.kwarg_only)
        self.converters = {argument.name: converter(argument.type) for argument in schema.arguments}
        self.converters |= _special_converters(schema)
        self._arguments = {argument.name: argument for argument in schema.arguments}
        self.names = frozenset(self._arguments)
        self.device_argument = next((a.name for a in schema.arguments if a.type.core == "Device"), None)
        self.tensor_positions = tuple(
            (index, argument.type.is_list)
            for index, argument in enumerate(self.positional)
            if argument.type.core == "Tensor"
        )
        self.tensor_keywords = tuple(a.name for a in self.keyword if a.type.core == "Tensor")
        self.tensors_only = all(
            argument.type.form == "base" and argument.type.base == "Tensor" and not argument.kwarg_only
            for argument in schema.arguments
        )
        self._as_it_is = () if _special_converters(schema) else SCALARS
        self._convert_positional = tuple(self.converters[argument.name] for argument in self.positional)
        self._places = {argument.name: index for index, argument in enumerate(self.positional)}
        self._defaults = tuple(map(self._default, self.positional))
        self._required = sum(argument.default is MISSING for argument in self.positional)
        self._keyword_defaults = {argument.name: self._default(argument) for argument in self.keyword}
        self._keywords_needed = any(argument.default is MISSING for argument in self.keyword)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """All arguments of the schema, checked and normalised.

        Raises:
            ArgumentError: too many arguments, an unknown or missing one, or one of a wrong type.
        """
        given = len(args)
        if self.tensors_only and not kwargs and given == len(self._defaults):
            for value in args:
                if not isinstance(value, TensorBase) and type(value) not in self._as_it_is:
                    break
            else:
                return args, kwargs
        if given > len(self._defaults):
            raise self._refuse(f"takes {len(self._defaults)} positional arguments, {given} were given")
        try:
            bound = [convert(value) for convert, value in zip(self._convert_positional, args)]
        except Refused:
            raise self._refused_among(args) from None
        if not kwargs and given >= self._required and not self._keywords_needed:
            return (*bound, *self._defaults[given:]), self._keyword_defaults.copy()
        bound += self._defaults[given:]
        keywords = self._keyword_defaults.copy()
        for name, value in kwargs.items():
            self._bind_keyword(name, value, given, bound, keywords)
        if given < self._required or self._keywords_needed:
            self._check_complete(bound, keywords)
        return tuple(bound), keywords

    def argument(self, name: str) -> Argument:
        """The argument of a name."""
        return self._arguments[name]

    def fits(self, given: int, kwargs: AbstractSet[str]) -> bool:
        """Whether a call may have so many positional arguments and these keywords, whatever their values."""
        if given > len(self.positional) or not kwargs <= self.names:
            return False
        if any(self._places.get(name, given) < given for name in kwargs):
            return False
        return all(
            argument.default is not MISSING or argument.name in kwargs
            for argument in (*self.positional[given:], *self.keyword)
        )

    def _bind_keyword(
        self, name: str, value: Any, given: int, bound: list[Any], keywords: dict[str, Any]
    ) -> None:
        place = self._places.get(name)
        if name not in self.names:
            raise self._refuse(f"has no argument {name!r}")
        if place is not None and place < given:
            raise self._refuse(f"got argument {name!r} twice, by position and by keyword")
        converted = self._convert(name, value)
        if place is None:
            keywords[name] = converted
        else:
            bound[place] = converted

    def _check_complete(self, bound: list[Any], keywords: dict[str, Any]) -> None:
        for argument, value in zip((*self.positional, *self.keyword), (*bound, *keywords.values())):
            if value is MISSING:
                raise self._refuse(f"needs argument {argument.name!r}")

    def _default(self, argument: Argument) -> Any:
        return (
            argument.default
            if argument.default is MISSING
            else self._convert(argument.name, argument.default)
        )

    def _convert(self, name: str, value: Any) -> Any:
        try:
            return self.converters[name](value)
        except Refused as wanted:
            raise self._refuse(f"argument {name!r} must be {wanted}, not {describe(value)}") from None

    def _refused_among(self, args: tuple[Any, ...]) -> Exception:
        """The error of the first argument that its converter refuses."""
        for argument, value in zip(self.positional, args):
            try:
                self._convert(argument.name, value)
            except ArgumentError as fault:
                return fault
        raise AssertionError("a converter refused a value and then took it")

    def _refuse(self, fault: str) -> ArgumentError:
        return ArgumentError(f"{self.schema.full_name} {fault}\n  schema: {self.schema}")
