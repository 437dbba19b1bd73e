"""The base class of functions of ``tandem.numpy`` that share the native entry of an operator's function."""

from __future__ import annotations

from types import MethodType
from typing import Any

from ..registry.native_type import NativeCallable, accept_entries


@accept_entries
class OperatorWrapper(NativeCallable):  # type: ignore[misc]
    """A callable that looks like a function of ``tandem.numpy``, and is pickled by its name."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:  # noqa: ANN401
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<function tandem.numpy.{self.__qualname__}>"

    def __reduce__(self) -> str:
        return str(self.__qualname__)
