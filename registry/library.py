"""Library: define operators, register kernels, and remove them again.

Source: ``torch.library.Library``. Unlike there, an implementation may precede its definition, and every registration
returns a handle that removes it and restores what it shadowed.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from .. import lazy
from ..errors import ArgumentError, RegistrationError, UnknownOperatorError
from .conflicts import check_definition, check_single_definer, find_replaced_kernel
from .contract import enforce_fallback_schema
from .dispatch.keys import BACKENDS, DispatchKey, parse_key
from .dtypes import DType, as_dtype
from .formatting import short_repr
from .inventory import implementations, notify
from .lazy_operators import lazy_names, materialize, materialize_fallbacks
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
from .registration import Handle as Handle
from .registration import Registration, RegistrationSite, find_caller, remove_all
from .schemas.parser import parse_name, parse_namespace, parse_schema
from .schemas.schema import Schema
from .source import is_package_file

_difflib = lazy.Module("difflib")

# The "DEF" library of each namespace that has one.
_definition_libraries: dict[str, weakref.ref[Library]] = {}


class Library:
    """A namespace to define operators in and to register kernels for.

    Args:
        namespace: such as ``"myns"``; tandem's own is ``"td"``.
        kind: ``"DEF"`` (defines the namespace; one library at a time), ``"FRAGMENT"`` (adds to it) or ``"IMPL"`` (only
            implements).

    Closing a library, leaving it as a context manager or garbage-collecting it removes everything that was registered
    through it; keep a reference to it as long as the registrations are needed.

    Attributes:
        namespace, kind: as passed.
        site: the code that created it.
        is_trusted: whether tandem itself created it, so that its kernels are not checked against their schemas.

    Raises:
        ArgumentError: the namespace is not a string.
        SchemaError: the namespace is not an identifier.
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
            raise RegistrationError(f"Library kind {short_repr(kind)}: expected 'DEF', 'FRAGMENT' or 'IMPL'")
        if not isinstance(namespace, str):
            raise ArgumentError(
                f"Library takes the name of a namespace, such as 'myns', not {short_repr(namespace)}"
            )
        parse_namespace(namespace)
        self.namespace, self.kind, self.site = namespace, kind, find_caller(namespace)
        self.is_trusted = is_package_file(sys._getframe(1).f_code.co_filename)
        self._handles: dict[Handle, None] = {}
        if kind == "DEF":
            with lock:
                former = _definition_libraries.get(namespace, _no_library)()
                if former is not None:
                    check_single_definer(namespace, former.site, self.site)
                    former.close()
                _definition_libraries[namespace] = weakref.ref(self)
        handles = self._handles
        weakref.finalize(self, lambda: lock.call_when_free(lambda: remove_all(handles))).atexit = False

    def define(self, schema: str | Schema, decl: object = None) -> Handle:
        """Define an operator.

        Args:
            schema: the schema, or its text, without namespace.
            decl: its declaration, for layers and lowerings to read.

        Returns:
            A handle whose ``remove()`` removes the operator.

        Raises:
            ArgumentError: ``decl`` is not a declaration.
            SchemaError: the schema does not parse.
            RegistrationError: the operator exists, or the library has the kind ``"IMPL"``.
        """
        if self.kind == "IMPL":
            raise RegistrationError(
                f"Library({self.namespace!r}, 'IMPL') defines nothing; use 'DEF' or 'FRAGMENT'"
            )
        if decl is not None and not hasattr(decl, "kind"):
            raise ArgumentError(
                f"define takes an operator's Declaration as decl, or None, not {short_repr(decl)}"
            )
        parsed = schema if isinstance(schema, Schema) else parse_schema(schema)
        operator = Operator(self._qualified(parsed), decl, find_caller(self.namespace))
        if not operator.site.own:
            materialize(operator.name)
        with lock:
            operator = _define(operator)
        site = operator.site
        return Handle(lambda: _undefine(operator, site), self._handles)

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
            fn: the kernel: what :func:`tandem.numpy_kernel`, ``c_kernel``, ``llvm_kernel`` or ``cuda_kernel`` returns,
                or a plain function of the schema's arguments; boxed: ``fn(op, keyset, args, kwargs)``.
            key: a dispatch key or an alias key; by default ``"CompositeImplicit"``.
            boxed: whether ``fn`` is boxed.
            with_keyset: whether ``fn`` takes the call's key set as its first argument: ``fn(keyset, *args, **kwargs)``.
            dtypes: the dtypes that the kernel is specialized for, under the key of a backend: it serves calls whose
                tensors of the highest kind (complex, floating-point, integers, booleans) all have one of these dtypes.
                None: all calls that no specialized kernel serves.
            allow_override: whether the kernel may shadow one that other code has registered for the same key and
                dtypes. Tandem's own kernels may be shadowed without it. A module or a notebook cell that is run again
                replaces its earlier registrations.

        Returns:
            A handle; as a decorator, the function.

        Raises:
            ArgumentError: the name is not a string, the kernel is not callable, or both ``boxed`` and ``with_keyset``
                are passed.
            SchemaError: the name is not an operator's name.
            RegistrationError: other code has registered such a kernel, ``dtypes`` is passed with a key that is not a
                backend's, or the operator belongs to another namespace.
            ValueArgumentError: the key does not exist.
        """
        full_name = self._full_name(name)
        if isinstance(fn, (str, DispatchKey)) and key == "":
            key, fn = fn, None  # @lib.impl("name", "CPU")
        parsed = parse_key("CompositeImplicit" if key == "" else key)
        if fn is None:

            def decorate(function: Kernel) -> Kernel:
                given: Any = {"boxed": boxed, "with_keyset": with_keyset, "dtypes": dtypes}
                self.impl(name, function, parsed, allow_override=allow_override, **given)
                return function

            return decorate
        _check_kernel(fn)
        if boxed and with_keyset:
            raise ArgumentError("a boxed kernel takes the key set anyway: leave out with_keyset")
        options = {"boxed": boxed, "with_keyset": with_keyset, "dtypes": _parse_dtypes(dtypes, parsed)}
        return self._register(full_name, fn, parsed, allow_override, **options)

    def _register(
        self, full_name: str, fn: Any, key: KeyName, allow_override: bool, **options: Any
    ) -> Handle:
        """Enter a registration; its options are those of :class:`.registration.Registration`."""
        site, library = (
            find_caller(self.namespace if self.is_trusted else ""),
            f"{self.kind} {self.namespace}",
        )
        options.setdefault("trusted", self.is_trusted)
        if hasattr(fn, "bind"):
            if options.get("boxed") or options.get("with_keyset"):
                raise ArgumentError(
                    "a kernel in another language takes the schema's arguments: it is not boxed"
                )
            if full_name in operators:
                fn.bind(operators[full_name])  # refuses what does not fit before anything is entered
        registration = Registration(full_name, fn, key, site, library, **options)
        if not registration.site.own:  # tandem's own kernels may wait for their operator
            materialize(full_name)
        with lock:
            _add_kernel(registration, allow_override)
        return Handle(lambda: _remove_kernel(registration), self._handles)

    def impl_layer(self, name: str | Operator, fn: Kernel, key: KeyName) -> Handle:
        """Register one of tandem's own boxed kernels for an operator of another package, replacing any other.

        Args:
            name: the operator, as for :meth:`impl`.
            fn: the kernel, ``fn(op, bits, args, kwargs)`` with the key set as an int.
            key: a dispatch key.

        Returns:
            A handle.
        """
        return self._register(self._full_name(name), fn, parse_key(key), True, boxed=True, trusted=True)

    def fallback(self, fn: Kernel, key: KeyName, *, allow_override: bool = False) -> Handle:
        """Register one boxed kernel for every operator without a kernel at a key.

        Args:
            fn: the kernel, ``fn(op, keyset, args, kwargs)``; or :func:`fallthrough`, which lets calls pass.
            key: one dispatch key.
            allow_override: whether the kernel may shadow a fallback that other code has registered.

        Returns:
            A handle whose ``remove()`` removes the kernel.

        Raises:
            ArgumentError: the kernel is not callable.
            ValueArgumentError: the key does not exist.
            RegistrationError: the key is an alias for several keys, or other code has registered a fallback for it.

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
            "*",
            fn,
            parsed,
            find_caller(self.namespace),
            f"{self.kind} {self.namespace}",
            boxed=True,
            trusted=self.is_trusted,
        )
        enforce_fallback_schema(registration)
        if not registration.site.own:
            materialize_fallbacks()
        with lock:
            held = fallbacks.setdefault(parsed, [])
            former = find_replaced_kernel(registration, held, allow_override)
            _replace_or_append(held, registration, former)
            recompute_all()
            _notify_registered(registration, former)
        return Handle(lambda: _remove_fallback(parsed, registration), self._handles)

    def close(self) -> None:
        """Remove everything that was registered through this library, newest first."""
        remove_all(self._handles)
        with lock:
            if _definition_libraries.get(self.namespace, _no_library)() is self:
                del _definition_libraries[self.namespace]

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _full_name(self, name: object) -> str:
        operator = getattr(name, "operator", name)
        if isinstance(operator, Operator) and operator.schema.namespace == self.namespace:
            return operator.name
        text = operator.name if isinstance(operator, Operator) else name
        if not isinstance(text, str):
            raise ArgumentError(
                f"impl takes the name of an operator, such as 'add.Tensor', not {short_repr(name)}"
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


def _no_library() -> None:
    return None


def _define(operator: Operator) -> Operator:
    """Add an operator and return it; return the existing one if the same code defined it with the same schema.

    The caller holds the lock.
    """
    there = operators.get(operator.name)
    if there is not None:
        check_definition(there, operator)
        if there.schema == operator.schema:
            there.decl, there.site = operator.decl, operator.site
            there.recompute()
            return there
        _undefine(there, there.site)
    for registration in implementations.get(operator.name, ()):
        operator.add(registration)
    operators[operator.name] = operator
    _notify_defined(operator, True)
    return operator


def _undefine(operator: Operator, site: RegistrationSite) -> None:
    """Remove a definition, unless it has been replaced in the meantime."""
    with lock:
        if operators.get(operator.name) is operator and operator.site is site:
            del operators[operator.name]
            operator.retire()
            _notify_defined(operator, False)


def _notify_defined(operator: Operator, defined: bool) -> None:
    for listener in definition_listeners:
        listener(operator, defined)
    notify("define" if defined else "undefine", operator.name)


def _check_kernel(fn: object) -> None:
    if not callable(fn) and not hasattr(fn, "bind"):
        raise ArgumentError(f"a kernel is a function, not {short_repr(fn)}")


def _parse_dtypes(given: Iterable[DType | str] | None, key: KeyName) -> frozenset[DType] | None:
    if given is None:
        return None
    if not isinstance(key, DispatchKey) or not 1 << key & BACKENDS:
        name = getattr(key, "name", key)
        raise RegistrationError(
            f"a kernel for some dtypes takes the key of a backend, such as 'CPU', not {name!r}"
        )
    if isinstance(given, (str, DType)) or not isinstance(given, Iterable):
        raise ArgumentError(f"dtypes is a sequence of dtypes, such as [td.float32], not {short_repr(given)}")
    result = frozenset(map(as_dtype, given))
    if not result:
        raise ArgumentError("dtypes is empty, so the kernel would serve no call; pass None for every dtype")
    return result


def _replace_or_append(
    held: list[Registration], registration: Registration, former: Registration | None
) -> None:
    if former is None:
        held.append(registration)
    else:
        held[held.index(former)] = registration
        former.alive = False


def _notify_registered(registration: Registration, former: Registration | None) -> None:
    if former is not None:
        notify("remove", former.operator, former)
    notify("impl", registration.operator, registration)


def _add_kernel(registration: Registration, allow_override: bool) -> None:
    """Add a kernel; the caller holds the lock."""
    name = registration.operator
    former = find_replaced_kernel(registration, implementations.get(name, ()), allow_override)
    _replace_or_append(implementations.setdefault(name, []), registration, former)
    if name in operators:
        operators[name].add(registration, former)
    _notify_registered(registration, former)


def _remove_kernel(registration: Registration) -> None:
    """Remove a kernel, unless it has been replaced in the meantime."""
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
        notify("remove", name, registration)


def _remove_fallback(key: DispatchKey, registration: Registration) -> None:
    with lock:
        if registration in fallbacks.get(key, ()):
            fallbacks[key].remove(registration)
            registration.alive = False
            recompute_all()
            notify("remove", "*", registration)


def find_overloads(namespace: str, name: str) -> list[Operator]:
    """All overloads of an operator, in order of definition.

    Raises:
        UnknownOperatorError: no operator has that name.
    """
    prefix = f"{namespace}::{name}"
    materialize(prefix)
    result = [op for full, op in list(operators.items()) if full == prefix or full.startswith(prefix + ".")]
    if not result:
        raise UnknownOperatorError(f"no operator {prefix} is registered{_suggest_names(prefix)}")
    return result


def _suggest_names(prefix: str) -> str:
    namespace = prefix.partition("::")[0]
    later = [f"{namespace}::{name}" for name in lazy_names(namespace)]
    stems = {full.partition(".")[0] for full in list(operators)}.union(later)
    close = _difflib.get_close_matches(prefix, stems, 5)
    return f"; near names are {', '.join(close)}" if close else ""
