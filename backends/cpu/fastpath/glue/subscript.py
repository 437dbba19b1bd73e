"""`x[key]` and `x[key] = value` as methods with native entries; their fallback is the methods' Python code."""

from __future__ import annotations

from types import MethodType
from typing import Any

from ..... import config
from .....eager.tensor.tensor import Tensor
from .....registry import native_type
from .....registry.dispatch.keys import DispatchKey
from .....registry.function import functions
from .....registry.operator import Operator, change_listeners
from ..runtime import rt_base
from .recording import find_recorder
from .runtime import Runtime
from .structs import OperatorStruct


@native_type.accept_entries
class SubscriptMethod(native_type.NativeCallable):  # type: ignore[misc]
    """``Tensor.__getitem__`` or ``Tensor.__setitem__``.

    Args:
        runtime: the entries of this process.
        entry: the kind of entry.
        function: the Python code of the method.
        operators: those whose CPU kernels the entry implements.
    """

    def __init__(self, runtime: Runtime, entry: str, function: Any, operators: tuple[Operator, ...]) -> None:
        self.runtime, self.entry, self.function, self.operators = runtime, entry, function, operators
        self.kernels = self._kernels()
        self.record = OperatorStruct(runtime.process, function, function)
        self.cold_calls = 0
        self.fall_back: Any = function
        name = METHODS[entry][0]
        self.__name__, self.__qualname__ = name, f"Tensor.{name}"
        self.__doc__, self.__wrapped__ = function.__doc__, function
        change_listeners.append(self.follow)

    def __call__(self, *args: Any) -> Any:
        self.cold_calls += 1
        if self.cold_calls >= config.flags.hot_calls and self.usable:
            self._set_recorder()
            native_type.set_entry(self, self.runtime.entry(self.entry), self.record.address)
        return self.function(*args)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<method {self.__qualname__}>"

    def set_fallback(self, other: Any) -> None:
        """Set the callable that receives the calls which the entry does not take."""
        self.fall_back = other
        self.record.refer(rt_base.OperatorEntry.fall_back, other)

    @property
    def usable(self) -> bool:
        """Whether the kernels are those that the entry implements, and no mode intercepts the calls."""
        return not any(op.extra_keys for op in self.operators) and self._kernels() == self.kernels

    def _kernels(self) -> list[Any]:
        return [op.table[DispatchKey.CPU].fn for op in self.operators]

    def follow(self, op: Operator) -> None:
        """Update the entry: an operator's table has changed (a listener of the registry)."""
        if op in self.operators:
            self._set_recorder()
            if not self.usable:
                native_type.set_entry(self, 0)
                self.cold_calls = 0

    def _set_recorder(self) -> None:
        """Record the selected view as a call of the first operator; Python runs recorded writes."""
        self.record.set_recorder(
            find_recorder(self.operators[0], "bound" if self.entry == "subscript" else "")
        )


# kind of entry: the method, and the operators that it may call
METHODS = {
    "subscript": ("__getitem__", ("td::basic_index", "td::index")),
    "assign": ("__setitem__", ("td::basic_put_",)),
}


def attach(runtime: Runtime) -> None:
    """Install the methods in Tensor, once."""
    for entry, (name, called) in METHODS.items():
        function = Tensor.__dict__.get(name)
        if function is not None and not isinstance(function, SubscriptMethod):
            operators = tuple(functions[one].operator for one in called if one in functions)
            if len(operators) == len(called):
                setattr(Tensor, name, SubscriptMethod(runtime, entry, function, operators))
