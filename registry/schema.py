"""The schema of an operator, in PyTorch's schema language.

Source: PyTorch, ``aten/src/ATen/native/README.md`` ("func") and ``torch/csrc/jit/frontend/function_schema_parser``.
The text is parsed by :mod:`.schema_parser`; ``str()`` of a schema gives the text back.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class _Missing:
    """The default of an argument that has none."""

    def __repr__(self) -> str:
        return "<no default>"


MISSING: Any = _Missing()


class Alias(NamedTuple):
    """An alias annotation: ``(a)``, ``(a!)``, ``(a -> *)``, ``(a! -> a|b)``."""

    before: tuple[str, ...]
    is_write: bool = False
    after: tuple[str, ...] | None = None

    def __str__(self) -> str:
        arrow = "" if self.after is None else " -> " + "|".join(self.after)
        return f"({'|'.join(self.before)}{'!' if self.is_write else ''}{arrow})"


class Type(NamedTuple):
    """A type: a base name, or a list or an optional of another type."""

    base: str = ""
    element: Type | None = None
    form: str = "base"  # "base", "list" or "optional"
    size: int | None = None
    alias: Alias | None = None

    def __str__(self) -> str:
        mark = "" if self.alias is None else str(self.alias)
        if self.form == "base":
            return self.base + mark
        if self.form == "optional":
            return f"{self.element}?{mark}"
        return f"{self.element}[{'' if self.size is None else self.size}]{mark}"

    @property
    def core(self) -> str:
        """The base name under all lists and optionals."""
        return self.base if self.element is None else self.element.core

    @property
    def is_list(self) -> bool:
        """Whether values are sequences (an optional list counts)."""
        return self.form == "list" or (
            self.form == "optional" and self.element is not None and self.element.is_list
        )

    def aliases(self) -> tuple[Alias, ...]:
        """All annotations in the type, outermost first."""
        own = () if self.alias is None else (self.alias,)
        return own + (() if self.element is None else self.element.aliases())


class Argument(NamedTuple):
    """One argument: name, type, default (or ``MISSING``) and whether it is keyword-only."""

    name: str
    type: Type
    default: Any = MISSING
    default_text: str = ""
    kwarg_only: bool = False

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + (f"={self.default_text}" if self.default_text else "")

    @property
    def is_write(self) -> bool:
        """Whether the operator writes into the argument."""
        return any(alias.is_write for alias in self.type.aliases())


class Return(NamedTuple):
    """One result: its type and, if it has one, its name."""

    type: Type
    name: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.name}" if self.name else str(self.type)


class Schema(NamedTuple):
    """A parsed schema; ``str(schema)`` is its text.

    >>> from tandem.registry.schema_parser import parse_schema
    >>> s = parse_schema("add.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor")
    >>> s.name, s.overload, [a.name for a in s.arguments]
    ('add', 'Scalar', ['self', 'other', 'alpha'])
    """

    namespace: str
    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    bare_return: bool = True  # one unnamed result written without parentheses
    varargs: bool = False
    varrets: bool = False

    def __str__(self) -> str:
        return f"{self.full_name}({self._arguments_text()}) -> {self._returns_text()}"

    def _arguments_text(self) -> str:
        parts, starred = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not starred:
                parts.append("*")
                starred = True
            parts.append(str(argument))
        return ", ".join(parts + ["..."] * self.varargs)

    def _returns_text(self) -> str:
        parts = [str(result) for result in self.returns] + ["..."] * self.varrets
        return parts[0] if self.bare_return and len(parts) == 1 else f"({', '.join(parts)})"

    @property
    def full_name(self) -> str:
        """``ns::name.overload``, without the parts that are empty."""
        prefix = f"{self.namespace}::" if self.namespace else ""
        return prefix + self.name + (f".{self.overload}" if self.overload else "")

    @property
    def positional(self) -> tuple[Argument, ...]:
        """The arguments that may be given by position."""
        return tuple(argument for argument in self.arguments if not argument.kwarg_only)

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes into one of its arguments."""
        return any(argument.is_write for argument in self.arguments)

    @property
    def is_view(self) -> bool:
        """Whether a result shares storage with an argument that is not written."""
        return not self.is_mutable and any(result.type.aliases() for result in self.returns)
