"""The object that users call: ``td.add``. It is made once and stays; its native entry is put in below it."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from .. import lazy
from .native_type import NativeCallable, accept_entries
from .operator import Operator, definition_listeners, find, lock
from .schema import MISSING, Schema

# Run once, before the first operator call of the process: parts that the import need not wait for.
before_first_call: list[Callable[[], Any]] = []
# Told of each function that is made, while the lock is held; native code adds itself when it is loaded.
function_listeners: list[Callable[[Any], None]] = []


class _State:
    awake = False


_state = _State()


@accept_entries
class OperatorFunction(NativeCallable):  # type: ignore[misc]
    """A callable that stands for one operator, binds as a method, and shows name, signature and doc.

    Attributes:
        operator: the :class:`Operator` that it calls.
        target: what a call runs while there is no native entry: the operator, or what counts calls on its way there.
        followers: callables that share the native entry.

    What it has not itself it takes from its operator: ``schema``, ``redispatch``, ``call_for_key``, ``get_kernel``, ...
    """

    operator: Operator
    target: Any

    def __init__(self, operator: Operator, doc: str = ""):
        self.operator = operator
        self.followers: list[Any] = []
        self.target = operator if _state.awake else self._first_call
        self.__wrapped__ = operator.__call__
        dress(self, operator, doc)

    @property
    def __signature__(self) -> Any:
        return signature(self.operator.schema)

    @property
    def decl(self) -> Any:
        """The operator's declaration."""
        return self.operator.decl

    @decl.setter
    def decl(self, declaration: Any) -> None:
        self.operator.decl = declaration

    @property
    def extra_keys(self) -> int:
        """The key set that the operator adds to that of every call."""
        return self.operator.extra_keys

    @extra_keys.setter
    def extra_keys(self, bits: int) -> None:
        self.operator.extra_keys = bits

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "operator":
            raise AttributeError(name)
        return getattr(self.operator, name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.target(*args, **kwargs)

    def _first_call(self, /, *args: Any, **kwargs: Any) -> Any:
        """The first call of any operator in this process: load what waits for it."""
        awaken()
        if self.target == self._first_call:  # the operator is no longer defined: nobody else has replaced it
            self.target = self.operator
        return self.target(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        schema = self.operator.schema
        return f"<function {schema.namespace}.{schema.name}{'.' * bool(schema.overload)}{schema.overload}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (function_of, (self.operator.name,))


functions: dict[str, Any] = {}


def awaken() -> None:
    """Load what the import has left to the first call."""
    with lock:
        _state.awake = True
        while before_first_call:
            before_first_call.pop()()
        for function in list(functions.values()):
            if function.target == function._first_call:
                function.target = function.operator


def make_function(operator: Operator, doc: str = "") -> Any:
    """The one function object of an operator, made at the first request."""
    with lock:
        found = functions.get(operator.name)
        if found is None or found.operator is not operator:
            found = functions[operator.name] = OperatorFunction(operator, doc)
            for listener in function_listeners:
                listener(found)
        return found


def _forget(operator: Operator, defined: bool) -> None:
    """Drop the function of an operator that is undefined; who holds it keeps it."""
    held = functions.get(operator.name)
    if not defined and held is not None and held.operator is operator:
        del functions[operator.name]


definition_listeners.append(_forget)


def function_of(full_name: str) -> Any:
    """The function of an operator by its full name; declared and made now if nobody has asked for it yet.

    Raises:
        UnknownOperatorError: there is no such operator.
    """
    return functions.get(full_name) or make_function(find(full_name))


def dress(function: Any, operator: Operator, doc: str) -> None:
    """Give a function object the attributes that people and tools look for."""
    function.__name__ = function.__qualname__ = operator.schema.name
    function.__module__ = "tandem"
    function.__doc__ = doc


def signature(schema: Schema) -> Any:
    """The Python signature of a schema."""
    inspect = lazy.module("inspect")
    kinds = {False: inspect.Parameter.POSITIONAL_OR_KEYWORD, True: inspect.Parameter.KEYWORD_ONLY}
    return inspect.Signature(
        [
            inspect.Parameter(
                argument.name,
                kinds[argument.kwarg_only],
                default=inspect.Parameter.empty if argument.default is MISSING else argument.default,
            )
            for argument in schema.arguments
        ]
    )
