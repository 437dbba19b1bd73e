"""Binder: check and convert the arguments of a call against a schema.

A binder is created once for each schema and has one converter per argument. A bound call has every argument of the
schema: the positional ones as a tuple and the keyword-only ones as a dict, with defaults filled in.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy
from ...errors import ArgumentError, TandemError, UndecidedError
from ..dispatch.keys import DispatchKey
from ..dtypes import as_dtype, check_range, uint64
from ..layouts import LAYOUTS
from ..values import SCALARS, TensorBase, converters, describe, to_device_name, traced_number_types
from .defaults import MEMORY_FORMATS
from .schema import MISSING, Argument, Schema, Type

if TYPE_CHECKING:
    from ..types import Args, Kwargs

_dims = lazy.Module(".registry.dims")

Converter = Callable[[Any], Any]

# type -> function that converts a random key to its tensor, for arguments called ``key``.
key_types: dict[type, Converter] = {}
# type of number -> function that converts it to a weak scalar: Python numbers, and traced numbers.
weak_scalar_types: dict[type, Converter] = {}
# The function that replaces weak scalars by numbers, called with an operator and the bound arguments of a call.
weak_scalar_resolvers: list[Callable[..., tuple[tuple[object, ...], dict[str, object]]]] = []
WEAK = 1 << DispatchKey.WeakScalar


class ConversionError(Exception):
    """A value does not have the type; caught and raised as an ArgumentError that names operator and argument."""


def to_tensor_or_number(value: object) -> Any:
    """Convert a value for an argument of type ``Tensor``: numbers are returned unchanged, arrays become tensors."""
    if isinstance(value, TensorBase) or type(value) in SCALARS:
        return value
    convert = converters.get(type(value))
    if convert is None:
        for kind, candidate in converters.items():
            if isinstance(value, kind):
                return candidate(value)
        if isinstance(value, SCALARS):
            return _to_number(value)  # an IntEnum's member, for example
        raise ConversionError("a Tensor, a NumPy array or a number")
    return convert(value)


def _to_only_tensor(value: object) -> object:
    """Convert the only tensor argument of a call: a number becomes a weak scalar, or a 0-d uint64 tensor if large."""
    if type(value) not in SCALARS:
        make = weak_scalar_types.get(type(value))
        return to_tensor_or_number(value) if make is None else make(to_tensor_or_number(value))
    if type(value) is int and not -(2**63) <= value < 2**63:
        check_range(uint64, value)
        return converters[np.ndarray](np.asarray(value, np.uint64))
    return weak_scalar_types[type(value)](value)


def _to_written_tensor(value: object) -> object:
    if type(value) in SCALARS or isinstance(value, np.generic):
        raise ConversionError("a Tensor, because the operator writes into it")
    if isinstance(value, TensorBase) and value._keys & WEAK:
        raise ConversionError(
            "a tensor that can be written; the result of an operator on Python numbers alone is a weak scalar, which "
            "never changes (td.asarray(x, dtype=x.dtype) makes a tensor of it)"
        )
    return to_tensor_or_number(value)


def _make_key_converter(plain: Converter) -> Converter:
    """The converter of an argument called ``key``, which also accepts random keys."""

    def convert(value: object) -> object:
        words = key_types.get(type(value))
        try:
            return plain(value if words is None else words(value))
        except ConversionError:
            raise ConversionError("a random key, made by td.random.key(seed)") from None

    return convert


def _to_int(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)):
        raise ConversionError("an int")
    try:
        return operator.index(value)
    except TandemError:
        raise  # a traced value says what to do
    except TypeError:
        raise ConversionError("an int") from None


def _to_size(value: Any) -> Any:
    """A ``SymInt``: an int or a symbolic size."""
    if type(value) is int:
        return value
    try:
        return _to_int(value)
    except UndecidedError:
        return value


def _to_number(value: object) -> Any:
    if type(value) in SCALARS or type(value) in traced_number_types:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, SCALARS):
        return next(kind(value) for kind in SCALARS if isinstance(value, kind))  # type: ignore[arg-type]
    if isinstance(value, TensorBase):
        return _to_item(value)
    if _dims.is_symbolic(value):
        return value
    raise ConversionError("a Python number")


def _to_item(value: Any) -> object:
    """The number in a 0-d tensor, as in PyTorch; raises if a gradient would be lost."""
    if getattr(value, "shape", None) != ():
        raise ConversionError("a Python number or a 0-d tensor")
    if getattr(value, "requires_grad", False):
        raise ConversionError(
            "a Python number; a tensor that requires gradients would lose them (detach() it)"
        )
    return value.item()


def _to_float(value: Any) -> object:
    if isinstance(value, TensorBase):
        value = _to_item(value)
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return float(value)
    if type(value) in traced_number_types and value.python_type in (int, float):
        return value
    raise ConversionError("a float")


def _to_complex(value: object) -> complex:
    return complex(_to_number(value))


def _to_bool(value: object) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if type(value) in traced_number_types:
        return bool(value)  # raises, and says what to do
    raise ConversionError("a bool")


def _to_str(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ConversionError("a str")


def _make_choice_converter(what: str, names: Mapping[str, object]) -> Converter:
    accepted = f"{what}: {', '.join(map(repr, sorted(map(str, names))))}"

    def convert(value: object) -> object:
        if isinstance(value, str) and value in names:
            return names[value]
        raise ConversionError(accepted)

    return convert


def _to_generator(value: object) -> object:
    """Check a NumPy generator by the name of its class, without importing ``numpy.random``."""
    if type(value).__name__ == "Generator" and type(value).__module__.startswith("numpy.random"):
        return value
    raise ConversionError("a numpy.random.Generator")


def _to_dimension_name(value: object) -> str:
    if isinstance(value, str) and (value == "*" or value.isidentifier()):
        return value
    raise ConversionError("the name of a dimension: an identifier, or '*'")


def _pass_through(value: object) -> object:
    return value


def _to_plain(value: Any) -> object:
    """A value with Python ints in place of NumPy's and of subclasses, also in lists and tuples; others unchanged."""
    cls = type(value)
    if cls is list or cls is tuple:
        return cls([_to_plain(item) for item in value])
    return int(value) if isinstance(value, np.integer) or (cls.__base__ is int and cls is not bool) else value


CONVERTERS: dict[str, Converter] = {
    "Any": _to_plain,
    "Tensor": to_tensor_or_number,
    "int": _to_int,
    "SymInt": _to_size,
    "float": _to_float,
    "complex": _to_complex,
    "bool": _to_bool,
    "str": _to_str,
    "Scalar": _to_number,
    "ScalarType": as_dtype,
    "Device": to_device_name,
    "DeviceIndex": _to_int,
    "SymBool": _to_bool,
    "Layout": _make_choice_converter("a layout", LAYOUTS),
    "MemoryFormat": _make_choice_converter("a memory format", {name: name for name in MEMORY_FORMATS}),
    "Generator": _to_generator,
    "Dimname": _to_dimension_name,
}


def make_converter(kind: Type) -> Converter:
    """The function that checks and converts one value of a type."""
    if kind.form == "base" or kind.element is None:
        return CONVERTERS.get(kind.base, _pass_through)
    inner = make_converter(kind.element)
    if kind.form == "optional":
        return lambda value: None if value is None else inner(value)
    return _make_list_converter(kind, inner)


def _make_list_converter(kind: Type, inner: Converter) -> Converter:
    wanted = f"a sequence of {kind.core}" + ("" if kind.size is None else f" of length {kind.size}")
    scalar_allowed = kind.core in ("int", "SymInt", "float", "bool")

    def convert(value: object) -> tuple[object, ...]:
        if isinstance(value, (list, tuple)):
            items = tuple(inner(item) for item in value)
        elif isinstance(value, np.ndarray) and value.ndim == 1 and scalar_allowed:
            items = tuple(inner(item) for item in value.tolist())
        elif scalar_allowed and not isinstance(value, (str, dict)):
            items = (inner(value),) * (1 if kind.size is None else kind.size)
        else:
            raise ConversionError(wanted)
        return items

    return convert


def _make_special_converters(schema: Schema) -> dict[str, Converter]:
    """The converters of written tensors, of a single tensor among other arguments, and of random keys."""
    tensors = [argument for argument in schema.arguments if argument.type.core == "Tensor"]
    result: dict[str, Converter] = {
        a.name: _to_written_tensor for a in tensors if a.is_write and not a.type.is_list
    }
    first = schema.arguments[0] if schema.arguments else None
    if (
        not result
        and first is not None
        and tensors == [first]
        and first.type.form == "base"
        and len(schema.arguments) > 1
    ):
        result[first.name] = _to_only_tensor
    for argument in tensors:
        if argument.name == "key" and argument.type.form == "base":
            result["key"] = _make_key_converter(result.get("key", to_tensor_or_number))
    return result


def is_variadic(schema: Schema, declared: bool | str | None) -> bool:
    """Whether the last positional argument of a schema, a list of ints, may be given item by item.

    Args:
        schema: the schema.
        declared: what the declaration says, where a str names the overload of longer calls; None: if it is the only
            list and has no default (``reshape(x, 2, -1)``).
    """
    if isinstance(declared, str):
        return schema.positional[-1].type.is_list
    if declared is not None:
        return declared
    lists = [argument for argument in schema.positional if argument.type.is_list]
    return (
        len(lists) == 1
        and lists[0] is schema.positional[-1]
        and lists[0].type.core in ("int", "SymInt")
        and lists[0].default is MISSING
    )


class Binder:
    """Binds calls to one schema.

    Attributes:
        limit: the number of positional arguments.
        needed: the number of arguments without a default.
        tensors_only: whether all arguments are positional tensors, so that a call with tensors and numbers needs no
            conversion.
    """

    def __init__(self, schema: Schema):
        self.schema = schema
        self.positional = schema.positional
        self.limit = len(self.positional)
        self.keyword = tuple(argument for argument in schema.arguments if argument.kwarg_only)
        self.converters = {argument.name: make_converter(argument.type) for argument in schema.arguments}
        self.converters |= _make_special_converters(schema)
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
        self._as_it_is = () if _make_special_converters(schema) else SCALARS
        self._convert_positional = tuple(self.converters[argument.name] for argument in self.positional)
        self._indices = {argument.name: index for index, argument in enumerate(self.positional)}
        self._defaults = tuple(map(self._default, self.positional))
        if (
            is_variadic(schema, None) and self.limit > 1
        ):  # a method: x.reshape(*shape), where the shape may be ()
            self._defaults = (*self._defaults[:-1], ())
        self._required = sum(default is MISSING for default in self._defaults)
        self._keyword_defaults = {argument.name: self._default(argument) for argument in self.keyword}
        self._keywords_needed = any(argument.default is MISSING for argument in self.keyword)
        self.needed = self._required + sum(argument.default is MISSING for argument in self.keyword)

    def bind(self, args: Args, kwargs: Kwargs) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return all arguments of the schema, checked and converted.

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
            raise self.refuse(f"takes {len(self._defaults)} positional arguments, {given} were given")
        try:
            bound = [convert(value) for convert, value in zip(self._convert_positional, args)]
        except ConversionError:
            raise self._find_conversion_error(args) from None
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
        """Whether the number of positional arguments and the keywords of a call fit, regardless of their values."""
        if given > len(self.positional) or not kwargs <= self.names:
            return False
        if any(self._indices.get(name, given) < given for name in kwargs):
            return False
        return all(
            default is not MISSING or argument.name in kwargs
            for argument, default in (
                *zip(self.positional[given:], self._defaults[given:]),
                *((argument, argument.default) for argument in self.keyword),
            )
        )

    def _bind_keyword(
        self, name: str, value: object, given: int, bound: list[object], keywords: Kwargs
    ) -> None:
        index = self._indices.get(name)
        if name not in self.names:
            raise self.refuse(f"has no argument {name!r}")
        if index is not None and index < given:
            raise self.refuse(f"got argument {name!r} twice, by position and by keyword")
        converted = self._convert(name, value)
        if index is None:
            keywords[name] = converted
        else:
            bound[index] = converted

    def _check_complete(self, bound: list[object], keywords: Kwargs) -> None:
        for argument, value in zip((*self.positional, *self.keyword), (*bound, *keywords.values())):
            if value is MISSING:
                raise self.refuse(f"needs argument {argument.name!r}")

    def _default(self, argument: Argument) -> object:
        return (
            argument.default
            if argument.default is MISSING
            else self._convert(argument.name, argument.default)
        )

    def _convert(self, name: str, value: object) -> object:
        try:
            return self.converters[name](value)
        except ConversionError as wanted:
            raise self.refuse(f"argument {name!r} must be {wanted}, not {describe(value)}") from None

    def _find_conversion_error(self, args: Args) -> Exception:
        """Return the error of the first argument that cannot be converted."""
        for argument, value in zip(self.positional, args):
            try:
                self._convert(argument.name, value)
            except ArgumentError as fault:
                return fault
        raise AssertionError("a converter refused a value and then took it")

    def refuse(self, fault: str) -> ArgumentError:
        """The error of a call that does not fit the schema."""
        return ArgumentError(f"{self.schema.full_name} {fault}\n  schema: {self.schema}")
