"""Parser of PyTorch's schema language: recursive descent over the text, errors with their column."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ..errors import SchemaError
from .schema import MISSING, Alias, Argument, Return, Schema, Type

BASE_TYPES = frozenset(
    "Tensor int SymInt float bool str Scalar ScalarType Device Layout MemoryFormat Generator Dimname complex "
    "Storage Stream QScheme DeviceIndex Any".split()
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf|nan)(?:j)?")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False}
_BLANKS = (" ", "\t", "\n")
_SPACE = re.compile(r"[ \t\n]*")
# What follows the name in the schemas read so far: most operators share a few signatures.
_signatures: dict[str, tuple[Any, ...]] = {}


def parse_schema(text: str) -> Schema:
    """Parse one schema.

    Args:
        text: for example ``"relu_(Tensor(a!) self) -> Tensor(a!)"``.

    Returns:
        The schema; ``str`` of it is the text again.

    Raises:
        SchemaError: the text is not a schema; the message names the column and what was expected there.

    >>> from tandem.registry.schema_parser import parse_schema
    >>> str(parse_schema("t(Tensor(a) self) -> Tensor(a)"))
    't(Tensor(a) self) -> Tensor(a)'
    """
    if not isinstance(text, str):
        raise SchemaError(f"a schema is a string, not {type(text).__name__}")
    return _parse(text)


@cache
def _parse(text: str) -> Schema:
    return _Parser(text).schema()


class _Parser:
    def __init__(self, text: str):
        self.text, self.at = text, 0

    # -- the reader ------------------------------------------------------------------------------------------------
    def fail(self, expected: str) -> SchemaError:
        found = repr(self.text[self.at : self.at + 12]) if self.at < len(self.text) else "the end"
        return SchemaError(
            f"schema {self.text!r}, column {self.at}: expected {expected}, found {found}\n"
            f"  {self.text}\n  {' ' * self.at}^",
            self.at,
        )

    def space(self) -> None:
        if self.text[self.at : self.at + 1] in _BLANKS:
            match = _SPACE.match(self.text, self.at)
            self.at = match.end() if match else self.at

    def peek(self, token: str) -> bool:
        if self.text[self.at : self.at + 1] in _BLANKS:
            self.space()
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> bool:
        if not self.peek(token):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.fail(repr(token))

    def match(self, pattern: re.Pattern[str], expected: str) -> str:
        self.space()
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self.fail(expected)
        self.at = found.end()
        return found.group()

    def end(self) -> None:
        self.space()
        if self.at != len(self.text):
            raise self.fail("the end of the schema")

    # -- the grammar -----------------------------------------------------------------------------------------------
    def schema(self) -> Schema:
        namespace, name = "", self.match(_NAME, "an operator name")
        if self.take("::"):
            namespace, name = name, self.match(_NAME, "an operator name")
        overload = self.match(_NAME, "an overload name") if self.take(".") else ""
        rest = self.text[self.at :]
        if rest not in _signatures:
            arguments, varargs = self.arguments()
            self.expect("->")
            returns, bare, varrets = self.returns()
            self.end()
            _signatures[rest] = (arguments, returns, bare, varargs, varrets)
        return Schema(namespace, name, overload, *_signatures[rest])

    def arguments(self) -> tuple[tuple[Argument, ...], bool]:
        found: list[Argument] = []
        starred = False
        self.expect("(")
        if self.take(")"):
            return (), False
        while True:
            if self.take("..."):
                self.expect(")")
                return tuple(found), True
            if not starred and self.take("*"):
                starred = True
                self.expect(",")
            self.add_argument(found, starred)
            if self.take(")"):
                return tuple(found), False
            self.expect(",")

    def add_argument(self, found: list[Argument], starred: bool) -> None:
        kind = self.type()
        self.space()
        start = self.at
        name = self.match(_NAME, "an argument name")
        if any(argument.name == name for argument in found):
            self.at = start
            raise self.fail(f"an argument name other than {name!r}, which is taken")
        default, text = self.default(kind) if self.take("=") else (MISSING, "")
        if default is MISSING and not starred and found and found[-1].default is not MISSING:
            self.at = start
            raise self.fail("a default: the argument follows one that has a default")
        found.append(Argument(name, kind, default, text, starred))

    def returns(self) -> tuple[tuple[Return, ...], bool, bool]:
        if not self.take("("):
            return (self.result(),), True, False
        found: list[Return] = []
        if self.take(")"):
            return (), False, False
        while True:
            if self.take("..."):
                self.expect(")")
                return tuple(found), False, True
            found.append(self.result())
            if self.take(")"):
                return tuple(found), False, False
            self.expect(",")

    def result(self) -> Return:
        kind = self.type()
        self.space()
        named = _NAME.match(self.text, self.at) is not None
        return Return(kind, self.match(_NAME, "a name") if named else "")

    def type(self) -> Type:
        self.space()
        start = self.at
        base = self.match(_NAME, "a type")
        if base not in BASE_TYPES:
            self.at = start
            raise self.fail(f"a type ({', '.join(sorted(BASE_TYPES))})")
        kind = Type(base, alias=self.alias())
        while True:
            if self.take("["):
                size = None if self.peek("]") else self.size()
                self.expect("]")
                kind = Type(element=kind, form="list", size=size, alias=self.alias())
            elif self.take("?"):
                kind = Type(element=kind, form="optional", alias=self.alias())
            else:
                return kind

    def size(self) -> int:
        return int(self.match(re.compile(r"\d+"), "a list size"))

    def alias(self) -> Alias | None:
        if not self.text.startswith("(", self.at):
            return None
        self.at += 1
        before = self.alias_set()
        is_write = self.take("!")
        after = self.alias_set() if self.take("->") else None
        self.expect(")")
        return Alias(before, is_write, after)

    def alias_set(self) -> tuple[str, ...]:
        names = [self.alias_name()]
        while self.take("|"):
            names.append(self.alias_name())
        return tuple(names)

    def alias_name(self) -> str:
        return "*" if self.take("*") else self.match(_NAME, "an alias set such as 'a'")

    # -- defaults --------------------------------------------------------------------------------------------------
    def default(self, kind: Type) -> tuple[Any, str]:
        self.space()
        start = self.at
        value = self.value()
        self.check_default(kind, value, start)
        return value, self.text[start : self.at]

    def value(self) -> Any:
        if self.take("["):
            items: list[Any] = []
            while not self.take("]"):
                if items:
                    self.expect(",")
                items.append(self.value())
            return tuple(items)
        self.space()
        if self.text[self.at : self.at + 1] in ("'", '"'):
            return self.match(_STRING, "a string")[1:-1]
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            self.at = number.end()
            return _number(number.group())
        word = self.match(_NAME, "a default value")
        return _WORDS.get(word, word)

    def check_default(self, kind: Type, value: Any, start: int) -> None:
        if not _fits(kind, value):
            self.at = start
            raise self.fail(f"a default of type {kind}")


def _number(text: str) -> Any:
    if text.endswith("j"):
        return complex(text)
    try:
        return int(text)
    except ValueError:
        return float(text)


_FITS: dict[str, tuple[type, ...]] = {
    "int": (int, str),
    "SymInt": (int, str),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "Scalar": (bool, int, float, complex),
    "complex": (int, float, complex),
    "Tensor": (),
    "Generator": (),
}


def _fits(kind: Type, value: Any) -> bool:
    if kind.form == "optional" and kind.element is not None:
        return value is None or _fits(kind.element, value)
    if kind.form == "list" and kind.element is not None:
        if isinstance(value, tuple):
            return all(_fits(kind.element, item) for item in value)
        return kind.size is not None and _fits(kind.element, value)
    accepted = _FITS.get(kind.base, (str, int, float))
    if isinstance(value, bool) and bool not in accepted:
        return False
    return isinstance(value, accepted)
