"""The schema of an operator, in PyTorch's schema language.

Source: PyTorch, ``aten/src/ATen/native/README.md`` ("func") and ``torch/csrc/jit/frontend/function_schema_parser``.
The text is parsed by :mod:`.parser`; ``str()`` of a schema returns the text.
"""

from __future__ import annotations

from typing import Any

from ... import lazy
from ...errors import SchemaError
from ...named_tuple import NamedTuple
from ..formatting import short_repr


class _Missing:
    """The default of an argument that has none."""

    def __repr__(self) -> str:
        return "<no default>"


_compatibility = lazy.Module(".registry.schemas.compatibility")
MISSING: object = _Missing()
_INPLACE_DUNDERS = frozenset(
    "add sub mul div truediv floordiv mod pow matmul and or xor lshift rshift".split()
)


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
        if self.alias is None:
            return () if self.element is None else self.element.aliases()
        own = (self.alias,)
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
    def has_default(self) -> bool:
        """Whether the argument may be left out."""
        return self.default is not MISSING

    @property
    def is_write(self) -> bool:
        """Whether the operator writes into the argument."""
        part: Type | None = self.type
        while part is not None:
            if part.alias is not None and part.alias.is_write:
                return True
            part = part.element
        return False


class Return(NamedTuple):
    """One result: its type and, if it has one, its name."""

    type: Type
    name: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.name}" if self.name else str(self.type)


class Schema(NamedTuple):
    """A parsed schema; ``str(schema)`` is its text.

    >>> from tandem.registry.schemas.parser import parse_schema
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

    @property
    def takes_copy(self) -> bool:
        """Whether a call may say ``copy=True`` or ``copy=False``: the result is one view, as that of ``reshape``."""
        return (
            self.is_view
            and self.bare_return
            and not self.returns[0].type.is_list
            and all(argument.name != "copy" for argument in self.arguments)
        )

    @property
    def is_inplace_name(self) -> bool:
        """Whether the name is that of an operator that writes into its first argument (``add_``, ``__iadd__``)."""
        if self.name.startswith("__") and self.name.endswith("__"):
            return self.name[2:3] == "i" and self.name[3:-2] in _INPLACE_DUNDERS
        return self.name.endswith("_") and not self.name.endswith("__")

    @property
    def kind(self) -> str:
        """``"functional"``, ``"inplace"``, ``"out"`` or ``"mutable"``, as in ``torchgen.model.SchemaKind``.

        An operator that writes nothing is functional; one whose name ends in ``_`` and that writes its first argument
        is inplace; one that writes keyword-only arguments is out; any other that writes is mutable.

        >>> from tandem.registry.schemas.parser import parse_schema
        >>> [parse_schema(text).kind for text in (
        ...     "f(Tensor x) -> Tensor", "f_(Tensor(a!) x) -> Tensor(a!)",
        ...     "f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", "f(Tensor(a!) x) -> ()")]
        ['functional', 'inplace', 'out', 'mutable']
        """
        if not self.is_mutable:
            return "functional"
        if self.is_inplace_name and self.arguments[0].is_write:
            return "inplace"
        if any(argument.is_write and argument.kwarg_only for argument in self.arguments):
            return "out"
        return "mutable"

    def may_alias(self, one: str | Argument | Return, other: str | Argument | Return) -> bool:
        """Whether tensors of two arguments or results may share storage, as far as the schema says.

        Two of them may if their alias annotations have a set in common after the call, or if one is in the wildcard
        set ``*`` and the other is annotated or a list. Nothing is said of values without annotation.

        Args:
            one: an argument or a result, or its name.
            other: another one.

        Raises:
            SchemaError: there is none of that name, or it is neither.

        >>> from tandem.registry.schemas.parser import parse_schema
        >>> s = parse_schema("split(Tensor(a -> *) self, Tensor by) -> Tensor(a)[]")
        >>> s.may_alias("self", s.returns[0]), s.may_alias("by", s.returns[0])
        (True, False)
        """
        mine, theirs = self._alias_sets(one), self._alias_sets(other)
        if "*" in mine | theirs:
            return bool(mine and theirs)
        return bool(mine & theirs)

    def _alias_sets(self, of: str | Argument | Return) -> set[str]:
        """The alias sets that an argument or a result is in, before or after a call."""
        if isinstance(of, str):
            of = self._named(of)
        if not isinstance(of, (Argument, Return)):
            raise SchemaError(f"may_alias takes arguments and results, or their names, not {short_repr(of)}")
        return {name for alias in of.type.aliases() for name in (*alias.before, *(alias.after or ()))}

    def _named(self, name: str) -> Argument | Return:
        items: tuple[Argument | Return, ...] = (*self.arguments, *self.returns)
        for item in items:
            if item.name == name:
                return item
        raise SchemaError(f"{self.full_name} has no argument and no result {name!r}\n  schema: {self}")

    def is_backward_compatible_with(self, old: Schema) -> bool:
        """Whether all calls that fit an older schema fit this one too, and return the same types.

        See :meth:`incompatibilities` for the rules.
        """
        return not self.incompatibilities(old)

    def incompatibilities(self, old: Schema) -> list[str]:
        """Why callers of an older schema would break with this one; empty if none would.

        Arguments may be added if they have a default and come after the older ones of their kind; types of arguments
        may widen (``Tensor`` to ``Tensor?``, ``int`` to ``Scalar``) and those of results narrow; names, defaults that
        were there, list sizes and alias annotations stay. Source: ``c10::FunctionSchema::isBackwardCompatibleWith``.

        Args:
            old: the older schema.

        Raises:
            SchemaError: it is no schema.

        >>> from tandem.registry.schemas.parser import parse_schema
        >>> old = parse_schema("f(Tensor x) -> Tensor")
        >>> parse_schema("f(Tensor? x, int k=1) -> Tensor").incompatibilities(old)
        []
        >>> parse_schema("f(Tensor x, int k) -> Tensor").incompatibilities(old)
        ["the new argument 'k' has no default"]
        """
        if not isinstance(old, Schema):
            raise SchemaError(
                f"a schema is compared with a schema, such as parse_schema gives, not {short_repr(old)}"
            )
        result: list[str] = _compatibility.find_incompatibilities(old, self)
        return result
