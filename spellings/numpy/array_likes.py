"""Lists of numbers as arguments of ``tandem.numpy``, which NumPy's functions take wherever they take an array.

Functions of ``tandem`` take tensors, arrays and numbers, as those of PyTorch and JAX. :func:`accept_lists` makes the
function of ``tandem.numpy`` from such a function: what takes tensors in its schema, or in its annotations, also takes
nested lists of numbers, which become tensors with NumPy's default dtypes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial, update_wrapper, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..eager.tensor.interop import numpy_protocols
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError
from ..operators.declare.named_results import NamedResults
from ..registry.dtypes import DType, complex64, float32, float64
from ..registry.function import OperatorFunction, add_wrapper, function_attributes
from ..registry.native_type import NativeFunction, accept_entries, accept_entry
from ..registry.respelled_calls import spellings_of
from ..registry.schemas.schema import Schema
from ..registry.values import TensorBase
from .creation import asarray, replace_types
from .wrappers import OperatorWrapper

if TYPE_CHECKING:
    from ..registry.operator import Operator
    from ..registry.types import Args, Function, Kwargs

    Converter = Callable[[object], object]

F = TypeVar("F", bound=Callable[..., Any])
_NUMBERS = frozenset((int, float, complex))
_LISTS = (list, tuple)
_NO_RULES = {"values_start": 0, "takes_none": 0, "most": 0}
_SINGLE = (float32, complex64)
_NO_LISTS = frozenset((Tensor, int, float, bool, complex, str, type, type(None), DType, np.ndarray))
_UFUNC_NUMBERS = frozenset(("nin", "nout", "nargs", "identity"))
_UFUNC_OPTIONS = frozenset("where dtype casting order subok".split())


def accept_lists(function: Any) -> Any:  # noqa: ANN401
    """The function for arguments that may be lists; what is not a function that takes tensors, unchanged.

    A function of an operator converts lists after the operator refused them, so that other calls cost little more. It
    takes the options of ufuncs too: ``np.add(x, 1, out=x, where=mask)``.

    >>> import tandem.numpy as np
    >>> np.dot([1.0, 2.0], [3.0, 4.0])
    tensor(11., dtype=float64)
    """
    operator = find_operator(function)
    if operator is not None:
        return ListFunction(function, operator) if _takes_tensors(operator.schema) else function
    written = function.__wrapped__ if isinstance(function, NativeFunction) else function
    annotations = written.__annotations__.items() if isinstance(written, FunctionType) else ()
    if not any(name != "return" and "Tensor" in str(annotation) for name, annotation in annotations):
        return function
    if isinstance(function, NativeFunction):
        return accept_entry(*function.kind)(_convert_first(function.__wrapped__))
    target = getattr(function, "without_options", None)
    return _convert_first(function) if target is None else ConvertingFunction(function, target.operator)


def find_operator(function: Any) -> Operator | None:  # noqa: ANN401
    """The operator of a public function; None if the function is written in Python."""
    if isinstance(function, (OperatorFunction, NamedResults)):
        operator: Operator = function.operator
        return operator
    wrapped = getattr(function, "__wrapped__", None)
    return None if wrapped is None else find_operator(wrapped)


def _takes_tensors(schema: Schema) -> bool:
    return any(argument.type.core == "Tensor" for argument in schema.arguments)


@accept_entries
class ListFunction(OperatorWrapper):
    """The function of an operator that also takes lists, and the options of ufuncs.

    It has the native entry of the operator's function, and converts the arguments of calls that were refused.

    Attributes:
        passing_rules: which calls native code passes on, besides those without :attr:`own_names`: the rules of
            :func:`name_operator`.
    """

    least = 1
    """The least number of arguments; the operator may accept fewer."""

    def __init__(self, function: Function, operator: Operator) -> None:
        update_wrapper(self, function, updated=())
        self.function, self.operator = function, operator
        types = [argument.type for argument in operator.schema.positional]
        self._tensors = [kind.core == "Tensor" for kind in types]
        self._takes_list = bool(types) and types[0].is_list and self._tensors[0]
        target = getattr(function, "without_options", function)
        self.passing_rules = getattr(function, "rules", _NO_RULES)
        if isinstance(target, OperatorFunction):
            add_wrapper(self, target)

    @cached_property
    def single_tensors(self) -> list[bool]:
        """For each positional argument, whether it is one tensor, which may be given as nested lists of numbers."""
        types = [argument.type for argument in self.operator.schema.positional]
        return [kind.core == "Tensor" and not kind.is_list for kind in types]

    @cached_property
    def own_names(self) -> tuple[str, ...]:
        """The keywords of the calls that Python handles."""
        return ("dtype", *(self.added_options - {"dtype"}))

    @cached_property
    def added_options(self) -> frozenset[str]:
        """The keywords that the function takes and its operator does not."""
        return frozenset(getattr(self.function, "options", ())) | (
            _UFUNC_OPTIONS if self._ufunc is not None else frozenset()
        )

    @cached_property
    def _ufunc(self) -> np.ufunc | None:
        peer = getattr(np, self.__qualname__, None)
        return peer if isinstance(peer, np.ufunc) else None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call the function; with tensors in place of lists if it refuses the arguments.

        Native twin: backends/cpu/fastpath/entries/rt_forward.py:forward
        """
        args = replace_types(args, kwargs)
        is_integer = False
        if args and type(args[0]) in _NUMBERS:
            is_integer = type(args[0]) is int
            args = _convert_numbers(args, self._tensors)
        elif args and self._takes_list and _holds_numbers(args[0]):
            args = ([asarray(number) for number in args[0]], *args[1:])
        if not _NO_LISTS.issuperset(map(type, args)):
            args = self._convert_lists(args)
        if kwargs and self._ufunc is not None and not _UFUNC_OPTIONS.isdisjoint(kwargs):
            return numpy_protocols.apply_ufunc(self._ufunc, "__call__", args, kwargs)
        try:
            return (
                _call_in_float64(self.function, args, kwargs)
                if is_integer
                else self.function(*args, **kwargs)
            )
        except ArgumentError:
            given, options = _convert_by_schema(self.operator, args, kwargs)
            if all(map(_is, given, args)) and all(options[name] is kwargs[name] for name in kwargs):
                raise
        return self.function(*given, **options)

    def _convert_lists(self, args: Args) -> Args:
        """The arguments with tensors in place of lists where the operator takes one tensor."""
        given = [
            asarray(value) if is_single and isinstance(value, _LISTS) else value
            for is_single, value in zip(self.single_tensors, args)
        ]
        return (*given, *args[len(given) :])

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__") or name == "function":
            raise AttributeError(name)
        if name in _UFUNC_NUMBERS and self._ufunc is not None:
            return getattr(self._ufunc, name)
        value = getattr(self.function, name)
        if name in function_attributes:
            self.__dict__[name] = value
        return value


def name_operator(
    target: Any,  # noqa: ANN401
    *options: str,
    values_start: int = 0,
    takes_none: bool = False,
    most: int = 0,
) -> Callable[[F], F]:
    """Mark a function written in Python: calls without these options are calls of an operator's function.

    The native entry passes such calls to the operator, which refuses arguments that it does not take by position.

    Args:
        target: the operator's function.
        options: the keywords that the Python function handles.
        values_start: the first of the arguments of which numbers take the dtype of another one; 0 if there are none.
        takes_none: whether the Python function handles calls with None, which the operator would take for a default.
        most: the number of positional arguments of the operator, if the Python function handles more; 0: it does not.
    """
    rules = {"values_start": values_start, "takes_none": int(takes_none), "most": most}

    def mark(function: F) -> F:
        vars(function).update(without_options=target, options=options, rules=rules)
        return function

    return mark


@accept_entries
class ConvertingFunction(ListFunction):
    """A function written in Python, which converts lists before it calls its operator."""

    def __init__(self, function: Function, operator: Operator) -> None:
        self._call = _convert_first(function)
        super().__init__(function, operator)

    @cached_property
    def single_tensors(self) -> list[bool]:
        """For each positional argument, whether its annotation is that of a tensor."""
        return [convert is _TO_TENSOR for convert in _converters(self.function)[0]]

    @cached_property
    def least(self) -> int:  # type: ignore[override]
        """The number of arguments without a default."""
        parameters = inspect.signature(self.function).parameters.values()
        return sum(one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call the function with tensors in place of lists."""
        return self._call(*replace_types(args, kwargs), **kwargs)


def _convert_numbers(args: Args, tensors: Sequence[bool]) -> Args:
    """The arguments of a call with numbers in place of tensors: as tensors, unless there is a tensor among them."""
    given = [value for is_tensor, value in zip(tensors, args) if is_tensor and value is not None]
    if any(type(value) not in _NUMBERS for value in given):
        return args
    converted = [_convert_number(value) if is_tensor else value for is_tensor, value in zip(tensors, args)]
    return (*converted, *args[len(converted) :])


def _convert_number(value: object) -> object:
    return asarray(value) if type(value) in _NUMBERS else value


def _convert_item(value: object) -> object:
    """The tensor of a list or a number, one of any number of arguments that do not promote one another."""
    return _convert_number(_convert(False, value))


def _holds_numbers(value: Any) -> bool:  # noqa: ANN401
    return type(value) in _LISTS and bool(value) and all(type(item) in _NUMBERS for item in value)


def _call_in_float64(function: Function, args: Args, kwargs: Kwargs) -> Any:  # noqa: ANN401
    """Call a function of a Python integer; in float64, NumPy's dtype, where it computes with floating-point numbers.

    An integer tensor has results of the default dtype, float32, and the function says by its results alone whether they
    are integers.
    """
    result = function(*args, **kwargs)
    x: Any = args[0]
    takes_tensor = isinstance(args[0], TensorBase)
    if kwargs.get("dtype") is not None or not takes_tensor:
        return result
    parts: tuple[Any, ...] = result if isinstance(result, tuple) else (result,)
    if any(getattr(part, "dtype", None) in _SINGLE for part in parts):
        return function(x.astype(float64), *args[1:], **kwargs)
    return result


def _is(one: object, other: object) -> bool:
    return one is other


def _convert_by_schema(
    operator: Operator, args: Args, kwargs: Kwargs
) -> tuple[list[object], dict[str, object]]:
    """The arguments with tensors in place of lists, where the schema has a tensor, or a list of them."""
    schema, names = operator.schema, spellings_of(operator).names
    types = {argument.name: argument.type for argument in schema.arguments}
    by_position = [argument.type for argument in schema.positional][: len(args)]
    given = [
        _convert(kind.is_list, value) if kind.core == "Tensor" else value
        for kind, value in zip(by_position, args)
    ]
    options = dict(kwargs)
    for name, value in kwargs.items():
        kind = types.get(names.get(name, name))
        if kind is not None and kind.core == "Tensor":
            options[name] = _convert(kind.is_list, value)
    return [*given, *args[len(given) :]], options


def _convert(is_list: bool, value: object) -> object:
    """The tensor of a list; of a list of tensors, the list with tensors in place of its lists."""
    if not isinstance(value, (list, tuple)):
        return value
    if not is_list:
        return asarray(value)
    return (
        [_convert(False, item) for item in value]
        if any(isinstance(item, (list, tuple)) for item in value)
        else value
    )


_TO_TENSOR = partial(_convert, False)


def _convert_first(function: Function) -> Function:
    code = getattr(function, "__code__", None)
    takes_any_number = code is None or code.co_flags & inspect.CO_VARARGS

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        numbers = args if takes_any_number else args[:1]
        if not kwargs and _NO_LISTS.issuperset(map(type, args)) and _NUMBERS.isdisjoint(map(type, numbers)):
            return function(*args)
        by_position, rest, by_name = _converters(function)
        is_number = bool(args) and type(args[0]) in _NUMBERS
        is_integer = is_number and type(args[0]) is int
        if is_number:
            args = _convert_numbers(args, [convert is not None for convert in by_position])
        following = [rest] * len(args)
        converters = zip([*by_position, *following], args)
        given = tuple([convert(value) if convert else value for convert, value in converters])
        options = {name: by_name[name](value) if name in by_name else value for name, value in kwargs.items()}
        return _call_in_float64(function, given, options) if is_integer else function(*given, **options)

    return call


@cache
def _converters(
    function: Function,
) -> tuple[list[Converter | None], Converter | None, Mapping[str, Converter]]:
    """Converters of the positional arguments of a Python function, of those after them, and of those with a name."""
    by_position: list[Converter | None] = []
    rest: Converter | None = None
    by_name: dict[str, Converter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        convert = _converter(str(parameter.annotation))
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = _convert_item if parameter.annotation == "Tensor" else convert
        elif parameter.kind is not parameter.VAR_KEYWORD:
            if parameter.kind is not parameter.KEYWORD_ONLY:
                by_position.append(convert)
            if convert is not None:
                by_name[name] = convert
    return by_position, rest, by_name


def _converter(annotation: str) -> Converter | None:
    """The converter of an argument with an annotation: ``Tensor``, ``TensorLike | None``, ``Sequence[Tensor]``."""
    choices = [choice.strip() for choice in annotation.split("|")]
    lists = [choice for choice in choices if "Sequence" in choice]
    if lists:
        return partial(_convert, True) if any("[Tensor" in choice for choice in lists) else None
    return _TO_TENSOR if any(choice in ("Tensor", "TensorLike") for choice in choices) else None
