"""Libraries: how operators and kernels enter the registry, and how they leave it again.

Source: ``torch.library.Library``. Unlike there, an implementation may precede its definition, and everything that is
registered gives a handle that takes it back and restores what it had shadowed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from ..errors import ArgumentError, RegistrationError, UnknownOperatorError
from .conflicts import check_definition, check_kernel_is_new, check_only_definer
from .dtypes import DType, as_dtype
from .handle import Handle as Handle
from .handle import remove_all
from .inventory import implementations, tell
from .keys import BACKENDS, DispatchKey, parse_key
from .late import declare_promised, promised
from .operator import (
    Kernel,
    KeyName,
    Operator,
    definition_listeners,
    fallbacks,
    lock,
    operators,
    recompute_all,
)
from .registration import Place, Registration, caller
from .schema import Schema
from .schema_parser import parse_name, parse_namespace, parse_schema
from .text import shown

# The "DEF" library of each namespace that has one.
_definers: dict[str, weakref.ref[Library]] = {}


class Library:
    """A namespace to define operators in and to register kernels for.

    Args:
        namespace: such as ``"myns"``; tandem's own is ``"td"``.
        kind: ``"DEF"`` (defines the namespace; there is one at a time), ``"FRAGMENT"`` (adds to it) or ``"IMPL"`` (only
            implements).

    A library that is closed, left as a context manager or garbage-collected takes back all that was registered through
    it; so keep it as long as that is needed.

    Raises:
        ArgumentError: the namespace is no string.
        SchemaError: the namespace is no name.
        RegistrationError: an unknown kind, a second ``"DEF"`` of a namespace, or a definition through ``"IMPL"``.

    >>> import tandem as td
    >>> with td.Library("doc", "DEF") as lib:
    ...     _ = lib.define("twice(Tensor x) -> Tensor")
    ...     _ = lib.impl("twice", lambda x: x + x, "CompositeImplicit")
    ...     td.ops.doc.twice(td.asarray([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    def __init__(self, namespace: str, kind: str = "FRAGMENT"):
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise RegistrationError(f"Library kind {shown(kind)}: expected 'DEF', 'FRAGMENT' or 'IMPL'")
        if not isinstance(namespace, str):
            raise ArgumentError(
                f"Library takes the name of a namespace, such as 'myns', not {shown(namespace)}"
            )
        parse_namespace(namespace)
        self.namespace, self.kind, self.place = namespace, kind, caller(namespace)
        self._handles: dict[Handle, None] = {}
        if kind == "DEF":
            with lock:
                former = _definers.get(namespace, _nobody)()
                if former is not None:
                    check_only_definer(namespace, former.place, self.place)
                    former.close()
                _definers[namespace] = weakref.ref(self)
        handles = self._handles
        weakref.finalize(self, lambda: lock.later(lambda: remove_all(handles))).atexit = False

    def define(self, schema: str | Schema, decl: Any = None) -> Handle:
        """Define an operator.

        Args:
            schema: the schema, or its text, without namespace.
            decl: its declaration, for layers and lowerings to read.

        Returns:
            A handle whose ``remove()`` takes the operator away.

        Raises:
            ArgumentError: ``decl`` is no declaration.
            SchemaError: the schema does not parse.
            RegistrationError: the operator exists, or the library only implements.
        """
        if self.kind == "IMPL":
            raise RegistrationError(
                f"Library({self.namespace!r}, 'IMPL') defines nothing; use 'DEF' or 'FRAGMENT'"
            )
        if decl is not None and not hasattr(decl, "kind"):
            raise ArgumentError(f"define takes an operator's Declaration as decl, or None, not {shown(decl)}")
        parsed = schema if isinstance(schema, Schema) else parse_schema(schema)
        operator = Operator(self._qualified(parsed), decl, caller(self.namespace))
        if not operator.place.own:
            declare_promised(operator.name)
        with lock:
            operator = _define(operator)
        place = operator.place
        return Handle(lambda: _undefine(operator, place), self._handles)

    def impl(
        self,
        name: str | Operator,
        fn: Kernel | KeyName | None = None,
        key: KeyName = "",
        *,
        boxed: bool = False,
        with_keyset: bool = False,
        dtypes: Iterable[DType | str] | None = None,
        allow_override: bool = False,
    ) -> Any:
        """Register a kernel; also a decorator: ``@lib.impl("name", "CPU")``.

        Args:
            name: operator name, with ``.overload`` if it has one, and with this library's namespace or without one; or
                the operator, such as ``td.ops.td.add.Tensor``.
            fn: the kernel: a plain function of the schema's arguments; boxed: ``fn(op, keyset, args, kwargs)``.
            key: a dispatch key or an alias key; by default ``"CompositeImplicit"``.
            boxed: whether ``fn`` is boxed.
            with_keyset: whether ``fn`` takes the call's key set as its first argument: ``fn(keyset, *args, **kwargs)``.
            dtypes: what the kernel is specialised for, under the key of a backend: it serves calls whose tensors of the
                highest kind (complex, floating-point, integers, booleans) all have one of these dtypes. None: all calls
                that no specialised kernel serves.
            allow_override: whether the kernel may shadow one that somebody else has registered for the same key and
                dtypes. Tandem's own kernels may be shadowed without it. A module or a notebook cell that is run again
                replaces what it had registered.

        Returns:
            A handle; as a decorator, the function.

        Raises:
            ArgumentError: the name is no string, or the kernel is not callable, or it is to be called in two ways.
            SchemaError: the name is not that of an operator.
            RegistrationError: there is such a kernel from another place, or the key is none of a backend's and has
                ``dtypes``, or the operator is of another namespace.
            ValueArgumentError: no such key.
        """
        full_name = self._full_name(name)
        if isinstance(fn, (str, DispatchKey)) and key == "":
            key, fn = fn, None  # @lib.impl("name", "CPU")
        parsed = parse_key("CompositeImplicit" if key == "" else key)
        if fn is None:

            def decorate(function: Kernel) -> Kernel:
                options: Any = {"boxed": boxed, "with_keyset": with_keyset, "dtypes": dtypes}
                self.impl(name, function, parsed, allow_override=allow_override, **options)
                return function

            return decorate
        _check_kernel(fn)
        if boxed and with_keyset:
            raise ArgumentError("a boxed kernel takes the key set anyway: leave out with_keyset")
        registration = Registration(
            full_name,
            fn,  # type: ignore[arg-type]
            parsed,
            caller(self.namespace),
            f"{self.kind} {self.namespace}",
            boxed=boxed,
            with_keyset=with_keyset,
            dtypes=_dtypes(dtypes, parsed),
        )
        if not registration.place.own:  # tandem's own kernels may wait for their operator
            declare_promised(full_name)
        with lock:
            _enter(registration, allow_override)
        return Handle(lambda: _withdraw(registration), self._handles)

    def fallback(self, fn: Kernel, key: KeyName, *, allow_override: bool = False) -> Handle:
        """Register one boxed kernel for every operator that has none of its own at a key.

        Args:
            fn: the kernel, ``fn(op, keyset, args, kwargs)``; or :func:`fallthrough`, which lets calls pass.
            key: one dispatch key.
            allow_override: whether the kernel may shadow a fallback that somebody else has registered.

        Returns:
            A handle whose ``remove()`` takes the kernel away.

        Raises:
            ArgumentError: the kernel is not callable.
            ValueArgumentError: no such key.
            RegistrationError: the key is an alias, which stands for several; or it has a fallback from another place.

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
        registration = Registration(
            "*", fn, parsed, caller(self.namespace), f"{self.kind} {self.namespace}", boxed=True
        )
        with lock:
            held = fallbacks.setdefault(parsed, [])
            former = check_kernel_is_new(registration, held, allow_override)
            _put(held, registration, former)
            recompute_all()
            _announce(registration, former)
        return Handle(lambda: _drop_fallback(parsed, registration), self._handles)

    def close(self) -> None:
        """Take back everything that was registered through this library, newest first."""
        remove_all(self._handles)
        with lock:
            if _definers.get(self.namespace, _nobody)() is self:
                del _definers[self.namespace]

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _full_name(self, name: Any) -> str:
        operator = getattr(name, "operator", name)
        if isinstance(operator, Operator) and operator.schema.namespace == self.namespace:
            return operator.name
        text = operator.name if isinstance(operator, Operator) else name
        if not isinstance(text, str):
            raise ArgumentError(
                f"impl takes the name of an operator, such as 'add.Tensor', not {shown(name)}"
            )
        namespace, stem, overload = parse_name(text)
        if namespace not in ("", self.namespace):
            raise RegistrationError(
                f"Library {self.namespace!r} implements operators of {self.namespace!r}, not {text!r}; "
                f'use Library("{namespace}", "IMPL")'
            )
        return f"{self.namespace}::{stem}" + (f".{overload}" if overload else "")

    def _qualified(self, schema: Schema) -> Schema:
        if schema.namespace not in ("", self.namespace):
            raise RegistrationError(f"Library {self.namespace!r} cannot define {schema.full_name!r}")
        return schema._replace(namespace=self.namespace)


def _nobody() -> None:
    return None


def _define(operator: Operator) -> Operator:
    """Enter an operator (the lock is held); the one that it defines anew, if it was defined alike by the same lines."""
    there = operators.get(operator.name)
    if there is not None:
        check_definition(there, operator)
        if there.schema == operator.schema:
            there.decl, there.place = operator.decl, operator.place
            there.recompute()
            return there
        _undefine(there, there.place)
    for registration in implementations.get(operator.name, ()):
        operator.add(registration)
    operators[operator.name] = operator
    _tell_defined(operator, True)
    return operator


def _undefine(operator: Operator, place: Place) -> None:
    """Take a definition back, unless it has been replaced since."""
    with lock:
        if operators.get(operator.name) is operator and operator.place is place:
            del operators[operator.name]
            operator.retire()
            _tell_defined(operator, False)


def _tell_defined(operator: Operator, defined: bool) -> None:
    for listener in definition_listeners:
        listener(operator, defined)
    tell("define" if defined else "undefine", operator.name)


def _check_kernel(fn: Any) -> None:
    if not callable(fn):
        raise ArgumentError(f"a kernel is a function, not {shown(fn)}")


def _dtypes(given: Iterable[DType | str] | None, key: KeyName) -> frozenset[DType] | None:
    if given is None:
        return None
    if not isinstance(key, DispatchKey) or not 1 << key & BACKENDS:
        name = getattr(key, "name", key)
        raise RegistrationError(
            f"a kernel for some dtypes takes the key of a backend, such as 'CPU', not {name!r}"
        )
    if isinstance(given, (str, DType)) or not isinstance(given, Iterable):
        raise ArgumentError(f"dtypes is a sequence of dtypes, such as [td.float32], not {shown(given)}")
    found = frozenset(map(as_dtype, given))
    if not found:
        raise ArgumentError("dtypes is empty: such a kernel would serve nothing; None means every dtype")
    return found


def _put(held: list[Registration], registration: Registration, former: Registration | None) -> None:
    if former is None:
        held.append(registration)
    else:
        held[held.index(former)] = registration
        former.alive = False


def _announce(registration: Registration, former: Registration | None) -> None:
    if former is not None:
        tell("remove", former.operator, former)
    tell("impl", registration.operator, registration)


def _enter(registration: Registration, allow_override: bool) -> None:
    """Add a kernel (the lock is held)."""
    name = registration.operator
    former = check_kernel_is_new(registration, implementations.get(name, ()), allow_override)
    _put(implementations.setdefault(name, []), registration, former)
    if name in operators:
        operators[name].add(registration, former)
    _announce(registration, former)


def _withdraw(registration: Registration) -> None:
    """Take a kernel back, unless it has been replaced since."""
    name = registration.operator
    with lock:
        held = implementations.get(name, [])
        if registration not in held:
            return
        held.remove(registration)
        if not held:
            del implementations[name]
        registration.alive = False
        if name in operators:
            operators[name].discard(registration)
        tell("remove", name, registration)


def _drop_fallback(key: DispatchKey, registration: Registration) -> None:
    with lock:
        if registration in fallbacks.get(key, ()):
            fallbacks[key].remove(registration)
            registration.alive = False
            recompute_all()
            tell("remove", "*", registration)


def find_overloads(namespace: str, name: str) -> list[Operator]:
    """All overloads of an operator, in order of definition.

    Raises:
        UnknownOperatorError: there is none.
    """
    prefix = f"{namespace}::{name}"
    declare_promised(prefix)
    found = [op for full, op in list(operators.items()) if full == prefix or full.startswith(prefix + ".")]
    if not found:
        raise UnknownOperatorError(f"no operator {prefix} is registered{_near(prefix)}")
    return found


def _near(prefix: str) -> str:
    namespace = prefix.partition("::")[0]
    later = [f"{namespace}::{name}" for name in promised(namespace)]
    stems = sorted({full.partition(".")[0] for full in operators}.union(later))
    close = [stem for stem in stems if stem.split("::")[-1][:3] == prefix.split("::")[-1][:3]][:5]
    return f"; near names are {', '.join(close)}" if close else ""
