"""What is registered: every implementation by operator, who is told of changes, and questions about all of it.

Source: ``c10::OpRegistrationListener``, ``torch._C._dispatch_find_dangling_impls`` and
``torch._C._dispatch_get_registrations_for_dispatch_key``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

from ..errors import ArgumentError
from .handle import Handle
from .keys import DispatchKey, parse_key
from .late import declare_all
from .operator import fallbacks, lock, operators
from .registration import OWN, Registration
from .text import shown

# All implementations by the operator's full name, oldest first; the operator need not be defined.
implementations: dict[str, list[Registration]] = {}


class RegistrationEvent(NamedTuple):
    """Something that was registered or removed.

    Attributes:
        action: ``"define"``, ``"undefine"``, ``"impl"`` or ``"remove"``.
        operator: full name of the operator; ``"*"`` for a fallback.
        registration: the kernel, or None for a definition.
    """

    action: str
    operator: str
    registration: Registration | None = None


Listener = Callable[[RegistrationEvent], object]
_listeners: list[Listener] = []


def tell(action: str, operator: str, registration: Registration | None = None) -> None:
    """Tell every listener of an event; the lock is held."""
    for listener in list(_listeners):
        _tell_one(listener, RegistrationEvent(action, operator, registration))


def _tell_one(listener: Listener, event: RegistrationEvent) -> None:
    try:
        listener(event)
    except Exception as fault:  # the registration stands; whose listener fails hears of it
        text = (
            f"the registration listener {listener!r} raised {type(fault).__name__}: {fault} at {event.action}"
        )
        warnings.warn(f"{text} of {event.operator}", RuntimeWarning, stacklevel=4)


def on_registration(listener: Listener) -> Handle:
    """Have a function called for everything that is registered, and for everything that already is.

    Args:
        listener: called with a ``RegistrationEvent`` for each definition, implementation and removal, under the
            registry's lock; first, before this function returns, with those that exist.

    Returns:
        A handle whose ``remove()`` ends it.

    Raises:
        ArgumentError: the listener is not callable.

    >>> import tandem as td
    >>> seen = []
    >>> with td.on_registration(seen.append), td.Library("doc", "DEF") as lib:
    ...     _ = lib.define("twice(Tensor x) -> Tensor")
    >>> [event.action for event in seen if event.operator == "doc::twice"]
    ['define', 'undefine']
    """
    if not callable(listener):
        raise ArgumentError(
            f"on_registration takes a function that is called with events, not {shown(listener)}"
        )
    declare_all()
    with lock:
        for name in operators:
            _tell_one(listener, RegistrationEvent("define", name))
        for registration in _all():
            _tell_one(listener, RegistrationEvent("impl", registration.operator, registration))
        _listeners.append(listener)
    return Handle(lambda: _silence(listener))


def _silence(listener: Listener) -> None:
    with lock:
        if listener in _listeners:
            _listeners.remove(listener)


def _all() -> list[Registration]:
    found = [registration for held in implementations.values() for registration in held]
    return found + [registration for held in fallbacks.values() for registration in held]


def dangling_impls() -> list[Registration]:
    """The implementations of operators that nobody has defined (yet).

    Returns:
        The registrations, each with its operator's name and the place that it comes from.

    >>> import tandem as td
    >>> with td.Library("doc", "IMPL") as lib:
    ...     _ = lib.impl("no_such_operator", lambda x: x, "CPU")
    ...     [registration.operator for registration in td.dangling_impls()]
    ['doc::no_such_operator']
    """
    declare_all()
    with lock:
        return [r for name, held in implementations.items() if name not in operators for r in held]


def registrations(key: str | DispatchKey | None = None, op: str | None = None) -> list[Registration]:
    """The kernels that are registered, oldest first within an operator; fallbacks last.

    Args:
        key: only those for this dispatch key or alias key.
        op: only those of this operator: ``"add"`` (all overloads), ``"add.Tensor"``, ``"myns::mul_add"``; ``"*"``
            for the fallbacks.

    Returns:
        Registrations: with ``operator``, ``key``, ``fn``, ``dtypes``, ``library`` and ``origin`` (``file:line``).

    Raises:
        ArgumentError: the key or the operator's name is of a wrong type.
        ValueArgumentError: no such key.

    >>> import tandem as td
    >>> [registration.operator for registration in td.registrations("CPU", "exp")]
    ['td::exp']
    """
    if op is not None and not isinstance(op, str):
        raise ArgumentError(f'registrations takes the name of an operator, such as "add", not {shown(op)}')
    wanted = None if key is None else parse_key(key)
    name = op if op is None or "::" in op or op == "*" else f"{OWN}::{op}"
    declare_all()
    with lock:
        return [
            r
            for r in _all()
            if (wanted is None or r.key == wanted)
            and (name is None or r.operator == name or r.operator.startswith(name + "."))
        ]
