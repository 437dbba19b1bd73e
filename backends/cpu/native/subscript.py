"""`x[key]` as a method with a native entry; its Python code is the method that it takes the place of."""

from __future__ import annotations

from types import MethodType
from typing import Any

from .... import config
from ....eager.tensor import Tensor
from ....registry import native_type
from ....registry.function import functions
from ....registry.keys import DispatchKey
from ....registry.operator import Operator, change_listeners
from .records import OperatorRecord
from .runtime import Runtime


@native_type.accept_entries
class SubscriptMethod(native_type.NativeCallable):  # type: ignore[misc]
    """``Tensor.__getitem__``.

    Args:
        runtime: the entries of this process.
        function: the Python code of the method.
        operator: the operator of views, whose CPU kernel the entry stands for.
    """

    def __init__(self, runtime: Runtime, function: Any, operator: Operator) -> None:
        self.runtime, self.function, self.operator = runtime, function, operator
        self.kernel = operator.table[DispatchKey.CPU].fn
        self.record = OperatorRecord(runtime.process, function, function)
        self.cold_calls = 0
        self.__name__, self.__qualname__ = "__getitem__", "Tensor.__getitem__"
        self.__doc__, self.__wrapped__ = function.__doc__, function
        change_listeners.append(self.follow)

    def __call__(self, x: Any, key: Any) -> Any:
        self.cold_calls += 1
        if self.cold_calls >= config.flags.hot_calls and self.usable:
            native_type.set_entry(self, self.runtime.entry("subscript"), self.record.address)
        return self.function(x, key)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<method {self.__qualname__}>"

    @property
    def usable(self) -> bool:
        """Whether the kernel of views is the one that the entry stands for."""
        return self.operator.table[DispatchKey.CPU].fn is self.kernel

    def follow(self, op: Operator) -> None:
        """A listener of the registry: an operator's table has changed."""
        if op is self.operator and not self.usable:
            native_type.set_entry(self, 0)
            self.cold_calls = 0


def attach(runtime: Runtime) -> None:
    """Put the method into Tensor, once."""
    function, view = Tensor.__dict__.get("__getitem__"), functions.get("td::basic_index")
    if function is not None and view is not None and not isinstance(function, SubscriptMethod):
        Tensor.__getitem__ = SubscriptMethod(runtime, function, view.operator)  # type: ignore[method-assign]
