"""``td.ops``: every registered operator, as ``td.ops.<namespace>.<name>[.<overload>]``.

Source: ``torch.ops``. What is found is kept as an attribute, so that the second look costs a dictionary's; defining or
undefining an overload takes it out again, and who has kept it is served by looking anew.
"""

from __future__ import annotations

from typing import Any

from ..errors import UnknownOperatorError
from . import native_type
from .function import make_function
from .late import declare_promised, namespaces, promised
from .library import find_overloads
from .native_type import NativeCallable, accept_entries
from .operator import Operator, definition_listeners, lock, operators
from .overloads import OverloadSet

# What a packet of one overload answers for it.
_OF_AN_OPERATOR = frozenset("schema redispatch call_for_key get_kernel decl registered table binder".split())


@accept_entries
class Packet(NativeCallable):  # type: ignore[misc]
    """The overloads of one operator; calling it calls the one that takes the arguments.

    See :class:`tandem.registry.overloads.OverloadSet` for the choice. The packet of a single overload calls its
    function, and shares the function's native entry.
    """

    followers: tuple[Any, ...] = ()  # nothing shares the entry of a packet

    def __init__(self, namespace: str, name: str):
        self._namespace, self._name = namespace, name
        found = find_overloads(namespace, name)
        self._operators: tuple[Operator, ...] = tuple(found)
        self._callee: Any = make_function(found[0]) if len(found) == 1 else OverloadSet(self._operators)
        self._kept = self._callee  # native code may be running in it after the packet has been retired
        self._found: list[str] = []
        self.__name__ = self.__qualname__ = name
        self.__module__ = f"tandem.ops.{namespace}"
        self.__doc__ = "\n\n".join(str(op.schema) for op in found)
        if len(found) == 1:
            native_type.follow(self, self._callee)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
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
        if overload in _OF_AN_OPERATOR and overload not in self.overloads():
            return getattr(self._single(overload), overload)
        return self._find(overload)

    def _find(self, overload: str) -> Any:
        """The function of an overload, kept as an attribute while the packet is in force."""
        suffix = "" if overload == "default" else f".{overload}"
        with lock:
            found = operators.get(f"{self._namespace}::{self._name}{suffix}")
            if found is None:
                raise UnknownOperatorError(
                    f"{self._namespace}::{self._name} has no overload {overload!r}; "
                    f"it has {', '.join(self.overloads())}"
                )
            function = make_function(found)
            if not isinstance(self._callee, _Retired):
                self.__dict__[overload] = function
                self._found.append(overload)
            return function

    def _single(self, wanted: str) -> Any:
        found = find_overloads(self._namespace, self._name)
        if len(found) > 1:
            raise UnknownOperatorError(
                f"{self._namespace}::{self._name} has several overloads; say which, for example "
                f"td.ops.{self._namespace}.{self._name}.{self.overloads()[0]}.{wanted}"
            )
        return make_function(found[0])

    def _retire(self) -> None:
        """The overloads have changed: forget what was found; calls look anew from now on."""
        native_type.unfollow(self, self._kept)
        self._callee = _Retired(self._namespace, self._name)
        for overload in self._found:
            self.__dict__.pop(overload, None)
        self._found.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_packet, (self._namespace, self._name))

    def __repr__(self) -> str:
        return f"<operator packet {self._namespace}::{self._name}: {', '.join(self.overloads())}>"


class _Retired:
    """What a packet calls whose overloads have changed since it was looked up."""

    def __init__(self, namespace: str, name: str):
        self.namespace, self.name = namespace, name

    def target(self, /, *args: Any, **kwargs: Any) -> Any:
        return _packet(self.namespace, self.name)(*args, **kwargs)


class Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Packet:
        if "_name" not in self.__dict__:  # a copy in the making
            raise AttributeError(name)
        declare_promised(f"{self._name}::{name}")
        with lock:
            packet: Packet | None = self.__dict__.get(name)
            if packet is None:  # another thread may have been first
                packet = self.__dict__[name] = Packet(self._name, name)
            return packet

    def __dir__(self) -> list[str]:
        start = f"{self._name}::"
        here = {full[len(start) :].partition(".")[0] for full in operators if full.startswith(start)}
        return sorted(here.union(promised(self._name)))

    def __repr__(self) -> str:
        return f"<namespace {self._name}: {len(dir(self))} operators>"


class Namespaces:
    """All namespaces."""

    def __getattr__(self, name: str) -> Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        found = Namespace(name)
        if dir(found):
            self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return sorted({full.partition("::")[0] for full in operators} | namespaces())


ops = Namespaces()


def _packet(namespace: str, name: str) -> Any:
    return getattr(getattr(ops, namespace), name)


def _forget(operator: Operator, defined: bool) -> None:
    """Retire the packet of an operator that has gained or lost an overload."""
    namespace = ops.__dict__.get(operator.schema.namespace)
    packet = namespace.__dict__.pop(operator.schema.name, None) if namespace is not None else None
    if isinstance(packet, Packet):
        packet._retire()


definition_listeners.append(_forget)
