"""``td.ops``: every registered operator, as ``td.ops.<namespace>.<name>[.<overload>]``.

Source: ``torch.ops``.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, UnknownOperatorError
from .library import find_overloads
from .operator import Operator, operators


class Packet:
    """The overloads of one operator; calling it calls the overload that the arguments bind to."""

    def __init__(self, namespace: str, name: str):
        self._namespace, self._name = namespace, name

    def overloads(self) -> list[str]:
        """The names of the overloads; the one without a name is ``"default"``."""
        return [op.schema.overload or "default" for op in find_overloads(self._namespace, self._name)]

    def __getattr__(self, overload: str) -> Operator:
        if overload.startswith("__"):
            raise AttributeError(overload)
        suffix = "" if overload == "default" else f".{overload}"
        found = operators.get(f"{self._namespace}::{self._name}{suffix}")
        if found is None:
            raise UnknownOperatorError(
                f"{self._namespace}::{self._name} has no overload {overload!r}; it has {', '.join(self.overloads())}"
            )
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        candidates = find_overloads(self._namespace, self._name)
        if len(candidates) == 1:
            return candidates[0](*args, **kwargs)
        faults = []
        for candidate in candidates:
            try:
                candidate.binder.bind(args, kwargs)
            except ArgumentError as fault:
                faults.append(str(fault))
            else:
                return candidate(*args, **kwargs)
        raise ArgumentError("no overload takes these arguments:\n" + "\n".join(faults))

    def __repr__(self) -> str:
        return f"<operator packet {self._namespace}::{self._name}: {', '.join(self.overloads())}>"


class Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Packet:
        if name.startswith("__"):
            raise AttributeError(name)
        find_overloads(self._name, name)
        return Packet(self._name, name)

    def __dir__(self) -> list[str]:
        start = f"{self._name}::"
        return sorted({full[len(start) :].partition(".")[0] for full in operators if full.startswith(start)})

    def __repr__(self) -> str:
        return f"<namespace {self._name}: {len(dir(self))} operators>"


class Namespaces:
    """All namespaces."""

    def __getattr__(self, name: str) -> Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        return Namespace(name)

    def __dir__(self) -> list[str]:
        return sorted({full.partition("::")[0] for full in operators})


ops = Namespaces()
