"""OperatorFunction: the callable that users see, such as ``td.add``.

There is one function object per operator. Its native entry is installed in a C field of the object
(:mod:`.native_type`).
"""

from __future__ import annotations

from collections.abc import Callable, Set
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import lazy
from . import native_type
from .dispatch.state import state
from .lazy_operators import materialize_fallbacks
from .native_type import NativeCallable, accept_entries
from .operator import Operator, definition_listeners, find_operator, lock
from .schemas.schema import MISSING, Schema

if TYPE_CHECKING:
    F = TypeVar("F", bound=Callable[..., Any])
    from .types import Tensor

inspect = lazy.Module("inspect")

R = TypeVar("R")

# Run once, before the first operator call of the process: initialization that the import defers.
before_first_call: list[Callable[[], object]] = []
# Called with each new function while the lock is held; native code adds itself when it is loaded.
function_listeners: list[Callable[[OperatorFunction[Any]], None]] = []


# Callables that have the native entry of a function too, and run their own code where it does not take a call.
wrappers: dict[OperatorFunction[Any], list[object]] = {}
# Called with a function and a callable that wraps it, while the lock is held; see `add_wrapper`.
wrapper_listeners: list[Callable[[OperatorFunction[Any], Any], None]] = []


# Attributes of elementwise functions by name, such as `td.add.outer`; higher parts provide them.
function_attributes: dict[str, Callable[[OperatorFunction[Any]], object]] = {}


class _State:
    awake = False


_state = _State()


@accept_entries
class OperatorFunction(NativeCallable, Generic[R]):  # type: ignore[misc]
    """The public callable of one operator: it binds as a method and has a name, a signature and a docstring.

    The type parameter is the type of the result: ``Tensor``, or a tuple of them.

    Attributes:
        operator: the :class:`Operator` that it calls.
        target: the callable of calls without a native entry: the operator, or a wrapper that counts calls.
        followers: callables that share the native entry.
        run: what runs a call that no native entry takes: the operator, or a shorter way to its result.

    Other attributes are the operator's: ``schema``, ``redispatch``, ``call_for_key``, ``get_kernel``, ...
    """

    operator: Operator
    target: Any

    def __init__(self, operator: Operator, doc: str = ""):
        self.operator = operator
        self.followers: list[object] = []
        self.run: Any = operator
        self.target = operator if _state.awake else self._first_call
        self.__wrapped__ = operator.__call__
        set_function_attributes(self, operator, doc)

    @property
    def __signature__(self) -> object:
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
        """The key set that the operator adds to the key set of every call."""
        return self.operator.extra_keys

    @extra_keys.setter
    def extra_keys(self, bits: int) -> None:
        self.operator.extra_keys = bits

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "operator":
            raise AttributeError(name)
        provide = function_attributes.get(name)
        if provide is None:
            return getattr(self.operator, name)
        value = self.__dict__[name] = provide(self)
        return value

    def __call__(self, /, *args: object, **kwargs: object) -> R:
        """Call the operator."""
        return self.target(*args, **kwargs)  # type: ignore[no-any-return]

    def _first_call(self, /, *args: Any, **kwargs: Any) -> object:
        """Run the deferred initialization, then the call; the target of functions before the first operator call.

        Calls with included keys, as in a trace, have no native entries, so they leave the initialization to others.
        """
        if state.include:
            materialize_fallbacks()
            return self.operator(*args, **kwargs)
        initialize()
        if (
            self.target == self._first_call
        ):  # the operator is no longer defined, so `initialize` has not replaced it
            self.target = self.run
        return self.target(*args, **kwargs)

    def use(self, run: Callable[..., Any]) -> None:
        """Let another callable run the calls that no native entry takes."""
        self.run = run
        if self.target is self.operator:
            self.target = run

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        schema = self.operator.schema
        return f"<function {schema.namespace}.{schema.name}{'.' * bool(schema.overload)}{schema.overload}>"

    def __reduce__(self) -> tuple[object, ...]:
        return (function_of, (self.operator.name,))


# The functions of operators by full name, with the type of those that return one tensor.
functions: dict[str, OperatorFunction[Tensor]] = {}
# From the name of an operator to the function of that name in tandem.numpy or tandem.torch, or None; higher parts
# provide them.
library_functions: list[Callable[[str], Any]] = []


def find_library_function(name: str, options: Set[str]) -> Any:
    """The function of ``tandem.numpy`` or ``tandem.torch`` that takes keywords which an operator lacks.

    Args:
        name: the name of the operator.
        options: the keywords.

    Returns:
        The function; None if there is none.
    """
    functions_of_name = (find(name) for find in library_functions)
    return next((f for f in functions_of_name if options <= getattr(f, "added_options", frozenset())), None)


def accept_options(*names: str) -> Callable[[F], F]:
    """Mark a function of a library's namespace: calls of the operator with these keywords are calls of it.

    >>> import tandem as td
    >>> [index.tolist() for index in td.asarray([0, 3]).nonzero(as_tuple=True)]
    [[1]]
    """

    def mark(function: F) -> F:
        vars(function)["added_options"] = frozenset(names)
        return function

    return mark


def initialize() -> None:
    """Run the initialization that the import defers to the first call; once it has run, do nothing."""
    materialize_fallbacks()
    if _state.awake and not before_first_call:
        return
    with lock:
        _state.awake = True
        while before_first_call:
            before_first_call.pop()()
        for function in list(functions.values()):
            if function.target == function._first_call:
                function.target = function.run


native_type.initializers.append(initialize)


def make_function(operator: Operator, doc: str = "") -> OperatorFunction[Any]:
    """The function object of an operator, created at the first request."""
    with lock:
        result = functions.get(operator.name)
        if result is None or result.operator is not operator:
            result = functions[operator.name] = OperatorFunction(operator, doc)
            for listener in function_listeners:
                listener(result)
        return result


def add_wrapper(wrapper: Any, function: OperatorFunction[Any]) -> None:
    """Give a ``NativeCallable`` that calls a function the function's native entry, from when that is hot.

    The entry takes calls with a tensor, as the function would; the wrapper lives as long as the function.
    """
    with lock:
        wrappers.setdefault(function, []).append(wrapper)
        for listener in wrapper_listeners:
            listener(function, wrapper)


def _remove_function(operator: Operator, defined: bool) -> None:
    """Remove the function of an operator that is undefined; existing references stay valid."""
    held = functions.get(operator.name)
    if not defined and held is not None and held.operator is operator:
        del functions[operator.name]


definition_listeners.append(_remove_function)


def function_of(full_name: str) -> OperatorFunction[Tensor]:
    """The function of an operator by its full name; the operator is declared first if necessary.

    Raises:
        UnknownOperatorError: no operator has that name.
    """
    return functions.get(full_name) or make_function(find_operator(full_name))


def set_function_attributes(function: Any, operator: Operator, doc: str) -> None:
    """Set ``__name__``, ``__qualname__``, ``__module__`` and ``__doc__`` of a function object."""
    function.__name__ = function.__qualname__ = operator.schema.name
    function.__module__ = "tandem"
    function.__doc__ = doc


def signature(schema: Schema) -> Any:
    """The Python signature of a schema."""
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
        + [inspect.Parameter("copy", inspect.Parameter.KEYWORD_ONLY, default=None)] * schema.takes_copy
    )
