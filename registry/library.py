"""Libraries: how operators and kernels enter the registry, and how they leave it again.

Source: ``torch.library.Library``. Unlike there, an implementation may precede its definition, and everything that is
registered gives a handle that takes it back and restores what it had shadowed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..errors import ArgumentError, RegistrationError, UnknownOperatorError
from .keys import DispatchKey, parse_key
from .operator import (
    Kernel,
    KeyName,
    Operator,
    Registration,
    definition_listeners,
    fallbacks,
    lock,
    operators,
    recompute_all,
)
from .schema import Schema
from .schema_parser import parse_schema

# Implementations whose operator is not defined yet, by the operator's full name.
_waiting: dict[str, list[Registration]] = {}


class Handle:
    """What a registration returns: ``remove()`` takes it back; as a context manager, at the end of the block."""

    __slots__ = ("_undo",)

    def __init__(self, undo: Callable[[], None]):
        self._undo: Callable[[], None] | None = undo

    def remove(self) -> None:
        """Take the registration back; a second call does nothing."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        self.remove()


class Library:
    """A namespace to define operators in and to register kernels for.

    Args:
        namespace: such as ``"myns"``; tandem's own is ``"td"``.
        kind: ``"DEF"`` (defines the namespace), ``"FRAGMENT"`` (adds to it) or ``"IMPL"`` (only implements).

    Raises:
        RegistrationError: an unknown kind, or a definition through an ``"IMPL"`` library.

    >>> import tandem as td
    >>> with td.Library("doc", "DEF") as lib:
    ...     _ = lib.define("twice(Tensor x) -> Tensor")
    ...     _ = lib.impl("twice", lambda x: x + x, "CompositeImplicit")
    ...     td.ops.doc.twice(td.asarray([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    def __init__(self, namespace: str, kind: str = "FRAGMENT"):
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise RegistrationError(f"Library kind {kind!r}: expected 'DEF', 'FRAGMENT' or 'IMPL'")
        self.namespace, self.kind = namespace, kind
        self._handles: list[Handle] = []

    def define(self, schema: str | Schema, decl: Any = None) -> Handle:
        """Define an operator.

        Args:
            schema: the schema, or its text, without namespace.
            decl: its declaration, for layers and lowerings to read.

        Returns:
            A handle whose ``remove()`` takes the operator away.

        Raises:
            SchemaError: the schema does not parse.
            RegistrationError: the operator exists, or the library only implements.
        """
        if self.kind == "IMPL":
            raise RegistrationError(
                f"Library({self.namespace!r}, 'IMPL') defines nothing; use 'DEF' or 'FRAGMENT'"
            )
        parsed = schema if isinstance(schema, Schema) else parse_schema(schema)
        operator = Operator(self._qualified(parsed), decl)
        with lock:
            if operator.name in operators:
                there = operators[operator.name].schema
                raise RegistrationError(
                    f"{operator.name} is defined already:\n  there: {there}\n  new:   {operator.schema}"
                )
            operators[operator.name] = operator
            for registration in _waiting.get(operator.name, ()):
                operator.add(registration)
            _tell(operator, True)
        return self._keep(lambda: self._undefine(operator))

    def impl(
        self,
        name: str,
        fn: Kernel | KeyName | None = None,
        key: KeyName = "",
        *,
        boxed: bool = False,
        with_keyset: bool = False,
    ) -> Any:
        """Register a kernel; also a decorator: ``@lib.impl("name", "CPU")``.

        Args:
            name: operator name, with ``.overload`` if it has one, without namespace.
            fn: the kernel: a plain function of the schema's arguments; boxed: ``fn(op, keyset, args, kwargs)``.
            key: a dispatch key or an alias key; by default ``"CompositeImplicit"``.
            boxed: whether ``fn`` is boxed.
            with_keyset: whether ``fn`` takes the call's key set as its first argument: ``fn(keyset, *args, **kwargs)``.

        Returns:
            A handle; as a decorator, the function.

        Raises:
            ArgumentError: the name is no string, or the kernel is not callable, or it is to be called in two ways.
            ValueArgumentError: no such key.
        """
        if not isinstance(name, str):
            raise ArgumentError(f"impl takes the name of an operator, such as 'add.Tensor', not {name!r}")
        if isinstance(fn, (str, DispatchKey)) and key == "":
            key, fn = fn, None  # @lib.impl("name", "CPU")
        parsed = parse_key("CompositeImplicit" if key == "" else key)
        if fn is None:

            def decorate(function: Kernel) -> Kernel:
                self.impl(name, function, parsed, boxed=boxed, with_keyset=with_keyset)
                return function

            return decorate
        _check_kernel(fn)
        if boxed and with_keyset:
            raise ArgumentError("a boxed kernel takes the key set anyway: leave out with_keyset")
        registration = Registration(fn, parsed, boxed, _caller(), with_keyset)  # type: ignore[arg-type]
        full_name = f"{self.namespace}::{name}"
        with lock:
            _waiting.setdefault(full_name, []).append(registration)
            if full_name in operators:
                operators[full_name].add(registration)
        return self._keep(lambda: _withdraw(full_name, registration))

    def fallback(self, fn: Kernel, key: KeyName) -> Handle:
        """Register one boxed kernel for every operator that has none of its own at a key.

        Args:
            fn: the kernel, ``fn(op, keyset, args, kwargs)``; or :func:`fallthrough`, which lets calls pass.
            key: one dispatch key.

        Returns:
            A handle whose ``remove()`` takes the kernel away.

        Raises:
            ArgumentError: the kernel is not callable.
            ValueArgumentError: no such key.
            RegistrationError: the key is an alias, which stands for several.

        >>> import tandem as td
        >>> def announce(op, keyset, args, kwargs):
        ...     print(op.schema.name)
        ...     with td.exclude_keys("Mode"):
        ...         return op(*args, **kwargs)
        >>> with td.Library("doc", "IMPL") as lib, td.include_keys("Mode"):
        ...     _ = lib.fallback(announce, "Mode")
        ...     _ = td.exp(td.asarray([0.0]))
        exp
        """
        parsed = parse_key(key)
        _check_kernel(fn)
        if not isinstance(parsed, DispatchKey):
            raise RegistrationError(f"a fallback takes one dispatch key, not the alias {parsed!r}")
        registration = Registration(fn, parsed, True, _caller())
        with lock:
            fallbacks.setdefault(parsed, []).append(registration)
            recompute_all()
        return self._keep(lambda: _drop_fallback(parsed, registration))

    def close(self) -> None:
        """Take back everything that was registered through this library, newest first."""
        while self._handles:
            self._handles.pop().remove()

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _qualified(self, schema: Schema) -> Schema:
        if schema.namespace not in ("", self.namespace):
            raise RegistrationError(f"Library {self.namespace!r} cannot define {schema.full_name!r}")
        return schema._replace(namespace=self.namespace)

    def _keep(self, undo: Callable[[], None]) -> Handle:
        handle = Handle(undo)
        self._handles.append(handle)
        return handle

    @staticmethod
    def _undefine(operator: Operator) -> None:
        with lock:
            if operators.get(operator.name) is operator:
                del operators[operator.name]
                _tell(operator, False)


def _tell(operator: Operator, defined: bool) -> None:
    for listener in definition_listeners:
        listener(operator, defined)


def _check_kernel(fn: Any) -> None:
    if not callable(fn):
        raise ArgumentError(f"a kernel is a function, not {fn!r}")


def _withdraw(full_name: str, registration: Registration) -> None:
    with lock:
        _waiting[full_name].remove(registration)
        if full_name in operators:
            operators[full_name].discard(registration)


def _drop_fallback(key: DispatchKey, registration: Registration) -> None:
    with lock:
        fallbacks[key].remove(registration)
        recompute_all()


def _caller() -> str:
    """``file:line`` of the nearest frame outside of this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def find_overloads(namespace: str, name: str) -> list[Operator]:
    """All overloads of an operator, in order of definition.

    Raises:
        UnknownOperatorError: there is none.
    """
    prefix = f"{namespace}::{name}"
    found = [op for full, op in list(operators.items()) if full == prefix or full.startswith(prefix + ".")]
    if not found:
        raise UnknownOperatorError(f"no operator {prefix} is registered{_near(prefix)}")
    return found


def _near(prefix: str) -> str:
    stems = sorted({full.partition(".")[0] for full in operators})
    close = [stem for stem in stems if stem.split("::")[-1][:3] == prefix.split("::")[-1][:3]][:5]
    return f"; near names are {', '.join(close)}" if close else ""
