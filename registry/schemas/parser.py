"""Parser of PyTorch's schema language: recursive descent over the text, errors with their column."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ...errors import SchemaError
from ..formatting import short_repr
from .defaults import is_valid_default, read_number, read_string, resolve_word
from .schema import MISSING, Alias, Argument, Return, Schema, Type

BASE_TYPES = frozenset(
    "Tensor int SymInt SymBool float bool str Scalar ScalarType Device DeviceIndex Layout MemoryFormat Generator "
    "Dimname DimVector complex Storage Stream QScheme ConstQuantizerPtr GraphModule Any".split()
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words of the schema language's tokenizer in PyTorch, which cannot be names.
_RESERVED = frozenset(
    "False None True and as assert break class continue def del elif else for global if import in is not or pass "
    "raise return while with".split()
)
_BLANKS = (" ", "\t", "\n")
_SPACE = re.compile(r"[ \t\n]*")
_FULL_NAME = re.compile(
    r"(?:([A-Za-z_][A-Za-z0-9_]*)::)?([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z_][A-Za-z0-9_]*))?"
)
_SIMPLE_TYPE = re.compile(r"[A-Za-z]+[\[\]?0-9]*(?= [A-Za-z_])")
_SIMPLE_ARGUMENT = re.compile(r" ?([A-Za-z]+[\[\]?0-9]*) ([A-Za-z_][A-Za-z0-9_]*)")
_SIZE = re.compile(r"[0-9]{1,9}(?![0-9])")
_WITH_STORAGE = frozenset(("Tensor", "Storage", "Any"))
_MAX_NESTING = 32  # lists and optionals around a type, and brackets around a default, at most
_CACHE_SIZE = 4096  # parsed schemas, and signatures, that are remembered
# What follows the name in the schemas read so far: most operators share a few signatures.
_signatures: dict[str, tuple[Any, ...]] = {}
_types: dict[str, Type] = {}  # those without alias annotation that were read so far, by their text


def parse_schema(text: str) -> Schema:
    """Parse one schema.

    Args:
        text: for example ``"relu_(Tensor(a!) self) -> Tensor(a!)"``.

    Returns:
        The schema; ``str`` of it is the text again.

    Raises:
        SchemaError: the text is not a schema; the message names the column and what was expected there.

    >>> from tandem.registry.schemas.parser import parse_schema
    >>> str(parse_schema("t(Tensor(a) self) -> Tensor(a)"))
    't(Tensor(a) self) -> Tensor(a)'
    """
    if not isinstance(text, str):
        raise SchemaError(f"a schema is a string, not {type(text).__name__}")
    return _parse(text)


def parse_name(text: str) -> tuple[str, str, str]:
    """Namespace, name and overload of an operator's full name, such as ``"ns::add.Tensor"``.

    Raises:
        SchemaError: the text is no such name; the message names the column.
    """
    if not isinstance(text, str):
        raise SchemaError(f"an operator's name is a string, not {short_repr(text)}")
    parser = _Parser(text)
    result = parser.full_name()
    parser.end("the end of the name")
    return result


def parse_namespace(text: str) -> str:
    """A namespace, checked.

    Raises:
        SchemaError: the text is no name; the message names the column.
    """
    parser = _Parser(text)
    parser.name("a namespace")
    parser.end("the end of the namespace")
    return text


@lru_cache(maxsize=_CACHE_SIZE)
def _parse(text: str) -> Schema:
    return _Parser(text).schema()


class _Parser:
    def __init__(self, text: str):
        self.text, self.at = text, 0

    # -- the reader ------------------------------------------------------------------------------------------------
    def fail(self, expected: str, at: int | None = None) -> SchemaError:
        self.at = self.at if at is None else at
        value = repr(self.text[self.at : self.at + 12]) if self.at < len(self.text) else "the end"
        return SchemaError(
            f"schema {self.text!r}, column {self.at}: expected {expected}, found {value}\n"
            f"  {self.text}\n  {' ' * self.at}^",
            self.at,
        )

    def space(self) -> None:
        if self.text.startswith(_BLANKS, self.at):
            self._skip_blanks()

    def _skip_blanks(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def peek(self, token: str) -> bool:
        if self.text.startswith(_BLANKS, self.at):
            self._skip_blanks()
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> bool:
        if self.text.startswith(_BLANKS, self.at):
            self._skip_blanks()
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise self.fail(repr(token))

    def match(self, pattern: re.Pattern[str], expected: str) -> str:
        self.space()
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.fail(expected)
        self.at = match.end()
        return match.group()

    def end(self, expected: str = "the end of the schema") -> None:
        self.space()
        if self.at != len(self.text):
            raise self.fail(expected)

    # -- the grammar -----------------------------------------------------------------------------------------------
    def schema(self) -> Schema:
        namespace, name, overload = self.full_name()
        rest = self.text[self.at :]
        cached = _signatures.get(rest)
        if cached is None:
            arguments, varargs = self.arguments()
            self.expect("->")
            returns, bare, varrets = self.returns(_alias_sets(arguments))
            self.end()
            if len(_signatures) >= _CACHE_SIZE:
                _signatures.clear()
            cached = _signatures[rest] = (arguments, returns, bare, varargs, varrets)
        return Schema(namespace, name, overload, *cached)

    def full_name(self) -> tuple[str, str, str]:
        match = _FULL_NAME.match(self.text, self.at)
        if match is not None and self.text[match.end() : match.end() + 1] in ("", "("):
            parts = match.groups("")
            if _RESERVED.isdisjoint(parts) and parts[2] != "default" and not parts[2].startswith("__"):
                self.at = match.end()
                return parts[0], parts[1], parts[2]
        return self._full_name()

    def _full_name(self) -> tuple[str, str, str]:
        """The same step by step, for names with blanks in them, and errors."""
        namespace, name = "", self.name("an operator name")
        if self.take("::"):
            namespace, name = name, self.name("an operator name")
        return namespace, name, self.overload() if self.take(".") else ""

    def name(self, expected: str) -> str:
        self.space()
        start = self.at
        name = self.match(_NAME, expected)
        if name in _RESERVED:
            raise self.fail(f"{expected}, which {name!r} cannot be", start)
        return name

    def overload(self) -> str:
        self.space()
        start = self.at
        name = self.name("an overload name")
        if name == "default" or name.startswith("__"):
            raise self.fail(
                f"an overload name other than {name!r}: 'default' and names with '__' are taken", start
            )
        return name

    def arguments(self) -> tuple[tuple[Argument, ...], bool]:
        items: list[Argument] = []
        starred = False
        self.expect("(")
        if self.take(")"):
            return (), False
        while True:
            if self.take("..."):
                self.expect(")")
                return tuple(items), True
            if not starred and self.take("*"):
                starred = True
                self.expect(",")
            self.add_argument(items, starred)
            if self.take(")"):
                return tuple(items), False
            self.expect(",")

    def add_argument(self, arguments: list[Argument], starred: bool) -> None:
        simple = _SIMPLE_ARGUMENT.match(self.text, self.at)
        if simple is not None and simple[1] in _types and simple[2] not in _RESERVED:
            kind, name, start = _types[simple[1]], simple[2], simple.start(2)
            self.at = simple.end()
        else:
            kind = self.type()
            self.space()
            start = self.at
            name = self.name("an argument name")
        if any(argument.name == name for argument in arguments):
            raise self.fail(f"an argument name other than {name!r}, which is taken", start)
        default, text = self.default(kind) if self.take("=") else (MISSING, "")
        if default is MISSING and not starred and arguments and arguments[-1].default is not MISSING:
            raise self.fail("a default: the argument follows one that has a default", start)
        arguments.append(Argument(name, kind, default, text, starred))

    def returns(self, sets: dict[str, bool]) -> tuple[tuple[Return, ...], bool, bool]:
        if self.take("..."):
            return (), True, True
        if not self.take("("):
            return (self.result(sets, []),), True, False
        items: list[Return] = []
        if self.take(")"):
            return (), False, False
        while True:
            if self.take("..."):
                self.expect(")")
                return tuple(items), False, True
            items.append(self.result(sets, items))
            if self.take(")"):
                return tuple(items), False, False
            self.expect(",")

    def result(self, sets: dict[str, bool], before: list[Return]) -> Return:
        self.space()
        start = self.at
        kind = self.type()
        for alias in kind.aliases():
            self.check_alias(alias, sets, start)
        self.space()
        start = self.at
        named = _NAME.match(self.text, self.at) is not None
        name = self.name("a name") if named else ""
        if name and any(result.name == name for result in before):
            raise self.fail(f"a name of a result other than {name!r}, which is taken", start)
        return Return(kind, name)

    def check_alias(self, alias: Alias, sets: dict[str, bool], start: int) -> None:
        """A result can only be in the alias sets of arguments, and written only if they are."""
        for name in {*alias.before, *(alias.after or ())} - {"*"}:
            if name not in sets:
                raise self.fail(f"an alias set of an argument, not {name!r}, which no argument is in", start)
            if alias.is_write and not sets[name]:
                raise self.fail(f"a result that is not written: no argument of set {name!r} is", start)

    def type(self) -> Type:
        self.space()
        start = self.at
        simple = _SIMPLE_TYPE.match(self.text, start)
        if simple is None:
            return self.any_type()
        known = _types.get(simple.group())
        if known is not None:
            self.at = simple.end()
            return known
        kind = self.any_type()
        if (
            self.at >= simple.end() and len(_types) < _CACHE_SIZE
        ):  # all of it was read, and the blank behind it
            _types[simple.group()] = kind
        return kind

    def any_type(self) -> Type:
        """A type, step by step."""
        start = self.at
        base = self.match(_NAME, "a type")
        if base not in BASE_TYPES:
            raise self.fail(f"a type ({', '.join(sorted(BASE_TYPES))})", start)
        kind = Type(base, alias=self.alias(base))
        for _ in range(_MAX_NESTING):
            if self.take("["):
                size = None if self.peek("]") else self.size()
                self.expect("]")
                kind = Type(element=kind, form="list", size=size, alias=self.alias(base))
            elif self.take("?"):
                kind = Type(element=kind, form="optional")
            else:
                return kind
        raise self.fail(f"at most {_MAX_NESTING} '[]' and '?' behind a type")

    def size(self) -> int:
        return int(self.match(_SIZE, "a list size"))

    def alias(self, base: str) -> Alias | None:
        if not self.peek("("):
            return None
        if base not in _WITH_STORAGE:
            raise self.fail(f"no alias annotation: a value of type {base} shares no storage")
        self.expect("(")
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
        return "*" if self.take("*") else self.name("an alias set such as 'a'")

    # -- defaults --------------------------------------------------------------------------------------------------
    def default(self, kind: Type) -> tuple[Any, str]:
        self.space()
        start = self.at
        value = self.value(kind)
        if not is_valid_default(kind, value):
            raise self.fail(f"a default of type {kind}", start)
        return value, self.text[start : self.at]

    def value(self, kind: Type, depth: int = 0) -> Any:
        if self.take("["):
            if depth == _MAX_NESTING:
                raise self.fail(f"a default of type {kind}")
            items: list[Any] = []
            while not self.take("]"):
                if items:
                    self.expect(",")
                items.append(self.value(kind, depth + 1))
            return tuple(items)
        self.space()
        start = self.at
        read = read_string if self.text[start : start + 1] in ("'", '"') else read_number
        result = read(self.text, start)
        if result is not None:
            value, self.at = result
            return value
        word = self.match(_NAME, "a default value" if read is read_number else "a string")
        known, value = resolve_word(kind, word)
        if not known:
            raise self.fail(f"a default of type {kind}", start)
        return value


def _alias_sets(arguments: tuple[Argument, ...]) -> dict[str, bool]:
    """The alias sets that arguments are in, before or after the call, and whether they are written."""
    result: dict[str, bool] = {}
    for argument in arguments:
        for alias in argument.type.aliases():
            for name in (*alias.before, *(alias.after or ())):
                result[name] = result.get(name, False) or alias.is_write
    return result
