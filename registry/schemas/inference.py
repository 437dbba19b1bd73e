"""infer_schema: derive the schema of a Python function from its type hints.

Source: ``torch.library.infer_schema``. Hints of one meaning are read alike: ``Optional[Tensor]``, ``Tensor | None``
and the string ``"Tensor | None"``.
"""

from __future__ import annotations

import numbers
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import SchemaError
from ..dtypes import DType
from ..formatting import short_repr
from ..values import TensorBase
from .defaults import is_valid_default
from .parser import parse_name
from .schema import MISSING, Alias, Argument, Return, Schema, Type

if TYPE_CHECKING:
    import inspect

    from ..types import Function
else:
    inspect = lazy.Module("inspect")

_ACCEPTED = (
    "Tensor, int, float, bool, str, complex, int | float | complex (a Scalar), DType; Optional of each; "
    "list or Sequence of each; Optional of such a list; list[Optional[Tensor]]"
)
_BASES: dict[object, str] = {
    int: "SymInt", float: "float", bool: "bool", str: "str", complex: "complex", DType: "ScalarType",
    numbers.Number: "Scalar", numbers.Complex: "Scalar", numbers.Real: "Scalar",
}  # fmt: skip
_SEQUENCES = (list, Sequence, typing.get_origin(typing.Sequence[int]))


def infer_schema(fn: Function, mutates_args: str | Iterable[str] = (), op_name: str | None = None) -> Schema:
    """The schema of a function, from its type hints.

    Args:
        fn: a function whose parameters and result are annotated: with Tensor, int, float, bool, str, complex, DType,
            ``int | float`` or ``numbers.Number`` (a Scalar), optionals and lists of them; the result is a Tensor, a
            number, a list of tensors, a tuple of these, or None.
        mutates_args: the names of the parameters that the function writes into; ``"unknown"``: any tensor.
        op_name: the operator's name, such as ``"myns::f"``; without one the schema has none.

    Returns:
        The schema; ``str`` of it is its text. Results share no storage with arguments.

    Raises:
        SchemaError: a parameter has no hint, or one without a type in the schema language; the message names it.

    >>> import tandem as td
    >>> def scale(x: td.Tensor, by: float = 2.0, *, out: td.Tensor | None = None) -> td.Tensor: ...
    >>> str(td.infer_schema(scale, op_name="doc::scale"))
    'doc::scale(Tensor x, float by=2.0, *, Tensor? out=None) -> Tensor'
    >>> def fill(x: td.Tensor, value: float) -> None: ...
    >>> str(td.infer_schema(fill, mutates_args=["x"]))
    '(Tensor(a0!) x, float value) -> ()'
    """
    signature, hints = _read_hints(fn)
    namespace, name, overload = parse_name(op_name) if op_name else ("", "", "")
    written = _make_is_written(fn, signature, mutates_args)
    arguments = []
    for index, parameter in enumerate(signature.parameters.values()):
        arguments.append(_make_argument(fn, parameter, hints, f"a{index}" if written(parameter.name) else ""))
    returns, bare = _make_returns(fn, signature, hints)
    return Schema(namespace, name, overload, tuple(arguments), returns, bare)


def _make_error(fn: Function, what: str) -> SchemaError:
    name = getattr(fn, "__qualname__", repr(fn))
    return SchemaError(f"cannot infer a schema for {name}: {what}\n  accepted hints: {_ACCEPTED}")


def _read_hints(fn: Function) -> tuple[inspect.Signature, dict[str, object]]:
    """The signature of a function, and its hints with strings evaluated."""
    if not callable(fn):
        raise SchemaError(f"infer_schema takes a function, not {short_repr(fn)}")
    try:
        return inspect.signature(fn), typing.get_type_hints(inspect.unwrap(fn))
    except NameError as fault:
        raise _make_error(
            fn, f"a hint is a string that names nothing the function's module knows: {fault}"
        ) from None
    except (TypeError, ValueError, SyntaxError) as fault:
        raise _make_error(fn, f"its signature cannot be read: {fault}") from None


def _make_is_written(
    fn: Function, signature: inspect.Signature, mutates_args: str | Iterable[str]
) -> Callable[[str], bool]:
    if isinstance(mutates_args, str):
        if mutates_args != "unknown":
            raise SchemaError(
                f"mutates_args is a sequence of names or 'unknown', not {mutates_args!r}; "
                f"for one name write [{mutates_args!r}]"
            )
        hints = _read_hints(fn)[1]
        return lambda name: _type_of(hints.get(name)) is not None and _core_of(hints[name]) == "Tensor"
    if not isinstance(mutates_args, Iterable):
        raise _make_error(
            fn, f"mutates_args is a sequence of names or 'unknown', not {short_repr(mutates_args)}"
        )
    names = tuple(mutates_args)
    for name in names:
        if not isinstance(name, str) or name not in signature.parameters:
            there = ", ".join(signature.parameters) or "none"
            raise _make_error(fn, f"mutates_args names {short_repr(name)}, and the parameters are {there}")
    return names.__contains__


def _core_of(hint: object) -> str:
    kind = _type_of(hint)
    return "" if kind is None else kind.core


def _make_argument(fn: Callable[..., Any], parameter: Any, hints: dict[str, object], alias: str) -> Argument:
    name = parameter.name
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise _make_error(
            fn, f"the parameter {name!r} is {parameter.kind.description}; a schema has no such arguments"
        )
    if name not in hints:
        raise _make_error(fn, f"the parameter {name!r} has no type hint")
    kind = _type_of(hints[name])
    if kind is None:
        hint = hints[name]
        raise _make_error(fn, f"the parameter {name!r} has the hint {_hint_text(hint)}{_hint_advice(hint)}")
    if alias:
        if kind.core != "Tensor":
            raise _make_error(
                fn, f"mutates_args names {name!r}, which is {kind}: only tensors can be written"
            )
        kind = _with_alias(kind, Alias((alias,), True))
    default, text = _make_default(fn, name, kind, parameter)
    return Argument(name, kind, default, text, parameter.kind is parameter.KEYWORD_ONLY)


def _hint_advice(hint: object) -> str:
    return "; write list[...] for a sequence" if typing.get_origin(hint) is tuple or hint is tuple else ""


def _hint_text(hint: object) -> str:
    return getattr(hint, "__name__", str(hint)) if isinstance(hint, type) else str(hint)


def _with_alias(kind: Type, alias: Alias) -> Type:
    if kind.element is None:
        return kind._replace(alias=alias)
    return kind._replace(element=_with_alias(kind.element, alias))


def _make_default(fn: Callable[..., Any], name: str, kind: Type, parameter: Any) -> tuple[object, str]:
    value = parameter.default
    if value is parameter.empty:
        return MISSING, ""
    value = _to_literal_value(value)
    if not is_valid_default(kind, value):
        advice = "; for None write Optional[...]" if value is None else ""
        raise _make_error(
            fn, f"the default {parameter.default!r} of the parameter {name!r} is no {kind}{advice}"
        )
    if isinstance(value, complex) and value.real:
        raise _make_error(fn, f"the default {value!r} of the parameter {name!r} has no literal; take None")
    return value, _default_text(kind, value)


def _to_literal_value(value: object) -> object:
    if isinstance(value, DType):
        return value.name
    return tuple(map(_to_literal_value, value)) if isinstance(value, (list, tuple)) else value


def _default_text(kind: Type, value: object) -> str:
    """Format a default as in the text of a schema."""
    if isinstance(value, tuple):
        return f"[{', '.join(_default_text(kind, item) for item in value)}]"
    if isinstance(value, str) and kind.core != "ScalarType":
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{quoted}"'
    return f"{value.imag!r}j" if isinstance(value, complex) else str(value)


def _type_of(hint: object) -> Type | None:
    """Convert a type hint to a type of the schema language; None if it has none."""
    if isinstance(hint, type) and issubclass(hint, TensorBase):
        return Type("Tensor")
    if isinstance(hint, type) and hint in _BASES:
        return Type(_BASES[hint])
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _type_of_union(inner)
    if origin in _SEQUENCES and len(inner) == 1:
        element = _type_of(inner[0])
        return None if element is None or element.is_list else Type(element=element, form="list")
    return None


def _type_of_union(members: tuple[object, ...]) -> Type | None:
    some = [member for member in members if member is not type(None)]
    if len(some) > 1 and set(some) <= {bool, int, float, complex} and {int, float} <= set(some):
        kind: Type | None = Type("Scalar")
    else:
        kind = _type_of(some[0]) if len(some) == 1 else None
    if kind is None or len(some) == len(members):
        return kind
    return Type(element=kind, form="optional")


def _make_returns(
    fn: Function, signature: inspect.Signature, hints: dict[str, object]
) -> tuple[tuple[Return, ...], bool]:
    if "return" not in hints:
        raise _make_error(
            fn, "the result has no type hint; write -> None for a function that returns nothing"
        )
    hint = hints["return"]
    if hint is None or hint is type(None):
        return (), False
    if typing.get_origin(hint) is tuple:
        members = typing.get_args(hint)
        return tuple(Return(_make_return_type(fn, member)) for member in members if member != ()), False
    return (Return(_make_return_type(fn, hint)),), True


def _make_return_type(fn: Function, hint: object) -> Type:
    kind = _type_of(hint)
    plain = kind is not None and (kind.form == "base" or (kind.core == "Tensor" and kind.form == "list"))
    if kind is None or not plain or kind.base in ("str", "ScalarType"):
        fault = f"the result has the hint {_hint_text(hint)}"
        raise _make_error(fn, fault + "; it may be a Tensor, a list of tensors, a number or a tuple of these")
    return kind
