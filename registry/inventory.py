"""Inventory of registrations: all implementations by operator, registration listeners, and queries.

Source: ``c10::OpRegistrationListener``, ``torch._C._dispatch_find_dangling_impls`` and
``torch._C._dispatch_get_registrations_for_dispatch_key``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ..errors import ArgumentError
from ..named_tuple import NamedTuple
from .dispatch.keys import DispatchKey, parse_key
from .formatting import short_repr
from .lazy_operators import materialize_all
from .operator import fallbacks, lock, operators
from .registration import OWN, Handle, Registration

# All implementations by the full name of their operator, oldest first; the operator may be undefined.
implementations: dict[str, list[Registration]] = {}


class RegistrationEvent(NamedTuple):
    """A definition, an implementation, or the removal of one.

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


def notify(action: str, operator: str, registration: Registration | None = None) -> None:
    """Call every listener with an event; the caller holds the lock."""
    for listener in list(_listeners):
        _notify_one(listener, RegistrationEvent(action, operator, registration))


def _notify_one(listener: Listener, event: RegistrationEvent) -> None:
    try:
        listener(event)
    except Exception as fault:  # a faulty listener must not undo the registration
        text = (
            f"the registration listener {listener!r} raised {type(fault).__name__}: {fault} at {event.action}"
        )
        warnings.warn(f"{text} of {event.operator}", RuntimeWarning, stacklevel=4)


def on_registration(listener: Listener) -> Handle:
    """Call a function for every existing registration now, and for each later registration and removal.

    Args:
        listener: called with a ``RegistrationEvent`` for each definition, implementation and removal, under the
            registry's lock.

    Returns:
        A handle whose ``remove()`` removes the listener.

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
            f"on_registration takes a function that is called with events, not {short_repr(listener)}"
        )
    materialize_all()
    with lock:
        for name in list(operators):
            _notify_one(listener, RegistrationEvent("define", name))
        for registration in _all_registrations():
            _notify_one(listener, RegistrationEvent("impl", registration.operator, registration))
        _listeners.append(listener)
    return Handle(lambda: _remove_listener(listener))


def _remove_listener(listener: Listener) -> None:
    with lock:
        if listener in _listeners:
            _listeners.remove(listener)


def _all_registrations() -> list[Registration]:
    items = [registration for held in list(implementations.values()) for registration in held]
    return items + [registration for held in list(fallbacks.values()) for registration in held]


def dangling_impls() -> list[Registration]:
    """The implementations whose operator is not defined (yet).

    Returns:
        The registrations, each with its operator's name and its origin.

    >>> import tandem as td
    >>> with td.Library("doc", "IMPL") as lib:
    ...     _ = lib.impl("no_such_operator", lambda x: x, "CPU")
    ...     [registration.operator for registration in td.dangling_impls()]
    ['doc::no_such_operator']
    """
    materialize_all()
    with lock:
        return [r for name, held in implementations.items() if name not in operators for r in held]


def registrations(key: str | DispatchKey | None = None, op: str | None = None) -> list[Registration]:
    """List the registered kernels, oldest first within an operator; fallbacks come last.

    Args:
        key: only kernels for this dispatch key or alias key.
        op: only kernels of this operator: ``"add"`` (all overloads), ``"add.Tensor"``, ``"myns::mul_add"``; ``"*"``
            for the fallbacks.

    Returns:
        Registrations: with ``operator``, ``key``, ``fn``, ``dtypes``, ``library`` and ``origin`` (``file:line``).

    Raises:
        ArgumentError: the key or the operator's name has a wrong type.
        ValueArgumentError: the key does not exist.

    >>> import tandem as td
    >>> [registration.operator for registration in td.registrations("CPU", "exp")]
    ['td::exp']
    """
    if op is not None and not isinstance(op, str):
        raise ArgumentError(
            f'registrations takes the name of an operator, such as "add", not {short_repr(op)}'
        )
    wanted = None if key is None else parse_key(key)
    name = op if op is None or "::" in op or op == "*" else f"{OWN}::{op}"
    materialize_all()
    with lock:
        return [
            r
            for r in _all_registrations()
            if (wanted is None or r.key == wanted)
            and (name is None or r.operator == name or r.operator.startswith(name + "."))
        ]
