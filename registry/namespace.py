"""``td.ops``: every registered operator, as ``td.ops.<namespace>.<name>[.<overload>]``.

Source: ``torch.ops``. Lookups are cached as attributes. Defining or undefining an overload removes the cached packet;
existing references to it look the operator up again at each call.
"""

from __future__ import annotations

from typing import Any

from ..errors import UnknownOperatorError
from . import native_type
from .function import make_function
from .lazy_operators import lazy_names, lazy_namespaces, materialize
from .library import find_overloads
from .native_type import NativeCallable, accept_entries
from .operator import Operator, definition_listeners, lock, operators
from .schemas.overloads import OverloadSet

# Attributes that a packet of one overload forwards to its function.
_FORWARDED = frozenset("schema redispatch call_for_key get_kernel decl registered table binder".split())


@accept_entries
class OverloadPacket(NativeCallable):  # type: ignore[misc]
    """The overloads of one operator; calling it calls the one that takes the arguments.

    See :class:`tandem.registry.schemas.overloads.OverloadSet` for the choice. The packet of a single overload calls its
    function, and shares the function's native entry.
    """

    followers: tuple[Any, ...] = ()  # no callable shares the entry of a packet

    def __init__(self, namespace: str, name: str):
        self._namespace, self._name = namespace, name
        result = find_overloads(namespace, name)
        self._operators: tuple[Operator, ...] = tuple(result)
        self._callee: Any = make_function(result[0]) if len(result) == 1 else OverloadSet(self._operators)
        self._kept = self._callee  # stays alive: native code may still run in it after the packet is retired
        self._found: list[str] = []
        self.__name__ = self.__qualname__ = name
        self.__module__ = f"tandem.ops.{namespace}"
        self.__doc__ = "\n\n".join(str(op.schema) for op in result)
        if len(result) == 1:
            native_type.follow(self, self._callee)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the overload that takes the arguments."""
        callee = self._callee
        if type(callee) is not OverloadSet:
            return callee.target(*args, **kwargs)
        key: Any = (type(args[0]), type(args[1])) if len(args) == 2 else tuple(map(type, args))
        if kwargs:
            key += (*kwargs, *map(type, kwargs.values()))
        function = callee.by_types.get(key)
        if function is None:
            function = callee.decide(key, args, kwargs)
        return function(*args, **kwargs)

    def overloads(self) -> list[str]:
        """The names of the overloads; the one without a name is ``"default"``."""
        return [op.schema.overload or "default" for op in find_overloads(self._namespace, self._name)]

    def __getattr__(self, overload: str) -> Any:
        if overload.startswith("__") or "_operators" not in self.__dict__:
            raise AttributeError(overload)
        if overload in _FORWARDED and overload not in self.overloads():
            return getattr(self._single(overload), overload)
        return self._find(overload)

    def _find(self, overload: str) -> Any:
        """The function of an overload, cached as an attribute until the packet is retired."""
        suffix = "" if overload == "default" else f".{overload}"
        with lock:
            cached = operators.get(f"{self._namespace}::{self._name}{suffix}")
            if cached is None:
                raise UnknownOperatorError(
                    f"{self._namespace}::{self._name} has no overload {overload!r}; "
                    f"it has {', '.join(self.overloads())}"
                )
            function = make_function(cached)
            if not isinstance(self._callee, _RetiredCallee):
                self.__dict__[overload] = function
                self._found.append(overload)
            return function

    def _single(self, wanted: str) -> Any:
        result = find_overloads(self._namespace, self._name)
        if len(result) > 1:
            raise UnknownOperatorError(
                f"{self._namespace}::{self._name} has several overloads; name one, for example "
                f"td.ops.{self._namespace}.{self._name}.{self.overloads()[0]}.{wanted}"
            )
        return make_function(result[0])

    def _retire(self) -> None:
        """Clear the cached functions after the overloads have changed; later calls look the operator up again."""
        native_type.unfollow(self, self._kept)
        self._callee = _RetiredCallee(self._namespace, self._name)
        for overload in self._found:
            self.__dict__.pop(overload, None)
        self._found.clear()

    def __reduce__(self) -> tuple[object, ...]:
        return (_get_packet, (self._namespace, self._name))

    def __repr__(self) -> str:
        return f"<operator packet {self._namespace}::{self._name}: {', '.join(self.overloads())}>"


class _RetiredCallee:
    """The callee of a retired packet: it looks the operator up at each call."""

    def __init__(self, namespace: str, name: str):
        self.namespace, self.name = namespace, name

    def target(self, /, *args: Any, **kwargs: Any) -> Any:
        return _get_packet(self.namespace, self.name)(*args, **kwargs)


class Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> OverloadPacket:
        if "_name" not in self.__dict__:  # `copy` is creating an instance
            raise AttributeError(name)
        materialize(f"{self._name}::{name}")
        with lock:
            current = ops.__dict__.get(
                self._name, self
            )  # another object if the namespace was empty for a while
            packet: OverloadPacket | None = current.__dict__.get(name)
            if packet is None:  # another thread may have been first
                packet = current.__dict__[name] = OverloadPacket(self._name, name)
                ops.__dict__[self._name] = current
            return packet

    def __dir__(self) -> list[str]:
        start = f"{self._name}::"
        here = {full[len(start) :].partition(".")[0] for full in list(operators) if full.startswith(start)}
        return sorted(here.union(lazy_names(self._name)))

    def __repr__(self) -> str:
        return f"<namespace {self._name}: {len(dir(self))} operators>"


class Namespaces:
    """The namespaces of all operators, as attributes."""

    def __getattr__(self, name: str) -> Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        result = Namespace(name)
        if dir(result):
            self.__dict__[name] = result
        return result

    def __dir__(self) -> list[str]:
        return sorted({full.partition("::")[0] for full in list(operators)} | lazy_namespaces())


ops = Namespaces()


def _get_packet(namespace: str, name: str) -> Any:
    return getattr(getattr(ops, namespace), name)


def _retire_packet(operator: Operator, defined: bool) -> None:
    """Retire the packet of an operator that has gained or lost an overload; forget a namespace that is empty."""
    namespace = ops.__dict__.get(operator.schema.namespace)
    if namespace is None:
        return
    packet = namespace.__dict__.pop(operator.schema.name, None)
    if isinstance(packet, OverloadPacket):
        packet._retire()
    if not defined and not dir(namespace):
        del ops.__dict__[operator.schema.namespace]


definition_listeners.append(_retire_packet)
