"""Callables in which native entries are installed, and those that receive the calls which an entry does not take."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from ..... import config, lazy
from .....errors import ArgumentError, DTypeError
from .....registry import native_type
from .....registry.dispatch.state import state
from .....registry.operator import lock
from ..runtime import rt_base as rt
from .runtime import Runtime
from .structs import EntryStruct, OperatorStruct, StructMemory

rt_forward = lazy.Module(".backends.cpu.fastpath.entries.rt_forward")
protocols = lazy.Module(".backends.cpu.fastpath.glue.protocols")


class PatchPoint:
    """A callable in which the entry of an operator is installed: the operator's function, or a special method.

    Attributes:
        callable: the callable.
        kind: the kind of entry.
        fall_back: called on a failed guard.
        miss: called for operand types without a variant.
        takes_numbers: whether the entry may answer calls on numbers alone.
        record: the struct that the entry reads; created when the entry is first installed.
    """

    def __init__(self, target: Any, kind: str, fall_back: Any, miss: Any, takes_numbers: bool = True) -> None:
        self.callable, self.kind, self.fall_back, self.miss = target, kind, fall_back, miss
        self.takes_numbers = takes_numbers
        self.record: OperatorStruct | None = None

    def open(
        self, runtime: Runtime, recorder: Any, make_struct: Callable[[Any, Any], OperatorStruct]
    ) -> OperatorStruct:
        """Install the entry and return the struct that it reads, which ``make_struct(fall_back, miss)`` makes."""
        entry = runtime.entry(self.kind)
        protocols.install_method_slots(runtime, self.callable)
        if self.record is None:
            self.record = make_struct(self.fall_back, self.miss)
            self.record.set(rt.OperatorEntry.own_floats, int(not self.takes_numbers))
        self.record.set_recorder(recorder)
        native_type.set_entry(self.callable, entry, self.record.address)
        return self.record

    def add(self, *variants: StructMemory) -> None:
        """Make variants reachable, if the entry is installed."""
        if self.record is not None:
            taken = (one for one in variants if self.takes_numbers or not one.get(rt.Variant.number))
            self.record.add(*taken)

    def set_fallback(self, other: Any) -> None:
        """Set the callable that receives the calls which the entry does not take."""
        self.fall_back = other
        if self.record is not None:
            self.record.refer(rt.OperatorEntry.fall_back, other)


@native_type.accept_entries
class TargetCallable(native_type.NativeCallable):  # type: ignore[misc]
    """A callable whose calls without a native entry, or that the entry does not take, run its target."""

    target: Any

    def __init__(self, target: Any = None) -> None:
        self.target = target

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.target(*args, **kwargs)


@native_type.accept_entries
class TensorMethod(TargetCallable):
    """A method of Tensor, or the function of a property, in place of its Python code.

    Args:
        name: of the method.
        function: the Python code.
    """

    def __init__(self, name: str, function: Any) -> None:
        super().__init__(function)
        self.function = self.__wrapped__ = function
        self.__name__, self.__qualname__, self.__doc__ = name, f"Tensor.{name}", function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<method {self.__qualname__}>"


def install_forward(runtime: Runtime, function: Any, wrapper: Any, target: Any, fall_back: Any) -> None:
    """Install the entry `forward` of a wrapper's calls, which stays.

    Args:
        runtime: the entries of this process.
        function: the callable that gets the entry.
        wrapper: the wrapper, whose ``own_names``, ``passing_rules`` and ``single_tensors`` the entry follows.
        target: what is called with the converted arguments.
        fall_back: takes the calls that ``target`` refuses.
    """
    if not native_type.entry_of(function):
        tensors = sum(1 << k for k, is_single in enumerate(wrapper.single_tensors) if is_single)
        fields = {"refusal": (ArgumentError, DTypeError), "own_names": wrapper.own_names, "tensors": tensors}
        fields |= {"target": target, "least": wrapper.least, **wrapper.passing_rules}
        record = EntryStruct(rt_forward.ForwardEntry, runtime.process, fall_back, **fields)
        function.native_record = record
        native_type.set_entry(function, runtime.entry("forward"), record.address)


@native_type.accept_entries
class ArgumentConversion(TargetCallable):
    """Takes the calls of a wrapper that the entry which it shares with its operator does not take.

    After some of them, `forward` converts the numbers and lists among their arguments.

    Args:
        wrapper: the wrapper, a callable of ``tandem.numpy``.
        function: the operator's function.
        runtime: the entries of this process.
        attempt: runs a step of compilation, or warns.
    """

    def __init__(
        self, wrapper: Any, function: Any, runtime: Runtime, attempt: Callable[[Callable[[], None]], None]
    ) -> None:
        super().__init__(MethodType(type(wrapper).__call__, wrapper))
        self.wrapper, self.function, self.runtime, self.attempt = wrapper, function, runtime, attempt
        self.calls = 0

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls >= config.flags.hot_calls and not state.include:
            self.attempt(self.install)
        return self.target(*args, **kwargs)

    def install(self) -> None:
        """Install the entry, unless another thread registers operators: then a later call does."""
        lock.if_free(lambda: install_forward(self.runtime, self, self.wrapper, self.function, self.target))
